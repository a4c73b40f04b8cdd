"""The benchmark of what is forgotten, at a small size: what it counts, it counts on the game as it is played."""

import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from forgetting import play
from forgetting_campaign import Campaign
from forgetting_probe import probe, state_of
from forgetting_report import report, share
from tables import Tables

import questbook.graphs.models.chat_models
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.events import PromptReport
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(questbook.graphs.models.chat_models, "load_chat_model", None)  # the benchmark sets it
    (tmp_path / "home" / "campaigns").mkdir(parents=True)
    return FileHome(tmp_path / "home")


def memories(text):
    return re.sub(r'"age": ?"[^"]*"', "", text.casefold())


@pytest.mark.slow
async def test_nothing_planted_is_forgotten_in_a_short_campaign_and_a_probe_sees_what_the_model_sees(place, capsys):
    game = await play(10, 2, place, facts=8)
    sorts = {fact.sort for fact in game.campaign.facts_planted}
    assert sorts == {"plain", "updated", "claimed", "secret"}
    assert game.written == [True] * 8
    assert share(game.asked, "ours") == 100
    assert not any(one.figures[name] for one in game.asked for name in ("outdated", "leaked", "believed"))
    assert game.unheard == [False] * 6, "neither the abandoned future nor the other campaign is heard of"
    assert {one.distance for one in game.asked} == {1, 10}
    assert game.notices == []
    lines = report({10: game})
    assert "forgetting_in_prompt_distance_10: 100.0 %" in lines
    assert "forgetting_secrets_in_view: 0 questions" in lines

    questbook.graphs.models.chat_models.load_chat_model = lambda *_, **__: Tables(tale=game.campaign)
    context = Context(model="tables", user="u", campaign="c", seed=1, buffer_tokens=300)
    async with open_game(context, place) as again:
        question = game.campaign.facts_planted[0].probes[0]
        seen = await probe(again, await state_of(again), question)
        assert seen.memories
        prompts = [event async for event in again.send(question) if isinstance(event, PromptReport)]
    told = {section["section"]: section["text"] for section in prompts[0].sections}
    assert memories(told["memories"]) == memories(seen.memories)
    capsys.readouterr()


def test_planted_words_occur_nowhere_else_in_the_tale():
    tale = Campaign(60, 3)
    values = {value.casefold() for fact in tale.facts_planted for value in (fact.value, fact.outdated) if value}
    told = [f"{tale.player(turn)} {tale.reply(turn)}".casefold() for turn in range(1, tale.turns + 1)]
    secret = {fact.value.casefold() for fact in tale.facts_planted if fact.sort == "secret"}
    for value in values:
        assert sum(value in text for text in told) == (value not in secret), value
    assert all(
        value.casefold() not in probe.casefold() for value in values for f in tale.facts_planted for probe in f.probes
    )
