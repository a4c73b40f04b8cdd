"""Reflection in the game: when it is due, what it writes, what is seen of it, in the background, and on failures."""

import asyncio
import threading

import pytest
from fact_play import CONTEXT, FACTS, known, notices, stored
from faulty_stores import Refusing
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from reflecting import DEBT, FAIR, INSIGHT, MILL, REFLECTIONS, SETTLED, Client, ask, conclude, insights, numbers, tell
from scripted import call, malformed, say, sections_of

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.errors import InputError
from questbook.graphs.history.history import History
from questbook.graphs.reflect.graph import build_graph as build_reflection
from questbook.graphs.reflect.graph import graph as reflection
from questbook.graphs.turn import api_server
from questbook.memory.facts.validity import count_repetitions
from questbook.memory.facts.writing import note_facts
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import remember


def test_the_graph_is_one_of_its_own():
    drawn = reflection.get_graph()
    assert set(drawn.nodes) == {"note", "gather", "question", "retrieve", "conclude", "write", "__start__", "__end__"}
    assert reflection.checkpointer is None
    schema = reflection.get_input_jsonschema()["properties"]
    properties = list(schema)
    assert properties == ["timeline", "turn", "through", "note_from", "thread", "of_user", "viewer_page", "notes_only"]
    assert [schema[name]["default"] for name in properties[3:]] == [0, "", False, "", False]
    assert all(field["description"] for field in schema.values())


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, "`timeline` and `turn`"),
        ({"turn": 3}, "needs `timeline`,"),
        ({"timeline": [("main", 3)]}, "needs `turn`,"),
        ({"timeline": [], "turn": 0, "through": 0}, "`timeline` and `turn`"),
        ({"timeline": [("x", 1)], "turn": 9}, "got 9, and a timeline that reaches turn 1"),
        ({"timeline": [("x", 1), ("y", 3)], "turn": 2, "note_from": 1}, "got 2, and a timeline that reaches turn 3"),
    ],
)
async def test_an_input_that_says_not_where_to_look_back_from_is_refused_with_what_is_wrong(given, wrong):
    with pytest.raises(InputError, match=wrong):
        await reflection.ainvoke(given, context={})


async def test_without_a_store_a_reflection_says_so():
    done = await reflection.ainvoke({"timeline": [("main", 3)], "turn": 3})
    assert "No store" in done["notices"][-1]["text"]


def test_the_threshold_is_that_of_the_paper():
    assert (Context().reflection_importance, Context().reflection) == (150, "inline")


async def test_below_the_threshold_no_model_is_asked_and_the_node_does_not_run(eager):
    await tell(eager, "I ask.", DEBT)
    assert eager.values["unreflected"] == 6
    assert not eager.model.asked("question")
    assert await stored(eager, REFLECTIONS) == {}


async def test_at_the_threshold_two_calls_make_an_insight_that_cites_its_sources(eager):
    await tell(eager, "I ask.", DEBT | {"known_by": ["Mira"]})
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude((INSIGHT, [DEBT["text"], MILL["text"]]), subject="Goran", importance=8))
    eager.model.calls.clear()
    await tell(eager, "I ask Oda.", MILL)
    assert [job for job, _ in eager.model.calls] == ["quest", "update", "question", "conclude"]
    [(key, value)] = (await insights(eager)).items()
    branch = eager.values["timeline"][-1][0]
    assert key == f"{branch}-3-insight-0"
    assert value["cites"] == [f"{branch}-2-fact-0", f"{branch}-3-fact-0"]
    assert set(value["cites"]) <= set(await stored(eager))
    assert (value["kind"], value["text"], value["importance"]) == ("insight", INSIGHT, 8)
    assert (value["branch"], value["turn"], value["order"]) == (branch, 3, "00000003")
    [done] = (await stored(eager, REFLECTIONS)).values()
    assert (done["through"], done["turn"], done["insights"]) == (3, 3, [key])
    assert eager.values["unreflected"] == 0
    await tell(eager, "I wait.")
    assert len(eager.model.asked("question")) == 1, "what was reflected on is not reflected on again"


