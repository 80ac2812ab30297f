"""From a call's arguments to a recorded intent, and back: bind, validate, fill defaults, check, canonicalise.

Source: semantics I1 to I4, L8.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cached_property
from typing import Any, NotRequired, get_type_hints

from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError
from typing_extensions import TypedDict

from corrobo_core.canonical import MAX_INTENT_BYTES, canonical_json, check_intent, fingerprint, is_plain, plain_json
from corrobo_core.errors import ContractError, IdentityError, IntentError
from corrobo_core.frozen import frozen
from corrobo_core.kinds import is_of_another_class
from corrobo_core.records import JSON

__all__ = ["Bound", "Parameters", "adapter_for", "check_identity", "operation_id_from"]

MAX_ID_LENGTH = 512
_UNCHANGEABLE = frozenset({str, int, bool, float, type(None)})


@frozen
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

    Raises:
        ContractError: ``volatile`` names a field that the intent does not have, or ``limit`` is no size.
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
        self.effect, self.limit, self.volatile = effect, limit, _checked_volatile(effect, volatile)
        self.signature = inspect.Signature(parameters)
        self.names = tuple(parameter.name for parameter in parameters)
        self._defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self._keyword_only = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        self._fn, self._model = fn, model
        limit_: object = limit
        if not isinstance(limit_, int) or isinstance(limit_, bool) or limit_ < 1:
            raise ContractError(effect, "max_intent_bytes", "must be a whole number, 1 or more")
        known = self.names if model is None else _stored_names(model)
        unknown = sorted(self.volatile - set(known)) if known is not None else []
        if unknown:
            raise ContractError(effect, "volatile", f"the intent has no field {unknown[0]!r}")

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        # Made at the first call: annotations may name classes that the module defines further down.
        if self._model is not None:
            return adapter_for(self.effect, "intent", self._model)
        hints = type_hints(self.effect, self._fn)
        for name in self.names:  # one by one, so that the error names the parameter
            adapter_for(self.effect, f"parameter {name}", hints.get(name, Any))
        fields = {name: hints.get(name, Any) for name in self.names}
        for name in self._defaults:  # one recorded by an earlier release may lack it
            fields[name] = NotRequired[fields[name]]
        return adapter_for(self.effect, "parameters", TypedDict("Intent", fields))  # type: ignore[operator]

    @cached_property
    def _kinds(self) -> dict[str, Any] | None:
        """The parameters' types, if they are all of those that pydantic leaves alone."""
        hints = {} if self._model is not None else type_hints(self.effect, self._fn)
        kinds = {name: hints.get(name) for name in self.names}
        return kinds if kinds and all(kind in (str, int, bool) for kind in kinds.values()) else None

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
        """The intent of one call.

        Raises:
            IntentError: arguments are missing, unknown, of the wrong type, or not storable exactly. Nothing
                has been written or sent. Not retryable.
        """
        given = self._given(args, kwargs)
        if (text := self._plainly(given)) is not None:
            return Bound(given, text, self._fingerprint(given, text))
        value = given["intent"] if self._model is not None else given
        check_intent(value)  # before validation, which would turn bytes into text, or loop
        try:
            valid = self._adapter.validate_python(value)
        except ValidationError as error:
            raise IntentError(_path(error), _problem(error)) from None
        form = self._json_form(valid)
        text = canonical_json(form, limit=self.limit)
        values = self.load(text)
        again = values["intent"] if self._model is not None else values
        if not (again == valid if is_plain(valid) else self._dump_json(again) == form and _is_same(valid, again)):
            raise IntentError(
                "intent",
                "does not come back from storage as it was; look for excluded fields, for subclasses of what is"
                " annotated, and for unions of models that nothing tells apart",
            )
        return Bound(values, text, self._fingerprint(form, text))

    def _plainly(self, given: Mapping[str, Any]) -> str | None:
        """The text of an intent that is stored as it is, and comes back as it was, or None: try it out."""
        kinds = self._kinds
        if kinds is None or not all(type(given[name]) is kind for name, kind in kinds.items()):
            return None
        text = plain_json(given)
        return text if text is not None and len(text) <= self.limit else None

    def load(self, intent: str) -> dict[str, Any]:
        """The hooks' arguments from a recorded intent.

        Raises:
            IntentError: it does not fit the effect's types any more. Not retryable.
        """
        try:
            value: Any = self._adapter.validate_json(intent)
        except ValidationError as error:
            raise IntentError(_path(error), f"does not come back from storage: {_problem(error)}") from None
        return {"intent": value} if self._model is not None else {**self._defaults, **value}

    def anew(self, bound: Bound) -> Mapping[str, Any]:
        """A call's values for one more hook: what one hook does to a list or a model, no other sees (I2)."""
        unchangeable = all(type(value) in _UNCHANGEABLE for value in bound.values.values())
        return bound.values if unchangeable else self.load(bound.intent)

    def recorded(self, intent: str, bound: str) -> dict[str, Any]:
        """`load`, for an intent as the ledger has it, which was recorded with the fingerprint ``bound``.

        Raises:
            IntentError: it is not what was fingerprinted, or does not fit any more. Not retryable.

        Source: semantics I2, I3.
        """
        if self._fingerprint(json.loads(intent), intent) != bound:
            raise IntentError("intent", "is not the one that was recorded: somebody has changed the ledger's row")
        return self.load(intent)

    def as_arguments(self, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values as positional and keyword arguments, as the function declares them."""
        by_keyword = {name: values[name] for name in self._keyword_only}
        return tuple(values[name] for name in self.names if name not in by_keyword), by_keyword

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if not kwargs and not self._keyword_only and len(args) == len(self.names):
            return dict(zip(self.names, args, strict=True))
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise IntentError("arguments", str(error)) from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _json_form(self, valid: object) -> JSON:
        try:
            if not is_plain(valid):  # models and the like: what they hold
                check_intent(self._adapter.dump_python(valid, warnings="error"))
            return self._dump_json(valid)
        except IntentError:
            raise
        except (PydanticSerializationError, ValueError) as error:
            raise IntentError("intent", f"cannot be stored ({type(error).__name__})") from None

    def _dump_json(self, value: object) -> JSON:
        form: JSON = self._adapter.dump_python(value, mode="json", by_alias=True, round_trip=True, warnings="error")
        return form

    def _fingerprint(self, form: JSON, text: str) -> str:
        if not self.volatile:
            return fingerprint(text)
        if not isinstance(form, dict):
            raise ContractError(self.effect, "volatile", "the intent has no fields to leave out")
        bound = {name: value for name, value in form.items() if name not in self.volatile}
        return fingerprint(canonical_json(bound, limit=self.limit))


def _is_same(valid: object, again: object) -> bool:
    """Whether a validated value came back whole: fields that are not stored would have their defaults again."""
    if isinstance(valid, Mapping) and isinstance(again, Mapping):
        return all(_is_same(item, again.get(key, item)) for key, item in valid.items())
    if is_of_another_class(valid, again):  # a subclass without its own fields, or the wrong one of a union
        return False
    if isinstance(valid, (list, tuple)) and isinstance(again, (list, tuple)):
        return len(valid) == len(again) and all(map(_is_same, valid, again))
    if type(valid) is not type(again):
        return True  # an annotation that says nothing: what was a tuple is a list now
    if isinstance(valid, BaseModel) or is_dataclass(valid):
        return _is_same(vars(valid), vars(again)) if hasattr(valid, "__dict__") else valid == again
    return valid == again or type(valid).__eq__ is object.__eq__


def _checked_volatile(effect: str, volatile: object) -> frozenset[str]:
    if isinstance(volatile, (tuple, list, set, frozenset)) and all(isinstance(name, str) for name in volatile):
        return frozenset(volatile)
    raise ContractError(effect, "volatile", "must be a tuple of names")


def _stored_names(model: object) -> tuple[str, ...] | None:
    """The names under which a pydantic model's fields are stored; None for any other type."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return None
    return tuple(info.serialization_alias or info.alias or name for name, info in model.model_fields.items())


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


def _path(error: ValidationError) -> str:
    place = error.errors(include_input=False, include_url=False, include_context=False)[0]["loc"]
    return "intent" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)


# -- identity (I1) -------------------------------------------------------------------------------------------


def check_identity(effect: str, identity: Callable[..., str], names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Which of the effect's parameters ``identity`` takes by keyword; None means all of them.

    Raises:
        ContractError: it needs one that the effect does not have.
    """
    if not callable(identity):
        raise ContractError(effect, "identity", "must be a function of the effect's parameters")
    try:
        signature = inspect.signature(identity)
    except ValueError:  # some built-in types and functions have none
        raise ContractError(effect, "identity", "has no signature to read; wrap it in a lambda") from None
    takes_all = False
    wanted: list[str] = []
    for parameter in signature.parameters.values():
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
