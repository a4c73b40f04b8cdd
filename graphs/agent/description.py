"""Agent: the parts of an agent, checked when it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from langchain_core.tools import BaseTool

from questbook.graphs.turn.recall import Recall
from questbook.memory.buffer.policies import BufferPolicy
from questbook.notebooks import DeclarationError, Notebook, Scope, check_declarations, on_demand, once

HAND_OVER = "hand_over"
"""The tool by which an agent of a team hands a person over to another."""
NODES = frozenset({"begin", "recall", "use_tools", "update_pages", "remember", "learn", "reflect", "condense"})
"""Nodes of every agent; each mode is a node, too."""
SECTIONS = frozenset({"instructions", "summary", "memories", "missing", "due", "turns"})
"""Sections of every agent's prompts; each page is a section, too."""


@dataclass(frozen=True)
class Mode:
    """Something that an agent does for a while. Each turn begins in the first mode that applies.

    Attributes:
        name: Name of the mode, and of the node that answers in it.
        instructions: Instructions to the model in this mode, after those for all modes.
        fills: A notebook that is filled `once`: the mode is the interview that fills it, and applies until nothing
            is missing on the page. Then the next mode answers in the same turn.
        when: Given a state, whose pages are typed, returns whether the mode applies; None: always.
    """

    name: str
    instructions: str = ""
    fills: type[Notebook] | None = None
    when: Callable[[Any], bool] | None = None

    def applies(self, state: Any) -> bool:
        """Whether this mode applies in a state; an earlier one that applies goes before it."""
        if self.fills is not None:
            page: Notebook = getattr(state, self.fills.channel())
            return not page.complete
        return self.when is None or bool(self.when(state))


def listed(notebooks: Sequence[type[Notebook]]) -> tuple[type[Notebook], ...]:
    """Return the notebooks of which an agent is to be made.

    Raises:
        DeclarationError: It is one notebook that stands alone.
    """
    if isinstance(notebooks, type | Notebook):
        raise DeclarationError(f"notebooks: got {notebooks!r:.80}; expected a list of classes, such as [MyNotebook].")
    return tuple(notebooks)


