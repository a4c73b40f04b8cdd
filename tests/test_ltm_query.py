"""What is asked of the embedder, and what is made of its answer: any embedder, the cosine, the message alone."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from companion_thread import Companion
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from scripted import say

from questbook import FaissStore
from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.memories import recall_messages, remember_message

ROOT = Path(__file__).parent.parent
ALL = LtmConfig.of(
    {"ltm_writes": {"min_message_length": 0}, "ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 50}}
)


class Lengths(Embeddings):
    """A text that begins with two numbers is that vector; what it was asked with is kept."""

    asked: list[str] = []

    def embed_documents(self, texts):
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        self.asked.append(text)
        return self._vector(text)

    @staticmethod
    def _vector(text):
        first, second, *_ = [*text.split(), "1", "1"]
        return [float(first), float(second)] if first.isdecimal() and second.isdecimal() else [1.0, 0.0]


@pytest.fixture(params=["FaissStore", "InMemoryStore"])
async def store(request, tmp_path):
    index = {"dims": 2, "embed": Lengths(), "fields": ["text"]}
    if request.param == "InMemoryStore":
        yield InMemoryStore(index=index)
    else:
        async with FaissStore.open(tmp_path / "memory.db", index) as opened:
            yield opened


async def test_the_length_of_a_vector_does_not_count(store):
    for text in ("300 400 far out", "1 0 near", "0 9 across"):
        await remember_message(store, "Miku", "Anon", text, ALL)
    found = await recall_messages(store, "Miku", "2 0 the message", ALL)
    assert [(memory.text, round(memory.distance, 5)) for memory in found] == [
        ("1 0 near", 0.0),
        ("300 400 far out", 0.4),
        ("0 9 across", 1.0),
    ]


async def test_the_embedder_is_asked_with_the_message_alone_its_line_breaks_alike(store):
    await remember_message(store, "Miku", "Anon", "1 0 near", ALL)
    Lengths.asked.clear()
    for message in ("  3 4 a\nb \r\n", "3 4 a\r\n\r\n\r\n\r\nb", "3 4 a\n\nb"):
        await recall_messages(store, "Miku", message, ALL, session="now", in_prompt=["something else"])
    assert set(Lengths.asked) == {"3 4 a\n\nb"}


async def test_in_a_talk_it_is_asked_with_what_the_person_says_now(model, store):
    settings = {"ltm_reads": {"max_cosine_distance": 2.0}, "ltm_writes": {"min_message_length": 0}}
    talk = Companion(model, store=store, ltm_config=settings)
    await talk.say("1 0 first", say("5 5 said"))
    Lengths.asked.clear()
    await talk.say("0 1 second")
    assert set(Lengths.asked) == {"0 1 second"}


_WRITER = """
import asyncio, sys
from questbook import FaissStore
from questbook.memory.ltm.memories import remember_message
from questbook.memory.ltm.config import LtmConfig

async def main(path, name):
    config = LtmConfig.of({"ltm_writes": {"min_message_length": 0}})
    async with FaissStore.open(path) as store:
        for number in range(15):
            await remember_message(store, "Miku", name, f"Message {number} of {name}.", config)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
async def test_two_processes_that_write_at_once_lose_nothing(tmp_path):
    path = tmp_path / "memory.db"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name], env=environment) for name in ("Ada", "Bo")
    ]
    assert [await asyncio.to_thread(writer.wait, 60) for writer in writers] == [0, 0]
    async with FaissStore.open(path) as store:
        found = {memory.text for memory in await recall_messages(store, "Miku", "message", ALL)}
    assert found == {f"Message {number} of {name}." for number in range(15) for name in ("Ada", "Bo")}