async def test_a_question_about_a_turn_brings_what_was_concluded_from_it(new_mira):
    game = await new_mira(reflection_importance=18, buffer_tokens=200)
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"], FAIR["text"]])))
    await tell(game, "I ask.", DEBT, reply="The ferryman counts crowns on his fingers, and shows forty.")
    await tell(game, "I go on.", FAIR, reply="Fiddles play, and somebody dances in a yellow skirt.")
    await tell(game, "I watch.", MILL)
    assert len(await insights(game)) == 1
    for n in range(6):
        await tell(game, f"I walk mile {n}.", reply="The road goes on past hedges and ditches. " * 8)
    for words in (
        "Who counted crowns on fingers?",
        "Where did fiddles play?",
        "Who wore that yellow skirt?",
        "How much is owed to the ferryman?",
    ):
        await tell(game, words)
        assert INSIGHT in sections_of(game.model.asked("quest")[-1]), words
    await tell(game, "What do I know of Zorblax?")
    assert INSIGHT not in sections_of(game.model.asked("quest")[-1])


async def test_an_insight_of_a_turn_in_the_buffer_is_in_the_prompt_where_it_fits(eager):
    await tell(eager, "I ask.", DEBT)
    await tell(eager, "I ask Oda.", MILL, conclude=conclude((INSIGHT, [DEBT["text"]])), question=ask())
    for words in ("Why does Goran stay here?", "Who avoids the river?", "I go to the river.", "Is it what he owes?"):
        await tell(eager, words)
        assert INSIGHT in sections_of(eager.model.asked("quest")[-1]), words
    for words in ("I sleep.", "What do I know of Zorblax?"):
        await tell(eager, words)
        assert INSIGHT not in sections_of(eager.model.asked("quest")[-1]), words


async def test_both_sides_of_a_contradiction_are_shown_and_the_judgement_stays_on_its_timeline(eager):
    await tell(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    await tell(eager, "I go to the fair.", FAIR, conclude=conclude(ended=MILL["text"], holds=FAIR["text"]))
    shown = eager.model.asked("conclude")[0][-1].text
    assert MILL["text"] in shown
    assert FAIR["text"] in shown
    assert await known(eager) == [FAIR["text"]]
    [judged] = (await stored(eager, SETTLED)).values()
    assert (judged["turn"], judged["branch"]) == (3, eager.values["timeline"][-1][0])
    assert len(await stored(eager)) == 2, "no record was changed or removed"
    await History(eager.app, eager.config, CONTEXT).undo()
    assert await known(eager) == [MILL["text"]]
    await tell(eager, "I stay here instead.", DEBT, conclude=say("nothing"))
    assert await known(eager) == sorted([MILL["text"], DEBT["text"]])


async def test_for_each_of_the_new_facts_earlier_ones_like_it_are_shown_though_no_question_finds_them(eager):
    paid = {"text": "Goran paid the ferryman.", "subject": "Goran", "kind": "event", "importance": 6}
    await tell(eager, "I ask.", MILL, DEBT, question=ask("Zorblax?"), conclude=say("nothing"))
    answers = {"question": ask("Zorblax?"), "conclude": conclude(ended=DEBT["text"], holds=paid["text"])}
    await tell(eager, "I go to the fair.", FAIR, paid, **answers)
    assert set(numbers(eager.model.asked("conclude")[-1])) == {fact["text"] for fact in (MILL, DEBT, FAIR, paid)}
    assert await known(eager) == sorted([MILL["text"], FAIR["text"], paid["text"]])


async def test_an_insight_like_an_older_one_strengthens_it(new_mira):
    game = await new_mira(reflection_importance=6)
    await tell(game, "I ask.", DEBT, conclude=conclude((INSIGHT, [DEBT["text"]])), question=[ask(), ask(), ask()])
    await tell(game, "I ask Oda.", MILL, conclude=conclude((INSIGHT.replace(".", "!"), [MILL["text"]])))

    def same(messages):
        number = numbers(messages)
        given = {"text": "The ferry is not for him, for he is in debt.", "cites": [number[FAIR["text"]]]}
        return say("", call("Reflection", insights=[given | {"same_as": number[INSIGHT]}]))

    await tell(game, "I go to the fair. Goran avoids the river.", FAIR, conclude=same)
    [key] = await insights(game)
    timeline = [tuple(segment) for segment in game.values["timeline"]]
    assert await count_repetitions(game.store, FACTS, [key], timeline=timeline) == {key: 2}


async def test_a_fork_from_before_a_reflection_sees_none_of_it_and_reflects_for_itself(eager):
    await tell(eager, "I ask.", DEBT)
    await tell(eager, "I ask Oda.", MILL, conclude=conclude((INSIGHT, [DEBT["text"]])), question=[ask(), ask()])
    assert INSIGHT in await known(eager)
    await History(eager.app, eager.config, CONTEXT).undo()
    assert INSIGHT not in await known(eager)
    assert eager.values["unreflected"] == 6
    eager.model.queue("conclude", conclude(("Oda and Goran have never met.", [DEBT["text"], FAIR["text"]])))
    await tell(eager, "I go to the fair.", FAIR)
    assert await known(eager) == sorted([DEBT["text"], FAIR["text"], "Oda and Goran have never met."])
    assert len(await stored(eager, REFLECTIONS)) == 2


async def test_retracting_a_turn_takes_what_was_concluded_and_judged_of_it(eager):
    await tell(eager, "I ask.", MILL)
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude((INSIGHT, [FAIR["text"]]), ended=MILL["text"], holds=FAIR["text"]))
    await tell(eager, "I go to the fair.", FAIR)
    assert await known(eager) == sorted([FAIR["text"], INSIGHT])
    await retract(eager.app, eager.config, CONTEXT, 3)
    assert await known(eager) == [MILL["text"]]
    assert await insights(eager) == await stored(eager, SETTLED) == {}


