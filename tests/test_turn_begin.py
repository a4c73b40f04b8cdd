"""A turn by itself: what opens it, what it leaves in the store, and what notes read of earlier ones."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
from faulty_stores import Broken
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from questbook import Notebook
from questbook.graphs.errors import PastUnknownError, SettingsError
from questbook.graphs.settings import AppRules, Settings
from questbook.graphs.turn.channels import Names, Refusal
from questbook.graphs.turn.clock import clock_problem, said_at, time_of
from questbook.graphs.turn.sessions import begin, past_of
from questbook.graphs.turn.shared_pages import publish_pages
from questbook.graphs.turn.state import TurnState, notice
from questbook.graphs.turn.turn import (
    CLOCK,
    FORGOTTEN,
    head_of,
    head_ops,
    messages_of,
    move_head,
    open_turn,
    origin_of,
    public_turns,
    remember_turns,
    stored_words,
    turns_to_note,
)
from questbook.memory.buffer.policies import ASIDE
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import branch_name, record_key

EXCHANGES, HEAD, ACCESSES = (("ann", "tale", name) for name in ("exchanges", "head", "accesses"))
PRIVATE = "Don't remember this: 4711."


class Tagged(Settings):
    APP = AppRules(metadata={"app": "a"})


def id_at(time):
    """A checkpoint's id of this time: a UUID of version 6."""
    ticks = int((time - datetime(1582, 10, 15, tzinfo=UTC)).total_seconds()) * 10_000_000
    digits = f"{ticks:015x}"
    return f"{digits[:8]}-{digits[8:12]}-6{digits[12:]}-8000-000000000000"


SOON = datetime.now(UTC) + timedelta(hours=2)
LONG_AGO = datetime(2026, 1, 5, 12, tzinfo=UTC)


def run(store=None, thread="t", checkpoint="", context=None, **settings):
    info = ExecutionInfo(checkpoint_id=checkpoint, checkpoint_ns="", task_id="", thread_id=thread)
    context = context or Settings.of({"user": "ann", "campaign": "tale", "model": "scripted"} | settings)
    return Runtime(context=context, store=store, execution_info=info if thread else None)


def told(*words, state=TurnState, **channels):
    """The state after turns of these words, each answered; none is remembered yet."""
    pairs = [(HumanMessage(text, id=f"h{n}"), AIMessage(f"I see {n}.", id=f"a{n}")) for n, text in enumerate(words, 1)]
    values = {"messages": [message for pair in pairs for message in pair], "turn": len(words)}
    return state(**values | {"timeline": [("b", len(words))] if words else []} | channels)


def asking(words="Hi.", **channels):
    return TurnState(messages=[HumanMessage(words, id="h")], **channels)


def test_the_newest_message_opens_a_turn_on_the_threads_own_branch_and_to_run_it_again_changes_nothing():
    opened = open_turn(asking(), run())
    assert opened == {
        "turn": 1, "opened_by": "h", "opened_in": [], "timeline": [[branch_name("t"), 1]],
        "campaign": ["ann", "tale"], "machine": "", "notices": [],
    }  # fmt: skip
    assert type(opened["campaign"]) is Names
    again = open_turn(asking(turn=1, opened_by="h", timeline=[("x", 1)]), run())
    assert (again["turn"], again["timeline"]) == (1, [["x", 1]])
    later = open_turn(asking(turn=1, opened_by="g", timeline=[("x", 1)]), run())
    assert (later["turn"], later["timeline"]) == (2, [["x", 2]])
    [[one, _]], [[other, _]] = (open_turn(asking(), run(thread=None))["timeline"] for _ in range(2))
    assert one != other, "without a thread each run is one"


def test_what_did_not_fit_and_a_clock_that_went_back_are_told_once():
    state = asking(turn=1, opened_by="h", timeline=[("x", 1)])
    state._refusals = [Refusal("quest", "gold: got 'x'.")]
    said = "A change of 'quest' did not fit and was left out: nothing was changed."
    wrong = notice(1, "edit", said, "gold: got 'x'.")
    assert open_turn(state, run())["notices"] == [wrong]
    state.notices = [wrong]
    assert open_turn(state, run())["notices"] == [], "two nodes may open a turn"
    ahead = run(checkpoint=id_at(SOON))
    [told_of_clock] = open_turn(asking(), ahead)["notices"]
    assert told_of_clock["node"] == CLOCK
    assert f"{SOON:%Y-%m-%d %H:%M:%S}" in told_of_clock["text"]
    assert open_turn(asking(notices=[told_of_clock | {"turn": 7}]), ahead)["notices"] == []
    misplaced = TurnState.model_validate(
        {"messages": [HumanMessage("Hi.", id="h")], "turn": 1, "timeline": [["x", 1]], "remembered_through": 9}
    )
    assert open_turn(misplaced, run())["remembered_through"] == 1


