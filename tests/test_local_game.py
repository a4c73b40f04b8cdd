"""A game in this process: turns in events, what a killed or failed one leaves; the data directory and its files."""

import json
import os
import sqlite3
import stat
import threading
import uuid
from contextlib import AsyncExitStack, aclosing, nullcontext
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import MIRA
from filelock import FileLock
from held import hold_campaign
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import FaissStore, HashEmbeddings
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError, UnreadableError
from questbook.graphs.events import DiceRoll, Memories, NodeEnd, NodeStart, Notice, PromptReport, ReplyPiece
from questbook.graphs.local.checkpoint_tables import first_of, in_connection
from questbook.graphs.local.costs import Cost, Costs, UsageMeter, costs_of
from questbook.graphs.local.databases import create_database, knows_meaning, minilm_hint, open_checkpointer, open_store
from questbook.graphs.local.file_home import hold_file
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import CampaignBusyError, HomeError
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import SavedGame, list_campaigns, thread_id_of, users_in
from questbook.memory.errors import StoreError
from questbook.memory.recall.query import Weights
from questbook.memory.store.database_file import switch_to_wal
from questbook.memory.timeline.namespaces import campaign_namespace

ROOT = Path(__file__).parent.parent
DEFAULT_THREAD = "580e4c36-f43f-5bf5-9e6b-becd51a3448e"


def context(**settings):
    return Context.of(None, model="scripted", **settings)


async def played(game, words):
    return [event async for event in game.send(words)]


def said(events):
    return "".join(event.text for event in events if isinstance(event, ReplyPiece))


async def begin(model, game):
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", say("", call("StateNotebook", scene="An inn at dusk.", location="The Bent Nail")))
    return await played(game, "I'm Mira.")


def test_thread_ids_are_uuids_and_tell_users_and_campaigns_apart():
    # The first is written down: were it to change, nobody would find their games again.
    assert thread_id_of("adventurer", "default") == DEFAULT_THREAD
    names = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a,b", ""), ("a", "B"), ("\udcff", "ü")]
    assert len({str(uuid.UUID(thread_id_of(*pair))) for pair in names}) == len(names)


async def test_a_turn_is_told_in_events_dice_before_the_words_about_them(model):
    async with open_game(context(seed=1)) as game:
        await begin(model, game)
        model.queue(
            "quest", say("You creep.", call("roll_dice", expression="1d20", reason="Stealth")), say("Nobody hears.")
        )
        events = await played(game, "I sneak.")
    kinds = [type(event) for event in events]
    told = [event.text for event in events if isinstance(event, ReplyPiece)]
    assert "".join(told) == "You creep.Nobody hears."
    assert kinds.index(DiceRoll) < max(i for i, e in enumerate(events) if isinstance(e, ReplyPiece))
    assert next(e for e in events if isinstance(e, DiceRoll)).roll["reason"] == "Stealth"
    assert len({event.message for event in events if isinstance(event, ReplyPiece)}) == 2
    assert [e.memories for e in events if isinstance(e, Memories)] == [[]]
    assert [e.node for e in events if isinstance(e, PromptReport)] == ["run_quest", "run_quest"]
    assert "update_state" in [e.node for e in events if isinstance(e, NodeEnd)]


async def test_what_is_said_after_the_reply_is_not_for_the_player_but_notices_are(model):
    async with open_game(context()) as game:
        await begin(model, game)
        model.queue("update", say("Notes, notes, notes."))
        assert "Notes" not in said(await played(game, "look"))
        model.queue("update", ModelError("The model is busy."))
        events = await played(game, "look again")
    assert ["busy" in event.notice["text"] for event in events if isinstance(event, Notice)] == [True]


