"""What the dungeon master recalls into its prompt, what leaves the buffer, and what of it a player is shown."""

import json

import pytest
from conftest import EXCHANGES
from langchain_core.messages import HumanMessage
from page_play import turn
from scripted import call, say, sections_of

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.errors import SettingsError
from questbook.graphs.events import STREAM_MODES, Memories, read_stream
from questbook.memory.facts.writing import add_fact, note_facts
from questbook.memory.timeline.records import Stamp


async def walked(new_mira, **settings):
    game = await new_mira(buffer_tokens=300, **settings)
    await game.walk(8)
    return game


async def asked(game, words):
    """Play a turn; return the lines of the prompt's memories and the memories that a player is shown."""
    given = {"messages": [HumanMessage(words)]}
    stream = game.app.astream(given, game.config, context=game.settings, stream_mode=STREAM_MODES)
    shown = [event.memories async for event in read_stream(stream) if isinstance(event, Memories)]
    told = sections_of(game.model.asked("quest")[-1]).partition("\n<memories>\n")[2].partition("</memories>")[0]
    return [json.loads(line) for line in told.strip().splitlines()], shown[0]


async def test_facts_lore_and_the_player_come_along_and_a_player_is_shown_no_secret(new_mira):
    game = await walked(new_mira)
    context, here = Context.of(game.settings), Stamp(game.values["timeline"][0][0], 2).to_json()
    facts, lore = (context.user, context.campaign, "facts"), (context.user, context.campaign, "lore")
    await game.store.aput(facts, "e", {"kind": "event", "text": "Goran forged the swordfish key."} | here)
    await game.store.aput(facts, "s", {"kind": "secret", "text": "Goran sold the swordfish."} | here)
    await game.store.aput(facts, "n", {"kind": "trait", "text": "Goran drinks.", "known_by": ["Oda"]} | here)
    await game.store.aput(facts, "m", {"kind": "trait", "text": "Goran sings.", "known_by": ["Mira"]} | here)
    await game.store.aput(facts, "x", {"kind": "event", "text": "Goran died."} | Stamp("elsewhere", 2).to_json())
    await game.store.aput(
        lore, "l", {"kind": "lore", "text": "Swordfish: sign of smiths.", "source": "a.md", "page": 3}
    )
    await game.store.aput((context.user, "player", "facts"), "p", {"kind": "preference", "text": "Likes Goran."})
    lines, shown = await asked(game, "What of Goran and the swordfish?")
    kinds = {key: line[key] for line in lines for key in line}
    assert kinds["event"] == "Goran forged the swordfish key."
    assert kinds["preference"] == "Likes Goran."
    assert {"source": "a.md, page 3", "text": "Swordfish: sign of smiths."} in lines
    assert {line["secret"] for line in lines if "secret" in line} == {"Goran sold the swordfish.", "Goran drinks."}
    assert "died" not in str(lines), "another future's"
    texts = str([memory.get("text") for memory in shown])
    assert "forged" in texts
    assert "sings" in texts
    assert "sold" not in str(shown)
    assert "drinks" not in str(shown)
    why = {memory["kind"]: memory["why"] for memory in shown}
    assert why.pop("preference") == "you said what you like or do not want"
    assert all(said.startswith("relevance") or said == "is one of the last turns" for said in why.values()), why


async def test_records_say_session_and_story_day_and_ages_count_sessions(new_mira):
    game = await walked(new_mira)
    records = await game.store.asearch(EXCHANGES, limit=99)
    assert {item.value["session"] for item in records} == {1}
    assert {item.value["day"] for item in records} == {1}
    game.config = {"configurable": {"thread_id": "another evening"}}
    lines, _ = await asked(game, "Which mile did I walk last session?")
    assert {line["age"] for line in lines} == {"just now in real time (last session)"}
    assert {line["story_time"] for line in lines} == {"day 1"}
    records = await game.store.asearch(EXCHANGES, limit=99)
    assert sorted({item.value["session"] for item in records}) == [1, 2]


