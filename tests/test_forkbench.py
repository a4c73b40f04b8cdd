"""ForkBench: its oracle sees each fault, ours have none in games of each kind, and wrong memories are caught."""

import random
import sys

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from benchmarks.forkbench import report
from benchmarks.forkbench.adapters import load_adapter, plain_node
from benchmarks.forkbench.adapters.adapter import Adapter
from benchmarks.forkbench.bench import Bench, CrashError, own_words, window
from benchmarks.forkbench.game import KINDS, Agent, Game
from benchmarks.forkbench.oracle import Oracle, Place
from benchmarks.forkbench.stores import STORES, missing_for, open_empty
from benchmarks.forkbench.worlds import ASKED, Event, ToldWorld, tokens
from questbook import HashEmbeddings

RED = Event("Oda's lamp", "Redibo", "From now on Oda's lamp is called Redibo.", "Oda's lamp: Redibo")
BLUE = Event("Oda's lamp", "Blumota", "From now on Oda's lamp is called Blumota.", "Oda's lamp: Blumota")
OTHER = Event("Ilse's horse", "Horvale", "From now on Ilse's horse is called Horvale.", "Ilse's horse: Horvale")


def memory_store():
    embed = HashEmbeddings()
    return InMemoryStore(index={"embed": embed, "dims": embed.dims, "fields": ["$"]})


async def played(build, kind, games=1, first=0):
    """Play games of a kind; return the sum of their faults."""
    whole = report.Counter()
    for seed in range(first, first + games):
        bench = Bench(memory_store(), "ann", seed)
        whole += await Game(build(bench), bench, ToldWorld(), kind, seed).play()
    return whole


def faults(counts):
    return {name: counts[name] for name in (*report.MEASURES, "broken") if counts[name]}


# The oracle


def judged(memory, *told, asked="Oda's lamp", talk=(), elsewhere=(), heard=()):
    """What is wrong with a prompt of a thread that was told something, and shows a memory."""
    bench = Bench(memory_store(), "ann")
    bench.events |= {event.token: event for event in (RED, BLUE, OTHER)}
    bench.heard |= {"Replyto", *heard}
    oracle, world = Oracle(bench), ToldWorld()
    world._slots = {event.slot: event for event in told}
    oracle.heads["2"] = [Place(None, ToldWorld(), "2", tuple(elsewhere))]
    prompt = [SystemMessage(memory), *map(HumanMessage, talk), HumanMessage(ASKED.format(asked))]
    oracle.judge(prompt, Place(None, world, "1", tuple(told), frozenset(heard)), asked, ())
    return faults(oracle.faults)


def test_what_this_checkpoint_was_told_is_no_fault():
    assert judged(f"{RED.said}\n{BLUE.said}", RED, BLUE) == {}
    assert judged(BLUE.noted, RED, BLUE) == {}
    assert judged("", RED, talk=[RED.said]) == {}, "the conversation has it"


def test_what_was_never_told_here_is_leaked_wherever_it_comes_from():
    assert judged(f"{RED.said}\n{OTHER.noted}", RED) == {"leaked": 1}
    assert judged(f"{RED.said} The day is Replyto.", RED) == {"leaked": 1}, "a reply that was discarded"
    assert judged(f"{RED.said} The day is Replyto.", RED, heard=["Replyto"]) == {}
    assert judged(f"{RED.said}\n{OTHER.said}", RED, elsewhere=[OTHER]) == {}, "another thread may have told it"


def test_what_is_asked_about_and_nowhere_shown_is_missing():
    assert judged(OTHER.said, OTHER, RED) == {"missing": 1}
    assert judged("", RED._replace(over=True)) == {}, "there is nothing to tell of what is gone"
    assert judged("", RED, elsewhere=[BLUE]) == {}, "which of two threads is right is not asked"


