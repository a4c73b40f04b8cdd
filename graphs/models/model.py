"""The model that a run's settings name."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from questbook.graphs.errors import FatalModelError
from questbook.graphs.models.models import load_chat_model
from questbook.graphs.settings import Settings


def _seed_of(user: str, campaign: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{user}\0{campaign}".encode("utf-8", "surrogatepass")).digest()[:6])


def bind_tools(model: BaseChatModel, tools: Sequence[dict[str, Any]], settings: Settings) -> Runnable[Any, Any]:
    """Return the model with tools to call; some servers refuse an empty list of them.

    Raises:
        ModelError: The model's class cannot call tools.
    """
    try:
        return model.bind_tools(tools) if tools else model
    except NotImplementedError as error:
        names = ", ".join(tool["function"]["name"] for tool in tools)
        raise FatalModelError(
            f"{settings.model} ({type(model).__name__}) cannot call tools, and is asked to call {names}. "
            "Take a model that can."
        ) from error


async def chat_model(context: Settings) -> BaseChatModel:
    """Return the settings' own model, or load the one they name, off the event loop: imports may take a second.

    Without a seed the offline storyteller takes one from user and campaign, so that two campaigns tell two tales.

    Raises:
        ModelError: The model cannot be loaded (unknown provider, missing package or key).
    """
    if context.CHAT_MODEL is not None:
        return context.CHAT_MODEL
    return await asyncio.to_thread(
        load_chat_model,
        context.model,
        seed=context.seed if context.seed is not None else _seed_of(context.user, context.campaign),
        temperature=context.temperature,
        timeout=context.model_timeout,
        offline=context.STAND_IN,
    )