@pytest.mark.parametrize(
    ("said", "shown"),
    [([], ["I'm Mira, a halfling rogue from the docks; I want my sister back."]),
     (["I sing.", "I hum.", "I weep."], ["I hum.", "I weep."]),
     (["I sing.", "I hum.", "Don't remember this: I weep."], ["I hum."])],
)  # fmt: skip
async def test_a_new_session_begins_with_the_last_two_turns_but_those_that_were_private(new_mira, said, shown):
    game = await new_mira()
    for words in said:
        await game.play(words, quest=say("The wind turns."))
    game.config = {"configurable": {"thread_id": "another evening"}}
    lines, _ = await asked(game, "Onward!")
    assert [line["player"] for line in lines] == shown


async def test_a_small_budget_has_room_for_a_limit_of_the_players(new_mira):
    game = await new_mira(recall_tokens=200)
    wish = "No spiders, please: " + "not in the cellar, not on the wall, " * 6
    await game.store.aput(("adventurer", "player", "facts"), "p", {"kind": "preference", "text": wish})
    lines, _ = await asked(game, "Onward!")
    assert [line["preference"] for line in lines] == [wish]


async def test_yesterday_is_the_day_of_the_story_before_the_present_one(new_mira):
    game = await new_mira(buffer="turns", buffer_turns=1, recall_tokens=250)
    for day in (1, 1, 1, 1, 2, 3, 3, 3, 3):
        await turn(game, "I walk", clock={"day": day})
    lines, _ = await asked(game, "Where was I yesterday?")
    assert "day 2" in {line["story_time"] for line in lines}
    assert len(lines) < 6, "else this test shows nothing"


async def test_what_a_person_wrote_by_hand_is_in_the_prompt_at_once_where_it_fits_and_says_why(new_mira):
    game = await new_mira()
    await game.play("I wait.")
    timeline, facts = game.values["timeline"], ("adventurer", "default", "facts")
    home = {"text": "Goran lives at the mill.", "subject": "Goran", "attribute": "home"}
    await add_fact(game.store, facts, home, timeline=timeline)
    await add_fact(game.store, facts, home, timeline=timeline)
    await add_fact(game.store, facts, {"text": "A fair is held in Brack."}, timeline=timeline)
    assert len(await game.store.asearch(facts, filter={"by": "hand"})) == 2
    lines, shown = await asked(game, "Where does Goran live?")
    assert [line.get("trait") or line.get("event") for line in lines] == ["Goran lives at the mill."]
    assert [memory["why"] for memory in shown] == ["fits, and nobody has said it in the conversation"]


async def test_what_the_buffer_policy_shows_is_left_out_and_the_rest_is_recalled(new_mira):
    game = await new_mira(buffer="turns", buffer_turns=2)
    for number in range(6):
        await game.play(f"I walk mile {number}", quest=say(f"Mile {number}."))
    last = game.values["turn"]
    lines, _ = await asked(game, "Which mile did I walk?")
    turns = {line["turn"] for line in lines}
    assert last - 2 in turns
    assert not {last - 1, last} & turns, "the two turns before this one stand in the prompt word for word"


@pytest.mark.parametrize("which", [[6], [4, 7], [7, 6], [8, 6]])
@pytest.mark.slow
async def test_after_a_retraction_turns_keep_their_numbers_and_none_that_is_shown_is_recalled(new_mira, which):
    game = await new_mira(buffer="turns", buffer_turns=4)
    for number in range(2, 9):
        await game.play(f"I walk mile {number}", quest=say(f"Mile {number}."))
    for number in which:
        await retract(game.app, game.config, Context.of(game.settings), number)
    kept = [number for number in (5, 6, 7, 8) if number not in which]
    said = DungeonState.model_validate(game.values).transcript(1, 9)
    assert [(turn["turn"], turn["player"]) for turn in said] == [(number, f"I walk mile {number}") for number in kept]
    lines, _ = await asked(game, "Which mile did I walk?")
    recalled = {line["turn"] for line in lines}
    assert not recalled & set(kept), "they stand in the prompt word for word"
    assert {2, 3} <= recalled