async def test_notices_that_nobody_has_read_are_told_once(model):
    async with open_game(context()) as game:
        await begin(model, game)
        model.queue("update", *[ModelError("The model is busy.")] * 3)
        await played(game, "I look.")
        assert game.unread_notices() == [], "its reader has them"
        for finish in (lambda: game.wait_for_upkeep(20), game.finish):
            async with aclosing(game.send("I look again.")) as events:
                async for event in events:
                    if isinstance(event, NodeStart) and event.upkeep:
                        break
            await finish()
            assert ["busy" in notice.notice["text"] for notice in game.unread_notices()] == [True]
            assert game.unread_notices() == []


async def test_a_campaign_goes_on_in_another_process(model):
    async with open_game(context()) as game:
        assert await game.saved_game() is None
        await begin(model, game)
    async with open_game(context()) as game:
        saved = await game.saved_game()
        assert (saved.user, saved.campaign, saved.turn) == ("adventurer", "default", 1)
        assert (saved.character.name, saved.quest.location) == ("Mira", "The Bent Nail")
        assert (saved.last_reply, saved.unanswered) == ("The wind turns. What do you do?", None)
        assert "wind" in said(await played(game, "look"))
        assert (await game.saved_game()).turn == 2


async def test_a_failed_turn_keeps_the_message_and_resume_answers_it(model):
    async with open_game(context()) as game:
        await begin(model, game)
        model.queue("quest", say("", call("roll_dice", expression="1d20")), ModelError("The model is busy."))
        with pytest.raises(ModelError, match="busy"):
            await played(game, "look")
    async with open_game(context()) as game:
        saved = await game.saved_game()
        assert (saved.last_reply, saved.unanswered) == ("The wind turns. What do you do?", "look")
        assert await game.has_unfinished_turn()
        events = [event async for event in game.resume()]
        assert "wind" in said(events)
        assert (await game.saved_game()).unanswered is None
        assert not await game.has_unfinished_turn()
        assert [event async for event in game.resume()] == []


@pytest.mark.parametrize("next_step", ["another try", "other words", "taken back"])
async def test_that_a_person_stopped_a_reply_is_kept_until_something_follows(model, next_step):
    async with open_game(context()) as game:
        await begin(model, game)
        assert not await game.keep_stopped(), "there is a reply"
        model.queue("quest", *[ModelError("The model is busy.")] * 2)
        with pytest.raises(ModelError, match="busy"):
            await played(game, "look")
        assert not (await game.saved_game()).is_stopped
        assert await game.keep_stopped()
    async with open_game(context()) as game:
        assert (await game.saved_game()).is_stopped
        if next_step == "taken back":
            await (await game.history()).take_back()
        else:
            with pytest.raises(ModelError, match="busy"):
                await anext(event async for event in game.resume() if isinstance(event, ReplyPiece))
            if next_step == "other words":
                await game.keep_stopped()
                await played(game, "listen")
        assert not (await game.saved_game()).is_stopped


async def test_a_campaign_whose_first_messages_fail_begins_with_the_one_that_is_answered(model):
    async with open_game(context()) as game:
        for words in ("one", "two", "three"):
            model.queue("interview", ModelError("The model is busy."))
            with pytest.raises(ModelError, match="busy"):
                await played(game, words)
            assert (await game.saved_game()).unanswered == words
        await begin(model, game)
        assert [m.text for m in (await game.saved_game()).values["messages"] if m.type == "human"] == ["I'm Mira."]


async def test_a_node_killed_between_its_writes_and_their_checkpoint_leaves_the_turn_unfinished(model, monkeypatch):
    async with open_game(context()) as game:
        await begin(model, game)
        put = game.checkpointer.aput

        async def killed(config, checkpoint, *rest):
            if len(checkpoint["channel_values"]["messages"]) > len(messages) + 1:  # the reply's own checkpoint
                raise RuntimeError("killed")
            return await put(config, checkpoint, *rest)

        messages = (await game.saved_game()).values["messages"]
        monkeypatch.setattr(game.checkpointer, "aput", killed)
        with pytest.raises(RuntimeError, match="killed"):
            await played(game, "look")
    async with open_game(context()) as game:
        assert await game.has_unfinished_turn()
        assert [event async for event in game.resume()][-1].node == "remember"
        assert (await game.saved_game()).values["turn"] == 2
        assert not await game.has_unfinished_turn()


