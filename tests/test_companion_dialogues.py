"""Dialogues of MemoryScope, of "facts change" and of Letta, offline: what was told comes back, and nothing else.

A dialogue is what the person says, line by line; a line with an arrow also says what must be in the answer, and behind
a bar what must not be in it.
"""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from more_dialogues import MORE

from questbook.graphs.companion.graph import build_graph
from questbook.memory.embeddings.embedders import HashEmbeddings

DIALOGUES = {
    "whose home": """
        I live in Oslo.
        My sister Anna lives in Bergen.
        Where does Anna live? -> Anna lives in Bergen | Oslo
        Where do I live? -> You live in Oslo | Bergen
        Where does my sister live? -> Bergen | Oslo
        Who lives in Bergen? -> Anna | You
        Where does Tom live? -> do not know | Oslo, Bergen""",
    "not any more": """
        I live in Oslo.
        I don't live in Oslo any more.
        Where do I live? -> do not know | You live in Oslo
        Do I live in Oslo? -> No
        I have moved to Bergen.
        Where do I live now? -> You live in Bergen. | Oslo""",
    "a greeting with a name": """
        Hey, I'm Vasily. How are you? -> Vasily, well
        What is my name? -> Your name is Vasily.
        Who am I? -> Vasily""",
    "a favourite that changed twice": """
        My favourite fruit is mango.
        Actually, my favorite fruit is peach now.
        Hm, no: my favourite fruit is the quince.
        What is my favourite fruit? -> quince | mango, peach
        Which fruit do I like best? -> quince | mango, peach""",
    "a name that was corrected": """
        My name is Ann.
        Call me Anna.
        What's my name? -> Your name is Anna.""",
    "a home that changed with a job": """
        I live in Paris and I work as a baker.
        I've moved to London last week. I work at the Ritz now.
        Where do I live? -> London | Paris
        Where do I work? -> Ritz
        What do I do? -> baker""",
    "liked and then not": """
        I like tea and coffee.
        I don't like coffee any more.
        What do I like? -> tea | coffee
        Do I like coffee? -> No
        Do I like cocoa? -> do not know""",
    "hated and then liked": """
        I hate jazz.
        I love jazz now.
        Do I like jazz? -> Yes
        What do I hate? -> do not know | jazz""",
    "an allergy": """
        I'm allergic to peanuts.
        My brother is allergic to cats.
        What am I allergic to? -> peanuts | cats
        Am I allergic to milk? -> do not know
        What is my brother allergic to? -> cats | peanuts""",
    "pets by name": """
        I have a cat named Miso and a dog.
        What is my cat called? -> Miso
        Do I have a cat? -> Miso
        Do I have a dog? -> Yes
        Do I have a horse? -> do not know""",
    "two sisters": """
        My sister Anna lives in Bergen. My sister Berit lives in Oslo.
        Where does Berit live? -> Oslo | Bergen
        Where does Anna live? -> Bergen | Oslo
        Where does my sister live? -> Anna lives in Bergen, Berit lives in Oslo""",
    "she": """
        My boss Karin works at the town hall.
        She lives in Trondheim.
        Where does she live? -> Karin lives in Trondheim.
        Where do I live? -> do not know | Trondheim""",
    "a partner of the past (Letta)": """
        Hi, I'm Chad and my girlfriend is Eva.
        Who is my girlfriend? -> Eva
        I broke up with my girlfriend.
        Who is my girlfriend? -> do not know | Eva is your girlfriend""",
    "hobbies and work (MemoryScope)": """
        My hobby is playing the piano.
        I work in Hangzhou.
        What is my hobby? -> piano
        Where do I work? -> Hangzhou
        What is my brother's hobby? -> do not know | piano""",
    "a birthday": """
        My birthday is on 3 May.
        When is my birthday? -> 3 May
        When is Anna's birthday? -> do not know | 3 May""",
    "ages": """
        I am 34 years old. My daughter is 7.
        How old am I? -> 34 | 7
        How old is my daughter? -> 7 | 34
        How old is my son? -> do not know | 7""",
    "what was only imagined": """
        If I lived in Rome, I would be happy.
        Maybe I am moving to Madrid.
        Where do I live? -> do not know | Rome, Madrid""",
    "what others say": """
        Ben says I live in Kyoto.
        Where do I live? -> do not know | You live in Kyoto""",
    "a question is no statement": """
        Do I live in Lima?
        Where do I live? -> do not know | You live in Lima""",
    "forgotten on request": """
        I like tea.
        Forget that I like tea.
        What do I like? -> do not know | tea
        Do I like tea? -> do not know""",
    "off the record": """
        Don't remember this: I live in Cairo.
        Where do I live? -> do not know | Cairo""",
    "the world is not known": """
        I like France.
        What is the capital of France? -> do not know | Paris
        Who is the president of France? -> do not know
        How are you? -> well""",
    "a job that ended": """
        I work as a nurse at Saint Olav.
        I quit my job.
        What do I do? -> | You work as a nurse.
        Where do I work? -> | You work at Saint Olav.""",
    "relatives of relatives": """
        Anna's husband Ole works at Equinor.
        Where does Ole work? -> Equinor
        Who is Ole? -> Anna's husband
        Where do I work? -> do not know | Equinor""",
    "small letters": """
        hi, my sister anna lives in bergen
        where does anna live? -> bergen
        i live in oslo
        where do i live? -> oslo | bergen""",
    "told and asked at once": """
        I moved to Lisbon. Where do I live?-> Lisbon
        My car is red, my bike is green.
        What colour is my bike? -> green | red
        What do you know about me? -> Lisbon""",
    "a family": """
        i'm maria, 31, from porto
        My husband's name is Rui. We have two kids, Tomas and Ines.
        Tomas is 7 and Ines is 4.
        What are my kids called? -> Tomas, Ines | Rui
        How old is Ines? -> 4 | 7, 31
        Rui started a new job at Bosch.
        Where does Rui work? -> Bosch
        What do you know about me? -> Maria, 31""",
    "remembered as it is": """
        Remember that the spare key is under the blue pot.
        Where is the spare key? -> blue pot
        Where is the cellar key? -> | Lisbon""",
}


