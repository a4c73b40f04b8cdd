"""Pytest in a process that has imported the libraries already and forks for each run: a second less each time.

    python benchmarks/fork_pytest.py TREE      reads lines of test names as JSON, answers the first that fails

`mutants.py` starts one for each copy of the project. Only for systems with `fork`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENDLESS = "endless"
LONGEST_RUN = 300.0  # seconds; a change that loops for ever is noticed, too
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/[\w./]+(?:::\w+)?)", re.MULTILINE)
_LIBRARIES = (
    "pytest hypothesis numpy faiss pydantic httpx openai uvicorn starlette.applications jinja2 lark langgraph.graph "
    "langgraph.prebuilt langgraph.checkpoint.sqlite.aio langgraph.store.sqlite.aio langchain_core.messages "
    "langchain_core.language_models langchain_openai langchain.agents"
)


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which a copy's tests import the copy."""
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}


class ForkedPytest:
    """A process that runs tests of one copy of the project."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(tree)],
            cwd=tree,
            env=environment(tree),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def first_failure(self, tests: list[str]) -> str:
        """Run tests until one fails, and return its function, or file; "" if none fails.

        Raises:
            RuntimeError: pytest could not run them.
        """
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(tests) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if answer["error"]:
            raise RuntimeError(f"pytest could not run {tests}: {answer['error']}")
        return str(answer["failure"])


def run(tests: list[str]) -> dict[str, str]:
    """Run tests in a fork; return the first that failed, or why they could not run."""
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if not child:
            os.setsid()
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            import pytest

            code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
            sys.stdout.flush()
            os._exit(code)
        end = time.monotonic() + LONGEST_RUN
        finished, status = os.waitpid(child, os.WNOHANG)
        while not finished and time.monotonic() < end:
            time.sleep(0.05)
            finished, status = os.waitpid(child, os.WNOHANG)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # servers that a test left behind, too
        if not finished:
            os.waitpid(child, 0)
            return {"failure": ENDLESS, "error": ""}
        if os.waitstatus_to_exitcode(status) in (0, 5):
            return {"failure": "", "error": ""}
        log.seek(0)
        output = log.read().decode(errors="replace")
    failed = _FAILED.search(output)  # a test file that cannot be read fails, too
    return {"failure": failed[1] if failed else "", "error": "" if failed else output[-1500:]}


def main() -> None:
    """Import the libraries, then answer each line."""
    for name in _LIBRARIES.split():
        importlib.import_module(name)
    own = str(Path(__file__).parent)
    sys.path[:] = [sys.argv[1], *(place for place in sys.path if place != own)]
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
