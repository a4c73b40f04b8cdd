"""Reflection in the game: when it is due, what it writes, on which timeline, and what becomes of it when it fails."""

import asyncio
import re
import threading

import pytest
from conftest import MIRA
from langgraph.store.memory import InMemoryStore
from scripted import call, malformed, say

from graphs.dungeon_master import reflect as reflecting
from graphs.dungeon_master.context import Context
from graphs.dungeon_master.graph import build_graph
from graphs.dungeon_master.retract import retract
from graphs.history import History
from graphs.reflect.graph import build_graph as build_reflection
from graphs.reflect.graph import graph as reflection
from memory.namespaces import campaign_namespace
from memory.validity import strengths, valid

FACTS, REFLECTIONS, SETTLED = (
    campaign_namespace("adventurer", "default", name) for name in ("facts", "reflections", "settled")
)
CONTEXT = Context(model="scripted", seed=7)
MILL = {"text": "Oda never leaves the mill.", "subject": "Oda", "kind": "trait", "importance": 6}
FAIR = {"text": "Oda danced at the fair of Brack.", "subject": "Oda", "kind": "event", "importance": 6}
DEBT = {"text": "Goran owes the ferryman forty crowns.", "subject": "Goran", "kind": "event", "importance": 6}
INSIGHT = "Goran avoids the river because of what he owes."


def ask(*questions):
    return say("", call("Questions", questions=list(questions or ["What does Goran fear?"])))


def numbers(messages):
    """Numbers of the memories in a prompt, by their text."""
    return {m[2]: int(m[1]) for m in re.finditer(r'"number": (\d+).*?"text": "(.*?)"', messages[-1].text)}


def conclude(*insights, ended="", holds="", **more):
    """Answer with insights, each (text, texts that it cites), and one judgement, by the numbers in the prompt."""

    def answer(messages):
        known = numbers(messages)
        given = [{"text": text, "cites": [known[c] for c in cites], **more} for text, cites in insights]
        judged = [{"ended": known[ended], "holds": known[holds]}] if ended else []
        return say("", call("Reflection", insights=given, contradictions=judged))

    return answer


async def play(game, words, *given, reply=None):
    game.model.queue("quest", say(reply or " ".join(["So it is.", *(fact["text"] for fact in given)])))
    if given:
        game.model.queue("update", say("", call("Facts", facts=list(given))))
    return await game.play(words)


async def records(game, place):
    return {item.key: item.value for item in await game.store.asearch(place, limit=1000)}


async def insights(game):
    return {key: v for key, v in (await records(game, FACTS)).items() if v["cites"]}


async def known(game):
    timeline = [tuple(segment) for segment in game.values["timeline"]]
    found = [
        item
        for item in await game.store.asearch(FACTS, limit=1000)
        if any(b == item.value["branch"] and item.value["turn"] <= t for b, t in timeline)
    ]
    return {item.value["text"] for item in await valid(game.store, found, timeline=timeline)}


def notices(game):
    return " | ".join(entry["text"] for entry in game.values["notices"])


@pytest.fixture
def eager(new_game):
    return new_game(reflection_importance=12)


def test_the_graph_is_one_of_its_own():
    drawn = reflection.get_graph()
    assert set(drawn.nodes) == {"gather", "question", "retrieve", "conclude", "write", "__start__", "__end__"}
    assert reflection.checkpointer is None
    assert list(reflection.get_input_jsonschema()["properties"]) == ["timeline", "turn", "through"]


def test_the_threshold_is_that_of_the_paper():
    assert (Context().reflection_importance, Context().reflection) == (150, "inline")


async def test_below_the_threshold_no_model_is_asked_and_the_node_does_not_run(eager):
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    assert eager.values["unreflected"] == 6
    assert not eager.model.asked("question")
    assert await records(eager, REFLECTIONS) == {}


