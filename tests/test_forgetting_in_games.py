"""Forgetting, in a game as it is played: no byte stays in any file, and the game plays on."""

import asyncio
import sqlite3
import threading
from contextlib import suppress

import pytest
from forgetting_of import forgetting_of
from scripted import call, say
from stored_bytes import contents, files_saying
from stored_bytes import opened as unpacked

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.history.history import History
from questbook.graphs.interface.forgetting import forget_words
from questbook.graphs.local.game import open_game
from questbook.graphs.terminal.forget import forget_campaign, forget_player
from questbook.graphs.turn.turn import FORGOTTEN

SECRET = "Silver Heron"
MIRA = {"name": "Mira", "ancestry": "halfling", "class": "rogue", "background": "grew up at sea", "goal": "to get rich"}


def rows(home, database, table):
    with sqlite3.connect(f"file:{home / database}?mode=ro", uri=True) as connection:
        return {tuple(row) for row in connection.execute(f"SELECT * FROM {table}")}


@pytest.fixture
def sit(model, home):
    """Play turns of a campaign in a sitting of its own: (words, reply, what is noted) each."""

    async def play(game, *turns):
        for words, reply, noted in turns:
            model.queue("quest", reply if not isinstance(reply, str) else say(reply))
            model.queue("update", say("", call("StateNotebook", **noted)) if noted else say("no change"))
            await drain(game.send(words))

    async def open_and_play(*turns, campaign="isle", **settings):
        context = Context(model="scripted", seed=7, user="ann", campaign=campaign, **settings)
        async with open_game(context, home) as game:
            if await game.saved_game() is None:
                model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
                model.queue("update", say("", call("StateNotebook", scene="An inn at dusk.", location="The Bent Nail")))
                await drain(game.send("I'm Mira"))
            await play(game, *turns)
            return await game.saved_game()

    open_and_play.play = play
    return open_and_play


@pytest.fixture
def opened(model, home):
    def game(campaign="isle", **settings):
        return open_game(Context(model="scripted", seed=7, user="ann", campaign=campaign, **settings), home)

    return game


async def forgetting(game):
    return forgetting_of(await game.load(), game.config, game.context)


async def drain(events):
    async for _ in events:
        pass


async def test_on_a_page_of_many_what_was_stopped_is_completed_by_the_next_one(sit, opened, monkeypatch):
    await sit((f"I look at the {SECRET}", f"The {SECRET} shines.", None))
    whole, done = Forgetting.compact, []

    async def compact(self, *given, **named):
        done.append(given)
        if len(done) == 1:
            raise asyncio.CancelledError
        await whole(self, *given, **named)

    monkeypatch.setattr(Forgetting, "compact", compact)
    for count in (1, 2, 2):
        async with opened() as game:
            with suppress(asyncio.CancelledError):
                await forget_words(game, SECRET, alone=True)
        assert len(done) == count
        async with opened("reef") as other:  # the mark of the first has no words that a person could mean
            for words in ("isle", "cut"):
                assert "Nothing that you can see" in await forget_words(other, words, alone=True)
        assert len(done) == count


LONG = "The tide comes in and goes out again, and nobody says a word about it for a long while. " * 8
STORY = (
    (f"I ask for the {SECRET}", f"The {SECRET.upper()}? She sailed at dawn.", {
        "people": {SECRET: {"role": "ship"}, "Bo": {"role": f"sailor of the {SECRET}"}},
        "facts": {"harbour": "is empty"}, "gold": 7,
    }),
    ("I walk on", LONG, {"objective": f"Find the\n{SECRET.lower()}"}),
    ("I sleep", LONG, None),
    ("I wake", "Morning.", {"gold": 9}),
)  # fmt: skip


