"""Dialogues with the offline assistant: what was told plainly comes back, what is over does not.

A dialogue is what the person says, line by line; a line with an arrow also says what must be in the answer, and behind
a bar what must not be in it.
"""

import pytest
from companion_thread import Companion
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from questbook.graphs.companion.graph import build_graph

DIALOGUES = {
    "whose home": """
        I live in Oslo.
        My sister Anna lives in Bergen and works as a nurse.
        Where does Anna live? -> Anna lives in Bergen | Oslo
        Where do I live? -> You live in Oslo | Bergen
        Where does my sister live? -> Bergen | Oslo
        What does Anna do? -> nurse
        Who lives in Bergen? -> Anna | You
        Where does Tom live? -> do not know | Oslo, Bergen""",
    "not any more": """
        I live in Oslo.
        I don't live in Paris.
        Where do I live? -> You live in Oslo. | Paris
        I don't live in Oslo any more.
        Where do I live? -> do not know | Oslo
        I have moved to Bergen.
        Where do I live now? -> You live in Bergen. | Oslo
        I no longer live in Bergen. I live in Voss. -> You live in Voss.""",
    "a divorce": """
        My husband is Tom. My sister Tine and I are twins. -> You are twins with Tine.
        Who is my husband? -> Tom
        Tom and I are divorced now. -> You are divorced., over: Your husband is Tom. | Tine
        Who is my husband? Am I divorced? -> do not know, Yes. You are divorced. | Tom
        What do you know about me? -> divorced, twins with Tine | Tom, ares""",
    "a death": """
        I have a dog named Rex. Rex is 7.
        What is my dog's name? -> Rex is your dog.
        Rex died. -> Rex is your dog.
        Do I have a dog? -> do not know
        Who is Rex? -> Rex died. | your dog
        My cat is called Mia. My bird is called Bo. My car is a Volvo.
        Sadly, Mia passed away last week. -> Mia died., over: Mia is your cat.
        Bo is dead. Her car died. -> over: Bo is your bird. | Volvo
        Bo is dead. Has Bo died? Do I have a cat? Do I have a car? -> Yes. Bo died., do not know, Volvo | over
        He died. -> tell me what to forget""",
    "a job that ended": """
        I work as a nurse. I work at Saint Olav.
        What do I do? -> nurse
        I quit my job.
        What do I do? -> do not know | nurse
        Where do I work? -> do not know | Olav
        I work as a baker and was born in Molde. My boss is Karin. -> You work as a baker. You were born in Molde.
        What do I do? -> You work as a baker. | Karin, Molde
        I stopped working as a baker. Was I born in Molde? -> over: You work as a baker., Yes. You were born in Molde.
        I work as a cook.
        I retired. -> You retired., over: You work as a cook.
        Karin is no longer my boss. What's my job? -> over: Your boss is Karin., do not know""",
    "sold, and moved away": """
        My car is a Volvo. I have a boat. I live in Oslo. My brother Per lives in Oslo.
        I sold my car.
        Do I have a car? -> do not know | Volvo
        Do I have a boat? -> Yes
        I moved away from Oslo.
        Where do I live? -> do not know | Oslo
        Where does Per live? -> Oslo""",
    "kept on request": """
        Can you remember that my car is red? -> I will remember that | do not know
        What is my car? -> red""",
    "forgotten on request": """
        I like tea. I like milk.
        Forget that I like tea.
        What do I like? -> milk | tea
        Do I like tea? -> do not know
        Forget that I live in Rome. -> tell me what to forget""",
    "what it cannot end, it says": """
        I quit smoking. -> tell me what to forget
        I lost my umbrella. -> tell me what to forget
        Bob died. -> Bob died
        How is Bob? -> Bob died""",
    "as people talk of themselves": """
        Hey! My name's Jonas, I'm 42 and I'm from Bremen. -> Hello, Jonas!
        I moved to Oslo two years ago because of my job.
        My wife Katrin works as a doctor and we have two kids.
        I love hiking but I can't stand cold showers.
        Where do I come from? -> from Bremen
        Where do I live? -> You live in Oslo.
        What does Katrin do? -> Katrin works as a doctor.
        What do I like? -> hiking | showers
        Katrin and I split up in May. -> Your wife is Katrin.
        Who is my wife? -> do not know
        Remember that the dentist is on 4 December.
        When is the dentist? -> 4 December""",
    "what ends nothing": """
        My wife is Eva. I like tea.
        My parents got divorced. I left home early.
        Don't forget that I live in Oslo.
        I always forget that I like tea.
        Who is my wife? -> Eva
        Where do I live? -> Oslo
        What do I like? -> tea""",
    "as people talk": """
        Hello, I'm Nora and I live in Trondheim with my husband Olav. -> Trondheim. Your husband is Olav.
        My dog is called Bamse :) I work as a teacher, I like skiing.
        We got divorced last month, it's been hard. -> You are divorced. | hard
        Am I divorced? -> Yes. You are divorced. | forget
        Bamse died yesterday :( -> Bamse died. | tell me
        I quit my job and moved to Bergen -> teacher, You live in Bergen
        Where do I work? -> do not know
        Do I live in Trondheim? -> do not know | Yes
        Who is Olav? -> do not know | husband""",
    "corrected, and changed twice": """
        My favourite fruit is mango. My name is Ann.
        Actually, my favorite fruit is peach now.
        Hm, no: my favourite fruit is the quince. Call me Anna.
        What is my favourite fruit? -> quince | mango, peach
        What's my name? -> Your name is Anna.""",
    "liked and then not": """
        I like tea and coffee. I hate jazz.
        I don't like coffee any more.
        What do I like? -> tea | coffee, jazz
        Do I like coffee? -> No
        Do I like cocoa? -> do not know
        I love jazz now.
        Do I like jazz? -> Yes
        What do I not like? -> coffee | jazz, tea
        I hate opera. I'm a vet.
        Do I hate opera? What do I do? -> Yes. You do not like opera., You are a vet. | coffee
        I no longer hate opera. -> over: You do not like opera.""",
    "two of a kind": """
        My brother Ole is 7. My brother Per is 9. I am 34.
        How old is Per? -> 9 | 7
        How old am I? -> 34 | 7, 9
        I turned 35 yesterday.
        How old am I? -> 35 | 34
        How old is my son? -> do not know | 7, 9""",
    "one boss, one way to be married": """
        My boss is Karin. I am single.
        My boss is Lars now. I am married now.
        Who is my boss? -> Lars | Karin
        Am I married? -> Yes
        Am I single? -> | Yes""",
    "what is not so": """
        If I lived in Rome, I would be happy.
        I want to move to Porto. I used to live in Cairo.
        Ben says I live in Kyoto. Max and I are vegans. -> | vegans
        Do I live in Lima?
        Where do I live? -> do not know | Rome, Porto, Cairo, Kyoto, Lima""",
    "off the record": """
        Don't remember this: I live in Cairo. -> keep nothing
        Where do I live? -> do not know | Cairo""",
    "the world is not known": """
        I like France.
        What is the capital of France? -> do not know | Paris
        How are you? -> built-in offline assistant""",
    "told and asked at once, in small letters": """
        hi, my sister anna lives in bergen
        i moved to Lisbon. Where do I live?-> Lisbon
        What do you know about me? -> Lisbon""",
    "archived, and found by who asks": """
        archive: The boiler was mended by Olsen in March. -> archival memory
        Who mended the boiler? -> in March.”
        Who are you? -> built-in offline assistant""",
    "a name, asked for in many ways": """
        I'm 40, I have a dog named Pixel. -> You are 40 years old. Pixel is your dog.
        what's my dog called? -> Pixel is your dog.
        What is my dog's name? -> Pixel is your dog.
        What's the name of my dog? -> Pixel is your dog.
        I live with my boyfriend Jan in Ghent. -> You live in Ghent. Your boyfriend is Jan.
        We gave Pixel away. -> over: Pixel is your dog.""",
    "remembered as it is": """
        Remember that the spare key is under the blue pot.
        Where is the spare key? -> blue pot
        Where is the cellar key? -> do not know
        Forget the spare key.
        Where is the spare key? -> do not know | pot""",
}


