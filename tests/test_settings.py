"""Settings: where they come from, what is told of a wrong one, and that Studio can show each."""

import asyncio
from types import SimpleNamespace

import pytest

from questbook import build_agent
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


def test_every_setting_is_described_for_studio():
    schema = graph.get_context_jsonschema()
    assert set(schema["properties"]) == set(Context.model_fields)
    assert all(field.get("description") for field in schema["properties"].values())


async def test_a_parent_graphs_context_of_another_class_is_read_by_its_attributes(model):
    given = SimpleNamespace(campaign="theirs", model="scripted", unrelated=3)
    assert Context.of(given).campaign == "theirs"