async def test_off_is_off(new_mira):
    game = await new_mira(reflection_importance=6, reflection="off")
    await tell(game, "I ask.", DEBT)
    assert not game.model.asked("question")


async def test_no_questions_cost_one_call_and_are_a_reflection(eager):
    await tell(eager, "I ask.", DEBT)
    eager.model.calls.clear()
    await tell(eager, "I ask Oda.", MILL)
    assert [job for job, _ in eager.model.calls] == ["quest", "update", "question"]
    assert len(await stored(eager, REFLECTIONS)) == 1
    assert notices(eager) == ""


async def test_a_new_thread_goes_on_counting(eager):
    await tell(eager, "I ask.", DEBT)
    await tell(eager, "I wait.")
    eager.config = {"configurable": {"thread_id": "another"}}
    await tell(eager, "I ask Oda.", MILL)
    assert len(eager.model.asked("question")) == 1


async def test_the_offline_storyteller_concludes_nothing_rather_than_guess(new_game, monkeypatch):
    monkeypatch.undo()
    game = new_game(model="offline", seed=3, reflection_importance=4)
    said = "I'm Mira, a halfling rogue from the docks; I want my sister back."
    for words in (said, "yes", "I look around", "I ask about the trouble here"):
        await game.play(words)
    assert await stored(game, REFLECTIONS)
    assert await insights(game) == {}
    assert "reflect" not in {entry["node"] for entry in game.values["notices"]}


async def test_without_a_server_the_background_is_the_end_of_the_turn_and_says_so(new_mira):
    game = await new_mira(reflection_importance=6, reflection="background")
    await tell(game, "I ask.", DEBT, conclude=conclude((INSIGHT, [DEBT["text"]])), question=ask())
    assert len(await insights(game)) == 1
    assert "this program has no background" in notices(game)


@pytest.fixture
async def on_server(new_game, monkeypatch):
    """A game on a server, to which a fact was told that is worth a reflection in the background."""
    game = new_game(reflection_importance=6, reflection="background")
    game.client = Client()
    monkeypatch.setattr(api_server, "client", lambda: game.client)
    game.config["configurable"]["graph_id"] = "dungeon_master"  # as the server does
    await game.begin()
    await tell(game, "I ask.", DEBT)
    return game


async def run_waiting(game):
    """Do what the server does with the run that waits; return its thread."""
    own = {"configurable": {"thread_id": game.client.made[-1][0]}}
    app = build_reflection().compile(checkpointer=game.saver, store=game.store)
    fields = game.client.waiting.pop()
    await app.ainvoke(fields["input"], own, context=fields["context"], durability="sync")
    game.client.thread["values"] = app.get_state(own).values
    return own


