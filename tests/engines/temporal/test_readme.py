"""The package's README does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import corrobo_temporal

README = Path(corrobo_temporal.__file__).with_name("README.md")


def test_the_example_runs(temporal_address: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "orders.py").write_text(example)
    done = subprocess.run(
        [sys.executable, "orders.py"],
        cwd=tmp_path,
        check=False,
        env={"TEMPORAL_ADDRESS": temporal_address},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "refunded 5000\n", done.stderr


def test_every_public_name_is_in_it() -> None:
    text = README.read_text()
    classes = {"TemporalEffectError"}  # the base of those that are
    assert [name for name in corrobo_temporal.__all__ if name not in text and name not in classes] == []
