"""What insights rest on: both sets of sources of what was thought twice, on each timeline, and what falls with them."""

import pytest
from conftest import MIRA
from fact_play import CONTEXT, FACTS, stored
from faulty_stores import Refusing, RefusingTheRest
from forgetting_of import forgetting_of
from langgraph.store.memory import InMemoryStore
from reflecting import DEBT, FAIR, INSIGHT, MILL, ask, conclude, numbers, tell
from scripted import call, say
from stored_bytes import files_saying

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.why import why
from questbook.graphs.history.history import History
from questbook.graphs.interface.forgetting import find_words, forget_words
from questbook.graphs.local.game import open_game
from questbook.memory.facts.lookup import add_insights
from questbook.memory.facts.reflection import find_dependents, find_sources, second_drawing_op
from questbook.memory.facts.validity import write_judgements
from questbook.memory.recall.query import Recalled
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.records import Stamp

SOURCES = campaign_namespace("adventurer", "default", "sources")


async def think(game, words, fact, *cites, text=INSIGHT):
    """Play a turn that notes a fact and draws an insight."""
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((text, cites or [fact["text"]]), subject="Goran"))
    await tell(game, words, fact)


async def insights(game):
    return [item for item in await game.store.asearch(FACTS, limit=100) if item.value["cites"]]


async def cited(game):
    """Texts that the insight rests on, as the game's timeline sees it."""
    timeline = [tuple(segment) for segment in game.values["timeline"]]
    facts = await stored(game)
    found = await find_sources(game.store, FACTS, await insights(game), timeline=timeline)
    return {key: {facts[source]["text"] for source in keys} for key, keys in found.items()}


@pytest.fixture
async def story(new_game):
    game = new_game(reflection_importance=6)
    await game.begin()
    await think(game, "I ask.", DEBT)
    return game


async def test_an_insight_that_is_thought_again_rests_on_both_and_its_record_is_not_touched(story):
    [before] = await insights(story)
    await think(story, "I ask Oda.", MILL, text="Goran avoids the river because of what he owes!")
    assert await insights(story) == [before], "by bytes and by time of writing"
    assert await cited(story) == {before.key: {DEBT["text"], MILL["text"]}}
    [further] = (await stored(story, SOURCES)).values()
    assert (further["same_as"], further["turn"], further["branch"]) == (before.key, 3, before.value["branch"])


async def test_each_branch_knows_the_sources_of_its_own_past(story):
    [insight] = await insights(story)
    history = History(story.app, story.config, CONTEXT)
    await think(story, "I ask Oda.", MILL)
    await history.undo()
    assert await cited(story) == {insight.key: {DEBT["text"]}}
    await think(story, "I go to the fair.", FAIR)
    assert await cited(story) == {insight.key: {DEBT["text"], FAIR["text"]}}
    await history.go("2")
    assert await cited(story) == {insight.key: {DEBT["text"]}}
    assert await insights(story) == [insight]
    assert len((await find_sources(story.store, FACTS, [insight]))[insight.key]) == 3, "without a timeline all are seen"


async def test_why_tells_all_that_an_insight_was_drawn_from_and_no_secret(story):
    await think(story, "I ask Oda.", MILL)
    [cause] = await why(story.app, story.config, CONTEXT, "avoids the river")
    assert set(cause.drawn_from) == {DEBT["text"], MILL["text"]}
    await think(story, "I look.", {**FAIR, "kind": "secret"})
    [cause] = await why(story.app, story.config, CONTEXT, "avoids the river")
    assert set(cause.drawn_from) == {DEBT["text"], MILL["text"]}


@pytest.mark.parametrize(("store", "written"), [(Refusing, 0), (RefusingTheRest, 1)])
async def test_a_reflection_that_broke_off_before_it_was_done_adds_no_source_twice(new_game, store, written):
    game = new_game(reflection_importance=6)
    game.store = store()
    game.app = build_graph().compile(checkpointer=game.saver, store=game.store)
    await game.begin()
    await think(game, "I ask.", DEBT)
    game.store.refused = "reflection"
    await think(game, "I ask Oda.", MILL)
    assert len(await stored(game, SOURCES)) == written
    game.store.refused = ""
    await think(game, "I go to the fair.", FAIR, MILL["text"])
    [insight] = await insights(game)
    timeline = [tuple(segment) for segment in game.values["timeline"]]
    keys = (await find_sources(game.store, FACTS, [insight], timeline=timeline))[insight.key]
    assert len(keys) == len(set(keys)) == 2


async def test_an_insight_that_is_no_secret_is_not_lost_in_one_that_is(new_game):
    game = new_game(reflection_importance=6)
    await game.begin()
    await think(game, "I ask.", DEBT | {"kind": "secret"})
    game.model.queue("question", ask())

    def same(messages):
        number = numbers(messages)
        given = {"text": "He shuns the ferry.", "cites": [number[MILL["text"]]], "same_as": number[INSIGHT]}
        return say("", call("Reflection", insights=[given]))

    game.model.queue("conclude", same)
    await tell(game, "I ask Oda.", MILL)
    drawn = {(item.value["kind"], item.value["text"]) for item in await insights(game)}
    assert drawn == {("secret", INSIGHT), ("insight", "He shuns the ferry.")}


