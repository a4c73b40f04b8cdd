"""Log lines as JSON, without anything that people wrote: QUESTBOOK_LOG=json.

A line's `event` is the text in our source, with numbers and names of classes filled in and "…" in the place of all
else; a message of another library is left out, since nobody knows what it quotes. An error is its class and the places
in the code that it came through, without its message. `user` and `campaign` are digests with a key: the same within a
process, and with QUESTBOOK_LOG_KEY the same in all of them. Without the key nobody can find out a name by trying.
"""

import errno
import hashlib
import logging
import os
import re
import secrets
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from questbook.graphs.errors import SettingsError
from questbook.types import JSON

VARIABLE, KEY_VARIABLE = "QUESTBOOK_LOG", "QUESTBOOK_LOG_KEY"
_OURS, _WITHOUT_QUOTES = "questbook", ("questbook", "uvicorn")
_MOST_CAUSES, _MOST_PLACES = 4, 12
_log = logging.getLogger(__name__)
_about: ContextVar[JSON] = ContextVar("questbook_about", default={})  # noqa: B039 (nobody changes it)


def writes_json() -> bool:
    """Return whether log lines are to be JSON, as the environment says."""
    if (said := os.environ.get(VARIABLE, "")) not in ("", "json"):
        raise SettingsError(f"{VARIABLE}: got {said!r:.40}; expected json, or nothing.")
    return bool(said)


def about(**ids: str) -> None:
    """Say whose the log lines of the current task are from now on: `user`, `campaign`, `thread_id`."""
    _about.set(ids)


def start_logging(logger: str = "") -> None:
    """Write what a logger gets ("": all) to standard error as JSON, if the environment asks for it."""
    if not writes_json():
        return
    try:
        import structlog
    except ImportError as error:
        raise SettingsError(f"{VARIABLE}=json needs {error.name}: pip install 'questbook[ops]'.") from error
    steps: Any = [
        _Line(),
        structlog.processors.TimeStamper("iso", key="time"),
        structlog.processors.JSONRenderer(),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(processors=steps, use_get_message=False, pass_foreign_args=True)
    handler, chosen = logging.StreamHandler(sys.stderr), logging.getLogger(logger or None)
    handler.setFormatter(formatter)
    if any(isinstance(each.formatter, structlog.stdlib.ProcessorFormatter) for each in chosen.handlers):
        return  # a server that loads a module twice
    chosen.addHandler(handler)
    chosen.propagate = False
    logging.getLogger(_OURS).setLevel(logging.INFO)
    # What nobody has caught is printed by Python with its message.
    sys.excepthook = lambda kind, error, trace: _log.critical("Ended by an error.", exc_info=(kind, error, trace))
    threading.excepthook = lambda end: _log.error("A thread has ended.", exc_info=end.exc_value)
    sys.unraisablehook = lambda end: _log.error("An error was not raised.", exc_info=end.exc_value)


class _Line:
    """Makes the fields of a line from a log record: a processor of structlog's."""

    def __init__(self) -> None:
        self._key = os.environ.get(KEY_VARIABLE, "").encode()[:64] or secrets.token_bytes(16)

    def __call__(self, _: object, level: str, event: Mapping[str, Any]) -> JSON:
        record: logging.LogRecord = event["_record"]
        line: JSON = {"event": _text_of(record, event.get("positional_args")), "level": level, "logger": record.name}
        line |= {"at": f"{record.module}:{record.lineno}"} | getattr(record, "fields", {})
        line |= self._ids(getattr(record, "ids", {}) or _run_ids() or _about.get())
        given, values = event.get("exc_info"), event.get("positional_args") or ()
        error = given[1] if given else next((one for one in values if isinstance(one, BaseException)), None)
        return line | ({"errors": list(_errors(error))} if error else {})

    def _ids(self, known: JSON) -> JSON:
        names = {name: self._digest(str(known[name])) for name in ("user", "campaign") if known.get(name)}
        plain = {"thread_id": "thread", "run_id": "run", "langgraph_node": "node"}
        return names | {shown: str(known[name]) for name, shown in plain.items() if known.get(name)}

    def _digest(self, name: str) -> str:
        return hashlib.blake2b(name.encode("utf-8", "replace"), key=self._key, digest_size=8).hexdigest()


def _text_of(record: logging.LogRecord, values: object) -> str:
    if record.name.partition(".")[0] not in _WITHOUT_QUOTES or not isinstance(record.msg, str):
        return "…"
    if not isinstance(values, tuple) or not values:
        return record.msg
    try:
        return record.msg % tuple(map(_shown, values))
    except (TypeError, ValueError):  # a number is expected where something hidden is
        return record.msg


def _shown(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return _Plain(type(value).__name__ if isinstance(value, BaseException) else "…")


class _Plain(str):
    """A text of ours, which a template shows without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _run_ids() -> JSON:
    """Return what LangGraph's config of the current run says of it; {} outside one."""
    module: Any = sys.modules.get("langchain_core.runnables.config")
    config = (module.var_child_runnable_config.get() if module else None) or {}
    return {**(config.get("metadata") or {}), **(config.get("configurable") or {})} if config else {}


def _errors(error: BaseException | None) -> Iterator[JSON]:
    """Yield an error and its causes: classes, and places in the code, the innermost last."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
        places = [f"{Path(code.co_filename).stem}:{line} {code.co_name}" for code, line in frames[-_MOST_PLACES:]]
        yield {"type": type(error).__name__, "places": places} | _code_of(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _code_of(error: BaseException) -> JSON:
    """Return the code of an error of the system or a database, which is nobody's words; {} if it has none."""
    code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
    code = code or errno.errorcode.get(getattr(error, "errno", None) or 0)
    if not code and hasattr(error, "sqlstate"):  # no connection: libpq says why in the system's words
        code = next((name for number, name in errno.errorcode.items() if os.strerror(number) in str(error)), "")
    return {"code": code} if code and re.fullmatch(r"[A-Z0-9_]{1,40}", str(code)) else {}