def test_a_servers_run_leaves_its_mark_once(monkeypatch):
    monkeypatch.setattr(TurnState, "run_mark", "m")
    assert open_turn(asking(), run())["opened_in"] == ["m"]
    assert open_turn(asking(opened_in=["m"]), run())["opened_in"] == []


def test_the_time_of_a_reply_is_its_checkpoints_and_never_ahead_of_the_clock():
    assert time_of(id_at(LONG_AGO)) == LONG_AGO
    assert said_at(id_at(LONG_AGO)) == "2026-01-05T12:00:00+00:00"
    now = datetime.now(UTC)
    for checkpoint in (id_at(SOON), "", None, "no id", str(uuid.uuid4()), id_at(LONG_AGO).replace("-6", "-1", 1)):
        assert abs(datetime.fromisoformat(said_at(checkpoint)) - now) < timedelta(minutes=1)
    assert clock_problem(run(checkpoint=id_at(LONG_AGO))) == clock_problem(run(thread=None)) == ""
    assert clock_problem(run(checkpoint=id_at(datetime.now(UTC) + timedelta(seconds=0)))) == ""
    assert "clock went back" in clock_problem(run(checkpoint=id_at(datetime.now(UTC) + timedelta(seconds=9))))


def test_where_a_record_comes_from_is_said_with_what_the_app_says_of_the_run():
    origin = {"thread": "t", "checkpoint": id_at(LONG_AGO), "said_at": "2026-01-05T12:00:00+00:00"}
    assert origin_of(run(checkpoint=id_at(LONG_AGO))) == origin
    tagged = run(checkpoint=id_at(LONG_AGO), context=Tagged(user="ann").for_run(None))
    assert origin_of(tagged) == origin | {"metadata": {"app": "a"}}
    assert origin_of(run(thread=None))["thread"] is None


async def test_turns_are_remembered_once_with_their_place_their_line_and_what_stands():
    store = InMemoryStore()
    state = told("Hi.", PRIVATE, "Always answer in metric units.", line="left", remembered_through=0)
    at = run(store, checkpoint=id_at(LONG_AGO))
    for _ in range(2):
        update = await remember_turns(state, at)
        assert update == {"remembered_through": 3, "timeline": [["b", 3]], "notices": []}
    records = sorted((item.value for item in store.search(EXCHANGES)), key=lambda value: value["turn"])
    assert [value["player"] for value in records] == ["Hi.", FORGOTTEN, "Always answer in metric units."]
    assert [value["reply"] for value in records] == ["I see 1.", FORGOTTEN, "I see 3."]
    assert [value["text"] for value in records][:2] == ["Hi.\nI see 1.", f"{FORGOTTEN}\n{FORGOTTEN}"]
    assert [value.get("withheld") for value in records] == [None, True, None]
    assert [value.get("standing") for value in records] == [None, None, True]
    for value in records:
        same = {"line": "left", "branch": "b", "thread": "t", "checkpoint": id_at(LONG_AGO), "kind": "exchange"}
        assert {name: value[name] for name in same} == same
        assert value["messages"] == [f"h{value['turn']}", f"a{value['turn']}"]
        assert value["said_at"] == "2026-01-05T12:00:00+00:00"


async def test_only_turns_that_are_not_remembered_are_written_with_what_an_application_adds():
    class Named(TurnState):
        def record_fields(self, turn):
            return {"mood": f"mood {turn}"}

    store, given = InMemoryStore(), []

    def writes(turns, timeline, origin):
        given.append(([turn["turn"] for turn in turns], timeline, origin["thread"]))
        return [PutOp(("ann", "tale", "own"), "k", {"x": 1})]

    await remember_turns(told("One.", "Two.", "Three.", state=Named, remembered_through=1), run(store), writes)
    assert sorted(item.value["mood"] for item in store.search(EXCHANGES)) == ["mood 2", "mood 3"]
    assert given == [([2, 3], [("b", 3)], "t")]
    assert store.get(("ann", "tale", "own"), "k").value == {"x": 1}
    [head] = store.search(HEAD)
    assert (head.value["turn"], head.value["thread"], head.value["timeline"]) == (3, "t", [["b", 3]])
    assert (await head_of(store, run().context))["line"] == "main"


