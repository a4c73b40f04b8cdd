"""A game in this process: turns in events, what a killed or failed one leaves; the data directory and its files."""

import json
import os
import sqlite3
import stat
import uuid
from importlib import import_module
from pathlib import Path

import pytest
from conftest import MIRA
from scripted import call, say

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError
from questbook.graphs.events import DiceRoll, Memories, NodeEnd, Notice, PromptReport, ReplyPiece
from questbook.graphs.local.costs import Cost, Costs, costs_of
from questbook.graphs.local.databases import open_checkpointer, open_store
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import Home, HomeError
from questbook.graphs.local.saved_game import thread_id_of
from questbook.memory.errors import StoreError

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
    async with open_checkpointer(tmp_path / "c.db"), open_store(tmp_path / "m.db"):
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


def test_langgraph_json_names_what_there_is():
    config = json.loads((ROOT / "langgraph.json").read_text())
    module, _, name = config["graphs"]["dungeon_master"]["path"].partition(":")
    assert hasattr(import_module(module), name)
    for key in ("checkpointer", "store"):
        path, _, name = config[key]["path"].partition(":")
        assert name in (ROOT / path).read_text()


def test_the_environment_names_the_home_and_it_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path / "a" / "b"))
    home = Home.find()
    assert home.path == tmp_path / "a" / "b"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home.path, home.locks)] == [0o700, 0o700]
    names = {home.checkpoints.name, home.memory.name, home.prompt_history.name}
    assert names == {"checkpoints.db", "memory.db", "history"}


@pytest.mark.parametrize(("named", "found"), [("", "questbook"), ("~/games", "games")])
def test_without_it_or_with_a_tilde_it_is_in_the_users_directory(tmp_path, monkeypatch, named, found):
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("QUESTBOOK_HOME", named)
    home = Home.find()
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
    monkeypatch.setattr("questbook.graphs.local.home.os.access", lambda *_: False)  # root may do anything
    with pytest.raises(HomeError, match=reason):
        Home.find()
    assert (tmp_path / "file").read_text() == "mine"


async def test_a_model_chosen_after_the_first_turn_costs_and_what_newer_versions_kept_is_read(model):
    async with open_game(Context.of(None, seed=1)) as game:  # the built-in model, which costs nothing
        await played(game, "I'm Mira.")
        assert costs_of(game.home, game.context.user, game.context.campaign) == Costs()
        game.context = context()
        paid = say("And your name?")
        paid.usage_metadata = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        model.queue("interview", paid)
        await played(game, "I am small.")
        assert costs_of(game.home, game.context.user, game.context.campaign).total[:3] == (1, 7, 3)
        noted = say("", call("CharacterNotebook", ancestry="elf"))
        noted.usage_metadata = paid.usage_metadata
        model.queue("interview", noted, ModelError("The model is busy."))
        with pytest.raises(ModelError, match="busy"):
            await played(game, "An elf.")
        assert costs_of(game.home, game.context.user, game.context.campaign).total[:3] == (2, 14, 6), "also if it fails"
    assert Costs.of({"last": {"calls": 1, "cached": 5}, "total": None}) == Costs(last=Cost(calls=1))