def test_the_same_sentence_again_is_there_twice():
    assert judged(f"{RED.said}\n{RED.said}", RED) == {"twice": 1}
    assert judged(f"{RED.said}\n{RED.noted}", RED) == {}, "what was said, and what was noted of it"


def test_an_earlier_value_without_the_present_one_is_outdated():
    assert judged(RED.said, RED, BLUE) == {"missing": 1, "outdated": 1}
    assert judged(f"{RED.noted}\n{BLUE.noted}", RED, BLUE) == {"outdated": 1}, "two notes of one thing"
    assert judged(RED.noted, RED, BLUE, talk=[BLUE.said]) == {}, "the conversation corrects it"
    assert judged(RED.said, RED, BLUE._replace(over=True)) == {"outdated": 1}


def test_results_of_tools_count_each_by_itself():
    bench = Bench(memory_store(), "ann")
    bench.events[RED.token] = RED
    oracle, world = Oracle(bench), ToldWorld()
    world._slots[RED.slot] = RED
    call = AIMessage(
        "", tool_calls=[{"name": "search", "args": {}, "id": "1"}, {"name": "search", "args": {}, "id": "2"}]
    )
    results = [ToolMessage(RED.noted, tool_call_id=number) for number in "12"]
    oracle.judge([HumanMessage("?"), call, *results], Place(None, world, "1", (RED,)), RED.slot, ())
    assert faults(oracle.faults) == {}


def test_worlds_are_forked_and_words_are_never_told_twice():
    dice, words = random.Random(1), tokens(3)
    world = ToldWorld()
    first = world.tell(dice, next(words))
    other = world.copy()
    changed = first
    while changed.slot != first.slot or changed is first:
        changed = other.tell(dice, next(words))
    assert (world.current(first.slot), other.current(first.slot)) == (first, changed)
    some = [next(words) for _ in range(5000)]
    assert len(set(some)) == 5000
    assert {len(word) for word in some} == {6}, "none is part of another"


# Ours