async def test_on_a_server_one_run_at_a_time_reflects_on_a_thread_of_its_own(on_server):
    game, client = on_server, on_server.client
    await tell(game, "I wait.")
    [(thread, name, fields)] = client.made
    assert thread != game.config["configurable"]["thread_id"]
    assert (name, fields["input"]["turn"], fields["input"]["through"]) == ("reflect", 2, 2)
    assert fields["input"] == {
        "timeline": [(game.values["timeline"][0][0], 2)], "turn": 2, "through": 2, "note_from": 0, "notes_only": False,
        "thread": game.config["configurable"]["thread_id"], "of_user": False, "viewer_page": "character",
    }  # fmt: skip
    assert (fields["after_seconds"], fields["multitask_strategy"]) == (5, "enqueue")
    assert "reflection_importance" in fields["context"]
    assert "reflection" not in fields["context"], "the setting of the game alone"
    assert not game.model.asked("question")
    assert game.values["unreflected"] == 6, "not done before it is written"

    game.queue(question=ask(), conclude=conclude((INSIGHT, [DEBT["text"]])))
    own = await run_waiting(game)
    assert [v["text"] for v in (await insights(game)).values()] == [INSIGHT]
    kept = [repr(saved.checkpoint["channel_values"]) for saved in game.saver.list(own)]
    assert kept
    assert not any("Goran" in one for one in kept), "no checkpoint of it holds a memory"
    await tell(game, "I wait again.")
    assert (len(client.made), game.values["unreflected"]) == (1, 0)


async def test_a_server_that_refuses_has_it_done_at_the_end_of_the_turn(new_game, monkeypatch):
    game = new_game(reflection_importance=6, reflection="background")

    def broken():
        raise ConnectionError("no server")

    monkeypatch.setattr(api_server, "client", broken)
    game.config["configurable"]["graph_id"] = "dungeon_master"
    await game.begin()
    await tell(game, "I ask.", DEBT)
    assert len(game.model.asked("question")) == 1
    assert "no server" in notices(game)


async def test_what_the_background_has_to_say_is_told_by_the_next_turn_and_once(on_server):
    game, client = on_server, on_server.client
    game.model.queue("question", ConnectionError("503"), ask())
    await run_waiting(game)
    assert notices(game) == ""
    await tell(game, "I wait.")
    assert notices(game).count("The reflection was not finished; nothing is lost") == 1
    assert len(client.made) == 2, "it is taken up again"
    game.model.queue("conclude", lambda m: say("", call("Reflection", insights=[{"text": "Thin air.", "cites": [99]}])))
    await run_waiting(game)
    for words in ("I wait.", "I go on."):
        await tell(game, words)
        assert notices(game).count("was not finished") == 1
        assert notices(game).count("cited nothing") == 1
    assert (len(client.made), game.values["unreflected"]) == (2, 0)
    await tell(game, "I ask Oda.", MILL)
    assert len(client.made) == 3, "enough has come together again"
    assert notices(game).count("cited nothing") == 1
    client.waiting.clear()
    client.thread = {"status": "error", "values": None}  # it broke off, and wrote nothing
    await tell(game, "I wait.")
    assert notices(game).count("broke off") == 1


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
@pytest.mark.slow
async def test_a_reflection_that_fails_loses_nothing_and_is_taken_up_again(eager, failing):
    await tell(eager, "I ask.", DEBT)
    for job, answer in failing:
        eager.model.queue(job, answer)
    await tell(eager, "I ask Oda.", MILL)
    assert await insights(eager) == {}
    assert await stored(eager, REFLECTIONS) == {}
    assert notices(eager).count("was not finished") == 1
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


@pytest.mark.parametrize(("answers", "reason"), [
    ([say("I had rather not say anything about it now. " * 5)], "question: The model answered without a question."),
    ([say("", call("Roll"))], "question: No call of the tool Questions could be read: got 'Roll'."),
    ([ask(), say("I had rather not say anything about it now. " * 5)],
     "conclude: The model answered with prose instead of calling the tool."),
    ([ask(), TimeoutError()], "conclude: "),
])  # fmt: skip
async def test_why_a_reflection_was_not_finished_is_said_to_developers(eager, answers, reason):
    await tell(eager, "I ask.", DEBT)
    for job, answer in zip(("question", "conclude"), answers, strict=False):
        eager.model.queue(job, answer)
    await tell(eager, "I ask Oda.", MILL, FAIR | {"importance": 10})
    assert eager.values["unreflected"] == 12 - 22 // 5, "a fifth of what waits has to be noted first"
    [told] = [entry for entry in eager.values["notices"] if entry["node"] == "reflect"]
    assert told["text"] == "The reflection was not finished; nothing is lost, and it will be taken up again."
    assert told["detail"].startswith(reason)


