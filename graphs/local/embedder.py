"""Which embedder the memories of a data directory have, and what a person may do to have MiniLM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from questbook.memory.store.glance import read_embedder

if TYPE_CHECKING:
    from questbook.graphs.local.home import Home

AUTO: Final = "auto"
"""The setting `embeddings` if nobody names one: the file decides."""
_WORDS_ONLY = "hash"  # how the names of the embedder begin that knows spelling alone


def knows_meaning(home: Home, name: str) -> bool:
    """Whether the embedder that the memories have, or will have by the setting, knows more than spelling."""
    if name != AUTO:
        return not name.startswith(_WORDS_ONLY)
    made_with = read_embedder(home.memory)
    if made_with:
        return not made_with.startswith(_WORDS_ONLY)
    from questbook.memory.embeddings.minilm import steps_to_minilm

    return not steps_to_minilm()


def minilm_hint(home: Home, name: str, *, only_first: bool = False) -> str:
    """Return in one line what MiniLM would bring and how to get it; "" if it is in use, or an embedder was named.

    Args:
        home: The data directory.
        name: The setting `embeddings`.
        only_first: Say it only while there are no memories, so not at every start.
    """
    if name != AUTO or (only_first and home.memory.exists()) or knows_meaning(home, name):
        return ""
    from questbook.memory.embeddings.minilm import steps_to_minilm

    steps = steps_to_minilm()
    if read_embedder(home.memory):
        steps.append("start once with QUESTBOOK_EMBEDDINGS=minilm, which embeds the memories that are here again")
    return (
        "Memories are found by their words. MiniLM, a small model (91 MB) that runs on this computer, also finds what "
        f"was said in other words: {', then '.join(steps)}."
    )
