"""Settings: where they come from, what is told of a wrong one, and that Studio can show each."""

import asyncio
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from questbook import Weights, build_agent
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.graph import graph as companion
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import graph
from questbook.graphs.errors import SettingsError
from questbook.graphs.reflect.graph import graph as reflection


def test_settings_come_from_arguments_then_the_environment_then_defaults(monkeypatch):
    assert Context.of().model == "offline"
    monkeypatch.setenv("QUESTBOOK_MODEL", "openai:gpt-x")
    monkeypatch.setenv("QUESTBOOK_BUFFER_TOKENS", "1234")
    assert Context.of().model == "openai:gpt-x"
    assert Context.of(None, model="ollama:y", seed=None).model == "ollama:y"
    assert Context.of({"model": "z"}).buffer_tokens == 1234
    assert Context.of(Context(model="q")).model == "q"
    monkeypatch.delenv("QUESTBOOK_BUFFER_TOKENS")
    with pytest.raises(SettingsError, match="no setting 'campain'"):
        Context.of({"campain": "x"})
    for wrong in ("str", 5, [1]):
        with pytest.raises(SettingsError, match="expected an object"):
            Context.of(wrong)
    monkeypatch.setenv("QUESTBOOK_BUFFER_TOKENS", "many")
    with pytest.raises(SettingsError, match=r"buffer_tokens \(QUESTBOOK_BUFFER_TOKENS\): got 'many'"):
        Context.of()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"buffer_tokens": "many"}, r"Setting buffer_tokens \(QUESTBOOK_BUFFER_TOKENS\): got 'many'"),
        ({"campain": "x"}, "no setting 'campain'"),
        ({"weights": {"words": -1}}, "Setting weights.words"),
    ],
)
async def test_a_wrong_setting_in_a_mapping_is_named_by_every_door(wrong, message):
    for app in (graph, companion, reflection, build_agent([]).compile()):
        with pytest.raises(SettingsError, match=message):
            await asyncio.to_thread(app.invoke, {"messages": [("user", "hello")]}, context=wrong)
        with pytest.raises(SettingsError, match=message):
            await app.ainvoke({"messages": [("user", "hello")]}, context=wrong)
    with pytest.raises(SettingsError, match=message):
        Context(**wrong)
    with pytest.raises(SettingsError, match="got 'x'"):
        Context.model_validate("x")


SHARED = {
    "model": "offline", "user": "", "seed": None, "temperature": None, "embeddings": "auto", "buffer": "tokens",
    "buffer_tokens": 4000, "buffer_turns": 10, "summary_offset": 2, "summarizer": "model", "summary_tokens": 400,
    "prompt_order": (), "prompt_sections": {}, "recall_tokens": 800, "max_cosine_distance": None,
    "max_message_chars": 8000, "max_reply_chars": 20_000, "guard_secrets": True, "model_timeout": 120.0,
    "store_timeout": 20.0, "update_timeout": 60.0, "reflection_importance": 150, "reflection": "inline",
}  # fmt: skip


def test_who_sets_nothing_has_the_defaults_that_the_documents_name(monkeypatch):
    monkeypatch.delenv("QUESTBOOK_USER")
    assert Context().model_dump(exclude={"weights"}) == SHARED | {"campaign": "default", "max_roll_rounds": 4}
    own = {"core": {}, "facts": True, "timezone": "", "ltm_config": "", "search_results": 5, "max_tool_rounds": 6}
    assert CompanionContext().model_dump(exclude={"weights"}) == SHARED | own | {"campaign": "companion"}


@pytest.mark.parametrize(("name", "least", "too_little"), [
    ("buffer_tokens", 200, 199), ("buffer_turns", 0, -1), ("summary_offset", 0, -1), ("summary_tokens", 50, 49),
    ("recall_tokens", 0, -1), ("max_cosine_distance", 0, -0.1), ("temperature", 0, -0.1),
    ("max_message_chars", 100, 99), ("max_reply_chars", 100, 99),
    ("model_timeout", 0.1, 0), ("store_timeout", 0.1, 0), ("update_timeout", 0.1, 0),
    ("reflection_importance", 1, 0), ("max_roll_rounds", 1, 0), ("max_tool_rounds", 1, 0), ("search_results", 1, 0),
    ("model", "m", ""), ("embeddings", "e", ""),
])  # fmt: skip
def test_a_setting_has_a_least_value(name, least, too_little):
    settings = CompanionContext if name in CompanionContext.model_fields else Context
    assert getattr(settings(**{name: least}), name) == least
    with pytest.raises(SettingsError, match=rf"Setting {name} \(QUESTBOOK_{name.upper()}\): got {too_little!r}; "):
        settings(**{name: too_little})


