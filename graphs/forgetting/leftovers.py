"""What could not be forgotten for good while another program played a turn is forgotten again when that turn ends."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from langgraph.store.memory import InMemoryStore

from questbook.graphs.embedded.databases import open_store
from questbook.graphs.forgetting.erasure import Erasure
from questbook.graphs.forgetting.forget import Forgetting


async def forget_leftovers(saver: Any, memory: Path, thread: str) -> None:
    """Forget what was left for the end of a thread's turn.

    Args:
        saver: The checkpointer.
        memory: File of the semantic store; if there is none, only the checkpoints are looked through.
        thread: The thread.

    Raises:
        ForgettingError: It cannot be done now; the end of the thread's next turn tries again.
    """
    for user, campaign, words in await Erasure(saver).left_for(thread):
        exists = await asyncio.to_thread(memory.exists)
        async with open_store(memory) if exists else nullcontext(InMemoryStore()) as store:
            await Forgetting(store, saver, user, campaign, [thread]).forget(words)