async def test_without_a_store_nothing_is_remembered_and_that_is_said_once_and_a_failure_leaves_the_turn():
    update = await remember_turns(told("Hi."), run())
    assert update["remembered_through"] == 1
    assert [entry["text"] for entry in update["notices"]] == ["No store: nothing is remembered."]
    update = await remember_turns(told("Hi.", "Ho.", remembered_through=1), run())
    assert update == {"remembered_through": 2, "notices": []}
    store = Broken()
    store.error = ConnectionError("down")
    update = await remember_turns(told("Hi."), run(store))
    assert list(update) == ["notices"]
    assert update["notices"][0]["text"].startswith("The turn was not written to memory; the next turn will write it.")


@pytest.mark.parametrize(("scoring", "recalled", "used"), [
    ("generative_agents", [{"key": "k", "tells": ["told"]}, {"key": "m"}], ["k", "m", "told"]),
    ("generative_agents", [], None), ("sum", [{"key": "k"}], None),
])  # fmt: skip
async def test_what_was_recalled_counts_as_used_where_recall_scores_by_use(scoring, recalled, used):
    store = InMemoryStore()
    await remember_turns(told("Hi.", recalled=recalled), run(store, weights={"scoring": scoring}))
    found = store.search(ACCESSES)
    if used is None:
        assert found == []
    else:
        [access] = found
        assert all(key in str(access.value) for key in used)


def test_a_turn_without_a_past_moves_no_head():
    class Begun(TurnState):
        @property
        def has_past(self):
            return False

    context = run().context
    assert head_ops(told("Hi.", state=Begun), [("b", 1)], context, "t") == []
    [op] = head_ops(told("Hi."), [("b", 1)], context, "t")
    assert (op.namespace, op.key, op.index) == (HEAD, "head", False)


async def test_who_goes_back_moves_the_head_and_to_the_beginning_removes_it():
    store, context = InMemoryStore(), run().context
    await move_head(told("Hi.", "Ho."), store, context, "t")
    assert (await head_of(store, context))["turn"] == 2
    await move_head(told("Hi."), store, context, "t")
    assert (await head_of(store, context))["turn"] == 1
    await move_head(told(), store, context, "t")
    assert await head_of(store, context) is None


def test_messages_of_turns_are_named_with_the_persons_first():
    state = told("One.", "Two.", "Three.")
    assert messages_of(state, 1, 2) == {"messages": ["h1", "a1", "h2", "a2"], "said": "h1"}
    assert messages_of(state, 3, 9) == {"messages": ["h3", "a3"], "said": "h3"}
    assert messages_of(state, 7, 9) == {"messages": [], "said": ""}


async def test_notes_read_earlier_turns_that_may_be_noted_from_the_store():
    store = InMemoryStore()
    for turn, words in ((1, "One."), (2, FORGOTTEN), (4, PRIVATE)):
        value = {"player": words, "reply": "I see."} | Stamp("b", turn).to_json()
        await store.aput(EXCHANGES, record_key("b", turn, "exchange"), value)
    state = TurnState(messages=[HumanMessage("Five.", id="h5")], turn=5, timeline=[("b", 5)])
    found = await turns_to_note(state, run(store), 1)
    assert [(turn["turn"], turn["player"]) for turn in found] == [(1, "One."), (5, "Five.")]
    assert [turn["turn"] for turn in await turns_to_note(state, run(store), 2)] == [5]
    assert [turn["turn"] for turn in await turns_to_note(state, run(), 1)] == [5]
    broken = Broken()
    broken.error = ConnectionError("down")
    with pytest.raises(PastUnknownError, match="Earlier turns cannot be read from the store: down"):
        await turns_to_note(state, run(broken), 1)
    private = {"turn": 1, "player": PRIVATE, "reply": "4711."}
    assert stored_words(private) == private | {"player": FORGOTTEN, "reply": FORGOTTEN, "withheld": True}
    assert public_turns([private, {"turn": 2, "player": FORGOTTEN, "reply": ""}, {"turn": 3, "player": "Hi."}]) == [
        {"turn": 3, "player": "Hi."},
    ]  # fmt: skip


