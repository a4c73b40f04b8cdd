"""The offline assistant: a chat model made of a few rules, with no language model in it."""

from graphs.offline_assistant.model import OfflineAssistant

__all__ = ["OfflineAssistant"]
