"""Forty turns with a model that misbehaves in thirty ways: nothing is forgotten, leaked, faked or lost."""

import pytest
from forty_turns import Table, play, report, settings_of
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
