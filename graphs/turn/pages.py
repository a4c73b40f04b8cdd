"""Pages of notebooks that an application declares: the state that holds them, and their notes after a reply."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime
from pydantic import AfterValidator, BaseModel, Field, create_model

from questbook.graphs.settings import AppRules, own_name
from questbook.graphs.turn.channels import Last, Own, Refusal
from questbook.graphs.turn.node import give_way
from questbook.graphs.turn.notes import (
    CATCH_UP,
    GIVEN_UP,
    IN_SHORT,
    Notes,
    ask_of_oldest,
    catching_up,
    is_given_up,
    take_notes,
)
from questbook.graphs.turn.prompt import Section, opening_sections, page_sections, prompt_about_turns
from questbook.graphs.turn.recall import Recall
from questbook.graphs.turn.scope import SettingsT
from questbook.graphs.turn.shared_pages import publish_pages
from questbook.graphs.turn.state import FactState, Turn, TurnState, notice, patches
from questbook.graphs.turn.turn import remember_turns, turns_to_note
from questbook.memory.buffer.policies import BufferPolicy
from questbook.memory.timeline.records import Count, shape
from questbook.notebooks import DeclarationError, Notebook, Scope, check_declarations, on_demand, once
from questbook.types import JSON, check_choice

StateT = TypeVar("StateT", bound="PageState")

NODES = frozenset({"begin", "recall", "use_tools", "update_pages", "remember", "learn", "reflect", "condense"})
"""Nodes of every agent; each mode is a node, too."""
SECTIONS = frozenset({"instructions", "summary", "memories", "missing", "due", "turns"})
"""Sections of every agent's prompts; each page is a section, too."""
MADE: JSON = {"use_attribute_docstrings": False}
"""For the class of a state that is made, not written: pydantic would search its callers' sources for docstrings."""


@dataclass(frozen=True, kw_only=True)
class Spec:
    """What an agent remembers."""

    name: str  # keeps its memories apart from those of other agents
    notebooks: Sequence[type[Notebook]] = ()  # what is tracked; the prompt has them in this order
    buffer: BufferPolicy | None = None  # which turns are in the prompt; None: as the settings say
    recall: Recall | None = None  # how much of what was said earlier comes back; None: as the settings say
    shared: Sequence[type[Notebook]] = ()  # notebooks that several agents of a team write
    scope: Scope = "user"  # whose its exchanges and facts are; each page says its own
    app: AppRules = field(default_factory=AppRules)  # what the app says of its memory
    remember_tools: Collection[str] = ()  # names of tools whose results are remembered with the reply

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

    def check(self, taken: Sequence[str], model: object = None, scopes: Sequence[Scope] = get_args(Scope)) -> None:
        """Refuse a spec that makes no sense, by a DeclarationError that names what is allowed.

        Every agent has the channels `taken`; `model` is the argument of that name; `scopes` are those that are allowed.
        """
        declare(check_choice, "scope", self.scope, *scopes)
        tools, buffer, pages = self.remember_tools, self.buffer, self.notebooks
        is_name = isinstance(self.name, str) and bool(self.name.strip()) and ":" not in self.name
        is_model = model is None or (isinstance(model, str | BaseChatModel) and model != "")
        is_policy = buffer is None or (isinstance(buffer, BufferPolicy) and not isinstance(buffer, type))
        expect(is_name, "name", self.name, "a name without a colon, such as 'desk'")
        expect(is_model, "model", model, "a chat model, or its name, such as 'openai:gpt-4.1-mini'")
        expect(are_names(tools), "remember_tools", tools, "names of tools, such as ['search_web']")
        expect(isinstance(self.recall, Recall | None), "recall", self.recall, "Recall(…), such as Recall(tokens=400)")
        expect(is_policy, "buffer", buffer, "a buffer policy, such as LastTurns(6)")
        expect(isinstance(pages, tuple), "notebooks", pages, "a list of classes, such as [MyNotebook]")
        check_declarations(self.notebooks)
        are_classes = isinstance(self.shared, tuple) and all(isinstance(page, type) for page in self.shared)
        expect(are_classes, "shared", self.shared, "a list of the notebooks, or nothing")
        for channel, page in self.pages.items():
            if channel in {*taken, *NODES, *SECTIONS, *_ATTRIBUTES}:
                clash = f"every agent has something called {channel!r} already. Set its CHANNEL to another name."
                raise DeclarationError(f"{page.__name__}: {clash}")
        if strange := [page.__name__ for page in self.shared if page not in self.notebooks]:
            raise DeclarationError(f"shared: {strange[0]} is none of the notebooks.")
        if both := [page.__name__ for page in self.shared if page.SCOPE == "user"]:
            already = f"{both[0]} has SCOPE 'user', so the store shares it with all threads already."
            raise DeclarationError(f"shared: {already} Leave it out of `shared`, or give it the scope 'thread'.")

    def settings(
        self, base: type[SettingsT], model: str | BaseChatModel | None, defaults: Mapping[str, Any] | None = None
    ) -> type[SettingsT]:
        """Make the class of the agent's settings, with `defaults` of settings of `base` by name.

        The campaign is "agent:" and the agent's name; campaigns that a caller names get that prefix, too. `model` is a
        default as well; a chat model is used whatever the setting says.
        """
        own = f"agent:{self.name}"
        values = {"campaign": own, **(defaults or {})}
        if model is not None:
            label = model if isinstance(model, str) else getattr(model, "model_name", None) or type(model).__name__
            values["model"] = label
        fields: dict[str, Any] = {}
        for name, value in values.items():
            fields[name] = (base.model_fields[name].annotation, copy(base.model_fields[name]))
            fields[name][1].default = value
        fields["campaign"] = (Annotated[str, AfterValidator(partial(own_name, own=own))], fields["campaign"][1])
        settings = create_model("AgentContext", __base__=base, __module__=__name__, **fields)
        settings.APP = self.app
        settings.CHAT_MODEL = model if isinstance(model, BaseChatModel) else None
        return settings


