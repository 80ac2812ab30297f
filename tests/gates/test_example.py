"""The example prints exactly what the gate's authors print."""

from __future__ import annotations

import subprocess
import sys

EXPECTED = """{
  "requestId": "release-approval#1#3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05",
  "digest": "3a32b8f32a48c2b1ddc28ecec2c3035d4619311acf96364200e8c25efe94cd05",
  "sameQuestionId": true,
  "changedQuestionId": true,
  "blockedKind": "claimed",
  "released": true,
  "submitted": true,
  "events": [
    "callback-requested",
    "callback-claimed",
    "callback-released",
    "callback-claimed",
    "callback-submitted"
  ],
  "replayedPending": 0
}
"""


def test_the_example_prints_the_source_documents_json() -> None:
    command = [sys.executable, "-m", "examples.callback_gate"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == EXPECTED
