"""What changed: whether a prompt has what holds now, and not what held before, when a person tells of changes.

    python benchmarks/changes.py              a minute; with MiniLM too where its weights are at hand
    python benchmarks/changes.py --prompts    print the memory section of each question, to read

A person tells an assistant 60 things in 12 threads, a fortnight of each other, in which 16 things change: job, city,
car, diet … Then twenty questions are asked, each in a new thread: the 16, and four on what did not change. The agent is
one of `create_agent` with our middleware at its defaults and notes; its note-taker is a table that notes exactly what
each message says, each time in words of its own for the attribute (job, then occupation; favorite, then favourite), or
without an attribute. Replies are one line.

Counted are prompts whose memory section has the answer alone, beside the outdated one, the outdated one alone, or
neither, and the tokens of that section. Beside ours: the same facts as one item a slot in an InMemoryStore (key:
subject and attribute as noted); a search by the same vectors takes the best eight. LangMem's manager is not
among them: it is a language model that decides which memory to change, and a table in its place would decide nothing.
Each figure is one line `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from langchain.agents import create_agent  # noqa: E402
from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import AIMessage, SystemMessage  # noqa: E402
from langchain_core.outputs import ChatGeneration, ChatResult  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402
from langgraph.store.memory import InMemoryStore  # noqa: E402
from pydantic import Field  # noqa: E402

from questbook import FactNotes, FaissStore, LastTurns, TimelineMemoryMiddleware  # noqa: E402
from questbook.memory.embeddings.embedders import HashEmbeddings  # noqa: E402
from questbook.memory.embeddings.minilm import SHA256, minilm_directory  # noqa: E402
from questbook.memory.text.words import count_tokens  # noqa: E402


class Change(NamedTuple):
    """A thing that changes: what is said of it, first and later, and what a question for it must and must not find."""

    before: str
    attribute: str
    old: str
    after: str
    later_attribute: str
    new: str
    question: str


CHANGES = [
    Change("I work as a nurse at the city hospital.", "job", "nurse",
           "Big news: I have started as a flight attendant.", "occupation", "flight attendant", "What is my job?"),
    Change("I live in Oslo, near the harbour.", "home", "Oslo",
           "We have moved, I live in Trondheim now.", "city", "Trondheim", "Which city do I live in?"),
    Change("My girlfriend Mathilde is coming for dinner.", "girlfriend", "Mathilde",
           "Henrike and I are together now.", "partner", "Henrike", "Who is my partner?"),
    Change("I drive an old Saab.", "car", "Saab",
           "I picked up my new Polestar today.", "vehicle", "Polestar", "What car do I drive?"),
    Change("I eat everything, but mostly I am vegetarian.", "diet", "vegetarian",
           "Now I am pescatarian, I missed fish too much.", "eating habits", "pescatarian", "What is my diet?"),
    Change("My phone is a Fairphone.", "phone", "Fairphone",
           "I bought a Pixel at last.", "smartphone", "Pixel", "Which phone do I have?"),
    Change("My gym day is Tuesday.", "gym day", "Tuesday",
           "I train on Thursdays from now on.", "workout day", "Thursday", "On which day do I go to the gym?"),
    Change("My favorite fruit is mango.", "favorite fruit", "mango",
           "My favourite fruit is the lychee by now.", "favourite fruit", "lychee", "What is my favourite fruit?"),
    Change("My favourite colour is green.", "favourite colour", "green",
           "These days my favorite color is turquoise.", "favorite color", "turquoise", "What is my favorite color?"),
    Change("My dentist is Dr. Amundsen.", "dentist", "Amundsen",
           "I go to Dr. Birkeland for my teeth now.", "dentist", "Birkeland", "Who is my dentist?"),
    Change("My boss is called Ragnhild.", "boss", "Ragnhild",
           "Torvald is my manager now.", "manager", "Torvald", "Who is my boss?"),
    Change("My email is sol@example.org.", "email", "sol@example.org",
           "Write to luna@example.net from now on.", "email address", "luna@example.net", "What is my email address?"),
    Change("I go to bed at ten.", "bedtime", "ten",
           "I stay up until midnight these days.", "bedtime", "midnight", "When do I go to bed?"),
    Change("My favourite band is Kaizers.", "favourite band", "Kaizers",
           "Highasakite is my favourite band by now.", "favorite band", "Highasakite", "What is my favourite band?"),
    Change("I am with the bank DNB.", "bank", "DNB",
           "My account is at Sparebanken now.", "bank", "Sparebanken", "Which bank am I with?"),
    Change("I work for Helios on weekends.", "", "Helios",
           "I have left there, I work for Nimbus now.", "", "Nimbus", "Whom do I work for on weekends?"),
]  # fmt: skip
SENTENCES = {"Helios": "The user works for Helios.", "Nimbus": "The user works for Nimbus."}  # without an attribute
STABLE = [
    ("My sister Anna lives in Bergen.", ("Anna", "home", "Bergen"), "Where does my sister Anna live?"),
    ("I am allergic to walnuts.", ("the user", "allergy", "walnuts"), "What am I allergic to?"),
    ("My cat is called Miso.", ("the user", "cat", "Miso"), "What is my cat called?"),
    ("I was born on 3 May 1985.", ("the user", "birthday", "3 May 1985"), "When is my birthday?"),
]
CHATTER = """\
What is a good way to clean a wooden table?
Can you explain how tides work?
It rained all day, and I read on the sofa.
How long does rice take to cook?
Thanks, that helped a lot.
I watched a documentary about octopuses last night.
What does the word serendipity mean?
The neighbours had a party until two.
Give me three ideas for a birthday card.
How do I get red wine out of a shirt?
We took a long walk by the river.
Is it true that bees can count?
I burnt the soup again.
What is the tallest tree in the world?
My back hurts from all the boxes.
Tell me a joke about trains.
The film was too long, but the music was fine.
How many litres are a gallon?
I could not sleep because of the wind.
What is the difference between a fjord and a bay?
The bread came out well this time.
Why is the sky red in the evening?
I lost an umbrella on the tram.
Which herbs grow well in shade?""".splitlines()
THREADS, EACH = 12, 5


def script() -> list[str]:
    """Return the 60 messages: first what holds at the beginning, then the changes, with chatter between."""
    chatter = iter(CHATTER)
    firsts = [change.before for change in CHANGES] + [text for text, _, _ in STABLE]
    told = []
    for number, text in enumerate([*firsts, *(change.after for change in CHANGES)]):
        told += [text] + ([next(chatter)] if number % 3 != 2 else [])
    return told


def notes() -> dict[str, dict[str, Any]]:
    """Return what the note-taker notes of each message."""
    table = {}
    for change in CHANGES:
        for text, attribute, value in (
            (change.before, change.attribute, change.old),
            (change.after, change.later_attribute, change.new),
        ):
            sentence = SENTENCES.get(value, f"The user's {attribute} is {value}.")
            table[text] = {"text": sentence, "subject": "the user", "attribute": attribute, "value": value}
            if not attribute:
                del table[text]["value"]
    for text, (subject, attribute, value), _ in STABLE:
        whose = "Anna's" if subject == "Anna" else "The user's"
        table[text] = {
            "text": f"{whose} {attribute} is {value}.", "subject": subject, "attribute": attribute, "value": value
        }  # fmt: skip
    return {text: fact | {"kind": "trait"} for text, fact in table.items()}


QUESTIONS = [
    *((change.question, change.new, change.old) for change in CHANGES),
    *((question, value, "") for _, (_, _, value), question in STABLE),
]


class Noted(BaseChatModel):
    """Replies with a line; as a note-taker it notes what the table has of each message."""

    table: dict[str, dict[str, Any]] = Field(default_factory=notes)
    noting: bool = False
    systems: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "noted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Return the note-taker where the tool is that of facts."""
        named = [tool["function"]["name"] if isinstance(tool, dict) else tool.name for tool in tools]
        return Noted.model_construct(table=self.table, noting=named == ["Facts"], systems=self.systems)

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        if not self.noting:
            first = messages[0]
            self.systems.append(first.text if isinstance(first, SystemMessage) else "")
            return ChatResult(generations=[ChatGeneration(message=AIMessage("Thank you, noted."))])
        shown = "\n".join(message.text for message in messages)
        facts = [fact for text, fact in self.table.items() if json.dumps(text)[1:-1] in shown]
        calls = [{"name": "Facts", "args": {"facts": facts}, "id": "facts", "type": "tool_call"}] if facts else []
        return ChatResult(
            generations=[ChatGeneration(message=AIMessage("" if facts else "no change", tool_calls=calls))]
        )


