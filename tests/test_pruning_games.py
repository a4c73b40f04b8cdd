"""Pruned games: one can go back within what was kept, and branches, origins, memories and forgetting hold as before."""

import io
import re
import sqlite3
from argparse import Namespace

import pytest
from held import hold_campaign
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from page_play import turn
from program import play, questbook
from scripted import say
from threads import beside, history, run, told

from questbook import prune
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.why import why
from questbook.graphs.errors import HistoryError, SettingsError
from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.local.game import open_game
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal import homes
from questbook.graphs.terminal.homes import prune as prune_games

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."


async def deeds(game, *numbers):
    for number in numbers:
        await turn(game, f"Deed {number}", gold=number)


class ReadAtOnce(AsyncSqliteSaver):
    """A saver whose newest checkpoint a test can read without waiting."""

    def get_tuple(self, config):
        with SqliteSaver.from_conn_string(self.file) as opened:
            return opened.get_tuple(config)


@pytest.fixture
async def game(new_game, tmp_path):
    file = str(tmp_path / "game.db")
    async with ReadAtOnce.from_conn_string(file) as saver:
        game = new_game()
        game.saver, saver.file = saver, file
        game.keep_in(game.store)
        yield game


@pytest.fixture
async def story(game):
    """Nine turns; after the third another line of five, named "dark"; pruned to two turns of each line."""
    await game.begin()
    await deeds(game, *range(2, 10))
    await history(game).go("3")
    await history(game).name_line("dark")
    await deeds(game, *range(14, 19))
    game.before = await history(game).turns()
    game.pruned = await prune(game.saver, keep_turns=2)
    return game


@pytest.mark.slow
async def test_undo_goes_back_within_what_was_kept_and_says_what_is_gone(story):
    assert story.pruned.checkpoints > 40
    assert (await history(story).undo(2)).values["turn"] == 6
    assert (story.reply, story.values["quest"]["gold"]) == ("So be it: Deed 16.", 16)
    with pytest.raises(HistoryError, match=r"turn 5 .*pruned.* turn 3 and turn 6"):
        await history(story).undo()
    assert (await history(story).undo(3)).values["turn"] == 3


@pytest.mark.slow
async def test_a_turn_that_is_kept_is_told_again_and_its_message_written_anew(story):
    config, context = await history(story).retry()
    story.model.queue("quest", say("Told anew."))
    await run(story, None, config, context)
    assert (story.values["turn"], story.reply) == (8, "Told anew.")
    config, message = await history(story).last_message()
    story.model.queue("quest", say("Wiser."))
    await run(story, {"messages": [("user", "Deed 18, wiser")]}, config)
    assert (message, told(story)[-2:]) == ("Deed 18", ["Deed 17", "Deed 18, wiser"])


async def test_lines_and_branches_can_be_gone_to_and_played_on(story):
    assert await history(story).turns() == story.before
    await history(story).go("main")
    assert (story.values["turn"], story.values["quest"]["gold"]) == (9, 9)
    assert (await history(story).undo(2)).values["quest"]["gold"] == 7
    await history(story).go("main")
    await deeds(story, 10)
    await history(story).go("dark")
    assert (story.values["turn"], story.values["line"]) == (8, "dark")
    await history(story).go("3")
    assert told(story)[-1] == "Deed 3"
    difference = await history(story).difference("main", "dark")
    assert {change.path for change in difference.pages} >= {("gold",)}


@pytest.mark.slow
async def test_what_was_said_of_a_pruned_turn_is_still_known(story):
    await history(story).go("main")
    causes = await why(story.app, story.config, Context.of(story.settings), "gold")
    assert [cause.turn for cause in causes] == [9, 8, 7, 6, 5, 4, 3, 2]
    done = await retract(story.app, story.config, Context.of(story.settings), 5)
    assert (done.player, done.kept, story.values["quest"]["gold"]) == ("Deed 5", ["gold"], 9)


@pytest.mark.slow
async def test_a_turn_that_another_thread_copied_is_kept(game):
    await game.begin()
    await deeds(game, 2, 3)
    other = beside(game)
    assert await history(other).enter([game.config["configurable"]["thread_id"]])
    await deeds(game, *range(4, 9))
    await deeds(other, 14)
    await prune(game.saver, keep_turns=1)
    assert (await history(other).undo()).values["quest"]["gold"] == 3
    assert (await history(other).undo()).values["turn"] == 2


@pytest.mark.slow
async def test_words_are_forgotten_in_a_pruned_game(home):
    async with open_game(CONTEXT, home) as game:
        await tell(game, MIRA, *(f"I look at the heron number {number}" for number in range(2, 9)))
        await prune(game.checkpointer, keep_turns=2)
        graph = await game.load()
        await Forgetting(graph.store, game.checkpointer, "adventurer", "isle").forget("heron number 8")
        assert "heron number 8" not in str((await game.saved_game()).values)
        state = await (await game.history()).undo()
        assert "heron number 7" in str(state.values["messages"])


CONTEXT = Context(model="offline", user="adventurer", seed=6, campaign="isle")


async def tell(game, *words):
    for said in words:
        async for _ in game.send(said):
            pass


