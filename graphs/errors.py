"""What can go wrong between a person and a graph; each message is one line for a person.

QuestbookError
├── SettingsError     a flag, an environment variable or a field of `Context` is wrong
├── InputError        what the player sent cannot be played
├── ModelError        the chat model refused, failed, or said nothing
│   └── FatalModelError  and will again
├── UnreadableError   what is kept of a campaign cannot be read
├── HistoryError      there is no such place in the game to go to
├── ForgettingError   something could not be forgotten, or not everywhere
└── PastUnknownError  the store could not say whether the campaign has a past

What trying again cannot help is a RuntimeError or ValueError, too: LangGraph retries neither, and its server tells what
they say.
"""

from __future__ import annotations


class QuestbookError(Exception):
    """Base of everything that graphs raise on purpose."""


class SettingsError(QuestbookError, RuntimeError):
    """A setting is wrong; the message names it, its value, and what is allowed."""


class InputError(QuestbookError, ValueError):
    """What the player sent cannot be played; the state stands as it was."""


class UnreadableError(QuestbookError):
    """What is kept of a campaign cannot be read; the message says what, and it was left as it is."""


class HistoryError(QuestbookError):
    """There is no such place in the game; the message says what there is. Nothing was changed."""


class ForgettingError(QuestbookError):
    """Something could not be forgotten, or not everywhere; the message says what was done and what was not."""


class PastUnknownError(QuestbookError):
    """The store could not say whether the campaign has a past, so a new thread of it cannot begin."""


class ModelError(QuestbookError):
    """The chat model refused, failed or said nothing. The player's message is kept; the turn can be retried.

    Attributes:
        fatal: Whether trying again as it is cannot help.
    """

    fatal = False


class FatalModelError(ModelError, RuntimeError):
    """Trying again as it is cannot help: a wrong key, an unknown model, a request that the provider rejects."""

    fatal = True
