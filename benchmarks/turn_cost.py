"""What a turn costs as a campaign grows: CPU time, checkpoint bytes, prompt tokens and model calls, beside others.

    python benchmarks/turn_cost.py --quick       under two minutes: 200 turns of ours, 100 of the others
    python benchmarks/turn_cost.py               2,000 turns of ours, 500 of the others (about ten minutes)
    python benchmarks/turn_cost.py --only ours --turns 5000

Ours is the dungeon master as the terminal runs it (`graphs.engine`: SQLite checkpoints, FaissStore, default settings),
all nodes at work: dice every fourth turn; notes on the quest's page, two facts (where the graph asks for facts) and one
exchange into the store every turn; the buffer folded into the summary when it is full. The others are graphs as their
documentation shows them, on AsyncSqliteSaver as it comes. All are answered by one model of tables: replies of 600
characters to messages of about 80, no network.

Time is the process's CPU time (all threads), which other work on the machine hardly changes: the median turn of a
window. Bytes are what the database has grown by, and tokens what all prompts of the turn came to (four characters each,
`count_tokens_approximately`), both the mean of the window, so that what happens every tenth turn counts. Windows end at
turn 100 and at the last turn. Most others send the whole history, so that their cost goes up with every turn, and the
whole run's with its square: they are run for fewer turns. Each figure is one line `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
warnings.filterwarnings("ignore", category=DeprecationWarning)

from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import (  # noqa: E402
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    trim_messages,
)
from langchain_core.messages.tool import tool_call_chunk  # noqa: E402
from langchain_core.messages.utils import count_tokens_approximately  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult  # noqa: E402
from langgraph.channels import DeltaChannel  # noqa: E402
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: E402
from langgraph.graph import START, MessagesState, StateGraph  # noqa: E402
from langgraph.graph.message import add_messages  # noqa: E402
from pydantic import Field  # noqa: E402
from typing_extensions import TypedDict  # noqa: E402

import graphs.model  # noqa: E402
from graphs.dungeon_master.context import Context  # noqa: E402
from graphs.engine import open_game  # noqa: E402
from graphs.home import Home  # noqa: E402

REPLY_CHARS = 600
BUDGET = Context.model_fields["buffer_tokens"].default
DICE_EVERY = 4
SYLLABLES = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "or", "is", "el", "um")]
WORDS = ["".join(SYLLABLES[(rank * 7919 + 13) // 170**power % 170] for power in range(2)) for rank in range(5000)]
RARITY = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(WORDS))))

CITED = (
    ("LangMem, inline manager", "2 (3 with a query model), the reply among them"),
    ("mem0, add(infer=True)", "1 for each exchange that is added, beside the reply's own"),
)


def words(turn: int, salt: str, chars: int) -> str:
    """Return prose of made-up words, as frequent as words are, the same for the same turn."""
    dice, told = random.Random(f"{turn}/{salt}"), ""
    while len(told) < chars:
        sentence = " ".join(dice.choices(WORDS, cum_weights=RARITY, k=dice.randint(6, 14)))
        told += sentence.capitalize() + ". "
    return told[: chars - 1].rstrip() + "."


def said(turn: int) -> str:
    if turn == 1:
        return "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back."
    return "I go on and " + words(turn, "player", 68).lower()


def notes(turn: int) -> dict[str, Any]:
    """Return a patch as a model makes it: the scene, and now and then somebody new in the place of somebody old."""

    def entry(kind: str, number: int) -> str:
        return words(number, kind, 14).rstrip(".").title()

    patch: dict[str, Any] = {
        "scene": words(turn, "scene", 160),
        "gold": 10 + turn * 7 % 60,
        "facts": {entry("fact", turn): words(turn, "learnt", 70), entry("fact", turn - 18): None},
    }
    if turn % 3 == 0:
        patch |= {"location": entry("place", turn // 9), "clock": {"day": 1 + turn // 12, "time": "dusk"}}
    if turn % 5 == 0:
        new, old = entry("person", turn), entry("person", turn - 50)
        somebody = {"role": words(turn, "role", 20), "attitude": "wary", "last_seen": words(turn, "seen", 30)}
        patch |= {
            "people": {new: somebody, old: None},
            "inventory": {entry("item", turn): 1, entry("item", turn - 50): 0},
        }
    if turn % 20 == 0:
        quest = {"status": "open", "notes": words(turn, "quest", 80)}
        patch |= {"quests": {entry("quest", turn): quest, entry("quest", turn - 100): None}}
        patch |= {"secrets": {entry("secret", turn): words(turn, "hidden", 80), entry("secret", turn - 100): None}}
    return patch


def facts(turn: int) -> list[dict[str, Any]]:
    """Return what a model hands over as facts: two a turn, of which every seventh turn one ends an older one."""
    somebody = words(turn // 50, "person", 14).rstrip(".").title()
    event = {"text": words(turn, "event", 90), "subject": somebody, "kind": "event", "importance": 3 + turn % 5}
    place = words(turn // 7, "whereabouts", 14).rstrip(".")
    slot = {"attribute": "whereabouts", "value": place, "kind": "trait", "importance": 4}
    return [event, {"text": f"{somebody} is at {place}.", "subject": somebody, **slot}]


class Tables(BaseChatModel):
    """Answers by the tools that are bound: rolls now and then, notes always; without tools it tells 600 characters."""

    tools: tuple[str, ...] = ()
    spent: list[int] = Field(default_factory=list)
    jobs: list[str] = Field(default_factory=list)
    turn: list[int] = Field(default_factory=lambda: [0])

    @property
    def _llm_type(self) -> str:
        return "tables"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:  # noqa: ARG002
        """Bind tools: by them it knows its job."""
        bound = self.model_copy(update={"tools": tuple(tool["function"]["name"] for tool in tools)})
        bound.spent, bound.jobs, bound.turn = self.spent, self.jobs, self.turn
        return bound

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        turn = self.turn[0]
        self.spent.append(count_tokens_approximately(messages))
        self.jobs.append(self.tools[0] if self.tools else "")
        made: list[tuple[str, dict[str, Any]]] = []
        if "CharacterNotebook" in self.tools:
            page = {"name": "Mira", "ancestry": "halfling", "class": "rogue", "background": "grew up on the docks"}
            made = [("CharacterNotebook", {**page, "goal": "wants her sister back"})]
        elif "StateNotebook" in self.tools:
            made = [("StateNotebook", notes(turn))]
            if "Facts" in self.tools:
                made.append(("Facts", {"facts": facts(turn)}))
        elif "roll_dice" in self.tools and turn % DICE_EVERY == 0 and isinstance(messages[-1], HumanMessage):
            made = [("roll_dice", {"expression": "1d20+4", "reason": "to climb on", "dc": 12})]
        calls = [
            {"name": name, "args": args, "id": f"call_{turn}_{len(self.spent)}", "type": "tool_call"}
            for name, args in made
        ]
        return AIMessage("" if calls else words(turn, "reply", REPLY_CHARS), tool_calls=calls)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(
        self,
        messages: Any,
        stop: Any = None,  # noqa: ARG002
        run_manager: Any = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        texts = [answer.text[start : start + 40] for start in range(0, len(answer.text), 40)]
        chunks = [AIMessageChunk(text) for text in texts]
        for index, made in enumerate(answer.tool_calls):
            piece = tool_call_chunk(name=made["name"], args=json.dumps(made["args"]), id=made["id"], index=index)
            chunks.append(AIMessageChunk("", tool_call_chunks=[piece]))
        for message in chunks:
            chunk = ChatGenerationChunk(message=message)
            if run_manager:
                run_manager.on_llm_new_token(message.text, chunk=chunk)
            yield chunk


class Turn(NamedTuple):
    """What a turn took: CPU ms, bytes of checkpoints, bytes of the store, prompt tokens, model calls."""

    ms: float
    checkpoint: int
    store: int
    tokens: int
    calls: int


Play = Callable[[str], Awaitable[None]]


def size_of(path: Path) -> int:
    """Return a database's bytes: its pages, also those that still stand in the -wal."""
    if not path.exists():
        return 0
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        pages = database.execute("PRAGMA page_count").fetchone()[0] * database.execute("PRAGMA page_size").fetchone()[0]
    database.close()
    return int(pages)


