"""A machine's plan: what of it reaches the search, what comes whatever is said, and what the prompt has already."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import ClassVar

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.memory import InMemoryStore

from questbook import Recall, Weights
from questbook.graphs.settings import AppRules, Settings
from questbook.graphs.turn import recall as turn_recall
from questbook.graphs.turn.recall import (
    ASSISTANT,
    Always,
    RecallPlan,
    Seen,
    assistant_plan,
    known_about,
    known_of_person,
    memory_tokens,
    recall_for_turn,
    with_recalled,
    within_budget,
)
from questbook.graphs.turn.repetition import Told
from questbook.graphs.turn.state import TurnState
from questbook.memory.recall.query import DEFAULT_WEIGHTS, Present, Recalled, WeightedText
from questbook.memory.text.passages import Span
from questbook.memory.timeline.namespaces import team_namespace
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key

EXCHANGES, FACTS, LORE = (("ann", "default", name) for name in ("exchanges", "facts", "lore"))
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
OWN = Weights(scoring="generative_agents")


def runtime(store, **settings):
    info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id="t")
    context = Settings.of({"user": "ann", "model": "scripted"} | settings)
    return Runtime(context=context, store=store, execution_info=info)


def messages(*numbers):
    """A conversation of these turns; the last one is under way."""
    turns = [[HumanMessage(f"Mile {n}?", id=f"h{n}"), AIMessage(f"Yes, {n}.", id=f"a{n}")] for n in numbers]
    return [message for turn in turns for message in turn][:-1]


class UserState(TurnState):
    SCOPE: ClassVar = "user"


def asking(words="Mile 9?", state=TurnState, **channels):
    values = {"turn": 9, "timeline": [("a", 9)], "remembered_through": 8}
    return state(**values | {"messages": [*messages(8, 9)[:-1], HumanMessage(words, id="h9")]} | channels)


async def stored(turns=range(1, 9), **more):
    store = InMemoryStore()
    for turn in turns:
        said_at = (NOW - timedelta(minutes=9 - turn)).isoformat()
        stamp = Stamp("a", turn, session=3, said_at=said_at, thread="t").to_json()
        value = {"kind": "exchange", "player": f"I walk mile {turn}.", "reply": "The road goes on."}
        await store.aput(EXCHANGES, record_key("a", turn, "exchange"), stamp | value | {"text": value["player"]} | more)
    return store


async def rerank(query, records):
    return records


def always(count, share=lambda tokens: tokens // 2, **options):
    """Records that come whatever is said."""
    records = [
        Recalled(f"k{n}", {"kind": "trait", "text": f"Whisker {n} purrs softly.", "subject": "cat", "turn": 1})
        for n in range(count)
    ]

    async def read(store, seen):
        return records

    return Always(read, share, **options)


GAME = RecallPlan(
    Recall(500, 20, 0.7, OWN, rerank, {"app": "a"}), shown=messages(8, 9), now=NOW, facts=FACTS, shown_facts=False,
    lasting=[LORE], hints=[WeightedText("The scene.", 0.3)], always=[always(2)], character="Mira", day=7, aliases=True,
)  # fmt: skip
PLAIN = RecallPlan(Recall(), shown=messages(8, 9), now=NOW, facts=FACTS)


@pytest.fixture
def searches(monkeypatch):
    """What was searched for, which finds nothing."""
    asked = []

    async def search(store, spaces, query):
        asked.append({"spaces": spaces, **{name: getattr(query, name) for name in query.__dataclass_fields__}})
        return []

    monkeypatch.setattr(turn_recall, "recall_records", search)
    return asked


async def test_what_a_machine_plans_reaches_the_search(searches):
    found = await recall_for_turn(asking(), runtime(await stored()), GAME)
    assert [memory["key"] for memory in found] == ["k1", "k0"]
    said = {
        "spaces": [EXCHANGES, FACTS], "text": "Mile 9?", "hints": GAME.hints, "lasting": [LORE],
        "timeline": [("a", 9)], "before": 8, "limit": 18, "budget": 500 - sum(map(memory_tokens, found)),
        "replies": True, "weights": OWN, "present": Present(NOW, 7, 3), "fitting": False, "max_cosine_distance": 0.7,
        "visibility": "all", "aliases": True, "rerank": rerank, "metadata": {"app": "a"},
        "accesses": ("ann", "default", "accesses"),
    }  # fmt: skip
    assert {name: searches[0][name] for name in said} == said
    await recall_for_turn(asking(), runtime(await stored()), PLAIN)
    said |= {
        "hints": (), "lasting": (), "before": 9, "limit": 48, "budget": 800, "replies": False,
        "weights": DEFAULT_WEIGHTS, "present": Present(NOW, None, 3), "fitting": True, "max_cosine_distance": None,
        "visibility": "viewer", "aliases": False, "rerank": None, "metadata": None,
    }  # fmt: skip
    assert {name: searches[1][name] for name in said} == said


@pytest.mark.parametrize(("plan", "channels", "said"), [
    (GAME, {"remembered_through": 5}, {"before": 6}),  # later ones have no place yet
    (PLAIN, {"remembered_through": 5}, {"before": 6}),
    (replace(GAME, shown=messages(*range(4, 10))), {}, {"before": 4}),
    (replace(PLAIN, shown=messages(*range(4, 10))), {}, {"before": 9}),  # facts of what is shown come, too
    (replace(PLAIN, shown=messages(*range(4, 10)), facts=None), {}, {"before": 4, "spaces": [EXCHANGES]}),
    (PLAIN, {"window": {"model": "scripted", "tokens": 90}}, {"budget": 90}),
    (PLAIN, {"window": {"model": "other", "tokens": 90}}, {"budget": 800}),
    (PLAIN, {"window": {"model": "scripted", "tokens": 9_000}}, {"budget": 800}),
    (replace(PLAIN, lasting=[LORE]), {"turn": 1, "timeline": [("a", 1)], "remembered_through": 0}, {"spaces": []}),
    (PLAIN, {"messages": [HumanMessage("ab" * 4_500, id="h9")]}, {"text": f"{'ab' * 3_000} … {'ab' * 1_000}"}),
])  # fmt: skip
async def test_what_has_no_place_or_no_room_is_not_searched(searches, plan, channels, said):
    await recall_for_turn(asking(**channels), runtime(await stored()), plan)
    assert {name: searches[0][name] for name in said} == said


@pytest.mark.parametrize(("plan", "channels", "store"), [
    (PLAIN, {"turn": 1, "timeline": [("a", 1)], "remembered_through": 0}, True),  # nothing was said before
    (replace(PLAIN, options=Recall(0)), {}, True), (PLAIN, {}, False),
])  # fmt: skip
async def test_nothing_is_searched_where_nothing_can_come(searches, plan, channels, store):
    assert await recall_for_turn(asking(**channels), runtime(await stored() if store else None), plan) == []
    assert searches == []


def found(key, turn, kind="trait", **fields):
    text = f"The {key} is blue, and it hangs in the {turn}th hall."
    said = {"player": text, "reply": "", "text": text} | ({} if kind == "exchange" else {"kind": kind})
    return Recalled(key, {"branch": "a", "turn": turn, "thread": "t"} | said | fields)


FOUND = [
    found("older", 7, "exchange"), found("shown", 8, "exchange"), found("old fact", 7), found("fact", 8),
    found("secret", 8, "secret"), found("insight", 8, "insight"), found("typed", 8, by="hand"),
    found("elsewhere", 8, "exchange", thread="other", branch="b", text="Two geese."), found("k0", 3),
    Recalled("page", {"kind": "lore", "text": "Inns.", "turn": 8}),
]  # fmt: skip
OTHERS = {"older", "old fact", "secret", "insight", "typed", "elsewhere", "page"}


@pytest.mark.parametrize(("options", "kept"), [
    ({"shown_facts": False}, OTHERS), ({}, OTHERS | {"fact"}), ({"facts": None}, OTHERS | {"fact"}),
    ({"told": Told(["The old fact is blue, and it hangs in the 7th hall."])}, OTHERS - {"old fact"} | {"fact"}),
    ({"told": Told(["The secret is blue, and it hangs in the 8th hall."])}, OTHERS - {"secret"} | {"fact"}),
    ({"always": []}, OTHERS | {"fact", "k0"}),
])  # fmt: skip
async def test_what_the_prompt_has_word_for_word_or_comes_anyhow_is_not_shown_again(searches, options, kept):
    plan = replace(PLAIN, **{"always": [always(1)]} | options)
    await recall_for_turn(asking(state=UserState), runtime(await stored()), plan)
    assert {record.key for record in await searches[0]["refine"](FOUND)} == kept


@pytest.mark.parametrize("kind", ["trait", "exchange"])
async def test_what_comes_anyhow_in_part_may_come_with_the_part_that_answers(searches, kind):
    async def read(store, seen):
        return [found("k0", 3, kind)._replace(shown=(Span(0, 11),))]

    plan = replace(PLAIN, always=[Always(read, lambda n: n)], told=Told())
    await recall_for_turn(asking(), runtime(await stored()), plan)
    assert [record.key for record in await searches[0]["refine"]([found("k0", 3, kind)])] == ["k0"]


async def test_what_the_prompt_tells_does_not_come_anyhow_either(searches):
    plan = replace(PLAIN, always=[always(3)], told=Told(["The cat Whisker 1 purrs softly."]))
    memories = await recall_for_turn(asking(), runtime(await stored()), plan)
    assert [memory["key"] for memory in memories] == ["k2", "k0"]


@pytest.mark.parametrize(("plan", "since"), [(GAME, 8), (PLAIN, 8), (replace(PLAIN, shown=messages(9)), 9)])
async def test_insights_are_looked_for_from_before_what_the_prompt_shows(searches, monkeypatch, plan, since):
    asked = []

    async def add(store, records, namespace, **about):
        asked.append((namespace, about))
        return records

    monkeypatch.setattr(turn_recall, "add_insights", add)
    await recall_for_turn(asking(), runtime(await stored()), plan)
    await searches[0]["refine"](FOUND[:1])
    assert asked == [(FACTS, {"question": "Mile 9?", "timeline": [("a", 8)], "since": since})]


async def test_a_game_says_in_which_session_it_was(monkeypatch):
    async def search(store, spaces, query):
        return [found("said", 2, "exchange", session=2)]

    monkeypatch.setattr(turn_recall, "recall_records", search)
    memories = await recall_for_turn(asking(), runtime(await stored()), replace(GAME, always=[]))
    assert [memory["age"] for memory in memories] == ["last session"]


@pytest.mark.parametrize(("said_at", "thread", "session"), [
    (NOW - timedelta(minutes=1), "t", 3), (NOW - timedelta(hours=4), "t", 4), (NOW, "other", 4),
])  # fmt: skip
async def test_the_session_goes_on_where_the_last_written_turn_was_said_here_and_lately(
    searches, said_at, thread, session
):
    store = await stored(said_at=said_at.isoformat(), thread=thread)
    await store.aput(EXCHANGES, record_key("a", 8, "exchange"), Stamp("a", 8, session=9).to_json())
    await recall_for_turn(asking(remembered_through=7), runtime(store), PLAIN)
    assert searches[0]["present"].session == session


async def test_of_what_always_comes_no_line_comes_twice_and_each_group_has_its_share_of_the_lines_and_tokens():
    whole = always(6, lambda tokens: tokens)
    plan = replace(PLAIN, options=Recall(400, 5), always=[always(9), whole])
    state, run = asking("Zzz?"), runtime(await stored([1]))
    assert [memory["key"] for memory in await recall_for_turn(state, run, plan)] == ["k2", "k1", "k0", "k4", "k3"]
    plan = replace(plan, options=Recall(400, 1))
    assert [memory["key"] for memory in await recall_for_turn(state, run, plan)] == ["k0"]
    [line] = {memory_tokens(memory) for memory in await recall_for_turn(state, run, plan)}
    for most in (4 * line, 2 * line):
        groups = [always(9, lambda _, most=most: most), always(6, lambda _: 3 * line)]
        plan = replace(PLAIN, options=Recall(4 * line + 1), always=groups)
        found = await recall_for_turn(state, run, plan)
        assert len(found) == 4, "what one group took is not there for the next"


def test_what_matters_most_is_kept_and_comes_last_and_what_is_shortened_shares_the_room():
    def record(key, words):
        return Recalled(key, {"text": "word " * words, "kind": "trait"})

    def cost(record):
        return len(record.excerpt.split())

    few = [record("a", 3), record("b", 9), record("c", 2)]
    assert [one.key for one in within_budget(few, 5, cost)] == ["c", "a"]
    assert [one.key for one in within_budget(few, 4, cost)] == ["a"]
    long = [Recalled(f"k{n}", {"text": " ".join(f"Cat {n} purrs {m}." for m in range(400))}) for n in range(3)]
    shown = within_budget(long, 900, cost, shortens=True)
    assert [one.key for one in shown] == ["k2", "k1", "k0"]
    sizes = [cost(one) for one in shown]
    assert 200 < min(sizes) <= max(sizes) <= 450, "what one leaves is shared by those behind it"
    assert sum(sizes) <= 900
    assert within_budget(long, 900, cost) == []


async def test_memories_come_in_the_order_of_the_turns_those_without_one_first_by_their_time(monkeypatch):
    found = [
        Recalled("fact", {"kind": "trait", "text": "x", "turn": 3, "said_at": "2026-01-03"}),
        Recalled("later", {"kind": "lore", "text": "x", "said_at": "2026-01-04"}),
        Recalled("said", {"player": "x", "turn": 3, "said_at": "2026-01-03"}),
        Recalled("earlier", {"kind": "trait", "text": "x", "said_at": "2026-01-02"}),
        Recalled("first", {"player": "x", "turn": 2, "said_at": "2026-01-05"}),
    ]

    async def search(store, spaces, query):
        return found

    monkeypatch.setattr(turn_recall, "recall_records", search)
    memories = await recall_for_turn(asking(), runtime(await stored()), PLAIN)
    assert [memory["key"] for memory in memories] == ["earlier", "later", "first", "said", "fact"]


async def test_of_what_comes_always_the_parts_that_answer_are_shown_too(monkeypatch):
    value = {"kind": "trait", "text": "The key hangs here. The cat sleeps. The bell rings at noon."}

    async def read(store, seen):
        return [Recalled("k", value, shown=(Span(0, 19),))]

    async def search(store, spaces, query):
        return [Recalled("k", value, shown=(Span(36, 59),))]

    monkeypatch.setattr(turn_recall, "recall_records", search)
    plan = replace(PLAIN, always=[Always(read, lambda tokens: tokens)])
    [memory] = await recall_for_turn(asking(), runtime(await stored()), plan)
    assert memory["text"] == "The key hangs here. … The bell rings at noon."


OF_PERSON = [
    ("kind", {"attribute": "instruction about units", "text": "Metric units.", "importance": 1}),
    ("nine", {"slot": "a", "importance": 9}), ("late", {"slot": "b", "value": "y"}),
    ("replaced", {"slot": "b", "at": "0001", "value": "x"}), ("early", {"slot": "c", "at": "0001"}), ("loose", {}),
    ("rumour", {"slot": "d", "kind": "rumour"}), ("other", {"slot": "e", "subject": "Bo"}),
    ("gone", {"slot": "f", "branch": "b"}), ("ahead", {"slot": "g", "turn": 10, "order": "00000010"}),
]  # fmt: skip


async def test_what_is_known_of_a_person_begins_with_how_they_want_to_be_answered_and_then_the_weightiest_and_latest():
    store = InMemoryStore()
    for key, fact in OF_PERSON:
        own = {"kind": "trait", "subject": "the user", "text": f"The user is {key}.", "importance": 5, "at": "0002"}
        await store.aput(FACTS, key, own | Stamp("a", 1).to_json() | fact)
    for group, said, share in ((known_of_person(FACTS), "", 100), (known_about(FACTS), "What do you know of me?", 800)):
        found = await group.read(store, Seen([("a", 9)], 9, 9, said))
        assert group.tokens(800) == share
        assert {str(record.reason) for record in found} == {"is known of you"}
        keys = [record.key for record in found]
        assert not {"gone", "ahead"} & {*keys}
        if not said:
            assert keys == ["kind", "nine", "late", "early"]
    assert keys.index("early") > max(keys.index("nine"), keys.index("late")), "the latest first"
    assert await known_about(FACTS).read(store, Seen([("a", 9)], 9, 9, "Where is Bo?")) == []


class Crew(Settings):
    APP: ClassVar = AppRules(team="crew")
    zone = property(lambda self: timezone(timedelta(hours=7)))


def test_an_assistant_plans_facts_and_what_is_known_of_the_person_only_where_facts_are_kept():
    settings = Settings.of({"user": "ann", "recall_tokens": 300, "max_cosine_distance": 0.5, "weights": OWN})
    state, options = asking(), Recall(100)
    plan = assistant_plan(state, settings, None, facts=True)
    assert plan.options == Recall(300, max_cosine_distance=0.5, weights=OWN)
    assert (plan.facts, len(plan.always), plan.lasting, plan.voices) == (FACTS, 2, [], ASSISTANT)
    assert (plan.shown, plan.character, plan.shown_facts) == (state.messages, None, True)
    shown, voices = messages(9), {"player": "p"}
    plan = assistant_plan(state, Crew().for_run(None), options, facts=False, voices=voices, shown=shown)
    assert (plan.options, plan.facts, plan.always, plan.voices, plan.shown) == (options, None, [], voices, shown)
    assert plan.lasting == [team_namespace("crew", "facts")]
    assert plan.now.utcoffset() == timedelta(hours=7), "days begin at the person's midnight"
    assert assistant_plan(state, settings, None, facts=True, shown=[]).shown == []


async def test_what_was_recalled_is_not_recalled_again_but_where_no_checkpoint_holds_it():
    async def plan_of(state, run):
        return replace(PLAIN, always=[always(1)])

    run = runtime(await stored())
    assert (await with_recalled(asking(recalled=[]), run, plan_of)).recalled == []
    assert [memory["key"] for memory in (await with_recalled(asking("Zzz?"), run, plan_of)).recalled] == ["k0"]
