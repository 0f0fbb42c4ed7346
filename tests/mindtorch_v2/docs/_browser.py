"""A headless Chromium, driven through its debugging port: pages, scripts, what the console said.

No library is needed for it: the protocol is JSON over a web socket, and a socket for short messages is a few lines.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WAIT = 60.0  # seconds; a busy machine is no reason to fail


class Socket:
    """A web socket (RFC 6455) of a client: text messages there and back."""

    def __init__(self, address: str) -> None:
        found = re.fullmatch(r"ws://([\w.]+):(\d+)(/.*)", address)
        assert found is not None, address
        self.stream = socket.create_connection((found[1], int(found[2])), timeout=WAIT)
        key = base64.b64encode(os.urandom(16)).decode()
        head = [f"GET {found[3]} HTTP/1.1", f"Host: {found[1]}:{found[2]}", "Upgrade: websocket", "Connection: Upgrade"]
        head += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
        self.stream.sendall("\r\n".join(head).encode())
        self.file = self.stream.makefile("rb")
        assert b"101" in self.file.readline()
        while self.file.readline().strip():
            pass

    def send(self, text: str) -> None:
        data, mask = text.encode(), os.urandom(4)
        size = (
            struct.pack(">B", 0x80 | len(data)) if len(data) < 126 else
            struct.pack(">BH", 0x80 | 126, len(data)) if len(data) < 1 << 16 else
            struct.pack(">BQ", 0x80 | 127, len(data))
        )  # fmt: skip
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.stream.sendall(b"\x81" + size + mask + masked)

    def receive(self) -> str:
        """The next message; its fragments are put together, pings are answered by silence (Chromium sends none)."""
        message = b""
        while True:
            first, length = self.file.read(2)
            length &= 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", self.file.read(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", self.file.read(8))
            message += self.file.read(length)
            if first & 0x80:
                return message.decode()

    def close(self) -> None:
        self.file.close()
        self.stream.close()


class Browser:
    """One page of a browser."""

    def __init__(self, folder: Path) -> None:
        assert PROGRAM is not None
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
        self.log = (folder / "chromium.log").open("w")
        port = folder / "profile" / "DevToolsActivePort"
        self.process = subprocess.Popen(
            [PROGRAM, *flags, "--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdout=self.log,
            stderr=self.log,
        )
        until = time.monotonic() + WAIT
        while not (port.exists() and port.read_text().count("\n")):
            assert self.process.poll() is None and time.monotonic() < until, "Chromium does not start"
            time.sleep(0.05)
        number = port.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{number}/json/list", timeout=WAIT) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self.socket = Socket(page["webSocketDebuggerUrl"])
        self.number = 0
        self.errors: list[str] = []
        self.loaded = False
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")

    def _event(self, message: dict[str, Any]) -> None:
        about = message.get("params", {})
        kind = message.get("method")
        if about.get("entry", {}).get("url", "").endswith("/favicon.ico"):
            return  # the browser asks for it on its own account, sooner or later; the site has none
        if kind == "Page.loadEventFired":
            self.loaded = True
        elif kind == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(about["exceptionDetails"]))
        elif (kind == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert")) or (
            kind == "Log.entryAdded" and about["entry"]["level"] == "error"
        ):
            self.errors.append(json.dumps(about))

    def command(self, method: str, **parameters: Any) -> Any:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self._event(message)

    def open(self, address: str) -> None:
        """Load a page; returns when everything on it has been loaded."""
        self.loaded = False
        self.command("Page.navigate", url=address)
        while not self.loaded:
            self._event(json.loads(self.socket.receive()))

    def evaluate(self, script: str) -> Any:
        """The value of an expression on the page."""
        result = self.command("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, script: str) -> Any:
        """The value of an expression, once it is true."""
        until = time.monotonic() + WAIT
        while not (value := self.evaluate(script)):
            assert time.monotonic() < until, f"never true: {script}"
            time.sleep(0.05)
        return value

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=WAIT)
        self.log.close()