async def run(model: Tables, play: Play, turns: int, checkpoints: Path, store: Path | None = None) -> list[Turn]:
    """Play turns and measure each."""
    measured = list[Turn]()
    for turn in range(1, turns + 1):
        model.turn[0] = turn
        calls, before = len(model.spent), (size_of(checkpoints), size_of(store) if store else 0)
        begun = time.process_time()
        await play(said(turn))
        ms = (time.process_time() - begun) * 1000
        grown = (size_of(checkpoints) - before[0], (size_of(store) if store else 0) - before[1])
        measured.append(Turn(ms, *grown, sum(model.spent[calls:]), len(model.spent) - calls))
    return measured


async def ours(model: Tables, turns: int, home: Path) -> list[Turn]:
    """The dungeon master as the terminal runs it."""
    graphs.model.load_chat_model = lambda *_, **__: model  # type: ignore[assignment]
    place = Home(home)
    place.locks.mkdir(parents=True)
    async with open_game(Context(model="tables", user="u", campaign="c", seed=1), place) as game:

        async def play(text: str) -> None:
            async for _ in game.send(text):
                pass

        measured = await run(model, play, turns, place.checkpoints, place.memory)
        saved = await game.saved()
    if saved is None or saved.turn != turns or saved.values["noted_through"] != turns:
        raise SystemExit(f"The game did not get through its {turns} turns: {saved}")
    jobs = {"roll_dice": "reply and rolls", "StateNotebook": "notes", "": "summary", "CharacterNotebook": "interview"}
    told = ", ".join(f"{jobs.get(job, job)} {count / turns:.2f}" for job, count in Counter(model.jobs).items())
    noted = [notice["text"] for notice in saved.values["notices"] if notice["turn"] > 1]
    print(f"# ours: the quest's page has {len(saved.quest.render()):,} characters of {saved.quest.LIMIT:,}", end="")
    print(f"; notices: {noted}" if noted else "")
    print(f"# ours: model calls a turn over the whole game: {told}")
    return measured