async def test_a_secret_of_the_page_is_in_the_prompt_once(mira):
    secret = "The ferryman Orrin drowned the twins."
    await mira.play("I wait.", quest=say("Rain.", call("keep_secret", about="the twins", secret=secret)))
    await mira.play("I ask Orrin about the twins.")
    prompt = "".join(message.text for message in mira.model.asked("quest")[-1])
    assert prompt.count("drowned the twins") == 1
    mira.app.update_state(mira.config, {"quest": {"secrets": None}})
    await mira.play("I ask Orrin about the twins.")
    assert "drowned the twins" in sections_of(mira.model.asked("quest")[-1]), "without the page memory has it"


FORGED = "Goran forged the swordfish key."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("update", "fact", "is_told"),
    [
        ({"summary": "It rained. Goran, the smith, forged the swordfish key."}, {"text": FORGED}, True),
        ({"quest": {"facts": {"Goran": "forged the swordfish key"}}}, {"text": FORGED}, True),
        ({"quest": {"people": {"Goran": {"role": "forges swordfish keys"}}}}, {"text": FORGED}, True),
        ({"summary": FORGED}, {"text": FORGED, "kind": "rumour"}, False),
        ({"summary": FORGED}, {"text": FORGED, "claimed_by": "Oda"}, False),
        ({"summary": "Goran never forged the swordfish key."}, {"text": FORGED}, False),
        ({"summary": "Is it so that Goran forged the swordfish key?"}, {"text": FORGED}, False),
        ({"summary": "In a dream Goran forged the swordfish key."}, {"text": FORGED}, False),
        (
            {"summary": "Goran hates Oda, the swordfish smith."},
            {"text": "Oda hates Goran, the swordfish smith."},
            False,
        ),
        ({"summary": FORGED}, {"text": "Goran forged 2 swordfish keys."}, False),
    ],
)
async def test_a_fact_is_left_out_where_the_prompt_says_it_in_another_place(new_mira, update, fact, is_told):
    game = await walked(new_mira)
    context, here = Context.of(game.settings), Stamp(game.values["timeline"][0][0], 2).to_json()
    fact = {"kind": "event", **fact}
    await game.store.aput((context.user, context.campaign, "facts"), "f", fact | here)
    game.app.update_state(game.config, update)
    lines, _ = await asked(game, "What of Goran and the swordfish?")
    assert (fact["text"] in [line.get(fact["kind"]) for line in lines]) is not is_told


async def test_what_an_exchange_or_the_summary_tells_is_told_once(new_mira):
    game = await new_mira(buffer_tokens=300)
    await game.play(
        "I ask for Goran.", quest=say("Hilda points. Goran, the smith, forged the swordfish key. Rain falls.")
    )
    await game.walk(8)
    here = Stamp(game.values["timeline"][0][0], 2).to_json()
    value = {"kind": "event", "text": "Goran forged the swordfish key."} | here
    await game.store.aput(("adventurer", "default", "facts"), "f", value)
    game.app.update_state(game.config, {"summary": "Rain falls."})
    lines, _ = await asked(game, "What of Goran and the swordfish?")
    [exchange] = [line for line in lines if "swordfish" in str(line)]
    assert exchange["reply"] == "Hilda points. Goran, the smith, forged the swordfish key. Rain falls.", "of two words"
    game.app.update_state(game.config, {"summary": "Goran, the smith, forged the swordfish key."})
    lines, _ = await asked(game, "What of Goran and the swordfish?")
    assert [line["reply"] for line in lines if line.get("turn") == 2] == ["Hilda points. … Rain falls."]


async def test_a_reply_of_which_next_to_nothing_is_untold_is_left_out(new_mira):
    game = await new_mira(buffer_tokens=300)
    await game.play("I ask for the swordfish.", quest=say("Eleven names. Goran, the smith, forged the key.\n\n---"))
    await game.walk(8)
    game.app.update_state(game.config, {"summary": "Goran, the smith, forged the key."})
    lines, _ = await asked(game, "What of the swordfish?")
    assert [line.get("reply") for line in lines if line["turn"] == 2] == [None]


