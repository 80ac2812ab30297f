"""From a call's arguments to a recorded intent, and back: bind, validate, fill defaults, check, canonicalise.

Source: semantics I1 to I4, L8.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from corrobo_core.canonical import MAX_INTENT_BYTES, canonical_json, check_intent, fingerprint
from corrobo_core.errors import ContractError, IdentityError, IntentError
from corrobo_core.records import JSON

__all__ = ["Bound", "Parameters", "adapter_for", "check_identity", "operation_id_from"]

MAX_ID_LENGTH = 512


@dataclass(frozen=True, slots=True)
class Bound:
    """One call's intent: the values as they come back from storage, the canonical text, the fingerprint."""

    values: Mapping[str, Any]
    intent: str
    fingerprint: str


def adapter_for(effect: str, field: str, annotation: Any) -> TypeAdapter[Any]:
    """A validator for one annotation; a `ContractError` that names the field if there can be none."""
    try:
        return TypeAdapter(annotation)
    except (PydanticSchemaGenerationError, PydanticUserError, NameError) as error:
        why = str(error).splitlines()[0]
        raise ContractError(effect, field, f"its type cannot be validated or stored: {why}") from None


class Parameters:
    """The intent's fields, as a function's parameters or as one model.

    Args:
        effect: the operation type, for errors.
        fn: whose annotations are used.
        parameters: its parameters after the attempt.
        volatile: names left out of the fingerprint (I3).
        model: the intent's type, where the intent is one model and not a list of parameters.
        limit: bytes of canonical JSON that are accepted.
    """

    def __init__(
        self,
        effect: str,
        fn: Callable[..., Any] | None,
        parameters: list[inspect.Parameter],
        *,
        volatile: tuple[str, ...] = (),
        model: object = None,
        limit: int = MAX_INTENT_BYTES,
    ) -> None:
        self.effect, self.limit, self.volatile = effect, limit, frozenset(volatile)
        self.signature = inspect.Signature(parameters)
        self.names = tuple(parameter.name for parameter in parameters)
        self._keyword_only = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        self._fn, self._model = fn, model

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        # Made at the first call: annotations may name classes that the module defines further down.
        if self._model is not None:
            return {"intent": adapter_for(self.effect, "intent", self._model)}
        hints = type_hints(self.effect, self._fn)
        return {name: adapter_for(self.effect, name, hints.get(name, Any)) for name in self.names}

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
        """The intent of one call.

        Raises:
            IntentError: arguments are missing, unknown, of the wrong type, or not storable exactly. Nothing
                has been written or sent. Not retryable.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise IntentError("arguments", str(error)) from None
        bound.apply_defaults()
        fields = {name: self._json_form(name, value) for name, value in bound.arguments.items()}
        text = canonical_json(self._stored_form(fields), limit=self.limit)
        values = self.load(text)
        self._check_round_trip(fields, values)
        return Bound(values, text, self._fingerprint(fields, text))

    def load(self, intent: str) -> dict[str, Any]:
        """The hooks' arguments from a recorded intent.

        Raises:
            IntentError: it does not fit the effect's types any more. Not retryable.
        """
        recorded = json.loads(intent)
        fields = {"intent": recorded} if self._model is not None else recorded
        values: dict[str, Any] = {}
        for name, adapter in self._adapters.items():
            try:
                values[name] = adapter.validate_json(json.dumps(fields[name]))
            except KeyError:
                raise IntentError(f"intent.{name}", "is not in the recorded intent") from None
            except ValidationError as error:
                problem = _problem(error)
                raise IntentError(_path(name, error), f"does not come back from storage: {problem}") from None
        return values

    def as_arguments(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values as positional and keyword arguments, as the function declares them."""
        by_keyword = {name: values[name] for name in self._keyword_only}
        return tuple(values[name] for name in self.names if name not in by_keyword), by_keyword

    def _stored_form(self, fields: dict[str, JSON]) -> JSON:
        return fields["intent"] if self._model is not None else fields

    def _json_form(self, name: str, value: object) -> JSON:
        adapter = self._adapters[name]
        check_intent(value, self._path(name))  # before validation: it would turn bytes into text, or loop
        try:
            valid = adapter.validate_python(value)
        except ValidationError as error:
            raise IntentError(_path(name, error), _problem(error)) from None
        try:
            check_intent(adapter.dump_python(valid, warnings="error"), self._path(name))
            form: JSON = adapter.dump_python(valid, mode="json", by_alias=True, round_trip=True, warnings="error")
        except (PydanticSerializationError, ValueError) as error:
            raise IntentError(self._path(name), f"cannot be stored ({type(error).__name__})") from None
        return form

    def _check_round_trip(self, fields: dict[str, JSON], values: dict[str, Any]) -> None:
        for name, form in fields.items():
            again = self._adapters[name].dump_python(values[name], mode="json", by_alias=True, round_trip=True)
            if again != form:
                raise IntentError(self._path(name), "does not come back from storage as it was")

    def _fingerprint(self, fields: dict[str, JSON], text: str) -> str:
        if not self.volatile:
            return fingerprint(text)
        whole = fields["intent"] if self._model is not None else fields
        assert isinstance(whole, dict)
        bound = {name: value for name, value in whole.items() if name not in self.volatile}
        return fingerprint(canonical_json(bound, limit=self.limit))

    def _path(self, name: str) -> str:
        return "intent" if self._model is not None else f"intent.{name}"


