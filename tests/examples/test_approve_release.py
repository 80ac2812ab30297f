"""The example is a real run: its exit status, and every fact that it prints."""

import json
import subprocess
import sys

from examples.approve_release.__main__ import EXPECTED
from tests.support.processes import ROOT


def test_an_approved_release_happens_once_though_its_worker_was_killed_while_the_question_was_open() -> None:
    command = [sys.executable, "-m", "examples.approve_release", "--json"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == EXPECTED
