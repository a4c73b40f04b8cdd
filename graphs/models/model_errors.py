"""explain(): what a provider's exception means, in one line for a person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from questbook.graphs.errors import FatalModelError, ModelError
from questbook.graphs.models.providers import PLAY_OFFLINE, base_url, key_variable, redact

LIMIT = 300
"""Characters that a message may have."""

_QUOTE = 140
_WORTH_RETRYING = {408, 409, 425, 429}

# Providers differ in their classes but agree in names; a class counts by any name in its family tree.
_BY_NAME = {
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
    "BadRequestError": 400,
    "RateLimitError": 429,
    "ResourceExhausted": 429,
    "InternalServerError": 500,
    "ServiceUnavailable": 503,
}
_TIMED_OUT = re.compile(r"Timeout|DeadlineExceeded")
_CUT = re.compile(r"RemoteProtocolError|ReadError|WriteError|IncompleteRead|ConnectionReset|BrokenPipe|PayloadError")
_UNREACHABLE = re.compile(
    r"ConnectTimeout|ConnectError|ConnectionError|ConnectorError|ConnectionRefused|UnsupportedProtocol|gaierror"
)


def explain(error: BaseException, model: str) -> ModelError:
    """Turn what a provider raised into one line that says what happened and what to do.

    Nothing of a provider is imported: HTTP status, class names and builtin bases tell the cases apart, so that this
    works for every provider. The line holds no key, no line break, and at most `LIMIT` characters.

    Args:
        error: What the model call raised.
        model: The model's name as the person set it, such as `openai:gpt-4o-mini`.

    Returns:
        The error to raise `from error`. It is fatal when the same request cannot succeed later: a wrong key, an
        unknown model, a request that the provider rejects.
    """
    if isinstance(error, ModelError):
        return error
    chain = list(_causes(error))
    names = " ".join(kind.__name__ for link in chain for kind in type(link).__mro__)
    status = _status(chain)
    if status is not None:
        message, fatal = _explain_status(status, error, model)
    elif "ConnectTimeout" not in names and _TIMED_OUT.search(names):
        message, fatal = "said nothing for too long. Try again, or allow it more time (QUESTBOOK_MODEL_TIMEOUT)", False
    elif _CUT.search(names):
        message, fatal = f"broke off: the connection was cut ({_quote(chain[-1])}). Try again", False
    elif _UNREACHABLE.search(names):
        variable = base_url()[0] if key_variable(model) in ("OPENAI_API_KEY", "") else ""
        check = f"the network and {variable}" if variable else "the network"
        message, fatal = f"cannot be reached ({_quote(chain[-1])}). Check {check}, or {PLAY_OFFLINE}", False
    else:
        message, fatal = f"failed with {type(error).__name__}: {_quote(error)}", False
    return (FatalModelError if fatal else ModelError)(one_line(f"{model[:80]} {message}"))


def one_line(text: str, limit: int = LIMIT) -> str:
    """Return `text` without keys and line breaks, shortened to `limit` characters, ending in a full stop."""
    line = " ".join(redact(text).split())
    if len(line) >= limit:
        return line[: limit - 1].rstrip(" .") + "…"
    return line if line.endswith((".", "!", "?", "…")) else line + "."


def _explain_status(status: int, error: BaseException, model: str) -> tuple[str, bool]:
    quote = _quote(error)
    fatal = 400 <= status < 500 and status not in _WORTH_RETRYING
    if status in (401, 403):
        variable = key_variable(model) or "the provider's API key"
        # What the provider says about a wrong key quotes the key.
        what = "did not accept the key" if status == 401 else f"does not let this key use the model ({quote})"
        return f"{what} (HTTP {status}). Check {variable}, or {PLAY_OFFLINE}", fatal
    if status == 402:
        return f"wants to be paid (HTTP 402): {quote}", fatal
    if status == 404:
        variable = base_url()[0]
        where = f" and {variable}" if variable else ""
        return f"does not exist for this provider or key (HTTP 404): {quote}. Check the name{where}", fatal
    if status in (408, 504):
        return f"took too long (HTTP {status}). Try again", fatal
    if status == 429:
        if "quota" in f"{quote} {getattr(error, 'code', '')}".lower():
            return f"has no quota left (HTTP 429): {quote}. Check the plan, or {PLAY_OFFLINE}", fatal
        return f"has had too many requests (HTTP 429). {_wait(error)}", fatal
    if status >= 500:
        return f"has trouble of its own (HTTP {status}): {quote}. Try again later", fatal
    return f"rejected the request (HTTP {status}): {quote}", fatal


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and what caused it, and so on: the last one is the most concrete."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _status(chain: list[BaseException]) -> int | None:
    for link in chain:
        response = getattr(link, "response", None)
        for holder, name in ((link, "status_code"), (response, "status_code"), (link, "status"), (link, "code")):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                return value
    for kind in type(chain[0]).__mro__:
        if kind.__name__ in _BY_NAME:
            return _BY_NAME[kind.__name__]
    return None


def _wait(error: BaseException) -> str:
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    wait = str(headers.get("retry-after", "")).strip()
    if wait.isdigit() and int(wait):
        return f"Try again in {wait} seconds"
    return f"Try again at {wait}" if wait and not wait.isdigit() else "Try again in a minute"


def _quote(error: BaseException) -> str:
    """Return the provider's own words, short, or the error's name when it has none."""
    body: Any = getattr(error, "body", None)
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and key in body:
            body = body[key]
    text = body if isinstance(body, str) and body.strip() else str(error)
    if not text.strip():
        text = type(error).__name__
    line = " ".join(redact(text).split()).rstrip(".")
    return line if len(line) <= _QUOTE else line[: _QUOTE - 1] + "…"
