"""What the companion is told beside its memory: the time, how long it has been, what went wrong."""

from datetime import UTC, datetime, timedelta

from companion_thread import Companion
from langgraph.store.memory import InMemoryStore
from scripted import call, say, sections_of

from questbook import keep_valid, note_facts
from questbook.notebooks import parse_fields


def about(talk):
    system = sections_of(talk.model.asked("companion")[-1])
    return parse_fields(system.split("<about>\n")[1].split("\n</about>")[0])


async def go_away(talk, **away):
    then = (datetime.now(UTC) - timedelta(**away)).isoformat(timespec="seconds")
    await talk.app.aupdate_state(talk.config, {"opened_at": then}, as_node="condense")


async def test_the_prompt_tells_the_time_the_turns_and_what_is_archived(model):
    talk = Companion(model, timezone="Pacific/Kiritimati")
    await talk.say("hi", say("ok", call("archival_memory_insert", content="A note.")))
    await talk.say("on")
    told = about(talk)
    assert told["now"].startswith(f"{datetime.now(UTC) + timedelta(hours=14):%A, %Y-%m-%d}")
    assert (told["earlier_turns"], told["archival_memory_entries"]) == (1, 1)
    assert told["you_last_spoke"] == "just now"


async def test_after_a_break_it_knows_how_long_it_was(model):
    talk = Companion(model)
    await talk.say("hi")
    assert "you_last_spoke" not in about(talk), "they have not spoken before"
    await go_away(talk, days=3)
    await talk.say("hi again")
    assert about(talk)["you_last_spoke"] == "3 days ago"
    later = Companion(model, store=talk.store)
    await go_away(talk, days=9)
    await later.say("hello")
    assert about(later)["you_last_spoke"] == "just now", "the head says when the last turn was, not an edit"


async def test_offline_it_greets_by_how_long_it_was():
    talk = Companion()
    assert "not talked before" in await talk.say("Hello")
    await talk.say("My name is Ann")
    await go_away(talk, days=2)
    assert await talk.say("Good morning") == "Hello, Ann! We last spoke 2 days ago."


async def test_what_a_search_finds_has_its_time_in_the_persons_zone_and_its_age(model):
    talk = Companion(model, timezone="Pacific/Kiritimati")
    await talk.say("The heron sleeps.", say("ok", call("archival_memory_insert", content="Herons sleep.")))
    searches = [call("conversation_search", query="heron"), call("archival_memory_search", query="heron")]
    await talk.say("find it", say("", *searches), say("There."))
    local = datetime.now(UTC) + timedelta(hours=14)
    for result in talk.results[-2:]:
        assert f'"said_at": "{local:%Y-%m-%d} ' in result.text
        assert '"age": "just now"' in result.text


async def test_an_exception_of_a_tool_goes_back_to_the_model_cut_at_a_thousand_characters(model):
    class Away(InMemoryStore):
        async def abatch(self, ops):
            raise ConnectionError("x" * 5000)

    talk = Companion(model, store=InMemoryStore())
    await talk.say("hi")
    talk.app.store = Away()
    await talk.say("find", say("", call("archival_memory_search", query="heron")), say("I cannot."))
    assert talk.results[-1].text.endswith("nothing was changed: " + "x" * 1000)
    assert talk.reply == "I cannot."


# Core memory and facts do not disagree in silence.

FACTS = ("adventurer", "companion", "facts")


async def test_the_prompt_says_which_section_is_older_than_a_fact(model):
    thread = Companion(model, core={"human": "Ann lives in Oslo.", "persona": "I am friendly."})
    await thread.say("Hello.", say("Hello, Ann."))

    async def noted(where, turn):
        home = {"text": f"The user lives in {where}.", "subject": "the user", "attribute": "home", "value": where}
        timeline = [tuple(segment) for segment in thread.values["timeline"]]
        await note_facts(thread.store, FACTS, [home], timeline=timeline, turn=turn)

    await noted("Oslo", 1)
    await thread.say("I have news.", say("Tell me."))
    assert '"says"' not in sections_of(model.asked("companion")[-1])
    await noted("Bergen", 2)
    await thread.say("Where do I live?", say("In Bergen."))
    outdated = sections_of(model.asked("companion")[-1]).partition("<outdated>\n")[2].partition("</outdated>")[0]
    assert '"section": "human"' in outdated
    assert '"says": "The user lives in Oslo."' in outdated
    assert '"now": "The user lives in Bergen."' in outdated
    assert "persona" not in outdated


async def test_a_note_of_a_model_ends_a_fact(model):
    thread = Companion(model)
    car = {"text": "The user's car is a Volvo.", "subject": "the user", "attribute": "car", "value": "a Volvo"}
    model.queue("facts", say("", call("Facts", facts=[car])))
    await thread.say("My car is a Volvo.", say("Nice."))
    assert await holding(thread) == ["The user's car is a Volvo."]
    gone = {"text": "The user's car.", "subject": "the user", "attribute": "vehicle", "ends": True}
    model.queue("facts", say("", call("Facts", facts=[gone])))
    await thread.say("Forget my car.", say("Done."))
    assert await holding(thread) == []


async def holding(thread):
    timeline = [tuple(segment) for segment in thread.values["timeline"]]
    items = thread.store.search(FACTS, limit=99)
    return [item.value["text"] for item in await keep_valid(thread.store, items, timeline=timeline)]
