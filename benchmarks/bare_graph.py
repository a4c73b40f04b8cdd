"""The peer of `load.py`: a bare MessagesState graph with LangGraph's own checkpointer, served over HTTP.

    python benchmarks/bare_graph.py HOME_OR_DATABASE offline|openai:loopback

POST /say {"thread", "text"} streams the reply's pieces as server-sent events, GET /story?thread=… returns what was
said. The first line that it prints is its address. It has no log-in, no memory, no notes and no page.
"""

from __future__ import annotations

import argparse
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

_PIECE = 40  # characters


class Echo(BaseChatModel):
    """Says in pieces, and at once, what was said to it and some prose: the peer's model without a model."""

    prose: str

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _text(self, messages: Any) -> str:
        return f"You say: {messages[-1].text} {self.prose * 3}"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self._text(messages)))])

    async def _astream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        text = self._text(messages)
        for start in range(0, len(text), _PIECE):
            yield ChatGenerationChunk(message=AIMessageChunk(text[start : start + _PIECE]))


@asynccontextmanager
async def _saver(place: str) -> AsyncIterator[Any]:
    if "://" not in place:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(str(Path(place) / "checkpoints.db")) as saver:
            yield saver
        return
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(place, max_size=10, kwargs=options) as pool:
        postgres = AsyncPostgresSaver(pool)  # type: ignore[arg-type]
        await postgres.setup()
        yield postgres


def app(place: str, model: Any) -> Starlette:
    """Return the app; `place`: a directory, or the URL of a database."""

    async def chat(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    @asynccontextmanager
    async def lifespan(served: Starlette) -> AsyncIterator[None]:
        async with _saver(place) as saver:
            builder = StateGraph(MessagesState).add_node(chat).add_edge(START, "chat")
            served.state.graph = builder.compile(checkpointer=saver)
            yield

    async def say(request: Request) -> Response:
        asked = await request.json()
        messages = {"messages": [{"role": "user", "content": asked["text"]}]}
        config = {"configurable": {"thread_id": asked["thread"]}}
        graph = request.app.state.graph

        async def lines() -> AsyncIterator[str]:
            async for piece, _ in graph.astream(messages, config, stream_mode="messages", durability="sync"):
                if isinstance(piece, AIMessageChunk) and piece.text:
                    yield f"event: piece\ndata: {json.dumps(piece.text)}\n\n"
            yield "event: pages\ndata: {}\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    async def story(request: Request) -> Response:
        config = {"configurable": {"thread_id": request.query_params["thread"]}}
        state = await request.app.state.graph.aget_state(config)
        return JSONResponse([message.text for message in state.values.get("messages", ()) if message.type == "human"])

    return Starlette(routes=[Route("/say", say, methods=["POST"]), Route("/story", story)], lifespan=lifespan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", help="a directory, or the URL of a database")
    parser.add_argument("model", help="offline, or openai:NAME")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    place, name = arguments.place, arguments.model
    if name == "offline":
        from loopback_model import PROSE

        model: Any = Echo(prose=PROSE)
    else:
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model=name.partition(":")[2], streaming=True)
    listener = socket.create_server(("127.0.0.1", arguments.port))
    print(f"The bare graph is at http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app(place, model), log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
