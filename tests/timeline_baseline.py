"""The timeline model's baseline: the same moves on a graph that remembers as most do."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.store.base import SearchItem
from timeline_model import WORDS, CrashError, Place, exchanges_of
from timeline_moves import World

from questbook.memory.buffer.policies import split_turns, turn_text


class PlainState(TypedDict):
    """State of the baseline."""

    messages: Annotated[list[AnyMessage], add_messages]
    quest: dict[str, Any]


class PlainWorld(World):
    """The baseline: the same moves on a graph whose remember-node puts each exchange under a new key, as most do."""

    def compiled(self) -> Any:
        async def recall(state: PlainState) -> dict[str, Any]:
            return {}

        async def run_quest(state: PlainState) -> dict[str, Any]:
            return {"messages": [self._reply().model_copy(update={"id": str(uuid.uuid4())})]}

        async def update_state(state: PlainState) -> dict[str, Any]:
            return {"quest": {"location": self.random.choice(WORDS)}}

        async def remember(state: PlainState, runtime: Runtime[Any]) -> dict[str, Any]:
            turns = split_turns(state["messages"], 0)
            said, reply = turn_text(turns[-1][1])
            assert runtime.store is not None
            value = {"text": f"{said}\n{reply}", "turn": len(turns), "player": said, "reply": reply}
            await runtime.store.aput(self.exchanges, str(uuid.uuid4()), value)
            return {}

        async def condense(state: PlainState) -> dict[str, Any]:
            return {}

        def faulty(name: str, function: Any) -> Any:
            if name == "remember":

                async def storing(state: PlainState, runtime: Runtime[Any]) -> Any:
                    await self._at(name, "before")
                    try:
                        await function(state, runtime)
                    except CrashError:
                        return {}
                    await self._at(name, "after")
                    return {}

                return storing

            async def node(state: PlainState) -> Any:
                await self._at(name, "before")
                result = await function(state)
                await self._at(name, "after")
                return result

            return node

        builder = StateGraph(PlainState)
        nodes = [recall, run_quest, update_state, remember, condense]
        for node in nodes:
            builder.add_node(node.__name__, faulty(node.__name__, node))
        names = [START, *(node.__name__ for node in nodes), END]
        for one, other in itertools.pairwise(names):
            builder.add_edge(one, other)
        return builder.compile(checkpointer=self.saver, store=self.store)

    async def seen(self, place: Place) -> list[SearchItem]:
        return await self.store.asearch(self.exchanges, limit=1000)

    async def recalled(self, place: Place, query: str) -> list[str]:
        return [item.key for item in await self.store.asearch(self.exchanges, query=query, limit=12)]

    async def faults(self, place: Place) -> Counter[str]:
        """As for ours, but turns are not numbered alike in a thread without a past: what was told is compared."""
        seen = Counter((item.value["player"], item.value["reply"]) for item in await self.seen(place))
        due = {(one.player, one.reply) for one in exchanges_of(place.stored)}
        return Counter(
            leaked=sum(1 for told in seen if told not in due),
            missing=sum(1 for told in due if told not in seen),
            doubled=sum(count - 1 for count in seen.values()),
        )
