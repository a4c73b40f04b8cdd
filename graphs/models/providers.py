"""Providers of chat models: which environment variable holds whose key, and what their errors mean.

Nothing of a provider is imported here, and no text that leaves this module holds a key.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from questbook.graphs.errors import FatalModelError, ModelError, PromptTooLongError
from questbook.memory.text.parts import in_one_line

_PROVIDERS = tomllib.loads(files("questbook.graphs.models").joinpath("providers.toml").read_text("utf-8"))
KEY_VARIABLES: Mapping[str, str] = _PROVIDERS["keys"]
"""Environment variable of each provider's key. Others work too; their error messages only say less."""
BASE_URL_VARIABLES = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
"""Variables that name an OpenAI-compatible server, in the order in which langchain_openai reads them."""
GO_OFFLINE = "choose the model 'offline' (--model, QUESTBOOK_MODEL, `model` of the context), which asks no provider"
LIMIT = 300  # most characters of an error message
_QUOTE = 140  # characters of the provider's own words in a message
_WORTH_RETRYING = {408, 409, 425, 429}
_SAYS = {name: re.compile(in_one_line(pattern)) for name, pattern in _PROVIDERS["expressions"].items()}


def split_name(name: str) -> tuple[str, str]:
    """Split `provider:model` at its first colon; the provider is spelt as in `init_chat_model`, "" if there is none."""
    provider, colon, model = name.strip().partition(":")
    return (provider.strip().lower().replace("-", "_"), model.strip()) if colon else ("", provider)


def key_variable(name: str) -> str:
    """Return the environment variable that holds the key for the model `name`; "" if it is not in `KEY_VARIABLES`."""
    return KEY_VARIABLES.get(split_name(name)[0], "")


def base_url() -> tuple[str, str]:
    """Return the variable that names an OpenAI-compatible server, and its value; both "" if there is none."""
    values = ((variable, os.environ.get(variable, "").strip()) for variable in BASE_URL_VARIABLES)
    return next(((variable, value) for variable, value in values if value), ("", ""))


def redact(text: str) -> str:
    """Return `text` with "[key]" for every key of the environment and for everything that looks like a key."""
    for variable in KEY_VARIABLES.values():
        # Shorter keys are placeholders for local servers; ordinary words may contain them.
        if len(key := os.environ.get(variable, "").strip()) >= 8:
            text = text.replace(key, "[key]")
    return _SAYS["KEY"].sub("[key]", text)


def explain(error: BaseException, model: str) -> ModelError:
    """Turn what any provider raised into an error in one line, without keys, that says what happened and what to do.

    It is fatal if the same request cannot succeed later: a wrong key, an unknown model, a request that the provider
    rejects. `model` is the model's name as the person set it, such as `openai:gpt-4o-mini`.
    """
    if isinstance(error, ModelError):
        return error
    chain = list(_causes(error))
    names = " ".join(kind.__name__ for link in chain for kind in type(link).__mro__)
    status = _status(chain)
    said = [f"{link} {getattr(link, 'code', '')} {getattr(link, 'body', '')}" for link in chain]
    too_long = status in (None, 400, 413, 422, 500) and any(map(_SAYS["TOO_LONG"].search, said))
    if "ContextOverflowError" in names or too_long:
        what = f"takes no prompt as long as this one ({_quote(error)})"
        remedy = "Set QUESTBOOK_BUFFER_TOKENS lower, or take a model with a longer window"
        return PromptTooLongError(error_line(f"{model[:80]} {what}. {remedy}"))
    fatal = status is not None and 400 <= status < 500 and status not in _WORTH_RETRYING
    if status is not None:
        message = _explain_status(status, error, model)
    elif "ConnectTimeout" not in names and _SAYS["TIMED_OUT"].search(names):
        message = "said nothing for too long. Try again, or allow it more time (QUESTBOOK_MODEL_TIMEOUT)"
    elif _SAYS["CUT"].search(names):
        message = f"broke off: the connection was cut ({_quote(chain[-1])}). Try again"
    elif _SAYS["UNREACHABLE"].search(names):
        variable = base_url()[0] if key_variable(model) in ("OPENAI_API_KEY", "") else ""
        check = f"the network and {variable}" if variable else "the network"
        message = f"cannot be reached ({_quote(chain[-1])}). Check {check}, or {GO_OFFLINE}"
    else:
        message = f"failed with {type(error).__name__}: {_quote(error)}"
    return (FatalModelError if fatal else ModelError)(error_line(f"{model[:80]} {message}"))


def error_line(text: str) -> str:
    """Return `text` without keys and line breaks, at most `LIMIT` characters, with a full stop at its end."""
    line = " ".join(redact(text).split())
    if len(line) >= LIMIT:
        return line[: LIMIT - 1].rstrip(" .") + "…"
    return line if line.endswith((".", "!", "?", "…")) else line + "."


def _explain_status(status: int, error: BaseException, model: str) -> str:
    quote, url = _quote(error), base_url()[0]
    texts = _PROVIDERS["statuses"]
    text = str(texts.get(str(status), texts["trouble" if status >= 500 else "rejected"]))
    if status == 429 and "quota" in f"{quote} {getattr(error, 'code', '')}".lower():
        text = texts["no_quota"]
    about = {"key": key_variable(model) or "the provider's API key", "and_url": f" and {url}" if url else ""}
    return text.format(status=status, quote=quote, wait=_wait(error), offline=GO_OFFLINE, **about)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, its cause, the cause of that, and so on: the last one is the most concrete."""
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
    names = [kind.__name__ for kind in type(chain[0]).__mro__]
    return next((_PROVIDERS["classes"][name] for name in names if name in _PROVIDERS["classes"]), None)


def _wait(error: BaseException) -> str:
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    wait = str(headers.get("retry-after", "")).strip()
    if wait.isdigit() and int(wait):
        return f"Try again in {wait} seconds"
    return f"Try again at {wait}" if wait and not wait.isdigit() else "Try again in a minute"


def _quote(error: BaseException) -> str:
    """Return the provider's own words, shortened; the name of the error's class if there are none."""
    body: Any = getattr(error, "body", None)
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and key in body:
            body = body[key]
    text = body if isinstance(body, str) and body.strip() else str(error)
    line = " ".join(redact(text).split()).rstrip(".") or type(error).__name__
    return line if len(line) <= _QUOTE else line[: _QUOTE - 1] + "…"
