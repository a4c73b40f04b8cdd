from __future__ import annotations

from typing import Any

import pytest

from questbook.graphs.errors import FatalModelError, ModelError
from questbook.graphs.models.providers import LIMIT, explain

MODEL = "anthropic:claude-sonnet-4-5"


class StatusError(Exception):
    """As openai's and anthropic's: the status is an attribute, the provider's words are in the body."""

    def __init__(self, status_code: int, message: str = "their words", **headers: str) -> None:
        super().__init__(f"Error code: {status_code} - {{'error': {{'message': {message!r}}}}}")
        self.status_code = status_code
        self.body = {"error": {"message": message}}
        self.response = type("Response", (), {"headers": {name.replace("_", "-"): v for name, v in headers.items()}})()


def named(name: str, *bases: type[Exception], text: str = "their words") -> Exception:
    """Make an exception as a package that is not installed would raise it."""
    return type(name, bases or (Exception,), {})(text)


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


HTTP_STATUS_ERROR = named("HTTPStatusError")
HTTP_STATUS_ERROR.response = type("Response", (), {"status_code": 502, "headers": {}})()  # type: ignore[attr-defined]

GOOGLE_ERROR = named("ServerError")
GOOGLE_ERROR.code = 503  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "says", "fatal"),
    [
        (StatusError(401), "ANTHROPIC_API_KEY", True), (StatusError(403, "no access"), "(no access)", True),
        (StatusError(402), "wants to be paid", True), (StatusError(404), "does not exist", True),
        (StatusError(400, "prompt is too long"), "(prompt is too long). Set QUESTBOOK_BUFFER_TOKENS lower", True),
        (StatusError(413), "rejected", True), (StatusError(422), "rejected", True),
        (StatusError(408), "took too long", False), (StatusError(409), "rejected", False),
        (StatusError(429), "Try again in a minute", False),
        (StatusError(429, retry_after="20"), "Try again in 20 seconds", False),
        (StatusError(429, retry_after="0"), "Try again in a minute", False),
        (StatusError(429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"), "Try again at Wed, 21 Oct", False),
        (StatusError(429, "exceeded your current quota"), "no quota left", False),
        (StatusError(500), "trouble of its own", False), (StatusError(529, "Overloaded"), "Overloaded", False),
        (HTTP_STATUS_ERROR, "HTTP 502", False), (named("AuthenticationError"), "HTTP 401", True),
        (GOOGLE_ERROR, "HTTP 503", False),
        (named("ResourceExhausted"), "HTTP 429", False), (TimeoutError(), "said nothing for too long", False),
        (named("ReadTimeout"), "said nothing for too long", False),
        (caused(named("APITimeoutError"), named("ReadTimeout")), "too long", False),
        (named("ConnectTimeout"), "cannot be reached", False),
        (ConnectionRefusedError("refused"), "cannot be reached (refused)", False),
        (caused(named("APIConnectionError"), named("ConnectError", text="no route")), "reached (no route)", False),
        (caused(named("APIConnectionError"), named("ConnectError", text="BAD CERTIFICATE")), "CERTIFICATE", False),
        (named("RemoteProtocolError", text="peer closed connection"), "cut (peer closed connection)", False),
        (ConnectionResetError(), "was cut (ConnectionResetError)", False), (named("IncompleteRead"), "was cut", False),
        (ValueError("what a day"), "failed with ValueError: what a day", False),
        (KeyError(), "failed with KeyError: KeyError", False),
    ],
    ids=lambda value: None if isinstance(value, bool) else repr(value)[:40],
)  # fmt: skip
def test_every_failure_is_one_line_that_says_what_to_do(error: Exception, says: str, fatal: bool):
    told = explain(error, MODEL)
    assert isinstance(told, ModelError)
    assert says in str(told)
    assert str(told).startswith(MODEL)
    assert told.fatal is fatal


def test_our_own_errors_pass_through():
    error = FatalModelError("said nothing")
    assert explain(error, MODEL) is error


@pytest.mark.parametrize("make", [ValueError, lambda text: StatusError(400, text), lambda text: StatusError(500, text)])
def test_messages_are_short_and_in_one_line(make: Any):
    told = str(explain(make("<html>\n\t<body>\r\n" * 500), "openai:" + "x" * 500))
    assert len(told) <= LIMIT
    assert told.isprintable()


def test_no_key_gets_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MISTRAL_API_KEY", "anUnusualKeyOfTheirs")
    text = (
        "Illegal header value b'Bearer whatEver/it+is' anUnusualKeyOfTheirs sk-ant-api03-abcdefghij AIzaSyABCDEFGHIJK"
    )
    told = str(explain(ValueError(text), MODEL))
    assert told.count("[key]") == 4
    assert "whatEver" not in told


def test_a_circle_of_causes_ends():
    error, other = ValueError("a"), ValueError("b")
    error.__cause__, other.__cause__ = other, error
    assert "failed with ValueError" in str(explain(error, MODEL))
