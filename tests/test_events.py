"""The events of a turn: reply, dice, notices, memories and prompts, read from a graph's stream as it comes."""

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from questbook.graphs.events import (
    STREAM_MODES,
    DiceRoll,
    Memories,
    NodeEnd,
    NodeStart,
    Notice,
    PromptReport,
    ReplyPiece,
    events_of_prompt,
    read_stream,
)

SPEAKS = {"langgraph_node": "run_quest", "speaks": "answers"}
SILENT = {"langgraph_node": "update_state"}


async def events_of(*parts):
    async def stream():
        for part in parts:
            yield part

    return [event async for event in read_stream(stream())]


async def test_pieces_of_a_reply_come_once_and_only_from_nodes_that_speak():
    pieces = [
        ("messages", (AIMessageChunk("", id="m"), SPEAKS)),
        ("messages", (AIMessageChunk("The door ", id="m"), SPEAKS)),
        ("messages", (AIMessageChunk("opens.", id="m"), SPEAKS)),
        ("messages", (AIMessage("The door opens.", id="m"), SPEAKS)),
        ("messages", (AIMessage("Whole.", id="n"), SPEAKS)),
        ("messages", (AIMessageChunk("no change", id="o"), SILENT)),
        ("messages", (HumanMessage("I knock.", id="p"), SPEAKS)),
    ]
    expected = [ReplyPiece("The door ", "m"), ReplyPiece("opens.", "m"), ReplyPiece("Whole.", "n")]
    assert await events_of(*pieces) == expected


async def test_a_node_that_spoke_says_so_at_its_end():
    piece = ("messages", (AIMessageChunk("Hm.", id="m"), SPEAKS))
    ends = await events_of(piece, ("updates", {"run_quest": {}}), ("updates", {"remember": None}))
    assert ends[1:] == [NodeEnd("run_quest", spoke=True), NodeEnd("remember", spoke=False)]


async def test_rolls_and_notices_of_an_update_come_before_the_end_of_its_node():
    roll, other, notice = {"total": 7}, {"total": 3}, {"turn": 1, "node": "roll_dice", "text": "x"}
    update = [{"rolls": [roll, other]}, "no mapping", {"notices": [notice, notice]}, {"rolls": None, "notices": None}]
    assert await events_of(("updates", {"roll_dice": update})) == [
        DiceRoll(roll), DiceRoll(other), Notice(notice), Notice(notice), NodeEnd("roll_dice"),
    ]  # fmt: skip


async def test_memories_come_without_secrets_and_internal_fields():
    memories = [
        {"kind": "event", "text": "Goran left.", "known_by": ["Oda"], "noted": {}},
        {"kind": "secret", "text": "Goran lied."},
    ]
    found, _ = await events_of(("updates", {"recall": {"recalled": memories}}))
    assert found == Memories([{"kind": "event", "text": "Goran left."}])


async def test_the_prompt_is_reported_with_its_fidelity():
    report = {"prompt": [{"section": "quest"}], "node": "run_quest", "fidelity": {"turns": 2, "of": 3}}
    assert await events_of(("custom", report), ("custom", {"prompt": "text"}), ("custom", "x")) == [
        PromptReport("run_quest", [{"section": "quest"}], {"turns": 2, "of": 3})
    ]


def test_what_a_turn_told_is_told_again_without_secrets_and_no_memories_are_not_the_same_as_none_looked_for():
    report = {"node": "run_quest", "prompt": [{"section": "quest"}], "fidelity": {"turns": 2, "of": 3}}
    told = PromptReport("run_quest", report["prompt"], report["fidelity"])
    seen, secret = {"kind": "event", "text": "Goran left."}, {"kind": "secret", "text": "Goran lied."}
    assert events_of_prompt(None, report) == [told]
    assert events_of_prompt([], report) == [Memories([]), told]
    assert events_of_prompt([seen, secret], report) == [Memories([seen]), told]
    assert events_of_prompt(None, {"prompt": []}) == [PromptReport("", [], None)]


async def test_upkeep_is_what_says_so():
    begins = [{"begins": "remember", "upkeep": True}, {"begins": "recall", "upkeep": 1}, {"begins": 5}]
    assert await events_of(*(("custom", each) for each in begins)) == [
        NodeStart("remember", upkeep=True), NodeStart("recall"),
    ]  # fmt: skip


async def test_each_node_says_when_it_begins(game):
    await game.begin()
    given = {"messages": [HumanMessage("I look around.")]}
    stream = game.app.astream(given, game.config, context=game.settings, stream_mode=STREAM_MODES)
    events = [event async for event in read_stream(stream) if isinstance(event, NodeStart | NodeEnd)]
    expected = [
        kind(node) for node in ("recall", "run_quest", "update_state", "remember") for kind in (NodeStart, NodeEnd)
    ]
    assert [(type(event), event.node) for event in events] == [(type(event), event.node) for event in expected]
    upkeep = [event.node for event in events if isinstance(event, NodeStart) and event.upkeep]
    assert upkeep == ["update_state", "remember"], "the person need not wait for these"


@pytest.mark.parametrize(
    ("node", "update", "told"),
    [
        (
            "update_state",
            {
                "gold": {"$add": -5},
                "inventory": {"rope": {"$add": 1}, "key": None},
                "scene": "At the mill.",
                "people": {"Oda": {}},
            },
            "Noted: gold -5; inventory: rope +1, no key any more; people: Oda; scene At the mill.",
        ),
        ("update_state", {"location": "the mill " * 20}, f"Noted: location{' the mill' * 7} the…"),
        ("update_state", {"secrets": {"Oda": "is a spy"}}, None),
        ("update_state", {}, None),
        ("run_quest", {"gold": 5}, None),
    ],
)
async def test_what_the_notes_change_on_the_quest_s_page_is_told_without_secrets(node, update, told):
    *notices, _ = await events_of(("updates", {node: {"quest": update}}))
    told_on = [{"turn": 0, "node": node, "page": "quest", "text": told}] if told else []
    assert [event.notice for event in notices] == told_on


async def test_a_complete_sheet_is_told_once_it_is_and_not_each_answer_on_the_way():
    assert await events_of(("updates", {"build_character": {"character": {"name": "Bo"}}})) == [
        NodeEnd("build_character")
    ]
    [told, _] = await events_of(
        ("updates", {"build_character": {"character": {"hit_points": 9}, "quest": {"gold": 5}}})
    )
    assert told.notice["page"] == "sheet"