async def test_databases_are_private_and_in_wal_mode(tmp_path):
    async with open_checkpointer(tmp_path / "c.db") as saver, open_store(tmp_path / "m.db"):
        [(milliseconds,)] = await saver.conn.execute_fetchall("PRAGMA busy_timeout")
        assert milliseconds == 30_000, "so long it waits for another program"
        for name in ("c.db", "m.db"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
            with sqlite3.connect(tmp_path / name) as reader:
                assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)


NONE = b"this was a database once " * 100


@pytest.mark.parametrize(
    ("content", "openers"),
    [(NONE, [open_checkpointer, open_store]), (5000, [open_checkpointer]), (None, [open_checkpointer])],
    ids=["no database", "truncated", "a directory"],
)
async def test_a_file_that_cannot_be_used_is_named_and_left_as_it_is(tmp_path, content, openers):
    path = tmp_path / "games.db"
    if content == 5000:
        async with open_checkpointer(path) as saver:
            await saver.conn.execute("CREATE TABLE filler AS SELECT hex(randomblob(100000)) AS text")
            await saver.conn.commit()
        path.write_bytes(path.read_bytes()[:content])
    elif content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    before = path.is_file() and path.read_bytes()
    for opener in openers:
        with pytest.raises((HomeError, StoreError), match=r"games\.db"):
            async with opener(path) as opened:
                await opened.aget_tuple({"configurable": {"thread_id": "t"}})
    assert (path.is_file() and path.read_bytes()) == before
    if content == NONE:
        assert os.listdir(tmp_path) == ["games.db"]


@pytest.mark.parametrize(("error", "said"), [
    (sqlite3.OperationalError("database is locked"), "Cannot use .*: database is locked. What was played so far is"),
    (sqlite3.DatabaseError("it is malformed"), "Cannot read .*: it is malformed. It was not changed: put back a copy"),
])  # fmt: skip
def test_a_database_that_is_busy_and_one_that_is_damaged_are_told_apart(tmp_path, monkeypatch, error, said):
    def read_header(_):
        raise error

    monkeypatch.setattr("questbook.graphs.local.databases.read_header", read_header)
    with pytest.raises(HomeError, match=said):
        create_database(tmp_path / "c.db")


def test_langgraph_json_names_what_there_is():
    config = json.loads((ROOT / "langgraph.json").read_text())
    module, _, name = config["graphs"]["dungeon_master"]["path"].partition(":")
    assert hasattr(import_module(module), name)
    for key in ("checkpointer", "store"):
        path, _, name = config[key]["path"].partition(":")
        assert name in (ROOT / path).read_text()


def test_the_environment_names_the_home_and_it_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path / "a" / "b"))
    home = find_home()
    assert home.path == tmp_path / "a" / "b"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home.path, home.locks)] == [0o700, 0o700]
    names = {home.checkpoints.name, home.memory.name, home.prompt_history.name}
    assert names == {"checkpoints.db", "memory.db", "history"}