def lines_of(dialogue):
    for line in filter(None, map(str.strip, dialogue.splitlines())):
        words, _, rest = line.partition("->")
        musts, _, nots = rest.partition("|")
        yield words.strip(), *([part.strip() for part in side.split(",") if part.strip()] for side in (musts, nots))


@pytest.fixture(scope="module")
def talks():
    """The companion over a store without vectors, and over one with them."""
    stores = InMemoryStore(), InMemoryStore(index={"dims": 512, "embed": HashEmbeddings(), "fields": ["text"]})
    return [build_graph().compile(checkpointer=InMemorySaver(), store=store) for store in stores]


_QUICK = 14  # dialogues of the quick suite, the first ones
_CASES = [
    pytest.param(*item, id=item[0], marks=[pytest.mark.slow] if number >= _QUICK else [])
    for number, item in enumerate((DIALOGUES | MORE).items())
]


@pytest.mark.parametrize(("title", "dialogue"), _CASES)
@pytest.mark.parametrize("far", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["at once", "from the store"])
async def test_it_answers_without_a_wrong_answer(talks, title, dialogue, far):
    """Where turns leave the buffer at once, all comes from the store and core memory."""
    context = {"campaign": title, **({"buffer": "turns", "buffer_turns": 0} if far else {})}
    config = {"configurable": {"thread_id": title}}
    for words, musts, nots in lines_of(dialogue):
        said = {"messages": [("user", words)]}
        values = await talks[far].ainvoke(said, config, context=context, durability="exit")
        reply = values["messages"][-1].text
        if far and words.lower().startswith(("where does she", "she ")):
            continue  # whom "she" means is said in the conversation alone
        for must in musts:
            assert must in reply, f"{words} -> {reply}"
        for wrong in nots:
            assert wrong not in reply, f"{words} -> {reply}"
        assert not values["notices"], values["notices"]
