"""Answers against the whole of JSON Schema 2020-12. Rules: semantics G6; rows F06, F07."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from corrobo_core.gates.formats import FORMATS
from corrobo_core.gates.jsontext import canonical, parse_json
from corrobo_core.gates.patterns import translate
from corrobo_core.gates.schemas import agrees, problem_of, schema_problem


def valid(schema: Any, response: Any) -> bool:
    text = canonical(schema, "schema")
    assert schema_problem(text) is None
    return problem_of(parse_json(canonical(response, "response")), text) is None


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, [1, 25.0, -0.0], [True, 1.5, "1", None]),
        ({"type": "number"}, [1, 1.5], [False, "1"]),
        ({"type": "boolean"}, [True], [1, 0, "true"]),
        ({"enum": [1]}, [1, 1.0], [True, "1"]),
        ({"enum": [True]}, [True], [1, 1.0]),
        ({"const": 0}, [0, 0.0, -0.0], [False, None]),
        ({"const": False}, [False], [0]),
        ({"const": {"a": [0]}}, [{"a": [0]}], [{"a": [False]}]),
        ({"enum": [[1]]}, [[1]], [[True]]),
        ({"uniqueItems": True}, [[1, True], [0, False], [[1], [True]], [{"a": 1}, {"a": True}]], [[1, 1.0]]),
        ({"uniqueItems": True}, [], [[[1], [True], [1]], [{"a": 1}, 0, {"a": 1}]]),
        ({"multipleOf": 0.1}, [0.3, 7, 1e30], [0.35]),
        ({"maximum": 1}, [1, True, "x"], [1.5]),
    ],
)
def test_F06_booleans_are_never_numbers(schema: Any, good: list[Any], bad: list[Any]) -> None:
    assert [each for each in good if not valid(schema, each)] == []
    assert [each for each in bad if valid(schema, each)] == []


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"properties": {"a": {"properties": {"b": {"minLength": 2}}}}}, [{"a": {"b": "xy"}}], [{"a": {"b": "x"}}]),
        ({"required": ["a"], "additionalProperties": False, "properties": {"a": True}},
         [{"a": 1}], [{}, {"a": 1, "b": 2}]),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, [{}, {"a": 1, "b": 1}], [{"a": 1}]),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "string"}}}, ["a"], [1]),
        ({"$defs": {"t": {"properties": {"next": {"$ref": "#/$defs/t"}}, "required": ["v"]}}, "$ref": "#/$defs/t"},
         [{"v": 1, "next": {"v": 2}}], [{"v": 1, "next": {}}]),
        ({"prefixItems": [{"type": "string"}], "items": False}, [["a"]], [["a", 1], [1]]),
        ({"contains": {"type": "null"}, "minContains": 2}, [[None, None]], [[None]]),
        ({"unevaluatedProperties": False, "allOf": [{"properties": {"a": True}}]}, [{"a": 1}], [{"b": 1}]),
        ({"dependentRequired": {"a": ["b"]}}, [{"a": 1, "b": 1}], [{"a": 1}]),
        ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, [""], ["x"]),
        ({"patternProperties": {"^x$": {"type": "null"}}, "additionalProperties": False},
         [{"x": None}], [{"x": 1}, {"x\n": 1}]),
    ],
)  # fmt: skip
def test_G6_the_whole_schema_is_checked(schema: Any, good: list[Any], bad: list[Any]) -> None:
    assert [each for each in good if not valid(schema, each)] == []
    assert [each for each in bad if valid(schema, each)] == []


@pytest.mark.parametrize(
    ("format_", "good", "bad"),
    [
        ("date-time", ["2026-11-30T12:00:00Z", "1998-12-31T23:59:60Z"],
         ["this should fail", "2026-11-30 12:00:00Z", "2026-02-30T00:00:00Z", "2026-11-30T12:00:00"]),
        ("date", ["2024-02-29"], ["2023-02-29", "2024-2-9", "20240229", "२०२४-०२-२९"]),
        ("time", ["12:00:00.5+02:00"], ["24:00:00Z", "12:00:00", "22:59:60Z"]),
        ("duration", ["P1Y2M", "PT1H", "P1W"], ["P", "PT", "P1D2H", "1D"]),
        ("email", ["a.b+c@example.com", '"a b"@example.com', "a@[127.0.0.1]"],
         ["a", "a@", "a..b@x.y", ".a@x.y", "é@x.y"]),
        ("idn-email", ["é@exämple.de"], ["@x"]),
        ("hostname", ["example.com", "xn--bcher-kva.example"], ["-a.b", "a_b", "a..b", "x" * 64, "xn--X"]),
        ("idn-hostname", ["bücher.example"], ["〮한"]),
        ("ipv4", ["127.0.0.1"], ["127.0.0.01", "256.0.0.1", "127.1", "\uff11.2.3.4"]),
        ("ipv6", ["::1", "::ffff:1.2.3.4"], ["::1%eth0", "12345::"]),
        ("uri", ["https://a.b/c?d#e", "urn:x:y"], ["/a", "http://a b", "http://ü.de"]),
        ("uri-reference", ["/a?b", "#x"], ["a b", "\\\\x"]),
        ("iri", ["http://ü.de/ß"], ["/ü"]),
        ("iri-reference", ["/ü"], ["\\ü"]),
        ("uri-template", ["/a{?b,c*}"], ["/a{b"]),
        ("uuid", ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"], ["2eb8aa08aa9811eab4aa73b441d16380"]),
        ("json-pointer", ["", "/a~1b"], ["a", "/~2"]),
        ("relative-json-pointer", ["0#", "1/a"], ["01", "/a"]),
        ("regex", ["^a$", "(?<n>x)\\k<n>"], ["(", "\\Z", "(?i)x", "a++"]),
    ],
)  # fmt: skip
def test_F07_every_format_is_asserted(format_: str, good: list[str], bad: list[str]) -> None:
    assert [each for each in good if not valid({"format": format_}, each)] == []
    assert [each for each in bad if valid({"format": format_}, each)] == []
    assert valid({"format": format_}, 7)  # formats speak of text


def test_F07_all_formats_of_the_draft_are_known_and_no_others() -> None:
    assert len(FORMATS) == 19
    for name in ("datetime", "Date", "", "color"):
        problem = schema_problem(canonical({"items": {"format": name}}, "schema"))
        assert problem is not None and problem[0] == "responseSchema/items/format"
    # A property, an example or a default that is called format is none.
    harmless = {"properties": {"format": {"const": {"format": "x"}}}, "default": {"format": "x"}}
    assert schema_problem(canonical(harmless, "schema")) is None


def test_F07_formats_need_no_optional_package() -> None:
    """In an interpreter where the packages of jsonschema's extras cannot be imported."""
    blocked = ["fqdn", "isoduration", "jsonpointer", "rfc3339_validator", "rfc3986_validator", "rfc3987_syntax",
               "rfc3987", "uri_template", "webcolors"]  # fmt: skip
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "from corrobo_core.gates.schemas import problem_of, schema_problem\n"
        "for name in ('date-time', 'uri', 'duration', 'json-pointer', 'hostname'):\n"
        '    text = \'{"format":"%s"}\' % name\n'
        "    assert schema_problem(text) is None and problem_of('- -', text)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[a-z]+$", ["abc"], ["abc\n", "ABC"]),
        (r"^\d\w$", ["1a"], ["१a", "1é"]),
        (r"^\s$", ["\ufeff", "\u2003", "\t"], ["\x1c", "\u180e"]),
        (r"^[\s\S]$", ["\n", "x"], ["", "xy"]),
        (r"^[^\S]$", [" "], ["x"]),
        ("^.$", ["x"], ["\n", "\r", "\u2028"]),
        (r"^\u{1F600}\x41\cJ\u0042$", ["\U0001f600A\nB"], ["x"]),
        (r"^(?<a>x|y)\k<a>\1$", ["xxx"], ["xyx"]),
        ("^[[&&~||--a]+$", ["[&~|-"], ["b"]),
        (r"^a{2,3}/\/\-$", ["aa//-"], ["a//-"]),
        ("(?<=a)b", ["ab"], ["cb"]),
    ],
)
def test_G6_patterns_are_ecma_262s(pattern: str, good: list[str], bad: list[str]) -> None:
    assert [each for each in good if not valid({"pattern": pattern}, each)] == []
    assert [each for each in bad if valid({"pattern": pattern}, each)] == []


