"""Turns that are played while words are forgotten: such a run has its thread's state in memory, and writes it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.config import get_config

from questbook.graphs.embedded.checkpointer import is_unfinished

_LONGEST_STEP = timedelta(minutes=5)  # of a turn; models are given two minutes by default
_PAUSE = 0.5  # seconds between two looks
_FAILED, _ASKS, _ANSWERED = "__error__", "__interrupt__", "__resume__"  # the channels under which LangGraph saves that


async def find_playing(saver: Any, threads: Iterable[str]) -> list[str]:
    """Return the threads in the middle of a turn, as far as checkpoints say.

    A turn is not played if it failed, if it waits for an answer, or if it has made no step for five minutes.
    """
    playing = []
    for thread in sorted(set(threads)):
        saved = await saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        if saved is None or not is_unfinished(saved.checkpoint):
            continue
        pending = {channel for _, channel, _ in saved.pending_writes or []}
        stopped = _FAILED in pending or (_ASKS in pending and _ANSWERED not in pending)
        if not stopped and datetime.now(UTC) - datetime.fromisoformat(saved.checkpoint["ts"]) < _LONGEST_STEP:
            playing.append(thread)
    return playing


async def wait_for_end(saver: Any, threads: Iterable[str]) -> None:
    """Wait until no turn is played on threads any more."""
    waiting = await find_playing(saver, threads)
    while waiting:
        await asyncio.sleep(_PAUSE)
        waiting = await find_playing(saver, waiting)


def own_thread() -> str:
    """Return the thread whose turn calls this, for example by a tool; "" if none does."""
    try:
        return str(get_config()["configurable"].get("thread_id", ""))
    except (RuntimeError, KeyError):
        return ""