def lines_of(dialogue):
    for line in filter(None, map(str.strip, dialogue.splitlines())):
        words, _, rest = line.partition("->")
        musts, _, nots = rest.partition("|")
        yield words.strip(), *([part.strip() for part in side.split(",") if part.strip()] for side in (musts, nots))


@pytest.fixture(scope="module")
def app():
    return build_graph().compile(checkpointer=InMemorySaver(), store=InMemoryStore())


@pytest.mark.slow
@pytest.mark.parametrize("title", DIALOGUES)
@pytest.mark.parametrize("far", [False, True], ids=["at once", "from the store"])
async def test_it_answers_without_a_wrong_answer(app, title, far):
    """Where turns leave the buffer at once, all comes from the store and core memory."""
    context = {"campaign": f"{title} {far}", **({"buffer": "turns", "buffer_turns": 0} if far else {})}
    config = {"configurable": {"thread_id": f"{title} {far}"}}
    for words, musts, nots in lines_of(DIALOGUES[title]):
        said = {"messages": [("user", words)]}
        values = await app.ainvoke(said, config, context=context, durability="exit")
        reply = values["messages"][-1].text
        for must in musts:
            assert must in reply, f"{words} -> {reply}"
        for wrong in nots:
            assert wrong not in reply, f"{words} -> {reply}"
        assert not values["notices"], values["notices"]
        assert not [m.text for m in values["messages"] if m.type == "tool" and m.status == "error"]


async def test_what_is_over_is_over_on_its_own_branch_alone():
    talk = Companion()
    await talk.say("My husband is Tom.")
    await talk.say("We got divorced.")
    over = talk.values["timeline"][-1][0]
    await talk.history.undo(1)
    assert await talk.say("Who is my husband?") == "Your husband is Tom."
    assert talk.human == "The user's husband is Tom."
    await talk.history.go(over)
    assert await talk.say("Who is my husband?") == "I do not know."
    assert "Tom" not in talk.human
