from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import RetryPolicy

from questbook.graphs import errors
from questbook.graphs.errors import FatalModelError, ModelError, PromptTooLongError
from questbook.graphs.models.providers import BASE_URL_VARIABLES, KEY_VARIABLES, LIMIT, error_line, explain, redact

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


@pytest.mark.parametrize(
    ("kind", "tried_again"),
    [
        (errors.SettingsError, False), (errors.InputError, False), (errors.FatalModelError, False),
        (errors.PromptTooLongError, False), (errors.ModelError, True), (errors.UnreadableError, True),
    ],
)  # fmt: skip
def test_what_would_fail_again_is_an_error_that_langgraph_does_not_try_again(kind, tried_again):
    assert issubclass(kind, errors.QuestbookError)
    assert RetryPolicy().retry_on(kind("No.")) is tried_again
    assert not issubclass(kind, errors.ModelError) or kind.fatal is not tried_again


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


KEYS = """anthropic ANTHROPIC_API_KEY|azure-openai AZURE_OPENAI_API_KEY|cohere COHERE_API_KEY|deepseek DEEPSEEK_API_KEY
    |fireworks FIREWORKS_API_KEY|google_genai GOOGLE_API_KEY|groq GROQ_API_KEY|mistralai MISTRAL_API_KEY
    |nvidia NVIDIA_API_KEY|openai OPENAI_API_KEY|openrouter OPENROUTER_API_KEY|perplexity PPLX_API_KEY
    |together TOGETHER_API_KEY|upstage UPSTAGE_API_KEY|xai XAI_API_KEY"""


@pytest.mark.parametrize("line", KEYS.split("|"))
def test_each_providers_key_is_named_where_it_is_wrong_and_never_shown(line: str, monkeypatch: pytest.MonkeyPatch):
    provider, variable = line.split()
    assert f"Check {variable}, or choose the model 'offline'" in str(
        explain(StatusError(401), f" {provider.upper()} : x")
    )
    monkeypatch.setenv(variable, " a-key-of-eight ")
    assert redact("say a-key-of-eight twice: a-key-of-eight") == "say [key] twice: [key]"
    monkeypatch.setenv(variable, "not-key")
    assert redact("it is not-key") == "it is not-key", "a placeholder is an ordinary word"
    assert len(KEY_VARIABLES) == len(KEYS.split("|"))


def test_where_no_key_is_known_it_is_called_the_providers():
    assert "Check the provider's API key" in str(explain(StatusError(401), "other:x"))
    assert "does not let this key use the model (no)" in str(explain(StatusError(403, "no"), MODEL))


@pytest.mark.parametrize("prefix", ["sk", "pk", "rk", "gsk", "xai", "pplx", "nvapi", "AIza"])
def test_what_looks_like_a_key_is_not_shown(prefix: str):
    assert redact(f"key {prefix}-abcd1234.") == "key [key]."
    assert redact(f"key {prefix}-abcd") == f"key {prefix}-abcd"
    assert redact("Bearer x' y") == "Bearer [key]' y"


