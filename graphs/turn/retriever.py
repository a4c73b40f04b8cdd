"""Recall as LangChain knows it: the run of a retriever, whose failure costs nothing but the memories."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import notice
from questbook.memory.buffer.turns import split_turns, turn_text
from questbook.memory.sync import run_sync
from questbook.types import JSON

_log = logging.getLogger(__name__)


class _Memories(BaseRetriever):
    """Recall as LangChain's handlers see it: a run of a retriever, with the memories as documents."""

    memories: Any

    async def _aget_relevant_documents(
        self,
        query: str,  # noqa: ARG002
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 (LangChain's method)
    ) -> list[Document]:
        return [Document(_text_of(memory), metadata=memory) for memory in await self.memories]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return run_sync(self._aget_relevant_documents(query, run_manager=run_manager))


async def recall_or_notice(state: TurnState, memories: Awaitable[list[JSON]]) -> JSON:
    """Return the channels of a turn's memories; if the store fails, none are recalled, and a notice says so.

    LangChain's handlers and traces see it as the run of a retriever called "recall".
    """
    question, _ = turn_text(split_turns(state.messages, state.turn)[-1].messages) if state.messages else ("", "")
    try:
        documents = await _Memories(memories=memories, name="recall").ainvoke(question)
        return {"recalled": [document.metadata for document in documents], "notices": []}
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the conversation goes on without)
        _log.warning("Nothing was recalled for turn %d: %s", state.turn, error, exc_info=True)
        text = f"Memory could not be searched, so nothing was recalled for this turn. {error}"
        return {"recalled": [], "notices": [notice(state.turn, "recall", text)]}


def _text_of(memory: JSON) -> str:
    return str(memory.get("text") or f"{memory.get('player', '')}\n{memory.get('reply', '')}".strip())
