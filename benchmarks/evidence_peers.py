"""Other memories of a conversation, each as its documentation shows it, filled with the same messages.

- the history: its last tokens, as `trim_messages` leaves them, but to the letter.
- passages: messages cut at 80 words, in the order of BM25 and cosine, each divided by its largest, one to one.
- LangGraph's semantic search: each message is an item of its InMemoryStore.
- LangMem's search tool over the same messages, with its ten hits, as the tool prints them.

What comes is taken in its order, each that still fits into the tokens.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from evidence_measure import Message
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from questbook.memory.text.words import STOP_WORDS, split_words

try:
    from questbook.memory.text.words import stem_words
except ImportError:  # a checkout of 0.2, which is measured beside this one
    from questbook.memory.text.stems import stem_words  # type: ignore[no-redef, import-not-found]

PASSAGE = 80  # words
_MOST = 100  # hits that a search may bring
_K1, _B = 1.2, 0.75
_SPACE = ("ann", "messages")


class Found(NamedTuple):
    """What a memory brings for a question: texts of the prompt, and their tokens."""

    texts: list[str]
    tokens: int


class Peer(Protocol):
    """A memory that holds a conversation."""

    def find(self, question: str, tokens: int, shown: Collection[int | str]) -> Found:
        """Return what it brings into a prompt that has the messages of the ids `shown` already."""

    def order(self, question: str) -> list[int | str]:
        """Return ids of messages, best first; none if it puts nothing in order."""


class _History:
    def __init__(self, messages: Sequence[Message], _: Embeddings) -> None:
        self._messages = messages

    def find(self, _: str, tokens: int, shown: Collection[int | str]) -> Found:
        text = "".join(_line(one) for one in self._messages if one.id not in shown)[-4 * tokens :]
        return Found([text], -(-len(text) // 4))

    def order(self, _: str) -> list[int | str]:
        return []


class _Passages:
    def __init__(self, messages: Sequence[Message], embed: Embeddings) -> None:
        self._passages = [(one, text) for one in messages for text in _cut(one.text)]
        texts = [text for _, text in self._passages]
        self._counts = [Counter(_stems(text)) for text in texts]
        self._sizes = np.array([sum(count.values()) for count in self._counts])
        self._known_by = Counter(word for count in self._counts for word in count)
        self._embed, self._vectors = embed, _unit(np.array(embed.embed_documents(texts)))

    def find(self, question: str, tokens: int, shown: Collection[int | str]) -> Found:
        ranked = [(one, text) for one, text in self._ranked(question) if one.id not in shown]
        return _fill(((_line(one._replace(text=text)), text) for one, text in ranked), tokens)

    def order(self, question: str) -> list[int | str]:
        return list(dict.fromkeys(one.id for one, _ in self._ranked(question)))

    def _ranked(self, question: str) -> list[tuple[Message, str]]:
        words, every = set(_stems(question)), len(self._counts)
        asked = [word for word in words if word in self._known_by]
        counts = np.array([[count[word] for word in asked] for count in self._counts], float).reshape(every, len(asked))
        idf = [math.log(1 + (every - self._known_by[word] + 0.5) / (self._known_by[word] + 0.5)) for word in asked]
        norm = _K1 * (1 - _B + _B * self._sizes / self._sizes.mean())
        bm25 = (counts * (_K1 + 1) / (counts + norm[:, None])) @ np.array(idf)
        cosines = np.maximum(self._vectors @ _unit(np.array([self._embed.embed_query(question)]))[0], 0)
        scores = _by_largest(bm25) + _by_largest(cosines)
        return [self._passages[n] for n in np.argsort(-scores, kind="stable").tolist()]


class _Search:
    """LangGraph's."""

    def __init__(self, messages: Sequence[Message], embed: Embeddings) -> None:
        size = len(embed.embed_query("size"))
        self._store = InMemoryStore(index={"embed": embed, "dims": size, "fields": ["content"]})
        self._messages = {str(one.id): one for one in messages}
        self._known = dict[str, list[Message]]()
        for key, one in self._messages.items():  # in one batch it refuses two messages of the same words
            self._store.put(_SPACE, key, {"content": one.text})

    def find(self, question: str, tokens: int, shown: Collection[int | str]) -> Found:
        return _fill(((self._print(one), one.text) for one in self._ranked(question) if one.id not in shown), tokens)

    def order(self, question: str) -> list[int | str]:
        return [one.id for one in self._ranked(question)]

    def _ranked(self, question: str) -> list[Message]:
        if question not in self._known:
            self._known[question] = [self._messages[key] for key in self._keys(question)]
        return self._known[question]

    def _print(self, message: Message) -> str:
        return _line(message)

    def _keys(self, question: str) -> list[str]:
        return [item.key for item in self._store.search(_SPACE, query=question, limit=_MOST)]


class _LangMem(_Search):
    def __init__(self, messages: Sequence[Message], embed: Embeddings) -> None:
        from langmem import create_search_memory_tool  # type: ignore[import-not-found]

        super().__init__(messages, embed)
        self._printed = dict[str, str]()  # the latest; only its score depends on the question
        self._tool: Any = create_search_memory_tool(_SPACE, store=self._store)

    def _print(self, message: Message) -> str:
        return self._printed[str(message.id)]

    def _keys(self, question: str) -> list[str]:
        items = json.loads(self._tool.invoke({"query": question}))
        self._printed |= {item["key"]: json.dumps(item, ensure_ascii=False) for item in items}
        return [item["key"] for item in items]


def peers() -> dict[str, type[Peer]]:
    """Return the memories by name; LangMem only if it is installed."""
    langmem = {"LangMem's search tool": _LangMem} if importlib.util.find_spec("langmem") else {}
    plain = {"the history's end": _History, f"passages of {PASSAGE} words": _Passages, "LangGraph's search": _Search}
    return {**plain, **langmem}


def _fill(lines: Iterable[tuple[str, str]], tokens: int) -> Found:
    """Take what fits, of what is printed and what it says."""
    texts, left = [], tokens
    for line, text in lines:
        if (cost := -(-len(line) // 4)) <= left:
            texts.append(text)
            left -= cost
    return Found(texts, tokens - left)


def _line(message: Message) -> str:
    return f"{'user' if message.is_person else 'assistant'}: {message.text}\n"


def _cut(text: str) -> list[str]:
    starts = [word.start() for word in re.finditer(r"\S+", text)][::PASSAGE]
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]


def _stems(text: str) -> list[str]:
    return stem_words([word for word in split_words(text) if word not in STOP_WORDS])


def _unit(vectors: Any) -> Any:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _by_largest(scores: Any) -> Any:
    return scores / largest if (largest := scores.max(initial=0)) > 0 else scores
