"""Debian's chromium, driven over a pipe by its DevTools protocol: one process for all pages, no port, nothing to install."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from types import TracebackType
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe", "--hide-scrollbars",
    "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
PATIENCE = 60.0  # seconds for one answer
LOCAL = ("file:", "data:", "about:", "blob:")

# What a person would see as a fault of the layout. A text is a text node with its lines, or a text of a drawing.
FAULTS = r"""
(() => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  const faults = [], shown = [], width = document.documentElement.clientWidth;
  const name = (node) => node.textContent.trim().replace(/\s+/g, ' ').slice(0, 60);
  const hidden = (element) => element.closest('.asr-hidden, title, style, script') !== null;
  if (document.documentElement.scrollWidth > width + 1)
    faults.push(`the page is ${document.documentElement.scrollWidth} px wide on a screen of ${width}`);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || hidden(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const inDrawing = parent.closest('svg');
    const rects = inDrawing ? [parent.closest('text').getBoundingClientRect()] : [...range.getClientRects()];
    for (const rect of rects) {
      if (rect.width < 1 || rect.height < 1) continue;
      shown.push({rect, parent, text: name(node)});
      if (rect.left < -1 || rect.right > width + 1) faults.push(`outside the screen: ${name(node)}`);
      for (let box = parent; box; box = box.parentElement) {
        const style = getComputedStyle(box), edge = box.getBoundingClientRect();
        const clips = style.overflowX !== 'visible' || box === inDrawing;
        if (clips && (rect.left < edge.left - 2 || rect.right > edge.right + 2)) { faults.push(`clipped: ${name(node)}`); break; }
        if (box === inDrawing && (rect.top < edge.top - 2 || rect.bottom > edge.bottom + 2))
          faults.push(`clipped: ${name(node)}`);
      }
    }
  }
  for (const box of document.querySelectorAll('.asr *'))
    if (!hidden(box) && getComputedStyle(box).overflowX !== 'visible' && box.scrollWidth > box.clientWidth + 1)
      faults.push(`${box.scrollWidth} px in a box of ${box.clientWidth}: ${name(box)}`);
  shown.sort((one, other) => one.rect.top - other.rect.top);
  for (let at = 0; at < shown.length; at++)
    for (let next = at + 1; next < shown.length && shown[next].rect.top < shown[at].rect.bottom - 3; next++) {
      const one = shown[at], other = shown[next];
      if (one.parent === other.parent || one.parent.contains(other.parent) || other.parent.contains(one.parent)) continue;
      const across = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
      const down = Math.min(one.rect.bottom, other.rect.bottom) - other.rect.top;
      if (across > 2 && down > 3) faults.push(`overlap: ${one.text} | ${other.text}`);
    }
  const light = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number).slice(0, 3).map((part) => part / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  for (const {parent, text} of shown) {
    const ink = getComputedStyle(parent)[parent.closest('svg') ? 'fill' : 'color'];
    let ground = 'rgb(255, 255, 255)';
    for (let box = parent; box; box = box.parentElement) {
      const colour = getComputedStyle(box).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)' && colour !== 'transparent') { ground = colour; break; }
    }
    const [dark, bright] = [light(ink), light(ground)].sort((one, other) => one - other);
    if ((bright + 0.05) / (dark + 0.05) < 3) faults.push(`hard to read, ${ink} on ${ground}: ${text}`);
  }
  return [...new Set(faults)];
})()
"""


@dataclass
class Looked:
    """What a look at a page found: faults of its layout, messages of its console, requests that leave the machine."""

    faults: list[str]
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        return [*self.faults, *(f"console: {text}" for text in self.console), *(f"request: {url}" for url in self.requests)]


class Browser:
    """One chromium with one tab. Use it in a `with` block."""

    def __init__(self, program: str, profile: Path) -> None:
        (to_read, self._write), (self._read, to_write) = os.pipe(), os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_read, to_write)]  # not one of those they become
        nowhere = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
        protocol = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in zip((3, 4), high, strict=True)]
        arguments = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        self._process = os.posix_spawn(program, arguments, os.environ, file_actions=[*nowhere, *protocol])
        for end in (to_read, to_write, *high):
            os.close(end)
        self._buffer, self._number, self._events = b"", 0, list[dict[str, Any]]()
        self._session: str | None = None

    def __enter__(self) -> Browser:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._session = None
            self.send("Browser.close")
            until = monotonic() + PATIENCE
            while os.waitpid(self._process, os.WNOHANG) == (0, 0):
                if monotonic() > until:
                    raise TimeoutError("chromium does not end.")
                sleep(0.05)
        except Exception:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        finally:
            os.close(self._write)
            os.close(self._read)

    def look(self, page: Path, width: int, dark: bool) -> Looked:
        """Open a page on a screen of a width, and look for faults."""
        self.open(page, width, dark)
        faults = self.send("Runtime.evaluate", expression=FAULTS, returnByValue=True)["result"]["value"]
        looked = Looked(faults)
        for event in self._events:
            told = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                looked.console.append(told["exceptionDetails"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                looked.console.append(told["type"])
            elif event["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                looked.console.append(told["entry"]["text"])
            elif event["method"] == "Network.requestWillBeSent" and not told["request"]["url"].startswith(LOCAL):
                looked.requests.append(told["request"]["url"])
        return looked

    def open(self, page: Path, width: int, dark: bool) -> None:
        """Open a page, and wait until it is drawn."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self._events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._events += [self._message()]

    def screenshot(self) -> bytes:
        """The whole page that is open, as PNG."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def pages(self) -> tuple[int, bytes]:
        """How many sheets of A4 the page that is open prints on, and the PDF."""
        pdf = self.send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=True)["data"]
        content = base64.b64decode(pdf)
        return content.count(b"/Type /Page\n") + content.count(b"/Type /Page "), content

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command, and return its answer; events that arrive meanwhile are kept."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return dict(message["result"])
            if "method" in message:
                self._events.append(message)

    def _message(self) -> dict[str, Any]:
        until = monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - monotonic()))
            if not ready:
                raise TimeoutError(f"chromium did not answer within {PATIENCE:g} seconds.")
            more = os.read(self._read, 1 << 20)
            if not more:
                raise RuntimeError("chromium has ended.")
            self._buffer += more
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))
