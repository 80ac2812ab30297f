"""Run a server so that it cannot outlive the tests: ``guard.py FOLDER USER SIGNAL COMMAND...``.

The guard starts COMMAND as USER ("" for the same) in FOLDER, prints its process id, and ends with it. When
its own standard input closes (the test process is done with the server, or was killed itself) it sends
SIGNAL, and SIGKILL if that does not help, and removes FOLDER.
"""

import pwd
import shutil
import signal
import subprocess
import sys
import threading
from typing import Any

GRACE_SECONDS = 10


def main(folder: str, user: str, stop_signal: str, *command: str) -> int:
    """Run the command to its end, and give its exit status."""
    identity: dict[str, Any] = {}
    if user:
        identity = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder, **identity)
    print(server.pid, flush=True)
    no_longer_needed = threading.Event()

    def stop_at_end_of_input() -> None:
        sys.stdin.read()
        no_longer_needed.set()
        server.send_signal(int(stop_signal))
        try:
            server.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            server.send_signal(signal.SIGKILL)

    threading.Thread(target=stop_at_end_of_input, daemon=True).start()
    status = server.wait()
    if no_longer_needed.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
