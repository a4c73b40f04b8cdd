"""A thread belongs to one machine: another graph's run on it is refused, and changes nothing."""

from functools import partial

import pytest
from answering import AGENT, THREAD, Talk
from companion_thread import Companion
from desk import Desk, TicketNotebook
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command, interrupt
from scripted import call, say

from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph as build_dungeon_master
from questbook.graphs.errors import InputError
from questbook.graphs.history.history import History
from questbook.graphs.reflect.graph import build_graph as build_reflect

FORGED = {"timeline": [["aaa", 99]], "turn": 99}
HELLO = {"messages": [("user", "Hello.")]}


@pytest.fixture(params=["memory", "sqlite"])
async def saver(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
        return
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        yield saver


async def saved(game):
    return (await game.saver.aget_tuple(game.config)).checkpoint


@pytest.mark.parametrize(
    ("build", "sent"), [(build_reflect, FORGED), (build_companion, HELLO)], ids=["reflect", "companion"]
)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.slow
async def test_another_graphs_run_on_a_games_thread_is_refused(game, saver, build, sent, durability):
    game.saver = saver
    game.keep_in(game.store)
    await game.begin()
    before = await saved(game)
    other = build().compile(checkpointer=saver, store=game.store)
    with pytest.raises(InputError, match=r"This thread belongs to .*Nothing was changed\. Begin a new thread"):
        await other.ainvoke(sent, game.config, context={"model": "scripted"}, durability=durability)
    assert await saved(game) == before
    await other.aget_state(game.config)  # to read is no harm
    await game.play("I look around.")
    values = (await saved(game))["channel_values"]
    assert (values["turn"], values["quest"]["location"]) == (2, "The Bent Nail")
    assert [branch for branch, _ in values["timeline"]] != ["aaa"]


async def test_an_edit_through_another_graph_is_refused(mira):
    before = await saved(mira)
    other = build_reflect().compile(checkpointer=mira.saver, store=mira.store)
    with pytest.raises(InputError, match="belongs to"):
        await other.aupdate_state(mira.config, FORGED, as_node="gather")
    assert await saved(mira) == before


async def test_a_thread_of_before_this_rule_is_safe_from_a_reflection(mira):
    before = await saved(mira)
    del before["channel_values"]["machine"], before["channel_versions"]["machine"]
    old = InMemorySaver()
    config = {"configurable": {"thread_id": "old", "checkpoint_ns": ""}}
    await old.aput(config, before, {"step": 5, "source": "loop", "parents": {}}, before["channel_versions"])
    other = build_reflect().compile(checkpointer=old, store=mira.store)
    with pytest.raises(InputError, match="belongs to 'default' of 'adventurer'"):
        await other.ainvoke(FORGED, {"configurable": {"thread_id": "old"}}, context={"model": "scripted"})


async def test_no_other_machine_takes_a_companions_an_agents_or_a_reflections_thread(model):
    companion = Companion(model)
    await companion.say("Hello.", say("Hello, you."))
    desk, other_desk = Desk(TicketNotebook), Desk(TicketNotebook, name="sales")
    await desk.say("It leaks.", reply=say("Oh dear."))
    reflection = InMemorySaver()
    reflect = build_reflect().compile(checkpointer=reflection)
    thread = {"configurable": {"thread_id": "r"}}
    await reflect.ainvoke({"timeline": [["main", 1]], "turn": 1}, thread, context={"model": "scripted"})
    game = build_dungeon_master()
    agent = other_desk.app.builder
    for builder, saver, config in (
        (game, companion.saver, companion.config),
        (agent, companion.saver, companion.config),
        (game, desk.app.checkpointer, desk.config),
        (agent, desk.app.checkpointer, desk.config),
        (game, reflection, thread),
    ):
        with pytest.raises(InputError, match="This thread belongs to"):
            await builder.compile(checkpointer=saver).ainvoke(HELLO, config)


async def test_nobody_can_give_a_thread_away(mira):
    await mira.app.aupdate_state(mira.config, {"machine": "reflect"}, as_node="remember")
    assert mira.values["machine"] == "dungeon_master"
    await mira.play("I look around.")
    assert mira.values["turn"] == 2


async def test_a_resume_by_another_user_is_refused_before_anything_is_done():
    done = []

    def refund(amount: int) -> str:
        """Pay money back, once a person has agreed."""
        done.append((interrupt({"approve": amount}), amount))
        return "refunded"

    desk = Desk(TicketNotebook, tools=[refund], name="refunds")
    await desk.say("It leaks.", reply=say("Oh dear."))
    desk.model.queue("reply", say("", call("refund", amount=3)), say("Done."))
    await desk.app.ainvoke({"messages": [("user", "My money?")]}, desk.config)
    boss = {**desk.config, "configurable": desk.config["configurable"] | {"user": "boss"}}
    with pytest.raises(InputError, match=r"belongs to campaign .* of 'adventurer', but the settings name .* of 'boss'"):
        await desk.app.ainvoke(Command(resume=True), boss)
    assert done == []
    assert desk.store.search(("boss",)) == []
    assert await desk.say(Command(resume=True)) == "Done."
    assert done == [(True, 3)]


async def test_another_users_history_cannot_move_a_thread_nor_copy_from_it(mira):
    await mira.play("I look around.")
    before = await saved(mira)
    context = Context.of({"user": "bob"})
    strange = History(mira.app, mira.config, context)
    for move in (strange.undo, strange.retry, strange.finished_state, partial(strange.write, {"line": "mine"})):
        with pytest.raises(InputError, match="This thread belongs to campaign"):
            await move()
    # A record in his own namespace that names her thread is no way in, either.
    [item, *_] = await mira.store.asearch(("adventurer", "default", "exchanges"))
    await mira.store.aput(("bob", "default", "exchanges"), item.key, item.value)
    own = History(mira.app, {"configurable": {"thread_id": "of bob"}}, context)
    with pytest.raises(InputError, match="This thread belongs to campaign"):
        await own.go("main")
    with pytest.raises(InputError, match="This thread belongs to campaign"):
        await own.enter([mira.config["configurable"]["thread_id"]])
    assert await saved(mira) == before
    assert (await mira.app.aget_state(own.config)).values == {}


async def test_the_history_of_another_users_agent_is_not_shown():
    talk = Talk()
    await talk.say("My ring is called Glimmer.")
    own, strange = (History(talk.agent, THREAD, {"user": user, "campaign": AGENT}) for user in ("ann", "bob"))
    assert (await own.current_state()).values["turn"] == 1
    with pytest.raises(InputError, match="This thread belongs to campaign 'agent:agent' of 'ann'"):
        await strange.current_state()