async def test_a_reflection_counts_up_to_the_turn_whose_facts_are_all_in_the_store(new_mira):
    game = await new_mira(reflection="off")
    await tell(game, "I ask.", DEBT)
    await tell(game, "I ask Oda.", MILL)
    app = build_reflection().compile(store=game.store)
    told = []
    for through in (2, 3):
        start = {"timeline": game.values["timeline"], "turn": 3, "through": through}
        context = {"model": "scripted", "user": "adventurer", "reflection_importance": 6}
        done = await app.ainvoke(start, context=context)
        assert done["reflected_through"] == through
        told.append([fact["text"] in game.model.asked("question")[-1][-1].text for fact in (DEBT, MILL)])
    assert told == [[True, False], [False, True]]


async def test_a_short_no_is_no_failure_of_a_reflection(eager):
    await tell(eager, "I ask.", DEBT)
    eager.queue(question=ask(), conclude=say(f"{'Nothing. ' * 22}ok"))  # 200 characters
    await tell(eager, "I ask Oda.", MILL)
    assert notices(eager) == ""
    assert len(await stored(eager, REFLECTIONS)) == 1


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
    await tell(eager, "I ask Oda.", MILL, conclude=[conclude((INSIGHT, [DEBT["text"], MILL["text"]]))] * 2)
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

    await tell(eager, "I ask Oda.", MILL, conclude=answer)
    [value] = (await insights(eager)).values()
    assert value["text"] == INSIGHT
    assert set(value["cites"]) <= set(await stored(eager))
    assert await stored(eager, SETTLED) == {}
    for told in ("does not exist", "cited nothing", "said nothing", "no object", "what a memory says", "two memories"):
        assert told in notices(eager), told


async def test_a_rumour_ends_no_fact(eager):
    rumour = {"text": "They say that Oda left the mill.", "kind": "rumour", "importance": 6}
    await tell(eager, "I ask.", MILL)
    await tell(eager, "I listen.", rumour, conclude=conclude(ended=MILL["text"], holds=rumour["text"]), question=ask())
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


async def test_the_most_important_facts_are_reflected_on_first(eager):
    eager.settings |= {"buffer_tokens": 200, "reflection_importance": 12}
    long = {"text": f"Goran owes the ferryman {'very ' * 45}much.", "subject": "Goran", "kind": "event"}
    await tell(eager, "I ask.", long | {"importance": 3})
    eager.model.queue("question", ask())
    eager.model.queue("conclude", conclude((INSIGHT, [MILL["text"]]), subject="Goran"))
    await tell(eager, "I ask Oda.", MILL | {"importance": 9})
    asked = eager.model.asked("question")[-1][-1].text
    assert MILL["text"] in asked
    assert long["text"] not in asked, "there is no room for both"


async def test_the_facts_it_asks_about_come_in_the_order_of_turns_and_a_question_is_required(eager, monkeypatch):
    offered, bind = {}, type(eager.model).bind_tools

    def noting(model, tools, **more):
        offered.update({tool["function"]["name"]: tool["function"]["parameters"] for tool in tools})
        return bind(model, tools, **more)

    monkeypatch.setattr(type(eager.model), "bind_tools", noting)
    await tell(eager, "I ask.", DEBT | {"importance": 3})
    await tell(eager, "I ask Oda.", MILL | {"importance": 9})
    asked = eager.model.asked("question")[-1][-1].text
    assert 0 < asked.index(DEBT["text"]) < asked.index(MILL["text"])
    assert offered["Questions"]["required"] == ["questions"]
    assert offered["Questions"]["properties"]["questions"]["maxItems"] == 3


# Reflections of a store without a game

LINE = [("a", 30)]


def space(label):
    return campaign_namespace("ann", "default", label)


