"""A gate's question and its identity: the same question has the same id, in every process and for ever.

Source: semantics G1, G6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from corrobo_core.gates.errors import GateArgumentError, GateDefinitionError, GateError, GateValueError
from corrobo_core.gates.jsontext import MAX_BYTES, canonical, plain_text, sha256
from corrobo_core.gates.schemas import schema_problem
from corrobo_core.records import JSON

__all__ = ["GateDefinition", "GateRequest", "create_gate", "gate_of"]

MAX_NAME = 200
MAX_QUESTION = 20_000
_MAX_INT = (1 << 53) - 1
_FIELDS = frozenset(
    ("requestId", "gateId", "gateVersion", "digest", "decisionText", "responseSchema", "input", "presentation")
)


@dataclass(frozen=True)
class GateDefinition:
    """A question that code cannot answer by itself.

    Checked, and copied, when it is made: everything that cannot be asked is refused here.

    Args:
        gate_id: names the question's place in the program, 1 to 200 characters; a newer request of the same gate
            supersedes its unanswered ones.
        gate_version: 1 or more; raised when the meaning of the answer changes.
        decision_text: the question in plain words.
        response_schema: JSON Schema, draft 2020-12, that an answer must meet; formats are asserted.
        input: what the question is about; any JSON.
        presentation: hints for whoever shows it; stored, never part of the identity.

    Raises:
        GateDefinitionError: names the field and what is wrong with it. Not retryable.

    Source: semantics G1, G6.
    """

    gate_id: str
    gate_version: int
    decision_text: str
    response_schema: Mapping[str, JSON]
    input: JSON
    presentation: Mapping[str, JSON] | None = None

    def __post_init__(self) -> None:
        request = create_gate(self)
        for name in ("response_schema", "input"):
            object.__setattr__(self, name, getattr(request, name))
        if self.presentation is not None:
            object.__setattr__(self, "presentation", request.presentation)


@dataclass(frozen=True)
class GateRequest:
    """A gate's question as it is stored: frozen text, and an id made of it. Make one with `create_gate`.

    Attributes:
        request_id: ``gateId#gateVersion#digest``.
        gate_id: of the definition.
        gate_version: of the definition.
        digest: SHA-256 over the RFC 8785 bytes of the question, 64 lowercase hex digits.
        decision_text: of the definition.
        response_schema_json: canonical JSON text.
        input_json: canonical JSON text.
        presentation_json: canonical JSON text; not part of the digest.
    """

    request_id: str
    gate_id: str
    gate_version: int
    digest: str
    decision_text: str
    response_schema_json: str = field(repr=False)
    input_json: str = field(repr=False)
    presentation_json: str = field(default="{}", repr=False)

    @property
    def response_schema(self) -> dict[str, JSON]:
        """A copy of the schema."""
        return cast("dict[str, JSON]", json.loads(self.response_schema_json))

    @property
    def input(self) -> JSON:
        """A copy of the input."""
        return cast("JSON", json.loads(self.input_json))

    @property
    def presentation(self) -> dict[str, JSON]:
        """A copy of the hints."""
        return cast("dict[str, JSON]", json.loads(self.presentation_json))

    def to_wire(self) -> dict[str, JSON]:
        """The request as events carry it, with the wire's names."""
        return {
            "requestId": self.request_id,
            "gateId": self.gate_id,
            "gateVersion": self.gate_version,
            "digest": self.digest,
            "decisionText": self.decision_text,
            "responseSchema": self.response_schema,
            "input": self.input,
            "presentation": self.presentation,
        }

    @classmethod
    def from_wire(cls, wire: object) -> GateRequest:
        """Read back what `to_wire` wrote, or what another implementation did.

        The schema is not checked: a recorded question stays readable whatever it asked for.

        Raises:
            ValueError: fields are missing, unknown or of the wrong type, or do not give the id. Not retryable.
        """
        if not isinstance(wire, Mapping) or wire.keys() != _FIELDS:
            raise ValueError("a request with missing or unknown fields")
        schema, hints = wire["responseSchema"], wire["presentation"]
        if not isinstance(schema, Mapping) or not isinstance(hints, Mapping):
            raise ValueError("a request whose responseSchema or presentation is no object")
        gate_id, version, text = wire["gateId"], wire["gateVersion"], wire["decisionText"]
        if not (_is_text(gate_id) and _is_text(text) and _is_version(version)):
            raise ValueError("a request whose gateId, gateVersion or decisionText is not usable")
        try:
            request = _request(gate_id, version, text, schema, wire["input"], hints)
        except GateValueError as error:
            raise ValueError(f"a request that is not canonical JSON ({error})") from None
        if (request.digest, request.request_id) != (wire["digest"], wire["requestId"]):
            raise ValueError("a request whose bytes do not give its id")
        return request


