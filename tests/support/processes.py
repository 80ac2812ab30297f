"""Child processes: workers that tests kill, and servers that never outlive the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
GUARD = Path(__file__).with_name("guard.py")


# -- workers -------------------------------------------------------------------------------------------------


class Child:
    """A running child process with its output so far, standard error included."""

    def __init__(self, command: Sequence[str | Path], env: Mapping[str, str | None]) -> None:
        merged = {**os.environ, "PYTHONUNBUFFERED": "1", **env}
        self._process = subprocess.Popen(
            [str(part) for part in command],
            cwd=ROOT,
            env={name: value for name, value in merged.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._next = 0
        self._ended = False
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; -9 after SIGKILL."""
        return self._process.poll()

    @property
    def output(self) -> str:
        """Everything printed so far."""
        return "\n".join(self.lines)

    def wait_for(self, marker: str, timeout: float = 30.0) -> str:
        """The next line that contains ``marker``; each line is looked at once.

        Raises:
            AssertionError: the process ended, or ``timeout`` seconds passed, without such a line.
        """
        deadline = time.monotonic() + timeout
        with self._news:
            while True:
                while self._next < len(self.lines):
                    self._next += 1
                    if marker in self.lines[self._next - 1]:
                        return self.lines[self._next - 1]
                remaining = deadline - time.monotonic()
                if self._ended or remaining <= 0:
                    why = "the process ended" if self._ended else f"{timeout} s passed"
                    raise AssertionError(f"{why} without {marker!r}; its output:\n{self.output}")
                self._news.wait(remaining)

    def wait(self, timeout: float = 30.0) -> int:
        """Wait for its end, with all output read, and give the return code.

        Raises:
            AssertionError: it still runs after ``timeout`` seconds.
        """
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s; its output:\n{self.output}") from None
        self._reader.join(2)  # longer only if a descendant still holds the pipe
        return code

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """SIGSTOP, and wait until it has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill it with all its descendants that kept its session, and reap it."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                with self._news:
                    self.lines.append(line.rstrip("\n"))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()


@contextmanager
def child(target: str | Path, *args: str, env: Mapping[str, str | None] | None = None) -> Iterator[Child]:
    """Run a Python module (by name) or script (by path) in a child process; killed and reaped at the end.

    Args:
        target: a module name such as "tests.engines.worker", or a path to a script.
        args: its arguments.
        env: added to this process's environment; None removes a variable.
    """
    program = [str(target)] if isinstance(target, Path) else ["-m", target]
    running = Child([sys.executable, *program, *args], env or {})
    try:
        yield running
    finally:
        running.close()


# -- servers -------------------------------------------------------------------------------------------------


def unprivileged_user() -> str:
    """The user that servers which refuse to run as root run as; "" if this process is not root."""
    return "nobody" if os.geteuid() == 0 else ""


def temporary_folder(prefix: str, user: str = "") -> Path:
    """A new folder that ``user`` owns and everyone can enter, short enough for Unix sockets."""
    folder = Path(tempfile.mkdtemp(prefix=f"corrobo-{prefix}-"))
    folder.chmod(0o755)
    if user:
        account = pwd.getpwnam(user)
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def free_port() -> int:
    """A TCP port of 127.0.0.1 that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


class Server:
    """A server process under a guard, which stops it and removes its folder even if the tests are killed.

    Args:
        command: the program and its arguments.
        folder: its working folder; holds its log, and goes when the server is closed.
        user: the OS user to run as; "" for this one.
        stop_signal: asks it to stop quickly and cleanly.
    """

    def __init__(self, command: Sequence[str | Path], folder: Path, user: str, stop_signal: signal.Signals) -> None:
        self.log = folder / "server.log"
        guard = [sys.executable, "-I", "-S", str(GUARD), str(folder), user, str(int(stop_signal))]
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [*guard, *(str(part) for part in command)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self._guard.stdout is not None
        self.pid = int(self._guard.stdout.readline())

    @property
    def running(self) -> bool:
        """Whether the server process has not ended."""
        return self._guard.poll() is None

    def failed(self, what: str) -> RuntimeError:
        """An error that shows the server's log."""
        return RuntimeError(f"{what}; its log:\n{self.log.read_text(errors='replace')}")

    def stop(self, how: signal.Signals) -> None:
        """End the server with a signal; its folder stays."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, how)
        self._reap()

    def close(self) -> None:
        """End the server, and remove its folder."""
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):
            self._guard.stdin.close()
        self._reap()
        shutil.rmtree(self.log.parent, ignore_errors=True)

    def _reap(self) -> None:
        self._guard.wait(30)
        for stream in (self._guard.stdin, self._guard.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
