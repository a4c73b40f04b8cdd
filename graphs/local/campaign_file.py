"""A campaign as one file: everything of it, readable, and back again without loss.

The file is a zip archive of JSON Lines:

- `manifest.json`: the format's number, the campaign, its graph, and the SHA-256 of every other part.
- `records.jsonl`: what memory holds: {"place", "key", "value", "index"}; the place is below the campaign's namespace.
- `values.jsonl`: values of channels, each once: {"id", …} with the value as "json", as "messages", or, where it is
  neither, as LangGraph's serializer writes it ("type" and "base64").
- `checkpoints.jsonl`: {"thread", "namespace", "parent", "checkpoint", "metadata", "values", "writes"}, where `values`
  names for each channel the id of its value.

A file may come from a stranger: nothing in it names a file or a class to load, and what it unpacks to, needs in memory
and writes is limited.
"""

import asyncio
import base64
import hashlib
import json
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NotRequired

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, PutOp
from pydantic import AfterValidator, Field, StrictBool, StrictInt, TypeAdapter

from questbook import __version__
from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.checkpoint_tables import hidden
from questbook.graphs.local.game import Game
from questbook.graphs.local.saved_game import OWNER, thread_id_of
from questbook.graphs.turn.channels import check_channel
from questbook.graphs.turn.clock import time_of
from questbook.graphs.turn.scope import HEAD
from questbook.graphs.turn.sessions import PASTS
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import unescape_label
from questbook.memory.timeline.records import RECORD_FIELDS, ROLL, Count, check_fits, shape
from questbook.types import JSON

_SEARCHED = frozenset({"exchanges", "facts", "reflections", "lore", "archive"})  # what recall looks for by meaning
_FARTHEST_AHEAD = timedelta(days=3_660)  # of a computer whose clock was wrong
_SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)  # builds LangGraph's own classes, and no others
_FORMAT = 1
_PARTS = _RECORDS, _VALUES, _CHECKPOINTS = "records.jsonl", "values.jsonl", "checkpoints.jsonl"
_MANIFEST = "manifest.json"
_MOST_BYTES = 2_000_000_000  # unpacked
_MOST_TIMES = 200  # larger than its file; games of 1 to 60 turns are 6 to 21 times as large
_ALWAYS_BYTES = 20_000_000  # that may be unpacked, however small the file
_COSTS = ((b"{", 240), (b"[", 64), (b",", 60))  # bytes of memory that JSON's marks bring at most, a text's own aside
_RECORD_MEMORY = 20_000  # of a record's vectors, while all are written in one transaction
_MOST_MEMORY = 8_000_000_000  # bytes, by these costs; a turn of a game has 0.2 MB
_MOST_TIMES_MEMORY = 1000  # larger than its file; games of 20 turns are 100 times as large
_ALWAYS_MEMORY = 100_000_000  # that may be needed, however small the file
_LINE_MEMORY = 20_000_000  # of a line, which is parsed in one go: other threads wait some 100 ms for it at most
_MSGPACK_LISTS = bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)])  # with which a list or an object begins
_DEEPEST = 60  # lists and objects in each other; games have 9
_MOST_COPIES = 10  # times its values' size that a file may write: a checkpoint of 200 bytes may name one of megabytes
_MACHINES = ("dungeon_master", "companion")


class CampaignFileError(QuestbookError):
    """A campaign cannot be written to a file or read from one; the message says why, and nothing was changed."""


class Contents(NamedTuple):
    """What a file holds: name, graph and last turn of the campaign; how many records and checkpoints."""

    campaign: str
    machine: str
    turn: int
    records: int
    checkpoints: int


