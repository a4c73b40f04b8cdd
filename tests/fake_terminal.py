"""A terminal with nobody before it: runs a program on a pseudo-terminal, types, and reads the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROMPT = ">\x1b[0m"
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][0-9A-Za-z]|\x1b[=>]")

SLOW = """
import asyncio, sys
from scripted import ScriptedModel, say
import questbook.graphs.models.chat_models as loader
from questbook.graphs.errors import FatalModelError, ModelError
from questbook.graphs.terminal.cli import main

class Slow(ScriptedModel):
    async def _astream(self, *given, **named):
        for chunk in self._stream(*given, **named):
            await asyncio.sleep(0.05)
            yield chunk

model = Slow()
{script}
loader.load_chat_model = lambda *_, **__: model
sys.exit(main(["play", "--model", "scripted"]))
"""


class FakeTerminal:
    """A program on a pseudo-terminal of 100 columns."""

    def __init__(self, home, *arguments: str, **environment: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            pass_fds=(slave,),
            preexec_fn=lambda: os.login_tty(slave),
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
                "QUESTBOOK_HOME": str(home),
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                **environment,
            },
        )
        os.close(slave)
        self.raw = ""
        self.seen = 0

    @classmethod
    def play(cls, home, *flags: str, door: str = "play", **environment: str) -> FakeTerminal:
        return cls(home, "-m", "questbook.graphs.terminal", door, *flags, **environment)

    @classmethod
    def scripted(cls, home, script: str = "", **environment: str) -> FakeTerminal:
        return cls(home, "-c", SLOW.format(script=script), **environment)

    def expect(self, text: str, seconds: float = 60.0) -> str:
        """Wait for text beyond what was expected before; returns what was written up to it."""
        end = time.monotonic() + seconds
        while (found := self.raw.find(text, self.seen)) < 0:
            left = end - time.monotonic()
            if left < 0 or not self._read(left):
                raise AssertionError(f"{text!r} did not appear; this did:\n{self.raw[self.seen :]}")
        passed = self.raw[self.seen : found]
        self.seen = found + len(text)
        return _ESCAPES.sub("", passed)

    def send(self, keys: str | bytes) -> None:
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())

    def enter(self, line: str | bytes) -> None:
        self.expect(PROMPT)
        self.send(line)
        self.send("\r")

    def leave(self) -> None:
        """Quit as a person does, without an error."""
        self.enter("/quit")
        assert self.close() == 0

    def close(self, seconds: float = 60.0) -> int:
        """Read until the program ends; returns its exit status."""
        end = time.monotonic() + seconds
        while self._read(max(0.0, end - time.monotonic())):
            pass
        try:
            return self.process.wait(max(0.1, end - time.monotonic()))
        finally:
            self.process.kill()
            os.close(self.master)

    @property
    def text(self) -> str:
        return _ESCAPES.sub("", self.raw)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        for _ in range(data.count(b"\x1b[6n")):  # where is the cursor?
            os.write(self.master, b"\x1b[1;1R")
        self.raw += data.decode("utf-8", "replace")
        return bool(data)
