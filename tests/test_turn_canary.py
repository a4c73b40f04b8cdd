"""The leak canary: a record that a run may not see is left out of its prompt, counted and logged, whoever let it by."""

import json
import logging

import pytest
from machines import Machine

from questbook.graphs.turn import canary, recall
from questbook.memory.recall.query import Recalled
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace, team_namespace

WORDS = "the zebrafish sleeps"
STAMP = {"kind": "exchange", "turn": 1, "player": WORDS, "reply": "Yes.", "text": WORDS}


async def leaks_of(machine, monkeypatch, namespace, **stamp):
    """Play a turn in which the search brings a record that no filter has seen; return how many were called out."""
    before, search = canary.counts["leaked"], recall.recall_records

    async def with_stranger(store, spaces, query):
        found = await search(store, spaces, query)
        own = machine.values["timeline"][-1][0]
        place = {"turn": machine.values["turn"] + stamp["ahead"]} if "ahead" in stamp else {}
        value = STAMP | {"branch": own} | stamp | place
        return [*found, Recalled("aaaaaaaa-1-x", value, namespace=namespace or found[0].namespace)]

    monkeypatch.setattr(recall, "recall_records", with_stranger)
    lines = await machine.say("Where does the spare cellar key hang?")
    shown = WORDS in json.dumps(lines)
    leaks, canary.counts["leaked"] = canary.counts["leaked"] - before, before
    assert shown == (not leaks), "what is called out is not in the prompt"
    return leaks


@pytest.fixture(params=["game", "companion", "agent"])
async def machine(request, model):
    machine = await Machine(request.param, model).begin()
    for _ in range(3):
        await machine.say("The spare cellar key hangs behind the clock.", "Noted. " + "The house is old. " * 1000)
    return machine


@pytest.mark.parametrize(
    ("namespace", "stamp"),
    [
        (campaign_namespace("eve", "default", "exchanges"), {}),
        (player_namespace("eve", "facts"), {}),
        (campaign_namespace("ann", "another", "exchanges"), {}),
        (team_namespace("rivals", "facts"), {}),
        ((), {"branch": "bbbbbbbb"}),
        ((), {"ahead": 9}),
        ((), {"ahead": 1}),
    ],
    ids=["user", "player", "campaign", "team", "branch", "later turn", "this turn"],
)
async def test_a_record_of_others_or_of_another_future_is_called_out(machine, monkeypatch, caplog, namespace, stamp):
    assert await leaks_of(machine, monkeypatch, namespace, **stamp) >= 1
    [line, *_] = [one for one in caplog.records if one.name == canary.__name__]
    assert (line.levelno, WORDS in caplog.text) == (logging.ERROR, False)


async def test_what_the_run_may_see_is_only_counted(machine, monkeypatch, caplog):
    before = canary.counts["checked"]
    assert await leaks_of(machine, monkeypatch, ()) == 0
    assert canary.counts["checked"] > before
    assert not [one for one in caplog.records if one.name == canary.__name__]