@pytest.mark.slow
async def test_words_leave_every_branch_page_summary_and_file(sit, opened, home, model):
    model.queue("condense", say(f"Mira looks for the {SECRET}; the harbour is empty."))
    home.prompt_history.write_text(f"\n# 2026-01-01\n+I ask for the {SECRET}\n\n# 2026-01-01\n+I walk on\n", "utf-8")
    await sit(*STORY, buffer_tokens=300)
    async with opened() as game:  # another branch, in its own sitting
        history = History(await game.load(), game.config, game.context)
        await history.undo(2)
        await history.name_line(f"{SECRET} road")
        await sit.play(game, (f"Again: where is the silver  heron, {SECRET}?", "Gone.", {"gold": 8}))
        head = await game.saved_game()
        assert SECRET in head.values["summary"]
        before = len(await history.turns())

        forget = await forgetting(game)
        found = await forget.find(SECRET)
        assert files_saying(home.path, SECRET), "finding changes nothing"
        assert [record["turn"] for record in found.records] == [2, 4]
        assert {"quest.people.Silver Heron", "quest.people.Bo.role", "quest.objective", "summary", "line"} <= set(
            found.fields
        )
        assert found.checkpoints > 20

        told = await forget_words(game, SECRET, remove_emptied=True)
        assert "1 typed line." in told
        assert "can still be read" not in told
        assert files_saying(home.path, SECRET) == []
        assert files_saying(home.path, "heron") == []
        saved = await game.saved_game()
        assert saved.values["summary"] == f"Mira looks for the {FORGOTTEN}; the harbour is empty."
        quest = saved.values["quest"]
        assert set(quest["people"]) == {"Bo"}
        assert quest["people"]["Bo"]["role"] == f"sailor of the {FORGOTTEN}"
        assert quest["facts"] == {"harbour": "is empty"}
        assert quest["gold"] == 8
        assert saved.turn == 4
        assert [m.id for m in saved.values["messages"]] == [m.id for m in head.values["messages"]]
        places = await history.turns()
        assert len(places) == before, "the tree of what was played stands"
        assert f"I ask for the {FORGOTTEN}" in {place.player for place in places}

        await sit.play(game, ("What now?", "Onward.", {"gold": 10}))
        assert (await game.saved_game()).values["quest"]["gold"] == 10
        await history.go("main")
        await sit.play(game, ("And here?", "Onward too.", None))
        assert (await game.saved_game()).turn == 6
    assert files_saying(home.path, SECRET) == []
    assert "walk on" in home.prompt_history.read_text("utf-8")


@pytest.mark.slow
async def test_everything_else_stays_byte_for_byte(sit, opened, home):
    await sit(*STORY, campaign="other")
    await sit(*STORY)

    def saying(*, heron):
        found = rows(home.path, "checkpoints.db", "checkpoints")
        return {row for row in found if (b"heron" in (unpacked(row[4], row[5]) + row[6]).lower()) is heron}

    kept = saying(heron=False)
    others = {row for row in rows(home.path, "memory.db", "items") if "heron" not in row[3].lower()}
    async with opened("other") as game:
        theirs, state = game.thread_id, (await game.saved_game()).values
    async with opened() as game:
        told = await forget_words(game, SECRET, remove_emptied=True)
    assert "These words can still be read in checkpoints.db, memory.db: another campaign has them" in told
    assert len(kept) > 5
    assert kept <= rows(home.path, "checkpoints.db", "checkpoints")
    assert others <= rows(home.path, "memory.db", "items")
    assert {row[0] for row in saying(heron=True)} == {theirs}
    async with opened("other") as game:
        assert (await game.saved_game()).values == state


STEPS = (
    "questbook.graphs.forgetting.forget.put_all",
    "questbook.graphs.interface.forgetting.remove_typed",
    "questbook.memory.store.faiss_store.FaissStore.compact",
    "questbook.graphs.forgetting.erasure.Erasure.compact",
)


@pytest.mark.parametrize("step", [STEPS[0], *(pytest.param(step, marks=pytest.mark.slow) for step in STEPS[1:])])
@pytest.mark.slow
async def test_stopped_at_any_step_the_next_run_completes_it(sit, opened, home, monkeypatch, step):
    home.prompt_history.write_text(f"\n# 2026-01-01\n+{SECRET}\n", "utf-8")
    await sit(*STORY)

    def stop(*_, **__):
        raise KeyboardInterrupt

    async with opened() as game:
        with monkeypatch.context() as patch:
            patch.setattr(step, stop)
            with pytest.raises(KeyboardInterrupt):
                await forget_words(game, SECRET, remove_emptied=True)
        # Before the file is made anew, what is left of checkpoints is compressed, on pages that are free.
        assert files_saying(home.path, SECRET) or step.endswith("Erasure.compact")
        await forget_words(game, SECRET, remove_emptied=True)
        assert files_saying(home.path, SECRET) == []


@pytest.mark.slow
@pytest.mark.parametrize("words", ['the "Schwértfisch" 😀', "Zoë <of> Óbidos & co", "東京都の鷺"])
async def test_quotes_and_other_scripts_inside_json(sit, opened, home, words):
    noted = {"facts": {words: "is known", "note": f"she said: {words}"}}
    roll = say("", call("roll_dice", expression="1d20", reason=f"for {words}"))
    await sit((f"I speak of {words}!", roll, noted), (f"and {words}", f"Yes, {words.upper()}.", noted))
    async with opened() as game:
        assert files_saying(home.path, words)
        await (await forgetting(game)).forget(words)
        left = b"".join(contents(home.path).values()).decode("utf-8", "ignore").lower()
        assert words.lower() not in left
        assert words.lower().encode("unicode-escape").decode() not in left
        assert set((await game.saved_game()).values["quest"]["facts"]) == {"note"}
        await sit.play(game, ("On we go", "We do.", None))