async def test_at_the_threshold_two_calls_make_an_insight_that_cites_its_sources(eager):
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude((INSIGHT, [DEBT["text"], MILL["text"]]), subject="Goran", importance=8))
    eager.model.calls.clear()
    await play(eager, "I ask Oda.", MILL)
    assert [job for job, _ in eager.model.calls] == ["quest", "update", "question", "conclude"]
    [(key, value)] = (await insights(eager)).items()
    branch = eager.values["timeline"][-1][0]
    assert key == f"{branch}-3-insight-0"
    assert value["cites"] == [f"{branch}-2-fact-0", f"{branch}-3-fact-0"]
    assert set(value["cites"]) <= set(await records(eager, FACTS))
    assert (value["kind"], value["text"], value["importance"]) == ("insight", INSIGHT, 8)
    assert (value["branch"], value["turn"], value["order"]) == (branch, 3, "00000003")
    [done] = (await records(eager, REFLECTIONS)).values()
    assert (done["through"], done["turn"], done["insights"]) == (3, 3, [key])
    assert eager.values["unreflected"] == 0
    await play(eager, "I wait.")
    assert len(eager.model.asked("question")) == 1, "what was reflected on is not reflected on again"


async def test_an_insight_is_recalled_like_a_fact(new_game):
    game = new_game(reflection_importance=6, buffer_tokens=200)
    await game.begin()
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    await play(game, "I ask.", DEBT)
    for n in range(6):
        await play(game, f"I walk mile {n}.", reply="The road goes on past hedges and ditches. " * 8)
    await play(game, "Why does Goran avoid the river?")
    assert INSIGHT in game.model.asked("quest")[-1][0].text


async def test_both_sides_of_a_contradiction_are_shown_and_the_judgement_stays_on_its_timeline(eager):
    await eager.begin()
    await play(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude(ended=MILL["text"], holds=FAIR["text"]))
    await play(eager, "I go to the fair.", FAIR)
    shown = eager.model.asked("conclude")[0][-1].text
    assert MILL["text"] in shown
    assert FAIR["text"] in shown
    assert await known(eager) == {FAIR["text"]}
    [judged] = (await records(eager, SETTLED)).values()
    assert (judged["turn"], judged["branch"]) == (3, eager.values["timeline"][-1][0])
    assert len(await records(eager, FACTS)) == 2, "no record was changed or removed"
    await History(eager.app, eager.config, CONTEXT).undo()
    assert await known(eager) == {MILL["text"]}
    eager.model.queue("conclude", say("nothing"))
    await play(eager, "I stay here instead.", DEBT)
    assert await known(eager) == {MILL["text"], DEBT["text"]}


async def test_an_insight_like_an_older_one_strengthens_it(new_game):
    game = new_game(reflection_importance=6)
    await game.begin()
    game.model.queue("question", ask(), ask(), ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    await play(game, "I ask.", DEBT)
    game.model.queue("conclude", conclude((INSIGHT.replace(".", "!"), [MILL["text"]])))
    await play(game, "I ask Oda.", MILL)

    def same(messages):
        number = numbers(messages)
        given = {"text": "The ferry is not for him, for he is in debt.", "cites": [number[FAIR["text"]]]}
        return say("", call("Reflection", insights=[given | {"same_as": number[INSIGHT]}]))

    game.model.queue("conclude", same)
    await play(game, "I go to the fair. Goran avoids the river.", FAIR)
    [key] = await insights(game)
    timeline = [tuple(segment) for segment in game.values["timeline"]]
    assert await strengths(game.store, FACTS, [key], timeline=timeline) == {key: 2}


async def test_a_fork_from_before_a_reflection_sees_none_of_it_and_reflects_for_itself(eager):
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    eager.model.queue("question", ask(), ask())
    eager.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    await play(eager, "I ask Oda.", MILL)
    assert INSIGHT in await known(eager)
    await History(eager.app, eager.config, CONTEXT).undo()
    assert INSIGHT not in await known(eager)
    assert eager.values["unreflected"] == 6
    eager.model.queue("conclude", conclude(("Oda and Goran have never met.", [DEBT["text"], FAIR["text"]])))
    await play(eager, "I go to the fair.", FAIR)
    assert await known(eager) == {DEBT["text"], FAIR["text"], "Oda and Goran have never met."}
    assert len(await records(eager, REFLECTIONS)) == 2


@pytest.mark.parametrize(
    "failing",
    [
        [("question", ConnectionError("503"))],
        [("question", say("Let me think about all of this in my own words. " * 9))],
        [("question", malformed("Questions", '{"questions": ['))],
        [("question", ask()), ("conclude", ConnectionError("503"))],
        [("question", ask()), ("conclude", say('Sure! {"insights": [{"text": "Goran is a king."}]}'))],
        [("question", ask()), ("conclude", malformed("Reflection", "{"))],
    ],
    ids=["asking fails", "asking is prose", "asking is cut", "concluding fails", "concluding is prose", "cut"],
)
async def test_a_reflection_that_fails_loses_nothing_and_is_taken_up_again(eager, failing):
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    for job, answer in failing:
        eager.model.queue(job, answer)
    await play(eager, "I ask Oda.", MILL)
    assert await insights(eager) == {}
    assert await records(eager, REFLECTIONS) == {}
    assert "was not finished" in notices(eager)
    assert 0 < eager.values["unreflected"] < 12
    assert eager.next == ()
    asked = len(eager.model.asked("question"))
    await play(eager, "I wait.")
    assert len(eager.model.asked("question")) == asked, "a model that fails is not asked each turn"
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude((INSIGHT, [DEBT["text"], MILL["text"], FAIR["text"]])))
    await play(eager, "I go to the fair.", FAIR)
    [value] = (await insights(eager)).values()
    assert len(value["cites"]) == 3
    assert eager.values["unreflected"] == 0