@pytest.mark.slow
async def test_what_a_player_asked_comes_with_words_of_the_answer_before_the_budget_is_full(new_mira):
    game = await new_mira(buffer_tokens=300, recall_tokens=400)
    answer = (
        "The swordfish inn is closed, says Oda, and taps the door with her long ladle. " + "Rain falls again. " * 60
    )
    for name in ("Oda", "Ada", "Uda", "Eda", "Ida", "Ula"):
        await game.play(f"I ask {name} about the swordfish inn.", quest=say(answer.replace("Oda", name)))
    await game.walk(8)
    lines, _ = await asked(game, "Who said what of the swordfish inn?")
    replies = [line.get("reply", "") for line in lines if "swordfish" in line.get("player", "")]
    assert len(replies) > 3
    assert all("is closed, says" in reply for reply in replies)


@pytest.mark.parametrize(
    ("turn", "summary", "left"),
    [(3, "", ["Goran lives at the swordfish inn."]), (3, "Goran now lives at the swordfish inn.", []), (10, "", [])],
)
@pytest.mark.slow
async def test_what_holds_now_is_left_out_where_the_prompt_says_it_and_the_outdated_stays_away(
    new_mira, turn, summary, left
):
    game = await walked(new_mira)
    assert min(entry["turn"] for entry in DungeonState.model_validate(game.values).transcript(1, 9)) > 3
    facts, home = ("adventurer", "default", "facts"), {"kind": "event", "subject": "Goran", "attribute": "home"}
    for number, place in ((2, "swordfish mill"), (min(turn, game.values["turn"]), "swordfish inn")):
        fact = {"text": f"Goran lives at the {place}.", "value": f"the {place}"} | home
        await note_facts(game.store, facts, [fact], timeline=game.values["timeline"], turn=number)
    game.app.update_state(game.config, {"summary": summary})
    lines, _ = await asked(game, "Does Goran live at the swordfish mill?")
    assert [line["event"] for line in lines if "event" in line] == left


@pytest.mark.parametrize(
    ("words", "replies", "recalled"),
    [
        ("I look around the cellar", ["You see barrels, dust and a grating.", "You see barrels and a grating, dusty.",
          "Barrels, dust: you see a grating.", "You only see barrels, dust and a grating."], 1),
        ("I look around the cellar", [f"You see barrels, dust, {n} rats and a grating." for n in (2, 3, 4, 5)], 4),
        ("I ask who owns the cellar", [f"You hear that {n} owns the barrels." for n in ("Oda", "Ada", "Uda")], 3),
    ],
)  # fmt: skip
@pytest.mark.slow
async def test_of_nearly_identical_turns_one_is_recalled(new_mira, words, replies, recalled):
    game = await new_mira(buffer="turns", buffer_turns=1)
    for reply in replies:
        await game.play(f"{words}.", quest=say(reply))
    for _ in range(3):
        await game.play("I walk on.", quest=say("The road goes on."))
    lines, _ = await asked(game, "What was in the cellar with the barrels?")
    assert len([line for line in lines if "cellar" in line.get("player", "")]) == recalled


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"words": -1}, "weights.words"),
        ({"wrods": 1}, "weights.wrods"),
        ("{", "weights"),
        ({"scoring": "x"}, "scoring"),
    ],
)
def test_a_wrong_weight_is_named(wrong, named):
    with pytest.raises(SettingsError, match=named):
        Context.of({"weights": wrong})


async def test_campaigns_and_users_do_not_see_each_other(new_game, new_mira, model):
    first = await new_mira(buffer_tokens=200, user="a.b@c.d", campaign="../x")
    for number in range(6):
        model.queue("quest", say("The heron sings of swordfish. " * 12))
        await first.play(f"step {number}")
    other = new_game(buffer_tokens=200, user="a.b@c.d", campaign="")
    other.keep_in(first.store)
    await other.begin()
    for number in range(6):
        model.queue("quest", say("Nothing but sand here. " * 12))
        await other.play(f"step {number}")
    await other.play("heron swordfish sand")
    assert "swordfish" not in sections_of(model.asked("quest")[-1]).split("\n<memories>\n")[1]
