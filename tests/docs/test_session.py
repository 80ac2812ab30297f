"""The reader of the pages notices when a page is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.session import Session

GOOD = """
```python title="lib.py"
def word() -> str:
    return "yes"
```

```python title="main.py"
import os
import signal
import sys

from lib import word

print(word())
if sys.argv[1:] == ["die"]:
    os.kill(os.getpid(), signal.SIGKILL)
```

```console
$ python main.py
yes
$ python main.py die
yes
Killed
```

```python
from lib import word

print(word(), "and no")
```

```text
yes ... no
```

```python
import asyncio

print(await asyncio.sleep(0, "later"))
```

```text
later
```
"""


def follow(text: str, folder: Path) -> int:
    page = folder / "page.md"
    page.write_text(text)
    work = folder / "work"
    work.mkdir()
    return Session(page, work).follow()


def test_a_page_that_tells_the_truth_passes(tmp_path: Path) -> None:
    assert follow(GOOD, tmp_path) == 7


@pytest.mark.parametrize(
    ("told", "instead"),
    [
        ("\nyes\n$ python", "\nno\n$ python"),
        ("yes\nKilled", "yes"),
        ("yes ... no", "yes ... maybe"),
        ("```text\nyes ... no\n```", ""),
        ("```text\nlater\n```", ""),
        ('return "yes"', "return nonsense"),
        ("from lib import word", 'word = lambda: "yes"'),
        ("$ python main.py\nyes", "$ pip install something-else"),
        ("```text\nlater", "```yaml\nlater"),
        ("asyncio.sleep(0,", "asyncio.sleepy(0,"),
    ],
    ids=[
        "another line printed",
        "not killed",
        "other output",
        "output not shown",
        "output at the end not shown",
        "a file that raises",
        "a file that nothing runs",
        "another package installed",
        "a language that nobody checks",
        "a name that does not exist",
    ],
)
def test_a_page_that_does_not_fails(told: str, instead: str, tmp_path: Path) -> None:
    assert told in GOOD
    with pytest.raises((AssertionError, AttributeError, NameError)):
        follow(GOOD.replace(told, instead), tmp_path)


@pytest.mark.parametrize("extra", ["postgres", "temporal,dbos"])
def test_extras_that_exist_may_be_installed(extra: str, tmp_path: Path) -> None:
    assert follow(f"```console\n$ python -m pip install 'corrobo-core[{extra}]'\n```\n", tmp_path) == 1


def test_an_extra_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such extra"):
        follow("```console\n$ python -m pip install 'corrobo-core[redis]'\n```\n", tmp_path)


def test_a_target_that_does_not_exist_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such target"):
        follow("```console\n$ make money\n```\n", tmp_path)
