"""The reference says what the code says."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path

import pytest

import corrobo_core
import corrobo_dbos
import corrobo_temporal
from corrobo_core import CorroboError, Disposition, Evidence, Outcome, Reason, errors
from corrobo_core.decide import GRANTED, TABLE, Row
from corrobo_core.gates import errors as gate_errors
from corrobo_core.ledgers._shared import migrations
from corrobo_core.ledgers.document import to_document
from corrobo_core.records import (
    AttemptRecord,
    Episode,
    Failure,
    History,
    ObservationRecord,
    Operation,
    OperationKey,
    RefusalCode,
    evolve,
)
from corrobo_temporal import TemporalEffectError
from tests.docs.session import ROOT
from tests.docs.tables import decision_table, reasons

REFERENCE = ROOT / "docs" / "reference"
PACKAGES = (corrobo_core, corrobo_temporal, corrobo_dbos)


def page(name: str) -> str:
    return (REFERENCE / name).read_text()


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every table row whose first cell is code."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0].startswith("`"):
            yield cells


# -- the rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("section", "table"), [(5, TABLE), (8, GRANTED)], ids=["section 5", "section 8"])
def test_the_decision_tables_are_the_code_s(section: int, table: tuple[Row, ...]) -> None:
    _, _, text = page("semantics.md").partition(f"\n## {section}.")
    expected = decision_table(table)
    assert expected in text.partition("\n## ")[0], f"docs/reference/semantics.md should hold:\n{expected}"


def rules() -> list[str]:
    return re.findall(r'^- <a id="(\w+)"></a>\*\*(?:\1)\*\* ', page("semantics.md"), re.MULTILINE)


def test_every_rule_stands_once_and_in_order() -> None:
    found = rules()
    assert len(found) == len(set(found))
    for letter in "LTODCIRGA":
        numbers = [int(rule[1:]) for rule in found if rule[0] == letter and rule[1:].isdigit()]
        assert numbers == list(range(1, len(numbers) + 1)), letter
    assert len(found) > 70


def sources() -> list[Path]:
    folders = ("corrobo_core", "integrations", "docs", "examples")
    return [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".sql", ".md")
    ]


def test_every_rule_that_is_cited_exists() -> None:
    known = set(rules())
    cited = re.compile(r"(?<![\w`#-])([LTODCIRGA](?:[1-9]|1\d)a?)(?![\w-])")
    for path in sources():
        for line in path.read_text().splitlines():
            if "Source:" in line or re.search(r"\([LTODCIRGA]\d+a?(?:, |\))", line):
                unknown = set(cited.findall(line)) - known
                assert not unknown, f"{path.relative_to(ROOT)}: {line.strip()}"


# Sentences about what is not there yet, and how to tell that it is.
NOT_YET: dict[str, Callable[[], bool]] = {
    "There are no gates on Temporal": lambda: hasattr(corrobo_temporal, "CallbackGates"),
    "none on DBOS yet": lambda: hasattr(corrobo_dbos, "DbosGates"),
    "Effects do not open gates by themselves yet": lambda: (
        "gates" in signature(corrobo_temporal.WorkflowEffects).parameters
    ),
}


@pytest.mark.parametrize("sentence", NOT_YET)
def test_what_the_rules_say_is_not_shipped_is_not(sentence: str) -> None:
    said = sentence in re.sub(r"\n> ", " ", page("semantics.md"))
    assert said is not NOT_YET[sentence](), f"docs/reference/semantics.md: {sentence!r} is no longer right"


# -- reason codes --------------------------------------------------------------------------------------------


def test_every_reason_code_is_explained() -> None:
    described = [cells[0].strip("`") for cells in rows(page("reason-codes.md"))]
    assert sorted(described) == sorted(reason.value for reason in Reason)


def test_reason_codes_from_evidence_name_the_evidence_and_disposition_they_come_from() -> None:
    expected: dict[str, tuple[set[Evidence], set[Disposition | None]]] = {}
    for row in (*TABLE, *GRANTED):
        for reason in reasons(row):
            evidence, dispositions = expected.setdefault(reason.value, (set(), set()))
            evidence.add(row.evidence)
            dispositions.add(row.disposition)
    from_evidence, _, _ = page("reason-codes.md").partition("## Not from evidence")
    found = {cells[0].strip("`"): cells for cells in rows(from_evidence)}
    assert found.keys() == expected.keys()
    for code, (evidence, dispositions) in expected.items():
        assert set(re.findall(r"`(\w+)`", found[code][1])) == {kind.value for kind in evidence}, code
        assert set(re.findall(r"`(\w+)`", found[code][2])) == {kind.value for kind in dispositions if kind}, code


# -- errors --------------------------------------------------------------------------------------------------


def test_every_error_is_described_with_whether_trying_again_helps() -> None:
    text, _, on_dbos = page("errors.md").partition("## On DBOS")
    text = text.partition("## On Temporal")[0]
    every = [cells for part in (text, on_dbos) for cells in rows(part)]
    described = {cells[0].strip("`"): cells[1] for cells in every if not cells[0].strip("`").isupper()}
    classes = [getattr(errors, name) for name in errors.__all__]
    classes += [getattr(gate_errors, name) for name in gate_errors.__all__]
    classes += [thing for thing in vars(corrobo_dbos).values() if is_error(thing)]
    real = {kind.__name__: "yes" if kind.retryable else "no" for kind in classes if kind is not CorroboError}
    assert described == real


def test_every_refusal_of_a_decision_is_described() -> None:
    _, _, text = page("errors.md").partition("## Raised by review desks")
    codes = [cells[0].strip("`") for cells in rows(text.partition("## Raised by gates")[0])][1:]
    assert sorted(codes) == sorted(code.value for code in RefusalCode)


def is_error(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, CorroboError)


def test_every_failure_on_temporal_is_described_with_its_type() -> None:
    _, _, text = page("errors.md").partition("## On Temporal")
    described = {cells[0].strip("`"): cells[1].strip("`") for cells in rows(text.partition("## On DBOS")[0])}
    real = {kind.__name__: kind.code for kind in TemporalEffectError.__subclasses__()}
    assert described == real


# -- the API -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_public_name_is_in_the_api_reference(package: object) -> None:
    name = package.__name__  # type: ignore[attr-defined]
    documented = re.findall(rf"^::: {name}\.(\w+)$", page("api.md"), re.MULTILINE)
    public: list[str] = package.__all__  # type: ignore[attr-defined]
    shared = {entry for entry in public if is_error(getattr(package, entry))}  # these are in errors.md
    assert sorted(documented) == sorted(set(public) - shared)


def test_nothing_else_is_in_the_api_reference() -> None:
    for target in re.findall(r"^::: ([\w.]+)$", page("api.md"), re.MULTILINE):
        module, _, name = target.rpartition(".")
        assert hasattr(importlib.import_module(module), name), target


# -- what is stored ------------------------------------------------------------------------------------------


def described(heading: str) -> dict[str, str]:
    """The first and second cells of the table under one heading."""
    _, found, text = page("storage.md").partition(f"\n{heading}\n")
    assert found, heading
    return {cells[0].strip("`"): cells[1] for cells in rows(text.partition("\n#")[0])}


@pytest.mark.parametrize("dialect", ["postgres", "sqlite"])
def test_every_column_is_described(dialect: str) -> None:
    created: dict[str, set[str]] = {}
    for step in migrations(dialect):
        for name, body in re.findall(
            r"create table (?:\{schema\}\.|corrobo_)(\w+) \(\n(.*?)\n\)", step.sql, re.DOTALL
        ):
            columns = re.findall(r"^  (?!primary |unique |check |foreign )(\w+) ", body, re.MULTILINE)
            created.setdefault(name, set()).update(columns)
        for name, column in re.findall(r"alter table (?:\{schema\}\.|corrobo_)(\w+) add column (\w+) ", step.sql):
            created[name].add(column)
    assert len(created) >= 3
    for name, real in created.items():
        shown = described(f"### {name}")
        assert {c for c, what in shown.items() if dialect == "postgres" or "PostgreSQL only" not in what} == real


def whole_operation() -> Operation:
    """An operation with every field set."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    seen = ObservationRecord(now, 1, "reads", True, Evidence.UNKNOWN, "CODE", "why")
    episode = Episode("ep1", 1, Disposition.REVIEW, now, "why", "authorize")
    attempt = AttemptRecord(
        1, "n.1", timedelta(1), timedelta(1), timedelta(1), True, now, now, Outcome.REJECTED, True, now
    )
    attempt = evolve(attempt, failure=Failure("E", "m"), response=1, abandoned=now, approval={"token": "ep1"})
    return Operation(
        OperationKey("default", "id", "type"),
        "{}",
        "v1:sha256:",
        attempts=(attempt,),
        disposition=Disposition.RETRY,
        explanation="why",
        retry_at=now,
        evidence=Evidence.UNKNOWN,
        effect=1,
        history=History().plus(seen),
        looks=1,
        looking_since=now,
        authorized="review",
        episode=episode,
        episodes=1,
        review=episode,
    )


def test_every_field_of_the_document_is_described() -> None:
    document = json.loads(to_document(whole_operation()))
    assert len(document) == len(fields(Operation)) - 6 + 1, "set every field of the operation"
    assert described("## The document").keys() == document.keys()
    assert described("### Fields of an attempt").keys() == document["attempts"][0].keys()
    assert len(document["attempts"][0]) == len(fields(AttemptRecord)), "set every field of the attempt"
    assert described("### Fields of an observation").keys() == document["history"]["last"][0].keys()
