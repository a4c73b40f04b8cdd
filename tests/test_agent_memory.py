"""What an agent keeps of a conversation, what comes back of it, and what is not to be remembered."""

import pytest
from desk import KNOWN, CallbackNotebook, CustomerNotebook, Desk, TicketNotebook, note, of_scope
from scripted import call, say, words_of

from questbook.graphs.agent import Recall
from questbook.memory.buffer.policies import LastTurns, RunningSummary
from questbook.memory.timeline.namespaces import campaign_namespace


async def test_the_buffer_policy_decides_what_stands_in_the_prompt():
    desk = Desk(buffer=LastTurns(1))
    for words in ("one", "two", "three"):
        await desk.say(words)
    assert words_of(desk.model.asked("reply")[-1]) == ["two", "three"]
    desk = Desk(buffer=RunningSummary(1), recall=Recall(tokens=0))
    for words in ("one apple", "two pears", "three plums"):
        await desk.say(words)
    assert "one apple" in desk.prompts("reply")[-1].split("<summary>\n")[1]


async def test_what_left_the_buffer_is_recalled_as_far_as_it_may():
    for tokens, found in ((400, True), (0, False)):
        desk = Desk(buffer=LastTurns(0), recall=Recall(tokens=tokens))
        await desk.say("My lamp is called Lumen")
        await desk.say("nothing much")
        await desk.say("What is my lamp called?")
        assert ("<memories>\n" in desk.prompts("reply")[-1]) is found


async def test_a_new_thread_of_a_campaign_goes_on_from_the_pages_of_the_last():
    pages = of_scope("campaign", CustomerNotebook, TicketNotebook)
    desk = Desk(*pages, scope="campaign")
    await desk.say("Ann, X100", fill=KNOWN, update=note(problem="leaks"))
    again = Desk(*pages, scope="campaign", store=desk.store)
    await again.say("me again")
    assert again.model.asked("fill") == []
    assert again.values["ticket"]["problem"] == "leaks"
    assert again.values["turn"] == 2


async def test_agents_of_other_names_do_not_share_memories():
    desk = Desk(TicketNotebook)
    await desk.say("It leaks", update=note(problem="leaks"))
    other = Desk(TicketNotebook, store=desk.store, name="other")
    await other.say("hi")
    assert other.values["turn"] == 1
    assert other.values["ticket"]["problem"] == ""


@pytest.mark.parametrize("name", ["default", "companion"])
async def test_an_agent_called_as_a_game_or_an_assistant_is_another_one(name):
    desk = Desk(TicketNotebook, name=name)
    await desk.say("It leaks")
    assert await desk.store.asearch(campaign_namespace("adventurer", name)) == []
    assert len(await desk.store.asearch(campaign_namespace("adventurer", f"agent:{name}", "exchanges"))) == 1


async def test_of_a_turn_that_is_not_to_be_remembered_nothing_is_noted_anywhere():
    desk = Desk(CustomerNotebook, TicketNotebook, CallbackNotebook, buffer=RunningSummary(0))
    secret = "My name is Zelda, but don't remember this."
    known = say("I will not.", call("CustomerNotebook", name="Zelda", product="X1"))
    await desk.say(secret, fill=known)
    assert desk.values["customer"]["name"] == ""
    await desk.say("Ann, X100", fill=KNOWN)
    assert "Zelda" not in desk.model.asked("update")[-1][-1].text
    wrong = say("", call("CallbackNotebook", day="Zelda's day"))
    await desk.say(secret, reply=[wrong, say("As you like.")])
    assert desk.values["callback"]["day"] == ""
    assert len(desk.model.asked("update")) == 1, "there is nothing to be noted"
    assert desk.values["noted"] == {"ticket": 3}
    await desk.say("And now?")
    rule = "What the person asked you not to remember you never note, in no later turn either."
    assert all(rule in prompt for job in ("fill", "reply") for prompt in desk.prompts(job))
    assert "Zelda" not in desk.values["summary"]
    stored = await desk.store.asearch(campaign_namespace("adventurer", "agent:agent", "exchanges"))
    assert "Zelda" not in str([item.value for item in stored])