async def export_campaign(game: Game, path: Path) -> Contents:
    """Write everything of a campaign, which nobody may play meanwhile, to a file that does not exist."""
    if (saved := await game.saved_game()) is None:
        raise CampaignFileError(f"There is nothing to export of campaign {game.context.campaign!r}: it has not begun.")
    threads = await game.threads()
    values: dict[str, JSON] = {}
    # Checkpoints first: if another program plays meanwhile, the file has every record that they may see.
    checkpoints = [line async for line in _checkpoints(game, threads, values)]
    records = [line async for line in _records(game)]
    parts = {_RECORDS: records, _VALUES: list(values.values()), _CHECKPOINTS: checkpoints}
    contents = Contents(game.context.campaign, game.machine, saved.turn, len(records), len(checkpoints))
    about: JSON = {"format": _FORMAT, "questbook": __version__, "user": game.context.user, "thread": game.thread_id}
    about["exported_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        await asyncio.to_thread(_write_archive, path, about | contents._asdict(), parts)
    except OSError as error:
        raise CampaignFileError(f"Cannot write {path}: {error.strerror or error}. Name another file.") from error
    return contents


async def import_campaign(game: Game, path: Path, *, most_memory: int = _MOST_MEMORY) -> Contents:
    """Read a campaign from a file into one that has not begun, of any user and name; on an error nothing of it stays.

    A file that would need more than `most_memory` bytes, by a generous estimate, is refused before it is parsed.
    """
    about, parts = await asyncio.to_thread(read_archive, path, most_memory)
    store = await game.store()
    if about["machine"] != game.machine:
        raise CampaignFileError(f"{path.name} holds a campaign of {about['machine']}, not of {game.machine}.")
    move = _Move(game, about)
    space, hidden_place = game.context.campaign_namespace(), {"thread_id": move.hidden(game.thread_id)}
    has_begun = await game.saved_game() is not None or await game.threads() != [game.thread_id]
    if not has_begun and await game.checkpointer.aget_tuple({"configurable": hidden_place}) is not None:
        await _remove(game, store, move)  # a process that imported was killed
    if has_begun or await store.asearch(space, limit=1, refresh_ttl=False):
        hint = "Nothing was changed; choose another name (in the terminal: --campaign NAME)."
        raise CampaignFileError(f"Campaign {game.context.campaign!r} has begun already. {hint}")
    try:
        await asyncio.to_thread(_check_parts, parts, await game.load())
        await _put_checkpoints(game, parts, move)
        await _put_records(game, store, parts[_RECORDS], move)
        await game.checkpointer.show_threads({move.hidden(thread): thread for thread in move.threads})
    except BaseException as error:
        await _remove(game, store, move)
        if isinstance(error, KeyError | TypeError | ValueError | AttributeError):
            reason = " ".join(str(error).split()) if isinstance(error, ValueError) else repr(error)
            text = f"{path.name} is no campaign of Questbook's: {reason.rstrip('.'):.300}. Nothing was changed."
            raise CampaignFileError(text) from error
        raise
    return Contents(**{name: about[name] for name in Contents._fields} | {"campaign": game.context.campaign})


_STATE = shape({
    "v": StrictInt, "ts": Annotated[str, AfterValidator(lambda text: datetime.fromisoformat(text) and text)], "id": str,
    "channel_versions": dict[str, str], "versions_seen": dict[str, dict[str, str]],
    "updated_channels": NotRequired[list[str] | None],
})  # fmt: skip
_METADATA = shape({
    "source": str, "step": StrictInt, "parents": dict[str, str], "user": str, "campaign": str, "thread_id": str,
    "copied_from": shape(dict.fromkeys(("thread_id", "checkpoint_ns", "checkpoint_id"), str)),
}, total=False)  # fmt: skip
_LINES: Mapping[str, JSON] = {
    _CHECKPOINTS: {
        "thread": str, "namespace": str, "parent": str | None, "checkpoint": _STATE, "metadata": _METADATA,
        "values": dict[str, str], "writes": list[shape(dict.fromkeys(("task", "channel", "value"), str))],  # type: ignore[misc]
    },
    _RECORDS: {"place": Annotated[list[str], Field(min_length=1)], "key": str, "value": JSON, "index": StrictBool},
    _VALUES: {"id": str},
}  # fmt: skip
"""What each line of a part has."""
_FIELDS = RECORD_FIELDS | {
    **dict.fromkeys(("attribute", "slot", "claimed_by", "taught", "date", "month", "at", "fact"), str),
    "line": str | None, "location": str | None, "turns": tuple[Count, Count], "cites": list[str], "sheet": JSON,
    "order": Annotated[str, Field(pattern=r"^\d{8,}$")], "rolls": list[ROLL], "head": JSON | None, "owner": str,
}  # fmt: skip
_REQUIRED: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("exchanges", "gaps", "retracted", "lines", "reflections"), ("branch", "turn")),
    "facts": ("text", "kind", "turn", "at", "turns"),
    "head": ("turn", "timeline"),
    "pasts": ("head",),
    "marks": ("fact", "branch", "turn"),
}
"""Fields that records of a place have."""


