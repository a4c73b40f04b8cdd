"""Whose a thread is: who began it. No edit, no metadata and no older checkpoint gives it to another user."""

import re
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.types import Command, Overwrite
from postgres import migrated_database

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import InputError, UnreadableError
from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.local.campaign_file import CampaignFileError, export_campaign, import_campaign
from questbook.graphs.local.checkpointer import is_running
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import home_at
from questbook.graphs.local.saved_game import (
    OWNER,
    last_of_thread,
    last_of_threads,
    list_campaigns,
    read_saved_game,
    thread_id_of,
)

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
FORGED = ["bob", "Your new quest"]
NEW = {"configurable": {"thread_id": "b4b5c5a0-0000-4000-8000-000000000001"}}


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.slow)])
def home(request, tmp_path):
    return home_at(str(tmp_path) if request.param == "files" else migrated_database(), tmp_path)


def opened(home, user, campaign="isle"):
    return open_game(Context(model="offline", user=user, campaign=campaign, seed=6), home)


@pytest.fixture
async def ann(home):
    async with opened(home, "ann") as game:
        await say(game, MIRA)
        yield game


async def say(game, words):
    async for _ in game.send(words):
        pass
    await game.wait_for_upkeep(30)


async def test_a_campaign_that_began_on_a_server_belongs_to_who_imports_its_file(home, ann, tmp_path):
    async with opened(home, "ann", "over the server") as game:
        game.checkpointer.log_in = lambda: "ann"
        await say(game, MIRA)
        assert (await game.checkpointer.aget_tuple(game.config)).metadata[OWNER] == "ann"
        await export_campaign(game, tmp_path / "file.zip")
    async with opened(home, "bob", "from Ann") as bob:
        await import_campaign(bob, tmp_path / "file.zip")
        assert (await bob.saved_game()).user == "bob"
        assert await campaigns_of(ann, "bob") == ["from Ann"]


async def test_nobody_plants_a_checkpoint_in_a_campaign_that_is_imported(home, ann, tmp_path):
    await export_campaign(ann, tmp_path / "file.zip")
    async with opened(home, "bob", "from Ann") as bob:
        show = bob.checkpointer.show_threads

        async def plant_and_show(names):
            await plant(ann, {"summary": "Forged."}, {}, thread_id_of("import", bob.thread_id))

            await show(names)

        bob.checkpointer.show_threads = plant_and_show
        await import_campaign(bob, tmp_path / "file.zip")
        assert "Forged" not in str(await bob.saved_game())
        assert (await bob.saved_game()).turn == 1


async def test_a_planted_checkpoint_makes_no_import_delete_what_a_campaign_remembers(ann, tmp_path):
    await export_campaign(ann, tmp_path / "file.zip")
    store, space = (await ann.load()).store, ("ann", "isle")
    before = await store.asearch(space, limit=100)
    await plant(ann, {}, {}, thread_id_of("import", ann.thread_id))
    with pytest.raises(CampaignFileError, match="'isle' has begun already"):
        await import_campaign(ann, tmp_path / "file.zip")
    assert len(await store.asearch(space, limit=100)) == len(before) > 0


async def campaigns_of(game, user):
    return [saved.campaign for saved in await list_campaigns(game.checkpointer, user)]


NODES = ("recall", "build_character", "run_quest", "roll_dice", "update_state", "remember", "reflect", "condense")


@pytest.mark.slow
@pytest.mark.parametrize(
    "forged", [FORGED, Overwrite(FORGED), {"__overwrite__": FORGED}, ["ann", "other"], []], ids=str
)
async def test_no_edit_gives_a_thread_away_and_it_goes_on(ann, forged):
    graph = await ann.load()
    for node in NODES:
        with pytest.raises(InputError, match=re.escape("this thread belongs to campaign 'isle' of 'ann'")):
            await graph.aupdate_state(ann.config, {"campaign": forged}, as_node=node)
    await graph.aupdate_state(ann.config, {"campaign": ["ann", "isle"]}, as_node="condense")
    assert (await campaigns_of(ann, "bob"), await campaigns_of(ann, "ann")) == ([], ["isle"])
    await say(ann, "I look around.")
    assert (await ann.saved_game()).turn == 2


async def test_no_edit_before_the_first_turn_says_that_a_thread_is_another_s(ann):
    graph = await ann.load()
    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Forged."}]
    forged = {"campaign": FORGED, "messages": said, "quest": {"scene": "Forged."}}
    for node in NODES:
        with pytest.raises(InputError, match=r"got \['bob', 'Your new quest'\]. Whose a thread is, its first turn"):
            await graph.aupdate_state(NEW, forged, as_node=node)
    assert (await graph.aget_state(NEW)).values == {}
    del forged["campaign"]  # of nobody's, then
    await graph.aupdate_state(NEW, forged, as_node="condense")
    assert (await campaigns_of(ann, "bob"), await campaigns_of(ann, "ann")) == ([], ["isle"])