@pytest.mark.parametrize(("first", "left"), [(2, MILL), (3, DEBT)])
async def test_retracting_some_of_what_it_rests_on_leaves_what_the_other_sources_say(story, first, left):
    await think(story, "I ask Oda.", MILL)
    assert (await retract(story.app, story.config, CONTEXT, first)).facts == 4 - first, "a source is none"
    [heir] = await insights(story)
    assert (heir.value["text"], heir.value["turn"]) == (INSIGHT, 5 - first)
    assert await cited(story) == {heir.key: {left["text"]}}
    assert await stored(story, SOURCES) == {}
    await retract(story.app, story.config, CONTEXT, 5 - first)
    assert await insights(story) == []


async def test_of_several_heirs_of_a_branch_the_first_stands_and_the_others_are_its_sources():
    store = InMemoryStore()
    value = {"text": INSIGHT, "cites": ["a-1-fact-0"], "branch": "a", "turn": 1, "at": "00000001.900"}
    await store.aput(FACTS, "a-1-insight-0", value)
    await store.aput(FACTS, "c-1-insight-0", value | {"cites": ["c-1-fact-0"]})
    await store.abatch([second_drawing_op(FACTS, "c-2-insight-0", "c-1-insight-0", value | {"cites": ["c-2-fact-0"]})])
    for turn in range(2, 15):
        more = {"cites": [f"a-{turn}-fact-0"], "turn": turn, "at": f"{turn:08}.900"}
        await store.abatch([second_drawing_op(FACTS, f"a-{turn}-insight-0", "a-1-insight-0", value | more)])
    known = [*await store.asearch(FACTS), *await store.asearch(SOURCES, limit=99)]
    fallen = find_dependents(FACTS, {"a-1-fact-0", "a-3-fact-0"}, known)
    assert {item.key for item in fallen.items} == {"a-1-insight-0", "a-3-insight-0"}
    assert [op.index for op in fallen.replacements if op.value] == [None] + [False] * 11, "its text alone is searched"
    await store.abatch(fallen.replacements)
    heir = await store.aget(FACTS, "a-2-insight-0")
    assert "same_as" not in heir.value
    sources = [f"a-{turn}-fact-0" for turn in (2, *range(4, 15))]
    assert await find_sources(store, FACTS, [heir], timeline=[("a", 14)]) == {heir.key: sources}


async def test_the_best_eight_bring_two_insights_each_and_three_come_that_nobody_has_said():
    store, timeline = InMemoryStore(), [("a", 97), ("b", 98)]
    recalled = []
    for turn in range(1, 10):
        exchange = {"kind": "exchange", "branch": "a", "turn": turn, "text": "The mill turns."}
        recalled.append(Recalled(f"a-{turn}-exchange-0", exchange, None, 1.0, ("u", "c", "exchanges")))
        for n in range(3):
            drawn = {"kind": "insight", "text": f"Thought {turn}.{n}", "cites": [f"a-{turn}-fact-0"]}
            await store.aput(FACTS, f"i-{turn}-{n}", drawn | Stamp("a", turn).to_json() | {"at": f"{turn:08}.90{n}"})
    later = {"kind": "insight", "text": "Thought 12.", "cites": ["a-12-fact-0"], "at": "00000012.900"}
    await store.aput(FACTS, "i-12", Stamp("a", 12).to_json() | later)
    for n, (branch, turn) in enumerate([("b", 98)] * 4 + [("a", 98), ("b", 99)]):
        unsaid = {"kind": "insight", "text": f"The mill of Goran burns, {n}.", "cites": [f"x{n}"]}
        await store.aput(FACTS, f"unsaid-{n}", unsaid | Stamp(branch, turn).to_json() | {"at": f"00000099.90{n}"})
    await write_judgements(store, FACTS, [("unsaid-3", "x")], Stamp("another", 98).to_json())
    found = await add_insights(store, recalled, FACTS, question="Whose mill burns?", timeline=timeline, since=97)
    keys = [one.key for one in found]
    assert keys[:3] == ["unsaid-1", "unsaid-2", "unsaid-3"], "the latest on the timeline"
    why = ["fits, and nobody has said it in the conversation", "concluded from turn 1, which came"]
    assert [(str(found[n].reason), found[n].weight) for n in (0, 4)] == [(text, 0) for text in why]
    assert keys[3:6] == ["a-1-exchange-0", "i-1-1", "i-1-2"]
    assert [key for key in keys if key.startswith("i-")] == [f"i-{turn}-{n}" for turn in range(1, 9) for n in (1, 2)]