class Refusing(InMemoryStore):
    """Refuses to say that a reflection was done, or to write insights."""

    refused = ""

    async def abatch(self, ops):
        ops = list(ops)
        if self.refused and any(self.refused in getattr(op, "key", "") and hasattr(op, "value") for op in ops):
            raise ConnectionError("the line went dead")
        return await super().abatch(ops)


@pytest.mark.parametrize("refused", ["insight", "reflection"])
async def test_it_is_done_only_after_its_writes_and_writing_twice_is_writing_once(eager, refused):
    eager.store = Refusing()
    eager.app = build_graph().compile(checkpointer=eager.saver, store=eager.store)
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    eager.store.refused = refused
    eager.model.queue("question", ask(), ask())
    eager.model.queue("conclude", *[conclude((INSIGHT, [DEBT["text"], MILL["text"]]))] * 2)
    await play(eager, "I ask Oda.", MILL)
    assert await records(eager, REFLECTIONS) == {}
    assert "the line went dead" in notices(eager)
    eager.store.refused = ""
    await play(eager, "I go to the fair.", FAIR)
    assert [v["text"] for v in (await insights(eager)).values()] == [INSIGHT]
    assert len(await records(eager, REFLECTIONS)) == 1


async def test_a_reflection_that_was_killed_is_run_again_by_whoever_resumes_the_turn(eager):
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    eager.model.queue("question", ask(), ask())
    killed = threading.Event()
    eager.model.queue("conclude", lambda _: say("nothing") if killed.wait(20) else say())
    turn = asyncio.create_task(play(eager, "I ask Oda.", MILL))
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
    await eager.begin()
    await play(eager, "I ask.", DEBT)
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
    await play(eager, "I ask Oda.", MILL)
    [value] = (await insights(eager)).values()
    assert value["text"] == INSIGHT
    assert set(value["cites"]) <= set(await records(eager, FACTS))
    assert await records(eager, SETTLED) == {}
    for told in ("does not exist", "cited nothing", "said nothing", "no object", "what a memory says", "two memories"):
        assert told in notices(eager), told


async def test_a_rumour_ends_no_fact(eager):
    await eager.begin()
    rumour = {"text": "They say that Oda left the mill.", "kind": "rumour", "importance": 6}
    await play(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude(ended=MILL["text"], holds=rumour["text"]))
    await play(eager, "I listen.", rumour)
    assert MILL["text"] in await known(eager)
    assert "only a fact ends a fact" in notices(eager)


async def test_what_follows_from_a_secret_is_one(eager):
    await eager.begin()
    secret = {"text": "Oda is the thief of the crown.", "kind": "secret", "importance": 6}
    await play(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude(("Oda hides the crown in the mill.", [MILL["text"], secret["text"]])))
    await play(eager, "I look.", secret)
    [value] = (await insights(eager)).values()
    assert value["kind"] == "secret"
    assert "crown" not in notices(eager)


async def test_retracting_a_turn_takes_what_was_concluded_and_judged_of_it(eager):
    await eager.begin()
    await play(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude((INSIGHT, [FAIR["text"]]), ended=MILL["text"], holds=FAIR["text"]))
    await play(eager, "I go to the fair.", FAIR)
    assert await known(eager) == {FAIR["text"], INSIGHT}
    await retract(eager.app, eager.config, CONTEXT, 3)
    assert await known(eager) == {MILL["text"]}
    assert await insights(eager) == await records(eager, SETTLED) == {}


async def test_off_is_off(new_game):
    game = new_game(reflection_importance=6, reflection="off")
    await game.begin()
    await play(game, "I ask.", DEBT)
    assert not game.model.asked("question")


