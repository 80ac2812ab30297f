"""Child processes are waited for, killed, paused and always reaped."""

import time
from pathlib import Path

import psutil
import pytest

from tests.support.processes import child

WORKER = """\
import os, subprocess, sys, time
print("ready", os.environ.get("COLOUR"), *sys.argv[1:])
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
for n in range(10_000):
    time.sleep(0.01)
    print("tick", n)
"""


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    return script


def test_a_marker_is_waited_for(worker: Path) -> None:
    with child(worker, "one", env={"COLOUR": "blue"}) as running:
        assert running.wait_for("ready") == "ready blue one"
        assert running.wait_for("tick") != running.wait_for("tick")


def test_a_missing_marker_shows_the_output(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text("raise SystemExit('no luck')")
    with child(script) as running:
        with pytest.raises(AssertionError, match=r"ended without 'ready'.*\nno luck"):
            running.wait_for("ready")
        assert running.wait() == 1


def test_killed_means_gone(worker: Path) -> None:
    with child(worker) as running:
        running.wait_for("tick")
        running.kill()
        assert running.returncode == -9
        assert not psutil.pid_exists(running.pid)


def test_paused_means_silent_until_resumed(worker: Path) -> None:
    with child(worker) as running:
        running.wait_for("tick")
        running.pause()
        time.sleep(0.1)
        seen = len(running.lines)
        time.sleep(0.2)
        assert len(running.lines) == seen
        running.resume()
        running.wait_for("tick 50")


def test_descendants_and_paused_children_do_not_stay_behind(worker: Path) -> None:
    with child(worker) as running:
        running.wait_for("tick")
        family = [psutil.Process(running.pid), *psutil.Process(running.pid).children()]
        running.pause()
    assert len(family) == 2
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []
