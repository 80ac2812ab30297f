"""The newest Python of this machine: `python -m tests.support.newest` prints its path, or nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# Beside PATH: where pyenv, uv, container images and Debian keep interpreters.
ELSEWHERE = (
    (Path.home(), ".pyenv/versions/*/bin"),
    (Path.home(), ".local/share/uv/python/*/bin"),
    (Path("/"), "opt/python*/bin"),
    (Path("/"), "usr/local/bin"),
    (Path("/"), "usr/bin"),
)
NAME = re.compile(r"python3\.\d+")
# A release with the GIL, since that is what the classifiers promise. Any other interpreter prints nothing.
ASK = """
import sys, sysconfig, venv
if sys.version_info.releaselevel == "final" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
    print(*sys.version_info[:3])
"""

Version = tuple[int, ...]


def folders() -> Iterator[Path]:
    """Every folder that may hold interpreters."""
    yield from (Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder)
    for root, pattern in ELSEWHERE:
        yield from root.glob(pattern)


def newest(among: Iterable[Path], newer_than: Version) -> Path | None:
    """The newest released interpreter in those folders, if its minor version is newer than that."""
    found = {path: version for path in _named(among) if (version := _version(path))}
    best = max(found, key=found.__getitem__, default=None)
    return best if best and found[best][:2] > newer_than[:2] else None


def _named(among: Iterable[Path]) -> Iterator[Path]:
    for folder in among:
        if folder.is_dir():
            yield from (path for path in sorted(folder.iterdir()) if NAME.fullmatch(path.name))


def _version(python: Path) -> Version | None:
    """What it says that it is; None for one that does not run, such as a shim of pyenv that stands for none."""
    try:
        said = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=False, timeout=30)
    except OSError:
        return None
    return tuple(map(int, said.stdout.split())) or None if said.returncode == 0 else None


if __name__ == "__main__":
    if python := newest(folders(), sys.version_info[:2]):
        print(python)
