"""Which Python the quick suites run on beside the environment's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.newest import folders, newest

HERE = (3, 11)


def interpreter(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_newest_that_runs_is_taken_wherever_it_is(tmp_path: Path) -> None:
    usual, other = tmp_path / "usual", tmp_path / "other"
    interpreter(usual, "python3.12", "echo 3 12 1")
    wanted = interpreter(other, "python3.13", "echo 3 13 0")
    interpreter(usual, "python3.14", "echo shim: command not found >&2; exit 127")
    interpreter(usual, "python3.15", "exit 0")  # a prerelease says nothing
    interpreter(usual, "python3.16-config", "echo 3 16 0")
    (usual / "python3.17").write_text("not a program")
    assert newest([usual, tmp_path / "missing", other], HERE) == wanted


@pytest.mark.parametrize("version", ["3 11 9", "3 10 1"])
def test_one_that_is_no_newer_is_none(tmp_path: Path, version: str) -> None:
    interpreter(tmp_path, "python3.11", f"echo {version}")
    assert newest([tmp_path], HERE) is None


def test_the_interpreter_of_these_tests_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    link = tmp_path / f"python3.{sys.version_info.minor}"
    link.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert next(folders()) == tmp_path
    assert newest([tmp_path], (3, 10)) == link
    assert newest([tmp_path], sys.version_info[:2]) is None
