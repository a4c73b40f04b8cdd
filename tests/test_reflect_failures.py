"""A reflection that fails or is killed loses nothing, and what a model makes up is not kept."""

import asyncio
import threading

import pytest
from fact_play import known, notices, stored
from faulty_stores import Refusing
from reflecting import DEBT, FAIR, INSIGHT, MILL, REFLECTIONS, SETTLED, ask, conclude, insights, numbers, tell
from scripted import call, malformed, say


@pytest.mark.parametrize(
    "failing",
    [
        [("question", ConnectionError("503"))],
        [("question", say("Let me think about all of this in my own words. " * 9))],
        [("question", malformed("Questions", '{"questions": ['))],
        [("question", ask()), ("conclude", ConnectionError("503"))],
        [("question", ask()), ("conclude", say("Sure! {insights}: Goran is a king."))],
        [("question", ask()), ("conclude", malformed("Reflection", "{"))],
    ],
    ids=["asking fails", "asking is prose", "asking is cut", "concluding fails", "concluding is prose", "cut"],
)
async def test_a_reflection_that_fails_loses_nothing_and_is_taken_up_again(eager, failing):
    await tell(eager, "I ask.", DEBT)
    for job, answer in failing:
        eager.model.queue(job, answer)
    await tell(eager, "I ask Oda.", MILL)
    assert await insights(eager) == {}
    assert await stored(eager, REFLECTIONS) == {}
    assert "was not finished" in notices(eager)
    assert 0 < eager.values["unreflected"] < 12
    assert eager.next == ()
    asked = len(eager.model.asked("question"))
    await tell(eager, "I wait.")
    assert len(eager.model.asked("question")) == asked, "a model that fails is not asked each turn"
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude((INSIGHT, [DEBT["text"], MILL["text"], FAIR["text"]])))
    await tell(eager, "I go to the fair.", FAIR)
    [value] = (await insights(eager)).values()
    assert len(value["cites"]) == 3
    assert eager.values["unreflected"] == 0


@pytest.mark.slow
async def test_a_model_that_can_never_reflect_is_asked_ever_more_seldom(eager):
    eager.model.queue("question", *[ConnectionError("503")] * 40)
    asked = []
    for mile in range(40):
        place = {"text": f"Mile {mile} has an inn.", "subject": f"mile {mile}", "kind": "trait", "importance": 6}
        await tell(eager, f"I walk mile {mile}.", place)
        asked.append(len(eager.model.asked("question")))
    assert asked[9] >= 5, "as long as little waits, each fact is a reason"
    assert asked[39] - asked[29] <= 3, "what waits is read each time"


@pytest.mark.parametrize("refused", ["insight", "reflection"])
async def test_it_is_done_only_after_its_writes_and_writing_twice_is_writing_once(new_game, refused):
    eager = new_game(reflection_importance=12)
    eager.keep_in(Refusing())
    await eager.begin()
    await tell(eager, "I ask.", DEBT)
    eager.store.refused = refused
    eager.model.queue("question", ask(), ask())
    eager.model.queue("conclude", *[conclude((INSIGHT, [DEBT["text"], MILL["text"]]))] * 2)
    await tell(eager, "I ask Oda.", MILL)
    assert await stored(eager, REFLECTIONS) == {}
    assert "the line went dead" in notices(eager)
    eager.store.refused = ""
    await tell(eager, "I go to the fair.", FAIR)
    assert [v["text"] for v in (await insights(eager)).values()] == [INSIGHT]
    assert len(await stored(eager, REFLECTIONS)) == 1


async def test_a_reflection_that_was_killed_is_run_again_by_whoever_resumes_the_turn(eager):
    await tell(eager, "I ask.", DEBT)
    eager.model.queue("question", ask(), ask())
    killed = threading.Event()
    eager.model.queue("conclude", lambda _: say("nothing") if killed.wait(20) else say())
    turn = asyncio.create_task(tell(eager, "I ask Oda.", MILL))
    while not eager.model.asked("conclude"):
        await asyncio.sleep(0.01)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    killed.set()
    assert eager.next == ("reflect",)
    eager.model.queue("conclude", conclude((INSIGHT, [DEBT["text"], MILL["text"]])))
    await eager.app.ainvoke(None, eager.config, context=eager.settings, durability="sync")
    assert [v["text"] for v in (await insights(eager)).values()] == [INSIGHT]
    assert eager.values["unreflected"] == 0


async def test_what_does_not_exist_is_not_cited_and_what_cites_nothing_is_not_kept(eager):
    await tell(eager, "I ask.", DEBT)
    eager.model.queue("question", ask())

    def answer(messages):
        number = numbers(messages)[DEBT["text"]]
        odd = [
            {"text": INSIGHT, "cites": [number, 77, "x", None, -1]}, {"text": "Out of thin air.", "cites": [99]},
            {"text": "No sources at all."}, {"cites": [number]}, "a sentence",
            {"text": DEBT["text"], "cites": [number]},
        ]  # fmt: skip
        judged = [{"ended": number, "holds": 99}, {"ended": number, "holds": number}, {"ended": number}, 7]
        return say("", call("Reflection", insights=odd, contradictions=judged))

    eager.model.queue("conclude", answer)
    await tell(eager, "I ask Oda.", MILL)
    [value] = (await insights(eager)).values()
    assert value["text"] == INSIGHT
    assert set(value["cites"]) <= set(await stored(eager))
    assert await stored(eager, SETTLED) == {}
    for told in ("does not exist", "cited nothing", "said nothing", "no object", "what a memory says", "two memories"):
        assert told in notices(eager), told


async def test_a_rumour_ends_no_fact(eager):
    rumour = {"text": "They say that Oda left the mill.", "kind": "rumour", "importance": 6}
    await tell(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude(ended=MILL["text"], holds=rumour["text"]))
    await tell(eager, "I listen.", rumour)
    assert MILL["text"] in await known(eager)
    assert "only a fact ends a fact" in notices(eager)


async def test_what_follows_from_a_secret_is_one(eager):
    secret = {"text": "Oda is the thief of the crown.", "kind": "secret", "importance": 6}
    await tell(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude(("Oda hides the crown in the mill.", [MILL["text"], secret["text"]])))
    await tell(eager, "I look.", secret)
    [value] = (await insights(eager)).values()
    assert value["kind"] == "secret"
    assert "crown" not in notices(eager)
