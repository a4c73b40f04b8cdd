"""Pages in a graph: the reducer that is the gate to one, and where they stand in the prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from questbook.graphs.turn.prompt_stack import INSTRUCTIONS, Section
from questbook.graphs.turn.turn_state import TurnState
from questbook.notebooks import Notebook, PromptPlace

JSON = dict[str, Any]


def patches(page: type[Notebook], *, bounded: bool = True) -> Callable[[Any, Any], JSON]:
    """Make the reducer of a channel that holds a page: it applies merge patches, whoever writes them.

    What does not fit raises a NotebookError that names it, and changes nothing.

    Args:
        page: The notebook's class.
        bounded: Whether the page's limit holds; not where several write at once, each of whom holds it by itself.
    """

    def reduce(current: Any, patch: Any) -> JSON:
        return page.load(current).apply(patch, bounded=bounded).page.as_json()

    return reduce


def page_sections(state: TurnState, place: PromptPlace | None = None) -> list[Section]:
    """Render the pages that stand in one place of the prompt, or all, in the order in which the state has them."""
    placed = [channel for channel, page in state.PAGES.items() if place in (page.PLACE, None)]
    return [Section(channel, getattr(state, channel).render()) for channel in placed]


def told_pages(instructions: str, state: TurnState) -> list[Section]:
    """Return the beginning of a prompt: instructions, with the pages that stand before and after them."""
    told = Section(INSTRUCTIONS, instructions)
    return [*page_sections(state, "before"), told, *page_sections(state, "after")]
