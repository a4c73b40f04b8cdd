"""Notes after the reply: what a page has applied, its reducer applies to the same page again."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scripted import call, say

from questbook import NotebookError, StateNotebook, patches
from questbook.graphs.turn.notes import oldest_within

NAMES = st.sampled_from(["Goran", "goran", "the Goran", "Oda", "silver key", "Silver Keys", "torch", "torches"])
COUNTS = st.one_of(st.none(), st.integers(-3, 9), st.builds(lambda n: {"$add": n}, st.integers(-3, 3)))
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
PERSON = st.one_of(st.none(), st.fixed_dictionaries({}, optional={"role": WORDS, "attitude": st.none()}))
PATCH = st.fixed_dictionaries(
    {},
    optional={
        "scene": WORDS,
        "gold": st.integers(0, 30),
        "people": st.dictionaries(NAMES, PERSON, max_size=3),
        "inventory": st.dictionaries(NAMES, COUNTS, max_size=3),
        "condition": st.fixed_dictionaries({}, optional={"hp": st.integers(-5, 40)}),
        "clock": st.fixed_dictionaries({}, optional={"day": st.integers(1, 9), "time": WORDS}),
        "secrets": st.dictionaries(NAMES, st.one_of(st.none(), WORDS), max_size=2),
    },
)


@settings(max_examples=30)
@given(st.lists(PATCH, max_size=3), st.lists(PATCH, min_size=1, max_size=3))
def test_the_reducer_takes_every_patch_that_the_notes_make(before, calls):
    """`update_state` sends what changed on the page without applying it once more: the reducer must not refuse it."""
    page = StateNotebook.load({"condition": {"max_hp": 12, "hp": 12}})
    for patch in before:
        page = _applied(page, patch)
    noted = page
    for patch in calls:
        noted = _applied(noted, patch)
    assume(noted is not page)
    channel = patches(StateNotebook).from_checkpoint(page.as_json()).copy()
    channel.update([noted.patch_from(page)])
    reduced = channel.get()
    assert reduced == noted.as_json()


def _applied(page, patch):
    try:
        return page.apply(patch, by_model=True).page
    except NotebookError:
        return page


def test_notes_catch_up_in_portions_that_hold_at_least_one_turn():
    turns = [{"turn": number, "player": "x" * 400, "reply": ""} for number in (1, 2, 3)]
    assert [turn["turn"] for turn in oldest_within(turns, 250)] == [1, 2]
    assert [turn["turn"] for turn in oldest_within(turns, 1)] == [1]
    assert oldest_within([], 250) == []


async def test_two_calls_that_fit_one_by_one_and_not_together_cost_no_turn(game):
    await game.begin()
    game.model.queue("update", say("", call("StateNotebook", people={"Goran": {"alive": False, "fate": "eaten"}})))
    await game.play("The wolves come.")
    returned = call("StateNotebook", people={"Goran": {"alive": True, "fate": "called back by Oda"}})
    as_before = call("StateNotebook", people={"Goran": {"fate": "eaten"}})
    game.model.queue("update", say("", returned, as_before), *[say("", as_before)] * 2)
    values = await game.play("Oda sings at the grave.")
    assert values["quest"]["people"]["Goran"]["fate"] == "called back by Oda", "what fits is noted"
    assert "Goran is dead" in values["notices"][-1]["detail"]
    assert values["messages"][-1].text