def type_hints(effect: str, fn: Callable[..., Any] | None) -> dict[str, Any]:
    """A function's annotations, resolved; a `ContractError` names the one that cannot be."""
    if fn is None:
        return {}
    closure = inspect.getclosurevars(fn).nonlocals if inspect.isfunction(fn) else {}
    try:
        return get_type_hints(fn, localns=dict(closure), include_extras=True)
    except NameError as error:
        raise ContractError(effect, "annotations", f"{error}; import or define it at module level") from None


def _problem(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return str(first["msg"])


def _path(name: str, error: ValidationError) -> str:
    place = error.errors(include_input=False, include_url=False, include_context=False)[0]["loc"]
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in place]
    start = "intent" if name == "intent" else f"intent.{name}"
    return start + "".join(steps)


# -- identity (I1) -------------------------------------------------------------------------------------------


def check_identity(effect: str, identity: Callable[..., str], names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Which of the effect's parameters ``identity`` takes by keyword; None means all of them.

    Raises:
        ContractError: it needs one that the effect does not have.
    """
    if not callable(identity):
        raise ContractError(effect, "identity", "must be a function of the effect's parameters")
    takes_all = False
    wanted: list[str] = []
    for parameter in inspect.signature(identity).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL):
            raise ContractError(effect, "identity", "is called by keyword; it can take no positional-only values")
        elif parameter.name in names:
            wanted.append(parameter.name)
        elif parameter.default is inspect.Parameter.empty:
            have = ", ".join(names) or "none"
            raise ContractError(
                effect,
                "identity",
                f"takes {parameter.name!r}, which the effect does not have (it has: {have})",
            )
    return None if takes_all else tuple(wanted)


def operation_id_from(effect: str, identity: Callable[..., str], values: Mapping[str, Any]) -> str:
    """Call ``identity`` and check what it returns.

    Raises:
        IdentityError: not 1 to 512 characters of storable text. Nothing was written or sent. Not retryable.
    """
    try:
        found: object = identity(**values)
    except Exception as error:
        raise IdentityError(effect, "identity", f"raised {type(error).__name__}") from error
    return checked_id(effect, "identity", found)


def checked_id(effect: str, field: str, found: object) -> str:
    """An id that every ledger stores, or an `IdentityError` that says what is wrong with it."""
    if not isinstance(found, str):
        raise IdentityError(effect, field, f"is of kind {type(found).__name__}; it must be a string")
    if not 1 <= len(found) <= MAX_ID_LENGTH:
        raise IdentityError(effect, field, f"has {len(found)} characters; it must have 1 to {MAX_ID_LENGTH}")
    try:
        check_intent(found, field)
    except IntentError as error:
        raise IdentityError(effect, field, error.problem) from None
    if found != found.strip():
        raise IdentityError(effect, field, "begins or ends with white space; mint ids without")
    return found