@pytest.mark.parametrize(
    "kind", [kind if kind in ("fork", "crash") else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
async def test_ours_goes_back_with_the_checkpoint(kind):
    """One game of each kind, by turns on each of ours; the slow tests play more."""
    name = ("questbook_middleware", "questbook_graph", "questbook_graph")[KINDS.index(kind) % 3]
    counts = await played(load_adapter(name).build, kind)
    assert counts["asked"] > 5
    assert faults(counts) == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", [88, 7])
async def test_in_games_of_several_threads(first):
    """In one, twelve turns had asked what the person asks; in the other, other threads are told much that is new."""
    counts = await played(load_adapter("questbook_middleware").build, "thread", first=first)
    assert counts["asked"] > 5
    assert (faults(counts), counts["moved"]) == ({}, 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_all_of_ours_go_back_with_the_checkpoint(kind):
    for name in ("questbook_middleware", "questbook_graph", "questbook_game"):
        assert faults(await played(load_adapter(name).build, kind)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["questbook_middleware", "questbook_graph", "questbook_game"])
@pytest.mark.parametrize("store", [name for name in STORES if name != "InMemoryStore"])
async def test_ours_on_a_store(name, store, tmp_path):
    if reason := missing_for(store):
        pytest.skip(f"{store} needs {reason}")
    adapter = load_adapter(name)
    async with open_empty(store, tmp_path) as opened:
        for kind in ("crash", "parallel", "mixed"):
            assert faults(await report.play(adapter, opened, "told", kind, 3)) == {}


@pytest.mark.slow
async def test_textworld_agrees_with_the_oracle():
    pytest.importorskip("textworld")
    adapter = load_adapter("questbook_graph")
    for kind in ("fork", "mixed"):
        assert faults(await report.play(adapter, memory_store(), "textworld", kind, 1)) == {}


# Memories that are wrong


async def test_a_memory_that_leaks_is_caught_where_there_are_forks_and_nowhere_else():
    leaks = {kind: (await played(plain_node.build, kind))["leaked"] for kind in ("play", "rewind", "retry", "parallel")}
    assert not leaks.pop("play")
    assert all(leaks.values())


def build_with(remember):
    """An app that shows all that `remember` has written about an exchange."""

    def build(bench):
        model = bench.model(lambda messages, _: bench.reply(messages))

        async def chat(state: MessagesState):
            shown = "\n".join(item.value["text"] for item in await bench.store.asearch((bench.user,), limit=100))
            reply = await model.ainvoke([SystemMessage(shown), *window(state["messages"])])
            for key, text in remember(bench, state["messages"][-1].text):
                await bench.store.aput((bench.user,), key, {"text": text})
            return {"messages": [reply]}

        graph = StateGraph(MessagesState).add_node(chat).add_edge(START, "chat")
        return Agent(graph.compile(checkpointer=bench.saver, store=bench.store))

    return build


@pytest.mark.parametrize(
    ("fault", "remember"),
    [
        ("missing", lambda bench, text: []),
        ("twice", lambda bench, text: [(f"{text} {copy}", text) for copy in "ab"]),
        ("outdated", lambda bench, text: [(one.token, one.noted) for one in bench.facts_in(text)]),
    ],
)
async def test_a_memory_that_is_wrong_is_caught_without_any_fork(fault, remember):
    counts = await played(build_with(remember), "play", 3)
    assert counts[fault]
    assert not counts["leaked"]


async def test_a_memory_that_changes_its_mind_is_caught():
    def forgetful(bench, text):
        return [(str(len(bench.events) % 4), text)]

    assert (await played(build_with(forgetful), "play", 2))["broken"]


async def test_an_app_that_is_never_judged_is_refused():
    def build(bench):
        async def chat(state: MessagesState):
            return {"messages": [AIMessage("Yes.")]}

        graph = StateGraph(MessagesState).add_node(chat).add_edge(START, "chat")
        return Agent(graph.compile(checkpointer=bench.saver, store=bench.store))

    with pytest.raises(RuntimeError, match="nothing was judged"):
        await played(build, "play")


# What is done to an app


async def test_a_crash_writes_no_more():
    bench, app = Bench(memory_store(), "ann", 1), None
    app = plain_node.build(bench)
    game = Game(app, bench, ToldWorld(), "crash", 1)
    deaths = []
    after = game._after_crash

    async def counted(*given):
        deaths.append(bench.fuse.count)
        with pytest.raises(CrashError):
            await bench.store.aput(("ann",), "late", {"text": "late"})
        return await after(*given)

    game._after_crash = counted
    await game.play()
    assert deaths
    assert len(game.places) > len(deaths), "it was gone on from"


def test_what_is_not_installed_is_left_out_and_named(monkeypatch, capsys):
    module = type(sys)("some_memory")
    module.ADAPTER = Adapter("another", plain_node.build, "another", "its guide", needs=("no_such_package",))
    monkeypatch.setitem(sys.modules, "some.memory", module)
    assert report.jobs_of(["some.memory"], ["InMemoryStore"], ["told"], 9, KINDS) == []
    assert "another is left out: no_such_package is not installed" in capsys.readouterr().out


async def test_the_table_says_what_was_wrong(capsys):
    job = report.Job("plain_node", "InMemoryStore", ("told",), 2, ("rewind",))
    lines = report.report([(job, await report.play_all(job))])
    figure = next(line for line in lines if line.startswith("leaked, remember-node, InMemoryStore: "))
    leaked = int(figure.split(": ")[1].removesuffix(" faults"))
    assert leaked > 0
    assert f"{leaked:>9}" in capsys.readouterr().out


def test_own_words_are_without_what_a_memory_put_before_them():
    assert own_words(HumanMessage("<memories>\nx\n</memories>\n<message>\nHello")) == "Hello"
    assert own_words(HumanMessage("Hello")) == "Hello"
