"""Channels that check what is written to them: a write that does not fit is left out, and the thread can still be read.

LangGraph saves a write before its channel sees it: a channel that raised there would make the thread unreadable
forever. So these keep their value, and a notice of the next turn says so. They raise where nothing has been saved yet:
in the copy that LangGraph makes to show an edge what a node, or an edit by `update_state`, is about to write.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self, get_origin

from langgraph.channels import LastValue
from langgraph.channels.binop import _get_overwrite  # what replaces a value without the reducer, in any form
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Overwrite
from pydantic import TypeAdapter

from questbook.graphs.errors import InputError
from questbook.memory.timeline.records import Count, check_fits
from questbook.types import storable

_log = logging.getLogger(__name__)


class Refusal(NamedTuple):
    """A write that was left out: its channel, and what was written and what was expected."""

    channel: str
    reason: str


class Checked(LastValue[Any]):
    """A channel with a reducer, which raises to refuse a write. What no database takes is left out of texts.

    `typ` is the type that nodes receive; `reduce` makes the new value from the current one and a write, and changes
    neither; `empty` makes the value before the first write; None: there is none.
    """

    __slots__ = ("_applied", "_default", "_empty", "_reduce", "_refusals", "_saved")

    def __init__(self, typ: Any, reduce: Callable[[Any, Any], Any], empty: Callable[[], Any] | None = None) -> None:
        super().__init__(typ)
        self._reduce, self._empty = reduce, empty
        self._default: Any = None
        self._refusals: list[Refusal] = []
        self._saved = True
        # The last write with the values before and after it. An edge applies what a node writes to a copy; then the
        # channel applies the same to the same.
        self._applied: list[tuple[Any, Any, Any]] = []
        if empty:
            self.value = empty()

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return the channel with a checkpoint's value, or its empty one."""
        saved = LastValue[Any](self.typ).from_checkpoint(checkpoint)
        value = saved.value if saved.is_available() or not self._empty else self._empty()
        return self._with(value, [], saved=True)

    def copy(self) -> Self:
        """Return a copy, as an edge reads it: `update` raises there."""
        return self._with(self.value, self._applied, saved=False)

    def get(self) -> Any:
        """Return the value; `refusals_in` reads from it what was refused since the thread was loaded."""
        value = super().get()
        return _with_refusals(value, self._refusals) if self._refusals else value

    def update(self, values: Sequence[Any]) -> bool:
        """Apply each write that fits; return whether there was one. In a copy, a ValueError refuses any other."""
        changed = False
        for write in values:
            try:
                self.value, changed = self._after(write), True
            except Exception as error:  # an application's notebook may raise anything, and the thread must open
                reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
                if not self._saved:
                    raise error if isinstance(error, ValueError) else InputError(f"{self.key}: {reason}") from error
                _log.warning("A write to %s was refused: %s", self.key, reason)
                self._refusals = [*self._refusals, Refusal(self.key, reason)]
        return changed

    def _with(self, value: Any, applied: list[tuple[Any, Any, Any]], *, saved: bool) -> Self:
        channel = object.__new__(type(self))  # every edge copies every channel
        channel.typ, channel.key, channel.value = self.typ, self.key, value
        channel._reduce, channel._empty, channel._default = self._reduce, self._empty, self._default
        channel._refusals, channel._saved, channel._applied = [], saved, applied
        return channel

    def _after(self, write: Any) -> Any:
        for before, same, after in self._applied:
            if before is self.value and same is write:
                return after
        after = self._reduced(write)
        self._applied[:] = [(self.value, write, after)]
        return after

    def _reduced(self, write: Any) -> Any:
        overwrites, value = _get_overwrite(write)
        if overwrites:
            return self._reduce(self._empty() if self._empty else None, storable(value))
        return self._reduce(self.value if self.is_available() else None, storable(write))


class Last(Checked):
    """A channel that holds the last value that fits its type: `Annotated[int, Last]`.

    An `int` is a number from 0. The state's own annotation may be wider: it reads what was saved before the channel was
    as strict. `default` is what the state has before the first write; None: the type's empty value. Of a list that
    grows the last `most` items are kept; 0: a write replaces. `whole`: all of the newest turn stay, however many.
    """

    __slots__ = ()

    def __init__(self, typ: Any, default: Any = None, *, most: int = 0, whole: bool = False) -> None:
        adapter: TypeAdapter[Any] = TypeAdapter(Count if typ is int else typ)

        def replace(current: Any, value: Any) -> Any:
            try:
                check_fits(adapter, value, self.key)
            except ValueError as error:
                raise InputError(str(error)) from error
            if not most:
                return value
            items = [*(current or []), *value]
            newest = sum(item.get("turn") == items[-1].get("turn") for item in items) if whole else 0
            return items[-max(most, newest) :]

        super().__init__(typ, replace, list if most else None)
        self._default = (get_origin(typ) or typ)() if default is None else default

    def get(self) -> Any:
        """Return the value, or the default if there is none and it has to bring refusals along."""
        if self._refusals and not super().is_available():
            return _with_refusals(self._default, self._refusals)
        return super().get()

    def is_available(self) -> bool:
        """Whether there is something to read."""
        return super().is_available() or bool(self._refusals)


