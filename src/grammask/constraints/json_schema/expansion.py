"""From formulas to shapes: the meaning of the in-place applicators and of unevaluated*.

An atom stands for the conjunction of its own keywords (a ``local`` formula) and of what its in-place applicators say;
``definition`` writes that down as a formula. Expanding a formula walks it once: conjunctions intersect shapes,
disjunctions unite them, and a negated atom is the negation of its definition.

Exactly one (oneOf): branches are first proved disjoint, pair by pair; only the pairs that are not are subtracted.

Unevaluated properties and items depend on which subschemas accept the instance. Where they are used, cells carry the
names and positions that annotations cover, and an anyOf contributes every combination of its branches. Combinations
may overlap: a larger one only covers more, so the union of all is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grammask.constraints.json_schema import formulas as f
from grammask.constraints.json_schema import numbers, strings
from grammask.constraints.json_schema.arrays import ArrayCell
from grammask.constraints.json_schema.dialects import ABSENT, APPLICATORS, IN_PLACE, MENTIONED, REFERENCES, UNEVALUATED
from grammask.constraints.json_schema.documents import Node, escape
from grammask.constraints.json_schema.formulas import Formula
from grammask.constraints.json_schema.keys import EVERY_KEY, NO_KEY
from grammask.constraints.json_schema.object_cells import ObjectCell
from grammask.constraints.json_schema.reader import Reader
from grammask.constraints.json_schema.shapes import EMPTY, Shape, ShapeAlgebra
from grammask.constraints.json_schema.strings import StringLanguages
from grammask.engine import time_limit
from grammask.engine.errors import ConstraintSyntaxError, ConstraintTooLarge, UnsupportedConstraint

MAX_PLACE_DEPTH = 150
"""In-place applicators and references may nest this deep at one instance location."""
MAX_PAIRS = 20_000
"""At most this many pairs of oneOf branches are compared."""


MAX_PROOF_DEPTH = 3
"""A proof that two branches exclude each other looks this many levels down."""


class AnnotationsNeeded(Exception):
    """An unevaluated* keyword was met while annotations were not being kept apart: start again with them."""


class TextsNeeded(Exception):
    """Overlapping alternatives were met while schemas with the same text were kept apart: start again without."""


class _Undecided(Exception):
    """A proof of disjointness came back to the definition it is for, or went too deep."""


class Expander:
    """Computes shapes of formulas, each at most once."""

    def __init__(
        self, reader: Reader, algebra: ShapeAlgebra, languages: StringLanguages, *, annotations: bool, by_text: bool
    ) -> None:
        self._reader = reader
        self._languages = languages
        self._annotations = annotations
        self._by_text = by_text
        self.formulas = self._formulas = reader.formulas
        self._algebra = algebra
        self._definitions: dict[Formula, Formula] = {}
        self._shapes: dict[tuple[Formula, int, bool], Shape] = {}
        self._open: set[tuple[Formula, bool]] = set()
        self._defining: set[Formula] = set()
        self._void: set[Formula] = set()
        self._proof_depth = 0
        self._pairs = 0

    def shape(self, formula: Formula, types: int = f.ANYTHING, tracked: bool = False) -> Shape:
        """The cells of a formula for the given types.

        Raises:
            UnsupportedConstraint: a reference leads back to itself at the same instance location.
        """
        types &= formula.types
        kind = formula.kind
        if kind == "types":
            return self._algebra.of_types(formula.payload & types)
        if not types:
            return EMPTY
        key = (formula, types, tracked)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = self._shape(formula, types, tracked)
        return found

    def _shape(self, formula: Formula, types: int, tracked: bool) -> Shape:
        kind = formula.kind
        algebra = self._algebra
        if kind == "values":
            return algebra.of_values(formula.payload, types)
        if kind == "local":
            return self._local(formula.payload, types, tracked)
        if kind == "atom":
            return self._atom(formula, types, tracked)
        if kind == "not":
            return self._negated(formula.args[0], types)
        if kind == "later":
            return _later(self.shape(formula.args[0], types, tracked))
        if kind == "and":
            args = formula.args
            shape = self.shape(args[0], types, tracked)
            for arg in args[1:]:
                types = shape.types() & types
                if not types:
                    return EMPTY
                shape = algebra.meet(shape, self.shape(arg, types, tracked))
            return shape
        shapes = [self.shape(arg, types, tracked) for arg in formula.args]
        if not tracked or kind != "any":
            return algebra.join(shapes)
        covered = shapes[0]
        for shape in shapes[1:]:
            covered = algebra.join([covered, shape, algebra.meet(covered, shape)])
        return covered

    def _atom(self, formula: Formula, types: int, tracked: bool) -> Shape:
        node: Node = formula.payload
        if node.active.keys().isdisjoint(APPLICATORS):
            return self._local(node, types, tracked)
        mark = (formula, True)
        self._enter(mark, node)
        try:
            if node.active.keys().isdisjoint(UNEVALUATED):
                return self.shape(self.definition(formula), types, tracked)
            shape = self._with_unevaluated(formula, types)
            return shape if tracked else _forget(shape)
        finally:
            self._open.discard(mark)

    def _enter(self, mark: tuple[Formula, bool], node: Node) -> None:
        if mark in self._open:
            raise UnsupportedConstraint(
                "the reference leads back to itself at the same place of the instance",
                pointer=node.pointer,
                hint="a recursive schema must pass through a property or an item",
            )
        if len(self._open) > MAX_PLACE_DEPTH:
            raise ConstraintTooLarge(
                f"more than {MAX_PLACE_DEPTH} schemas nested at one place of the instance",
                pointer=node.pointer,
                hint="write nested allOf, anyOf, oneOf and not as fewer levels",
            )
        self._open.add(mark)

    def _negated(self, formula: Formula, types: int) -> Shape:
        algebra = self._algebra
        if formula.kind == "values":
            return algebra.not_values(formula.payload, types)
        node: Node = formula.payload
        if formula.kind == "local":
            return self._negated_local(node, types)
        mark = (formula, False)
        self._enter(mark, node)
        try:
            plain = self.shape(self._formulas.not_(self.definition(formula)), types)
            bits = types & (f.OBJECT | f.ARRAY)
            if node.active.keys().isdisjoint(UNEVALUATED) or not bits:
                return plain
            covered = self._with_unevaluated(formula, bits)
            objects = algebra.of_types(bits & f.OBJECT)
            for cell in covered.objects:
                objects = algebra.meet(objects, Shape(objects=tuple(algebra.objects.negate(cell))))
            arrays = algebra.of_types(bits & f.ARRAY)
            for item in covered.arrays:
                arrays = algebra.meet(arrays, Shape(arrays=tuple(algebra.arrays.negate(item))))
            return Shape(plain.null, plain.booleans, plain.numbers, plain.strings, objects.objects, arrays.arrays)
        finally:
            self._open.discard(mark)

    # -- a node's own keywords

    def _local(self, node: Node, types: int, tracked: bool) -> Shape:
        reader = self._reader
        if "const" in node.active or "enum" in node.active:
            shape = self.shape(reader.local_constants(node), types)
        else:
            shape = self._algebra.of_types(types)
        objects: tuple[ObjectCell, ...] = shape.objects
        arrays: tuple[ArrayCell, ...] = shape.arrays
        cells = shape.numbers
        tree = shape.strings
        if objects:
            own = reader.objects(node)
            if tracked:
                own = own.with_evaluated(reader.evaluated_keys(node))
            objects = self._meet_objects(objects, own)
        if arrays:
            layout = reader.arrays(node)
            if layout is not None and tracked:
                layout = layout.with_evaluated(reader.evaluated_items(node))
            arrays = () if layout is None else self._meet_arrays(arrays, layout)
        if cells:
            number = reader.numbers(node)
            if number is None:
                cells = ()
            elif number is not numbers.ANY:
                cells = tuple([both for cell in cells if (both := numbers.meet(cell, number)) is not None])
        if tree != strings.NONE:
            own_strings = reader.strings(node)
            if own_strings is not strings.ANY:
                tree = own_strings if tree is strings.ANY else strings.meet([tree, own_strings])
        return Shape(shape.null, shape.booleans, cells, tree, objects, arrays)

    def _meet_objects(self, cells: Sequence[ObjectCell], own: ObjectCell) -> tuple[ObjectCell, ...]:
        meet = self._algebra.objects.meet
        return tuple([both for cell in cells if (both := meet(cell, own)) is not None])

    def _meet_arrays(self, cells: Sequence[ArrayCell], own: ArrayCell) -> tuple[ArrayCell, ...]:
        meet = self._algebra.arrays.meet
        return tuple([both for cell in cells if (both := meet(cell, own)) is not None])

    def _negated_local(self, node: Node, types: int) -> Shape:
        reader, algebra = self._reader, self._algebra
        shapes = [self.shape(self._formulas.not_(reader.local_constants(node)), types)]
        if types & f.OBJECT:
            shapes.append(Shape(objects=tuple(algebra.objects.negate(reader.objects(node)))))
        if types & f.ARRAY:
            layout = reader.arrays(node)
            arrays = [algebra.arrays.any] if layout is None else algebra.arrays.negate(layout)
            shapes.append(Shape(arrays=tuple(arrays)))
        if types & f.NUMBER:
            number = reader.numbers(node)
            cells = [numbers.ANY] if number is None else numbers.negate(number)
            kinds = algebra.of_types(types & f.NUMBER)
            shapes.append(algebra.meet(kinds, Shape(numbers=tuple(cells))))
        if types & f.STRING:
            shapes.append(Shape(strings=strings.negate(reader.strings(node))))
        return algebra.join(shapes)

    # -- in-place applicators

    def definition(self, atom: Formula) -> Formula:
        """The formula that an atom stands for, one level down."""
        found = self._definitions.get(atom)
        if found is None:
            if atom in self._defining:
                raise _Undecided
            self._defining.add(atom)
            try:
                found = self._definitions[atom] = self._define(atom)
            finally:
                self._defining.discard(atom)
        return found

    def _define(self, atom: Formula) -> Formula:
        node: Node = atom.payload
        active = node.active
        formulas, reader = self._formulas, self._reader
        if active.keys().isdisjoint(IN_PLACE):
            return formulas.local(node, atom.types)
        parts: list[Formula] = []  # in the order written, which decides the order of properties
        conditions: list[Formula] = []
        own = not active.keys() <= IN_PLACE | UNEVALUATED | {"then", "else"}
        own_place = "properties" if "properties" in active else None
        if own and own_place is None:
            parts.append(formulas.local(node, atom.types))
        for keyword, value in active.items():
            if keyword == own_place:
                parts.append(formulas.local(node, atom.types))
            elif keyword == "allOf":
                parts.extend(reader.schemas(node, keyword))
            elif keyword in REFERENCES:
                parts.append(reader.reference(node, keyword))
            elif keyword == "anyOf":
                parts.append(self._or(reader.schemas(node, keyword), "any"))
            elif keyword == "oneOf":
                context = formulas.local(node, atom.types) if own else formulas.types(atom.types)
                parts.append(self._exactly_one(reader.schemas(node, keyword), context))
            elif keyword == "not":
                conditions.append(formulas.not_(reader.child(node, value, "/not")))
            elif keyword == "if":
                conditions.extend(map(formulas.later, self._conditional(node)))
            elif keyword == "dependentSchemas" or keyword == "dependencies":
                conditions.extend(map(formulas.later, self._dependent(node, keyword, value)))
        parts += conditions
        return formulas.and_(parts)

    def _conditional(self, node: Node) -> list[Formula]:
        formulas, child, active = self._formulas, self._reader.child, node.active
        if "then" not in active and "else" not in active and not self._annotations:
            return []
        test = child(node, active["if"], "/if")
        then = child(node, active["then"], "/then") if "then" in active else formulas.true
        otherwise = child(node, active["else"], "/else") if "else" in active else formulas.true
        own = _named({"properties": active.get("properties")})
        names = [name for name in _named(active["if"]) if name not in own]
        # What the condition asks for has its place before what depends on it, also when the condition is not met.
        asked = [self._made_local(node, {MENTIONED: names}, "/if")] if names else []
        met = formulas.and_([*asked, test, then])
        return [self._or([met, formulas.and_([*asked, formulas.not_(test), otherwise])], "cases")]

    def _or(self, branches: Sequence[Formula], kind: str) -> Formula:
        if self._annotations:
            return self._formulas.branches(branches, kind)
        return self._formulas.or_(branches)

    def _dependent(self, node: Node, keyword: str, table: Any) -> list[Formula]:
        if not isinstance(table, dict) or not all(isinstance(name, str) for name in table):
            raise ConstraintSyntaxError(f"{keyword} must be an object", pointer=node.at(keyword))
        formulas, reader = self._formulas, self._reader
        parts = []
        for name, schema in table.items():
            tokens = f"/{keyword}/{escape(name)}"
            if isinstance(schema, list) and keyword == "dependencies":
                if schema:
                    made = {"dependentRequired": {name: schema}}
                    parts.append(self._made_local(node, made, tokens))
                continue
            wanted = reader.child(node, schema, tokens)
            if wanted is formulas.true:
                parts.append(self._made_local(node, {MENTIONED: [name]}, tokens))
                continue
            absent = self._made_local(node, {ABSENT: [name]}, tokens)
            present = self._made_local(node, {"type": "object", MENTIONED: [name], "required": [name]}, tokens)
            parts.append(self._or([absent, formulas.and_([present, wanted])], "cases"))
        return parts

    def _made_local(self, node: Node, keywords: dict[str, Any], tokens: str) -> Formula:
        """A formula of keywords that the compiler made up; the node's dialect need not know them."""
        made = Node(keywords, keywords, node.resource, node.scope, node, tokens)
        return self._formulas.local(made, f.OBJECT if "type" in keywords else f.ANYTHING)

    def _exactly_one(self, branches: Sequence[Formula], context: Formula) -> Formula:
        """Exactly one branch holds, for instances that satisfy the context."""
        formulas = self._formulas
        if len(branches) == 1:
            return branches[0]
        if self._told_apart(branches):
            return self._or(branches, "cases")
        if self._proof_depth >= MAX_PROOF_DEPTH:
            raise _Undecided
        kept = [branch for branch in branches if branch is not formulas.false]
        overlaps: dict[int, dict[int, list[Formula]]] = {}  # by the types for which they are not known to be disjoint
        for i, a in enumerate(kept):
            for j in range(i + 1, len(kept)):
                self._pairs += 1
                if self._pairs > MAX_PAIRS:
                    raise ConstraintTooLarge(
                        f"more than {MAX_PAIRS} pairs of oneOf branches to tell apart",
                        hint="use anyOf, or give each branch a required property with its own constant",
                    )
                both = formulas.and_([context, a, kept[j]])
                types = self._possible_types(both)
                if types:
                    types = f.ANYTHING if types == both.types else types
                    overlaps.setdefault(i, {}).setdefault(types, []).append(kept[j])
                    overlaps.setdefault(j, {}).setdefault(types, []).append(a)
        if overlaps and not self._by_text:
            raise TextsNeeded
        cases = [
            formulas.and_([branch, *[self._neither(others, types) for types, others in overlaps.get(i, {}).items()]])
            for i, branch in enumerate(kept)
        ]
        return self._or(cases, "cases")

    def _neither(self, others: Sequence[Formula], types: int) -> Formula:
        """None of some formulas holds, for instances of the given types; all others are in."""
        formulas = self._formulas
        none = [formulas.not_(other) for other in others]
        if types == f.ANYTHING:
            return formulas.and_(none)
        return formulas.or_([formulas.types(f.ANYTHING & ~types), formulas.and_([formulas.types(types), *none])])

    def _told_apart(self, branches: Sequence[Formula]) -> bool:
        """Whether all branches are objects that require one property with constants of their own, or have own types."""
        seen = 0
        for branch in branches:
            if branch.types & seen:
                break
            seen |= branch.types
        else:
            return True
        tables = []
        for branch in branches:
            table = self._discriminators(branch)
            if not table:
                return False
            tables.append(table)
        for name, first in tables[0].items():
            values = set(first.payload)
            count = len(values)
            for table in tables[1:]:
                if name not in table:
                    break
                values |= table[name].payload
                count += len(table[name].payload)
            else:
                if len(values) == count:
                    return True
        return False

    def _discriminators(self, branch: Formula) -> dict[str, Formula]:
        """The required properties of an object schema whose values are constants."""
        if branch.kind != "atom" or branch.types != f.OBJECT:
            return {}
        node: Node = branch.payload
        properties, required = node.active.get("properties"), node.active.get("required")
        if not isinstance(properties, dict) or not isinstance(required, list):
            return {}
        table = {}
        for name in required:
            schema = properties.get(name) if isinstance(name, str) else None
            if isinstance(schema, dict) and not schema.keys().isdisjoint(("const", "enum", "pattern")):
                value = self._reader.child(node, schema, "/properties/" + escape(name))
                if value.kind == "values":
                    table[name] = value
        return table

    def is_void(self, formula: Formula) -> bool:
        """Whether no instance satisfies a formula, as far as a look a few levels down can prove it."""
        return not self._possible_types(formula)

    def _possible_types(self, formula: Formula) -> int:
        """The types of the instances of a formula, but for those that a look a few levels down can exclude."""
        if formula is self._formulas.false or formula in self._void:
            return 0
        if formula.kind in ("types", "values") or self._proof_depth >= MAX_PROOF_DEPTH:
            return formula.types
        time_limit.check()
        self._proof_depth += 1
        outer, self._open = self._open, set()
        try:
            shape = self.shape(formula)
            types = shape.types() & formula.types
            if self._languages.finite(shape.strings) == frozenset():
                types &= ~f.STRING
            if all(self._object_void(cell) for cell in shape.objects):
                types &= ~f.OBJECT
            if all(self._array_void(cell) for cell in shape.arrays):
                types &= ~f.ARRAY
        except _Undecided:
            return formula.types
        finally:
            self._open = outer
            self._proof_depth -= 1
        if not types:
            self._void.add(formula)
        return types

    def _object_void(self, cell: ObjectCell) -> bool:
        value_of = self._algebra.objects.value_of
        return any(self.is_void(value_of(cell, name)) for name in cell.required)

    def _array_void(self, cell: ArrayCell) -> bool:
        needed = min(cell.low, len(cell.prefix) + 1)
        return any(self.is_void(cell.at(position)) for position in range(needed))

    # -- unevaluated*

    def _with_unevaluated(self, atom: Formula, types: int) -> Shape:
        """The shape of an atom with unevaluatedProperties or unevaluatedItems; its cells cover everything."""
        if not self._annotations:
            raise AnnotationsNeeded
        node: Node = atom.payload
        active, reader, algebra = node.active, self._reader, self._algebra
        shape = self.shape(self.definition(atom), types, tracked=True)
        objects, arrays = shape.objects, shape.arrays
        if "unevaluatedProperties" in active and objects:
            value = reader.child(node, active["unevaluatedProperties"], "/unevaluatedProperties")
            covered = []
            for cell in objects:
                rest = (cell.evaluated or NO_KEY).complement()
                own = ObjectCell({}, ((rest, value),), evaluated=EVERY_KEY)
                both = algebra.objects.meet(cell, own)
                if both is not None:
                    covered.append(both)
            objects = tuple(covered)
        if "unevaluatedItems" in active and arrays:
            value = reader.child(node, active["unevaluatedItems"], "/unevaluatedItems")
            laid = []
            for item in arrays:
                end, anywhere = item.evaluated or (0, self._formulas.false)
                if end is not None:
                    true = self._formulas.true
                    own_items = ArrayCell((true,) * end, self._formulas.or_([anywhere, value]))
                    both_items = algebra.arrays.meet(item, own_items)
                    if both_items is None:
                        continue
                    item = both_items
                laid.append(item.with_evaluated((None, self._formulas.false)))
            arrays = tuple(laid)
        return Shape(shape.null, shape.booleans, shape.numbers, shape.strings, objects, arrays)


def _named(schema: Any) -> dict[str, None]:
    """The properties that a schema names itself."""
    names: dict[str, None] = {}
    if isinstance(schema, dict):
        for keyword in ("properties", "required"):
            listed = schema.get(keyword)
            if isinstance(listed, (dict, list)):
                names.update(dict.fromkeys([name for name in listed if isinstance(name, str)]))
    return names


def _forget(shape: Shape) -> Shape:
    """The same shape without the notes on what is evaluated."""
    objects = tuple([cell if cell.evaluated is None else cell.with_evaluated(None) for cell in shape.objects])
    arrays = tuple([cell if cell.evaluated is None else cell.with_evaluated(None) for cell in shape.arrays])
    return Shape(shape.null, shape.booleans, shape.numbers, shape.strings, objects, arrays)


def _later(shape: Shape) -> Shape:
    """The same shape with the names of its objects behind those of what stands beside it."""
    objects = tuple([cell.with_names_later() for cell in shape.objects])
    return Shape(shape.null, shape.booleans, shape.numbers, shape.strings, objects, shape.arrays)
