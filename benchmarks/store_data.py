"""What the stores of `store.py` are filled with: texts of made-up words, and vectors from a table."""

from functools import lru_cache

import numpy as np
from langchain_core.embeddings import Embeddings

DIMS = 384
SYLLABLES = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "or", "is", "el", "um")]
VOCABULARY = 20_000
LATENT = 24  # directions in which the vectors vary most; independent random ones would defeat every index


class Table(Embeddings):
    """Unit vectors by the number that a text begins with, the same in every process."""

    dims = DIMS
    identity = "benchmark-table"

    def embed_documents(self, texts):
        """Look up several."""
        return [vector(int(text.split()[0])).tolist() for text in texts]

    def embed_query(self, text):
        """Look up one; once asked for, it is only handed out, as making it would push a store's data out of the CPU."""
        return numbers(int(text.split()[0]))


@lru_cache(maxsize=1)
def directions():
    return np.random.default_rng(7).standard_normal((LATENT, DIMS), dtype=np.float32)


def vector(number):
    """Unit vectors that vary in few directions, as those of texts do, and a little in all others."""
    rng = np.random.default_rng(number)
    found = rng.standard_normal(LATENT, dtype=np.float32) @ directions()
    found += rng.standard_normal(DIMS, dtype=np.float32)
    return found / np.linalg.norm(found)


@lru_cache(maxsize=1_024)
def numbers(number):
    return vector(number).tolist()


def word(rank):
    return "".join(SYLLABLES[(rank * 7919 + 13) // 170**power % 170] for power in range(3))


@lru_cache(maxsize=1)
def shares():
    """How often each word occurs: about as 1 / rank, as in natural language."""
    weights = 1 / (np.arange(VOCABULARY) + 2.7)
    return np.cumsum(weights / weights.sum())


def text(number):
    """Number and fourteen words, of which the frequent ones are few and the rare ones many."""
    ranks = np.searchsorted(shares(), np.random.default_rng(number + 10**9).random(14))
    return f"{number} " + " ".join(word(rank) for rank in ranks.tolist())


def question(number):
    """Number and the words of its text that are no stop words (the 50 most frequent), at most six."""
    ranks = np.searchsorted(shares(), np.random.default_rng(number + 10**9).random(14))
    return f"{number} " + " ".join([word(rank) for rank in ranks.tolist() if rank >= 50][:6])


def kind(number):
    """About one in ten, in every namespace."""
    return f"k{number // 1_000 % 10 if number >= 1_000 else number % 10}"


def value(number):
    return {"text": text(number), "kind": kind(number)}


def index(**more):
    return {"embed": Table(), "dims": DIMS, "fields": ["text"], **more}
