"""Headless Chromium over the DevTools protocol, spoken through a pipe: no driver, no port, nothing but the standard library."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """The path of a Chromium, or of what ``SHARPEN_BROWSER`` names; None if there is none."""
    named = os.environ.get("SHARPEN_BROWSER")
    return next((path for name in ([named] if named else NAMES) if (path := shutil.which(name))), None)


class Browser:
    """A running browser; use it in a ``with``.

    Args:
        path: The executable.
        seconds: How long to wait for any one answer.
    """

    def __init__(self, path: str, seconds: float = 60) -> None:
        self._profile = tempfile.mkdtemp(prefix="browser-")
        self._seconds = seconds
        self._ids = itertools.count(1)
        self._buffer = b""
        self._events: list[dict[str, Any]] = []
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--remote-debugging-pipe", "--no-first-run", "--disable-extensions", "--disable-background-networking",
                   "--disable-component-update", "--force-color-profile=srgb", f"--user-data-dir={self._profile}"]  # fmt: skip
        # The browser reads commands from descriptor 3 and answers on 4; a shell puts them there, in every version of Python.
        script = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, path, *options, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Gives a command and waits for its answer; events on the way are kept."""
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self._seconds
        while True:
            answer = self._next(end)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._events.append(answer)

    def events(self, session: str) -> list[dict[str, Any]]:
        """All events of a tab so far."""
        return [event for event in self._events if event.get("sessionId") == session]

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select([self._read], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))

    @contextlib.contextmanager
    def open(
        self, page: Path, width: int = 1280, height: int = 900, *, dark: bool = False, fragment: str = ""
    ) -> Iterator[Tab]:
        """A page in a tab of its own, of the given size; a fragment such as ``#main`` is part of its address."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.send(f"{domain}.enable")
        tab.resize(width, height)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        tab.send("Emulation.setEmulatedMedia", features=features)
        tab.load(page.resolve().as_uri() + fragment)
        try:
            yield tab
        finally:
            self.send("Target.closeTarget", targetId=target)


class Tab:
    """One page: what it holds, what it says, and what can be done to it."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.send(method, self._session, **parameters)

    def load(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait(self, condition: str, seconds: float = 30) -> None:
        """Waits until an expression is true in the page, and what it shows is painted."""
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"not true after {seconds} s: {condition}")
            time.sleep(0.02)
        self.settle()

    def settle(self) -> None:
        """Waits until what was asked for has been painted."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def resize(self, width: int, height: int) -> None:
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    @property
    def complaints(self) -> list[str]:
        """Everything the page wrote to the console that is more than a remark, and every error that nobody caught."""
        found = []
        for event in self._browser.events(self._session):
            match event["method"], event["params"]:
                case "Runtime.exceptionThrown", about:
                    found.append(str(about["exceptionDetails"]))
                case "Runtime.consoleAPICalled", {"type": "error" | "warning" | "assert", "args": args}:
                    found.append(str(args))
                case "Log.entryAdded", {"entry": {"level": "error" | "warning"} as entry}:
                    found.append(str(entry["text"]))
        return found

    @property
    def requests(self) -> list[str]:
        """The address of everything the page asked for, the page itself included; data inside it is no request."""
        events = self._browser.events(self._session)
        found = [
            event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in found if not url.startswith("data:")]

    def centre(self, selector: str) -> tuple[float, float]:
        """The middle of an element, once it has been scrolled into view."""
        script = f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center"}});
            const box = element.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }})()"""
        x, y = self.run(script)
        self.settle()
        return x, y

    def hover(self, x: float, y: float) -> None:
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, selector: str) -> None:
        x, y = self.centre(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def type(self, selector: str, text: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)
        self.settle()

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A PNG of what is seen, or of the whole page however long."""
        options: dict[str, Any] = {}
        if whole:
            width, height = self.run("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
            options = {
                "captureBeyondViewport": True,
                "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
            }
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png", **options)["data"]))

    def pdf(self, path: Path) -> None:
        """The page as it would be printed."""
        answer = self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(answer["data"]))
