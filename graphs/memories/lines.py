"""Memories as JSON lines, {"place", "key", "value"}, and all by which they hold; `place` is below their owner's."""

import json
from collections.abc import Collection, Sequence
from typing import Annotated, Any, TypeAlias

from langgraph.store.base import BaseStore, Item, PutOp
from pydantic import Field, TypeAdapter

from questbook.graphs.errors import InputError
from questbook.graphs.turn.scope import HEAD, HEADS
from questbook.graphs.turn.sessions import PASTS
from questbook.memory.facts.fact import Fact
from questbook.memory.facts.reflection import SOURCES
from questbook.memory.facts.validity import FLAGS, JUDGEMENTS, MARKS, text_digest
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.namespaces import escape_label, read_label, unescape_label
from questbook.memory.timeline.records import check_fits, check_record, shape
from questbook.memory.timeline.timeline import Segment, check_timeline, is_visible, read_timeline
from questbook.types import JSON

RECORDS = ("exchanges", "facts", "archive")
"""Labels of the namespaces, below that of an agent or campaign, that hold what is remembered."""
_COMPANION = "companion"  # whose campaigns are assistants, each one conversation
_BESIDE = (MARKS, JUDGEMENTS, FLAGS, SOURCES, HEADS)
_Label: TypeAlias = Annotated[str, Field(min_length=1)]
_LINE = TypeAdapter[Any](shape({"place": Annotated[list[_Label], Field(min_length=1)], "key": _Label, "value": JSON}))
_FIELDS = {"text": _Label, "kind": str}
_REQUIRED: dict[str, TypeAdapter[Any]] = {
    "facts": TypeAdapter(shape({**_FIELDS, "turn": int})),
    **dict.fromkeys(("exchanges", "archive"), TypeAdapter(shape({**_FIELDS, "branch": str, "turn": int}))),
    MARKS: TypeAdapter(shape({"what": str, "about": str, "fact": str, "turn": int})),
    JUDGEMENTS: TypeAdapter(shape({"ended": str, "fact": str, "turn": int})),
    FLAGS: TypeAdapter(JSON),
    SOURCES: TypeAdapter(shape({"same_as": str, "cites": list[str]})),
    HEADS: TypeAdapter(shape({"timeline": list[Any]})),
}


async def items_beside(store: BaseStore, space: tuple[str, ...], keys: Collection[str]) -> list[Item]:
    """Return what is beside records with these keys, and the heads of threads."""
    digests, found = {text_digest(key) for key in keys}, list[Item]()
    for label in _BESIDE:
        async for item in items_under(store, (*space, label), refresh_ttl=False):
            names = {item.value.get(name) for name in ("fact", "ended", "same_as")}
            if label == HEADS or names & {*keys} or {item.key, item.value.get("about")} & digests:
                found.append(item)
    return found


def lines_of_threads(space: tuple[str, ...], timeline: Sequence[Segment], lines: Sequence[JSON]) -> list[JSON]:
    """Return lines that one timeline sees, such as a game's, as those of threads with that timeline as their head."""
    threads = sorted({str(line["value"]["thread"]) for line in lines if line["value"].get("thread")}) or ["imported"]
    head = {"timeline": [list(segment) for segment in timeline]}
    heads: list[JSON] = [{"place": [*space, HEADS], "key": thread, "value": head} for thread in threads]
    for line in lines:
        own = {} if line["value"].get("thread") or "branch" not in line["value"] else {"thread": threads[0]}
        heads.append(line | {"value": line["value"] | own})
    return heads


async def with_past(store: BaseStore, space: tuple[str, ...], lines: list[JSON]) -> list[JSON]:
    """Return new lines; of a conversation that is one line with the past that it begins with, not heads of threads.

    It takes over a past before its first turn only, without what was taken back there: turns have one number each.
    """
    head, name = await store.aget((*space, HEAD), HEAD, refresh_ttl=False), read_label(space[1])
    of_threads = head is None or await store.asearch((*space, HEADS), limit=1, refresh_ttl=False)
    if name.partition(":")[0] != _COMPANION and of_threads:
        return lines
    own = [line for line in lines if line["place"][0] == space[1]]
    others = [line for line in lines if line["place"][0] != space[1]]
    timelines = {tuple(read_timeline(line["value"])) for line in own if line["place"][1] == HEADS} - {()}
    timeline = next(iter(timelines), ())
    records, scoped = [line for line in own if line["place"][1] != HEADS], any("scope" in line["value"] for line in own)
    own = [line for line in records if is_visible(timeline, line["value"])]
    if head is not None:  # what was removed here comes back
        back = [line for line in records if is_visible(read_timeline(head.value), line["value"])]
        if not records or (timelines and not own) or (not scoped and any("branch" in line["value"] for line in back)):
            return [*others, *back]
    has_begun = head is not None or await store.asearch((*space, PASTS), limit=1, refresh_ttl=False)
    if has_begun or len(timelines) != 1 or scoped:
        known = f"{name.removeprefix(f'{_COMPANION}:')!r:.80} is one conversation: it takes over what another remembers"
        raise InputError(f"{known}, before its first turn only. Nothing was imported: give a new name, or an agent's.")
    past: JSON = {"timeline": timeline, "archive_count": sum(line["place"][1] == "archive" for line in own)}
    through = dict.fromkeys(("turn", "facts_through"), timeline[-1][1])
    return [*others, *own, {"place": [space[1], HEAD], "key": HEAD, "value": past | through}]


def read_line(text: str, number: int) -> JSON:
    """Read a line, and check every field of it; an InputError names the line and what is wrong."""
    try:
        line: JSON = json.loads(text)
        check_fits(_LINE, line)
        labels = [part if part == "player" else escape_label(unescape_label(part)) for part in line["place"]]
        depth = next((n for n, label in enumerate(labels[:2]) if label in _REQUIRED), None)
        if depth is None or len(labels) > depth + (2 if labels[depth] in (MARKS, HEADS) else 1):
            raise ValueError(f"place: got {line['place']!r:.80}; expected [agent, {'|'.join(_REQUIRED)}]")
        check_record(line["value"])
        check_fits(_REQUIRED[labels[depth]], line["value"], "value")
        if labels[depth] == HEADS:
            check_timeline(line["value"]["timeline"])
        if labels[depth] == "facts":
            own = {name: line["value"][name] for name in Fact.model_fields.keys() & line["value"].keys() - {"kind"}}
            Fact.model_validate(own)
    except (ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"Line {number} is no memory: {reason:.300}. Nothing was imported.") from error
    return line


def line_write(line: JSON, space: tuple[str, ...]) -> PutOp:
    """Return the write of a line that was read, below the namespace of a user or team."""
    index = None if line["place"][-1] in RECORDS else False
    return PutOp((*space, *line["place"]), line["key"], line["value"], index=index)  # type: ignore[arg-type]  # a literal
