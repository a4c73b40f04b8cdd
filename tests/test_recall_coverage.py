"""What does not fit a question stays out: nothing fills the prompt for a name that nobody ever said."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.store.memory import InMemoryStore
from stores import opened

from questbook.memory.recall.names import name_words
from questbook.memory.recall.order import compare_meanings, fits
from questbook.memory.recall.query import Present, Query, WeightedText, Weights
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.timeline import remember

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from planted_campaign import campaign

HERE, FACTS = ("u", "c", "exchanges"), ("u", "c", "facts")
NOW = datetime(2026, 3, 10, 15, tzinfo=UTC)
TALE = [
    "You reach the mill. Goran asks about the road.",
    "It rains, and you wait and know no better place.",
    "Greta tells you that the password of the ferry is swordfish.",
    "You share bread near the well and talk of the weather.",
    "The keeper of the tower owes Goran nine silver marks.",
    "A dog barks behind the market. Nobody knows whose it is.",
]


@pytest.fixture(params=["faiss", "memory", "memory without vectors"])
async def store(request, tmp_path):
    with opened(request.param, tmp_path) as store:
        await remember(store, HERE, [{"player": "Go on.", "reply": said, "said_at": NOW.isoformat()} for said in TALE])
        yield store


async def replies(store, question, **settings):
    query = Query(question, present=Present(NOW), **settings)
    return [record.value["reply"] for record in await recall(store, HERE, query)]


@pytest.mark.parametrize(
    "question",
    [
        "What do I know of Zorblax?", "what do i know of zorblax", "Where does Ysmera Thornwick live?",
        "Did the Brass Vulture promise me an obelisk?", "ZORBLAX?",
    ],
)  # fmt: skip
async def test_nothing_comes_for_a_name_that_nobody_ever_said(store, question):
    assert await replies(store, question) == []
    assert len(await replies(store, question, fitting=False)) == (len(TALE))


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("What does Goran want of Zorblax?", TALE[0]),
        ("Which word did Gretta tell me for the ferry?", TALE[2]),
        ("Who owes whom silver?", TALE[4]),
        ("Zorblax, do you know the password of the ferry?", TALE[2]),
        ("I tell Zorblax the password of the ferry.", TALE[2]),
        (
            "I pull my hood over my eyes, follow the muddy path between the hedges down towards the water, and while I "
            "look out for soldiers, I try to remember which password the ferry had, and whether anyone could hear me.",
            TALE[2],
        ),
    ],
)
async def test_what_covers_enough_comes_whoever_else_is_named(store, question, reply):
    assert reply in await replies(store, question)


async def test_the_topic_of_all_records_is_not_noise():
    store = InMemoryStore()
    await remember(store, HERE, [f"The lamp of house {n} is lit." for n in range(40)])
    assert len(await recall(store, HERE, "Which colour has the lamp?")) == 12


async def test_a_record_of_the_time_that_is_asked_for_comes_whatever_it_says(store):
    assert len(await replies(store, "What did we do today?")) == len(TALE)
    assert await replies(store, "What did we do 40 days ago?") == []
    assert TALE[2] in await replies(store, "Which password had the ferry on 3 May?")


@pytest.mark.parametrize("field", ["subject", "claimed_by"])
async def test_what_is_about_somebody_or_claimed_by_them_comes_though_it_does_not_say_the_name(field):
    store = InMemoryStore()
    await remember(store, FACTS, [{"text": "Fears wasps.", field: "Oda"}, {"text": "A fair.", field: "Bo"}])
    assert [record.text for record in await recall(store, FACTS, "What of Oda?")] == ["Fears wasps."]


async def test_a_hint_brings_what_it_covers_but_fills_nothing_for_a_stranger(store):
    scene = [WeightedText("at the market", 0.3)]
    assert await replies(store, "What does Goran say?", hints=scene, weights=Weights(nearby=0))
    assert TALE[5] in await replies(store, "Goran?", hints=scene)
    assert await replies(store, "What do I know of Zorblax?", hints=scene) == []


async def test_scoring_by_recency_brings_what_is_recent_all_the_same(store):
    stream = Weights(scoring="generative_agents")
    timeline = [("main", len(TALE))]
    assert len(await replies(store, "Zorblax?", weights=stream, timeline=timeline)) == len(TALE)


class Meaning(Embeddings):
    """An embedder that knows that a blade is a sword, and that a ferry has a little to do with one."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        if "ferry" in text:
            return [0.4, 0.9]
        return [1.0, 0.0] if "blade" in text or "sword" in text else [0.0, 1.0]


async def test_other_words_may_mean_the_same_where_the_embedder_knows_but_a_stranger_stays_one():
    store = InMemoryStore(index={"dims": 2, "embed": Meaning(), "fields": ["text"]})
    await remember(store, HERE, ["The sword hangs on the wall.", "A boat."])
    assert (await recall(store, HERE, "Whose is that blade?"))[0].text == "The sword hangs on the wall."
    assert await recall(store, HERE, "What do I know of Zorblax?") == []
    with_words = InMemoryStore()
    await remember(with_words, HERE, ["The sword hangs on the wall.", "A boat."])
    assert await recall(with_words, HERE, "Whose is that blade?") == []


