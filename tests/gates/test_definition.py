"""The identity of a question, and what cannot be asked. Rules: semantics G1, G6, I4."""

from __future__ import annotations

import hashlib
import inspect
import json
import pickle
import re
from dataclasses import replace
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from corrobo_core.gates import (
    GateArgumentError,
    GateClient,
    GateDefinition,
    GateDefinitionError,
    GateRequest,
    GateValueError,
    create_gate,
    errors,
    parse_json,
)
from corrobo_core.gates.jsontext import canonical
from tests.gates.support import DEFINITION, REQUEST

# Published with RFC 8785, section 3.2.2 and its test data: input, canonical bytes.
RFC_8785 = [
    (
        r"""{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
         "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}""",
        (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ),
    ),
    (
        r"""{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",
         "\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control",
         "\u00f6":"Latin Small Letter O With Diaeresis"}""",
        (
            '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",'
            '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}'
        ),
    ),
    ('[56,{"d":true,"10":null,"1":[]}]', '[56,{"1":[],"10":null,"d":true}]'),
    (r'{"Unnormalized Unicode":"A\u030a"}', '{"Unnormalized Unicode":"A\u030a"}'),
    (
        r'{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{},"":"empty"}',
        r'{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{}}',
    ),
]


def asking(**changes: Any) -> GateRequest:
    return create_gate(replace(DEFINITION, **changes))


def test_G1_the_source_documents_question_has_the_source_documents_id() -> None:
    digest = "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05"
    assert (REQUEST.digest, REQUEST.request_id) == (digest, f"release-approval#1#{digest}")


def test_G1_presentation_is_stored_and_never_digested() -> None:
    dark = asking(presentation={"theme": "dark"})
    assert (dark.request_id, dark.presentation) == (REQUEST.request_id, {"theme": "dark"})


@pytest.mark.parametrize(
    "change",
    [
        {"gate_id": "release-approvals"},
        {"gate_version": 2},
        {"decision_text": "Approve release abc123? "},
        {"response_schema": {**DEFINITION.response_schema, "required": []}},
        {"input": {"revision": "def456"}},
        {"input": {"revision": "abc123", "more": None}},
    ],
)
def test_G1_every_other_part_changes_the_id(change: dict[str, Any]) -> None:
    assert asking(**change).digest != REQUEST.digest


@pytest.mark.parametrize(("text", "expected"), RFC_8785)
def test_G1_digests_are_over_rfc_8785_bytes(text: str, expected: str) -> None:
    assert asking(input=json.loads(text)).input_json == expected
    question = {
        "gateId": "g",
        "gateVersion": 1,
        "decisionText": "?",
        "responseSchema": {},
        "input": json.loads(text),
    }
    made = create_gate(GateDefinition("g", 1, "?", {}, json.loads(text)))
    assert made.digest == hashlib.sha256(rfc8785.dumps(question)).hexdigest()


@pytest.mark.parametrize(
    ("number", "text"),
    [(-0.0, "0"), (1e21, "1e+21"), (1e-7, "1e-7"), (2**53 - 1, "9007199254740991"), (25.0, "25")],
)
def test_G1_numbers_have_one_text(number: float, text: str) -> None:
    made = asking(input=number)
    assert made.input_json == text
    assert GateRequest.from_wire(made.to_wire()) == made


def test_G1_keys_beyond_the_bmp_sort_by_utf_16() -> None:
    assert asking(input={"\U00010000": 1, "\uffff": 2}).input_json == '{"\U00010000":1,"\uffff":2}'


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
numbers = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_G1_canonical_text_is_rfc8785s_and_reads_back_as_itself(value: Any) -> None:
    try:
        text = canonical(value, "value")
    except GateValueError:
        assert re.search(r"[0-9]{16}", rfc8785.dumps(value).decode())  # a whole float out of range
        return
    assert text.encode() == rfc8785.dumps(value)
    assert canonical(parse_json(text), "value") == text


