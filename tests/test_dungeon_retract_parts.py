"""What retracting a turn does to summary, archive and head, and what `why` reads, on records written by hand."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.store.memory import InMemoryStore
from letters import Letters
from scripted import say

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.why import why
from questbook.graphs.errors import HistoryError
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key
from questbook.notebooks import render_value

EXCHANGES, FACTS, RETRACTED, UNLEARNED, HEAD = (
    campaign_namespace("adventurer", "default", name)
    for name in ("exchanges", "facts", "retracted", "unlearned", "head")
)


def exchange(turn):
    """A turn of two digits that costs 50 tokens."""
    return {"turn": turn, "player": f"I dig hole {turn}. {'Earth, ' * 17}!", "reply": f"Earth {turn}!."}


@pytest.fixture
def planted(game):
    """Make a thread of turns from 11 on, of which the last few are in the buffer."""

    async def plant(turns, buffered=1, **channels):
        game.keep_in(InMemoryStore(index={"embed": Letters(), "dims": Letters.dims, "fields": ["text"]}))
        last = 10 + turns
        for turn in range(11, last + 1):
            record = exchange(turn) | {"text": f"I dig {turn}.", "messages": [f"h{turn}", f"a{turn}"], "noted": {}}
            await game.store.aput(EXCHANGES, record_key("a", turn, "exchange"), record | Stamp("a", turn).to_json())
        kept = range(last - buffered + 1, last + 1)
        messages = [m for n in kept for m in (HumanMessage("I dig.", id=f"h{n}"), AIMessage("Earth.", id=f"a{n}"))]
        values = {"messages": messages, "turn": last, "timeline": [("a", last)], "summary": "They dug.", "quest": {}}
        await game.app.aupdate_state(game.config, values | channels, as_node="condense")
        return game

    return plant


async def take_back(game, turn, **settings):
    return await retract(game.app, game.config, Context.of(game.settings | {"buffer_tokens": 200} | settings), turn)


def summarised(game):
    """Return, for each time the model was asked for a summary, the turns that it was given."""
    return [[n for n in range(11, 99) if f"hole {n}." in asked[-1].text] for asked in game.model.asked("condense")]


async def head_of(game, **value):
    now = {"turn": game.values["turn"], "timeline": [list(segment) for segment in game.values["timeline"]]}
    await game.store.aput(HEAD, "head", now | {"quest": {}, "facts": [], "summary": "They dug."} | value)
    await take_back(game, 11)
    return (await game.store.aget(HEAD, "head")).value


async def test_a_summary_is_made_of_portions_that_fill_the_buffer_to_its_last_token(planted):
    assert count_tokens_approximately([render_value(exchange(11))]) == 50, "else this test shows nothing"
    game = await planted(14)
    assert (await take_back(game, 11)).summarised
    assert summarised(game) == [[12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23]]


async def test_of_many_portions_the_model_reads_the_last_eight_and_of_the_others_come_sentences(planted):
    game = await planted(40)
    await take_back(game, 11)
    asked = summarised(game)
    assert [turns[0] for turns in asked] == [16, 20, 24, 28, 32, 36, 40, 44, 48][-8:]
    first = str(game.model.asked("condense")[0])
    assert "I dig hole 15." in first


async def test_a_failure_of_any_portion_is_a_notice(planted):
    game = await planted(14)
    game.model.queue("condense", ConnectionError("cut"), say("They dug on."), say("They rested."))
    await take_back(game, 11)
    assert game.values["summary"] == "They rested."
    assert "not by the model" in game.values["notices"][-1]["text"]


async def test_a_turn_in_the_buffer_that_no_summary_tells_of_leaves_the_summary_alone(planted):
    game = await planted(4, buffered=2)
    done = await take_back(game, 14)
    assert (done.messages, done.summarised, game.values["summary"]) == (2, False, "They dug.")
    assert not game.model.asked("condense")


async def test_a_turn_in_the_buffer_that_was_summarised_before_it_left_is_taken_out_of_the_summary(planted):
    game = await planted(4, buffered=3, summarised_through=13)
    done = await take_back(game, 13)
    assert (done.messages, done.summarised) == (2, True)
    assert summarised(game) == [[11, 12]], "turn 14 is in the buffer alone"


async def test_what_was_taken_back_is_kept_where_no_search_by_meaning_finds_it(planted):
    game = await planted(2)
    fact = {"text": "The hole is deep.", "messages": ["h11"], "kind": "event"} | Stamp("a", 11).to_json()
    await game.store.aput(FACTS, "f", fact)
    assert (await take_back(game, 11)).facts == 1
    for namespace in (RETRACTED, UNLEARNED):
        [item] = await game.store.asearch(namespace, query="hole")
        assert item.score is None
    assert [item.value["turn"] for item in await game.store.asearch(EXCHANGES)] == [12]
    assert await game.store.asearch(FACTS) == []


async def test_a_fact_without_messages_goes_with_any_of_the_turns_that_it_was_noted_of(planted):
    game = await planted(5)
    for key, first, last in (("before", 11, 12), ("from", 13, 14), ("to", 12, 13), ("after", 14, 15)):
        fact = {"text": "A hole.", "turns": [first, last]} | Stamp("a", last).to_json()
        await game.store.aput(FACTS, key, fact)
    await game.store.aput(FACTS, "alone", {"text": "A hole."} | Stamp("a", 13).to_json())
    await game.store.aput(FACTS, "elsewhere", {"text": "A hole."} | Stamp("b", 13).to_json())
    assert (await take_back(game, 13)).facts == 3
    assert {item.key for item in await game.store.asearch(FACTS)} == {"before", "after", "elsewhere"}


async def test_the_head_is_corrected_if_the_thread_is_at_it_and_is_not_searched_by_meaning(planted):
    game = await planted(3)
    head = await head_of(game)
    assert (head["summary"], head["quest"]["gold"]) == ("They walked on.", 0)
    [item] = await game.store.asearch(HEAD, query="dug")
    assert item.score is None


@pytest.mark.parametrize("elsewhere", [{"turn": 13}, {"timeline": [["b", 12]]}])
async def test_the_head_of_another_line_or_a_later_turn_stays(planted, elsewhere):
    head = await head_of(await planted(2), **elsewhere)
    assert (head["summary"], head["quest"]) == ("They dug.", {})


async def test_facts_that_wait_and_came_from_the_turn_are_written_no_more(planted):
    waiting = [{"turns": [turn, turn], "ordinal": 0, "fact": {}, "messages": [f"h{turn}"]} for turn in (11, 12)]
    game = await planted(2, facts=waiting)
    await take_back(game, 11)
    assert game.values["facts"] == waiting[1:]


# Why.


async def causes(game, what):
    return await why(game.app, game.config, Context.of(game.settings), what)


async def test_a_fact_about_the_player_comes_from_the_turn_of_its_messages_and_has_no_branch(planted):
    game = await planted(3)
    player = player_namespace("adventurer", "facts")
    await game.store.aput(player, "p", {"text": "Likes riddles.", "turn": 12, "messages": ["gone", "h12"]})
    await game.store.aput(player, "q", {"text": "Likes riddles most.", "turn": 12, "messages": ["gone"]})
    found = {cause.value: cause for cause in await causes(game, "riddles")}
    assert found["Likes riddles."].player == exchange(12)["player"]
    assert (found["Likes riddles."].branch, found["Likes riddles."].turns) == ("", (12, 12))
    assert found["Likes riddles most."].player == ""


async def test_facts_come_newest_first_with_the_words_of_their_turn_and_without_secrets(planted):
    game = await planted(4)
    for key, turn, branch, kind in (("x", 11, "a", "event"), ("y", 13, "a", "event"), ("z", 12, "a", "secret"),
                                    ("w", 12, "b", "event")):  # fmt: skip
        fact = {"text": f"The heron {key} sang.", "kind": kind, "messages": [], "at": f"{turn:08}"}
        await game.store.aput(FACTS, key, fact | Stamp(branch, turn).to_json())
    found = await causes(game, "heron")
    assert [(cause.field, cause.value, cause.turn, cause.branch) for cause in found] == [
        ("fact", "The heron y sang.", 13, "a"), ("fact", "The heron x sang.", 11, "a")]  # fmt: skip
    assert [cause.player for cause in found] == [exchange(13)["player"], exchange(11)["player"]]
    assert all(cause.holds for cause in found)


async def test_a_field_was_set_where_its_part_or_the_whole_was_and_holds_while_the_page_says_so(planted):
    game = await planted(4, quest={"gold": 5, "people": {"Bo": {"role": "smith", "attitude": "kind"}}})
    patches = {11: {"gold": 3, "people": {"Bo": {"role": "smith"}}}, 12: {"gold": 5, "people": {"Al": None}},
               13: {"people": {"Bo": None}, "facts": {"the mill": None}}, 14: {"condition": {"hp": 3}}}  # fmt: skip
    for item in await game.store.asearch(EXCHANGES, limit=9):
        turn = item.value["turn"]
        noted = {"from": turn, "through": turn, "patch": patches[turn]}
        await game.store.aput(EXCHANGES, item.key, item.value | {"noted": noted})

    async def summary(what):
        return [(cause.turn, cause.field, cause.value, cause.holds) for cause in await causes(game, what)]

    assert await summary("gold") == [(12, "gold", 5, True), (11, "gold", 3, False)]
    assert await summary("People.Bo.role") == [(13, "people.Bo", None, False), (11, "people.Bo.role", "smith", True)]
    assert await summary("people.al") == [(12, "people.Al", None, True)]
    assert [row[:2] for row in await summary("people")] == [
        (13, "people.Bo"), (12, "people.Al"), (11, "people.Bo.role")]  # fmt: skip
    assert [row[:2] for row in await summary("hp")] == [(14, "condition.hp")]
    for unknown in ("people.Bobo", "people.B", "scene"):
        with pytest.raises(HistoryError, match="No turn of this line noted"):
            await causes(game, unknown)