def _check_parts(parts: Mapping[str, list[JSON]], graph: Any) -> None:
    """Check every field of a campaign, as those of an edit by hand and of a record that comes in are checked."""
    for part, fields in _LINES.items():
        check_fits(TypeAdapter[Any](list[shape(fields)]), parts[part], part)  # type: ignore[misc, arg-type]
    encoded, known = {line["id"]: line for line in parts[_VALUES]}, set[tuple[str, str]]()
    for line in parts[_CHECKPOINTS]:
        values: JSON = {}
        for name, number in line["values"].items():
            if number not in encoded:
                raise ValueError(f"{_CHECKPOINTS}: got {number!r:.40} for {name!r:.40}; expected an id in {_VALUES}")
            values[name] = _decode(encoded[number])
            if (name, number) not in known:
                check_channel(graph.channels, name, values[name])
                known.add((name, number))
        graph.builder.state_schema.model_validate(values).check_edit(upkeep=True)
    record = TypeAdapter[Any](shape(_FIELDS, total=False))
    for number, line in enumerate(parts[_RECORDS]):
        (place, *_), value = line["place"], line["value"]
        check_fits(record, value, f"{_RECORDS}.{number}")
        if missing := [name for name in _REQUIRED.get(place, ()) if name not in value]:
            raise ValueError(f"{_RECORDS}.{number}: got a record of {place} without {missing[0]!r}")
        head = value["head"] if place == PASTS else value if place == HEAD else None
        for name, part in (head or {}).items():
            check_channel(graph.channels, name, part)


class _Move:
    """What is named otherwise in the home that a file comes to: user, campaign and the campaign's own thread."""

    def __init__(self, game: Game, about: Mapping[str, Any]) -> None:
        self.threads = {game.thread_id}
        self.names = [game.context.user, game.context.campaign]
        self._own, self._new = str(about["thread"]), game.thread_id
        self._user = {"user": self.names[0], "campaign": self.names[1]}

    def thread(self, name: str) -> str:
        """Return a thread's new id. Those that other programs began get one of their own, which no home has yet."""
        thread = self._new if name == self._own else thread_id_of(name, self._new)
        self.threads.add(thread)
        return thread

    def hidden(self, thread: str) -> str:
        """Return the id that a thread has until all of it is there."""
        return thread_id_of("import", thread)

    def record(self, value: JSON) -> JSON:
        """Return a record with the thread that wrote it; with whom the campaign is shared is not a file's to say."""
        here = {name: part for name, part in value.items() if name != "guests"}
        return here | ({"thread": self.thread(value["thread"])} if isinstance(value.get("thread"), str) else {})

    def metadata(self, value: JSON) -> JSON:
        """Return a checkpoint's metadata; who began the thread on the server that it comes from is nobody here."""
        moved = {**value, **{name: new for name, new in self._user.items() if name in value}}
        moved.pop(OWNER, None)
        if isinstance(origin := moved.get("copied_from"), dict):
            moved["copied_from"] = origin | {"thread_id": self.thread(str(origin.get("thread_id")))}
        return moved | ({"thread_id": self.thread(str(value["thread_id"]))} if "thread_id" in value else {})