@pytest.mark.parametrize(("named", "found"), [("", "questbook"), ("~/games", "games")])
def test_without_it_or_with_a_tilde_it_is_in_the_users_directory(tmp_path, monkeypatch, named, found):
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("QUESTBOOK_HOME", named)
    home = find_home()
    assert home.path.name == found
    assert tmp_path in home.path.parents


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("file/games", r"file/games.*QUESTBOOK_HOME"),
        (".", "no permission to write"),
        ("~nobody-of-this-name/games", "nobody-of-this-name"),
    ],
)
def test_a_home_that_cannot_be_used_is_refused_with_its_name_and_what_to_do(tmp_path, monkeypatch, named, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("QUESTBOOK_HOME", named)
    monkeypatch.setattr("questbook.graphs.local.file_home.os.access", lambda *_: False)  # root may do anything
    with pytest.raises(HomeError, match=reason):
        find_home()
    assert (tmp_path / "file").read_text() == "mine"


async def test_a_model_chosen_after_the_first_turn_costs_and_what_newer_versions_kept_is_read(model):
    async with open_game(Context.of(None, seed=1)) as game:  # the built-in model, which costs nothing
        await played(game, "I'm Mira.")
        assert await costs_of(game.home, game.context.user, game.context.campaign) == Costs()
        game.context = context()
        paid = say("And your name?")
        paid.usage_metadata = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        model.queue("interview", paid)
        await played(game, "I am small.")
        assert (await costs_of(game.home, game.context.user, game.context.campaign)).total[:3] == (1, 7, 3)
        noted = say("", call("CharacterNotebook", ancestry="elf"))
        noted.usage_metadata = paid.usage_metadata
        model.queue("interview", noted, ModelError("The model is busy."))
        with pytest.raises(ModelError, match="busy"):
            await played(game, "An elf.")
        assert (await costs_of(game.home, game.context.user, game.context.campaign)).total[:3] == (2, 14, 6), (
            "also if it fails"
        )
    assert Costs.of({"last": {"calls": 1, "cached": 5}, "total": None}) == Costs(last=Cost(calls=1))


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (Cost(), "0 calls, 0 tokens"),
        (Cost(1, 700, 300, 0.0), "1 call, 1,000 tokens"),
        (Cost(2000, 7, 3, 0.00425), "2,000 calls, 10 tokens, $0.0043"),
        (Cost(2, 7, 3, None), "2 calls, 10 tokens"),
        (Cost(1, 2, 3, 0.5).plus(Cost(2, 3, 4, 0.25)), "3 calls, 12 tokens, $0.7500"),
        (Cost(1, 2, 3, 0.5).plus(Cost(2, 3, 4, None)), "3 calls, 12 tokens"),
        (Cost(1, 2, 3, None).plus(Cost(2, 3, 4, 0.5)).plus(Cost(1, 0, 0, 0.5)), "4 calls, 12 tokens"),
    ],
)
def test_costs_add_up_and_dollars_are_told_if_all_of_them_are_known(cost, shown):
    assert str(cost) == shown


def answered(model, prompt=7, answer=3, **more):
    usage = {"input_tokens": prompt, "output_tokens": answer, "total_tokens": prompt + answer}
    message = AIMessage("Hello.", response_metadata={"model_name": model}, **({"usage_metadata": usage} | more))
    return LLMResult(generations=[[ChatGeneration(message=message)]])


async def test_what_a_run_used_is_added_to_its_campaign_and_what_nobody_pays_for_is_not(home):
    meter, store = UsageMeter(), InMemoryStore()

    async def kept(*answers):
        for answer in answers:
            await meter.on_llm_end(answer)
        await meter.keep(store, "ann", "isle")
        item = await store.aget(campaign_namespace("ann", "isle", "cost"), "cost")
        return Costs.of(item.value if item else None)

    free = [
        answered("offline"), answered("gpt-4o-mini", usage_metadata=None), LLMResult(generations=[[]]),
        LLMResult(generations=[[Generation(text="Hello.")]]),
    ]  # fmt: skip
    assert await kept(*free) == Costs()
    first = await kept(answered("gpt-4o-mini", 1_000_000, 0), answered("gpt-4o-mini", 0, 1_000_000))
    assert first.last == first.total == Cost(2, 1_000_000, 1_000_000, pytest.approx(0.15 + 0.60))
    assert datetime.fromisoformat(first.since).utcoffset() == timedelta(0)
    await store.aput(campaign_namespace("ann", "isle", "cost"), "cost", {
        "last": first.last._asdict(), "total": first.total._asdict(), "since": "2026-01-01T00:00:00+00:00",
    })  # fmt: skip
    second = await kept(answered("a model of one's own"))
    assert (second.last, second.since) == (Cost(1, 7, 3, None), "2026-01-01T00:00:00+00:00")
    assert second.total == Cost(3, 1_000_007, 1_000_003, None)
    assert (await kept(answered(""))).last == Cost(1, 7, 3, None)
    assert await kept() == await kept(), "a turn without a call leaves the last one"


