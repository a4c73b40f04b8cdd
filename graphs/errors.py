"""Errors that graphs raise on purpose. Each message is one line that a person can read.

Errors that do not go away by trying again are also a RuntimeError or ValueError: LangGraph does not retry those, and
its server passes their message on.
"""


class QuestbookError(Exception):
    """Base of all errors that graphs raise on purpose."""


class SettingsError(QuestbookError, RuntimeError):
    """A setting is wrong; the message names it, its value, and what is allowed."""


class InputError(QuestbookError, ValueError):
    """The player's message cannot be played; nothing but the message itself is in the state."""


class IdentityError(QuestbookError):
    """Nobody is named, or the token does not hold (`status` 401); or it cannot be checked now (503)."""

    def __init__(self, text: str, status: int = 401) -> None:
        super().__init__(text)
        self.status = status


class UnreadableError(QuestbookError):
    """A saved campaign cannot be read; the message says what. Nothing was changed."""


class HistoryError(QuestbookError):
    """There is no such turn, branch or line; the message says what there is. Nothing was changed."""


class ForgettingError(QuestbookError):
    """Something could not be forgotten, or not everywhere; the message says what was done and what was not."""


class PruningError(QuestbookError):
    """Checkpoints could not be pruned; the message says why. Threads that were pruned before stay so."""


class PastUnknownError(QuestbookError):
    """The store could not say whether the campaign has a past, so a new thread of it cannot begin."""


class ModelError(QuestbookError):
    """The chat model refused, failed or said nothing. The player's message is kept, and the turn can be retried."""

    fatal = False  # whether the same request would fail again


class FatalModelError(ModelError, RuntimeError):
    """The same request would fail again: a wrong key, an unknown model, a request that the provider rejects."""

    fatal = True


class PromptTooLongError(FatalModelError):
    """The prompt is longer than the model's window; the message names the settings that make it shorter."""