async def reflect_on(model, store, at, question=None, concluded=None, config=None, saver=None, **given):
    """Reflect at a turn of a timeline; return the state, and the memories that the model concludes from."""
    model.queue("question", question or ask("Where is the lamp?"))
    model.queue("conclude", concluded or say("nothing"))
    context = {"model": "scripted", "user": "ann", "reflection_importance": 1} | given.pop("context", {})
    app = build_reflection().compile(store=store, checkpointer=saver)
    start = {"timeline": [("a", at)], "turn": at} if at else {}
    done = await app.ainvoke(start | given, config, context=context)
    asked = model.asked("conclude")
    return done, list(numbers(asked[-1])) if asked else []


async def test_what_a_reflection_looks_at(model):
    """The new facts; of the earlier ones three like each; twelve memories for each question; nothing that has ended."""
    store, facts = InMemoryStore(), space("facts")
    said = [f"The lamp of house {n} is lit." for n in range(1, 16)]
    await remember(store, space("exchanges"), [*said, "A dog barks."], timeline=[], turn=1)
    branch = store.search(space("exchanges"))[0].value["branch"]
    timeline = [(branch, 30)]
    nets = [f"Oda mends net {n}." for n in range(1, 6)]
    lives = {"subject": "Goran", "attribute": "home", "kind": "trait"}
    await note_facts(store, facts, [*nets, "Rain falls."], timeline=timeline, turn=17)
    await note_facts(
        store, facts, [lives | {"text": "Goran lives by the lamp.", "value": "lamp"}], timeline=timeline, turn=18
    )
    secret = {"text": "The lamp of lamps.", "kind": "secret", "importance": 10}
    await note_facts(store, facts, ["Oda mends 9 big nets.", secret], timeline=timeline, turn=19)
    await reflect_on(model, store, 19, say("nothing"), timeline=[(branch, 19)])
    new = ["Oda mends 7 big nets.", lives | {"text": "Goran lives by the sea.", "value": "sea"}]
    await note_facts(store, facts, new, timeline=timeline, turn=20)
    await note_facts(store, facts, ["Oda mends 8 big nets of the lamp."], timeline=timeline, turn=21)
    weights = {"scoring": "generative_agents"}
    _, shown = await reflect_on(model, store, 20, timeline=[(branch, 20)], context={"weights": weights})
    lamps = [text for text in shown if text.startswith("The lamp of house")]
    others = [text for text in shown if text not in lamps]
    assert len(lamps) + 1 == 12, "what answers the question: exchanges, and a secret"
    assert others[2:] == ["Oda mends 9 big nets.", secret["text"], new[0], new[1]["text"]]
    assert set(others[:2]) < set(nets), "three are like the new one, and of these the one that is most like it"
    assert shown[: len(lamps)] == lamps, "in the order of turns"


async def test_a_reflection_asks_about_what_holds_and_fills_half_of_the_buffer(model):
    store, lives = InMemoryStore(), {"subject": "Goran", "attribute": "home", "kind": "trait"}
    told = [lives | {"text": "Goran lives at the mill.", "value": "mill"}]
    told += [lives | {"text": "Goran lives at the inn.", "value": "inn", "importance": 9}]
    told += [{"text": f"The bridge of the {n}th river {'has ' * 80}fallen.", "importance": n} for n in range(4, 9)]
    await note_facts(store, space("facts"), told, timeline=LINE, turn=3)
    await reflect_on(model, store, 3, context={"buffer_tokens": 800})
    asked = model.asked("question")[-1][-1].text
    held = [str(fact["text"]) in asked for fact in told]
    assert held == [False, True, False, False, True, True, True], "the most important ones"


@pytest.mark.parametrize(
    ("job", "answer", "failed"),
    [
        ("question", say("x" * 200), ""), ("question", say("x" * 201), "The model answered without a question."),
        ("question", say("{"), "The model answered without a question."),
        ("question", say("Why?"), "The model answered without a question."),
        ("question", say("", call("Questions", questions=[7])), "The model answered without a question."),
        ("conclude", say("x" * 200), ""),
        ("conclude", say("x" * 201), "The model answered with prose instead of calling the tool."),
        ("conclude", say("{"), "The model answered with prose instead of calling the tool."),
        ("conclude", say("Why?"), "The model answered with prose instead of calling the tool."),
    ],
)  # fmt: skip
async def test_what_is_no_answer_of_a_model_ends_the_reflection_and_it_is_said_why(model, job, answer, failed):
    store = InMemoryStore()
    await note_facts(store, space("facts"), [MILL], timeline=LINE, turn=3)
    answers = {"question": answer} if job == "question" else {"concluded": answer}
    done, _ = await reflect_on(model, store, 3, **answers)
    assert done["failed"] == failed
    assert [entry["detail"] for entry in done["notices"]] == ([f"{job}: {failed}"] if failed else [])
    assert len(await store.asearch(space("reflections"))) == (not failed)
    assert done["pending"] == (6 if failed else 0), "what was reflected on does not wait"