async def test_a_cost_that_cannot_be_written_costs_no_turn(caplog):
    class Full(InMemoryStore):
        async def abatch(self, ops):
            raise StoreError("The disk is full.")

    meter = UsageMeter()
    await meter.on_llm_end(answered("offline ii"))
    await meter.keep(Full(), "ann", "isle")
    assert "What the last turn of 'isle' cost was not kept: The disk is full." in caplog.text


def saved(messages=(), user="ann", campaign="isle", thread=None, **values):
    thread = thread or thread_id_of(user, campaign)
    return SavedGame(user, campaign, thread, "", values | {"messages": list(messages)})


CALL = AIMessage("", tool_calls=[{"name": "roll_dice", "args": {}, "id": "1"}])


@pytest.mark.parametrize(
    ("messages", "sent", "unanswered", "last"),
    [
        ([], [], None, ""),
        ([HumanMessage("Hi."), AIMessage("Hello.")], [], None, "Hello."),
        ([HumanMessage("Hi."), AIMessage("Hello."), HumanMessage("I dive.")], [], "I dive.", "Hello."),
        ([HumanMessage("Hi."), AIMessage("Hello."), HumanMessage("I dive."), CALL], [], "I dive.", "Hello."),
        ([HumanMessage("I dive."), CALL, ToolMessage("17", tool_call_id="1")], [], "I dive.", ""),
        ([HumanMessage("Hi."), AIMessage("Hello."), AIMessage(" ")], [], None, "Hello."),
        ([HumanMessage("Hi."), AIMessage("Hello.")], [{"role": "user", "content": "I dive."}], "I dive.", "Hello."),
        ([], [{"role": "user", "content": "Hi."}], "Hi.", ""),
    ],
)
def test_a_saved_game_knows_which_message_has_no_reply_and_what_was_said_last(messages, sent, unanswered, last):
    game = saved(messages, __start__={"messages": sent} if sent else "odd")
    assert (game.unanswered, game.last_reply, game.unread) == (unanswered, last, sent)


def test_what_a_player_sees_of_a_saved_game_begins_with_the_summary_of_the_story():
    view = saved(summary="They met a heron.", quest={"scene": "An inn."}).view
    assert view.summary == "They met a heron."
    assert view.recap().startswith("**Previously on…**\n\nThey met a heron.\n\nNow: An inn.")


@pytest.mark.parametrize(
    ("game", "machine", "is_playable"),
    [
        (saved(quest={}), "dungeon_master", True),
        (saved(character={}, thread="in Studio"), "dungeon_master", True),
        (saved(), "", True),
        (saved(thread="in Studio"), "", False),
        (saved(core={}), "companion", False),
        (saved(campaign="", quest={}), "dungeon_master", False),
    ],
)
def test_the_terminal_plays_games_and_what_began_on_their_own_threads(game, machine, is_playable):
    assert (game.machine, game.is_playable) == (machine, is_playable)


@pytest.mark.parametrize(
    ("metadata", "values", "users"),
    [
        ({}, {}, set()),
        ({"user": "ann"}, {}, {"ann"}),
        ({"user": ""}, {"campaign": ["ann", "isle"]}, {"ann"}),
        ({"user": "bob"}, {"campaign": ["ann", "isle"]}, {"ann", "bob"}),
        ({"questbook_owner": "eve", "user": "ann"}, {"campaign": None}, {"ann", "eve"}),
    ],
)
def test_a_checkpoint_is_of_all_whom_it_names(metadata, values, users):
    assert users_in(metadata, values) == users


