"""Slash commands on a real game with a scripted model."""

import pytest
from conftest import MIRA
from scripted import call, say

from questbook import CharacterNotebook
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.game import open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.embedded.saved_game import thread_id_of
from questbook.graphs.events import Memories, PromptReport
from questbook.graphs.terminal.campaigns import CampaignBusyError, hold_campaign, list_campaigns
from questbook.graphs.terminal.commands import COMMANDS, run_command
from questbook.graphs.terminal.pages import quest_rows, sheet_rows
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.table import Table, Then
from questbook.graphs.turn.player_view import PlayerView

PAGE = {
    "scene": "An inn at dusk.",
    "location": "The Bent Nail",
    "quests": {"The lost bell": {"status": "done", "notes": "It rings again."}},
    "people": {
        "Oda": {"role": "innkeeper", "attitude": "wary", "last_seen": "the bar, day 1"},
        "Pell": {"alive": False, "fate": "fell from the tower"},
    },
    "inventory": {"rope": 1, "torch": 3},
    "gold": 7,
    "condition": {"hp": 5, "max_hp": 9, "conditions": {"poisoned": "until dawn"}},
    "clock": {"day": 2, "time": "dusk"},
    "facts": {"the bell": "is cursed"},
    "secrets": {"Oda": "is the thief"},
}


@pytest.fixture
async def table(model):
    async with open_game(Context.of(None, model="scripted", campaign="isle")) as game:
        yield Table(game, Screen(live=False))


async def play(table, words):
    table.clear()
    async for event in table.game.send(words):
        table.keep(event)


async def begin(table, model):
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", say("", call("StateNotebook", scene="An inn.", secrets={"Oda": "is the thief"})))
    await play(table, "I'm Mira.")


async def answer(table, line, capsys):
    capsys.readouterr()
    then = await run_command(table, line)
    out, err = capsys.readouterr()
    return then, out + err


async def test_before_the_first_turn_every_command_says_what_to_do(table, capsys):
    for name in ("/sheet", "/quest", "/memories", "/prompt", "/campaigns"):
        then, said = await answer(table, name, capsys)
        assert then is Then.PROMPT
        assert len(said.splitlines()) == 1, said


async def test_sheet_and_quest_never_the_secrets(table, model, capsys):
    await begin(table, model)
    _, sheet = await answer(table, "/sheet", capsys)
    assert "halfling" in sheet
    assert "DEX" in sheet
    _, quest = await answer(table, "/quest", capsys)
    assert "An inn." in quest
    assert "thief" not in quest


async def test_prompt_shows_sections_a_total_and_texts(table, model, capsys):
    await begin(table, model)
    _, told = await answer(table, "/prompt", capsys)
    assert "run_quest" in told
    assert "instructions" in told
    total = sum(section["tokens"] for section in [p for p in table.prompts if p.node == "run_quest"][-1].sections)
    assert f"{total:,}" in told
    _, told = await answer(table, "/prompt character", capsys)
    assert "Mira" in told
    assert "instructions" not in told
    _, told = await answer(table, "/prompt all", capsys)
    assert "dungeon master" in told
    _, told = await answer(table, "/prompt charakter", capsys)
    assert told == "The prompt has no section charakter. Did you mean character?\n"


async def test_memories(table, capsys):
    table.keep(Memories([{"turn": 4, "age": "yesterday", "score": 0.5, "player": "a\nb", "reply": "x" * 500}]))
    _, told = await answer(table, "/memories", capsys)
    assert all(part in told for part in ("4", "yesterday", "0.50", "a b"))
    table.keep(Memories([]))
    _, told = await answer(table, "/memories", capsys)
    assert "Nothing was recalled" in told


async def test_unknown_commands_name_the_nearest(table, capsys):
    assert (await answer(table, "/quest now", capsys))[0] is Then.PROMPT
    assert (await answer(table, "/SHEET", capsys))[1].startswith("No character")
    assert "Did you mean /memories?" in (await answer(table, "/memorys", capsys))[1]
    assert "/help lists them" in (await answer(table, "/xyzzy", capsys))[1]
    assert (await answer(table, "/quit", capsys))[0] is Then.QUIT


async def test_help_lists_every_command(table, capsys):
    _, told = await answer(table, "/help", capsys)
    assert [name for name in COMMANDS if name not in told] == []


async def test_campaigns_are_the_users_own_the_last_played_first(table, model, capsys):
    await begin(table, model)
    for user, campaign in (("adventurer", "reef"), ("ada", "isle")):
        async with open_game(Context.of(None, model="scripted", user=user, campaign=campaign)) as other:
            async for _ in other.send("hello"):
                pass
    found = await list_campaigns(table.game.checkpointer, "adventurer")
    assert [(saved.campaign, saved.turn) for saved in found] == [("reef", 1), ("isle", 1)]
    assert {saved.thread_id for saved in found} == {thread_id_of("adventurer", name) for name in ("reef", "isle")}
    _, told = await answer(table, "/campaigns", capsys)
    assert "Mira, rogue" in told
    assert thread_id_of("adventurer", "isle") in told


async def test_a_campaign_that_studio_edited_is_still_listed(table, model):
    await begin(table, model)
    app = await table.game.load()
    thread = {"configurable": {"thread_id": table.game.thread_id}}
    await app.aupdate_state(thread, {"character": {"name": "Mirabel"}}, as_node="remember")
    found = await list_campaigns(table.game.checkpointer, "adventurer")
    assert [(saved.campaign, saved.character.name) for saved in found] == [("isle", "Mirabel")]
    assert await list_campaigns(table.game.checkpointer, "") == []


def test_a_campaign_is_held_once(tmp_path):
    home = Home(tmp_path)
    home.locks.mkdir()
    with hold_campaign(home, "a", "b"):
        with hold_campaign(home, "a", "c"):
            pass
        with pytest.raises(CampaignBusyError, match="another terminal"), hold_campaign(home, "a", "b"):
            pass
    with hold_campaign(home, "a", "b"):
        pass


def test_the_quest_as_rows():
    rows = dict(quest_rows(PlayerView.of({"quest": PAGE})))
    assert rows["Quests"] == "The lost bell (done): It rings again."
    assert rows["People"] == ("Oda: innkeeper, wary, last seen the bar, day 1\nPell: dead: fell from the tower")
    assert rows["Inventory"] == "rope, torch ×3"
    assert rows["Condition"] == "5/9 hit points\npoisoned: until dawn"
    assert (rows["Clock"], rows["Gold"], rows["Facts"]) == ("day 2, dusk", "7", "the bell: is cursed")
    assert "thief" not in str(rows)


def test_the_sheet_as_rows():
    page = CharacterNotebook.load({"name": "Mira", "abilities": {"dexterity": 15, "strength": 7}, "kit": {"rope": 2}})
    rows = dict(sheet_rows(PlayerView(character=page)))
    assert rows["Abilities"] == "STR 7 (-2)  DEX 15 (+2)"
    assert rows["Kit"] == "rope ×2"
    assert rows["Still to tell"] == "ancestry, class, background, goal"


def test_a_prompt_of_an_update_is_shown_only_if_there_is_no_other(capsys):
    table = Table(
        None, Screen(live=False), prompts=[PromptReport("update_state", [{"section": "s", "tokens": 1, "text": "t"}])]
    )
    import asyncio

    asyncio.run(run_command(table, "/prompt"))
    assert "update_state" in capsys.readouterr().out
