"""A section's limit holds on every path by which a value can be written."""

import pytest
from companion_thread import Companion
from scripted import call, say, sections_of

from questbook import CoreNotebook
from questbook.notebooks.core_tools import edit_core
from questbook.notebooks.errors import EditError, SectionFullError

LONG = "y" * 15
PAGE = CoreNotebook.of({"human": {"value": "Name: Ann", "limit": 20}})


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("append", {"content": LONG}),
        ("insert", {"content": LONG, "line": 0}),
        ("replace", {"old_content": "Ann", "new_content": LONG}),
        ("rethink", {"new_content": LONG * 2}),
    ],
)
def test_every_tool_obeys_the_limit(tool, args):
    with pytest.raises(EditError, match="of 20 characters: shorten it by at least"):
        edit_core(PAGE, f"core_memory_{tool}", {"label": "human", **args})


@pytest.mark.parametrize("by_model", [True, False])
def test_every_patch_obeys_the_limit(by_model):
    with pytest.raises(SectionFullError, match="would use 30 of 20"):
        PAGE.apply({"sections": {"human": {"value": LONG * 2}}}, by_model=by_model)


async def test_the_reducer_obeys_the_limit_and_does_not_change_the_page(model):
    talk = Companion(model, core={"human": {"value": "Name: Ann", "limit": 20}})
    await talk.say("hi", say("ok", call("core_memory_rethink", label="human", new_content=LONG * 2)), say("No."))
    assert "would use 30 of 20 characters" in talk.results[-1].text
    with pytest.raises(SectionFullError):
        await talk.app.aupdate_state(talk.config, {"core": {"sections": {"human": {"value": LONG * 2}}}}, "condense")
    assert talk.human == "Name: Ann"


async def test_the_model_sees_the_count_and_the_limit(model):
    talk = Companion(model, core={"human": {"value": "Name: Ann", "limit": 20}})
    await talk.say("hi")
    assert '"used": 9, "limit": 20' in sections_of(model.asked("companion")[-1])
