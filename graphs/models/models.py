"""Chat models: load_chat_model() makes one by name, ask() puts one question to it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.runnables import Runnable

from questbook.graphs.errors import ModelError, SettingsError
from questbook.graphs.models.model_errors import explain, one_line
from questbook.graphs.models.providers import KEY_VARIABLES, OFFLINE, PLAY_OFFLINE, base_url, split_name
from questbook.notebooks.patch import is_deeper

__all__ = ["ask", "explain", "load_chat_model"]

PLACEHOLDER_KEY = "not-needed"
CONNECT_SECONDS = 10.0
_DEEPEST = 20  # levels of a tool call's arguments; ours have four


def load_chat_model(
    name: str,
    *,
    seed: int | None = None,
    temperature: float | None = None,
    timeout: float = 120.0,
    max_retries: int = 2,
    offline: Literal["storyteller", "assistant"] = "storyteller",
) -> BaseChatModel:
    """Make the chat model that `name` stands for, or return it if these very settings were loaded before.

    `openai:…` honours OPENAI_BASE_URL, so that Ollama, llama.cpp, vLLM and their like work. Local servers want no
    key: with a base URL and without OPENAI_API_KEY, a placeholder is sent. Such a model may be loaded in any thread
    and used in any event loop. Changes of key and base URL in the environment are noticed.

    The first call imports the provider's package and reads certificates, for about a second: in a node, write
    `await asyncio.to_thread(load_chat_model, …)`, since `langgraph dev` refuses what blocks its event loop.

    Args:
        name: "offline" for the built-in storyteller, else `provider:model` as `init_chat_model` takes it; a model
            without provider will do where `init_chat_model` knows whose it is.
        seed: Makes the offline storyteller repeatable; other models ignore it.
        temperature: How freely the model chooses; None leaves it to the provider.
        timeout: Seconds to wait for the next sign of life, in connecting (10 at most) as well as in mid-reply. With
            `openai:…` a server that says nothing is not asked again; other providers' packages may do so.
        max_retries: Times that one request is tried again after a rate limit, a server error or a lost connection,
            before anything was streamed.
        offline: Who answers when the name is "offline".

    Raises:
        SettingsError: No such provider, its package or its key is missing, or a setting makes no sense.
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
    # The environment is part of the cache's key: whoever sets a key and tries again must get a new client.
    environment = tuple(
        os.environ.get(key, "") for key in (*KEY_VARIABLES.values(), "OPENAI_API_BASE", "OPENAI_BASE_URL")
    )
    return _load(provider, model, temperature, timeout, max_retries, environment)


@lru_cache(maxsize=16)
def _load(
    provider: str,
    model: str,
    temperature: float | None,
    timeout: float,
    max_retries: int,
    environment: tuple[str, ...],
) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    name = f"{provider}:{model}" if provider else model
    settings: dict[str, Any] = {"timeout": timeout, "max_retries": max_retries}
    if temperature is not None:
        settings["temperature"] = temperature
    if provider == "openai":
        settings |= _openai_settings(name, timeout)
    try:
        loaded: BaseChatModel = init_chat_model(model, model_provider=provider or None, **settings)
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None) or error.name or f"langchain-{provider}"
        package = missing.partition(".")[0].replace("_", "-")
        raise SettingsError(
            f"Model {name!r} needs a package that is not installed: pip install {package}; or {PLAY_OFFLINE}."
        ) from error
    except Exception as error:  # every provider has its own, and each is raised again for a person
        if not provider and "OPENAI_API_KEY" in str(error):
            return _load("openai", model, temperature, timeout, max_retries, environment)
        raise _cannot_load(name, error) from error
    if not provider and type(loaded).__module__.startswith("langchain_openai."):
        # Only now do we know whose it is, and that it gets what a named `openai:` gets.
        return _load("openai", model, temperature, timeout, max_retries, environment)
    return loaded


def _cannot_load(name: str, error: Exception) -> SettingsError:
    text = str(error)
    for variable in KEY_VARIABLES.values():
        if variable in text or variable.lower() in text:
            return _no_key(name, variable)
    if "Unsupported provider" in text or "Unable to infer" in text:
        return SettingsError(
            f"Model {name!r}: unknown provider. Expected provider:name, such as openai:gpt-4.1-mini, "
            f"anthropic:… or ollama:…; or {PLAY_OFFLINE}."
        )
    return SettingsError(one_line(f"Model {name!r} cannot be set up: {type(error).__name__}: {text}"))


def _no_key(name: str, variable: str) -> SettingsError:
    local = " (for a local server, OPENAI_BASE_URL)" if variable == "OPENAI_API_KEY" else ""
    return SettingsError(f"Model {name!r} needs a key: set {variable}{local}, or {PLAY_OFFLINE}.")