async def _records(game: Game) -> AsyncIterator[JSON]:
    space = game.context.campaign_namespace()
    async for item in items_under(await game.store(), space, refresh_ttl=False):
        place = [unescape_label(label) for label in item.namespace[len(space) :]]
        path = {"path": Path(path).name} if (path := item.value.get("path")) else {}  # of lore: where it was read
        yield {"place": place, "key": item.key, "value": item.value | path, "index": bool(_SEARCHED & set(place))}


async def _put_records(game: Game, store: BaseStore, lines: list[JSON], move: _Move) -> None:
    ops = []
    for line in lines:
        place, key = game.context.campaign_namespace(*line["place"]), line["key"]
        key = move.thread(key) if line["place"] == [PASTS] else key
        ops.append(PutOp(place, key, move.record(line["value"]), None if line["index"] else False))
    await put_all(store, ops)  # all or none


async def _checkpoints(game: Game, threads: list[str], values: dict[str, JSON]) -> AsyncIterator[JSON]:
    """Yield the checkpoints of threads, parents first, and collect the values of their channels."""
    for thread in threads:
        tuples = [saved async for saved in game.checkpointer.alist({"configurable": {"thread_id": thread}})]
        for saved in reversed(tuples):
            parent = (saved.parent_config or {"configurable": {}})["configurable"].get("checkpoint_id")
            checkpoint: JSON = {**saved.checkpoint}
            channels: Mapping[str, Any] = checkpoint.pop("channel_values")
            namespace = saved.config["configurable"].get("checkpoint_ns", "")
            line = {"thread": thread, "namespace": namespace, "parent": parent, "checkpoint": checkpoint}
            line["metadata"] = dict(saved.metadata)
            line["values"] = {name: _keep(values, _encode(value)) for name, value in channels.items()}
            writes = ((task, channel, _encode(value)) for task, channel, value in saved.pending_writes or [])
            line["writes"] = [{"task": t, "channel": name, "value": _keep(values, value)} for t, name, value in writes]
            yield line


async def _put_checkpoints(game: Game, parts: Mapping[str, list[JSON]], move: _Move) -> None:
    saver, encoded = game.checkpointer, {line["id"]: line for line in parts[_VALUES]}
    written: dict[tuple[str, str, str], dict[str, tuple[Any, str]]] = {}  # version and value of each channel
    sizes = await asyncio.to_thread(lambda: {number: len(json.dumps(line)) for number, line in encoded.items()})
    left = _MOST_COPIES * sum(sizes.values()) + _ALWAYS_BYTES

    async def value_of(channel: str, number: str, *, is_new: bool = True) -> Any:
        nonlocal left
        left -= sizes[number] if is_new else 0
        if left < 0:
            raise ValueError("its checkpoints would write its values again and again, more than a campaign does")
        value = await asyncio.to_thread(_decode, encoded[number])
        return move.names if channel == "campaign" and value else value

    for line in parts[_CHECKPOINTS]:
        thread, namespace = move.thread(line["thread"]), line["namespace"]
        checkpoint: Any = line["checkpoint"]
        time = time_of(checkpoint["id"])  # the next ids of this home are greater than it
        if time is None or time - datetime.now(UTC) > _FARTHEST_AHEAD:
            problem = f"checkpoint {checkpoint['id']!r:.60}"
            raise ValueError(f"{problem}: expected an id of LangGraph's that tells no far future")
        where: JSON = {"thread_id": move.hidden(thread), "checkpoint_ns": namespace}
        parent = {"checkpoint_id": line["parent"]} if line["parent"] else {}
        before = written.get((thread, namespace, line["parent"] or ""), {})
        now = {name: (version, line["values"].get(name)) for name, version in checkpoint["channel_versions"].items()}
        written[thread, namespace, checkpoint["id"]] = now
        changed: Any = {name: version for name, (version, _) in now.items() if before.get(name) != now[name]}
        checkpoint["channel_values"] = {
            name: await value_of(name, number, is_new=name in changed or name not in now)
            for name, number in line["values"].items()
        }
        metadata: Any = hidden(move.metadata(line["metadata"]))
        config = await saver.aput({"configurable": where | parent}, checkpoint, metadata, changed)
        writes = [(each["task"], each["channel"], each["value"]) for each in line["writes"]]
        await saver.aput_all_writes(config, [(task, name, await value_of(name, at)) for task, name, at in writes])


