"""The errors of pages, each a `NotebookError`."""

from collections.abc import Sequence

from questbook.notebooks.schema import shorten


class NotebookError(ValueError):
    """Base of everything that notebooks raise."""


class DeclarationError(NotebookError):
    """A notebook's class, or an agent made of notebooks, declares something wrong; raised when the agent is built."""


class PatchError(NotebookError):
    """A patch does not fit its `page`, which is not changed; of each wrong field `problems` has a sentence."""

    def __init__(self, page: str, problems: Sequence[str]) -> None:
        self.page = page
        self.problems = list(problems)
        super().__init__(f"{page} was left as it is. " + " ".join(shorten(self.problems)))


class PageFullError(NotebookError):
    """A patch would make a page longer than its limit: `used` of `limit` characters, as it would be rendered."""

    def __init__(self, page: str, used: int, limit: int) -> None:
        self.page, self.used, self.limit = page, used, limit
        super().__init__(
            f"{page} would render to {used} characters of {limit}: shorten it by at least {used - limit}. "
            "Set entries that no longer matter to null, or say the same in fewer words."
        )


class SectionFullError(PageFullError):
    """A value would be longer than the limit of its section, `label`; the section is not changed."""

    def __init__(self, label: str, used: int, limit: int) -> None:
        super().__init__("CoreNotebook", used, limit)
        self.label = label
        self.args = (
            f"Section {label!r} would use {used:,} of {limit:,} characters: shorten it by at least {used - limit:,}, "
            "or move something to archival memory.",
        )


class EditError(NotebookError):
    """A tool call does not fit core memory, which is not changed.

    The message is the tool's result, for the model: what is wrong, which labels there are, the current text.
    """


class VersionError(NotebookError):
    """A page was written by a newer version than this one can read."""

    def __init__(self, page: str, version: object, newest: int) -> None:
        super().__init__(
            f"{page} has schema version {version!r}; this Questbook reads versions 1 to {newest}. "
            "Upgrade Questbook, or open a checkpoint from before."
        )
