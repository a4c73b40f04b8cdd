"""Records: what a store keeps of a conversation, as types.

`Record.from_json` reads a JSON object of any writer: a field that is missing or has the wrong type gets its default,
and keys that no field names are kept in `stored`. `to_json` gives what was read, with what has changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, NotRequired, Self, get_type_hints

from pydantic import Field, StrictFloat, StrictInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from questbook.types import JSON

STANDING = "standing"
"""Mark of an exchange in which a person says what is to be done from now on, so that it is found whatever is asked."""
CALENDAR_TIME = "story_time"
"""Field of a record: when it happened by the app's own calendar, as it was told: "day 3, dusk"."""
UNTIL = "until"
"""Day until which something that an exchange tells was so, ISO 8601; "" if the day is unknown. Never stored."""
WITHHELD = "withheld"
"""Field of a record whose words are not kept, because the person asked for that: it is never found."""
PAUSE = timedelta(hours=3)  # a longer pause, or a new thread, begins a new session
_VIEWERS = frozenset({"player", "the player", "you", "everyone", "everybody", "all"})


@dataclass(frozen=True)
class Stamp:
    """Where and when a record was written; by its branch and turn a timeline sees it. "" and None: unknown.

    Attributes:
        branch: The branch that wrote it; "" if it belongs to no timeline, such as lore.
        turn: The turn that wrote it, from 1; 0 if it belongs to no timeline.
        session: Number of the session, from 1.
        day: Day of the app's own calendar, such as a game's.
        said_at: Real time, ISO 8601 (UTC unless it says otherwise).
        thread: Id of the thread.
        checkpoint: Id of the checkpoint.
    """

    branch: str = ""
    turn: int = 0
    session: int | None = None
    day: int | None = None
    said_at: str = ""
    thread: str = ""
    checkpoint: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read the stamp of a stored record; what is missing or has the wrong type is unknown."""
        stamp, get = object.__new__(cls), value.get
        own = stamp.__dict__
        own.update(_NO_STAMP)
        for name, kind in _STAMP_TYPES:
            if isinstance(part := get(name), kind) and part is not True and part is not False:
                own[name] = part
        return stamp

    @property
    def time(self) -> datetime | None:
        """Real time with an offset; None if it is unknown or cannot be read."""
        return read_time(self.said_at)

    def to_json(self) -> JSON:
        """Return the fields of a stored record, those that are known; of a timeline's also `order` (`order_of`)."""
        place = {"branch": self.branch, "turn": self.turn, "order": order_of(self.turn)} if self.branch else {}
        rest = {name: getattr(self, name) for name in ("session", "day", "said_at", "thread", "checkpoint")}
        return place | {name: value for name, value in rest.items() if value not in (None, "")}


@dataclass(frozen=True, kw_only=True)
class Record:
    """One thing in the store, with the fields that `recall` reads of records of any kind."""

    text: str = ""  # what it says: found by its words and its meaning
    kind: str = ""  # "exchange", "event", "insight", "lore" …; a "secret" is left out of a viewer's view
    stamp: Stamp = field(default=Stamp())  # where and when it was written
    speaker: str = ""  # who says it
    subject: str = ""  # whom or what it is about
    claimed_by: str = ""  # whose word it is alone
    importance: float = 0.0  # from 1, a trifle, to 10, what must never be missed; 0 if unknown
    real_time: str = ""  # when what it tells happened in the world, ISO 8601
    when: tuple[str, ...] = ()  # first and last day on which it is, ISO 8601, in the calendar of who said it
    known_by: tuple[str, ...] = ()  # names of those who know it; none: everybody who was there
    withheld: bool = False  # whether its words are not kept, because someone asked for that: it is never found
    stored: JSON = field(default_factory=dict, repr=False, compare=False)
    """The JSON object that it was read from, with the keys that no field names."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read a stored record; a field that is missing or has the wrong type gets its default."""
        # All fields at once: a frozen dataclass sets each by a call, and a turn reads hundreds of records.
        record, (defaults, readers) = object.__new__(cls), _fields(cls)
        record.__dict__.update(defaults, stamp=Stamp.from_json(value), stored=dict(value))
        record.__dict__.update({name: readers[name](value[name]) for name in readers.keys() & value.keys()})
        return record

    def to_json(self) -> JSON:
        """Return the object to store: what was read, with what has changed; defaults are not written."""
        before = type(self).from_json(self.stored)
        changed: JSON = {"kind": self.kind} if self.kind and "kind" not in self.stored else {}
        for name in _fields(type(self))[0]:
            if (value := getattr(self, name)) != getattr(before, name):
                changed[name] = list(value) if isinstance(value, tuple) else value
        return self.stored | changed | (self.stamp.to_json() if self.stamp != before.stamp else {})


@dataclass(frozen=True, kw_only=True)
class Exchange(Record):
    """What was said in one turn.

    Attributes:
        player: What the person said, where two speak.
        reply: What they were answered.
        after: The branch of the turn before; None for the first turn.
        messages: Ids of the messages.
    """

    kind: str = "exchange"
    player: str = ""
    reply: str = ""
    after: str | None = None
    messages: tuple[str, ...] = ()


Count = Annotated[int, Field(strict=True, ge=0)]
"""A number of a turn, or of things."""


def shape(fields: Mapping[str, Any], *, total: bool = True) -> Any:
    """Make the type of a JSON object of the types of its fields; `total`: it has them all."""
    make: Any = TypedDict  # mypy reads only a literal
    return make("Shape", dict(fields), total=total)


