"""What memory adds to a turn of an agent of `langchain.agents.create_agent`: CPU time and model calls.

    python benchmarks/middleware_cost.py             200 turns of each agent, five times; about two minutes
    python benchmarks/middleware_cost.py --turns 50 --rounds 1

Agents: `bare`; with LangChain's `SummarizationMiddleware`; with ours (`TimelineMemoryMiddleware`, and once more with
tools and facts); and with LangMem's tools inline, if it is installed (`pip install langmem`). All are answered by one
model of tables: replies of 600 characters to messages of about 80, no network; it calls what tools the agent has as an
agent has to that keeps each turn: LangMem's search, then its manage tool, then the answer. The summary is made without
a model. Checkpoints are LangGraph's InMemorySaver; stores are InMemoryStore without vectors and, for ours, FaissStore.

CPU is the process's (all threads), which other work on the machine hardly changes: the median over the turns of a
round, the least of the rounds. Each agent keeps at most the last 20 messages in its thread, so that turns are alike.
Each figure is one line `name: value unit`.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from langchain.agents import create_agent  # noqa: E402
from langchain.agents.middleware import SummarizationMiddleware, before_model  # noqa: E402
from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.store.memory import InMemoryStore  # noqa: E402
from pydantic import Field  # noqa: E402
from tables import words  # noqa: E402

from questbook import FactNotes, FaissStore, TimelineMemoryMiddleware  # noqa: E402

KEPT = 20  # messages in the thread
AIM = 12.0  # ms over bare


class Model(BaseChatModel):
    """Answers with prose; before that it calls each of `calls` once, one a round."""

    calls: list[tuple[str, Callable[[str], dict[str, Any]]]] = Field(default_factory=list)
    count: list[int] = Field(default_factory=lambda: [0])

    @property
    def _llm_type(self) -> str:
        return "prose"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Return the model that answers with these tools."""
        names = [tool["function"]["name"] if isinstance(tool, dict) else tool.name for tool in tools]
        if names == ["Facts"]:
            return Noting.model_construct(count=self.count)
        return self

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        self.count[0] += 1
        done = next(
            n for n, message in enumerate(reversed(messages)) if not isinstance(message, AIMessage | ToolMessage)
        )
        said, number = messages[-1 - done].text, done // 2
        if number < len(self.calls):
            name, arguments = self.calls[number]
            call = {"name": name, "args": arguments(said), "id": f"call-{self.count[0]}", "type": "tool_call"}
            message = AIMessage("", tool_calls=[call])
        else:
            message = AIMessage(words(self.count[0], "reply", 600))
        return ChatResult(generations=[ChatGeneration(message=message)])


class Noting(Model):
    """Notes one fact of each turn."""

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        self.count[0] += 1
        fact = {"text": words(self.count[0], "fact", 60), "subject": "the user", "attribute": f"trait {self.count[0]}"}
        call = {"name": "Facts", "args": {"facts": [fact]}, "id": "facts", "type": "tool_call"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[call]))])


class Measured(NamedTuple):
    """CPU of a turn in ms, and calls of the model."""

    cpu: float
    calls: float


@before_model
def trim(state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG001 (LangChain passes both)
    """Keep the last messages, from a person's on."""
    messages = state["messages"]
    if len(messages) <= KEPT or messages[-1].type != "human":
        return None
    last = next(n for n, message in enumerate(messages) if n >= len(messages) - KEPT and message.type == "human")
    return {"messages": [RemoveMessage(id=message.id) for message in messages[:last]]}


def measure(agent: Any, model: Model, turns: int) -> Measured:
    """Play the turns on a new thread."""
    config = {"configurable": {"thread_id": str(random.random())}}
    spent = []
    before = model.count[0]
    gc.collect()
    for turn in range(turns):
        message = {"messages": [("user", words(turn, "player", 80))]}
        start = time.process_time()
        agent.invoke(message, config)
        spent.append(1000 * (time.process_time() - start))
    return Measured(statistics.median(spent), (model.count[0] - before) / turns)


def agents(files: ExitStack) -> dict[str, tuple[Any, Model]]:
    """Make each agent with its model."""
    made: dict[str, tuple[Any, Model]] = {}

    def add(name: str, middleware: Sequence[Any], store: Any = None, tools: Sequence[Any] = (), **options: Any) -> None:
        model = Model(**options)
        made[name] = (
            create_agent(
                model,
                list(tools),
                middleware=[*middleware, *([] if name == "summarization" else [trim])],
                checkpointer=InMemorySaver(),
                store=store or InMemoryStore(),
            ),
            model,
        )

    def faiss() -> FaissStore:
        directory = files.enter_context(tempfile.TemporaryDirectory())
        return files.enter_context(FaissStore.open(Path(directory) / "m.db"))

    summary = SummarizationMiddleware(
        Model(), trigger=("messages", KEPT), keep=("messages", KEPT // 2), summarizer=lambda _: "They talked."
    )
    add("bare", [])
    add("summarization", [summary])
    add("ours", [TimelineMemoryMiddleware(user="ann")])
    add("ours_faiss", [TimelineMemoryMiddleware(user="ann")], faiss())
    full = TimelineMemoryMiddleware(user="ann", tools=True, facts=FactNotes())
    add("ours_faiss_with_facts", [full], faiss())
    if importlib.util.find_spec("langmem") is None:
        print("# langmem is not installed (`pip install langmem`): its figures are left out")
    else:
        from langmem import create_manage_memory_tool, create_search_memory_tool  # type: ignore[import-not-found]

        tools = [
            factory(namespace=("ann", "memories")) for factory in (create_search_memory_tool, create_manage_memory_tool)
        ]
        keep = ("manage_memory", lambda said: {"action": "create", "content": said})
        add("langmem_inline", [], InMemoryStore(), tools, calls=[("search_memory", lambda said: {"query": said}), keep])
    return made


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=200, help="turns of a round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each agent")
    options = parser.parse_args()
    best: dict[str, Measured] = {}
    for number in range(options.rounds):
        with ExitStack() as files:
            for name, (agent, model) in agents(files).items():
                if not number:
                    measure(agent, model, 5)  # what is loaded and compiled at first use
                measured = measure(agent, model, options.turns)
                best[name] = min(best.get(name, measured), measured)
    for name, (cpu, calls) in best.items():
        print(f"middleware_cost_{name}_cpu: {cpu:.2f} ms/turn")
        print(f"middleware_cost_{name}_model_calls: {calls:.2f} calls/turn")
    if "langmem_inline" in best:
        saved = best["langmem_inline"].calls - best["ours"].calls
        print(f"middleware_cost_calls_saved_beside_langmem: {saved:.2f} calls/turn")
    over = best["ours"].cpu - best["bare"].cpu
    print(f"# aim: at most {AIM:g} ms over bare")
    print(f"middleware_cost_over_bare: {over:.2f} ms/turn")


if __name__ == "__main__":
    main()
