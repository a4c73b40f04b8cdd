"""Memories in the prompt as in the LTM extension (L9, L11 to L17 in docs/coverage.md), its settings, the greeting."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.store.memory import InMemoryStore
from timing import cpu_seconds

from questbook.memory.errors import LtmConfigError, StoreConfigError
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

NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)


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
    ("said_at", "phrase"), [((NOW - timedelta(days=5)).isoformat(), "5 days ago"), ("no time", "at an unknown time")]
)
def test_l11_how_long_ago(said_at, phrase):  # the other phrases: tests/test_recall_times.py
    memory = RecalledMemory("k", "hi", "Anon", said_at, 0.1)
    assert f"{phrase}, Anon said:" in memory_block([memory], LtmConfig(), name1="Anon", name2="Miku", now=NOW)


def test_l12_the_memory_template_and_memories_on_lines_of_their_own():
    template = "[{memory_date}|{time_difference}] {memory_name} ({memory_times}): {memory_message}"
    context = {"memory_template": template, "memory_context_template": "{all_memories}"}
    config = LtmConfig.of({"ltm_context": context})
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
    block = memory_block([RecalledMemory("a", "hi", "A", "", 0)], fixed, name1="", name2="", now=NOW)
    assert block == "no fields, {braces}"


def test_l14_l15_before_the_context_or_after_it_before_the_first_start():
    assert inject_text("  You are Miku. \n", "\nlog\n ", "BEFORE_NORMAL_CONTEXT") == "log\nYou are Miku."
    after = "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"
    context = "You are Miku.\n<START>\nAnon: hi\n<START>\nAnon: bye"
    assert inject_text(context, "log", after) == "You are Miku.\nlog\n<START>\nAnon: hi\n<START>\nAnon: bye"
    assert inject_text("You are Miku.", "log", after) == "You are Miku.\nlog", "the extension raised an error"


@pytest.mark.parametrize("location", ["BEFORE_NORMAL_CONTEXT", "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"])
def test_l14_l15_in_messages_of_any_host(location):
    config = LtmConfig.of({"ltm_context": {"injection_location": location}})
    memories = [RecalledMemory("a", "boats", "Anon", "", 0.1)]
    prompt = [SystemMessage("You are Miku."), HumanMessage("hi")]
    system, human = inject(prompt, memories, config, name1="Anon", name2="Miku", now=NOW)
    assert human is prompt[1]
    assert "Miku's memory log:" in system.content
    assert "While Miku talks with Anon" in system.content
    assert system.content.index("boats") < system.content.index("You are Miku.") or location.startswith("AFTER")
    assert system.content.startswith("You are Miku.") == location.startswith("AFTER")
    cached = {"type": "text", "text": "Be Miku.", "cache_control": {"type": "ephemeral"}}
    parts = [cached, {"type": "text", "text": "x"}]
    (system,) = inject([SystemMessage(parts)], memories, config, now=NOW)
    assert [part for part in system.content if part in parts] == parts, "what a cache knows stays as it was"
    assert len(system.content) == 3
    assert (system.content[0] not in parts) == location.startswith("BEFORE"), "the block is a part of its own there"
    (system,) = inject([SystemMessage([{"type": "text", "text": "a<START>b"}])], memories, config, now=NOW)
    assert ("a\n" in system.content[0]["text"]) == location.startswith("AFTER")
    (system,) = inject([SystemMessage([{**cached, "text": "a<START>b"}])], memories, config, now=NOW)
    assert system.content[-1]["cache_control"] == cached["cache_control"]
    first, _ = inject([AIMessage("hello")], memories, config, now=NOW)
    assert isinstance(first, SystemMessage)


def test_l16_without_a_hit_nothing_is_touched_and_with_one_only_this_prompt():
    prompt = [SystemMessage("  You are Miku. "), HumanMessage("hi")]
    before = [message.model_copy(deep=True) for message in prompt]
    assert inject(prompt, [], now=NOW) == before
    assert inject_text("  as it is ", "", "BEFORE_NORMAL_CONTEXT") == "  as it is "
    inject(prompt, [RecalledMemory("a", "boats", "Anon", "", 0.1)], now=NOW)
    assert prompt == before


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
    for days in (9, 8, 1):
        await talk(store, "first", days, "short")
    found = await last_talk(store, "Miku", user="ada", session="now")
    assert line(found) == "Ada and Miku have talked once before, last yesterday.", "a session counts once"


async def test_how_long_how_often_and_of_what():
    store = InMemoryStore()
    await talk(store, "first", 9, TOLD)
    await talk(store, "second", 5, "short")
    found = await last_talk(store, "Miku", user="ada", session="now")
    assert (found.sessions, found.said_at[:10], found.text) == (2, "2026-07-05", TOLD)
    assert line(found) == (
        f"Ada and Miku have talked 2 times before, last 5 days ago. Of what Ada said then is remembered: “{TOLD}”"
    )


async def test_what_was_deleted_or_taken_back_is_not_brought_up():
    store = InMemoryStore()
    await talk(store, "first", 9, TOLD)
    key = await talk(store, "second", 5, TOLD + " Really.")
    await delete_memories(store, character_namespace("Miku", MEMORIES, user="ada"), [key])
    assert (await last_talk(store, "Miku", user="ada")).text == TOLD
    await talk(store, "third", 4, TOLD + " Undone.", stamp=Stamp("gone", 3).to_json())
    assert (await last_talk(store, "Miku", user="ada", timeline=[("main", 9)])).text == TOLD
    assert (await last_talk(store, "Miku", user="ada", timeline=[("gone", 3)])).text == TOLD + " Undone."


EXTENSIONS = {
    "ltm_context": {
        "injection_location": "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES",
        "memory_context_template": "{name2} remembers:\n{all_memories}\n({name1} asked.)",
        "memory_template": '{time_difference}, {memory_name} said:\n"{memory_message}"',
    },
    "ltm_writes": {"min_message_length": 50},
    "ltm_reads": {"max_cosine_distance": 0.7, "num_memories_to_fetch": 4, "memory_length_cutoff_in_chars": 500},
}


def test_the_extensions_file_is_read_under_its_own_names(tmp_path):
    path = tmp_path / "ltm_config.json"
    path.write_text("\ufeff" + json.dumps(EXTENSIONS), "utf-8")
    config = LtmConfig.read(path)
    told = config.model_dump()
    assert told.pop("ltm_reads") == EXTENSIONS["ltm_reads"] | {"visible": "now"}
    assert told.pop("ltm_writes") == EXTENSIONS["ltm_writes"] | {"condense_longer_than": 0}
    assert told == {"ltm_context": EXTENSIONS["ltm_context"]}


def test_l17_the_defaults_are_the_extensions_and_the_example_can_be_written(tmp_path):
    config = LtmConfig()
    assert LtmConfig.of({}) == config, "a missing key has its default"
    assert config.ltm_context.injection_location == "BEFORE_NORMAL_CONTEXT"
    assert config.ltm_writes.min_message_length == 100
    reads = {"max_cosine_distance": 0.60, "num_memories_to_fetch": 2, "memory_length_cutoff_in_chars": 1000}
    assert config.ltm_reads.model_dump() == reads | {"visible": "now"}
    config.write(tmp_path / "ltm_config.json")
    assert LtmConfig.read(tmp_path / "ltm_config.json") == config


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ltm_context": {"injection_location": "HERE"}}, "'HERE': .*'BEFORE_NORMAL_CONTEXT' or 'AFTER_NORMAL"),
        ({"ltm_context": {"memory_template": "{message}"}}, r"no field \{message\}; its fields are \{time_diff"),
        ({"ltm_context": {"memory_context_template": "{name1.__class__}"}}, r"no field \{name1.__class__\}"),
        ({"ltm_context": {"memory_context_template": "{0}"}}, r"no field \{0\}"),
        ({"ltm_context": {"memory_template": "{"}}, "written twice"),
        ({"ltm_context": {"memory_template": "{memory_name:999999999999}"}}, "without a format"),
        ({"ltm_context": {"memory_template": "{memory_name!r}"}}, "without a format"),
        ({"ltm_reads": {"num_memories_to_fetch": -1}}, "num_memories_to_fetch is -1: .*greater than or equal to 0"),
        ({"ltm_reads": {"max_cosine_distance": "near"}}, "max_cosine_distance is 'near': .*number"),
        ({"ltm_reads": {"max_cosine_distance": 2.1}}, "less than or equal to 2"),
        ({"ltm_reads": {"max_cosine_distance": float("nan")}}, "max_cosine_distance is nan"),
        ({"ltm_reads": {"num_memories_to_fetch": True}}, "num_memories_to_fetch is True: .*integer"),
        ({"ltm_reads": {"memory_length_cutoff_in_chars": 0}}, "greater than or equal to 1"),
        ({"ltm_reads": {"visible": "later"}}, "'now' or 'next_session'"),
        ({"ltm_writes": {"min_length": 3}}, "no ltm_writes.min_length; there are min_message_length"),
        ({"reads": {}}, "no reads; there are ltm_context, ltm_writes, ltm_reads"),
        ({"ltm_reads": 5}, "ltm_reads is 5"),
        ([], r"got \[\]; expected an object"),
    ],
)
def test_l17_what_is_wrong_is_named_with_what_is_allowed(given, said):
    with pytest.raises(LtmConfigError, match=said):
        LtmConfig.of(given)


def test_l17_all_that_is_wrong_is_said_at_once_and_in_which_file(tmp_path):
    path = tmp_path / "ltm_config.json"
    path.write_text(json.dumps({"ltm_reads": {"num_memories_to_fetch": -1, "k": 2}, "other": 1}))
    with pytest.raises(LtmConfigError) as raised:
        LtmConfig.read(path)
    assert all(word in str(raised.value) for word in (str(path), "num_memories_to_fetch", "ltm_reads.k", "other"))
    assert isinstance(raised.value, StoreConfigError)


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "no JSON"), ("", "no JSON"), ('{"a": 1, "a": 2}', "'a' stands there twice"), ("[" * 100_000, "no JSON")],
)
def test_a_file_that_is_no_json_is_said(tmp_path, text, said):
    path = tmp_path / "ltm_config.json"
    path.write_text(text)
    with pytest.raises(LtmConfigError, match=said):
        LtmConfig.read(path)
    with pytest.raises(LtmConfigError, match="cannot be read"):
        LtmConfig.read(tmp_path / "nowhere.json")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LtmConfigError, match="UTF-8"):
        LtmConfig.read(path)


@pytest.mark.slow
def test_a_file_of_many_names_and_a_number_of_many_digits_are_refused_at_once(tmp_path):
    file = tmp_path / "ltm_config.json"
    file.write_text(json.dumps({f"name{number}": 1 for number in range(100_000)}))

    def refused():
        with pytest.raises(LtmConfigError):
            LtmConfig.read(file)

    assert cpu_seconds(refused, 5) < 5
    file.write_text('{"ltm_reads": {"num_memories_to_fetch": ' + "9" * 5000 + "}}")
    with pytest.raises(LtmConfigError, match="JSON"):
        LtmConfig.read(file)


async def test_a_session_keeps_when_it_began_its_last_moment_and_its_last_memory():
    store, place = InMemoryStore(), character_namespace("Miku", "sessions", user="ada")
    for days, memory in ((9, None), (5, "k1"), (7, None), (6, "k2"), (8, None)):
        await note_session(store, "Miku", "s", user="ada", now=NOW - timedelta(days=days), memory=memory)
    [item] = await store.asearch(place)
    assert item.value == {"began": "2026-07-01T12:00:00+00:00", "last": "2026-07-05T12:00:00+00:00", "memory": "k2"}


@pytest.mark.parametrize(
    ("talk_before", "said"),
    [
        (LastTalk(), "Ada and Miku have not talked before."),
        (LastTalk("2026-07-09T12:00:00", 1), "Ada and Miku have talked once before, last yesterday."),
        (LastTalk("2026-07-09T12:00:00", 2), "Ada and Miku have talked 2 times before, last yesterday."),
        (
            LastTalk("2026-07-09T12:00:00", 1, "Ada", "x" * 400),
            "Ada and Miku have talked once before, last yesterday. Of what Ada said then is remembered: “"
            + "x" * 300
            + "”",
        ),
    ],
)
def test_the_line_for_a_greeting(talk_before, said):
    assert line(talk_before) == said


def test_an_undated_memory_says_so_and_how_often_it_was_said():
    template = "{memory_date} {memory_times} {memory_name} {time_difference} {memory_message}"
    config = LtmConfig.of({"ltm_context": {"memory_template": template, "memory_context_template": "{all_memories}"}})
    memories = [
        RecalledMemory("a", "boats", "Ada", "", 0.1, 3),
        RecalledMemory("b", "x", "Bo", "2026-07-09T12:00:00", 0.2),
    ]
    assert memory_block(memories, config, name1="Ada", name2="Miku", now=NOW) == (
        "unknown date 3 Ada at an unknown time boats\n2026-07-09 1 Bo yesterday x"
    )


@pytest.mark.parametrize(
    ("section", "name", "right", "wrong"),
    [
        ("ltm_reads", "max_cosine_distance", [0, 2, 0.5], [-0.1, 2.1, "0.5", None, True]),
        ("ltm_reads", "num_memories_to_fetch", [0, 9], [-1, 1.5, "2", True]),
        ("ltm_reads", "memory_length_cutoff_in_chars", [1, 5000], [0, -1, "9"]),
        ("ltm_reads", "visible", ["now", "next_session"], ["later", None]),
        ("ltm_writes", "min_message_length", [0, 7], [-1, "7", 7.5]),
        ("ltm_writes", "condense_longer_than", [0, 7], [-1, "7"]),
        ("ltm_context", "memory_template", ["{memory_message}", "{{x}}", ""], ["{name1}", "{", "{memory_name:9}",
        "{memory_name!r}", 7]),
        ("ltm_context", "memory_context_template", ["{name1}{name2}{all_memories}"], ["{memory_name}", "{}",
        "{name1:>9}"]),
        ("ltm_context", "injection_location", ["BEFORE_NORMAL_CONTEXT"], ["", "before_normal_context"]),
    ],
)  # fmt: skip
def test_each_setting_has_its_limits_and_its_name_in_what_is_said(section, name, right, wrong):
    for value in right:
        config = LtmConfig.of({section: {name: value}})
        assert getattr(getattr(config, section), name) == value
    for value in wrong:
        with pytest.raises(LtmConfigError, match=rf"^The LTM settings: {section}\.{name} is "):
            LtmConfig.of({section: {name: value}})


def test_a_setting_that_there_is_not_is_named_beside_those_that_there_are():
    with pytest.raises(LtmConfigError, match=r"there is no ltm_read; there are ltm_context, ltm_writes, ltm_reads"):
        LtmConfig.of({"ltm_read": {}})
    with pytest.raises(
        LtmConfigError, match=r"there is no ltm_writes\.x; there are min_message_length, condense_longer"
    ):
        LtmConfig.of({"ltm_writes": {"x": 1}})
    with pytest.raises(LtmConfigError, match=r"got 7; expected an object with ltm_context, ltm_writes, ltm_reads"):
        LtmConfig.of(7)