async def test_a_thread_that_cannot_be_read_is_left_out_of_the_list_and_the_log_says_so(model, caplog):
    for name in ("isle", "reef"):
        async with open_game(context(campaign=name)) as game:
            await played(game, "Hello.")
    async with open_game(context(campaign="isle")) as game:
        thread = game.thread_id
        await game.checkpointer.conn.execute(
            "UPDATE checkpoints SET checkpoint = ? WHERE thread_id = ?", (b"x", thread)
        )
        await game.checkpointer.conn.commit()
        assert [saved.campaign for saved in await list_campaigns(game.checkpointer, "adventurer")] == ["reef"]
        assert f"Thread {thread} is left out of the list of campaigns: The last checkpoint of thread" in caplog.text
        with pytest.raises(UnreadableError, match="put back a copy of the data directory, or play another campaign"):
            await game.saved_game()
        await game.checkpointer.conn.execute("UPDATE checkpoints SET metadata = ? WHERE thread_id = ?", (b"{", thread))
        await game.checkpointer.conn.commit()
        assert [saved.campaign for saved in await list_campaigns(game.checkpointer, "adventurer")] == ["reef"]
        assert (await in_connection(game.checkpointer, lambda database: first_of(database, thread)))[1] == {}
        assert await in_connection(game.checkpointer, lambda database: first_of(database, "none")) is None


async def test_a_state_that_no_longer_fits_says_how_to_go_back(model, monkeypatch):
    async def unreadable(_):
        Weights.model_validate({"words": -1})
        yield

    async with open_game(context(campaign="isle")) as game:
        monkeypatch.setattr("questbook.graphs.local.game.read_stream", unreadable)
        with pytest.raises(UnreadableError) as refused:
            await played(game, "Hello.")
    assert str(refused.value) == (
        "The state of campaign 'isle' cannot be read: words: Input should be greater than or equal to 0. Go back to an "
        "earlier turn: questbook rewind --to TURN."
    )


@pytest.mark.parametrize(("message", "tries", "said"), [
    ("database is locked", 3, None), ("disk I/O error", 1, r"Cannot use .*c\.db: disk I/O error\. What was played"),
])  # fmt: skip
async def test_a_file_that_two_programs_make_at_once_is_waited_for_and_no_other_error_is(
    tmp_path, monkeypatch, message, tries, said
):
    asked = []

    def busy(statement):
        asked.append(statement)
        if len(asked) < 3:
            raise sqlite3.OperationalError(message)

    waits = partial(switch_to_wal, SimpleNamespace(execute=busy))
    monkeypatch.setattr("questbook.graphs.local.checkpointer.switch_to_wal", lambda _: waits())
    with pytest.raises(HomeError, match=said) if said else nullcontext():
        async with open_checkpointer(tmp_path / "c.db"):
            pass
    assert len(asked) == tries


@pytest.mark.parametrize(
    ("setting", "made_with", "knows"),
    [
        ("hash", None, False), ("minilm", None, True), ("openai:text-embedding-3-small", "hash", True),
        ("auto", "hash:512", False), ("auto", "minilm", True), ("hash:512", "minilm", False),
    ],
)  # fmt: skip
async def test_what_finds_by_meaning_is_the_setting_or_what_the_memories_were_made_with(
    home, monkeypatch, setting, made_with, knows
):
    monkeypatch.setattr("questbook.memory.store.database_file.read_embedder", lambda _: made_with)
    assert await knows_meaning(home, setting) is knows
    hint = await minilm_hint(home, setting)
    assert bool(hint) is (setting == "auto" and not knows)
    assert ("start once with QUESTBOOK_EMBEDDINGS=minilm" in hint) is (hint != "" and made_with is not None)
    assert await minilm_hint(home, setting, only_first=True) == hint
    home.memory.touch()
    assert await minilm_hint(home, setting, only_first=True) == "", "it is not said at every start"


@pytest.mark.parametrize(("ttl", "sweeps"), [(None, 0), ({"default_ttl": 5}, 0), ({"sweep_interval_minutes": 5}, 1)])
async def test_a_store_whose_items_expire_is_swept_if_the_settings_say_how_often(tmp_path, monkeypatch, ttl, sweeps):
    swept = []
    monkeypatch.setattr(FaissStore, "start_ttl_sweeper", lambda self: swept.append(self))
    async with open_store(tmp_path / "m.db", "hash", ttl=ttl) as store:
        assert swept == [store] * sweeps


