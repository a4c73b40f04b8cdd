"""The offline storyteller: a chat model made of tales, tables and dice, with no language model in it."""

from questbook.graphs.offline.storyteller.model import OfflineStoryteller

__all__ = ["OfflineStoryteller"]
