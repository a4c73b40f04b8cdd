"""Ours as middleware of `create_agent`: exchanges and facts, recalled before the model and written after the agent."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.forkbench.adapters.adapter import OUR_STORES, Adapter
from benchmarks.forkbench.bench import Bench
from benchmarks.forkbench.game import Agent
from questbook import FactNotes, LastTurns, TimelineMemoryMiddleware


def build(bench: Bench) -> Agent:
    """Make the agent with notes."""
    return build_with(bench, FactNotes())


def build_with(bench: Bench, notes: FactNotes | None) -> Agent:
    """Hand over what the person said as facts, when the middleware asks for them."""

    def answer(messages: list[BaseMessage], tools: tuple[str, ...]) -> AIMessage:
        if "Facts" not in tools:
            return bench.reply(messages)
        told = bench.facts_in(messages[-1].text)
        facts = [
            {"text": one.noted, "kind": "trait", "subject": subject, "attribute": attribute, "value": one.token}
            for one in told
            for subject, attribute in [one.slot.split("'s ")]
        ]
        return AIMessage("", tool_calls=[bench.call("Facts", facts=facts)]) if facts else AIMessage("no change")

    memory = TimelineMemoryMiddleware(user=bench.user, facts=notes, buffer=LastTurns(2))
    model = bench.model(answer)
    return Agent(create_agent(model, [], middleware=[memory], checkpointer=bench.saver, store=bench.store))


ADAPTER = Adapter("questbook, middleware", build, package="questbook", doc="docs/middleware.md", stores=OUR_STORES)