async def test_a_store_that_takes_too_long_ends_the_reflection_and_it_is_said_how_long(model):
    class Slow(InMemoryStore):
        async def abatch(self, ops):
            raise TimeoutError

    assert (await reflect_on(model, Slow(), 3))[0]["failed"] == "no answer within 60 seconds"


async def test_memories_are_shown_with_who_says_so_and_who_knows_and_nothing_is_markup(model):
    store = InMemoryStore()
    told = {"text": "The </memories> lamp.", "claimed_by": "Oda", "known_by": ["Mira"], "metadata": {"project": "x"}}
    await note_facts(store, space("facts"), [told], timeline=LINE, turn=3)
    await reflect_on(model, store, 3, ask("Where is </questions> it?"))
    prompt = model.asked("conclude")[-1][-1].text
    shown = [line for line in prompt.splitlines() if "lamp" in line]
    told = '"claimed_by": "Oda", "known_by": ["Mira"], "importance": 5, "text": "The \\u003c/memories\\u003e lamp."}'
    assert shown == ['{"number": 1, "kind": "event", "turn": 3, ' + told]
    assert '"Where is \\u003c/questions\\u003e it?"' in prompt


async def test_nothing_of_later_turns_and_nothing_that_has_ended_answers_a_question(model):
    store, lives = InMemoryStore(), {"subject": "Goran", "attribute": "home", "kind": "trait"}
    await note_facts(
        store, space("facts"), [lives | {"text": "Goran has the lamp.", "value": "x"}], timeline=LINE, turn=1
    )
    await reflect_on(model, store, 1, say("nothing"))
    await note_facts(store, space("facts"), [lives | {"text": "Goran is away.", "value": "y"}], timeline=LINE, turn=2)
    await remember(store, space("exchanges"), ["The lamp is lit."], timeline=[("a", 2)], turn=3)
    await remember(store, space("exchanges"), ["The lamp is out."], timeline=[("a", 1)], turn=2)
    assert set((await reflect_on(model, store, 2))[1]) == {"The lamp is out.", "Goran is away."}


async def test_to_reflect_is_not_to_use_what_fits_a_question_alone_answers_it(model):
    store = InMemoryStore()
    await note_facts(store, space("facts"), [MILL], timeline=LINE, turn=3)
    for turn, text in ((1, "A lamp is lit."), (3, "A dog barks.")):
        await remember(store, space("exchanges"), [text], timeline=[("a", turn)], turn=turn)
    _, shown = await reflect_on(model, store, 3, context={"weights": {"scoring": "generative_agents"}})
    assert shown == ["A lamp is lit.", MILL["text"]]


async def test_a_fact_that_does_not_fit_is_asked_about_if_it_is_the_first(model):
    store = InMemoryStore()
    await note_facts(store, space("facts"), [f"The bridge {'has ' * 200}fallen."], timeline=LINE, turn=3)
    await reflect_on(model, store, 3, context={"buffer_tokens": 200})
    assert "fallen." in model.asked("question")[-1][-1].text


async def test_no_word_of_a_reflection_reaches_the_person(model):
    store = InMemoryStore()
    await note_facts(store, space("facts"), [MILL], timeline=LINE, turn=3)
    model.queue("question", say("Where does Oda live in truth?"))
    context = {"model": "scripted", "user": "ann", "reflection_importance": 1}
    stream = (
        build_reflection()
        .compile(store=store)
        .astream({"timeline": [("a", 3)], "turn": 3}, context=context, stream_mode="messages")
    )
    assert [piece async for piece in stream] == []
    assert [job for job, _ in model.calls] == ["question", "conclude"]