@pytest.mark.parametrize(
    "pattern",
    ["(", "[a", r"\Z", r"\A", r"\a", r"\p{L}", "(?i)a", "(?P<n>a)", "a*+", "a{,2}", r"\u{110000}", "\\", "(?#x)"],
)
def test_G6_patterns_that_are_not_are_refused_at_definition(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        translate(pattern)
    assert schema_problem(canonical({"pattern": pattern}, "schema")) is not None
    assert schema_problem(canonical({"patternProperties": {pattern: True}}, "schema")) is not None


@pytest.mark.timeout(20)
def test_G6_a_pattern_is_not_tried_on_a_text_that_is_too_long() -> None:
    """This one takes twice as long for each letter, and nobody else in the process goes on meanwhile."""
    schema = {"type": "string", "pattern": "^(a+)+$", "maxLength": 12}
    assert valid(schema, "a" * 12)
    assert not valid(schema, "a" * 11 + "!")
    assert not valid(schema, "a" * 60 + "!")
    assert not valid({"not": {"maxLength": 3, "pattern": "b"}}, "ab")
    assert valid({"not": {"maxLength": 3, "pattern": "b"}}, "aaab")


def test_G6_a_schema_without_end_is_an_invalid_answer_and_no_crash() -> None:
    text = canonical({"$ref": "#"}, "schema")
    problem = problem_of({}, text)
    assert problem is not None and "without end" in problem


@pytest.mark.parametrize(
    ("schema", "response", "expected"),
    [
        ({"properties": {"a": {"type": "boolean"}}, "required": ["a"]}, {"a": True}, True),
        ({"properties": {"a": {"type": "boolean"}}, "required": ["a"]}, {"a": 1}, False),
        ({"properties": {"a": {"type": "boolean"}}, "required": ["a"]}, {}, False),
        ({"properties": {"a": {"type": ["null", "integer"]}}}, {"a": None}, True),
        ({"properties": {"a": {"type": "integer", "maximum": 1}}}, {"a": 5}, True),  # nested rules are not replayed
        ({"properties": 7, "required": 7}, {"a": 5}, True),
    ],
)
def test_G3_a_recorded_answer_is_held_to_what_every_implementation_checked(
    schema: Any, response: Any, expected: bool
) -> None:
    assert agrees(response, schema) is expected
