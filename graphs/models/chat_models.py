"""Chat models: made by name (`load_chat_model`), or as a run's settings say (`chat_model`)."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from questbook.graphs.errors import FatalModelError, SettingsError
from questbook.graphs.models.providers import GO_OFFLINE, KEY_VARIABLES, base_url, error_line, split_name
from questbook.graphs.settings import OFFLINE, Settings
from questbook.types import JSON

PLACEHOLDER_KEY = "not-needed"
CONNECT_SECONDS = 10.0


async def chat_model(context: Settings) -> BaseChatModel:
    """Return the settings' own model, or load the model that they name, in a thread: imports may take a second.

    Without a seed, the offline storyteller gets one from user and campaign, so that two campaigns tell two tales.
    """
    if context.CHAT_MODEL is not None:
        return context.CHAT_MODEL
    names = f"{context.user}\0{context.campaign}".encode("utf-8", "surrogatepass")
    return await asyncio.to_thread(
        load_chat_model,
        context.model,
        seed=context.seed if context.seed is not None else int.from_bytes(hashlib.sha256(names).digest()[:6]),
        temperature=context.temperature,
        timeout=context.model_timeout,
        offline=context.STAND_IN,
    )


def bind_tools(model: BaseChatModel, tools: Sequence[JSON], settings: Settings) -> Runnable[Any, Any]:
    """Return the model with tools that it may call; as it is without any, since some servers refuse an empty list."""
    try:
        if tools:
            return model.bind_tools(tools)
    except NotImplementedError as error:
        names = ", ".join(tool["function"]["name"] for tool in tools)
        cannot = f"{settings.model} ({type(model).__name__}) cannot call tools, and is asked to call {names}."
        raise FatalModelError(f"{cannot} Take a model that can.") from error
    return model


def load_chat_model(
    name: str,
    *,
    seed: int | None = None,
    temperature: float | None = None,
    timeout: float = 120.0,
    max_retries: int = 2,
    offline: Literal["storyteller", "assistant"] = "storyteller",
) -> BaseChatModel:
    """Return the chat model of that name; the same settings, keys and base URL give the same object.

    `openai:…` reads OPENAI_BASE_URL, so Ollama, llama.cpp and vLLM work; with a base URL no key is needed. A model may
    be used in any event loop. The first call imports the provider's package, which takes about a second: in a node,
    write `await asyncio.to_thread(load_chat_model, …)`.

    Args:
        name: "offline" for a built-in model, else `provider:model` as `init_chat_model` takes it, which may know the
            provider of a model without one.
        seed: Makes the offline storyteller repeatable; other models ignore it.
        temperature: How freely the model chooses; None: the provider's default.
        timeout: Seconds to wait for the connection (10 at most) and for each further piece of the reply.
        max_retries: How often a request is repeated that failed before anything was streamed.
        offline: Which built-in model answers if the name is "offline".

    Raises:
        SettingsError: There is no such provider, its package or key is missing, or a setting makes no sense.
    """
    if name.strip().lower() == OFFLINE:
        if offline == "assistant":
            from questbook.graphs.offline.assistant import OfflineAssistant

            return OfflineAssistant(seed=seed)
        from questbook.graphs.offline.storyteller import OfflineStoryteller

        return OfflineStoryteller(seed=seed)
    provider, model = split_name(name)
    if not model or (":" in name and not provider):
        raise SettingsError(
            f"Model {name!r}: expected provider:name, such as openai:gpt-4.1-mini, or {OFFLINE!r} for no model at all."
        )
    # The environment is part of the cache's key, so that a key which is set later makes a new client.
    variables = (*KEY_VARIABLES.values(), "OPENAI_API_BASE", "OPENAI_BASE_URL")
    environment = tuple(os.environ.get(variable, "") for variable in variables)
    return _load(provider, model, temperature, timeout, max_retries, environment)


@lru_cache(maxsize=16)
def _load(
    provider: str, model: str, temperature: float | None, timeout: float, max_retries: int, environment: tuple[str, ...]
) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    name = f"{provider}:{model}" if provider else model
    settings: JSON = {"timeout": timeout, "max_retries": max_retries}
    if temperature is not None:
        settings["temperature"] = temperature
    if provider == "openai":
        settings |= _openai_settings(name, timeout)
    try:
        loaded: BaseChatModel = init_chat_model(model, model_provider=provider or None, **settings)
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None) or error.name or f"langchain-{provider}"
        raise _no_package(name, missing) from error
    except Exception as error:  # every provider has its own errors; each is raised again as one line
        if provider == "ollama" and find_spec("langchain_ollama") is None:
            # LangChain then looks in langchain_community, which does not have it any more.
            raise _no_package(name, "langchain_ollama") from error
        if not provider and "OPENAI_API_KEY" in str(error):
            return _load("openai", model, temperature, timeout, max_retries, environment)
        raise _cannot_load(name, error) from error
    if not provider and type(loaded).__module__.startswith("langchain_openai."):
        # Only now is the provider known; the model gets the same settings as with `openai:` in its name.
        return _load("openai", model, temperature, timeout, max_retries, environment)
    return loaded


def _cannot_load(name: str, error: Exception) -> SettingsError:
    text = str(error)
    for variable in KEY_VARIABLES.values():
        if variable in text or variable.lower() in text:
            return _no_key(name, variable)
    if "Unsupported provider" in text or "Unable to infer" in text:
        expected = "Expected provider:name, such as openai:gpt-4.1-mini, anthropic:… or ollama:…"
        return SettingsError(f"Model {name!r}: unknown provider. {expected}; or {GO_OFFLINE}.")
    return SettingsError(error_line(f"Model {name!r} cannot be set up: {type(error).__name__}: {text}"))


def _no_package(name: str, module: str) -> SettingsError:
    package = module.partition(".")[0].replace("_", "-")
    install = f"pip install {package}; or {GO_OFFLINE}."
    return SettingsError(f"Model {name!r} needs a package that is not installed: {install}")


def _no_key(name: str, variable: str) -> SettingsError:
    local = " (for a local server, OPENAI_BASE_URL)" if variable == "OPENAI_API_KEY" else ""
    return SettingsError(f"Model {name!r} needs a key: set {variable}{local}, or {GO_OFFLINE}.")


def _openai_settings(name: str, timeout: float) -> JSON:
    variable, url = base_url()
    if url and not url.startswith(("http://", "https://")):
        raise SettingsError(f"{variable}: expected a URL such as http://localhost:11434/v1, got {url!r}.")
    # A key from a file often ends in a line break, which an HTTP header may not hold.
    key = os.environ.get("OPENAI_API_KEY", "").strip() or (PLACEHOLDER_KEY if url else "")
    if not key:
        raise _no_key(name, "OPENAI_API_KEY")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError("OPENAI_API_KEY: it holds blanks, line breaks or other characters that no key has.")
    import openai

    from questbook.graphs.models.openai_client import LoopClient

    wait = openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
    return {
        "api_key": key,
        "base_url": url or None,
        "timeout": wait,
        # For a server that sends only keep-alive comments, which never reach the read time-out. One second later
        # than that time-out, because langchain_openai logs a warning when this one ends a stream.
        "stream_chunk_timeout": timeout + 1,
        "http_async_client": LoopClient(timeout=wait),
        "stream_usage": True,  # by default langchain_openai does not ask a server of one's own what a call used
    }