def create_gate(definition: GateDefinition) -> GateRequest:
    """The request for a definition: the same bytes give the same id.

    Raises:
        GateDefinitionError: names the field and what is wrong with it. Not retryable.

    Source: semantics G1.
    """
    gate_id = definition.gate_id
    try:
        name = plain_text(gate_id, "gateId", MAX_NAME)
        text = plain_text(definition.decision_text, "decisionText", MAX_QUESTION)
        if not _is_version(definition.gate_version):
            raise GateValueError("gateVersion", "pass a whole number, 1 or more")
        for part, value in (
            ("responseSchema", definition.response_schema),
            ("presentation", definition.presentation or {}),
        ):
            if not isinstance(value, Mapping):
                raise GateValueError(part, "pass an object")
        hints = definition.presentation or {}
        request = _request(name, definition.gate_version, text, definition.response_schema, definition.input, hints)
        _check_size(request)
    except GateError as error:
        field_, problem = error.args
        raise GateDefinitionError(str(gate_id), field_, problem) from None
    if found := schema_problem(request.response_schema_json):
        raise GateDefinitionError(name, *found)
    return request


def _request(
    gate_id: str, version: int, text: str, schema: Mapping[str, JSON], input_: JSON, hints: Mapping[str, JSON]
) -> GateRequest:
    schema_json, input_json = canonical(schema, "responseSchema"), canonical(input_, "input")
    # Canonical JSON of an object is that of its parts, with its keys in order.
    digest = sha256(
        f'{{"decisionText":{canonical(text, "decisionText")},"gateId":{canonical(gate_id, "gateId")},'
        f'"gateVersion":{version},"input":{input_json},"responseSchema":{schema_json}}}'
    )
    return GateRequest(
        f"{gate_id}#{version}#{digest}",
        gate_id,
        version,
        digest,
        text,
        schema_json,
        input_json,
        canonical(hints, "presentation"),
    )


def verified(request: GateRequest) -> GateRequest:
    """The request, if it is what `create_gate` makes of its parts: nobody asks what was built by hand and is wrong.

    Raises:
        GateArgumentError: no request, or its bytes do not give its id. Not retryable.
        GateDefinitionError: its schema cannot be checked. Not retryable.
    """
    if not isinstance(request, GateRequest):
        raise GateArgumentError("request", "pass a GateRequest: create_gate(GateDefinition(…))")
    try:
        made = GateRequest.from_wire(request.to_wire())
    except ValueError as error:
        raise GateArgumentError("request", str(error)) from None
    if made != request:
        raise GateArgumentError("request", "its parts are not canonical; make it with create_gate")
    if found := schema_problem(made.response_schema_json):
        raise GateDefinitionError(made.gate_id, *found)
    return made


def _check_size(request: GateRequest) -> None:
    parts = (request.response_schema_json, request.input_json, request.presentation_json, request.decision_text)
    size = sum(len(part.encode("utf-8")) for part in parts)
    if size > MAX_BYTES:
        raise GateValueError("request", f"{size} bytes; at most {MAX_BYTES}. Pass references instead of contents")


def gate_of(request_id: object) -> str | None:
    """The gate that a request id names; None if no request can have this id."""
    if not isinstance(request_id, str):
        return None
    parts = request_id.rsplit("#", 2)
    return parts[0] if len(parts) == 3 and parts[0] else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_version(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_INT
