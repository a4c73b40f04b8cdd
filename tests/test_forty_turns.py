"""Forty turns with a model that misbehaves in thirty ways: nothing is forgotten, leaked, faked or lost."""

import pytest
from forty_turns import Table, play, report, settings_of, told_twice
from misbehaviours import PLAN

from questbook.graphs.dungeon_master.context import Context

pytestmark = pytest.mark.slow


async def test_a_model_that_misbehaves_in_thirty_ways_costs_no_memory_and_no_secret(server, tmp_path):
    table = Table()
    server.responder = table.answer
    counts = await play(table, tmp_path, Context.of(settings_of()))
    whole = report(table, counts)
    assert set(table.misbehaved) == {plan.name for plan in PLAN}, whole
    assert len({plan.name for plan in PLAN}) >= 30
    assert not counts.forgotten, whole
    assert not counts.leaked, whole
    assert not counts.faked, whole
    assert not counts.lost, whole
    assert counts.memories_of_nobody <= 2, whole


async def test_hardly_a_prompt_tells_an_event_twice(server, tmp_path, monkeypatch):
    monkeypatch.setattr("forty_turns.PLAN", [])
    monkeypatch.setattr("forty_turns.IMPATIENT", frozenset())
    table = Table(reading=20.0)
    server.responder = table.answer
    counts = await play(table, tmp_path, Context.of(settings_of(20.0)))
    twice = {turn: told for turn, prompt in table.prompts if turn <= 30 and (told := told_twice(prompt))}
    assert len(twice) <= 1, f"8 turns before it was looked after: {twice}"
    assert not counts.forgotten