def expect(fits: bool, argument: str, value: object, expected: str) -> None:
    """Refuse an argument of an agent that does not fit, by a DeclarationError."""
    if not fits:
        raise DeclarationError(f"{argument}: got {value!r:.80}; expected {expected}.")


def declare(check: Callable[..., None], *about: Any) -> None:
    """Check an argument of an agent: a ValueError of the check becomes a DeclarationError."""
    try:
        check(*about)
    except ValueError as error:
        raise DeclarationError(str(error)) from error


def listed(given: Any) -> Any:
    """Return what a list holds as a tuple. What is no list stays as it is, for a check to refuse."""
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else given


def are_names(names: object) -> bool:
    """Whether it is a collection of texts that are not empty."""
    if not isinstance(names, Collection) or isinstance(names, str | Mapping):
        return False
    return all(isinstance(name, str) and name for name in names)


UPDATE = files("questbook.graphs.turn").joinpath("pages.txt").read_text("utf-8").rstrip()

_log = logging.getLogger(__name__)
AGREED = shape({"pages": dict[str, JSON], "moved": list[str]}, total=False)


class PageState(TurnState):
    """State of a conversation with pages: `state_of` adds a channel for each."""

    SPEC: ClassVar[Spec]
    """What the agent remembers."""
    CARRIED: ClassVar[tuple[str, ...]] = (*TurnState.CARRIED, "noted")

    noted: Annotated[dict[str, int], Last(dict[str, Count])] = Field(default_factory=dict)
    """Last turn that each page takes account of, by channel."""
    agreed: Annotated[JSON, Last(AGREED, {})] = Field(default_factory=dict)
    """Pages of scope "user" as thread and store last agreed on them (`questbook.graphs.turn.shared_pages`)."""

    def _clip_turns(self) -> Iterator[Refusal]:
        yield from super()._clip_turns()
        if ahead := {page: turn for page, turn in self.noted.items() if turn > self.turn}:
            self.noted = self.noted | dict.fromkeys(ahead, self.turn)
            yield Refusal("noted", f"noted: got {ahead}; expected at most {self.turn}, the current turn.")

    def after(self, update: JSON) -> Self:
        """Return the state as a step's channels leave it, messages aside: patches of pages are applied."""
        channels = {name: value for name, value in update.items() if name in type(self).model_fields}
        changed = self.PAGES.keys() & update
        pages = {name: getattr(self, name).apply(update[name], bounded=False).page for name in changed}
        return self.model_copy(update=channels | pages | {"messages": self.messages})

    @property
    def reopened(self) -> JSON:
        """Channels to write where a turn that is remembered goes on; pages are noted again, too."""
        noted = {page: min(turn, self.turn - 1) for page, turn in self.noted.items()}
        return (channels := super().reopened) and {**channels, "noted": noted}

    @property
    def may_leave(self) -> int:
        """Last turn that every page takes account of and that is in the store, so that it may leave the buffer."""
        return min(self.noted_through, self.remembered_through)

    @property
    def noted_through(self) -> int:
        """Last turn that all pages take account of which are written after replies."""
        return min((self.noted.get(channel, 0) for channel in self.SPEC.kept), default=self.turn)


# What every agent's state has, beside pydantic's own `json` and so on, which may be channels.
_ATTRIBUTES = {*dir(PageState), *dir(FactState), *FactState.model_fields} - {*dir(BaseModel)}