ROLL = shape(
    {
        "total": StrictInt, "turn": NotRequired[Count], **dict.fromkeys(("dc", "natural"), NotRequired[int | None]),
        "success": NotRequired[bool | None], "breakdown": NotRequired[str], "expression": NotRequired[str],
    }
)  # fmt: skip
"""A dice roll, as a game's state and records keep it."""


def check_segments(name: str, timeline: object) -> None:
    """Raise a ValueError if a timeline is neither None nor a sequence of segments, as it comes or as JSON has it."""
    segments = () if timeline is None else timeline if isinstance(timeline, list | tuple) else [timeline]
    if not all(isinstance(each, list | tuple) and [*map(type, each)] == [str, int] for each in segments):
        raise ValueError(f"{name}: got {timeline!r:.80}; expected segments, such as [('main', 12)].")


def check_record(value: Any) -> None:
    """Check the fields of a record that comes in, as `check_fits` does."""
    check_fits(_STORED, value)


def check_fits(adapter: TypeAdapter[Any], value: Any, where: str = "") -> None:
    """Raise a ValueError if a value is not of a type; it names the part, after `where`, its value and what fits."""
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, ([where] if where else []) + [*problem["loc"]])) or "value"
        raise ValueError(f"{place}: got {problem['input']!r:.80}. {problem['msg']}.") from error


def session_number(past: Stamp | None, now: Stamp) -> int:
    """Return the number of the session in which a turn is played, from 1, given the stamp of the turn before.

    A new thread, or a pause of more than three hours, begins a session.
    """
    if past is None:
        return 1
    number = max(past.session or 1, 1)
    paused = past.time is not None and now.time is not None and now.time - past.time > PAUSE
    return number + (paused or past.thread != now.thread)


def order_of(turn: int) -> str:
    """Return a turn with leading zeros: a text that PostgresStore compares as it would compare the number."""
    return f"{turn:08}"


@lru_cache(maxsize=4096)
def read_time(text: str) -> datetime | None:
    """Read a time, ISO 8601, as UTC unless it has an offset; None if it cannot be read."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def utc_date(time: datetime) -> date:
    """Return the day in UTC of a time; at the ends of the calendar, where there is none, its own day."""
    try:
        return time.astimezone(UTC).date()
    except OverflowError:
        return time.date()


def has_expired(value: Mapping[str, Any]) -> bool:
    """Return whether a stored record has ended by itself, as its field `expires` says."""
    time = read_time(str(value["expires"])) if value.get("expires") else None
    return time is not None and time <= datetime.now(UTC)


def has_metadata(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Return whether a stored record was written with all of this metadata; None and {}: whatever it has."""
    own = found if isinstance(found := value.get("metadata"), Mapping) else {}
    return all(own.get(name) == part for name, part in (wanted or {}).items())


def is_hidden(value: Mapping[str, Any]) -> bool:
    """Return whether a stored record is never found: its words are not kept, or it has expired."""
    return bool(value.get(WITHHELD)) or has_expired(value)


def may_know(value: Mapping[str, Any], viewer: Sequence[str] = ()) -> bool:
    """Return whether a viewer may see a stored record: its kind is not "secret", and `known_by`, if given, has them.

    Of the names of the viewer "player" and "you" always count.
    """
    if value.get("kind") == "secret":
        return False
    known_by = value.get("known_by")
    if not known_by or not isinstance(known_by, Sequence):
        return True
    names = [known_by] if isinstance(known_by, str) else known_by
    allowed = _VIEWERS | {name.casefold().strip() for name in viewer}
    return any(str(name).casefold().strip() in allowed for name in names)


def _fields(cls: type[Record]) -> tuple[JSON, dict[str, Callable[[object], Any]]]:
    """Return, of a class's fields that are keys of the stored object, what they are by default, and what reads them."""
    if cls not in _FIELDS:
        own = {one.name: one.default for one in fields(cls) if one.name not in ("stamp", "stored")}
        _FIELDS[cls] = own, {name: _BY_DEFAULT[type(default)] for name, default in own.items()}
    return _FIELDS[cls]


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


_NO_STAMP = dict(Stamp().__dict__)
_STAMP_TYPES = tuple((name, int if name in ("turn", "session", "day") else str) for name in _NO_STAMP)
_BY_DEFAULT: dict[type, Callable[[object], Any]] = {
    str: lambda item: item if isinstance(item, str) else "",
    bool: bool,
    int: lambda item: item if isinstance(item, int) and not isinstance(item, bool) else 0,
    # NaN differs from itself.
    float: lambda item: item if isinstance(item, int | float) and type(item) is not bool and item == item else 0.0,
    tuple: _texts,
    type(None): lambda item: item if isinstance(item, str) else None,
}
_FIELDS: dict[type[Record], tuple[JSON, dict[str, Callable[[object], Any]]]] = {}
RECORD_FIELDS: JSON = {
    **{name: kind for name, kind in get_type_hints(Exchange).items() if name not in ("stamp", "stored")},
    **dict.fromkeys(("thread", "checkpoint", "said_at"), str | None),
    "branch": Annotated[str, Field(min_length=1)],
    "turn": Count,
    "session": Count | None,
    "day": StrictInt | None,
    "importance": StrictInt | StrictFloat,
    "known_by": tuple[str, ...] | str,
}
"""Types of the fields that a stored record of any kind may have: one means the same in each of them."""
_STORED: TypeAdapter[Any] = TypeAdapter(shape(RECORD_FIELDS, total=False))
