"""Sections of the companion's core memory: configured, edited by people, shared by several threads."""

import asyncio
import itertools

import pytest
from companion_thread import Companion, note
from langgraph.store.memory import InMemoryStore
from scripted import call, say

from questbook import CoreNotebook
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.core_memory import edit_section, fetch_shared
from questbook.graphs.errors import SettingsError
from questbook.graphs.turn import shared_pages
from questbook.graphs.turn.tool_calls import Call
from questbook.memory.timeline.namespaces import player_namespace


async def test_sections_are_configured_and_a_wrong_one_is_named(model):
    companion = Companion(model, core={"rules": {"value": "Be brief.", "read_only": True}, "client": {"limit": 300}})
    await companion.say("hi", say("No.", note("x", label="rules")), say("Sorry."))
    assert companion.core.labels == ["rules", "client"]
    assert "read-only" in companion.results[0].text
    with pytest.raises(SettingsError, match=r"core \(QUESTBOOK_CORE\)"):
        CompanionContext.of({"core": {"a: b": {}}})
    with pytest.raises(SettingsError, match="IANA"):
        CompanionContext.of({"timezone": "Mars/Base"})
    assert CompanionContext.of({"campaign": "work"}).campaign == "companion:work"


async def test_sections_are_shared_through_the_store_without_lost_edits(model):
    core = {"persona": "I help.", "house": {"value": "Rules:", "shared": "house", "limit": 50_000}}
    first = Companion(model, core=core)
    model._stock["companion"] = lambda messages: say("ok", note(f"line {next(numbers)}", label="house"))
    numbers = itertools.count()
    others = [Companion(model, store=first.store, core=core, campaign=f"c{n}") for n in range(5)]
    await asyncio.gather(*(one.say("hi") for one in [first, *others]))
    await asyncio.gather(*(one.say("more") for one in [first, *others]))
    model._stock["companion"] = say("Fine.")
    await first.say("read")
    lines = first.core.sections["house"].value.split("\n")
    assert lines[0] == "Rules:"
    assert sorted(lines[1:]) == sorted(f"line {n}" for n in range(12))
    await others[0].say("read")
    assert others[0].core.sections["house"].value == first.core.sections["house"].value


async def test_an_edit_of_a_shared_section_is_checked_against_what_others_wrote(model):
    core = {"house": {"shared": "house", "limit": 30}}
    first = Companion(model, core=core)
    second = Companion(model, store=first.store, core=core, campaign="other")
    await first.say("hi", say("ok", note("Quiet after ten.", label="house")))
    change = call("core_memory_replace", label="house", old_content="ten", new_content="nine")
    await second.say("hi", say("ok", change))
    await first.say("hi", say("ok", note("A long line that does not fit", label="house")), say("No room."))
    assert "would use" in first.results[-1].text
    assert first.core.sections["house"].value == "Quiet after nine."


async def test_the_log_of_a_shared_section_stays_short_and_its_value_is_that_of_all_edits(monkeypatch):
    monkeypatch.setattr(shared_pages, "MOST", 8)
    store, place = InMemoryStore(), player_namespace("ann", "shared", "house")
    page = CoreNotebook.of({"house": {"value": "Rules:", "shared": "house", "limit": 5000}})
    lengths, expected = [], "Rules:"
    for number in range(30):
        monkeypatch.setattr(shared_pages, "OLD", 0.0 if number % 3 else 3600.0)
        edit = Call(str(number), "core_memory_append", {"label": "house", "content": f"rule {number}"})
        page, _ = await edit_section(page, edit, store, "ann", str(number))
        expected += f"\nrule {number}"
        log = await store.asearch(place, limit=100)
        lengths.append(len(log))
        assert page.sections["house"].value == expected
        if number == 20:  # another assistant, slower, has summed up less of the log
            sums = [item.key for item in log if item.key.startswith("0")]
            older = f"0-1-{int(sums[-1].split('-')[2]) - 1:020}-x"
            await store.aput(place, older, {"value": "Rules: as they were"}, index=False)
    assert max(lengths) <= 13
    assert (await fetch_shared(page, store, "ann")).sections["house"].value == expected
