"""A reader who follows one page from top to bottom, in an empty folder.

Fences, in order of the page:

- ``python title="name.py"`` (any language with a title): the reader saves the file. Every Python file must be run
  by a later command or imported by something that is.
- ``python``: runs in the page's own module, with top-level ``await`` where the page uses it.
- ``console``: lines that begin with ``$`` are run in a shell; the rest is what they print.
- ``sql``: runs in the database that ``CORROBO_DSN`` names, and gives its rows.
- ``text``: what the fence before it prints. ``...`` stands for anything.

Installing, and ``make``, are looked at and not done: ``make test`` runs these tests.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tomllib
import types
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, cast

import psycopg
from sybil import Example, Region
from sybil.document import Document
from sybil.parsers.markdown.lexers import RawFencedCodeBlockLexer

ROOT = Path(__file__).parents[2]
_INFO = re.compile(r'(?P<language>[a-z]*)(?: title="(?P<title>[^"]+)")?[^\n]*$\n', re.MULTILINE)
_ELLIPSIS = "..."


class Session:
    """One page's reader.

    Args:
        page: the page's path.
        folder: an empty folder to work in.
        env: what the page tells the reader to have set, such as ``CORROBO_DSN``.
        given: names that the page takes for granted, such as a ``client``.
    """

    def __init__(
        self,
        page: Path,
        folder: Path,
        env: Mapping[str, str] | None = None,
        given: Mapping[str, object] | None = None,
    ) -> None:
        self.page, self.folder = page, folder
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.env = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", **(env or {})}
        self.module = types.ModuleType(f"page_{re.sub(r'[^a-z]', '_', page.stem)}")
        self.module.__dict__.update(given or {})
        self.printed: str | None = None
        self.not_yet_run: set[str] = set()
        self._loop: asyncio.Runner | None = None

    def follow(self) -> int:
        """Do what the page says, and give the number of its examples."""
        document = Document.parse(str(self.page), self._parse)
        examples = list(document.examples())
        with self._at_work():
            for example in examples:
                example.evaluate()
            self._nothing_unread("the end of the page")
        assert not self.not_yet_run, f"files that nothing on the page runs: {sorted(self.not_yet_run)}"
        return len(examples)

    @contextlib.contextmanager
    def _at_work(self) -> Any:
        """In the folder, with its modules importable and the page's environment."""
        before, known = dict(os.environ), set(sys.modules)
        os.environ.update(self.env)
        sys.path.insert(0, str(self.folder))
        sys.modules[self.module.__name__] = self.module
        try:
            with contextlib.chdir(self.folder), asyncio.Runner() as self._loop:
                yield
        finally:
            sys.path.remove(str(self.folder))
            for name in set(sys.modules) - known:
                file = getattr(sys.modules[name], "__file__", None)
                if sys.modules[name] is self.module or (file and Path(file).is_relative_to(self.folder)):
                    del sys.modules[name]
            os.environ.clear()
            os.environ.update(before)

    # -- fences ----------------------------------------------------------------------------------------------------

    def _parse(self, document: Document) -> list[Region]:
        regions = []
        for region in RawFencedCodeBlockLexer(_INFO)(document):
            region.parsed = dict(region.lexemes)
            region.evaluator = self._evaluate
            regions.append(region)
        return regions

    def _evaluate(self, example: Example) -> str | None:
        language, title = example.parsed["language"], example.parsed["title"]
        source = str(example.parsed["source"])
        if language == "text" and not title:
            self._compare(source, f"line {example.line}")
            return None
        self._nothing_unread(f"line {example.line}")
        if title:
            self._save(title, source)
        elif language == "python":
            self.printed = self._run(source, example.line)
        elif language == "console":
            self._type(source, example.line)
        elif language == "sql":
            self.printed = self._query(source)
        else:
            raise AssertionError(f"line {example.line}: nobody checks a fence of {language!r}")
        return None

    def _save(self, title: str, source: str) -> None:
        target = self.folder / title
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source)
        if target.suffix == ".py":
            compile(source, title, "exec")
            self.not_yet_run.add(title)

    def _run(self, source: str, line: int) -> str:
        self._used(source)
        code = compile("\n" * line + source, str(self.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            result = eval(code, self.module.__dict__)
            if asyncio.iscoroutine(result):
                assert self._loop is not None
                self._loop.run(cast("Coroutine[Any, Any, None]", result))
        return out.getvalue()

    def _type(self, source: str, line: int) -> None:
        """Run the commands of one console fence, and compare what each prints."""
        commands = re.split(r"^\$ ", source, flags=re.MULTILINE)
        assert not commands[0].strip(), f"line {line}: output without a command"
        for block in commands[1:]:
            command, _, expected = block.partition("\n")
            while command.endswith("\\"):
                more, _, expected = expected.partition("\n")
                command += "\n" + more
            self.printed = self.command(command)
            self._compare(expected, f"line {line}, after {command!r}")

    def command(self, command: str) -> str:
        """Run one command line and give what it prints, the shell's word for a killed process included."""
        if installs(command) or makes(command):
            return ""
        self._used(command)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL):
            lines = [line for line in done.stdout.splitlines() if not line.startswith("bash: line ")]
            return "\n".join([*lines, "Killed"]) + "\n"
        assert done.returncode == 0 or "Traceback" not in done.stdout, f"{command}\n{done.stdout}"
        return done.stdout

    def _query(self, source: str) -> str:
        with psycopg.connect(self.env["CORROBO_DSN"], autocommit=True) as connection:
            rows = connection.execute(source.encode()).fetchall()
        return "\n".join(" | ".join(map(str, row)) for row in rows)

    def _used(self, source: str) -> None:
        """Which saved files this runs or imports, and what those import."""
        for title in list(self.not_yet_run):
            if title not in self.not_yet_run:
                continue
            stem = title.removesuffix(".py").replace("/", ".")
            if title in source or re.search(rf"\b(?:import|from|-m) {re.escape(stem)}\b", source):
                self.not_yet_run.discard(title)
                self._used((self.folder / title).read_text())

    # -- what was printed ------------------------------------------------------------------------------------------

    def _compare(self, expected: str, where: str) -> None:
        printed, self.printed = self.printed, None
        assert printed is not None, f"{self.page.name}, {where}: nothing before this prints anything"
        assert matches(expected, printed), (
            f"{self.page.name}, {where}: the page says\n{expected}\nand this was printed\n{printed}"
        )

    def _nothing_unread(self, where: str) -> None:
        printed, self.printed = self.printed, None
        assert not (printed or "").strip(), f"{self.page.name}, before {where}: the page does not show\n{printed}"


def matches(expected: str, printed: str) -> bool:
    """Whether output is as shown, where ``...`` stands for anything and spaces at line ends do not count."""
    pattern = re.escape(_clean(expected)).replace(re.escape(_ELLIPSIS), ".*")
    return re.fullmatch(pattern, _clean(printed), re.DOTALL) is not None


def _clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def makes(command: str) -> bool:
    """Whether a command makes a target of this project, which exists."""
    found = re.match(r"make (\w+)(?:\s|$)", command)
    if found is None:
        return False
    assert re.search(rf"^{found[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"no such target: {command}"
    return True


_INSTALL = re.compile(r"(?:python -m )?pip install '?corrobo-core(?:\[(?P<extras>[a-z,]+)\])?'?")


def installs(command: str) -> bool:
    """Whether a command installs this library, under its own name and with extras that exist."""
    if "pip install" not in command:
        return False
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = _INSTALL.fullmatch(command.partition("#")[0].strip())
    assert found, f"installs something else: {command}"
    assert project["name"] == "corrobo-core"
    extras = set((found["extras"] or "").split(",")) - {""}
    assert extras <= set(project["optional-dependencies"]), f"no such extra: {command}"
    return True