def test_titles_adjectives_times_and_first_words_are_no_names():
    assert name_words("King Uldric of Old Wendrell left in May, on Monday. Then Oda came, I think.") == [
        "uldric",
        "wendrell",
        "oda",
    ]
    assert name_words("WHO IS ODA?") == name_words("who is oda?") == []


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Who is Gretta?", 0), ("where's the ledgr", 1), ("Где книга?", 2), ("Что случилось с мельницей?", 3),
        ("账本在哪里?", 4), ("磨坊怎么了?", 5), ("Tansy?", 1), ("tansy", 1),
    ],
)  # fmt: skip
async def test_misspelt_words_and_other_scripts_find_what_they_mean(tmp_path, question, number):
    told = [
        "The mill burned down; Greta lost her brother there.",
        "Tansy the innkeeper hides the ledger under the floor.",
        "Танса, хозяйка трактира, прячет книгу под полом.",
        "Мельница сгорела прошлой зимой; у мельницы Грета потеряла брата.",
        "客栈老板娘唐西把账本藏在地板下面。",
        "磨坊去年冬天烧毁了,格蕾塔在那里失去了她的兄弟。",
    ]
    with opened("faiss", tmp_path) as store:
        await remember(store, HERE, told)
        alone = Weights(nearby=0)
        assert [one.text for one in await recall(store, HERE, Query(question, weights=alone))] == [told[number]]
        assert await recall(store, HERE, Query("Что я знаю о Зорблаксе?", weights=alone)) == []


async def test_what_is_far_in_meaning_does_not_come_and_what_is_between_comes_for_its_words():
    store = InMemoryStore(index={"dims": 2, "embed": Meaning(), "fields": ["text"]})
    said = ["The sword hangs on the wall.", "A smith lives by the boat.", "A smith lives by the ferry."]
    await remember(store, HERE, said)
    recalled = [record.text for record in await recall(store, HERE, "the smith of the blade?")]
    assert recalled == ["The sword hangs on the wall.", "A smith lives by the ferry."]
    assert len(await recall(store, HERE, Query("the smith of the blade?", fitting=False))) == len(said)


def test_close_and_far_are_shares_of_the_best_cosine_of_what_is_searched_for():
    cosines = np.array([[0.5, 0.25, 0.24, 0.1, 0.09, np.nan], [0.9] * 6])
    close, far = compare_meanings(cosines, [1.0, 0.0])
    assert (close.tolist(), far.tolist()) == ([True, True, *[False] * 4], [*[False] * 4, True, False])


@pytest.mark.slow
async def test_at_most_a_quarter_of_the_budget_is_filled_over_what_was_never_told(tmp_path):
    (_, told, _, present, _, timeline), budget, filled = campaign(0, 200), 800, []
    with opened("faiss", tmp_path) as store:
        await remember(store, HERE, told, timeline=timeline)
        for name in ("Zorblax", "Ysmera Thornwick", "Old Wendrell", "the Brass Vulture"):
            for question in ("Who is {}?", "What is the password of {}?", "What did {} promise me at the mill?"):
                query = Query(question.format(name), timeline=timeline, present=present, limit=24, budget=budget)
                records = await recall(store, HERE, query)
                filled.append(sum(count_tokens_approximately([record.text]) for record in records) / budget)
    assert sum(filled) / len(filled) <= 0.25


def test_texts_fit_by_their_words_alone_and_the_more_of_them_for_a_stranger():
    assert fits("Where is the lamp of Gretta?", ["Greta has a lamp.", "It rains."]) == [True, False]
    assert fits("Does Oswin own lamps, boats and mills?", ["A lamp burns."]) == [False], "a third, and no Oswin"
    assert fits("Did Oswin light lamps on Monday, Tuesday or Friday?", ["A lamp burns."]) == [False], "days are words"
    assert fits("Who owns lamps, boats and mills?", ["A lamp burns."]) == [True]
    assert fits("What of Tim?", ["Time flies."]) == [False], "too short to be misspelt"
    assert fits("Where?", []) == []


MAIL = """Dear all, thank you for joining the quarterly planning workshop yesterday afternoon. We agreed that the
northern warehouse needs new shelves before winter, that drivers should receive updated tablets, and that
customers in Bergen expect faster deliveries. Marketing promised a brochure about organic apples, while
finance asked everybody to submit receipts until Thursday. The roof above hall seven leaks again, so please
move cardboard boxes away from there. Finally, congratulations to Mira, whose daughter won the regional
chess tournament on Sunday. Parking spaces near the entrance stay reserved for visitors, bicycles belong
behind the canteen. Kind regards, Henrik."""


@pytest.mark.parametrize("message", [f"{{}}\n\n{MAIL}", f"{MAIL}\n\n{{}}", f"{MAIL} {{}}"])
async def test_a_question_before_or_after_a_text_that_was_pasted_brings_its_answer(store, message):
    told = ["My dentist is called Doctor Ravndal."] + [f"Note {n} about nothing in particular." for n in range(30)]
    await remember(store, FACTS, told)
    found = await recall(store, FACTS, Query(message.format("What is my dentist called?"), limit=3))
    assert [record.text for record in found][:1] == told[:1]


async def test_of_a_long_message_a_greeting_and_a_thanks_bring_nothing(store):
    for text in ("Hello! Nice to see you.", "Cheers to the harvest feast!"):
        await store.aput(FACTS, text, {"text": text, "kind": "note"})
    pasted = " ".join(f"word{n} item{n}" for n in range(30))
    found = await recall(store, FACTS, Query(f"Hello! {pasted}. Thanks, cheers", limit=3))
    assert [record.text for record in found] == []
