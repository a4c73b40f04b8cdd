"""Core memory of the companion: configured, shared by several threads, edited by the assistant and by a person."""

import asyncio
import itertools

import pytest
from companion_thread import Companion, note
from faulty_stores import Checking
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from scripted import call, say, sections_of

from questbook import CoreNotebook
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.core_memory import core_of, edit_by_hand, edit_section, fetch_shared
from questbook.graphs.errors import HistoryError, ModelError, SettingsError
from questbook.graphs.turn import shared_pages
from questbook.graphs.turn.tool_calls import Call
from questbook.memory.timeline.namespaces import player_namespace
from questbook.notebooks.errors import EditError


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
    told = "Section 'house', which is shared, now uses 17 of 30 characters: \"Quiet after nine.\""
    assert second.results[-1].text == told
    await first.say("hi", say("ok", note("A long line that does not fit", label="house")), say("No room."))
    assert "would use" in first.results[-1].text
    assert first.core.sections["house"].value == "Quiet after nine."


async def test_a_model_that_numbers_its_calls_anew_in_each_answer_loses_no_edit_of_a_shared_section(model):
    core = {"house": {"shared": "house", "limit": 300}}
    talk = Companion(model, core=core)
    other = Companion(model, store=talk.store, core=core, campaign="other")

    def first(text, **more):
        return say("ok", note(text, label="house", **more) | {"id": "call_1"})

    await talk.say("hi", first("Quiet after ten.", request_heartbeat=True), first("No shoes."))
    await talk.say("hi", first("No dogs."))
    await other.say("hi", first("No cats."))
    assert other.core.sections["house"].value.split("\n") == ["Quiet after ten.", "No shoes.", "No dogs.", "No cats."]


async def test_an_edit_that_another_one_forestalled_is_refused_with_the_value_as_it_is_now():
    """The other one was written between reading the section and writing this one."""

    class Beside(Checking):
        def check(self, ops):
            for op in ops:
                if isinstance(op, PutOp) and op.key.startswith("1-"):
                    edit = {"tool": "core_memory_rethink", "args": {"label": "house", "new_content": "No dogs."}}
                    self.put(op.namespace, f"1-{'0' * 20}-other", edit, index=False)

    page = CoreNotebook.of({"house": {"value": "Quiet after ten.", "shared": "house", "limit": 300}})
    change = Call("1", "core_memory_replace", {"label": "house", "old_content": "ten", "new_content": "nine"})
    now = "Another assistant changed section 'house' at the same time. Its value is now: \"No dogs.\""
    with pytest.raises(EditError, match=f"^{now}$"):
        await edit_section(page, change, store := Beside(), "ann", "1")
    later = Call("2", "core_memory_append", {"label": "house", "content": "No cats."})
    edited, _ = await edit_section(page, later, store, "ann", "2")
    assert edited.sections["house"].value == "No dogs.\nNo cats.", "what did not fit keeps no later edit from fitting"


async def test_the_log_of_a_shared_section_stays_short_and_its_value_is_that_of_all_edits(monkeypatch):
    monkeypatch.setattr(shared_pages, "MOST", 8)
    store, place = InMemoryStore(), player_namespace("ann", "shared", "house")
    page = CoreNotebook.of({"house": {"value": "Rules:", "shared": "house", "limit": 5000}})
    for first in (None, store, store):
        assert (await fetch_shared(page, first, "ann")).sections["house"].value == "Rules:"
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
    kept = [lengths[n] - lengths[n - 1] for n in range(3, 21, 3)]
    assert kept == [1] * 6, "an edit of just now is not summed up: a slower one may still come before it"
    assert (await fetch_shared(page, store, "ann")).sections["house"].value == expected


async def test_an_edit_of_a_shared_section_counts_once_though_its_step_is_run_again_or_it_is_summed_up():
    store, place = InMemoryStore(), player_namespace("ann", "shared", "house")
    page = CoreNotebook.of({"house": {"value": "Rules:", "shared": "house", "limit": 300}})
    edit = Call("1", "core_memory_append", {"label": "house", "content": "No dogs."})
    for _ in range(2):
        edited, _ = await edit_section(page, edit, store, "ann", "the same step")
        assert edited.sections["house"].value == "Rules:\nNo dogs."
    [key] = [item.key for item in await store.asearch(place) if item.key.startswith("1-")]
    await store.aput(place, f"0-{key}", {"value": "Rules:\nNo dogs."}, index=False)
    assert (await fetch_shared(page, store, "ann")).sections["house"].value == "Rules:\nNo dogs."


