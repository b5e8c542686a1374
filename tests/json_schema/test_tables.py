"""What single keywords and their combinations accept and refuse, as tables."""

from __future__ import annotations

from typing import Any

import pytest

DRAFT4 = "http://json-schema.org/draft-04/schema#"
DRAFT7 = "http://json-schema.org/draft-07/schema#"

# (schema, accepted values, refused values)
VALUES: list[tuple[Any, list[Any], list[Any]]] = [
    (True, [None, 1, "a", [], {"a": [1, {"b": None}]}], []),
    ({"type": "integer"}, [0, -5, 1.0, 10**30], [1.5, "1", True]),
    ({"$schema": DRAFT4, "type": "integer"}, [0, -5], [1.0, 1.5]),
    ({"$schema": DRAFT4, "type": ["integer", "string"], "enum": [1, "a"]}, [1, "a"], [1.0, 2]),
    ({"type": ["null", "boolean"]}, [None, True, False], [0, "null"]),
    ({"minimum": 5, "not": {"multipleOf": 2}}, [5, 7.5], [6, 4, 3, "x"]),
    ({"type": "integer", "minimum": 3, "exclusiveMaximum": 7, "multipleOf": 3}, [3, 6], [4, 7, 9, 0]),
    ({"multipleOf": 0.1, "type": "number"}, [0.3, 1, -2.5], [0.35, 1.01]),
    ({"$schema": DRAFT4, "minimum": 3, "exclusiveMinimum": True, "type": "number"}, [3.1], [3]),
    ({"enum": [1, "a", None, [1, {"b": 2}]]}, [1, 1.0, "a", None, [1, {"b": 2}], [1.0, {"b": 2.0}]], [2, [1], {}]),
    ({"const": {"a": 1, "b": [True]}}, [{"a": 1, "b": [True]}], [{"a": 1}, {"a": True, "b": [True]}, {}]),
    ({"not": {"const": {"a": 1}}}, [{}, {"a": 2}, {"a": 1, "b": 1}, 1], [{"a": 1}, {"a": 1.0}]),
    ({"not": {"enum": ["a", 1]}}, ["b", 2, None], ["a", 1, 1.0]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "🚲🚲", "שלו", "abc"], ["a", "abcd", "🚲"]),
    ({"type": "string", "pattern": "^a+$", "not": {"pattern": "aa"}}, ["a"], ["aa", "b", ""]),
    ({"type": "string", "pattern": "b", "enum": ["abc", "ac", "b"]}, ["abc", "b"], ["ac"]),
    ({"type": "string", "pattern": "^(red|light blue)$"}, ["red", "light blue"], ["blue", "red|light blue", "reds", 1]),
    ({"pattern": "^a|b$"}, ["ax", "xb", 1], ["x", ""]),
    (
        {"oneOf": [{"properties": {"t": {"type": "string", "pattern": f"^{t}$"}}, "required": ["t"]} for t in "abc"]},
        [{"t": "a"}, {"t": "b", "u": 1}],
        [{"t": "d"}, {}, 1],
    ),
    (  # branches that only objects tell apart: anything else satisfies twenty of them
        {"oneOf": [*[{"properties": {"t": {"enum": [t]}}, "required": ["t"]} for t in "abcdefghijklmnopqrst"],
                   {"type": "object", "properties": {"t": {"type": "string", "pattern": "^[+]"}}, "required": ["t"]}]},
        [{"t": "a"}, {"t": "t", "u": 1}, {"t": "+x"}],
        [{"t": "u"}, {"t": "a+"}, {}, {"t": 1}, 1, "a", [], None],
    ),
    ({"oneOf": [{"minimum": 5, "maxLength": 1}, {"maximum": 3, "maxLength": 2}]}, [2, 6, "ab"], [4, "a", "abc", []]),
    # objects
    ({"required": ["a"], "properties": {"a": {"type": "integer"}}}, [{"a": 1}, 3, [], {"a": 1, "z": 2}],
     [{}, {"a": "x"}]),
    ({"type": "object", "properties": {"a": False}}, [{}, {"b": 1}], [{"a": 1}]),
    ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, [{"x1": 1, "y": "s"}, {}], [{"x1": "s"}]),
    (
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}, "y$": {"minimum": 5}}},
        [{"xy": 7}, {"x": 1}, {"y": 9}, {"z": None}],
        [{"xy": 3}, {"xy": "s"}, {"ay": 3}],
    ),
    (
        {"type": "object", "properties": {"xa": {"minimum": 5}}, "patternProperties": {"^x": {"type": "integer"}},
         "additionalProperties": False},
        [{"xa": 6}, {"xb": 1}, {"xa": 6, "xb": 1}, {}],
        [{"xa": 3}, {"xa": 5.5}, {"y": 1}],
    ),
    ({"type": "object", "propertyNames": {"maxLength": 2}}, [{"ab": 1}, {}], [{"abc": 1}]),
    ({"type": "object", "propertyNames": {"enum": ["a", "b"]}}, [{"a": 1, "b": 2}, {}], [{"c": 1}]),
    ({"type": "object", "propertyNames": {"not": {"const": "a"}}}, [{"b": 1}], [{"a": 1}]),
    ({"type": "object", "minProperties": 1, "maxProperties": 2}, [{"a": 1}, {"a": 1, "b": 2}],
     [{}, dict.fromkeys("abc")]),
    (
        {"type": "object", "dependentRequired": {"a": ["b"]}, "properties": {"a": {}, "b": {}}},
        [{"a": 1, "b": 2}, {"b": 1}, {}],
        [{"a": 1}, {"a": 1, "c": 1}],
    ),
    (
        {"type": "object", "dependentRequired": {"a": ["b"], "b": ["c"]}, "maxProperties": 3},
        [{}, {"d": 1, "e": 1, "f": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}],
        [{"a": 1, "b": 1}, {"b": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}],
    ),
    (
        {"type": "object", "dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}},
        [{"b": "x"}, {"a": 1, "b": 2}],
        [{"a": 1, "b": "x"}],
    ),
    ({"not": {"type": "object", "required": ["a"]}}, [{}, {"b": 1}, 1], [{"a": 1}]),
    ({"not": {"additionalProperties": {"type": "integer"}}}, [{"a": "x"}, {"a": 1, "b": None}], [{}, {"a": 1}, 1]),
    (
        {"type": "object", "properties": {"hue": {"type": "integer"}}, "additionalProperties": False,
         "anyOf": [{"required": ["hue"]}, {"maxProperties": 0}]},
        [{}, {"hue": 1}],
        [{"hue": "x"}, {"a": 1}],
    ),
    # arrays
    ({"items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [[1], [1, 2], "x"], [[], [1, 2, 3], ["a"]]),
    ({"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}}, [[], [1], [1, 2, 2]], [[2], [1, 1]]),
    ({"type": "array", "items": [{"const": 1}], "additionalItems": False}, [[], [1]], [[1, 2], [2]]),
    ({"type": "array", "contains": {"const": 1}}, [[1], [0, 1, 2]], [[], [0]]),
    (
        {"type": "array", "contains": {"minimum": 5}, "minContains": 2, "maxContains": 3, "maxItems": 4},
        [[5, 6], [1, 5, 6, 7]],
        [[5], [5, 6, 7, 8], [1, 2, 3]],
    ),
    ({"not": {"items": {"type": "integer"}}}, [["a"], [1, None]], [[], [1], "x"]),
    ({"not": {"contains": {"const": 1}}}, [[], [2]], [[1], [2, 1], 5]),
    ({"type": "array", "uniqueItems": True}, [[], [1, "1", True, {"a": 1, "b": 2}]], [[1, 1.0], [{"a": 1}, {"a": 1}]]),
    ({"type": "array", "prefixItems": [{"const": 1}, True], "uniqueItems": True}, [[1, 2], [1]], [[1, 1], [2]]),
    ({"type": "array", "uniqueItems": True, "not": {"uniqueItems": True, "minItems": 2}}, [[], [1]], [[1, 2], [1, 1]]),
    # ... compared and counted
    ({"not": {"uniqueItems": True}}, [[1, 2, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]], [[], [1], [1, True], 5]),
    (
        {"not": {"type": "array", "uniqueItems": True}, "maxItems": 2},
        [["a", "a"], [{"a": [0]}, {"a": [0]}], [[], []], {}, "x"],
        [["a"], ["a", "b"], [[], {}], [0, 0, 0]],
    ),
    (
        {"type": "array", "uniqueItems": True, "contains": {"type": "integer"}, "minContains": 2},
        [[1, 2], ["a", 1, "b", 2], [1, 3, 2]],
        [[1], [1, 1.0], [1, "a"], [1, 2, 2]],
    ),
    (
        {"type": "array", "uniqueItems": True, "contains": {"maximum": 5}, "maxContains": 1,
         "items": {"enum": [1, 2, 7, 8]}, "minItems": 3},
        [[1, 7, 8], [8, 7, 2]],
        [[1, 2, 7], [7, 8], [7, 8, 7], [1, 7, 8, 2]],
    ),
    (
        {"type": "array", "uniqueItems": True, "prefixItems": [{"enum": [1, 2]}, {"enum": [2, 3]}],
         "not": {"contains": {"const": 2}}},
        [[], [1], [1, 3], [1, 3, 4]],
        [[2], [1, 2], [2, 3], [1, 3, 3]],
    ),
    (
        {"oneOf": [{"type": "array", "uniqueItems": True, "items": {"type": "integer"}},
                   {"type": "array", "uniqueItems": True, "items": {"multipleOf": 2}}]},
        [[1], [1, 2], ["a"], ["a", 2, 4.0]],
        [[], [2], [2, 4], [1, 1], ["a", "a"], [1, "a"], [0.5, 1]],
    ),
    (
        {"oneOf": [{"type": "array", "uniqueItems": True}, {"type": "array", "items": {"type": "integer"}}]},
        [["a"], [1, "a"], [1, 1], [3, 2, 3.0]],
        [[], [1], [1, 2], ["a", "a"], [1, "a", 1]],
    ),
    # combinators
    ({"oneOf": [{"minimum": 5}, {"maximum": 10}], "type": "number"}, [4, 11], [5, 7, 10]),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"}, [{"a": 1}, {"b": 1}],
     [{}, {"a": 1, "b": 1}]),
    (
        {"oneOf": [{"properties": {"k": {"const": i}, "v": {"maxLength": i}}} for i in range(5)], "type": "object"},
        [{"k": 3, "v": "abc"}, {"k": 0, "v": ""}, {"v": "abcd"}],
        [{"k": 3, "v": "abcd"}, {"k": 9, "v": 1}, {}],
    ),
    (
        {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]},
         "else": {"required": ["c"]}, "type": "object"},
        [{"a": 1, "b": 1}, {"a": 2, "c": 1}, {"c": 1}],
        [{"a": 1}, {"a": 2}, {}],
    ),
    ({"allOf": [{"not": {"not": {"type": "string"}}}, {"maxLength": 1}]}, ["", "a"], ["ab", 1]),
    # unevaluated
    (
        {"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}}, {"required": ["z"]}],
     "unevaluatedProperties": False},
        [{"a": 1}, {"a": 1, "b": 2}, {}],
        [{"c": 1}, {"a": 1, "z": 1}],
    ),
    (
        {"dependentSchemas": {"c": {"minimum": 0}}, "unevaluatedProperties": {"const": 1}},
        [{"c": 1}, {"d": 1}, {}, 5],
        [{"c": 2}, {"d": 2}],
    ),
    (
        {"prefixItems": [{"type": "string"}], "contains": {"type": "integer"}, "unevaluatedItems": False},
        [["a", 1], ["a", 1, 2]],
        [["a", 1, "b"], ["a"]],
    ),
    # references
    ({"$defs": {"a/b": {"const": 1}}, "$ref": "#/$defs/a~1b", "type": "integer"}, [1], [2]),
    ({"$schema": DRAFT7, "definitions": {"x": {"type": "integer"}}, "$ref": "#/definitions/x", "maximum": 1}, [5],
     ["x"]),
    (
        {"$id": "http://example.com/tree", "$dynamicAnchor": "node", "type": "object",
         "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}}},
        [{"children": [{"data": 1}]}],
        [{"children": [1]}],
    ),
]  # fmt: skip


@pytest.mark.parametrize("order", ["any", "schema"])
@pytest.mark.parametrize(("schema", "accepted", "refused"), VALUES, ids=range(len(VALUES)))
def test_values(acceptor: Any, schema: Any, accepted: list[Any], refused: list[Any], order: str) -> None:
    compiled = acceptor(schema, property_order=order)
    assert [value for value in accepted if not compiled.value(value)] == []
    assert [value for value in refused if compiled.value(value)] == []


# (schema, options, accepted texts, refused texts)
TEXTS: list[tuple[Any, dict[str, Any], list[str], list[str]]] = [
    ({"type": "integer", "minimum": 0}, {}, ["0", "10", "1.0", "1e2"], ["00", "+1", "-1", "1.", ".5", "0x1", ""]),
    ({"type": "string"}, {}, ['"a\\u0041\\n"', '"\\ud83d\\udeb2"'], ['"a\nb"', '"\\ud83d"', "'a'", '"\\x"', '"a']),
    ({"type": "string"}, {"escapes": "short"}, ['"a\\n"'], ['"\\u0041"', '"\\/"']),
    ({"const": "a/b"}, {}, ['"a/b"'], ['"a\\/b"', '"\\u0061/b"']),
    ({"const": "a/b"}, {"escapes": "all"}, ['"a/b"', '"a\\/b"', '"\\u0061/b"'], ['"ab"']),
    ({"type": "array"}, {}, ["[]", "[ ]", "[1,2]", "[\n  1,\n  2\n]", "[1 , 2 ]"], ["[1,]", "[,1]", "[", "[1 2]"]),
    ({"type": "array"}, {"whitespace": "compact"}, ["[]", "[1,2]"], ["[ ]", "[1, 2]"]),
    ({"type": "array"}, {"whitespace": "python"}, ["[]", "[1, 2]"], ["[1,2]", "[1,  2]"]),
    ({"type": "object"}, {}, ['{"a":1}', '{"a" : 1, "b":2}', "{}", "{ }"], ['{"a":1,"a":2}', '{"a":1,}', "{a:1}"]),
    ({"type": "object"}, {"whitespace": "compact"}, ['{"a":1,"b":2}'], ['{"a": 1}']),
    ({"type": "object"}, {"whitespace": "python"}, ['{"a": 1, "b": 2}'], ['{"a":1}']),
    ({"properties": {"a": {}, "b": {}}, "type": "object"}, {}, ['{"a":1,"b":2,"c":3}', '{"b":1,"c":1}'],
     ['{"b":1,"a":2}', '{"c":1,"a":1}', '{"a":1,"a":2}', '{"c":1,"c":2}']),
    ({"properties": {"a": {}, "b": {}}, "type": "object"}, {"property_order": "any"}, ['{"c":1,"b":1,"a":2}'], []),
    ({"properties": {"": {"const": 1}}, "type": "object"}, {}, ['{"":1}'], ['{"":2}']),
    ({"properties": {"a\tb": {"const": 1}}, "additionalProperties": False}, {}, ['{"a\\tb":1}'], ['{"a\tb":1}']),
    (True, {}, ["1"], [" 1", "1 ", ""]),
    ({"allOf": [{"properties": {"a": {}}}], "properties": {"b": {}}, "type": "object"}, {}, ['{"a":1,"b":1}'],
     ['{"b":1,"a":1}']),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "options", "accepted", "refused"), TEXTS, ids=range(len(TEXTS)))
def test_texts(acceptor: Any, schema: Any, options: dict[str, Any], accepted: list[str], refused: list[str]) -> None:
    compiled = acceptor(schema, **options)
    assert [text for text in accepted if not compiled.text(text)] == []
    assert [text for text in refused if compiled.text(text)] == []


def test_blanks_in_a_row_are_bounded(acceptor: Any) -> None:
    compiled = acceptor({"type": "array", "items": {"type": "integer"}})
    assert compiled.text("[" + " " * 40 + "1]")
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"[1")
    while matcher.accept_bytes(b" "):
        assert len(matcher.next_bytes()) > 1
    assert matcher.next_bytes() == b",]"