async def plant(game, values, metadata, thread=NEW["configurable"]["thread_id"]):
    """Write a checkpoint as it is, as an older version and a caller of a server's API could; return its config."""
    saved = await game.checkpointer.aget_tuple(game.config)
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    channels = saved.checkpoint["channel_values"] | values
    checkpoint = saved.checkpoint | {"channel_values": channels, "id": f"f{saved.checkpoint['id'][1:]}"}
    return await game.checkpointer.aput(config, checkpoint, metadata, checkpoint["channel_versions"])


NAMED = {"user": "bob", "campaign": "Your new quest"}


@pytest.mark.parametrize(
    ("values", "metadata"),
    [
        ({"campaign": FORGED}, {}),
        ({}, NAMED),
        ({"campaign": FORGED}, NAMED),
        ({"campaign": None}, NAMED | {OWNER: "bob"}),
    ],
)
@pytest.mark.slow
async def test_what_names_two_users_is_in_nobody_s_list_and_no_one_forgets_it(home, ann, values, metadata):
    ann.checkpointer.log_in = lambda: "ann"  # as the server has it; the embedded games have none
    await plant(ann, values, metadata)
    assert (await campaigns_of(ann, "bob"), await campaigns_of(ann, "ann")) == ([], ["isle"])
    async with opened(home, "bob", "Your new quest") as bob:
        assert await bob.saved_game() is None
        assert not await bob.enter(), "its last turn is not taken over"
        store = (await bob.load()).store
        await store.aput(("bob", "Your new quest", "exchanges"), "k", {"thread": NEW["configurable"]["thread_id"]})
        forgetting = Forgetting(store, bob.checkpointer, "bob", "Your new quest")
        assert await forgetting.threads() == {bob.thread_id}
    assert await ann.checkpointer.aget_tuple(NEW) is not None


async def test_a_thread_at_the_place_of_another_s_campaign_is_not_opened_as_theirs(home, ann):
    async with opened(home, "bob", "next") as bob:
        place = {"thread_id": bob.thread_id, "checkpoint_ns": ""}
        saved = await ann.checkpointer.aget_tuple(ann.config)
        metadata = {"user": "bob", "campaign": "next"}  # which a caller may name; the channel says who played
        await ann.checkpointer.aput(
            {"configurable": place}, saved.checkpoint, metadata, saved.checkpoint["channel_versions"]
        )
        with pytest.raises(UnreadableError, match="its last checkpoint says that it is of 'ann'"):
            await bob.saved_game()


@pytest.mark.parametrize("caller", ["bob", ""])
async def test_a_server_s_caller_cannot_touch_what_another_user_began_on_the_page(ann, caller):
    saver, before = ann.checkpointer, await ann.saved_game()
    saved = await saver.aget_tuple(ann.config)
    place = {"configurable": {"thread_id": ann.thread_id, "checkpoint_ns": ""}}
    saver.log_in = lambda: caller
    for attempt in (
        lambda: saver.aget_tuple(place),
        lambda: saver.aput(place, saved.checkpoint, {OWNER: caller, "user": caller}, {}),
        lambda: saver.aput_writes(saved.config, [("summary", "Forged.")], "task"),
        lambda: saver.adelete_thread(ann.thread_id),
        lambda: saver.aprune([ann.thread_id], strategy="delete"),
        lambda: saver.aprune([ann.thread_id]),
        lambda: saver.aget_delta_channel_history(config=place, channels=["messages"]),
    ):
        with pytest.raises(InputError, match="is a campaign that another user began on the page or in the terminal"):
            await attempt()
    assert [found async for found in saver.alist(place)] == [found async for found in saver.alist(None)] == []
    for known in ("ann", None):  # herself; the server's own work
        saver.log_in = lambda known=known: known
        assert await saver.aget_tuple(place) == saved
        assert len([found async for found in saver.alist(place)]) > 1
    saver.log_in = None
    assert await ann.saved_game() == before


async def test_a_thread_belongs_to_who_began_it_not_to_who_edits_it(ann):
    ann.checkpointer.log_in = lambda: "ann"
    await plant(ann, {}, {"user": "Tom", "campaign": "spring"})  # as the app's runs name something
    graph = await ann.load()
    ann.checkpointer.log_in = lambda: "boss"
    await graph.aupdate_state(NEW, {"line": "the other road"}, as_node="condense")
    assert (await ann.checkpointer.aget_tuple(NEW)).metadata[OWNER] == "ann"
    ann.checkpointer.log_in = lambda: None
    await plant(ann, {}, {})
    assert (await ann.checkpointer.aget_tuple(NEW)).metadata[OWNER] == "ann", "the server's own work keeps it"
    assert await campaigns_of(ann, "ann") == ["isle"]


