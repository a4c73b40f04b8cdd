"""The model that a run's settings name."""

from __future__ import annotations

import asyncio

from langchain_core.language_models import BaseChatModel

from graphs.dungeon_master.context import Context
from graphs.models import load_chat_model


async def chat_model(context: Context) -> BaseChatModel:
    """Load the model, off the event loop: a provider's package may take a second to import.

    Raises:
        ModelError: The model cannot be loaded (unknown provider, missing package or key).
    """
    return await asyncio.to_thread(
        load_chat_model,
        context.model,
        seed=context.seed,
        temperature=context.temperature,
        timeout=context.model_timeout,
    )