@pytest.mark.parametrize("setting", ["auto", "hash"])
async def test_vectors_that_are_known_are_not_made_again(tmp_path, setting):
    known = {"The lamp.": [1.0] + [0.0] * (len(HashEmbeddings().embed_query("x")) - 1)}
    async with open_store(tmp_path / "m.db", setting, known=known) as store:
        for text in ("The lamp.", "A heron."):
            await store.aput(("n",), text, {"text": text})
        scores = [(await store.asearch(("n",), query=text, limit=2)) for text in ("The lamp.", "A heron.")]
    found = [
        {item.key: round(item.score) for item in found}[text]
        for found, text in zip(scores, ("The lamp.", "A heron."), strict=True)
    ]
    assert found == [0, 1], "the question is no known text"


@pytest.mark.parametrize("steps", [[], ["get it", "say so"]])
async def test_where_there_are_no_memories_yet_minilm_is_what_they_get_if_it_is_ready(home, monkeypatch, steps):
    monkeypatch.setattr("questbook.graphs.local.databases.steps_to_minilm", lambda: list(steps))
    assert await knows_meaning(home, "auto") is (not steps)
    assert (await minilm_hint(home, "auto", only_first=True)).endswith(": get it, then say so." if steps else "")


def test_a_lock_is_waited_for_as_long_as_one_says(home):
    lock = FileLock(home.lock_of("t"), thread_local=False)
    lock.acquire()
    timer = threading.Timer(0.02, lock.release)
    timer.start()
    with hold_file(home.lock_of("t"), "busy", 20):
        pass
    timer.join()
    lock.acquire()
    with pytest.raises(CampaignBusyError, match="busy"), hold_file(home.lock_of("t"), "busy", 0.01):
        raise AssertionError


def test_a_lock_that_cannot_be_written_is_named_with_what_to_do(home):
    home.lock_of("t").mkdir()
    said = r"Cannot use .*t\.lock: .*\. Correct its permissions, or move it\."
    with pytest.raises(HomeError, match=said), hold_file(home.lock_of("t"), "busy"):
        raise AssertionError
    with hold_campaign(home, "ann", "isle"):
        file = home.lock_of(thread_id_of("ann", "isle"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        said = "Campaign 'isle' is open in another terminal or page. Close it, or play another: --campaign NAME."
        with pytest.raises(CampaignBusyError, match=said), hold_campaign(home, "ann", "isle"):
            raise AssertionError
        with hold_campaign(home, "ann", "reef"), hold_campaign(home, "bob", "isle"):
            pass


def test_a_home_that_is_named_from_here_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUESTBOOK_HOME", "games")
    assert find_home().path == tmp_path / "games"


@pytest.mark.parametrize("needed", [os.W_OK, os.X_OK])
def test_a_home_must_be_one_that_can_be_written_and_entered(tmp_path, monkeypatch, needed):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    monkeypatch.setattr("questbook.graphs.local.file_home.os.access", lambda _, mode: not mode & needed)
    with pytest.raises(HomeError, match="no permission to write"):
        find_home()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
async def test_an_open_campaign_takes_at_most_two_descriptors_and_gives_them_back(model):
    def count():
        return len(os.listdir("/proc/self/fd"))

    home, before = find_home(), count()
    async with AsyncExitStack() as opened:
        for number in range(20):
            campaign = f"game {number}"
            opened.enter_context(hold_campaign(home, "adventurer", campaign))
            game = await opened.enter_async_context(open_game(context(campaign=campaign), home))
            await begin(model, game)
        assert count() - before <= 2 * 20, "they share both databases"
    assert count() <= before


async def test_one_who_leaves_the_shared_databases_leaves_them_open_for_others(model):
    async with open_game(context(campaign="b")) as second:
        async with open_game(context(campaign="a")) as first:
            await begin(model, first)
            await begin(model, second)
        model.queue("quest", say("A goose."))
        assert "A goose." in said(await played(second, "I look up."))