@pytest.mark.parametrize("words", ["isle", "ann", "human", "quest", "x"])
@pytest.mark.slow
async def test_what_cannot_be_forgotten_changes_nothing(sit, opened, home, words):
    await sit(*STORY[:2])
    async with opened() as game:
        before = rows(home.path, "checkpoints.db", "checkpoints"), rows(home.path, "memory.db", "items")
        with pytest.raises(ForgettingError, match="Nothing was changed"):
            await (await forgetting(game)).forget(words)
        assert (rows(home.path, "checkpoints.db", "checkpoints"), rows(home.path, "memory.db", "items")) == before


@pytest.mark.slow
async def test_a_campaign_goes_without_its_neighbours_and_a_player_with_all_campaigns(sit, opened, home):
    home.prompt_history.write_text("\n# 1\n+I sleep\n\n# 2\n+elsewhere\n", "utf-8")
    for campaign in ("Aarhus cove", "Bergen bay", "Cork"):
        await sit(*STORY[:3], campaign=campaign)
    async with open_game(Context(model="scripted", user="ben", campaign="isle"), home) as game:
        await drain(game.send("Hello"))
    async with opened("Cork") as game:
        home.lock_of(game.thread_id).touch()
        told = await forget_campaign(game, yes=True)
        assert told.startswith("Forgotten: campaign 'Cork'. Threads, with all their checkpoints: 1; ")
        assert told.endswith("; typed lines: 1.")
        assert await game.saved_game() is None
        for words in ("Cork", game.thread_id, "+I sleep"):
            assert files_saying(home.path, words) == [], words
        assert not home.lock_of(game.thread_id).exists()
    async with opened("Aarhus cove") as game:
        await sit.play(game, ("On", "And on.", None))
        assert (await game.saved_game()).turn == 5
    assert (await sit(campaign="Cork")).turn == 1, "the name is free again"
    async with opened() as game:
        forget = await forgetting(game)
        await forget.store.aput(("ann", "player"), "likes", {"text": "herons"})
        assert await forget.campaigns() == ["Aarhus cove", "Bergen bay", "Cork"]
        told = await forget_player(game, yes=True)
        assert told.startswith("Forgotten: player 'ann'. Threads, with all their checkpoints: 3; ")
    assert home.prompt_history.read_text("utf-8") == "\n# 2\n+elsewhere\n", "somebody else plays here"
    for words in ("heron", "Aarhus", "Bergen", "Mira", '"ann"', "ann."):
        assert files_saying(home.path, words) == [], words
    assert files_saying(home.path, "ben")


async def test_a_forgotten_turn_is_still_a_place_in_the_story(game):
    await game.begin()
    for words in ("I whisper swordfish", "I go on"):
        game.model.queue("quest", say(f"You did: {words}."))
        await game.play(words)
    context = Context.of(game.settings)
    with pytest.raises(ForgettingError, match="checkpoints"):  # those in RAM are none of ours; the store is cleaned
        await forgetting_of(game.app, game.config, context).forget("swordfish")
    history = History(game.app, game.config, context)
    assert [(place.turn, place.player) for place in await history.turns()][1] == (2, "I whisper [forgotten]")
    assert (await history.find("2")).turn == 2
    await history.rewind(2)
    assert game.values["turn"] == 2
    assert "swordfish" not in str(game.store.search((), limit=1000))


@pytest.mark.slow
async def test_words_that_a_run_in_studio_writes_again_go_when_it_ends(sit, opened, home, model):
    """Another program plays a turn of the campaign: it has the state in its memory."""
    await sit(*STORY)
    begun, go_on = threading.Event(), threading.Event()

    def think(messages):
        begun.set()
        go_on.wait(20)
        return say("The gate opens.")

    async with opened() as studio, opened() as game:
        model.queue("quest", think)
        run = asyncio.create_task(drain(studio.send("I open the gate")))
        await asyncio.to_thread(begun.wait, 20)
        told = await forget_words(game, SECRET, remove_emptied=True)
        assert "A turn is being played elsewhere, such as in Studio" in told
        assert "another campaign" not in told
        go_on.set()
        await run
        assert (await game.saved_game()).last_reply == "The gate opens."
        assert files_saying(home.path, SECRET) == []
        told = await forget_words(game, SECRET, remove_emptied=True)
        assert "elsewhere" not in told
    assert files_saying(home.path, SECRET) == []
