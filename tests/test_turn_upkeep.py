"""Nothing keeps the person waiting after the reply: upkeep gives way to the next message, and loses nothing."""

import asyncio
import threading
import time
from contextlib import aclosing, asynccontextmanager

import pytest
from conftest import MIRA
from desk import Desk, TicketNotebook, note
from fact_play import stored
from langgraph.runtime import ExecutionInfo, Runtime, ServerInfo
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from reflecting import DEBT, FAIR, INSIGHT, MILL, ask, conclude, insights, queue_client
from scripted import call, say

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.events import NodeStart, Notice, ReplyPiece
from questbook.graphs.local.game import Run, open_game
from questbook.graphs.turn import node
from questbook.graphs.turn.node import GaveWay, give_way

LONG = "The road goes on and on. " * 25
MOST = 2.0
"""Seconds that a message may wait for what follows the reply before it."""
BUSY = 10.0
"""Seconds that it may take on a busy machine; who waits for what hangs waits for thirty."""


@pytest.fixture(autouse=True)
def patience(request, monkeypatch):
    if "real_patience" not in request.fixturenames:
        monkeypatch.setattr("questbook.graphs.turn.node.PATIENCE", 0.6)


@pytest.fixture
def real_patience():
    """Wait as long as a person has to."""


@pytest.fixture
async def hang():
    """Make an answer of a model that comes when the test is over."""
    hanging = Hanging()
    yield hanging
    hanging.over.set()


class Hanging:
    """Makes answers of a model that come when the test is over; `asked` waits until the model has been asked."""

    def __init__(self):
        self.over, self._asked = threading.Event(), threading.Event()

    def __call__(self, late):
        def wait(_messages):
            self._asked.set()
            self.over.wait(30)
            return late

        return wait

    async def asked(self):
        assert await asyncio.to_thread(self._asked.wait, 20)


def opened(**settings):
    return open_game(Context.of(None, model="scripted", seed=7, **settings))


async def told(events):
    """Read a turn until the reply is complete, as the terminal does; return the reply."""
    words = ""
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, NodeStart) and event.upkeep:
                break
            words += event.text if isinstance(event, ReplyPiece) else ""
    return words


async def all_of(events):
    return [event async for event in events]


@asynccontextmanager
async def begun(model, **settings):
    async with opened(**settings) as game:
        model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        model.queue("update", say("", call("StateNotebook", scene="An inn at dusk.", location="The Bent Nail")))
        await all_of(game.send("I'm Mira."))
        yield game


async def values_of(game):
    return dict((await game.saved_game()).values)


def test_a_person_waits_two_seconds_at_most(real_patience):
    """On a server's thread, too, where the queue is looked at now and then. What a busy machine adds does not count."""
    assert node.PATIENCE + node._POLL <= MOST


@pytest.mark.slow
async def test_notes_give_way_to_the_next_message_and_are_made_with_it(model, hang, real_patience):
    async with begun(model) as game:
        model.queue("quest", say("You find ten crowns."), say("Goran nods."))
        model.queue("update", hang(say("", call("StateNotebook", gold=99))))
        assert await told(game.send("I look under the bed.")) == "You find ten crowns."
        await hang.asked()
        assert (await values_of(game))["noted_through"] == 1
        model.queue("update", say("", call("StateNotebook", gold=10, people={"Goran": {"role": "smith"}})))
        start = time.monotonic()
        events = game.send("I greet Goran.")
        await anext(events)
        assert time.monotonic() - start < BUSY
        await all_of(events)
        values = await values_of(game)
    assert (values["noted_through"], values["remembered_through"], values["turn"]) == (3, 3, 3)
    assert values["quest"]["gold"] == 10
    asked = model.asked("update")[-1][-1].text
    assert "ten crowns" in asked
    assert "Goran nods." in asked
    assert values["notices"] == [], "nothing went wrong"


@pytest.mark.slow
async def test_memory_follows_the_checkpoint_where_notes_gave_way(model, hang):
    async with begun(model) as game:
        model.queue("quest", say("You find ten crowns."), say("It rains."), say("It snows."))
        model.queue("update", hang(say("")))
        await told(game.send("I look under the bed."))
        await hang.asked()
        model.queue("update", say("", call("StateNotebook", objective="Spend them.")))
        await all_of(game.send("I go out."))
        assert (await values_of(game))["quest"]["objective"] == "Spend them."
        await (await game.history()).undo(1)
        values = await values_of(game)
        assert (values["turn"], values["noted_through"], values["quest"]["objective"]) == (2, 1, "")
        model.queue("update", say("", call("StateNotebook", objective="Save them.")))
        await all_of(game.send("I stay in."))
        values = await values_of(game)
    assert (values["noted_through"], values["quest"]["objective"]) == (3, "Save them.")
    asked = model.asked("update")[-1][-1].text
    assert ("ten crowns" in asked, "It rains." in asked) == (True, False), "an abandoned turn"


