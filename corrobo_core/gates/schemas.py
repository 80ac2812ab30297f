"""The response schema of a gate: JSON Schema draft 2020-12, checked when the gate is created, then for each answer.

Source: semantics G6; JSON Schema 2020-12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry, Resource
from referencing.exceptions import CannotDetermineSpecification, Unresolvable
from referencing.jsonschema import DRAFT202012

from corrobo_core.gates.formats import CHECKER, FORMATS
from corrobo_core.gates.jsontext import canonical
from corrobo_core.gates.patterns import translate

__all__ = ["agrees", "problem_of", "schema_problem"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_HERE = "urn:corrobo:response-schema"
_ONE = (
    "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_LONGEST = 200


class _Refused(Exception):
    """The schema cannot be used: where, and why."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem


def schema_problem(text: str) -> tuple[str, str] | None:
    """Why a schema cannot be used, as path and sentence; None if it can.

    Args:
        text: the schema's canonical JSON text.
    """
    return _compiled(text).problem


def problem_of(response: Any, schema: str) -> str | None:
    """Why a response does not meet a schema, without quoting the response; None if it does.

    Args:
        response: a JSON value as read back from canonical text.
        schema: canonical JSON text.
    """
    compiled = _compiled(schema)
    if compiled.problem is not None:
        return "the response schema cannot be checked: " + ": ".join(compiled.problem)
    try:
        worst = best_match(compiled.validator.iter_errors(response))
    except RecursionError:
        return "the response cannot be checked: the schema refers to itself without end"
    return None if worst is None else _sentence(worst)


def _sentence(error: ValidationError) -> str:
    path = "response" + "".join(f"[{json.dumps(part, ensure_ascii=False)}]" for part in error.absolute_path)
    wanted = json.dumps(error.validator_value, ensure_ascii=False)
    if len(wanted) > _LONGEST:
        wanted = wanted[:_LONGEST] + "…"
    return f'{path} does not meet "{error.validator}": {wanted}'


# -- compiling -----------------------------------------------------------------------------------------------


class _Compiled(NamedTuple):
    """A validator, or where and why there is none."""

    validator: Any
    problem: tuple[str, str] | None = None


@lru_cache(maxsize=256)
def _compiled(text: str) -> _Compiled:
    schema = json.loads(text)
    try:
        _check_against_dialect(schema)
        parts = list(_subschemas(schema, "responseSchema"))
        for path, part in parts:
            _check_part(path, part)
        _translate_patterns(parts)
        registry = _check_references(schema, parts)
    except _Refused as refused:
        return _Compiled(None, (refused.path, refused.problem))
    except RecursionError:
        return _Compiled(None, ("responseSchema", "nested too deep"))
    return _Compiled(_Validator(schema, registry=registry, format_checker=CHECKER))


def _check_against_dialect(schema: Any) -> None:
    if not isinstance(schema, dict):
        raise _Refused("responseSchema", "pass an object")
    try:
        _Validator.check_schema(schema, format_checker=CHECKER)
    except SchemaError as error:
        path = "/".join(["responseSchema", *map(str, error.absolute_path)])
        raise _Refused(path, f'no valid JSON Schema: does not meet "{error.validator}" of draft 2020-12') from None


def _subschemas(schema: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(schema, dict):
        return
    yield path, schema
    for keyword in _ONE:
        yield from _subschemas(schema.get(keyword), f"{path}/{keyword}")
    for keyword in _LISTED:
        for number, part in enumerate(schema.get(keyword, ())):
            yield from _subschemas(part, f"{path}/{keyword}/{number}")
    for keyword in _NAMED:
        for name, part in schema.get(keyword, {}).items():
            yield from _subschemas(part, f"{path}/{keyword}/{name}")


def _check_part(path: str, part: Mapping[str, Any]) -> None:
    dialect = part.get("$schema", _DIALECT)
    if str(dialect).removesuffix("#") != _DIALECT:
        raise _Refused(f"{path}/$schema", f"only draft 2020-12 is checked ({_DIALECT})")
    if "format" in part and part["format"] not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        raise _Refused(f"{path}/format", f"unknown format {part['format']!r}; known are {known}")


def _translate_patterns(parts: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Patterns become Python's; that they are ECMA-262's was checked as their format."""
    for _, part in parts:
        if "pattern" in part:
            part["pattern"] = translate(part["pattern"])
        if "patternProperties" in part:
            part["patternProperties"] = {translate(k): v for k, v in part["patternProperties"].items()}


def _check_references(schema: dict[str, Any], parts: Sequence[tuple[str, dict[str, Any]]]) -> Registry[Any]:
    """Every reference leads to a part of this schema. Nothing is ever fetched."""
    try:
        resource: Resource[Any] = DRAFT202012.create_resource(schema)
        registry: Registry[Any] = Registry().with_resource(_HERE, resource).crawl()
        resolver = registry.resolver(resource.id() or _HERE)
        _resolve(resource, resolver, {id(part) for _, part in parts})
    except (Unresolvable, CannotDetermineSpecification, ValueError, LookupError, AttributeError) as error:
        raise _Refused("responseSchema", f"a $ref or $id leads nowhere ({type(error).__name__})") from None
    return registry


def _resolve(resource: Resource[Any], resolver: Any, known: set[int]) -> None:
    contents = resource.contents
    if isinstance(contents, dict):
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in contents:
                target = resolver.lookup(contents[keyword]).contents
                if not isinstance(target, bool) and id(target) not in known:
                    raise _Refused("responseSchema", f"{keyword} {contents[keyword]!r} leads to no part of it")
    for part in resource.subresources():
        _resolve(part, resolver.in_subresource(part), known)


# -- keywords whose library version tells some JSON values apart wrongly -------------------------------------


def _const(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if canonical(instance, "") != canonical(wanted, ""):
        yield ValidationError("const")


def _enum(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if canonical(instance, "") not in {canonical(one, "") for one in wanted}:
        yield ValidationError("enum")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list) and len({canonical(i, "") for i in instance}) < len(instance):
        yield ValidationError("uniqueItems")


def _multiple_of(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """As decimals: 0.3 is a multiple of 0.1."""
    if validator.is_type(instance, "number") and Fraction(repr(instance)) % Fraction(repr(wanted)):
        yield ValidationError("multipleOf")


def _pattern(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Not tried on a text that is too long in any case: on one, some patterns take longer than anybody waits."""
    if not validator.is_type(instance, "string") or len(instance) > schema.get("maxLength", len(instance)):
        return
    if not re.search(wanted, instance):
        yield ValidationError("pattern")


_Validator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "const": _const,
        "enum": _enum,
        "multipleOf": _multiple_of,
        "pattern": _pattern,
        "uniqueItems": _unique_items,
    },
)


# -- replay --------------------------------------------------------------------------------------------------

_TYPES: dict[str, Any] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}


def agrees(response: Any, schema: Any) -> bool:
    """Whether a recorded answer has the required fields, and fields of the declared types.

    A history may come from a system that checks no more than this: what it accepted then stays accepted, and a
    later version of a validator never makes an old history unreadable.
    """
    if not isinstance(response, dict):
        return True
    required, properties = schema.get("required", []), schema.get("properties", {})
    if isinstance(required, list) and any(name not in response for name in required if isinstance(name, str)):
        return False
    if not isinstance(properties, dict):
        return True
    return all(_has_type(value, properties.get(name)) for name, value in response.items())


def _has_type(value: Any, declared: Any) -> bool:
    wanted = declared.get("type") if isinstance(declared, dict) else None
    if wanted is None:
        return True
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(name in _TYPES and _TYPES[name](value) for name in names if isinstance(name, str))