@pytest.mark.parametrize(("name", "most", "too_much"), [
    ("max_cosine_distance", 2, 2.1), ("temperature", 2, 2.1), ("max_roll_rounds", 20, 21), ("max_tool_rounds", 20, 21),
    ("search_results", 20, 21), ("user", "u" * 200, "u" * 201), ("buffer", "unbounded", "none"),
    ("summarizer", "extractive", "none"), ("reflection", "off", "never"),
    ("prompt_sections", {"a" * 40: {"text": "x" * 20_000}}, {"a" * 41: {"text": "x"}}),
    ("prompt_sections", {"a1_b": {"text": "", "place": "before"}}, {"ab": {"text": "x" * 20_001}}),
    ("prompt_sections", {}, {"1a": {"text": "x"}}), ("prompt_sections", {}, {"ab": {"text": "x", "place": "behind"}}),
    ("prompt_sections", {}, {"ab": {"text": "x", "colour": "red"}}),
])  # fmt: skip
def test_a_setting_has_a_most_or_a_list_of_values(name, most, too_much):
    settings = CompanionContext if name in CompanionContext.model_fields else Context
    assert settings(**{name: most}).model_dump()[name] == settings.model_validate({name: most}).model_dump()[name]
    with pytest.raises(SettingsError, match=rf"Setting {name}.* \(QUESTBOOK_{name.upper()}\): got "):
        settings(**{name: too_much})


@pytest.mark.parametrize(("name", "value", "read"), [
    ("weights", '{"words": 2}', Weights(words=2)), ("weights", ' {"words": 2}', Weights(words=2)),
    ("prompt_order", ' ["quest"]', ("quest",)), ("prompt_order", '["quest", "x"]', ("quest", "x")),
    ("model", "{mine}", "{mine}"),
    ("guard_secrets", "false", False), ("seed", "7", 7), ("campaign", "[one]", "[one]"), ("seed", "", None),
])  # fmt: skip
def test_a_variable_of_the_environment_is_read_as_json_where_the_setting_is_no_plain_value(
    monkeypatch, name, value, read
):
    monkeypatch.setenv(f"QUESTBOOK_{name.upper()}", value)
    assert getattr(Context(), name) == read
    assert getattr(Context(**{name: None}), name) == read, "None is no value"


def test_the_name_of_a_campaign_has_a_most():
    assert Context(campaign="c" * 200).campaign == "c" * 200
    with pytest.raises(SettingsError, match=r"Setting campaign \(QUESTBOOK_CAMPAIGN\): got 'ccc"):
        Context(campaign="c" * 201)


@pytest.mark.parametrize("name", ["model", "buffer", "campaign", "seed"])
def test_settings_do_not_change(name):
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Context(), name, getattr(Context(), name))


def test_json_in_the_environment_that_cannot_be_read_is_named(monkeypatch):
    monkeypatch.setenv("QUESTBOOK_WEIGHTS", '{"words"')
    with pytest.raises(
        SettingsError, match=r"^Setting weights \(QUESTBOOK_WEIGHTS\): '\{\"words\"' is no JSON: Expecting"
    ):
        Context()


def test_settings_of_another_class_hand_on_what_was_said_and_no_user_or_campaign_that_nobody_named(monkeypatch):
    monkeypatch.setenv("QUESTBOOK_USER", "adventurer")
    handed_on = CompanionContext.of(Context(seed=3, recall_tokens=77))
    assert (handed_on.seed, handed_on.recall_tokens, handed_on.campaign) == (3, 77, "companion")
    assert not {"user", "campaign"} & handed_on.model_fields_set
    named = CompanionContext.of(Context(user="ann", campaign="isle"))
    assert (named.user, named.campaign) == ("ann", "companion:isle")
    assert CompanionContext.of(named, campaign="companion:isle").campaign == "companion:isle"


def test_every_setting_is_described_for_studio():
    schema = graph.get_context_jsonschema()
    assert set(schema["properties"]) == set(Context.model_fields)
    assert all(field.get("description") for field in schema["properties"].values())


async def test_a_parent_graphs_context_of_another_class_is_read_by_its_attributes(model):
    given = SimpleNamespace(campaign="theirs", model="scripted", unrelated=3)
    assert Context.of(given).campaign == "theirs"