# -- what cannot be asked ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gate_id": ""}, "gateId"),
        ({"gate_id": "x" * 201}, "gateId"),
        ({"gate_id": 7}, "gateId"),
        ({"gate_version": 0}, "gateVersion"),
        ({"gate_version": True}, "gateVersion"),
        ({"gate_version": 1.0}, "gateVersion"),
        ({"gate_version": 2**53}, "gateVersion"),
        ({"decision_text": " "}, "decisionText"),
        ({"decision_text": "\ud800"}, "decisionText"),
        ({"response_schema": None}, "responseSchema"),
        ({"response_schema": {"type": "objekt"}}, "responseSchema/type"),
        ({"response_schema": {"properties": {"a": {"format": "datetime"}}}}, "responseSchema/properties/a/format"),
        ({"response_schema": {"pattern": "("}}, "responseSchema/pattern"),
        ({"response_schema": {"$ref": "#/$defs/none"}}, "responseSchema"),
        ({"response_schema": {"$ref": "https://example.com/schema.json"}}, "responseSchema"),
        ({"response_schema": {"$schema": "http://json-schema.org/draft-07/schema#"}}, "responseSchema/$schema"),
        ({"input": float("nan")}, "input"),
        ({"input": [1, {"a b": 2**53}]}, "input[1]['a b']"),
        ({"input": 2.0**60}, "input"),
        ({"input": {"a": "\ud800"}}, "input.a"),
        ({"input": {1: 2}}, "input"),
        ({"input": b"x"}, "input"),
        ({"input": object()}, "input"),
        ({"input": "x" * (1 << 20)}, "input"),
        ({"input": "x" * 800_000, "presentation": {"y": "y" * 300_000}}, "request"),
        ({"presentation": []}, None),
        ({"presentation": [1]}, "presentation"),
    ],
)
def test_L8_what_cannot_be_asked_is_refused_with_its_field(change: dict[str, Any], field: str | None) -> None:
    if field is None:
        assert asking(**change).presentation == {}
        return
    with pytest.raises(GateDefinitionError) as refused:
        replace(DEFINITION, **change)
    assert refused.value.field == field


def test_G1_a_definition_is_a_copy_of_what_it_was_given() -> None:
    given_input: dict[str, Any] = {"revision": "abc123", "cost": 25.0}
    definition = replace(DEFINITION, input=given_input)
    before = create_gate(definition)
    given_input["revision"] = "evil"
    assert create_gate(definition) == before
    assert definition.input == {"revision": "abc123", "cost": 25}
    made = before.input
    assert isinstance(made, dict)
    made["revision"] = "evil"
    assert before.input == {"revision": "abc123", "cost": 25}


def test_G1_a_request_built_by_hand_is_not_asked() -> None:
    client = GateClient()
    for wrong in (
        replace(REQUEST, decision_text="Approve everything?"),
        replace(REQUEST, digest="0" * 64),
        replace(REQUEST, input_json='{"revision": "abc123"}'),  # the same value, other bytes
        DEFINITION,
    ):
        with pytest.raises(GateArgumentError):
            client.post(wrong)  # type: ignore[arg-type]
    assert client.history() == ()


def test_requests_and_every_error_survive_pickle() -> None:
    assert pickle.loads(pickle.dumps(REQUEST)) == REQUEST
    for name in sorted(set(errors.__all__) - {"GateError"}):
        kind = getattr(errors, name)
        values = {"position": 3}
        arguments = [values.get(each, each) for each in inspect.signature(kind).parameters]
        again = pickle.loads(pickle.dumps(kind(*arguments)))
        assert (type(again), str(again), list(again.args)) == (kind, str(kind(*arguments)), arguments)


# -- text from outside ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"x":[{"b":{"c":1,"c":1}}]}',
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "9007199254740992",
        "-9007199254740992",
        "9007199254740992.0",
        "1" * 5000,
        r'"\ud800"',
        r'"\u0000"',
        r'{"\udc00":1}',
        "",
        "{",
        "[1,]",
        "'a'",
        "\ufeff{}",
        "[" * 200 + "]" * 200,
        "[" * 100_000,
        b"\xff",
    ],
)
def test_F08_text_that_readers_disagree_about_is_refused(text: str | bytes) -> None:
    with pytest.raises(GateValueError):
        parse_json(text)


def test_L8_text_over_the_limit_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(GateValueError, match="more than 10 bytes"):
        parse_json('"' + "x" * 10 + '"', "response", 10)