# (format, accepted, refused)
FORMATS: list[tuple[str, list[str], list[str]]] = [
    ("date", ["2024-02-29", "1999-12-31"], ["2023-02-29", "1900-02-29", "2024-13-01", "2024-1-1", "2024-04-31"]),
    ("time", ["12:00:00Z", "23:59:60Z", "01:29:60+01:30", "12:00:00.5-08:00"], ["24:00:00Z", "12:00:00", "22:59:60Z"]),
    (
        "date-time",
        ["2024-02-29T12:00:00Z", "1990-12-31T15:59:60-08:00"],
        ["2024-02-30T12:00:00Z", "2024-02-29 12:00:00Z"],
    ),
    ("duration", ["P1Y2M3DT4H5M6S", "PT1M", "P2W"], ["P", "PT", "P1Y2D", "P1W2D", "1D"]),
    ("email", ["a.b@example.com", '"a b"@x.org', "a@[127.0.0.1]"], ["a", "@b", "a..b@c.d", "a@-b.c", "ä@b.c"]),
    ("idn-email", ["실례@실례.테스트", "a@b.c"], ["a", "@"]),
    (
        "hostname",
        ["a", "www.example.com", "a" * 63],
        ["", "-a", "a-", "a" * 64, "a..b", ".".join(["a" * 60] * 5), "a_b"],
    ),
    ("ipv4", ["127.0.0.1", "255.255.255.255"], ["256.1.1.1", "1.2.3", "01.2.3.4"]),
    (
        "ipv6",
        ["::1", "::", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1::8"],
        ["1:2:3:4:5:6:7:8:9", ":::", "12345::", "1::2::3"],
    ),
    (
        "uri",
        ["http://a.b/c?d=e#f", "urn:x:y", "http://[::1]:80/", "a:"],
        ["//a", "a b:c", "http://a b", "http://[::1", ""],
    ),
    ("uri-reference", ["", "/a", "//a/b", "?q", "#f", "a/b:c"], ["a b", "\\\\x", "#a#b"]),
    ("iri", ["http://ƒøø.ßår/?∂éœ=πîx"], ["/abc", "http:// "]),
    ("iri-reference", ["âππ", "/ü"], ["\\\\x", "#ƒräg\\mênt"]),
    ("uri-template", ["/{a}", "{+x,y:3}", "{?q*}", "a'b"], ["{", "{a", "}", "{a b}"]),
    ("uuid", ["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08-aa98-11ea-b4aa73b441d16380", "2eb8aa08"]),
    ("json-pointer", ["", "/a~0b/~1", "/"], ["a", "/~", "/~2"]),
    ("relative-json-pointer", ["0", "1/a", "0#", "2+1/x"], ["-1", "01", "/a", "a"]),
    (
        "regex",
        ["", "^[a-z0-9_]{3,16}$", "(a(?:b)*)+?", "[\\u4e00-\\u9fa5]", "(?=x)y|", "\\p{L}+", "[\\w.-]"],
        ["*", "\\", "(", "[z-a]", "a{3,2}", "a**", "(?P<n>x)", "\\a", "{1}", "[\\u9fa5-\\u4e00]", "x)"],
    ),
    ("no-such-format", ["anything"], []),
]


@pytest.mark.parametrize(("name", "accepted", "refused"), FORMATS, ids=[name for name, _, _ in FORMATS])
def test_formats(acceptor: Any, name: str, accepted: list[str], refused: list[str]) -> None:
    compiled = acceptor({"type": "string", "format": name})
    assert [text for text in accepted if not compiled.value(text)] == []
    assert [text for text in refused if compiled.value(text)] == []
    relaxed = acceptor({"type": "string", "format": name}, format_assertion=False)
    assert all(relaxed.value(text) for text in accepted + refused)


def test_loose_formats_are_enforced_on_request(acceptor: Any) -> None:
    schema = {"type": "string", "format": "byte"}
    assert acceptor(schema).value("not base64!")
    strict = acceptor(schema, format_assertion="all")
    assert all(strict.value(text) for text in ["", "QQ==", "QUI=", "QUJD"])
    assert not any(strict.value(text) for text in ["Q", "QQ=", "QUJD=", "*"])


def test_formats_of_numbers(acceptor: Any) -> None:
    compiled = acceptor({"type": "integer", "format": "int32"})
    assert compiled.value(2**31 - 1)
    assert not compiled.value(2**31)