def page_channels(spec: Spec, kind: Any = None) -> dict[str, Any]:
    """Return the annotations of the channels of an agent's pages, of its notebooks' types or of one."""
    pages = spec.pages.items()
    return {name: Annotated[kind or page, patches(page, bounded=not spec.is_shared(page))] for name, page in pages}


def state_of(spec: Spec, base: type[StateT]) -> type[StateT]:
    """Make the class of an agent's state: `base` with a channel for each page."""
    kinds = page_channels(spec).items()
    channels: dict[str, Any] = {name: (kind, Field(default_factory=spec.pages[name])) for name, kind in kinds}
    machine = Field(default="", description=TurnState.model_fields["machine"].description)
    channels["machine"] = (Annotated[str, Own(f"agent:{spec.name}")], machine)
    state = create_model("AgentState", __base__=base, __module__=__name__, __cls_kwargs__=MADE, **channels)
    state.MACHINE = f"agent:{spec.name}"
    state.SPEC, state.PAGES, state.BUFFER, state.SCOPE = spec, spec.pages, spec.buffer, spec.scope
    state.INTERVIEW = frozenset(page.__name__ for page in spec.interviewed.values())
    state.REMEMBERED_TOOLS = frozenset(spec.remember_tools)
    return state


async def remember(state: PageState, runtime: Runtime[SettingsT]) -> JSON:
    """Write the turn to the store, and then, since it has its place, what it changed on pages that threads share."""
    update = await remember_turns(state, runtime)
    published = await publish_pages(state.model_copy(update=update), runtime)
    return {**update, **published, "notices": [*update.get("notices", []), *published.get("notices", [])]}


async def update_pages(state: PageState, runtime: Runtime[SettingsT]) -> JSON:
    """Ask the model, once for all pages that are due, for patches of them (`take_notes`, `catching_up`).

    If some of a patch does not fit, a notice says so, and the next turn's update covers this turn too, as long as all
    that waits fits in one question.
    """
    due, context = due_pages(state), runtime.context
    first = min((state.noted.get(name, 0) for name in due), default=state.turn) + 1

    async def ask(shown: list[Turn]) -> tuple[list[str], int, Notes[Notebook]]:
        last = state.turn if len(shown) == len(turns) else shown[-1]["turn"]  # private turns need no notes
        channels = [name for name in due if state.noted.get(name, 0) < last]
        pages: list[Notebook] = [getattr(state, name) for name in channels]
        return channels, last, await take_notes(pages, update_prompt(state, channels, shown), context)

    with catching_up(state, "update_pages", f"The pages ({', '.join(due)}) were not updated") as failure:
        turns = await turns_to_note(state, runtime, first)
        if not turns:
            return {"noted": state.noted | dict.fromkeys(due, state.turn)}
        budget = state.fit_tokens(context.buffer_tokens, context.model)
        (channels, last, notes), shown, short = await give_way(ask_of_oldest(turns, budget, ask), runtime)
        given_up = is_given_up(state, "update_pages", first, is_all=len(shown) == len(turns))
        refused = [name for name in channels if state.PAGES[name].__name__ in notes.refused]
        remarks = [*([IN_SHORT] if short else []), *notes.remarks]
        if notes.problems:
            _log.warning("Not all was noted of turn %d: %s", state.turn, notes.problems)
            later = f"Not all was noted; {GIVEN_UP if given_up else CATCH_UP} ({', '.join(refused)})."
            never = "A call that is no page's was not done; no later turn will come back to it."
            remarks.append(f"{later if refused else never} {' '.join(notes.problems)}")
        refused = [] if given_up else refused  # else later turns would not be noted any more
        return {
            "noted": state.noted | {name: last for name in channels if name not in refused},
            **{name: patch for name, patch in zip(channels, notes.patches, strict=True) if patch},
            "notices": [notice(state.turn, "update_pages", text) for text in remarks],
        }
    return {"notices": failure}


def due_pages(state: PageState) -> list[str]:
    """Return the channels of the pages that are written after this turn, as their policies say."""
    return [name for name, page in state.SPEC.kept.items() if page.UPDATE.due(state.turn, state.noted.get(name, 0))]


def update_prompt(state: PageState, due: Sequence[str], turns: Sequence[Turn]) -> list[BaseMessage]:
    """Make the prompt that brings pages up to date, given their channels, and turns as `state.transcript` has them."""
    last = turns[-1]["turn"]
    lines = [
        f"{state.PAGES[channel].__name__}: page <{channel}>, turns {state.noted.get(channel, 0) + 1} to {last}, "
        f"{getattr(state, channel).fullness}"
        for channel in due
    ]
    closing = [*page_sections(state, "last"), Section("due", "\n".join(lines))]
    return prompt_about_turns(opening_sections(UPDATE, state), turns, closing)