def tables(file):
    with sqlite3.connect(file) as database:
        count = "SELECT COUNT(*) FROM"
        listed = "SELECT j.value FROM checkpoints, json_each(checkpoints.blobs) j"
        names = ("checkpoints", "writes", "checkpoint_blobs", f"checkpoint_blobs WHERE id NOT IN ({listed})")
        sizes = "SELECT SUM(LENGTH(checkpoint) + LENGTH(CAST(metadata AS BLOB))) FROM checkpoints"
        sizes = f"{sizes} UNION ALL SELECT SUM(LENGTH(value)) FROM writes"
        sizes = f"{sizes} UNION ALL SELECT SUM(LENGTH(value)) FROM checkpoint_blobs"
        size = sum(part or 0 for (part,) in database.execute(sizes))
        return [size, *(database.execute(f"{count} {name}").fetchone()[0] for name in names)]


@pytest.mark.slow
async def test_our_own_saver_keeps_each_value_that_a_kept_checkpoint_needs(home):
    async with open_game(CONTEXT, home) as game:
        await tell(game, MIRA, *(f"look at door {number}" for number in range(2, 9)))
        before = {saved.checkpoint["id"]: saved.checkpoint async for saved in game.checkpointer.alist(game.config)}
        rows = tables(home.checkpoints)
        result = await prune(game.checkpointer, keep_turns=2)
        after = {saved.checkpoint["id"]: saved.checkpoint async for saved in game.checkpointer.alist(game.config)}
        assert after == {name: before[name] for name in after}
        *left, unneeded = tables(home.checkpoints)
        removed = [was - now for was, now in zip(rows, left, strict=False)]
        assert (removed, unneeded) == ([result.bytes, result.checkpoints, result.writes, result.blobs], 0)
        assert result.blobs > 0
        await tell(game, "look at door 9")
        assert (await game.saved_game()).turn == 9


@pytest.mark.slow
def test_the_command_shows_asks_and_deletes(home):
    play(home.path, "\n".join([MIRA, *(f"look at door {number}" for number in range(2, 10))]))
    said = questbook(home.path, "prune", "--keep-turns", "2", "--dry-run").stdout
    assert "MB), would go. Kept: " in said
    declined = questbook(home.path, "prune", "--keep-turns", "2", words="no\n")
    assert "Nothing was deleted." in declined.stdout
    before = tables(home.checkpoints)
    done = questbook(home.path, "prune", "--keep-turns", "2", words="yes\n")
    assert (done.returncode, "MB), deleted." in done.stdout, "MB now" in done.stdout) == (0, True, True)
    assert tables(home.checkpoints)[0] < before[0] / 2
    assert "Nothing to prune" in questbook(home.path, "prune", "--keep-turns", "2", "--yes").stdout
    assert "agree" in questbook(home.path, "doctor").stdout
    shown = play(home.path, "/undo\n/undo\n/undo\n/branches\nlook around")
    assert "turn 7" in shown.stdout.decode()
    assert "were pruned" in shown.stderr.decode()
    assert "9 turns on 1 branch" in shown.stdout.decode()


@pytest.mark.slow
def test_a_campaign_that_is_played_is_left_as_it_is(home):
    for campaign in ("isle", "coast"):
        play(
            home.path, "\n".join([MIRA, *(f"look at door {number}" for number in range(2, 6))]), "--campaign", campaign
        )
    before = tables(home.checkpoints)[0]
    with hold_campaign(home, "adventurer", "isle"):
        said = questbook(home.path, "prune", "--keep-turns", "1", "--yes").stdout
    assert "Left as it is: campaign 'isle' of adventurer. It is open in another terminal." in said
    left = tables(home.checkpoints)[0]
    assert left < before
    questbook(home.path, "prune", "--keep-turns", "1", "--campaign", "isle", "--yes")
    assert tables(home.checkpoints)[0] < left


def test_an_age_that_cannot_be_is_refused(home):
    refused = questbook(home.path, "prune", "--older-than", "-1")
    assert (refused.returncode, "number of days, got -1" in refused.stderr) == (2, True)


def flags(**named):
    default = {"keep_turns": 50, "older_than": None, "campaign": None, "user": None, "dry_run": False, "yes": True}
    return Namespace(**{**default, **named})


@pytest.fixture
async def two_games(home):
    """A home with two campaigns of three turns each."""
    for name in ("isle", "reef"):
        async with open_game(Context(model="offline", user="ann", campaign=name, seed=6), home) as played:
            for words in (MIRA, "look around", "I wait"):
                async for _ in played.send(words):
                    pass
    return home


def count(home):
    """The checkpoints of each campaign."""
    with sqlite3.connect(home.checkpoints) as database:
        counts = dict(database.execute("SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id"))
    return [counts[thread_id_of("ann", name)] for name in ("isle", "reef")]


