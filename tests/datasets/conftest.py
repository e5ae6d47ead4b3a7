"""A cache of its own for every test, and a web server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty per-user cache: no test touches the real one, nor a data folder that it does not ask for."""
    monkeypatch.delenv("SHARPEN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "user-cache" / "sharpen"


class Server(ThreadingHTTPServer):
    """Serves ``content`` by path; what is in ``cut`` stops halfway, although the whole length was announced.

    What is ``unannounced`` comes without a length, and what is in ``lengths`` with that one.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        self.unannounced: set[str] = set()
        self.lengths: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.content.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        if self.path not in self.server.unannounced:
            self.send_header("Content-Length", self.server.lengths.get(self.path, str(len(body))))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path in self.server.cut else body)

    def log_message(self, *args: object) -> None:
        """Silent."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A running :class:`Server`."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()
