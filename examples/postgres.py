"""Questbook on PostgreSQL: the dungeon master and an agent of LangChain's, one pool for checkpoints and memories.

It needs a database with pgvector 0.8 or later, and the extra `postgres`:

    pip install 'questbook[postgres]'
    python examples/postgres.py "postgresql://user:password@host/database"
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres import AsyncPostgresStore
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from questbook import History, LastTurns, TimelineMemoryMiddleware, forget, load_embeddings
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph

EMBEDDINGS = load_embeddings("hash:512")  # or "openai:text-embedding-3-small" with dims 1536
OPTIONS = {"autocommit": True, "prepare_threshold": None}  # as LangGraph's


@asynccontextmanager
async def opened(uri: str) -> AsyncIterator[tuple[AsyncPostgresSaver, AsyncPostgresStore]]:
    pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
        uri,
        max_size=10,
        kwargs={**OPTIONS, "row_factory": dict_row},
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
    async with pool:
        saver = AsyncPostgresSaver(pool)
        store = AsyncPostgresStore(pool, index={"embed": EMBEDDINGS, "dims": 512, "fields": ["text"]})
        await saver.setup()  # makes the tables; once is enough
        await store.setup()
        async with pool.connection() as connection:  # with this index memories are missed: see docs/postgres.md
            await connection.execute("DROP INDEX IF EXISTS store_vectors_embedding_idx")
        yield saver, store


async def play(saver: AsyncPostgresSaver, store: AsyncPostgresStore) -> list[str]:
    """Play a little, go back, play on, and forget a name; return what was said on both branches."""
    app = build_graph().compile(checkpointer=saver, store=store)
    context = Context(user="ann", campaign="isle", model="offline", seed=3)
    config: RunnableConfig = {"configurable": {"thread_id": "isle-1"}}
    for words in ("I'm Mira, a halfling rogue; I want my sister back.", "I ask for the Silver Heron", "I walk north"):
        await app.ainvoke({"messages": [("user", words)]}, config, context=context)
    history = History(app, config, context)
    await history.undo()
    await app.ainvoke({"messages": [("user", "I go south")]}, config, context=context)
    await forget(store, "ann", "isle", words="silver heron", checkpointer=saver)
    return [turn.player for turn in await history.turns()]


class Repeating(BaseChatModel):
    """Stands for a model of yours: it says what it was given to remember."""

    @property
    def _llm_type(self) -> str:
        return "repeating"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        memories = [line for line in messages[0].text.splitlines() if '"user"' in line]
        return ChatResult(generations=[ChatGeneration(message=AIMessage("\n".join(memories) or "That is new to me."))])


async def chat(saver: AsyncPostgresSaver, store: AsyncPostgresStore) -> str:
    """Tell an agent something; go back to before a correction, and return what it remembers there."""
    memory = TimelineMemoryMiddleware(user="ann", buffer=LastTurns(0))
    agent = create_agent(Repeating(), middleware=[memory], checkpointer=saver, store=store)
    thread: RunnableConfig = {"configurable": {"thread_id": "chat-1"}}
    await agent.ainvoke({"messages": [HumanMessage("My lamp is red.")]}, thread)
    before = (await agent.aget_state(thread)).config
    await agent.ainvoke({"messages": [HumanMessage("I have painted the lamp blue.")]}, thread)
    out = await agent.ainvoke({"messages": [HumanMessage("Which colour has my lamp?")]}, before)
    return str(out["messages"][-1].text)


async def main(uri: str) -> None:
    async with opened(uri) as (saver, store):
        print(*await play(saver, store), sep="\n")
        print(await chat(saver, store))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