async def ours(embed: Any) -> list[str]:
    """Return the memory section of each question's prompt, with our middleware."""
    model = Noted()
    with (
        tempfile.TemporaryDirectory() as home,
        FaissStore(
            Path(home) / "store.db", index={"embed": embed, "dims": dims_of(embed), "fields": ["text"]}
        ) as store,
    ):
        agent = create_agent(
            model,
            [],
            system_prompt="Be brief.",
            middleware=[TimelineMemoryMiddleware(user="ann", facts=FactNotes(), buffer=LastTurns(2))],
            checkpointer=InMemorySaver(),
            store=store,
        )

        async def say(words: str, thread: str) -> None:
            await agent.ainvoke({"messages": [("user", words)]}, {"configurable": {"thread_id": thread}})

        for number, text in enumerate(script()):
            await say(text, f"talk-{number // EACH}")
        asked = []
        for number, (question, _, _) in enumerate(QUESTIONS):
            await say(question, f"question-{number}")
            asked.append(model.systems[-1].partition("<memories>\n")[2].partition("\n</memories>")[0])
        return asked


async def one_item_a_slot(embed: Any) -> list[str]:
    """Return the eight best items for each question, of a store with an item for each attribute as it was noted."""
    store = InMemoryStore(index={"embed": embed, "dims": dims_of(embed), "fields": ["text"]})
    table = notes()
    for text in script():
        if fact := table.get(text):
            key = f"{fact['subject']}|{fact['attribute'] or fact['text']}"
            await store.aput(("ann",), key, {"text": fact["text"]})
    found = [await store.asearch(("ann",), query=question, limit=8) for question, _, _ in QUESTIONS]
    return ["\n".join(item.value["text"] for item in items) for items in found]