def _openai_settings(name: str, timeout: float) -> dict[str, Any]:
    variable, url = base_url()
    if url and not url.startswith(("http://", "https://")):
        raise SettingsError(f"{variable}: expected a URL such as http://localhost:11434/v1, got {url!r}.")
    # A key that was read from a file often ends in a line break, which no HTTP header may hold.
    key = os.environ.get("OPENAI_API_KEY", "").strip() or (PLACEHOLDER_KEY if url else "")
    if not key:
        raise _no_key(name, "OPENAI_API_KEY")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError("OPENAI_API_KEY: holds blanks, line breaks or other characters that no key has.")
    import openai

    from questbook.graphs.models.openai_client import LoopClient

    patience = openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
    return {
        "api_key": key,
        "base_url": url or None,
        "timeout": patience,
        # For a server that sends nothing but keep-alive comments, which never trips the read time-out. Later than
        # that one, because langchain_openai logs a warning when this one ends a stream.
        "stream_chunk_timeout": timeout + 1,
        "http_async_client": LoopClient(timeout=patience),
        # What langchain_openai does by itself when it makes the client.
        "stream_usage": not url,
    }


async def ask(
    model: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    *,
    model_name: str,
    tags: Sequence[str] = (),
    timeout: float | None = None,  # noqa: ASYNC109 - it bounds each wait for a piece, not the whole call
) -> AIMessage:
    """Put one question to a model, for a node; its tokens reach LangGraph's `messages` stream as they come.

    An answer with neither text nor tool call is asked for once more. Tool arguments that are not JSON, or break off,
    are never guessed at: such calls stand in the answer's `invalid_tool_calls`.

    Args:
        model: A chat model, with or without tools bound.
        messages: The prompt.
        model_name: The model's name as the person set it, for messages.
        tags: Tags of the run, by which streams can be told apart.
        timeout: Seconds to wait for each piece of the answer, the provider's retries included; None leaves it to
            the model's own time-out, which counts for each try.

    Raises:
        ModelError: The model refused, failed or said nothing, even when asked twice.
    """
    for _ in range(2):
        answer = await _stream(model, list(messages), model_name, list(tags), timeout)
        if answer.text.strip() or answer.tool_calls or answer.invalid_tool_calls:
            return answer
    raise ModelError(f"{model_name[:80]} answered with nothing, twice. Try again.")


async def _stream(
    model: Runnable[Any, Any], messages: list[Any], model_name: str, tags: list[str], patience: float | None
) -> AIMessage:
    whole: Any = None
    pieces = model.astream(messages, config={"tags": tags})
    try:
        while True:
            async with asyncio.timeout(patience):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    break
            whole = piece if whole is None else whole + piece
    except Exception as error:  # every provider has its own, and each is raised again for a person
        raise explain(error, model_name) from error
    finally:
        if close := getattr(pieces, "aclose", None):
            await close()
    if not isinstance(whole, AIMessage):
        raise ModelError(f"{model_name[:80]} answered with {type(whole).__name__}, not with a message.")
    if not isinstance(whole, AIMessageChunk):
        return whole
    said = whole.response_metadata
    # A proxy that gives up may end the stream politely. The protocol says how an answer ends; "status" is how the
    # Responses API says it.
    if said.get("model_provider") == "openai" and not (said.get("finish_reason") or said.get("status")):
        raise ModelError(f"{model_name[:80]} broke off in the middle of the reply. Try again.")
    return _strict(whole)


def _strict(whole: AIMessageChunk) -> AIMessage:
    """Make a message of the streamed pieces, without LangChain's completion of broken tool arguments.

    LangChain closes what is open: `{"gold": 1`, cut from `{"gold": 100}`, would cost the player 99 pieces.
    """
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for piece in whole.tool_call_chunks:
        try:
            # strict=False: models put bare line breaks into strings, whose meaning is clear.
            arguments = json.loads(piece["args"] or "{}", strict=False)
            if not isinstance(arguments, dict):
                raise TypeError(f"expected a JSON object, got {type(arguments).__name__}")
            if is_deeper(arguments, _DEEPEST):
                raise ValueError(f"nested more than {_DEEPEST} levels deep")
        except (ValueError, TypeError, RecursionError) as error:
            broken.append(invalid_tool_call(name=piece["name"], args=piece["args"], id=piece["id"], error=str(error)))
        else:
            calls.append(tool_call(name=piece["name"] or "", args=arguments, id=piece["id"]))
    message = cast(AIMessage, message_chunk_to_message(whole))
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": broken})
