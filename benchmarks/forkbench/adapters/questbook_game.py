"""Ours as the game: the dungeon master, its facts noted after each reply."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.forkbench.adapters.adapter import OUR_STORES, Adapter
from benchmarks.forkbench.bench import Bench
from benchmarks.forkbench.game import Agent
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph

MIRA = {
    "name": "Mira",
    "ancestry": "halfling",
    "class": "rogue",
    "background": "grew up on the docks",
    "goal": "find her sister",
}


def build(bench: Bench) -> Agent:
    """Let the model interview, tell, and hand over as facts what the person said; few turns stand in its prompt."""

    def answer(messages: list[BaseMessage], tools: tuple[str, ...]) -> AIMessage:
        if "CharacterNotebook" in tools:
            return AIMessage("", tool_calls=[bench.call("CharacterNotebook", **MIRA)])
        if "Facts" in tools:
            facts = [
                {"text": one.noted, "kind": "trait", "subject": subject, "attribute": attribute, "value": one.token}
                for one in bench.facts_in(messages[-1].text)
                for subject, attribute in [one.slot.split("'s ")]
            ]
            return AIMessage("", tool_calls=[bench.call("Facts", facts=facts)]) if facts else AIMessage("no change")
        if "roll_dice" in tools:
            return bench.reply(messages)
        return AIMessage("no change")

    class Scripted(Context):
        CHAT_MODEL = bench.model(answer)

    context: Any = Scripted(user=bench.user, campaign="forkbench", buffer_tokens=200, recall_tokens=4000)
    graph = build_graph().compile(checkpointer=bench.saver, store=bench.store)
    return Agent(graph, context, "I'm Mira, a halfling rogue who grew up on the docks and looks for her sister.")


ADAPTER = Adapter(
    "questbook, the game",
    build,
    package="questbook",
    doc="docs/embedding.md",
    stores=OUR_STORES,
)
