"""Statements are made of constants: values are parameters, and a schema's name is quoted by `sql.Identifier`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import corrobo_core.ledgers
from corrobo_core import Disposition, EffectRunner, PostgresLedger, UsageError
from corrobo_core.gates import PostOk, StoredGateClient
from corrobo_core.testing.example import FakePayments, RefundContract
from tests.gates.support import REQUEST

SOURCES = sorted(Path(corrobo_core.ledgers.__path__[0]).glob("*.py"))
SENDS = {"execute", "executemany", "executescript", "copy", "SQL"}
# The statements that are made of a number or a word of ours, each looked at by hand.
LOOKED_AT = {
    ("_sqlite_file.py", "f'pragma synchronous = {self.synchronous}'"),  # one of LEVELS
    ("_sqlite_pool.py", "f'pragma busy_timeout = {wait * 1000:.0f}'"),  # a float of ours
}


def made(source: str) -> Iterator[str]:
    """The arguments of whatever sends a statement that put one together: f-strings, %, +, and str.format."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in SENDS
            and node.args
        ):
            sent = node.args[0]
            if any(map(_puts_together, ast.walk(sent))):
                yield ast.unparse(sent)


def _puts_together(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.BinOp(op=ast.Mod()):
            return True
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return not all(isinstance(side, ast.Call) and "sql.SQL" in ast.unparse(side) for side in (left, right))
        case ast.Call(func=ast.Attribute(attr="format", value=value)):
            return not ast.unparse(value).startswith("sql.SQL(")
        case _:
            return False


def formats_other_than_identifiers(source: str) -> Iterator[str]:
    """Constants of f-strings at the top of a module may name only other constants: no call, no attribute."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            for part in ast.walk(node.value):
                if isinstance(part, ast.FormattedValue) and not isinstance(part.value, ast.Name):
                    yield ast.unparse(node)


def test_no_statement_is_put_together_of_values() -> None:
    found = {(path.name, text) for path in SOURCES for text in made(path.read_text())}
    assert found == LOOKED_AT
    assert not [text for path in SOURCES for text in formats_other_than_identifiers(path.read_text())]


@pytest.mark.parametrize(
    "statement",
    [
        'c.execute(f"select {value}")',
        'c.execute("select %s" % value)',
        'c.execute("select " + value)',
        'c.execute("select {}".format(value))',
        'c.execute(sql.SQL(f"select {value}"))',
    ],
)
def test_the_search_finds_each_way_to_do_so(statement: str) -> None:
    assert list(made(statement))


@pytest.mark.parametrize("schema", ['we"ird; drop schema public cascade; --', "ünï {schema} {}", "'quoted' $1 \\"])
def test_a_schema_may_have_any_name(postgres_dsn: str, schema: str) -> None:
    payments = FakePayments()
    with PostgresLedger(postgres_dsn, schema=schema) as ledger:
        ledger.migrate()
        ledger.migrate()
        result = EffectRunner(ledger).run(RefundContract(payments), *payments.intent(1))
        assert result.disposition is Disposition.COMPLETE
        assert isinstance(StoredGateClient(ledger, "run").post(REQUEST), PostOk)
    with psycopg.connect(postgres_dsn) as connection:
        names = {name for (name,) in connection.execute("select nspname from pg_namespace")}
    assert {schema, "public"} <= names


@pytest.mark.parametrize("schema", ["50%", "a%s", "a$$; drop schema public cascade; $$"])
def test_a_name_that_would_mean_something_in_a_statement_is_refused(schema: str) -> None:
    with pytest.raises(UsageError, match="without % and"):
        PostgresLedger("postgresql:///", schema=schema)
