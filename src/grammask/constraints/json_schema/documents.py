"""Places in schema documents, and what references mean.

A *resource* is a schema with its own base URI (the document itself, or a subschema with ``$id``). A *node* is a place
in a resource, together with the dynamic scope in which it was reached. Nothing is read ahead: identifiers and anchors
are indexed only when a reference asks for something that a plain JSON pointer does not answer, and the dynamic scope
is tracked only in documents that use ``$dynamicRef`` or ``$recursiveRef``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources as package_data
from typing import Any
from urllib.parse import unquote, urljoin

from grammask.constraints.json_schema import dialects
from grammask.constraints.json_schema.dialects import Dialect
from grammask.engine.errors import ConstraintSyntaxError, UnsupportedConstraint

Scope = tuple[tuple[str, "Resource", str], ...]
"""Outermost dynamic anchors met so far: (anchor name, resource, JSON pointer in it), sorted by name."""

RECURSIVE_ANCHOR = ""
"""The name under which ``$recursiveAnchor: true`` (2019-09) is kept among the dynamic anchors."""


class DynamicScopeNeeded(Exception):
    """A dynamic reference was met while the dynamic scope was not being tracked: start again with tracking."""


class Resource:
    """A schema with its own base URI.

    Attributes:
        uri: base URI without fragment, "" if the schema has none.
        root: the schema.
        dialect: the draft it is read as.
        prefix: where it lies in its document, for messages.
        anchors: plain-name fragments -> JSON pointer in this resource.
        dynamic: those declared by $dynamicAnchor (or $recursiveAnchor) -> JSON pointer in this resource.
    """

    __slots__ = ("anchors", "dialect", "dynamic", "indexed", "prefix", "root", "uri")

    def __init__(self, uri: str, root: Any, dialect: Dialect, prefix: str) -> None:
        self.uri = uri
        self.root = root
        self.dialect = dialect
        self.prefix = prefix
        self.anchors: dict[str, str] = {}
        self.dynamic: dict[str, str] = {}
        self.indexed = False


class Node:
    """A subschema in its place.

    Attributes:
        schema: the schema, a dict.
        resource: the resource it belongs to.
        scope: dynamic scope in which it was reached.
        parent, tokens: the place: tokens after the parent, or after the resource's root when there is no parent.
        active: the keywords that assert something here, in the order written.
    """

    __slots__ = ("active", "parent", "resource", "schema", "scope", "tokens")

    def __init__(
        self,
        schema: dict[str, Any],
        active: dict[str, Any],
        resource: Resource,
        scope: Scope,
        parent: Node | None,
        tokens: str,
    ) -> None:
        self.schema = schema
        self.active = active
        self.resource = resource
        self.scope = scope
        self.parent = parent
        self.tokens = tokens

    @property
    def pointer(self) -> str:
        """JSON pointer of this place, for messages."""
        parts = []
        node: Node | None = self
        while node is not None:
            parts.append(node.tokens)
            if node.parent is None:
                parts.append(node.resource.prefix)
            node = node.parent
        return "".join(reversed(parts))

    def at(self, keyword: str) -> str:
        """JSON pointer of a keyword of this schema."""
        return f"{self.pointer}/{escape(keyword)}"


def escape(token: str) -> str:
    """A reference token as RFC 6901 writes it."""
    return token.replace("~", "~0").replace("/", "~1") if "~" in token or "/" in token else token


def _unescape(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


class Documents:
    """The root document, those of the caller's registry, and the published meta-schemas."""

    def __init__(self, root: Any, registry: Mapping[str, Any] | None, track_scope: bool = False) -> None:
        self._registry = {uri.rstrip("#"): document for uri, document in (registry or {}).items()}
        self.track_scope = track_scope
        self._resources: dict[str, Resource] = {}
        self._nested: dict[int, Resource] = {}
        self._targets: dict[tuple[str, str], tuple[Any, Resource, str]] = {}
        uri = ""
        dialect = self._dialect(root, dialects.DEFAULT)
        if isinstance(root, dict):
            uri = _identifier(root, dialect) or ""
        self.root = self._add(uri, root, dialect, "")

    # -- walking

    def scope_at_root(self) -> Scope:
        return self.enter((), self.root)

    def enter(self, scope: Scope, resource: Resource) -> Scope:
        """The dynamic scope after a resource has been entered."""
        if not self.track_scope:
            return scope
        if not resource.indexed:
            self._index(resource)
        known = {name for name, _, _ in scope}
        added = [(name, resource, where) for name, where in resource.dynamic.items() if name not in known]
        return tuple(sorted([*scope, *added], key=lambda entry: entry[0])) if added else scope

    def nested(self, schema: dict[str, Any], parent: Resource, prefix: str) -> Resource:
        """The resource that a subschema belongs to: its parent's, or its own if it has an identifier."""
        identifier = _identifier(schema, parent.dialect)
        if identifier is None or schema is parent.root:
            return parent
        found = self._nested.get(id(schema))
        if found is None:
            dialect = self._dialect(schema, parent.dialect)
            found = self._add(_join(parent.uri, identifier, prefix), schema, dialect, prefix)
            self._nested[id(schema)] = found
        return found

    # -- references

    def resolve(self, reference: str, node: Node) -> tuple[Any, Resource, str]:
        """The schema that a reference names, its resource and its JSON pointer there.

        Raises:
            UnsupportedConstraint: the document is not in the registry.
            ConstraintSyntaxError: the document has no such place.
        """
        key = (node.resource.uri, reference) if node.resource is not self.root else ("", reference)
        found = self._targets.get(key)
        if found is None:
            found = self._targets[key] = self._resolve(reference, node)
        return found

    def _resolve(self, reference: str, node: Node) -> tuple[Any, Resource, str]:
        resource = node.resource
        if reference == "#":
            return resource.root, resource, ""
        if not reference.startswith("#"):
            uri, _, fragment = _join(resource.uri, reference, node.pointer).partition("#")
            resource = self._find(uri, reference, node)
        else:
            fragment = reference[1:]
        fragment = unquote(fragment)
        if not fragment:
            return resource.root, resource, ""
        if fragment.startswith("/"):
            return self._point(resource, fragment, reference, node)
        if not resource.indexed:
            self._index(resource)
        where = resource.anchors.get(fragment)
        if where is None:
            raise ConstraintSyntaxError(f"reference {reference!r}: no anchor {fragment!r}", pointer=node.pointer)
        return self._point(resource, where, reference, node) if where else (resource.root, resource, "")

    def _point(self, resource: Resource, pointer: str, reference: str, node: Node) -> tuple[Any, Resource, str]:
        here = resource.root
        start = 0
        tokens = pointer.split("/")[1:]
        for depth, token in enumerate(tokens):
            token = _unescape(token)
            try:
                here = here[int(token)] if isinstance(here, list) else here[token]
            except (LookupError, TypeError, ValueError):
                raise ConstraintSyntaxError(
                    f"reference {reference!r} points to nothing", pointer=node.pointer
                ) from None
            if isinstance(here, dict) and tokens[depth - 1 : depth] != ["properties"]:
                inner = self.nested(here, resource, resource.prefix + _joined(tokens[start : depth + 1]))
                if inner is not resource:
                    resource, start = inner, depth + 1
        return here, resource, _joined(tokens[start:])

    def resolve_dynamic(self, reference: str, node: Node) -> tuple[Any, Resource, str]:
        """What ``$dynamicRef`` (2020-12, section 8.2.3.2) names in the dynamic scope of the node."""
        if not self.track_scope:
            raise DynamicScopeNeeded
        schema, resource, where = self.resolve(reference, node)
        name = unquote(reference.partition("#")[2])
        if name in resource.dynamic and resource.dynamic[name] == where:
            return self._outermost(name, node, (schema, resource, where))
        return schema, resource, where

    def resolve_recursive(self, node: Node) -> tuple[Any, Resource, str]:
        """What ``"$recursiveRef": "#"`` (2019-09, section 8.2.4.2) names in the dynamic scope of the node."""
        if not self.track_scope:
            raise DynamicScopeNeeded
        resource = node.resource
        target = (resource.root, resource, "")
        if not resource.indexed:
            self._index(resource)
        return self._outermost(RECURSIVE_ANCHOR, node, target) if RECURSIVE_ANCHOR in resource.dynamic else target

    def _outermost(self, name: str, node: Node, default: tuple[Any, Resource, str]) -> tuple[Any, Resource, str]:
        for known, resource, where in node.scope:
            if known == name:
                return self._point(resource, where, "#" + name, node) if where else (resource.root, resource, "")
        return default

    # -- finding documents

    def _find(self, uri: str, reference: str, node: Node) -> Resource:
        found = self._resources.get(uri)
        if found is None and not self.root.indexed:
            self._index(self.root)
            found = self._resources.get(uri)
        if found is None:
            found = self._load(uri)
        if found is None:
            for known in self._registry:
                self._load(known)
            found = self._resources.get(uri)
        if found is None:
            raise UnsupportedConstraint(
                f"reference {reference!r}: there is no document {uri!r}",
                pointer=node.pointer,
                hint="pass it in registry={uri: document}; nothing is fetched from the network",
            )
        return found

    def _load(self, uri: str) -> Resource | None:
        if uri in self._resources:
            return self._resources[uri]
        document = self._registry.get(uri)
        if document is None:
            document = _metaschema(uri)
        if document is None:
            return None
        dialect = self._dialect(document, self.root.dialect)
        resource = self._add(uri, document, dialect, uri + "#")
        identifier = _identifier(document, dialect) if isinstance(document, dict) else None
        if identifier:
            resource.uri = _join(uri, identifier, uri)
            self._resources.setdefault(resource.uri, resource)
        self._index(resource)
        return resource

    def _add(self, uri: str, root: Any, dialect: Dialect, prefix: str) -> Resource:
        found = self._resources.get(uri)
        if found is not None and found.root is root:
            return found
        uri = uri.rstrip("#")
        resource = Resource(uri, root, dialect, prefix)
        self._resources.setdefault(uri, resource)
        return resource

    def _dialect(self, schema: Any, default: Dialect) -> Dialect:
        uri = schema.get("$schema") if isinstance(schema, dict) else None
        if not isinstance(uri, str):
            return default
        known = dialects.by_uri(uri)
        if known is not None:
            return known
        meta = self._registry.get(uri.rstrip("#"))
        if not isinstance(meta, dict) or meta.get("$schema") == uri:
            return default
        base = self._dialect(meta, dialects.DEFAULT)
        vocabularies = meta.get("$vocabulary")
        if isinstance(vocabularies, dict) and not any(
            name.endswith("/vocab/validation") and used for name, used in vocabularies.items()
        ):
            return base.annotations_only()
        return base

    def _index(self, resource: Resource) -> None:
        """Registers every identifier and anchor below a resource's root, at the places where schemas can stand."""
        resource.indexed = True
        stack: list[tuple[Any, Resource, str]] = [(resource.root, resource, "")]
        while stack:
            schema, owner, where = stack.pop()
            if isinstance(schema, list):
                stack.extend([(item, owner, f"{where}/{i}") for i, item in enumerate(schema)])
                continue
            if not isinstance(schema, dict):
                continue
            inner = self.nested(schema, owner, owner.prefix + where)
            if inner is not owner:
                if inner.indexed:
                    continue
                inner.indexed = True
                owner, where = inner, ""
            _register_anchors(schema, owner, where)
            if owner.dialect.reference_alone and "$ref" in schema:
                continue
            for keyword, value in schema.items():
                if keyword in dialects.SCHEMA_MAPS:
                    if isinstance(value, dict):
                        base = f"{where}/{keyword}"
                        named = [(name, sub) for name, sub in value.items() if isinstance(name, str)]
                        stack.extend([(sub, owner, f"{base}/{escape(name)}") for name, sub in named])
                elif keyword in dialects.SCHEMA_POSITIONS or keyword in dialects.SCHEMA_LISTS:
                    stack.append((value, owner, f"{where}/{keyword}"))