class Branches(Last):
    """The channel `timeline`: `Annotated[list[tuple[str, int]], Branches(CheckedTimeline, [])]`. Turns write it.

    An edit may shorten it, but names no branch that the thread does not descend from: it would see another one's turns.
    """

    __slots__ = ()

    def _reduced(self, write: Any) -> Any:
        before = {branch for branch, _ in self.value} if self.is_available() else set[str]()
        after = super()._reduced(write)
        if before and is_edit() and (others := {branch for branch, _ in after} - before):
            wrong = f"{self.key}: got branch {min(others)!r:.40}, of which this thread has no turn"
            instead = "expected those that it has. Leave it out, or go to another turn with `History.go`."
            raise InputError(f"{wrong}; {instead}")
        return after


def is_edit() -> bool:
    """Whether an edit by `update_state` is being applied: LangGraph gives it no runtime."""
    try:
        runtime: Runtime[Any] | None = get_runtime()
    except RuntimeError:  # where it reads channels for the edge of a run
        return False
    return runtime is None


class Names(list[str]):
    """User and campaign of a thread, as a turn writes them; in a checkpoint it is a plain list."""


class Owner(Last):
    """The channel that says whose a thread is, user and campaign: `Annotated[list[str], Owner]`. It is written once.

    The thread's first turn writes `Names`, over what a run's command may have put there before. A later value that
    differs does not fit, nor does any edit before that turn.
    """

    __slots__ = ()

    def _reduced(self, write: Any) -> Any:
        names = list(super()._reduced(write))
        owner = self.value if self.is_available() else []
        if owner and names != owner and not isinstance(write, Names):
            of = " of ".join(map(repr, reversed(owner)))
            once = "Whose a thread is, is written once: leave it out, or begin a new thread."
            raise InputError(f"{self.key}: got {names!r:.80}, but this thread belongs to campaign {of}. {once}")
        if names and not (owner or self._saved or isinstance(write, Names)):
            first = "Whose a thread is, its first turn writes: leave it out of an edit."
            raise InputError(f"{self.key}: got {names!r:.80}. {first}")
        return names


class Own(LastValue[Any]):
    """A channel that says to which machine a thread belongs: `Annotated[str, Own("companion")]`.

    LangGraph lets any graph run on any thread. Another machine's run fails here, before anything is saved.
    """

    __slots__ = ("machine",)

    def __init__(self, machine: str) -> None:
        super().__init__(str)
        self.machine = machine

    def copy(self) -> Self:
        """Return a copy."""
        return copy(self)

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Return the channel with a checkpoint's value."""
        channel = copy(self)
        channel.value = checkpoint
        return channel

    def update(self, values: Sequence[Any]) -> bool:
        """Take the machine's own name; a thread is not given away."""
        changed = self.machine in values and not self.is_available()
        self.value = self.machine if changed else self.value
        return changed

    def checkpoint(self) -> Any:
        """Return the value to save; where the thread belongs to another machine, an InputError refuses it."""
        if self.is_available() and self.value != self.machine:
            owner = self.value if isinstance(self.value, str) else " of ".join(map(repr, reversed(self.value)))
            wrong = f"This thread belongs to {owner}, and {self.machine} cannot run on it."
            raise InputError(f"{wrong} Nothing was changed. Begin a new thread for {self.machine}.")
        return self.value


def check_channel(channels: Mapping[str, Any], name: str, value: Any) -> None:
    """Check a value that a graph's channel had, as a file says; one that does not fit is refused by a ValueError."""
    channel = channels.get(name)
    if isinstance(channel, Own) and value != channel.machine:
        raise InputError(f"{name}: got {value!r:.80}; expected {channel.machine!r}.")
    if isinstance(channel, Checked):
        channel.copy().update([Names(value) if isinstance(channel, Owner) else Overwrite(value)])


def refusals_in(values: Any) -> list[Refusal]:
    """Return what the channels refused since the thread was loaded, given the values that LangGraph read from them."""
    if not isinstance(values, Mapping):
        return []
    return [each for value in values.values() if isinstance(value, _Marked) for each in value.refusals]


class _Marked:
    """A value that says what its channel refused, for a node; checkpoints and pickles have the plain value."""

    refusals: Sequence[Refusal]

    def __reduce__(self) -> tuple[Any, ...]:
        plain: Any = type(self).__mro__[2]
        return plain, (plain(self),)


_MARKED: dict[type, Any] = {plain: type(f"_{plain.__name__}", (_Marked, plain), {}) for plain in (str, int, list, dict)}


def _with_refusals(value: Any, refusals: Sequence[Refusal]) -> Any:
    if type(value) not in _MARKED:
        return value
    marked = _MARKED[type(value)](value)
    marked.refusals = refusals
    return marked
