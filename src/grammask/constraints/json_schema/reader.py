"""Reads schemas: which formula a subschema is, and which cells its own keywords make.

Malformed keywords are errors: a schema that cannot be read is never quietly weakened.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from grammask.constraints.json_schema import formats, numbers, strings, values
from grammask.constraints.json_schema import formulas as f
from grammask.constraints.json_schema.arrays import ArrayCell, Count
from grammask.constraints.json_schema.dialects import ABSENT, ARRAY, MENTIONED, NUMBER, OBJECT, STRING
from grammask.constraints.json_schema.documents import Documents, Node, Resource, Scope, escape
from grammask.constraints.json_schema.formulas import Formula, Formulas
from grammask.constraints.json_schema.keys import EVERY_KEY, Keys
from grammask.constraints.json_schema.numbers import NumberCell
from grammask.constraints.json_schema.object_cells import ANY as ANY_OBJECT
from grammask.constraints.json_schema.object_cells import ObjectCell
from grammask.constraints.json_schema.strings import Strings
from grammask.constraints.json_schema.values import Value
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge, UnsupportedConstraint

MAX_FORMULAS = 200_000
NODES_BETWEEN_CHECKS = 1_000
MAX_COUNT = 2**62
"""No text holds so many characters, items or members: greater counts are all the same."""
MAX_COMPARED_TEXT = 3_000

_LITERAL_PATTERN = re.compile(r"\^(?:([\w :/-]+)|\((?:\?:)?([\w :/-]+(?:\|[\w :/-]+)*)\))\$", re.ASCII)
"""Patterns that list constants, ``^red$`` or ``^(red|green)$``: they tell alternatives apart like ``enum``."""

_VALUE_KEYWORDS = frozenset({"type", "const", "enum"})


class Reader:
    """Turns places of the documents into formulas and cells.

    names: the strings that satisfy a formula (for propertyNames).
    by_text: whether schemas with the same text are recognised as the same formula. It helps where alternatives must be
        told apart, and costs time elsewhere.
    """

    def __init__(
        self,
        documents: Documents,
        formulas: Formulas,
        *,
        format_assertion: formats.FormatAssertion,
        own_formats: Mapping[str, str],
        any_array: ArrayCell,
        names: Callable[[Formula], Strings] | None,
        by_text: bool,
    ) -> None:
        self._by_text = by_text
        self._texts: dict[tuple[str, Resource, Scope], Formula] = {}
        self.names = names
        self.documents = documents
        self.formulas = formulas
        self._format_assertion = format_assertion
        self._own_formats = own_formats
        self._any_array = any_array
        self._nodes: dict[tuple[int, Resource, Scope], Formula] = {}
        self.pattern_pointers: dict[str, str] = {}
        self._next_check = NODES_BETWEEN_CHECKS
        self._kept: list[Any] = []  # schemas made here, kept alive because nodes are known by identity

    def root(self) -> Formula:
        documents = self.documents
        return self.formula(documents.root.root, documents.root, documents.scope_at_root(), None, "")

    def child(self, node: Node, schema: Any, tokens: str) -> Formula:
        """The formula of a subschema; tokens is its JSON pointer relative to the node."""
        return self.formula(schema, node.resource, node.scope, node, tokens)

    def made(self, node: Node, schema: dict[str, Any], tokens: str) -> Formula:
        """The formula of a schema that the compiler made up itself."""
        self._kept.append(schema)
        return self.child(node, schema, tokens)

    def formula(self, schema: Any, resource: Resource, scope: Scope, parent: Node | None, tokens: str) -> Formula:
        """The formula of a schema at a place; plain ones become sets of types or values at once."""
        formulas = self.formulas
        steps, passed = 0, None
        while True:
            if not isinstance(schema, dict):
                if schema is True:
                    return formulas.true
                if schema is False:
                    return formulas.false
                raise ConstraintSyntaxError(
                    f"a schema is an object or a boolean, not {_kind(schema)}",
                    pointer=_pointer(resource, parent, tokens),
                )
            if not schema:
                return formulas.true
            key = (id(schema), resource, scope)
            found = self._nodes.get(key)
            if found is not None:
                return found
            if resource.dialect.id_keyword in schema:
                inner = self.documents.nested(schema, resource, _pointer(resource, parent, tokens))
                if inner is not resource:
                    resource, parent, tokens = inner, None, ""
                    scope = self.documents.enter(scope, resource)
                    key = (id(schema), resource, scope)
                    found = self._nodes.get(key)
                    if found is not None:
                        return found
            dialect = resource.dialect
            if "$ref" in schema and dialect.reference_alone:
                active = {"$ref": schema["$ref"]}
            else:
                keywords = dialect.keywords
                active = {keyword: value for keyword, value in schema.items() if keyword in keywords}
            if not active:
                return formulas.true
            node = Node(schema, active, resource, scope, parent, tokens)
            if len(active) == 1 and "$ref" in active:
                if key == passed:
                    raise _endless(node)
                steps += 1
                if not steps & (steps - 1):
                    passed = key  # a loop comes by again before the next power of two (Brent 1980)
                schema, resource, tokens = self._target(node, "$ref")
                scope = self.documents.enter(scope, resource)
                parent = None
                continue
            if len(active) <= 2 and (simple := self._simple(node)) is not None:
                found = simple
            elif self._by_text and (same := self._same(node)) is not None:
                found = same
            else:
                found = Formula("atom", node, (), self._types(node))
                if not active.keys().isdisjoint(("const", "enum")):
                    found = self._constants_first(node, found)
            if len(self._nodes) >= self._next_check:
                self._check_limits(node)
            self._nodes[key] = found
            return found

    def _check_limits(self, node: Node) -> None:
        time_limit.check()
        self._next_check += NODES_BETWEEN_CHECKS
        if len(self._nodes) > MAX_FORMULAS:
            raise ConstraintTooLarge(
                f"more than {MAX_FORMULAS} subschemas",
                pointer=node.pointer,
                hint="refer to what repeats by $ref, or split the schema",
            )

    def _simple(self, node: Node) -> Formula | None:
        """The formula of a schema that lists types or constants and says nothing else."""
        active = node.active
        if active.keys() <= _VALUE_KEYWORDS:
            if "type" in active and len(active) == 1:
                return self.formulas.types(self._types(node))
            return self._constants(node)
        if "pattern" in active and active.get("type") == "string":
            texts = _listed(active["pattern"])
            if texts is not None:
                return self.formulas.values(frozenset([("s", text) for text in texts]))
        return None

    def _constants_first(self, node: Node, atom: Formula) -> Formula:
        """The formula of a node that lists constants among other things: objects are written as they are listed."""
        listed = self._values(node)
        if listed is None or not any(value[0] == "o" and len(value[1].order) > 1 for value in listed):
            return atom
        return self.formulas.and_([self.formulas.values(listed), atom])

    def _same(self, node: Node) -> Formula | None:
        """The formula of a schema with the same text, if one was read before in the same resource."""
        if not _is_short(node.active, MAX_COMPARED_TEXT):
            return None
        try:
            text = repr(node.active)
        except (RecursionError, ValueError):  # nested deeply, or numbers of thousands of digits
            return None
        return self._texts.setdefault((text, node.resource, node.scope), Formula("atom", node, (), self._types(node)))

    def reference(self, node: Node, keyword: str) -> Formula:
        """The formula that a reference of a node stands for."""
        schema, resource, tokens = self._target(node, keyword)
        return self.formula(schema, resource, self.documents.enter(node.scope, resource), None, tokens)

    def _target(self, node: Node, keyword: str) -> tuple[Any, Resource, str]:
        reference = node.active[keyword]
        if not isinstance(reference, str):
            raise ConstraintSyntaxError(f"{keyword} must be a string", pointer=node.at(keyword))
        if keyword == "$dynamicRef":
            return self.documents.resolve_dynamic(reference, node)
        if keyword == "$recursiveRef":
            return self.documents.resolve_recursive(node)
        return self.documents.resolve(reference, node)

    # -- types and constants

    def _types(self, node: Node) -> int:
        """The types named by ``type``."""
        names = node.active.get("type")
        if names is None:
            return f.ANYTHING
        if isinstance(names, str):
            bits = f.TYPE_BITS.get(names)
            if bits is not None and bits != f.WHOLE:
                return bits
            names = [names]
        if not isinstance(names, list):
            raise ConstraintSyntaxError("type must be a string or a list of strings", pointer=node.at("type"))
        bits = 0
        for name in names:
            known = f.TYPE_BITS.get(name) if isinstance(name, str) else None
            if known is None:
                raise ConstraintSyntaxError(
                    f"unknown type {name!r}", pointer=node.at("type"), hint="the types are " + ", ".join(f.TYPE_BITS)
                )
            bits |= f.PLAIN if known == f.WHOLE and node.resource.dialect.plain_integers else known
        return bits

    def _constants(self, node: Node) -> Formula:
        """``type``, ``const`` and ``enum`` alone."""
        types = self._types(node)
        listed = self._values(node)
        if listed is None:
            return self.formulas.types(types)
        formula = self.formulas.values(listed)
        return formula if types == f.ANYTHING else self.formulas.and_([formula, self.formulas.types(types)])

    def _values(self, node: Node) -> frozenset[Value] | None:
        listed: frozenset[Value] | None = None
        if "const" in node.active:
            listed = frozenset([values.canonical(node.active["const"], node.at("const"))])
        if "enum" in node.active:
            choices = node.active["enum"]
            if not isinstance(choices, list):
                raise ConstraintSyntaxError("enum must be a list", pointer=node.at("enum"))
            pointer = node.at("enum")
            chosen = frozenset([values.canonical(choice, pointer) for choice in choices])
            listed = chosen if listed is None else listed & chosen
        return listed

    def local_constants(self, node: Node) -> Formula:
        """The part of a node that its ``type``, ``const`` and ``enum`` say."""
        return self._constants(node)

    # -- cells of a node's own keywords

    def strings(self, node: Node) -> Strings:
        active = node.active
        if active.keys().isdisjoint(STRING):
            return strings.ANY
        parts: list[Strings] = []
        low = self._size(node, "minLength") or 0
        high = self._size(node, "maxLength")
        if low or high is not None:
            if high is not None and high < low:
                return strings.NONE
            parts.append(strings.Length(low, high))
        if "pattern" in active:
            source = active["pattern"]
            if not isinstance(source, str):
                raise ConstraintSyntaxError("pattern must be a string", pointer=node.at("pattern"))
            self.pattern_pointers.setdefault(source, node.at("pattern"))
            constants = _listed(source)
            parts.append(strings.Pattern(source) if constants is None else strings.Only(constants))
        if "format" in active and self._format_assertion:
            name = active["format"]
            own = self._own_formats.get(name) if isinstance(name, str) else None
            if own is not None:
                source = f"^(?:{own})$"
                self.pattern_pointers.setdefault(source, node.at("format"))
                parts.append(strings.Pattern(source))
            elif formats.is_known(name, self._format_assertion):
                parts.append(strings.Format(name))
        return strings.meet(parts) if parts else strings.ANY

    def numbers(self, node: Node) -> NumberCell | None:
        active = node.active
        kind = active.get("format")
        if active.keys().isdisjoint(NUMBER):
            if kind is None or not self._format_assertion:
                return numbers.ANY
            return self._number_format(kind) or numbers.ANY
        low = self._number(node, "minimum")
        high = self._number(node, "maximum")
        low_open = high_open = False
        exclusive = active.get("exclusiveMinimum")
        if isinstance(exclusive, bool):
            low_open = exclusive
        elif exclusive is not None:
            bound = self._number(node, "exclusiveMinimum")
            if low is None or (bound is not None and bound >= low):
                low, low_open = bound, True
        exclusive = active.get("exclusiveMaximum")
        if isinstance(exclusive, bool):
            high_open = exclusive
        elif exclusive is not None:
            bound = self._number(node, "exclusiveMaximum")
            if high is None or (bound is not None and bound <= high):
                high, high_open = bound, True
        divisor = self._number(node, "multipleOf")
        if divisor is not None and divisor <= 0:
            raise ConstraintSyntaxError("multipleOf must be greater than 0", pointer=node.at("multipleOf"))
        cell = numbers.simplify(
            NumberCell(low, low_open and low is not None, high, high_open and high is not None, divisor)
        )
        bounds = self._number_format(kind) if kind is not None and self._format_assertion else None
        return cell if cell is None or bounds is None else numbers.meet(cell, bounds)

    def _number_format(self, kind: Any) -> NumberCell | None:
        bounds = formats.INTEGER_RANGES.get(kind) if isinstance(kind, str) else None
        if bounds is None:
            return None
        low, high = bounds
        return NumberCell(low=Fraction(low), high=Fraction(high), divisor=Fraction(1))

    def arrays(self, node: Node) -> ArrayCell | None:
        active = node.active
        if active.keys().isdisjoint(ARRAY):
            return self._any_array
        true = self.formulas.true
        prefix: tuple[Formula, ...] = ()
        rest = true
        items = active.get("items", True)
        if "prefixItems" in active:
            prefix = self._list(node, "prefixItems")
            rest = self.child(node, items, "/items")
        elif isinstance(items, list):
            prefix = self._list(node, "items")
            if "additionalItems" in active:
                rest = self.child(node, active["additionalItems"], "/additionalItems")
        elif items is not True:
            rest = self.child(node, items, "/items")
        low = self._size(node, "minItems") or 0
        high = self._size(node, "maxItems")
        counts: tuple[Count, ...] = ()
        if "contains" in active:
            wanted = self.child(node, active["contains"], "/contains")
            least = self._size(node, "minContains")
            counts = (Count(0, wanted, 1 if least is None else least, self._size(node, "maxContains")),)
        unique = None
        if "uniqueItems" in active:
            if not isinstance(active["uniqueItems"], bool):
                raise ConstraintSyntaxError("uniqueItems must be a boolean", pointer=node.at("uniqueItems"))
            unique = node.at("uniqueItems") if active["uniqueItems"] else None
        if high is not None and high < low:
            return None
        return ArrayCell(prefix, rest, low, high, counts, (), unique)

    def evaluated_items(self, node: Node) -> tuple[int | None, Formula]:
        """How many leading items this node's own keywords evaluate (None: all), and which values anywhere."""
        active, false = node.active, self.formulas.false
        items = active.get("items")
        anywhere = false
        if "contains" in active and node.resource.dialect.contains_evaluates:
            anywhere = self.child(node, active["contains"], "/contains")
        if "additionalItems" in active and isinstance(items, list):
            return None, anywhere
        if "prefixItems" in active:
            return (None if "items" in active else len(active["prefixItems"])), anywhere
        if isinstance(items, list):
            return len(items), anywhere
        return (None if "items" in active else 0), anywhere

    def objects(self, node: Node) -> ObjectCell:
        active = node.active
        if active.keys().isdisjoint(OBJECT):
            return ANY_OBJECT
        formula = self.formula
        resource, scope = node.resource, node.scope
        props: dict[str, Formula] = {}
        declared = active.get("properties")
        if declared is not None:
            if not isinstance(declared, dict):
                raise ConstraintSyntaxError("properties must be an object", pointer=node.at("properties"))
            for name, schema in declared.items():
                if not isinstance(name, str):
                    raise _not_a_name(name, node, "properties")
                props[name] = formula(schema, resource, scope, node, "/properties/" + escape(name))
        for name in active.get(MENTIONED, ()):
            props.setdefault(name, self.formulas.true)
        foralls: list[tuple[Keys, Formula]] = []
        families: list[Strings] = []
        patterned = active.get("patternProperties")
        if patterned is not None:
            if not isinstance(patterned, dict):
                raise ConstraintSyntaxError("patternProperties must be an object", pointer=node.at("patternProperties"))
            for source, schema in patterned.items():
                if not isinstance(source, str):
                    raise _not_a_name(source, node, "patternProperties")
                pointer = "/patternProperties/" + escape(source)
                self.pattern_pointers.setdefault(source, node.pointer + pointer)
                family = strings.Pattern(source)
                families.append(family)
                foralls.append((Keys(frozenset(), frozenset((family,))), self.child(node, schema, pointer)))
        if "additionalProperties" in active:
            additional = formula(active["additionalProperties"], resource, scope, node, "/additionalProperties")
            if additional is not self.formulas.true:
                foralls.append((Keys(frozenset(props), frozenset(families), True), additional))
        if "propertyNames" in active:
            assert self.names is not None, "schemas are read before the reader is let go of"
            allowed = self.names(self.child(node, active["propertyNames"], "/propertyNames"))
            if allowed != strings.ANY:
                foralls.append((_outside(allowed), self.formulas.false))
        required = active.get("required", ())
        if required:
            if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
                raise ConstraintSyntaxError("required must be a list of property names", pointer=node.at("required"))
            required = tuple(dict.fromkeys(required))
        elif not isinstance(required, (list, tuple)):
            raise ConstraintSyntaxError("required must be a list of property names", pointer=node.at("required"))
        low = self._size(node, "minProperties") or 0
        high = self._size(node, "maxProperties")
        implied = self._implied(node) if "dependentRequired" in active else ()
        tests = dict.fromkeys(active.get(ABSENT, ()), self.formulas.false)
        return ObjectCell(props, tuple(foralls), tuple(required), low, high, (), implied, tests=tests)

    def _implied(self, node: Node) -> tuple[tuple[str, tuple[str, ...]], ...]:
        table = node.active["dependentRequired"]
        if not isinstance(table, dict) or not all(
            isinstance(name, str) and isinstance(names, list) and all(isinstance(other, str) for other in names)
            for name, names in table.items()
        ):
            raise ConstraintSyntaxError(
                "dependentRequired must map property names to lists of property names",
                pointer=node.at("dependentRequired"),
            )
        return tuple([(name, tuple(others)) for name, others in table.items() if others])

    def evaluated_keys(self, node: Node) -> Keys:
        """The names that this node's own keywords evaluate."""
        active = node.active
        if "additionalProperties" in active:
            return EVERY_KEY
        patterned = active.get("patternProperties", {})
        return Keys(
            frozenset(active.get("properties", ())),
            frozenset([strings.Pattern(source) for source in patterned]),
        )

    # -- keyword values

    def _list(self, node: Node, keyword: str) -> tuple[Formula, ...]:
        schemas = node.active[keyword]
        if not isinstance(schemas, list):
            raise ConstraintSyntaxError(f"{keyword} must be a list of schemas", pointer=node.at(keyword))
        return tuple([self.child(node, schema, f"/{keyword}/{i}") for i, schema in enumerate(schemas)])

    def schemas(self, node: Node, keyword: str) -> tuple[Formula, ...]:
        """The formulas of a keyword whose value is a list of schemas that is not empty."""
        if not node.active[keyword]:
            raise ConstraintSyntaxError(f"{keyword} must list at least one schema", pointer=node.at(keyword))
        return self._list(node, keyword)

    def _size(self, node: Node, keyword: str) -> int | None:
        value = node.active.get(keyword)
        if value is None or (type(value) is int and 0 <= value <= MAX_COUNT):
            return value
        if values.is_number(value):
            exact = values.number(value, node.at(keyword))
            if exact >= 0 and exact.denominator == 1:
                # A least count that nothing reaches stays above a greatest one that nothing exceeds.
                return min(int(exact), MAX_COUNT + keyword.startswith("min"))
        raise ConstraintSyntaxError(f"{keyword} must be a whole number, at least 0", pointer=node.at(keyword))

    def _number(self, node: Node, keyword: str) -> Fraction | None:
        value = node.active.get(keyword)
        if value is None:
            return None
        if not values.is_number(value):
            raise ConstraintSyntaxError(f"{keyword} must be a number", pointer=node.at(keyword))
        return values.number(value, node.at(keyword))


