"""The package's README does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import corrobo_dbos

README = Path(corrobo_dbos.__file__).with_name("README.md")


def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    script = tmp_path / "shop.py"
    script.write_text(example)

    run = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert run.stdout.splitlines()[-1:] == ["refunded 5000"], run.stderr