def dims_of(embed: Any) -> int:
    """Return the dimensions of an embedder's vectors."""
    return len(embed.embed_query("a"))


def report(name: str, sections: Sequence[str]) -> tuple[int, int, int, int, int]:
    """Count what prompts have, and print it; each `alone, beside, outdated alone, neither, tokens`."""
    counts = [0, 0, 0, 0]
    for section, (_, new, old) in zip(sections, QUESTIONS, strict=True):
        has_new, has_old = (
            bool(word) and re.search(rf"\b{re.escape(word)}", section) is not None for word in (new, old)
        )
        counts[0 if has_new and not has_old else 1 if has_new else 2 if has_old else 3] += 1
    tokens = round(sum(map(count_tokens, sections)) / len(sections))
    print(f"| {name} | {' | '.join(map(str, counts))} | {tokens} |")
    return (*counts, tokens)  # type: ignore[return-value]


async def measure(*, prompts: bool) -> None:
    """Print the table, then the figures."""
    assert len(script()) == THREADS * EACH, len(script())
    embedders: dict[str, Any] = {"hash": HashEmbeddings()}
    if all((minilm_directory() / name).is_file() for name in SHA256):
        from questbook.memory.embeddings.minilm import MiniLMEmbeddings

        embedders["minilm"] = MiniLMEmbeddings()
    print("| of 20 questions | alone | beside the outdated | outdated alone | neither | tokens |")
    print("|---|---|---|---|---|---|")
    figures = {}
    for name, embed in embedders.items():
        sections = await ours(embed)
        figures[f"ours_{name}"] = report(f"ours, {name}", sections)
        figures[f"one_item_a_slot_{name}"] = report(f"one item a slot, {name}", await one_item_a_slot(embed))
        if prompts:
            for section, (question, new, old) in zip(sections, QUESTIONS, strict=True):
                print(f"\n## {question} ({new}, not {old or '–'})\n{section}")
    print()
    kinds = ("alone", "beside", "outdated_alone", "neither")
    for name, counts in figures.items():
        for kind, count in zip(kinds, counts, strict=False):
            print(f"changes_{kind}_{name}: {count} questions")
        print(f"changes_memory_section_{name}: {counts[-1]} tokens")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--prompts", action="store_true", help="print the memory section of each question")
    asyncio.run(measure(prompts=parser.parse_args().prompts))