async def test_what_was_concluded_in_the_prompt_s_turns_comes_though_an_earlier_turn_was_recalled():
    store, where = InMemoryStore(), ("u", "c", "exchanges")
    unsaid = {"kind": "insight", "text": "The mill of Goran burns.", "cites": ["x"]} | Stamp("a", 200).to_json()
    for place in (FACTS, (*FACTS, "work")):
        await store.aput(place, f"{place[-1]}-unsaid", unsaid | {"at": "00000200.900"})
    said = {"kind": "exchange", "branch": "a", "turn": 5, "text": "The mill turns."}
    recalled, line = [Recalled("a-5-exchange-0", said, None, 1.0, where)], [("a", 300)]
    found = await add_insights(store, recalled, FACTS, question="Whose mill burns?", timeline=line, since=2)
    assert [one.key for one in found] == ["facts-unsaid", "a-5-exchange-0"]


DEEP = "The river frightens the smith more than his enemies do."
OTHER = "Oda is lonely at heart."


@pytest.fixture
async def opened(model, home):
    """A game in files: an insight drawn from a fact that says "forty crowns", one drawn from that, one from others."""
    context = Context(model="scripted", seed=7, user="ann", campaign="isle", reflection_importance=6)
    async with open_game(context, home) as game:

        async def turn(words, fact, *drawn):
            model.queue("quest", say(f"So it is. {fact['text']}"))
            model.queue("update", say("", call("Facts", facts=[fact])))
            model.queue("question", ask())
            model.queue("conclude", conclude(*drawn, subject="Goran"))
            async for _ in game.send(words):
                pass

        model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        async for _ in game.send("I'm Mira"):
            pass
        game.model, game.turn = model, turn
        await turn("I ask.", DEBT, (INSIGHT, [DEBT["text"]]))
        await turn("I ask Oda.", MILL, (DEEP, [INSIGHT, MILL["text"]]), (OTHER, [MILL["text"]]))
        yield game


async def test_forgetting_takes_what_was_drawn_from_the_words_and_shows_it_first(opened, home):
    assert files_saying(home.path, "avoids the river")
    told = "\n".join((await find_words(opened, "forty crowns")).lines)
    shown = "These conclusions from the memories are removed with them:", f"turn 2 (main): {INSIGHT}"
    for line in (*shown, f"turn 3 (main): {DEEP}", "2 insights drawn from them"):
        assert line in told
    assert OTHER not in told
    assert files_saying(home.path, "avoids the river"), "nothing was changed yet"
    assert "2 insights drawn from them" in await forget_words(opened, "forty crowns")
    for gone in ("forty crowns", "avoids the river", "frightens the smith"):
        assert files_saying(home.path, gone) == [], gone
    assert files_saying(home.path, OTHER) == ["memory.db"]


async def test_a_secret_that_was_drawn_is_not_named_when_it_is_forgotten(opened, home):
    hidden = {"text": "Goran drowned his brother.", "subject": "Goran", "kind": "secret", "importance": 6}
    await opened.turn("I look.", hidden, ("Goran fears his brother's ghost.", [DEBT["text"], hidden["text"]]))
    told = "\n".join((await find_words(opened, "forty crowns")).lines)
    assert "ghost" not in told
    assert "only the dungeon master knows" not in told, "the preview does not say that a secret has the words"


async def test_what_was_drawn_from_other_sources_too_stays_and_forgets_only_these(opened, home):
    await opened.turn("I go to the fair.", FAIR, (INSIGHT, [FAIR["text"]]))
    found = await forgetting_of(await opened.load(), opened.config, opened.context).find("forty crowns")
    assert [value["text"] for value in found.insights] == [INSIGHT, DEEP]
    done = await forgetting_of(await opened.load(), opened.config, opened.context).forget("forty crowns")
    assert (done.records, done.insights) == (found.records, found.insights), "what held the words before"
    facts, store = campaign_namespace("ann", "isle", "facts"), (await opened.load()).store
    left = [item for item in await store.asearch(facts, limit=50) if item.value["cites"]]
    assert {item.value["text"] for item in left} == {INSIGHT, OTHER}
    assert files_saying(home.path, "forty crowns") == []
    keys = {item.key for item in await store.asearch(facts, limit=50)}
    assert all(set(item.value["cites"]) <= keys for item in left)


async def test_stopped_before_the_words_went_the_next_run_still_knows_what_was_drawn(opened, home, monkeypatch):
    forgetting = forgetting_of(await opened.load(), opened.config, opened.context)
    writes = []

    async def stop_at_second(store, puts):
        writes.append(puts)
        if len(writes) == 2:
            raise KeyboardInterrupt
        await put_all(store, puts)

    with monkeypatch.context() as patch:
        patch.setattr("questbook.graphs.forgetting.forget.put_all", stop_at_second)
        with pytest.raises(KeyboardInterrupt):
            await forgetting.forget("forty crowns")
    assert files_saying(home.path, "forty crowns")
    await forgetting.forget("forty crowns")
    for gone in ("forty crowns", "avoids the river", "frightens the smith"):
        assert files_saying(home.path, gone) == [], gone