ISLE = Context(model="offline", user="ann", campaign="isle")


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"keep_turns": 0}, "--keep-turns takes a number from 1, got 0."),
        ({"older_than": -0.5}, "--older-than takes a number of days, got -0.5."),
        ({"older_than": 1e12}, "--older-than takes a number of days, got 1000000000000.0."),
        ({"older_than": float("nan")}, "--older-than takes a number of days, got nan."),
    ],
)
async def test_a_flag_that_prunes_nothing_that_one_can_mean_is_refused(home, named, said):
    with pytest.raises(SettingsError, match=re.escape(said)):
        await prune_games(ISLE, flags(**named))


async def test_pruning_is_shown_asked_for_done_and_then_there_is_nothing_to_do(two_games, capsys, monkeypatch):
    before = count(two_games)
    assert await prune_games(ISLE, flags())
    assert capsys.readouterr().out == f"Nothing to prune. Kept: {sum(before)} checkpoints.\n"
    assert await prune_games(ISLE, flags(keep_turns=10**15))
    assert "Nothing to prune." in capsys.readouterr().out, "at once"
    assert await prune_games(ISLE, flags(keep_turns=1, older_than=1))
    assert "Nothing to prune." in capsys.readouterr().out, "all turns are younger than a day"
    assert await prune_games(ISLE, flags(keep_turns=1, dry_run=True))
    would = capsys.readouterr().out
    gone, kept = map(
        int, re.match(r"(\d+) checkpoints of 2 threads, with .* would go\. Kept: (\d+)\.\n", would).groups()
    )
    assert (gone + kept, count(two_games)) == (sum(before), before)
    for answer, is_done in (("no\n", False), ("yes\n", True)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert await prune_games(ISLE, flags(keep_turns=1, yes=False)) is is_done
        said = capsys.readouterr().out
        assert said.startswith(f"{would}Delete them for ever? Type yes: ")
        assert ("Nothing was deleted." in said) is not is_done
    megabytes = r"\((\d\.\d) MB\), deleted\.\nThe checkpoints had (\d\.\d) MB and have (\d\.\d) MB now \(\d"
    went, had, has = map(float, re.search(megabytes, said).groups())
    assert 5 > had > has > 0
    assert went < had
    assert sum(count(two_games)) == kept
    assert list(two_games.locks.iterdir()) == [], "a thread that no terminal has played on gets no lock"


async def test_of_one_campaign_alone_or_of_all_that_nobody_plays(two_games, capsys):
    before = count(two_games)
    assert await prune_games(ISLE, flags(keep_turns=1, campaign="isle"))
    isle, reef = count(two_games)
    assert (isle < before[0], reef) == (True, before[1])
    with pytest.raises(SettingsError, match="There is no campaign 'none' of 'ann'"):
        await prune_games(ISLE.model_copy(update={"campaign": "none"}), flags(keep_turns=1, campaign="none"))
    assert await prune_games(ISLE.model_copy(update={"user": "bob"}), flags(keep_turns=1, user="bob"))
    assert capsys.readouterr().out.endswith("Nothing to prune. Kept: 0 checkpoints.\n"), "bob has none"
    assert count(two_games) == [isle, reef]
    with hold_campaign(two_games, "ann", "reef"):
        await prune_games(ISLE, flags(keep_turns=1))
        assert capsys.readouterr().out.endswith(
            "Left as it is: campaign 'reef' of ann. It is open in another terminal.\n"
        )
        await prune_games(ISLE.model_copy(update={"user": "bob"}), flags(keep_turns=1))
    said = capsys.readouterr().out
    assert said.endswith("Left as it is: campaign 'reef' of ann. It is open in another terminal.\n"), "whoever asks"
    assert count(two_games) == [isle, reef]
    await prune_games(ISLE, flags(keep_turns=1))
    assert count(two_games)[1] < reef


async def test_campaigns_are_held_and_pruned_in_groups_and_what_is_said_is_of_all(two_games, capsys, monkeypatch):
    monkeypatch.setattr(homes, "_AT_ONCE", 1)
    before, numbers = count(two_games), r"(\d+) checkpoints of (\d) threads?, with (\d+) writes and (\d+) values"
    with hold_campaign(two_games, "ann", "reef"):
        assert await prune_games(ISLE, flags(keep_turns=1, dry_run=True))
        said = capsys.readouterr().out
        assert "Left as it is" not in said, "nothing is held to count"
        would = [int(number) for number in re.match(numbers, said).groups()]
        assert await prune_games(ISLE, flags(keep_turns=1))
        said = capsys.readouterr().out
        assert said.endswith("Left as it is: campaign 'reef' of ann. It is open in another terminal.\n")
        isle = [int(number) for number in re.match(numbers, said).groups()]
        assert (isle[1], count(two_games)) == (1, [before[0] - isle[0], before[1]])
    assert await prune_games(ISLE, flags(keep_turns=1))
    reef = [int(number) for number in re.match(numbers, capsys.readouterr().out).groups()]
    assert (reef[0], reef[1]) == (before[1] - count(two_games)[1], 2)
    assert [one + other for one, other in zip(isle, reef, strict=True)] == [would[0], 3, *would[2:]]


async def test_where_nothing_was_played_there_is_nothing_to_prune(home, capsys):
    assert await prune_games(ISLE, flags())
    assert capsys.readouterr().out == f"Nothing to prune: there are no checkpoints in {home.path}.\n"
