"""What an agent of `build_agent` is made of: its parts, its modes, its settings, its state."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args

from langchain_core.tools import BaseTool
from pydantic import Field

from questbook.graphs.settings import NotingContext, Settings
from questbook.graphs.turn.channels import Last
from questbook.graphs.turn.pages import NODES, PageState, Spec, declare, expect
from questbook.graphs.turn.state import FACT_CHANNELS, FactState
from questbook.notebooks import DeclarationError, Notebook, Scope
from questbook.types import check_choice

HAND_OVER = "hand_over"  # the tool by which an agent of a team hands a person over to another


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


@dataclass(frozen=True, kw_only=True)
class AgentSpec(Spec):
    """The parts of an agent."""

    instructions: str = ""  # instructions to the model in every mode
    modes: Sequence[Mode] = ()  # what it does when; other notebooks filled `once` get an interview of their own, first
    tools: Sequence[BaseTool] = ()  # for the replies; the notebooks that are written `on_demand` are tools, too
    handoffs: Mapping[str, str] = field(default_factory=dict)  # nodes of the parent graph, each with when to go there
    facts: bool = False  # whether facts are noted after replies, and reflected on

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
        """Return a mode by its name; there is none if the agent was built with other modes since the turn began."""
        modes = {mode.name: mode for mode in reversed(self.all_modes())}
        if name not in modes:
            known = ", ".join(reversed(modes))
            raise DeclarationError(f"The agent has no mode {name!r} any more; there are {known}. Begin a new turn.")
        return modes[name]

    def check(self, taken: Sequence[str], model: object = None, scopes: Sequence[Scope] = get_args(Scope)) -> None:
        """Refuse a spec that makes no sense, as `Spec.check` does; its tools and modes, too."""
        super().check(taken, model, scopes)
        declare(check_choice, "facts", self.facts, True, False)
        expect(isinstance(self.instructions, str), "instructions", self.instructions, "a text")
        are_modes = isinstance(self.modes, tuple) and all(isinstance(mode, Mode) for mode in self.modes)
        expect(are_modes, "modes", self.modes, "a list of modes, such as [Mode('help')]")
        hands = self.handoffs.items() if isinstance(self.handoffs, Mapping) else [(None, None)]
        are_texts = all(isinstance(part, str) and part for pair in hands for part in pair)
        expect(are_texts, "handoffs", self.handoffs, "node to when, such as {'billing': 'an invoice'}")
        tools = [page.__name__ for page in self.notebooks] + [tool.name for tool in self.tools] + [HAND_OVER]
        unknown = ", ".join(name for name in self.remember_tools if name not in tools)
        expect(not unknown, "remember_tools", unknown, f"names of its tools ({', '.join(tools)})")
        if twice := [name for name in tools if tools.count(name) > 1]:
            raise DeclarationError(f"Two tools cannot have one name: {twice[0]!r}.")
        names = [mode.name for mode in self.all_modes()]
        for name in names:
            if not isinstance(name, str) or not name.isidentifier():
                raise DeclarationError(f"Mode {name!r}: expected a name of letters, digits and underscores.")
            if name in {*taken, *NODES, *self.pages}:
                raise DeclarationError(f"Mode {name!r}: the agent has something of that name already.")
            if names.count(name) > 1:
                raise DeclarationError(f"Two modes cannot have one name: {name!r}.")
        for number, mode in enumerate(self.modes):
            self._check_mode(mode, self.modes[:number], self.modes[number + 1 :])

    def _check_mode(self, mode: Mode, earlier: Sequence[Mode], later: Sequence[Mode]) -> None:
        expect(isinstance(mode.instructions, str), f"Mode {mode.name!r}: instructions", mode.instructions, "a text")
        is_function = mode.when is None or callable(mode.when)
        expect(is_function, f"Mode {mode.name!r}: when", mode.when, "a function of the state")
        if mode.fills is not None and mode.fills not in self.interviewed.values():
            known = ", ".join(page.__name__ for page in self.interviewed.values()) or "none"
            expected = f"expected one of the agent's notebooks whose UPDATE is once ({known})."
            fills = getattr(mode.fills, "__name__", mode.fills)
            raise DeclarationError(f"Mode {mode.name!r} fills {fills}: {expected}")
        if mode.fills is not None and mode.fills in [other.fills for other in earlier]:
            raise DeclarationError(f"Mode {mode.name!r}: an earlier one fills {mode.fills.__name__} already.")
        if mode.fills is not None and mode.when is not None:
            raise DeclarationError(f"Mode {mode.name!r}: it has `fills` and `when`; give one of the two.")
        if mode.fills is None and mode.when is None and later:
            never = f"so {later[0].name!r} behind it never would. Put it last, or say in `when` where it applies."
            raise DeclarationError(f"Mode {mode.name!r} always applies, {never}")


class AgentContext(Settings):
    """An agent's settings: those that graphs share, and its own."""

    STAND_IN: ClassVar[Literal["storyteller", "assistant"]] = "assistant"

    max_tool_rounds: int = Field(default=6, ge=1, le=20, description="Times the model may call tools in one turn.")


class FactContext(AgentContext, NotingContext):
    """Settings of an agent that notes facts, and reflects on them."""


class AgentState(PageState):
    """State of one thread of an agent: the channels of a conversation with pages, and its own."""

    SPEC: ClassVar[AgentSpec]

    mode: Annotated[str, Last] = ""
    """Mode of the current turn."""
    handover: Annotated[str, Last] = ""
    """Node of the team to which the turn hands over; "" if to none."""


class FactAgentState(AgentState, FactState):
    """State of an agent that notes facts."""

    CARRIED: ClassVar[tuple[str, ...]] = (*AgentState.CARRIED, *FACT_CHANNELS)