@pytest.mark.parametrize(
    "words",
    [
        "context_length_exceeded", "Context window exceeded", "exceed_context_size_error",
        "This model's maximum context length is 8", "the maximum model length", "prompt is too long: 9 > 8",
        "Input is too long", "exceeds the available context size", "exceed the context limit",
        "too large for model with",
        "input token count (9) exceeds", "too many tokens", "reduce the length of the messages",
        "Please reduce the length of the prompt", "greater than the context length",
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [None, 400, 413, 422, 500])
def test_a_prompt_that_is_too_long_is_known_by_the_words_of_any_provider(words: str, status: int | None):
    told = explain(ValueError(words) if status is None else StatusError(status, words), MODEL)
    assert isinstance(told, PromptTooLongError)
    assert "Set QUESTBOOK_BUFFER_TOKENS lower, or take a model with a longer window." in str(told)
    for other in (401, 404, 429, 503):
        assert not isinstance(explain(StatusError(other, words), MODEL), PromptTooLongError)


def test_a_prompt_is_too_long_also_by_the_name_the_code_or_the_cause_of_an_error():
    coded = named("BadRequest")
    coded.code = "context_length_exceeded"  # type: ignore[attr-defined]
    errors = [coded, named("ContextOverflowError"), caused(ValueError("no"), ValueError("too many tokens"))]
    assert [type(explain(error, MODEL)) for error in errors] == [PromptTooLongError] * 3


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("AuthenticationError", "401"), ("PermissionDeniedError", "403"), ("NotFoundError", "404"),
        ("BadRequestError", "400"), ("RateLimitError", "429"), ("ResourceExhausted", "429"),
        ("InternalServerError", "500"), ("ServiceUnavailable", "503"),
    ],
)  # fmt: skip
def test_an_error_without_a_status_is_known_by_its_name_or_that_of_its_base(name: str, status: str):
    for error in (named(name), named("Odd", type(name, (Exception,), {}))):
        assert f"HTTP {status}" in str(explain(error, MODEL))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("DeadlineExceeded", "allow it more time (QUESTBOOK_MODEL_TIMEOUT)"), ("PoolTimeout", "too long"),
        *((name, "the connection was cut") for name in ("RemoteProtocolError", "ReadError", "WriteError")),
        *((name, "the connection was cut") for name in ("IncompleteRead", "ConnectionReset", "BrokenPipe")),
        ("ClientPayloadError", "the connection was cut"),
        *((name, "cannot be reached") for name in ("ConnectTimeout", "ConnectError", "ConnectionError")),
        *((name, "cannot be reached") for name in ("ClientConnectorError", "ConnectionRefused", "gaierror")),
        ("UnsupportedProtocol", "cannot be reached"),
    ],
)  # fmt: skip
def test_a_lost_connection_is_known_by_its_name(name: str, says: str):
    told = explain(named(name), MODEL)
    assert says in str(told)
    assert not told.fatal


def test_the_server_of_ones_own_is_named_where_it_may_be_wrong(monkeypatch: pytest.MonkeyPatch):
    lost, unknown = named("ConnectError"), StatusError(404)
    assert "Check the network, or" in str(explain(lost, "openai:x"))
    assert "Check the name." in str(explain(unknown, "openai:x"))
    for variable in reversed(BASE_URL_VARIABLES):  # the first one counts
        monkeypatch.setenv(variable, " http://localhost ")
        assert f"Check the network and {variable}, or" in str(explain(lost, "openai:x"))
        assert f"Check the network and {variable}, or" in str(explain(lost, "my-model"))
        assert "Check the network, or" in str(explain(lost, MODEL))
        assert f"Check the name and {variable}." in str(explain(unknown, "openai:x"))


def test_the_providers_words_are_quoted_from_wherever_they_are_and_in_part():
    for body, quoted in (
        ({"error": {"message": "words"}}, "words"), ({"detail": "words."}, "words"), ("words", "words"),
        ({"error": "w" * 200}, "w" * 139 + "…"), ({"error": "w" * 140}, "w" * 140), ({"other": 1}, "said"),
        ("  ", "said"),
    ):  # fmt: skip
        error = named("APIError", text="said")
        error.body, error.status_code = body, 409  # type: ignore[attr-defined]
        assert str(explain(error, MODEL)) == f"{MODEL} rejected the request (HTTP 409): {quoted}" + (
            "" if quoted.endswith("…") else "."
        )


def test_a_quota_is_known_by_the_code_and_a_status_by_whatever_has_it():
    error = StatusError(429)
    error.code = "insufficient_quota"  # type: ignore[attr-defined]
    assert "has no quota left (HTTP 429): their words. Check the plan, or" in str(explain(error, MODEL))
    for name, value in (("status", 503), ("code", 503)):
        other = named("Odd")
        setattr(other, name, value)
        assert "HTTP 503" in str(explain(other, MODEL))
        setattr(other, name, 200)
        assert "failed with Odd" in str(explain(other, MODEL))
    assert "HTTP 503" in str(explain(caused(named("Outer"), StatusError(503)), MODEL))


def test_a_line_ends_in_one_stop_and_is_cut_at_its_limit():
    assert [error_line(text) for text in ("a\n b", "a.", "a!", "a?", "a…")] == ["a b.", "a.", "a!", "a?", "a…"]
    assert error_line("x" * LIMIT) == "x" * (LIMIT - 1) + "…"
    assert error_line("x" * (LIMIT - 1)) == "x" * (LIMIT - 1) + "."
    assert error_line("x" * (LIMIT - 4) + " . . . .") == "x" * (LIMIT - 4) + "…"