async def test_no_questions_cost_one_call_and_are_a_reflection(eager):
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    eager.model.calls.clear()
    await play(eager, "I ask Oda.", MILL)
    assert [job for job, _ in eager.model.calls] == ["quest", "update", "question"]
    assert len(await records(eager, REFLECTIONS)) == 1
    assert notices(eager) == ""


async def test_without_a_server_the_background_is_the_end_of_the_turn_and_says_so(new_game):
    game = new_game(reflection_importance=6, reflection="background")
    await game.begin()
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    await play(game, "I ask.", DEBT)
    assert len(await insights(game)) == 1
    assert "this is no LangGraph Server" in notices(game)


class Client:
    """Stands for LangGraph Server: keeps what was asked of it."""

    def __init__(self):
        self.threads = self.runs = self
        self.made, self.waiting = [], []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def create(self, *args, **fields):
        if args:
            self.made.append((*args, fields))
            self.waiting.append(fields)

    async def list(self, thread, *, status, limit):
        return self.waiting[:limit] if status == "pending" else []


async def test_on_a_server_one_run_at_a_time_reflects_on_a_thread_of_its_own(new_game, monkeypatch):
    game, client = new_game(reflection_importance=6, reflection="background"), Client()
    monkeypatch.setattr(reflecting, "get_client", lambda: client)
    game.config["configurable"]["graph_id"] = "dungeon_master"  # as the server does
    await game.begin()
    await play(game, "I ask.", DEBT)
    await play(game, "I wait.")
    [(thread, name, fields)] = client.made
    assert thread != game.config["configurable"]["thread_id"]
    assert (name, fields["input"]["turn"], fields["after_seconds"] > 0) == ("reflect", 2, True)
    assert not game.model.asked("question")
    assert game.values["unreflected"] == 6, "not done before it is written"

    # What the server does with it.
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    app = build_reflection().compile(checkpointer=game.saver, store=game.store)
    own = {"configurable": {"thread_id": thread}}
    await app.ainvoke(fields["input"], own, context=fields["context"], durability="sync")
    client.waiting.clear()
    assert [v["text"] for v in (await insights(game)).values()] == [INSIGHT]
    kept = [repr(saved.checkpoint["channel_values"]) for saved in game.saver.list(own)]
    assert kept
    assert not any("Goran" in one for one in kept), "no checkpoint of it holds a memory"
    await play(game, "I wait again.")
    assert (len(client.made), game.values["unreflected"]) == (1, 0)


async def test_a_server_that_refuses_has_it_done_at_the_end_of_the_turn(new_game, monkeypatch):
    game = new_game(reflection_importance=6, reflection="background")

    def broken():
        raise ConnectionError("no server")

    monkeypatch.setattr(reflecting, "get_client", broken)
    game.config["configurable"]["graph_id"] = "dungeon_master"
    await game.begin()
    await play(game, "I ask.", DEBT)
    assert len(game.model.asked("question")) == 1
    assert "no server" in notices(game)


async def test_a_new_thread_goes_on_counting(eager):
    await eager.begin()
    await play(eager, "I ask.", DEBT)
    await play(eager, "I wait.")
    eager.config = {"configurable": {"thread_id": "another"}}
    await play(eager, "I ask Oda.", MILL)
    assert len(eager.model.asked("question")) == 1


async def test_the_offline_storyteller_concludes_nothing_rather_than_guess(new_game, monkeypatch):
    monkeypatch.undo()
    game = new_game(model="offline", seed=3, reflection_importance=4)
    said = "I'm Mira, a halfling rogue from the docks; I want my sister back."
    for words in (said, "yes", "I look around", "I ask about the trouble here"):
        await game.play(words)
    assert await records(game, REFLECTIONS)
    assert await insights(game) == {}
    assert "reflect" not in {entry["node"] for entry in game.values["notices"]}


def test_it_works_for_sync_callers_too(eager, model):
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", say("", call("Facts", facts=[DEBT, MILL])))
    model.queue("quest", say(f"{DEBT['text']} {MILL['text']}"))
    model.queue("question", ask())
    model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    eager.app.invoke({"messages": [("user", "I'm Mira.")]}, eager.config, context=eager.settings)
    assert eager.values["unreflected"] == 0
    assert [i.value["text"] for i in eager.store.search(FACTS, limit=99) if i.value["cites"]] == [INSIGHT]