@pytest.mark.slow
async def test_a_summary_gives_way_and_the_next_one_has_it_all(model, hang):
    async with begun(model, buffer_tokens=300) as game:
        model.queue("quest", *(say(f"Mile {mile}. {LONG}") for mile in range(1, 4)))
        model.queue("condense", hang(say("Too late.")))
        await all_of(game.send("I walk."))
        await told(game.send("I walk on."))
        await hang.asked()
        before = await values_of(game)
        assert "summary" not in before
        model.queue("condense", say("They walked for miles."))
        await all_of(game.send("Still on."))
        values = await values_of(game)
    assert (values["summary"], values["summarised_through"] >= 2) == ("They walked for miles.", True)
    assert "Mile 1." in model.asked("condense")[-1][-1].text
    assert values["notices"] == []


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["question", "conclude"])
async def test_a_reflection_gives_way_and_is_made_later(model, hang, stage):
    async with begun(model, reflection_importance=12) as game:
        model.queue("quest", say(" ".join(fact["text"] for fact in (MILL, FAIR, DEBT))))
        model.queue("update", say("", call("Facts", facts=[MILL, FAIR, DEBT])))
        answers = {"question": [hang(ask())], "conclude": [ask(), hang(say("nothing"))]}[stage]
        for job, answer in zip(("question", "conclude"), answers, strict=False):
            model.queue(job, answer)
        await told(game.send("What do they say?"))
        await hang.asked()
        await game.finish()
        values = await values_of(game)
        assert values["unreflected"] == 18
        assert values["notices"] == []
        model.queue("question", ask())
        model.queue("conclude", conclude((INSIGHT, (DEBT["text"], MILL["text"]))))
        await all_of(game.send("I wait."))
        game.store = (await game.load()).store
        assert [insight["text"] for insight in (await insights(game)).values()] == [INSIGHT]
        assert len(await stored(game)) == 4
        assert (await values_of(game))["unreflected"] == 0


@pytest.mark.slow
async def test_an_agents_notes_give_way_in_a_run_that_another_message_ends(hang):
    desk = Desk(TicketNotebook)
    desk.model.queue("reply", say("Oh dear."), say("I see."))
    desk.model.queue("update", hang(say("")))
    run = Run(_upkeep_events(desk, "It leaks."))
    async with aclosing(run.events()) as events:
        await anext(events)
    await hang.asked()
    start = time.monotonic()
    assert await run.finish() == []
    assert time.monotonic() - start < BUSY
    assert "noted" not in desk.values
    desk.model.queue("update", say("", call("TicketNotebook", problem="leaks")))
    await desk.say("Badly.")
    assert desk.values["ticket"]["problem"] == "leaks"
    assert "It leaks." in desk.model.asked("update")[-1][-1].text


class Slow(InMemoryStore):
    """Takes its time to write, when it is told to."""

    seconds = 0.0

    async def abatch(self, ops):
        ops = list(ops)
        if any(isinstance(op, PutOp) for op in ops):
            await asyncio.sleep(self.seconds)
        return await super().abatch(ops)


async def finished(desk, words):
    """End a run as the next message does, once its upkeep has begun; return the seconds that took."""
    run = Run(_upkeep_events(desk, words))
    async with aclosing(run.events()) as events:
        await anext(events)
    start = time.monotonic()
    notices = await run.finish()
    return time.monotonic() - start, [notice.notice["text"] for notice in notices]


@pytest.mark.slow
async def test_a_write_that_has_begun_ends_however_slow_the_store():
    desk = Desk(TicketNotebook, store=Slow(), facts=True)
    desk.model.queue("update", note(problem="leaks"))
    desk.store.seconds = 0.5  # a turn's exchange takes three writes
    seconds, notices = await finished(desk, "It leaks.")
    assert (seconds > 0.8, notices) == (True, [])
    values = desk.values
    assert (values["remembered_through"], values["noted"]["ticket"], values["ticket"]["problem"]) == (1, 1, "leaks")
    assert desk.app.get_state(desk.config).next == (), "the turn is at its end"
    assert (values.get("facts_through", 0), desk.model.asked("facts")) == (0, []), "what asks a model gave way"
    desk.store.seconds = 0
    await desk.say("Badly.")
    kinds = [item.value.get("kind") for item in desk.store.search((), limit=100)]
    assert kinds.count("exchange") == 2, "nothing was lost or written twice"