async def test_a_judgement_that_is_refused_is_told(model):
    store, rumour = InMemoryStore(), {"text": "They say that Oda left the mill.", "kind": "rumour"}
    await note_facts(store, space("facts"), [MILL, rumour], timeline=LINE, turn=3)
    done, _ = await reflect_on(model, store, 3, concluded=conclude(ended=MILL["text"], holds=rumour["text"]))
    assert [(entry["text"].split(";")[0], "refused" in entry["detail"]) for entry in done["notices"]] == [
        ("Not all that the reflection concluded could be used", True)
    ]


async def test_an_insight_names_the_thread_of_its_timeline_and_a_checkpoint_of_that_alone(model):
    store = InMemoryStore()
    await note_facts(store, space("facts"), [DEBT, MILL], timeline=LINE, turn=3)
    concluded = conclude((INSIGHT, [DEBT["text"], MILL["text"]]))
    config = {"configurable": {"thread_id": "reflections"}}
    done, _ = await reflect_on(
        model, store, 3, concluded=concluded, thread="talk", config=config, saver=InMemorySaver()
    )
    value = (await store.aget(space("facts"), done["written"][0])).value
    assert (value["thread"], value["checkpoint"]) == ("talk", None)


@pytest.mark.parametrize(("page", "kind"), [("character", "insight"), ("", "secret")])
async def test_what_the_person_knows_by_the_name_on_their_page_is_no_secret(model, page, kind):
    store = InMemoryStore()
    await store.aput(space("head"), "head", {"character": {"name": "Mira"}})
    facts = [DEBT | {"known_by": ["Mira"]}, MILL]
    await note_facts(store, space("facts"), facts, timeline=LINE, turn=3)
    concluded = conclude((INSIGHT, [DEBT["text"], MILL["text"]]))
    done, _ = await reflect_on(model, store, 3, concluded=concluded, viewer_page=page)
    assert (await store.aget(space("facts"), done["written"][0])).value["kind"] == kind


async def test_an_insight_that_is_drawn_again_rests_on_both(model):
    store, facts = InMemoryStore(), space("facts")
    await note_facts(store, facts, [DEBT, MILL], timeline=LINE, turn=3)
    first, _ = await reflect_on(model, store, 3, concluded=conclude((INSIGHT, [DEBT["text"], MILL["text"]])))
    await note_facts(store, facts, [FAIR], timeline=LINE, turn=4)

    def again(messages):
        known = numbers(messages)
        one = {"text": f"{INSIGHT[:-1]}, too.", "cites": [known[FAIR["text"]]], "same_as": known[INSIGHT]}
        return say("", call("Reflection", insights=[one]))

    done, _ = await reflect_on(model, store, 4, ask("Why does Goran avoid the river?"), concluded=again)
    [drawn] = await store.asearch(space("sources"))
    assert (done["written"], drawn.value["same_as"], drawn.value["cites"]) == ([], *first["written"], ["a-4-fact-0"])


async def test_a_thread_of_reflections_follows_the_head_until_it_is_given_a_timeline(model):
    store, saver, config = InMemoryStore(), InMemorySaver(), {"configurable": {"thread_id": "1"}}
    turns = []
    for turn, given in ((3, {}), (5, {"through": 2}), (6, {"timeline": [("b", 4)], "turn": 4}), (7, {})):
        await store.aput(space("head"), "head", {"timeline": [["a", turn]], "turn": turn})
        done, _ = await reflect_on(model, store, 0, config=config, saver=saver, **given)
        turns.append((done["turn"], done["through"]))
    assert turns == [(3, 0), (5, 0), (4, 0), (4, 0)]


async def test_the_memory_that_is_most_like_a_new_fact_goes_before_answers_where_not_all_fits(model):
    store = InMemoryStore()
    await note_facts(store, space("facts"), ["Oda mends 9 nets."], timeline=LINE, turn=1)
    await reflect_on(model, store, 1, say("nothing"))
    await note_facts(store, space("facts"), ["Oda mends 7 nets."], timeline=LINE, turn=20)
    lamps = [f"The lamp of house {n} is lit." for n in range(2, 14)]
    for turn, lamp in enumerate(lamps, 2):
        await remember(store, space("exchanges"), [{"text": lamp}], timeline=LINE, turn=turn)
    _, shown = await reflect_on(model, store, 20, context={"buffer_tokens": 200})
    assert {"Oda mends 9 nets.", "Oda mends 7 nets."} < set(shown)
    assert 0 < len(set(shown) & set(lamps)) < 8, "and no more than fits"
