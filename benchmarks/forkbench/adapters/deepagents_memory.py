"""deepagents' MemoryMiddleware: a file AGENTS.md of the user, in the store, which the agent edits with its tools."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.adapters.trimmed import trim
from benchmarks.forkbench.bench import Bench, results, unanswered
from benchmarks.forkbench.game import Agent

PATH = "/memories/AGENTS.md"


def build(bench: Bench) -> Agent:
    """Make a deep agent whose /memories/ lie in the store, under the user."""
    from deepagents import create_deep_agent
    from deepagents.backends import CompositeBackend, StateBackend, StoreBackend

    def answer(messages: list[BaseMessage], _: tuple[str, ...]) -> AIMessage:
        done = results(messages)
        told = {event.slot: event for event in bench.facts_in(unanswered(messages))}
        if not done:  # what the prompt shows was loaded when the thread began
            return AIMessage("", tool_calls=[bench.call("read_file", file_path=PATH)])
        if told and len(done) == 1:
            lines = [line.split("\t", 1)[-1] for line in done[0].text.splitlines() if ": " in line]
            lines = [] if "not found" in done[0].text else [line.strip() for line in lines]
            kept = [line for line in lines if line.partition(":")[0] not in told]
            content = "\n".join([*kept, *(event.noted for event in told.values() if not event.over)])
            args = {"file_path": PATH, "content": content}
            if lines:
                args = {"file_path": PATH, "old_string": "\n".join(lines), "new_string": content}
            return AIMessage("", tool_calls=[bench.call("edit_file" if lines else "write_file", **args)])
        return bench.reply(messages)

    memories = StoreBackend(namespace=lambda _: (bench.user, "filesystem"))
    graph = create_deep_agent(
        bench.model(answer),
        memory=[PATH],
        backend=CompositeBackend(default=StateBackend(), routes={"/memories/": memories}),
        middleware=[trim],
        checkpointer=bench.saver,
        store=bench.store,
    )
    return Agent(graph)


ADAPTER = Adapter(
    "deepagents' memory",
    build,
    package="deepagents",
    doc="deepagents' guide to long-term memory: memory=[…/AGENTS.md] on a StoreBackend",
    note="the file in the prompt is that of the thread's first turn, so the model reads the file in each turn",
    needs=("deepagents",),
)
