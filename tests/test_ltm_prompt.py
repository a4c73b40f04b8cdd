"""How the LTM extension put memories into the prompt (L9 and L11 to L17 in docs/coverage.md), and the greeting."""

from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.store.memory import InMemoryStore
from ltm_talk import NOW

from questbook.memory.errors import LtmConfigError
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.memories import MEMORIES, RecalledMemory, delete_memories, remember_message, strip_speaker
from questbook.memory.ltm.prompt import (
    LastTalk,
    greeting_line,
    inject,
    inject_text,
    last_talk,
    memory_block,
    note_session,
)
from questbook.memory.timeline.namespaces import character_namespace
from questbook.memory.timeline.records import Stamp


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Miku: I am here.", "I am here."),
        ("miku:  I am here.\r\n\r\n\r\n\r\nStill.", "I am here.\n\nStill."),
        ("I am here.", "I am here."),  # the extension stored nothing
        ("(waves) Miku: I am here.", "(waves) Miku: I am here."),
        ("Hatsune Miku: Not me.", "Hatsune Miku: Not me."),  # a name that ends another one
        ("I said: Miku: sing!", "I said: Miku: sing!"),
    ],
)
def test_l09_the_header_of_a_reply_goes_and_all_else_stays(reply, said):
    assert strip_speaker(reply, "Miku") == said


@pytest.mark.parametrize(
    ("said_at", "phrase"),
    [
        (NOW - timedelta(seconds=5), "just now"),
        (NOW - timedelta(hours=3), "earlier today"),
        (NOW - timedelta(days=1), "yesterday"),
        (NOW - timedelta(days=5), "5 days ago"),
        (NOW + timedelta(days=1), "in the future"),
        ("no time", "at an unknown time"),
    ],
)
def test_l11_how_long_ago(said_at, phrase):
    at = said_at if isinstance(said_at, str) else said_at.isoformat()
    block = memory_block([RecalledMemory("k", "hi", "Anon", at, 0.1)], LtmConfig(), name1="Anon", name2="Miku", now=NOW)
    assert f"{phrase}, Anon said:" in block


def test_l12_the_memory_template_and_memories_on_lines_of_their_own():
    config = LtmConfig.of(
        {
            "ltm_context": {
                "memory_template": "[{memory_date}|{time_difference}] {memory_name} ({memory_times}): {memory_message}",
                "memory_context_template": "{all_memories}",
            }
        }
    )
    memories = [
        RecalledMemory("a", "with {braces}", "Anon", (NOW - timedelta(days=3)).isoformat(), 0.1, 2),
        RecalledMemory("b", "second", "Miku", "", 0.2),
    ]
    assert memory_block(memories, config, name1="Anon", name2="Miku", now=NOW) == (
        "[2026-07-07|3 days ago] Anon (2): with {braces}\n[unknown date|at an unknown time] Miku (1): second"
    )


def test_l13_the_context_template_names_both_and_has_no_blank_line():
    block = memory_block([RecalledMemory("a", "hi", "Anon", "", 0.1)], LtmConfig(), name1="Anon", name2="Miku", now=NOW)
    assert block.startswith('Miku\'s memory log:\nat an unknown time, Anon said:\n"hi"\n')
    assert "Anon" in block.splitlines()[-1]
    assert "\n\n" not in block
    fixed = LtmConfig.of({"ltm_context": {"memory_context_template": "no fields, {{braces}}"}})
    assert (
        memory_block([RecalledMemory("a", "hi", "A", "", 0)], fixed, name1="", name2="", now=NOW)
        == "no fields, {braces}"
    )


def test_l14_before_the_context():
    assert inject_text("  You are Miku. \n", "\nlog\n ", "BEFORE_NORMAL_CONTEXT") == "log\nYou are Miku."


def test_l15_after_the_context_before_the_first_start():
    after = "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"
    context = "You are Miku.\n<START>\nAnon: hi\n<START>\nAnon: bye"
    assert inject_text(context, "log", after) == "You are Miku.\nlog\n<START>\nAnon: hi\n<START>\nAnon: bye"
    assert inject_text("You are Miku.", "log", after) == "You are Miku.\nlog", "the extension raised an error"