def _register_anchors(schema: dict[str, Any], owner: Resource, where: str) -> None:
    if owner.dialect.anchors_in_id:
        name = schema.get(owner.dialect.id_keyword)
        if isinstance(name, str) and "#" in name and not name.endswith("#"):
            owner.anchors.setdefault(name.partition("#")[2], where)
        return
    for keyword in ("$anchor", "$dynamicAnchor"):
        name = schema.get(keyword)
        if isinstance(name, str):
            owner.anchors.setdefault(name, where)
            if keyword == "$dynamicAnchor":
                owner.dynamic.setdefault(name, where)
    if schema.get("$recursiveAnchor") is True and not where:
        owner.dynamic[RECURSIVE_ANCHOR] = where


def _identifier(schema: dict[str, Any], dialect: Dialect) -> str | None:
    """The base URI that a schema declares, without fragment; None if it declares none."""
    name = schema.get(dialect.id_keyword)
    if not isinstance(name, str) or name.startswith("#"):
        return None
    if dialect.reference_alone and "$ref" in schema:
        return None
    return name.partition("#")[0] or None


def _join(base: str, reference: str, pointer: str) -> str:
    """RFC 3986 resolution, also against base URIs such as ``urn:`` that urljoin leaves alone."""
    if reference.startswith("#"):
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError as error:
        raise ConstraintSyntaxError(f"{reference!r} is not a URI reference: {error}", pointer=pointer) from None


def _joined(tokens: list[str]) -> str:
    return "".join(["/" + token for token in tokens])


@lru_cache(maxsize=1)
def _metaschemas() -> dict[str, Any]:
    folder = package_data.files("grammask.constraints.json_schema") / "metaschemas.json"
    documents: dict[str, Any] = json.loads(folder.read_text(encoding="utf-8"))
    return documents


def _metaschema(uri: str) -> Any:
    """A published meta-schema by its URI, None if it is not one."""
    if "json-schema.org" not in uri:
        return None
    return _metaschemas().get(uri)
