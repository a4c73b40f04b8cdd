"""The model that a run's settings name."""

from __future__ import annotations

import asyncio
import hashlib

from langchain_core.language_models import BaseChatModel

from graphs.models import load_chat_model
from graphs.settings import Settings


def _seed_of(user: str, campaign: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{user}\0{campaign}".encode("utf-8", "surrogatepass")).digest()[:6])


async def chat_model(context: Settings) -> BaseChatModel:
    """Load the model, off the event loop: a provider's package may take a second to import.

    Without a seed the offline storyteller takes one from user and campaign, so that two campaigns tell two tales.

    Raises:
        ModelError: The model cannot be loaded (unknown provider, missing package or key).
    """
    return await asyncio.to_thread(
        load_chat_model,
        context.model,
        seed=context.seed if context.seed is not None else _seed_of(context.user, context.campaign),
        temperature=context.temperature,
        timeout=context.model_timeout,
        offline=context.STAND_IN,
    )