@pytest.mark.slow
async def test_a_write_that_never_ends_is_stopped_and_said(monkeypatch):
    monkeypatch.setattr("questbook.graphs.turn.node.LONGEST_WRITE", 0.2)
    desk = Desk(TicketNotebook, store=Slow())
    desk.store.seconds = 60
    seconds, notices = await finished(desk, "It leaks.")
    assert seconds < BUSY
    assert "took too long to write" in notices[0]
    desk.store.seconds = 0
    await desk.say("Badly.")
    assert desk.values["remembered_through"] == 2


async def _upkeep_events(desk, words):
    stream = desk.app.astream({"messages": [("user", words)]}, desk.config, stream_mode="custom")
    async for part in stream:
        if "upkeep" in part:
            yield NodeStart(part["begins"], upkeep=True)


@pytest.mark.slow
async def test_notes_that_end_in_time_are_kept(model, monkeypatch):
    monkeypatch.setattr("questbook.graphs.turn.node.PATIENCE", 20)
    async with begun(model) as game:
        model.queue("update", lambda _: (time.sleep(0.5), say("", call("StateNotebook", gold=5)))[1])
        await told(game.send("I wait."))
        await all_of(game.send("And on."))
        assert any("gold: 5" in message.text for message in model.asked("update")[-1]), (
            "the next turn's notes begin with them"
        )


@pytest.mark.slow
async def test_a_campaign_is_closed_within_two_seconds(model, hang, real_patience):
    async with begun(model) as game:
        model.queue("update", hang(say("")))
        await told(game.send("I wait."))
        await hang.asked()
        start = time.monotonic()
    assert time.monotonic() - start < BUSY
    async with opened() as game:
        assert not await game.has_unfinished_turn()
        assert (await values_of(game))["remembered_through"] == 2, "the turn itself was written"


async def test_two_messages_at_once_are_two_turns_one_behind_the_other(model):
    async with begun(model) as game:
        model.queue("quest", lambda _: (time.sleep(0.3), say("First."))[1], say("Second."))
        first, second = game.send("one"), game.send("two")
        await anext(first)
        replies = await told(second), await told(first)
        values = await values_of(game)
    assert replies == ("Second.", "First.")
    assert [m.text for m in values["messages"][-4:]] == ["one", "First.", "two", "Second."]


async def test_upkeep_that_breaks_is_a_notice_of_the_next_turn(model, monkeypatch):
    async with begun(model) as game:
        with monkeypatch.context() as broken:
            broken.setattr("questbook.graphs.dungeon_master.notes.update_prompt", lambda *_: {}["prompt"])
            await told(game.send("I wait."))
            await game.wait_for_upkeep(BUSY)
        events = await all_of(game.send("And on."))
        assert (await values_of(game))["noted_through"] == 3
    notices = [event.notice["text"] for event in events if isinstance(event, Notice)]
    assert notices == ["What follows the reply was not finished; the next turn will do it. 'prompt'"]


@pytest.mark.slow
async def test_on_a_server_the_runs_that_wait_are_the_next_message(monkeypatch, real_patience):
    """A fake of the server's client; the real server is in test_turn_upkeep_server."""
    waiting = [[], [{"created_at": "2999-01-01T00:00:00+00:00"}], [{"created_at": "2001-01-01T00:00:00+00:00"}]]
    asked = []

    def runs_of(thread, status):
        asked.append((thread, status))
        return waiting[min(len(asked), len(waiting)) - 1]

    monkeypatch.setattr("questbook.graphs.turn.api_server.client", queue_client(runs_of))
    start = time.monotonic()
    with pytest.raises(GaveWay):
        await give_way(asyncio.sleep(30), server_runtime())
    assert asked == [("thread-1", "pending")] * 3, "a run that begins later does not count"
    assert time.monotonic() - start < BUSY


def server_runtime():
    info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id="thread-1")
    return Runtime(execution_info=info, server_info=ServerInfo(assistant_id="a", graph_id="dungeon_master"))