async def test_a_run_s_command_before_the_first_turn_does_not_end_a_thread(ann):
    graph, context = await ann.load(), ann.context
    with pytest.raises(InputError, match="A turn begins with a message"):  # but it is written by then
        await graph.ainvoke(Command(update={"campaign": FORGED}), NEW, context=context)
    assert (await campaigns_of(ann, "bob"), await campaigns_of(ann, "ann")) == ([], ["isle"])
    after = await graph.ainvoke({"messages": [{"role": "user", "content": MIRA}]}, NEW, context=context)
    assert (after["turn"], after["campaign"]) == (2, ["ann", "isle"])  # a new session of the campaign
    await graph.ainvoke(Command(update={"campaign": FORGED, "turn": 0}), NEW, context=context)
    said = {"messages": [{"role": "user", "content": "I wait."}]}
    with pytest.raises(InputError, match="belongs to campaign 'isle' of 'ann'"):
        await graph.ainvoke(said, NEW, context=context.model_copy(update={"user": "bob"}))
    assert (await graph.aget_state(NEW)).values["campaign"] == ["ann", "isle"]


def checkpoint_of(values, metadata, **named):
    """A first checkpoint, its metadata, and the versions that its channels have."""
    versions = dict.fromkeys(values, "1")
    return empty_checkpoint() | {"channel_values": values, "channel_versions": versions} | named, metadata, versions


@pytest.mark.parametrize(
    ("values", "metadata", "listed"),
    [
        ({"campaign": ["bob", "isle"]}, {}, []),
        ({"campaign": ["ann", "reef"]}, {}, ["reef"]),
        ({}, {"user": "ann", "campaign": "reef"}, ["reef"]),
        ({"campaign": ["ann", "reef"]}, {"user": "ann", "campaign": "isle"}, ["reef"]),
        ({"campaign": ["bob", "reef"]}, {"user": "ann", "campaign": "reef"}, []),
    ],
)
async def test_a_thread_is_listed_for_whom_its_channel_or_its_metadata_names(home, values, metadata, listed):
    async with opened(home, "ann") as game:
        where = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        await game.checkpointer.aput(where, *checkpoint_of(values, metadata))
        assert [saved.campaign async for saved in last_of_threads(game.checkpointer, "ann")] == listed
        for name in ("isle", "reef"):
            of_it = [saved.campaign async for saved in last_of_threads(game.checkpointer, "ann", name)]
            assert of_it == [one for one in listed if one == name and metadata.get("campaign", name) == name]


async def put(game, thread, number, values, user="ann", campaign="isle", day=None):
    """Write a checkpoint of a thread, as the `number`th of the data directory."""
    where = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    named = {"id": f"{number}", "ts": f"2026-01-0{day or number}T00:00:00+00:00"}
    await game.checkpointer.aput(where, *checkpoint_of(values, {"user": user, "campaign": campaign}, **named))


async def test_of_a_campaign_its_own_thread_counts_if_it_can_be_played_and_the_list_has_the_last_played_first(home):
    async with opened(home, "ann") as game:
        for number, thread, campaign, values in (
            (1, thread_id_of("ann", "isle"), "isle", {"quest": {}, "turn": 1}),
            (2, thread_id_of("ann", "reef"), "reef", {"quest": {}, "turn": 2}),
            (3, thread_id_of("ann", "moor"), "moor", {"core": {}}),
            (4, "in Studio", "isle", {"quest": {}, "turn": 4}),
            (5, "in Studio too", "moor", {"quest": {}, "turn": 5}),
        ):
            await put(game, thread, number, values, campaign=campaign)
        listed = await list_campaigns(game.checkpointer, "ann")
        assert [(saved.campaign, saved.turn) for saved in listed] == [("moor", 5), ("reef", 2), ("isle", 1)]
        latest = await list_campaigns(game.checkpointer, "ann", 2)
        assert [saved.campaign for saved in latest] == ["moor", "isle"], "those whose threads were written last"