# A person edits core memory: the same edits as the assistant's, as checkpoints that rewind.


CORE = {
    "persona": {"value": "I am X.", "read_only": True},
    "human": {"limit": 40},
    "house": {"value": "Rules:", "shared": "house", "limit": 60},
}


async def edit(talk, tool, label, **args):
    return await edit_by_hand(talk.app, talk.config, talk.context, f"core_memory_{tool}", {"label": label, **args})


@pytest.fixture
def talk(model):
    return Companion(model, core=CORE)


async def test_an_edit_is_a_checkpoint_that_the_model_sees_next(talk):
    await talk.say("hi")
    steps = len(list(talk.app.get_state_history(talk.config)))
    assert "9 of 40 characters" in await edit(talk, "append", "human", content="Name: Ann")
    assert len(list(talk.app.get_state_history(talk.config))) == steps + 1
    assert talk.app.get_state(talk.config).next == ()
    await talk.say("Who am I?")
    assert "Name: Ann" in sections_of(talk.model.asked("companion")[-1])


async def test_going_back_takes_the_edit_back_and_going_there_again_brings_it(talk):
    await talk.say("hi")
    await talk.say("more")
    await edit(talk, "append", "human", content="Name: Ann")
    await talk.say("on")
    await talk.history.undo()
    assert talk.human == "Name: Ann", "the end of a turn is with what a person wrote after it"
    await talk.history.undo()
    assert talk.human == ""
    await talk.history.go("main")
    assert talk.human == "Name: Ann"


async def test_a_new_thread_goes_on_with_the_edit(model, talk):
    await talk.say("hi")
    await edit(talk, "rethink", "human", new_content="Name: Ann")
    later = Companion(model, store=talk.store, core=CORE)
    await later.say("hello")
    assert later.human == "Name: Ann"


@pytest.mark.parametrize(
    ("tool", "label", "args", "reason"),
    [
        ("append", "persona", {"content": "Y"}, "'persona' is read-only"),
        ("rethink", "human", {"new_content": "x" * 41}, "would use 41 of 40 characters: shorten it by at least 1"),
        ("replace", "human", {"old_content": "Bo", "new_content": "Al"}, '^"Bo" is not in the section'),
        ("remove", "human", {"content": "n"}, "occurs 4 times"),
        ("append", "nobody", {"content": "x"}, "There is no section 'nobody'; there are persona, human, house"),
        ("rethink", "house", {"new_content": "x" * 61}, "would use 61 of 60"),
    ],
)
async def test_what_does_not_fit_is_refused_with_the_reason_and_changes_nothing(talk, tool, label, args, reason):
    await talk.say("hi", say("ok", call("core_memory_append", label="human", content="Ann and Jon")))
    before, steps = talk.values["core"], len(list(talk.app.get_state_history(talk.config)))
    with pytest.raises(EditError, match=reason) as refused:
        await edit(talk, tool, label, **args)
    assert "core_memory" not in str(refused.value)
    assert talk.values["core"] == before
    assert len(list(talk.app.get_state_history(talk.config))) == steps


async def test_before_the_first_message_and_without_a_reply_there_is_nothing_to_edit(talk):
    page = await core_of(talk.app, talk.config, talk.context)
    assert page.labels == ["persona", "human", "house"]
    with pytest.raises(HistoryError, match="Nothing has been said"):
        await edit(talk, "append", "human", content="x")
    with pytest.raises(ModelError):
        await talk.say("hi", ModelError("down"))
    with pytest.raises(HistoryError, match="has no reply yet"):
        await edit(talk, "append", "human", content="x")


async def test_a_shared_section_changes_for_all_that_share_it_and_does_not_go_back(model, talk):
    other = Companion(model, store=talk.store, core=CORE, campaign="work")
    await talk.say("hi")
    await talk.say("on")
    await other.say("hi")
    await edit(talk, "append", "house", content="Quiet after ten.")
    assert "is shared" in await edit(other, "append", "house", content="No dogs.")
    told = "Rules:\nQuiet after ten.\nNo dogs."
    for one in (talk, other):
        assert (await core_of(one.app, one.config, one.context)).sections["house"].value == told
    await other.say("read")
    assert "No dogs." in sections_of(model.asked("companion")[-1])
    await talk.history.undo()
    assert (await core_of(talk.app, talk.config, talk.context)).sections["house"].value == told
    with pytest.raises(EditError, match="is not in"):
        await edit(talk, "remove", "house", content="No cats.")