async def _remove(game: Game, store: BaseStore, move: _Move) -> None:
    items = [item async for item in items_under(store, game.context.campaign_namespace(), refresh_ttl=False)]
    await put_all(store, [PutOp(item.namespace, item.key, None) for item in items])
    for thread in move.threads:
        await game.checkpointer.adelete_thread(move.hidden(thread))


def _keep(values: dict[str, JSON], encoded: JSON) -> str:
    """Keep a value once; return its id."""
    text = json.dumps(encoded, ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    values.setdefault(digest, {"id": digest} | encoded)
    return digest


def _encode(value: Any) -> JSON:
    if isinstance(value, list) and value and all(isinstance(part, BaseMessage) for part in value):
        encoded: JSON = {"messages": messages_to_dict(value)}
        if _is_json(encoded) and messages_from_dict(encoded["messages"]) == value:
            return encoded
    if _is_json(value):
        return {"json": value}
    kind, data = _SERDE.dumps_typed(value)
    return {"type": kind, "base64": base64.b64encode(data).decode("ascii")}


def _decode(line: Mapping[str, Any]) -> Any:
    if "messages" in line:
        return messages_from_dict(line["messages"])
    if "json" in line:
        return line["json"]
    if line.get("type") not in ("msgpack", "null", "bytes", "bytearray"):
        raise ValueError(f"value {line['id']!r:.40} is of type {line.get('type')!r:.40}, expected msgpack")
    data = base64.b64decode(line["base64"])
    if 8 * len(data) + 64 * (len(data) - len(data.translate(None, _MSGPACK_LISTS))) > _LINE_MEMORY:
        raise ValueError(f"value {line['id']!r:.40} has more than a campaign's in one place")
    return _SERDE.loads_typed((line["type"], data))


def _is_json(value: Any) -> bool:
    """Whether a value comes back from JSON as it is: no tuples, no keys that are no text."""
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or type(value) in (str, int, float, bool)


def _write_archive(path: Path, about: JSON, parts: Mapping[str, list[JSON]]) -> None:
    """Write what the manifest says beside checksums, and the lines of each part, to a file that does not exist."""
    texts = {name: "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows) for name, rows in parts.items()}
    data = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
    about = about | {"sha256": {name: hashlib.sha256(part).hexdigest() for name, part in data.items()}}
    with path.open("xb") as file:
        try:
            path.chmod(0o600)
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(_MANIFEST, json.dumps(about, indent=2, ensure_ascii=False))
                for name, part in data.items():
                    archive.writestr(name, part)
        except BaseException:
            path.unlink()  # half a file helps nobody
            raise


def read_archive(path: Path, most_memory: int = _MOST_MEMORY) -> tuple[JSON, dict[str, list[JSON]]]:
    """Read an archive: its manifest, and the lines of each part, which are refused if they need too much memory."""
    with _open(path) as (archive, about):
        left = min(most_memory, max(_MOST_TIMES_MEMORY * path.stat().st_size, _ALWAYS_MEMORY))
        for name in _PARTS:
            digest = hashlib.sha256()
            for line in _lines(archive, name):
                digest.update(line)
                left -= _memory_of(line) + (_RECORD_MEMORY if name == _RECORDS else 0)
                if left < 0:
                    problem = "it would need far more memory than a campaign of this size, or than may be used here"
                    raise ValueError(f"{problem}; questbook import FILE.zip takes larger ones")
            if digest.hexdigest() != about["sha256"].get(name):
                raise ValueError(f"{name} is not as it was written")
        return about, {name: [_parse(line) for line in _lines(archive, name) if line != b"\n"] for name in _PARTS}


def contents_of(path: Path) -> Contents:
    """Return what a file says that it holds; only its manifest is read."""
    with _open(path) as (_, about):
        return Contents(**{name: about[name] for name in Contents._fields})


@contextmanager
def _open(path: Path) -> Iterator[tuple[zipfile.ZipFile, JSON]]:
    """Open an archive and read its manifest; what goes wrong while it is open is a CampaignFileError."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_names(archive)
            about: JSON = _parse(archive.read(_MANIFEST))
            _check_manifest(about, path.name)
            yield archive, about
    except OSError as error:
        raise CampaignFileError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        problem = f"{path.name} is no campaign of Questbook's, or is damaged"
        raise CampaignFileError(f"{problem}: {error!s:.200}. Nothing was changed.") from error


def _check_names(archive: zipfile.ZipFile) -> None:
    """Check that an archive holds these parts and nothing else, and unpacks to no more than a campaign does."""
    names, expected = sorted(archive.namelist()), sorted((_MANIFEST, *_PARTS))
    if others := sorted(set(names) - set(expected)):
        raise ValueError(f"it holds {others[0]!r:.80}, expected only {', '.join(expected)}")
    if names != expected:
        twice = [name for name in expected if names.count(name) > 1]
        missing = [name for name in expected if name not in names]
        raise ValueError(f"it holds {twice[0]} twice" if twice else f"it lacks {missing[0]}")
    size = sum(part.file_size for part in archive.infolist())
    packed = sum(part.compress_size for part in archive.infolist())
    if size > min(max(_MOST_TIMES * packed, _ALWAYS_BYTES), _MOST_BYTES):
        raise ValueError(f"it would unpack from {packed:,} to {size:,} bytes, more than a campaign of this size")


def _check_manifest(about: Any, name: str) -> None:
    """Check what a file says of itself; what is missing is a ValueError."""
    number = about.get("format") if isinstance(about, dict) else None
    if isinstance(number, int) and number > _FORMAT:
        problem = f"{name} was written by a newer version (format {number}; this one reads {_FORMAT})"
        raise CampaignFileError(f"{problem}. Nothing was changed; import it with that version of Questbook.")
    if number != _FORMAT:
        raise CampaignFileError(f"{name} has format {number!r:.40}; this version reads format {_FORMAT}.")
    kinds = {"campaign": str, "machine": str, "thread": str, "turn": int, "records": int, "checkpoints": int}
    for field, kind in (kinds | {"sha256": dict}).items():
        if not isinstance(about.get(field), kind):
            raise ValueError(f"{_MANIFEST} says {about.get(field)!r:.40} for {field!r}, expected {kind.__name__}")
    if about["machine"] not in _MACHINES:
        raise ValueError(f"it belongs to {about['machine']!r:.40}, expected {' or '.join(_MACHINES)}")


def _lines(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Yield the lines of a part; of one that is too long, what is too long already."""
    with archive.open(name) as part:
        yield from iter(lambda: part.readline(_LINE_MEMORY + 1), b"")


def _memory_of(line: bytes) -> int:
    """Return how many bytes of memory a line of JSON takes at most when it is parsed."""
    return len(line) + sum(cost * line.count(mark) for mark, cost in _COSTS)


def _parse(line: bytes) -> Any:
    """Parse a line of JSON that is neither too much at once nor too deep."""
    if _memory_of(line) > _LINE_MEMORY:
        raise ValueError(f"it has more than a campaign's in one place: {line[:40]!r}")
    value = json.loads(line.decode("utf-8", "surrogatepass"))
    level = [value]
    for _ in range(_DEEPEST):
        parts = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [inner for part in parts for inner in part]
    if level:
        raise ValueError(f"it has lists or objects more than {_DEEPEST} deep: {line[:40]!r}")
    return value