@pytest.mark.parametrize("location", ["BEFORE_NORMAL_CONTEXT", "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"])
def test_l14_l15_in_messages(location):
    config = LtmConfig.of({"ltm_context": {"injection_location": location}})
    memories = [RecalledMemory("a", "boats", "Anon", "", 0.1)]
    prompt = [SystemMessage("You are Miku."), HumanMessage("hi")]
    system, human = inject(prompt, memories, config, name1="Anon", name2="Miku", now=NOW)
    assert human is prompt[1]
    assert system.content.index("boats") < system.content.index("You are Miku.") or location.startswith("AFTER")
    assert system.content.startswith("You are Miku.") == location.startswith("AFTER")
    parts = [
        {"type": "text", "text": "Be Miku.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "x"},
    ]
    (system,) = inject([SystemMessage(parts)], memories, config, now=NOW)
    assert [part for part in system.content if part in parts] == parts, "what a cache knows stays as it was"
    assert len(system.content) == 3
    (system,) = inject([SystemMessage([{"type": "text", "text": "a<START>b"}])], memories, config, now=NOW)
    assert ("a\n" in system.content[0]["text"]) == location.startswith("AFTER")
    first, _ = inject([AIMessage("hello")], memories, config, now=NOW)
    assert isinstance(first, SystemMessage)


def test_l16_without_a_hit_nothing_is_touched_and_with_one_only_this_prompt():
    prompt = [SystemMessage("  You are Miku. "), HumanMessage("hi")]
    before = [message.model_copy(deep=True) for message in prompt]
    assert inject(prompt, [], now=NOW) == before
    assert inject_text("  as it is ", "", "BEFORE_NORMAL_CONTEXT") == "  as it is "
    inject(prompt, [RecalledMemory("a", "boats", "Anon", "", 0.1)], now=NOW)
    assert prompt == before


def test_l17_everything_wrong_is_said_when_the_settings_are_read():
    with pytest.raises(LtmConfigError, match="BEFORE_NORMAL_CONTEXT"):
        LtmConfig.of({"ltm_context": {"injection_location": "SOMEWHERE"}})
    assert LtmConfig.of({}) == LtmConfig(), "a missing key has its default"


async def test_bug_4_and_5_no_host_template_is_needed_and_other_text_in_the_context_stays():
    prompt = [SystemMessage("From another extension.\nYou are Miku."), HumanMessage("hi")]
    system, _ = inject(prompt, [RecalledMemory("a", "boats", "Anon", "", 0.1)], now=NOW)
    assert "From another extension." in system.content


NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)


TOLD = "I am a little afraid of the exam next week, because I have not opened a single one of the books about it."


async def talk(store, session, days, text="", **more):
    at = NOW - timedelta(days=days)
    key = await remember_message(store, "Miku", "Ada", text, user="ada", said_at=at, session=session, **more)
    await note_session(store, "Miku", session, user="ada", now=at, memory=key)
    return key


def line(found):
    return greeting_line(found, name1="Ada", name2="Miku", now=NOW)


async def test_the_first_time_is_the_first_time():
    store = InMemoryStore()
    await talk(store, "now", 0, TOLD)
    assert await last_talk(store, "Miku", user="ada", session="now") == LastTalk()
    assert line(LastTalk()) == "Ada and Miku have not talked before."
    assert await last_talk(store, "Miku", user="bob") == LastTalk(), "another user's Miku"


async def test_how_long_how_often_and_of_what():
    store = InMemoryStore()
    await talk(store, "first", 9, TOLD)
    await talk(store, "second", 5, "short")
    found = await last_talk(store, "Miku", user="ada", session="now")
    assert (found.sessions, found.said_at[:10], found.text) == (2, "2026-07-05", TOLD)
    assert line(found) == (
        f"Ada and Miku have talked 2 times before, last 5 days ago. Of what Ada said then is remembered: “{TOLD}”"
    )


async def test_a_session_counts_once_and_its_last_turn_is_its_time():
    store = InMemoryStore()
    for days in (9, 8, 1):
        await talk(store, "first", days, "short")
    found = await last_talk(store, "Miku", user="ada", session="now")
    assert line(found) == "Ada and Miku have talked once before, last yesterday."


async def test_what_was_deleted_or_taken_back_is_not_brought_up():
    store = InMemoryStore()
    await talk(store, "first", 9, TOLD)
    key = await talk(store, "second", 5, TOLD + " Really.")
    await delete_memories(store, character_namespace("Miku", MEMORIES, user="ada"), [key])
    assert (await last_talk(store, "Miku", user="ada")).text == TOLD
    await talk(store, "third", 4, TOLD + " Undone.", stamp=Stamp("gone", 3).to_json())
    assert (await last_talk(store, "Miku", user="ada", timeline=[("main", 9)])).text == TOLD
    assert (await last_talk(store, "Miku", user="ada", timeline=[("gone", 3)])).text == TOLD + " Undone."