@dataclass(frozen=True)
class Agent:
    """The parts of an agent.

    Attributes:
        name: Keeps its memories apart from those of other agents.
        instructions: Instructions to the model in every mode.
        notebooks: What is tracked; the prompt has them in this order.
        modes: What it does when. A notebook filled `once` that no mode fills gets an interview of its own, first.
        buffer: Which turns are in the prompt; None: as the settings say.
        recall: How much of what was said earlier comes back; None: as the settings say.
        tools: Tools for the replies; the notebooks that are written `on_demand` are tools, too.
        handoffs: Agents of the team to hand over to: node of the parent graph to when to do that.
        shared: Notebooks that several agents of a team write.
        scope: Whose its exchanges and facts are; each page says its own.
        facts: Whether facts are noted after replies, and reflected on.
    """

    name: str = "agent"
    instructions: str = ""
    notebooks: Sequence[type[Notebook]] = ()
    modes: Sequence[Mode] = ()
    buffer: BufferPolicy | None = None
    recall: Recall | None = None
    tools: Sequence[BaseTool] = ()
    handoffs: Mapping[str, str] = field(default_factory=dict)
    shared: Sequence[type[Notebook]] = ()
    scope: Scope = "user"
    facts: bool = False

    @property
    def pages(self) -> dict[str, type[Notebook]]:
        """Its notebooks by channel."""
        return {page.channel(): page for page in self.notebooks}

    @property
    def interviewed(self) -> dict[str, type[Notebook]]:
        """Those that are filled once."""
        return {channel: page for channel, page in self.pages.items() if once == page.UPDATE}

    @property
    def on_demand(self) -> dict[str, type[Notebook]]:
        """Those that the model may write in its replies."""
        return {channel: page for channel, page in self.pages.items() if on_demand == page.UPDATE}

    @property
    def kept(self) -> dict[str, type[Notebook]]:
        """Those that are written after replies."""
        return {channel: page for channel, page in self.pages.items() if page.UPDATE.turns}

    def is_shared(self, page: type[Notebook]) -> bool:
        """Whether others write a page at the same time, so that its limit cannot hold at each write."""
        return page in self.shared or page.SCOPE == "user"

    @property
    def has_tools(self) -> bool:
        """Whether there is anything that the model may call in its replies."""
        return bool(self.on_demand or self.tools or self.handoffs)

    def all_modes(self) -> list[Mode]:
        """Its modes with those that need no declaration: interviews that no mode does, and a last mode that answers."""
        filled = {mode.fills for mode in self.modes}
        asked = [Mode(f"fill_{name}", fills=page) for name, page in self.interviewed.items() if page not in filled]
        answers = any(mode.fills is None and mode.when is None for mode in self.modes)
        return [*asked, *self.modes, *([] if answers else [Mode("respond")])]

    def mode(self, state: Any) -> Mode:
        """Return the mode that applies in a state."""
        return next(mode for mode in self.all_modes() if mode.applies(state))

    def named(self, name: str) -> Mode:
        """Return a mode by its name.

        Raises:
            DeclarationError: There is none: since the turn began, the agent was built with other modes.
        """
        for mode in self.all_modes():
            if mode.name == name:
                return mode
        known = ", ".join(mode.name for mode in self.all_modes())
        raise DeclarationError(f"The agent has no mode {name!r} any more; there are {known}. Begin a new turn.")

    def check(self, taken: Sequence[str]) -> None:
        """Check the parts.

        Args:
            taken: Channels that every agent has.

        Raises:
            DeclarationError: Something is wrong; the message names it, and what is allowed.
        """
        if not isinstance(self.name, str) or not self.name.strip() or ":" in self.name:
            raise DeclarationError(f"name: got {self.name!r:.80}; expected a name without a colon, such as 'desk'.")
        if self.scope not in get_args(Scope):
            raise DeclarationError(f"scope: got {self.scope!r:.80}; expected 'thread', 'user' or 'campaign'.")
        if not isinstance(self.recall, Recall | None):
            raise DeclarationError(f"recall: got {self.recall!r:.80}; expected Recall(…), such as Recall(tokens=400).")
        if self.buffer is not None and (isinstance(self.buffer, type) or not isinstance(self.buffer, BufferPolicy)):
            raise DeclarationError(f"buffer: got {self.buffer!r:.80}; expected a buffer policy, such as LastTurns(6).")
        check_declarations(self.notebooks)
        for channel, page in self.pages.items():
            if channel in {*taken, *NODES, *SECTIONS}:
                raise DeclarationError(
                    f"{page.__name__}: every agent has something called {channel!r} already. Set its CHANNEL to "
                    "another name."
                )
        tools = [page.__name__ for page in self.notebooks] + [tool.name for tool in self.tools] + [HAND_OVER]
        if twice := [name for name in tools if tools.count(name) > 1]:
            raise DeclarationError(f"Two tools cannot have one name: {twice[0]!r}.")
        if strange := [page.__name__ for page in self.shared if page not in self.notebooks]:
            raise DeclarationError(f"shared: {strange[0]} is none of the notebooks.")
        if both := [page.__name__ for page in self.shared if page.SCOPE == "user"]:
            raise DeclarationError(
                f"shared: {both[0]} has SCOPE 'user', so the store shares it with all threads already. Leave it out of "
                "`shared`, or give it the scope 'thread'."
            )
        self._check_modes(taken)

    def _check_modes(self, taken: Sequence[str]) -> None:
        names = [mode.name for mode in self.all_modes()]
        for mode in self.all_modes():
            if not mode.name.isidentifier():
                raise DeclarationError(f"Mode {mode.name!r}: expected a name of letters, digits and underscores.")
            if mode.name in {*taken, *NODES, *self.pages}:
                raise DeclarationError(f"Mode {mode.name!r}: the agent has something of that name already.")
            if names.count(mode.name) > 1:
                raise DeclarationError(f"Two modes cannot have one name: {mode.name!r}.")
        for number, mode in enumerate(self.modes):
            if mode.fills is not None and mode.fills not in self.interviewed.values():
                known = ", ".join(page.__name__ for page in self.interviewed.values()) or "none"
                raise DeclarationError(
                    f"Mode {mode.name!r} fills {mode.fills.__name__}: expected one of the agent's notebooks whose "
                    f"UPDATE is once ({known})."
                )
            if mode.fills is not None and mode.fills in [other.fills for other in self.modes[:number]]:
                raise DeclarationError(f"Mode {mode.name!r}: an earlier one fills {mode.fills.__name__} already.")
            if mode.fills is not None and mode.when is not None:
                raise DeclarationError(f"Mode {mode.name!r}: it has `fills` and `when`; give one of the two.")
            if mode.fills is None and mode.when is None and number < len(self.modes) - 1:
                raise DeclarationError(
                    f"Mode {mode.name!r} always applies, so {self.modes[number + 1].name!r} behind it never would. "
                    "Put it last, or say in `when` where it applies."
                )