class Rules(Notebook):
    """How they play."""

    SCOPE = "campaign"
    tone: str = ""


class Profile(Notebook):
    """Who they are."""

    SCOPE = "user"
    home: str = ""


class Tale(TurnState):
    MACHINE: ClassVar = "tale"
    PAGES: ClassVar = {"rules": Rules, "profile": Profile}
    rules: Rules = Rules()
    profile: Profile = Profile()
    agreed: dict = {}


class Desk(Tale):
    SCOPE: ClassVar = "user"


def new(state=Tale, **channels):
    return state(messages=[HumanMessage("Hi.", id="new")], **channels)


async def test_a_new_thread_goes_on_from_the_head_and_does_so_again_though_that_has_moved():
    store = InMemoryStore()
    left = told("One.", "Two.", state=Tale, rules=Rules(tone="grim"), summary="They met.", line="left")
    await remember_turns(left, run(store))
    for _ in range(2):
        begun = await begin(new(), run(store, "u"), recap=lambda head: f"Turn {head['turn']}.")
        update = begun.update
        assert (update["turn"], update["timeline"], update["remembered_through"]) == (3, [["b", 3]], 2)
        assert (update["summary"], update["line"], update["rules"]) == ("They met.", "left", {"tone": "grim"})
        assert (begun.state.turn, begun.state.rules.tone, begun.past["turn"]) == (3, "grim", 2)
        [recap] = update["messages"]
        assert (recap.text, recap.name) == ("Turn 2.", ASIDE)
        assert [message.text for message in begun.state.messages] == ["Hi."]
        later = told("One.", "Two.", "Three.", state=Tale)
        await move_head(later, store, run().context, "t")
    assert (await past_of(store, run().context, "u"))["turn"] == 2
    assert await past_of(store, run().context, "nobody") is None
    assert "messages" not in (await begin(new(), run(store, "v"), recap=lambda head: "")).update


async def test_what_has_begun_or_has_no_head_takes_nothing_over():
    store = InMemoryStore()
    begun = await begin(new(), run(store))
    assert (begun.update["turn"], begun.update["timeline"], begun.past) == (1, [[branch_name("t"), 1]], {})
    assert begun.update["rules"] == {}, "JSON from the first turn on"
    await remember_turns(told("One.", state=Tale, rules=Rules(tone="grim")), run(store))
    assert (await begin(new(), run(store))).past == {}, "it had none when it began"
    for state in (new(timeline=[("x", 0)]), new(turn=1, timeline=[("x", 1)])):
        assert (await begin(state, run(store, "u"))).past == {}
    assert (await begin(new(), run(None, "u"))).past == {}
    numbered = await begin(new(), run(store, "w"), numbered={"turn": 7, "opened_by": "new"})
    assert numbered.update["turn"] == 7


async def test_where_memories_are_a_users_a_new_thread_takes_over_the_pages_of_the_campaign_alone():
    store = InMemoryStore()
    left = told("One.", state=Desk, rules=Rules(tone="grim"), summary="They met.", profile=Profile(home="Oslo"))
    remembered = left.model_copy(update=await remember_turns(left, run(store)))
    await publish_pages(remembered, run(store))
    begun = await begin(new(Desk), run(store, "u"))
    assert (begun.update["turn"], begun.update["rules"], begun.past) == (1, {"tone": "grim"}, {"rules": {
        "version": 1, "tone": "grim",
    }})  # fmt: skip
    assert begun.update["profile"] == {"home": "Oslo"}
    assert begun.update["agreed"]["pages"]["profile"]["home"] == "Oslo"
    assert "summary" not in begun.update


async def test_another_machines_campaign_and_a_store_that_cannot_say_are_refused_and_what_is_shared_may_fail():
    store = InMemoryStore()
    await remember_turns(told("One.", state=Tale), run(store))
    with pytest.raises(SettingsError, match="Campaign 'tale' belongs to tale, and  cannot go on with it"):
        await begin(asking(), run(store, "u"))
    broken = Broken()
    broken.error = ConnectionError("down")
    with pytest.raises(
        PastUnknownError, match="Whether campaign 'tale' has a past cannot be read from the store: down"
    ):
        await begin(new(), run(broken))
    begun = await begin(new(turn=1, timeline=[("x", 1)]), run(broken))
    assert [entry["text"] for entry in begun.update["notices"]] == [
        "What other threads noted on profile could not be read. down",
    ]  # fmt: skip
