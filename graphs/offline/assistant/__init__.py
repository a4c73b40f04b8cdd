"""The offline assistant: a chat model made of a few rules, with no language model in it."""

from questbook.graphs.offline.assistant.model import OfflineAssistant

__all__ = ["OfflineAssistant"]