Compiled = Any
Builder = Callable[[Tables, Any], Compiled]


def plain(model: Tables, saver: Any) -> Compiled:
    """A chatbot as in LangGraph's introduction: the whole history in state and prompt."""

    async def chat(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node(chat).add_edge(START, "chat").compile(checkpointer=saver)


def trimming(model: Tables, saver: Any) -> Compiled:
    """The same, with trim_messages before the prompt; the state keeps everything."""

    async def chat(state: MessagesState) -> dict[str, Any]:
        latest = trim_messages(
            state["messages"],
            max_tokens=BUDGET,
            token_counter=count_tokens_approximately,
            strategy="last",
            start_on="human",
        )
        return {"messages": [await model.ainvoke(latest)]}

    return StateGraph(MessagesState).add_node(chat).add_edge(START, "chat").compile(checkpointer=saver)


def _all(state: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    for update in writes:
        state = add_messages(state, update)  # type: ignore[assignment,arg-type]
    return state


class DeltaState(TypedDict):
    """Messages of which a checkpoint keeps what was added."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_all)]


def delta(model: Tables, saver: Any) -> Compiled:
    """The plain chatbot with a DeltaChannel (beta in LangGraph 1.2) for its messages."""

    async def chat(state: DeltaState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(DeltaState).add_node(chat).add_edge(START, "chat").compile(checkpointer=saver)


def summarising(model: Tables, saver: Any) -> Compiled:
    """LangChain's create_agent with its SummarizationMiddleware, at the budget that ours has."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware

    middleware = SummarizationMiddleware(model, trigger=("tokens", BUDGET), keep=("messages", 20))
    return create_agent(model, [], middleware=[middleware], checkpointer=saver)


class BotState(MessagesState):
    """State of OpenGPTs' dungeon master."""

    character: str
    state: str


def opengpts(model: Tables, saver: Any) -> Compiled:
    """OpenGPTs' dungeon master (2023): a reply, then an update; the history holds all, also the updates."""
    told = "You are a dungeon master leading one player on a quest. Character: {}. The state of the quest: {}"

    def prompt(state: BotState) -> list[AnyMessage]:
        system = SystemMessage(told.format(state.get("character", "Mira, a halfling rogue"), state.get("state")))
        return [system, *state["messages"]]

    async def execute(state: BotState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(prompt(state))]}

    async def update_state(state: BotState) -> dict[str, Any]:
        asked = [*prompt(state), HumanMessage("Update the notebook if needed, otherwise just say no.")]
        noted = (await model.ainvoke(asked)).text
        call = {"name": "StateNotebook", "arguments": json.dumps({"state": noted})}
        return {"messages": [AIMessage("", additional_kwargs={"function_call": call})], "state": noted}

    graph = StateGraph(BotState).add_node(execute).add_node(update_state)
    return graph.add_edge(START, "execute").add_edge("execute", "update_state").compile(checkpointer=saver)


async def peer(build: Builder, model: Tables, turns: int, home: Path) -> list[Turn]:
    """One of the others, on LangGraph's checkpointer for SQLite."""
    await asyncio.to_thread(home.mkdir, parents=True)
    checkpoints = home / "checkpoints.db"
    async with AsyncSqliteSaver.from_conn_string(str(checkpoints)) as saver:
        graph, config = build(model, saver), {"configurable": {"thread_id": "1"}}

        async def play(text: str) -> None:
            async for _ in graph.astream({"messages": [("user", text)]}, config, stream_mode="updates"):
                pass

        return await run(model, play, turns, checkpoints)


PEERS: dict[str, Builder] = {
    "full history": plain,
    "trim_messages": trimming,
    "DeltaChannel": delta,
    "SummarizationMiddleware": summarising,
    "OpenGPTs' shape": opengpts,
}


class Cost(NamedTuple):
    """The cost of a turn: CPU ms, KB of checkpoints and of the store, prompt tokens, model calls."""

    ms: float
    kb: float
    store_kb: float
    tokens: float
    calls: float


def cost(turns: Sequence[Turn], last: int, window: int) -> Cost:
    """Say what a turn costs in the window that ends at turn `last`."""
    taken = turns[max(0, last - window) : last]
    mean = {name: statistics.fmean(getattr(turn, name) for turn in taken) for name in Turn._fields}
    ms = statistics.median(turn.ms for turn in taken)
    return Cost(ms, mean["checkpoint"] / 1024, mean["store"] / 1024, mean["tokens"], mean["calls"])


def table(names: Sequence[str], measured: dict[str, list[Turn]], window: int) -> None:
    print("\n| | turns | CPU ms | checkpoint KB | store KB | prompt tokens | model calls |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        turns = measured[name]
        for last in sorted({min(100, len(turns)), len(turns)}):
            c = cost(turns, last, window)
            figures = f"{c.ms:.1f} | {c.kb:.1f} | {c.store_kb:.1f} | {c.tokens:,.0f} | {c.calls:.2f}"
            print(f"| {name} | {last:,} | {figures} |")


def figures(name: str, turns: Sequence[Turn], window: int) -> None:
    at, last = min(100, len(turns)), len(turns)
    first, then = cost(turns, at, window), cost(turns, last, window)
    key = name.replace("'", "").replace(" ", "_")
    for field, unit in (("ms", "ms"), ("kb", "KB"), ("tokens", "tokens"), ("calls", "calls")):
        print(f"turn_cost_{key}_{field}_turn_{at}: {getattr(first, field):.2f} {unit}")
        if last != at:
            print(f"turn_cost_{key}_{field}_turn_{last}: {getattr(then, field):.2f} {unit}")
            print(f"turn_cost_{key}_{field}_growth: {getattr(then, field) / getattr(first, field):.3f} times")


async def measure(arguments: argparse.Namespace) -> dict[str, list[Turn]]:
    measured = dict[str, list[Turn]]()
    for name in ["ours", *PEERS]:
        if arguments.only and name not in arguments.only:
            continue
        turns = arguments.turns if name == "ours" else arguments.peer_turns
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            begun, home = time.perf_counter(), Path(directory) / "home"
            model = Tables()
            if name == "ours":
                measured[name] = await ours(model, turns, home)
            else:
                measured[name] = await peer(PEERS[name], model, turns, home)
            size = size_of(home / "checkpoints.db") / 2**20
        print(
            f"# {name}: {turns:,} turns, {size:,.0f} MB of checkpoints, {time.perf_counter() - begun:.0f} s", flush=True
        )
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000, help="turns of ours (default: 2,000)")
    parser.add_argument("--peer-turns", type=int, default=500, help="turns of the others (default: 500)")
    parser.add_argument("--quick", action="store_true", help="200 and 100 turns")
    parser.add_argument("--only", nargs="+", choices=["ours", *PEERS], help="run only these")
    parser.add_argument("--directory", help="where to put the databases meanwhile (default: the system's)")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.turns, arguments.peer_turns = 200, 100
    window = min(50, arguments.turns // 2, arguments.peer_turns // 2)
    measured = asyncio.run(measure(arguments))
    print(f"\nWindows of {window} turns. Counted here: the model's calls in a turn; dice every {DICE_EVERY}th turn.")
    table(list(measured), measured, window)
    print("\nModel calls of others, cited from their code and documentation, not measured here:")
    for name, calls in CITED:
        print(f"| {name} | {calls} |")
    print()
    for name, turns in measured.items():
        figures(name, turns, window)


if __name__ == "__main__":
    main()
