"""Servers that go wrong at the level of sockets, and remember every byte that reached them."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Behaviour = Callable[[socket.socket, "Listener"], None]


class Listener:
    """What arrived at one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.received = b""
        self.ended = threading.Event()  # the test is over: silent behaviours may return

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/refunds"

    def read_request(self, connection: socket.socket) -> None:
        """Read one whole request, as far as its Content-Length says."""
        start = len(self.received)
        while b"\r\n\r\n" not in self.received[start:]:
            self._read(connection)
        head, _, body = self.received[start:].partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        missing = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
        while missing > 0:
            missing -= self._read(connection)

    def _read(self, connection: socket.socket) -> int:
        data = connection.recv(65536)
        if not data:
            raise ConnectionResetError("the client hung up")
        self.received += data
        return len(data)


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[Listener]:
    """A server on a free port that treats each connection as told, and then closes it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(server.getsockname()[1])
        threads: list[threading.Thread] = []

        def treat(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                behaviour(connection, listener)

        def accept() -> None:
            with suppress(OSError):  # the server was shut down
                while True:
                    threads.append(threading.Thread(target=treat, args=(server.accept()[0],), daemon=True))
                    threads[-1].start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield listener
        finally:
            listener.ended.set()
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            accepting.join(5)
            for thread in threads:
                thread.join(5)


@contextmanager
def serving_once(behaviour: Behaviour) -> Iterator[Listener]:
    """A server that is gone once it has accepted one connection: the next one is refused."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = Listener(server.getsockname()[1])

        def serve() -> None:
            connection, _ = server.accept()
            server.close()
            with connection, suppress(OSError):
                behaviour(connection, listener)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield listener
        serving.join(5)


@contextmanager
def refusing() -> Iterator[Listener]:
    """A port that refuses connections, and stays taken meanwhile: bound, and nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield Listener(bound.getsockname()[1])


@contextmanager
def never_accepting() -> Iterator[Listener]:
    """A port whose queue is full, so that connecting takes until its timeout."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        waiting = []
        try:
            while True:  # Linux queues one more than it is told
                waiting.append(socket.socket())
                waiting[-1].settimeout(0.1)
                try:
                    waiting[-1].connect(("127.0.0.1", port))
                except TimeoutError:
                    break
            yield Listener(port)
        finally:
            for connection in waiting:
                connection.close()


# -- behaviours ----------------------------------------------------------------------------------------------


def answering(status: int, *headers: str, body: bytes = b"{}") -> Behaviour:
    """Read the request, then answer."""

    def behave(connection: socket.socket, listener: Listener) -> None:
        listener.read_request(connection)
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Connection: close", *headers]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return behave


def first(behaviour: Behaviour, *, then: Behaviour) -> Behaviour:
    """Treat the first connection differently."""
    behaviours = iter([behaviour])

    def behave(connection: socket.socket, listener: Listener) -> None:
        next(behaviours, then)(connection, listener)

    return behave


def saying(text: bytes, *, then_silent: bool = False) -> Behaviour:
    """Read the request, send these bytes, and close; or keep the connection open."""

    def behave(connection: socket.socket, listener: Listener) -> None:
        listener.read_request(connection)
        connection.sendall(text)
        if then_silent:
            listener.ended.wait(10)

    return behave


def reset(connection: socket.socket, listener: Listener) -> None:
    """Read the request, then send a TCP reset."""
    listener.read_request(connection)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_unread(connection: socket.socket, listener: Listener) -> None:
    """Send a TCP reset as soon as something arrives."""
    listener.received += connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_nothing(_: socket.socket, listener: Listener) -> None:
    """Accept, and never read."""
    listener.ended.wait(10)


def greet(connection: socket.socket, listener: Listener) -> None:
    """Answer a TLS greeting with something else."""
    listener.received += connection.recv(65536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def swallow(connection: socket.socket, listener: Listener) -> None:
    """Read a TLS greeting, and say nothing."""
    while data := connection.recv(65536):
        listener.received += data


def hang_up_on_greeting(connection: socket.socket, listener: Listener) -> None:
    """Read a TLS greeting, and close."""
    listener.received += connection.recv(65536)