async def test_a_campaign_that_was_played_elsewhere_is_entered_where_it_was_played_last(home, monkeypatch):
    async with opened(home, "ann") as game:
        assert not await game.enter()
        assert not game.is_loaded, "the first prompt of a new campaign does not wait for graph and store"
        for number, (thread, values, day) in enumerate((
            ("a", {"quest": {}, "turn": 1}, 7), ("b", {"quest": {}, "turn": 9}, 5), ("c", {"quest": {}, "turn": 2}, 6),
            ("not begun", {"quest": {}, "turn": 0}, 8), ("a companion", {"core": {}, "turn": 3}, 9),
        ), start=1):  # fmt: skip
            await put(game, thread, number, values, day=day)
        await put(game, "another", 6, {"quest": {}, "turn": 3}, campaign="reef")
        entered = []

        async def history():
            return SimpleNamespace(enter=enter)

        async def enter(threads):
            entered.append(threads)
            return True

        monkeypatch.setattr(game, "history", history)
        assert await game.enter()
        assert entered == [["a", "c", "b"]]
        await put(game, game.thread_id, 7, {"quest": {}, "turn": 1})
        assert (await game.enter(), len(entered)) == (False, 1), "what was played here is gone on with here"


async def test_a_campaign_of_another_graph_says_what_opens_it_and_one_that_has_no_turn_yet_is_opened(home):
    async with opened(home, "ann") as game:
        await put(game, game.thread_id, 1, {"messages": []})
        assert (await game.saved_game()).machine == ""
        await put(game, game.thread_id, 2, {"core": {}})
        with pytest.raises(UnreadableError, match=r"'isle' belongs to the graph companion, .*questbook chat\.$"):
            await game.saved_game()
    async with open_game(
        CompanionContext(model="offline", user="ann", campaign="companion:x"), home, "companion"
    ) as talk:
        await put(talk, talk.thread_id, 3, {"quest": {}}, campaign="companion:x")
        with pytest.raises(UnreadableError, match=r"graph dungeon_master, not to companion.*questbook play\.$"):
            await talk.saved_game()


async def test_what_names_two_users_names_neither_and_no_campaign(home):
    async with opened(home, "ann") as game:
        await put(game, "t", 1, {"campaign": ["bob", "isle"]})
        saved = await read_saved_game(game.checkpointer, "t")
        assert (saved.user, saved.campaign, saved.users) == ("", "", {"ann", "bob"})
        await put(game, "t2", 2, {})
        await put(game, "t2", 3, {"campaign": ["bob", "isle"]})
        assert (await last_of_thread(game.checkpointer, "t2")).user == "", "also if it began as one's"
        await put(game, "t3", 4, {})
        await put(game, "t3", 5, {}, user="", campaign="")
        first = await last_of_thread(game.checkpointer, "t3")
        assert (first.user, first.campaign) == ("ann", "isle"), "what was edited in Studio is whose it began as"


YOUNG, OLD = timedelta(minutes=4), timedelta(minutes=6)


@pytest.mark.parametrize(
    ("values", "writes", "age", "runs"),
    [
        ({"branch:to:recall": None}, [], YOUNG, True),
        ({"__start__": {}}, [], YOUNG, True),
        ({"__pregel_tasks": ["x"]}, [], YOUNG, True),
        ({"messages": []}, [], YOUNG, False),
        ({"branch:to:recall": None}, [], OLD, False),
        ({"branch:to:recall": None}, ["__error__"], YOUNG, False),
        ({"branch:to:recall": None}, ["__interrupt__"], YOUNG, False),
        ({"branch:to:recall": None}, ["__interrupt__", "__resume__"], YOUNG, True),
        ({"branch:to:recall": None}, ["messages"], YOUNG, True),
    ],
)
def test_a_run_is_in_progress_if_a_step_follows_and_it_neither_failed_nor_asks_nor_is_silent(values, writes, age, runs):
    when = (datetime.now(UTC) - age).isoformat()
    saved = CheckpointTuple(NEW, empty_checkpoint() | {"ts": when, "channel_values": values}, {}, None, [
        ("task", channel, "x") for channel in writes
    ])  # fmt: skip
    assert is_running(saved) is runs


@pytest.mark.parametrize(
    ("metadata", "begun_by", "caller", "is_refused"),
    [
        ({"user": "ann", "campaign": "isle"}, None, "bob", True),
        ({"user": "ann", "campaign": "isle"}, None, "", True),
        ({"user": "ann", "campaign": "isle"}, None, "ann", False),
        ({"user": "ann", "campaign": "isle"}, None, None, False),
        ({"user": "ann", "campaign": "isle"}, "ann", "bob", False),  # over the server, whose own rules say whose it is
        ({"user": "ann"}, None, "bob", False),
    ],
)
async def test_a_caller_is_refused_what_page_or_terminal_began_for_another(
    home, metadata, begun_by, caller, is_refused
):
    where = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    async with opened(home, "ann") as game:
        saver = game.checkpointer
        saver.log_in = (lambda: begun_by) if begun_by else None
        await saver.aput(where, empty_checkpoint(), metadata, {})
        saver.log_in = lambda: caller
        with pytest.raises(InputError, match="that another user began") if is_refused else nullcontext():
            await saver.aget_tuple(where)
        assert len([saved async for saved in saver.alist(where)]) == (not is_refused)