def _listed(source: Any) -> frozenset[str] | None:
    """The constants that a pattern lists, None if it says something else."""
    match = _LITERAL_PATTERN.fullmatch(source) if isinstance(source, str) else None
    return None if match is None else frozenset((match[1] or match[2]).split("|"))


def _outside(allowed: Strings) -> Keys:
    """The names that are not among some strings."""
    if isinstance(allowed, strings.Only):
        return Keys(allowed.texts, frozenset(), True)
    if isinstance(allowed, strings.Except):
        return Keys(allowed.texts, frozenset())
    return Keys(frozenset(), frozenset((allowed,)), True)


def _endless(node: Node) -> UnsupportedConstraint:
    return UnsupportedConstraint(
        "the reference leads back to itself without describing anything",
        pointer=node.pointer,
        hint="a recursive schema must pass through a property or an item",
    )


def _is_short(schema: Any, most: int) -> bool:
    """Whether the text of a schema has about so many characters. A text can be far longer than its schema takes memory:
    the same object may stand in it many times."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            most -= 10 * len(part)
            waiting += part.values() if most > 0 else ()
        elif isinstance(part, list):
            most -= 2 * len(part)
            waiting += part if most > 0 else ()
        elif isinstance(part, str):
            most -= len(part)
        if most < 0:
            return False
    return True


def _not_a_name(name: object, node: Node, keyword: str) -> ConstraintSyntaxError:
    return ConstraintSyntaxError(f"the key {name!r} is not a string", pointer=node.at(keyword))


def _kind(value: object) -> str:
    return {list: "a list", str: "a string", int: "a number", float: "a number", type(None): "null"}.get(
        type(value), type(value).__name__
    )


def _pointer(resource: Resource, parent: Node | None, tokens: str) -> str:
    return (parent.pointer if parent is not None else resource.prefix) + tokens
