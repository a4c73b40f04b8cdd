"""A campaign as one file: everything of it, readable, and back again without loss.

The file is a zip archive of JSON Lines:

- `manifest.json`: the format's number, the campaign, its graph, and the SHA-256 of every other part.
- `records.jsonl`: what memory holds: {"place", "key", "value", "index"}; the place is below the campaign's namespace.
- `values.jsonl`: values of channels, each once: {"id", …} with the value as "json", as "messages", or, where it is
  neither, as LangGraph's serializer writes it ("type" and "base64").
- `checkpoints.jsonl`: {"thread", "namespace", "parent", "checkpoint", "metadata", "values", "writes"}, where `values`
  names for each channel the id of its value.

A file may come from a stranger: nothing in it names a file or a class to load, and what it unpacks to is limited.
"""

from __future__ import annotations

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
from typing import Any, NamedTuple, Self

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import BaseStore, PutOp

from questbook import __version__
from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.checkpoint_tables import hidden
from questbook.graphs.local.game import Game
from questbook.graphs.local.saved_game import OWNER, last_of_threads, thread_id_of
from questbook.graphs.turn.clock import time_of
from questbook.graphs.turn.sessions import PASTS
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import unescape_label
from questbook.types import JSON

_SEARCHED = frozenset({"exchanges", "facts", "reflections", "lore", "archive"})  # what recall looks for by meaning
_FARTHEST_AHEAD = timedelta(days=3_660)  # of a computer whose clock was wrong
_SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)  # builds LangGraph's own classes, and no others
_FORMAT = 1
_RECORDS, _VALUES, _CHECKPOINTS = "records.jsonl", "values.jsonl", "checkpoints.jsonl"
_MANIFEST = "manifest.json"
_PARTS = (_RECORDS, _VALUES, _CHECKPOINTS)
_MOST_BYTES = 2_000_000_000  # unpacked
_MOST_TIMES = 200  # larger than its file; games of 1 to 60 turns are 6 to 21 times as large
_ALWAYS_BYTES = 20_000_000  # that may be unpacked, however small the file
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

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Self:
        """Read a manifest."""
        return cls(*(about[field] for field in cls._fields))


async def export_campaign(game: Game, path: Path) -> Contents:
    """Write everything of a campaign, which nobody may play meanwhile, to a file that does not exist.

    Raises:
        CampaignFileError: There is no such campaign, or the file cannot be written.
    """
    saved, store = await game.saved_game(), (await game.load()).store
    if saved is None or store is None:
        raise CampaignFileError(f"There is nothing to export of campaign {game.context.campaign!r}: it has not begun.")
    threads = await _threads(game)
    values: dict[str, JSON] = {}
    # Checkpoints first: if another program plays meanwhile, the file has every record that they may see.
    checkpoints = [line async for line in _checkpoints(game, threads, values)]
    records = [line async for line in _records(game, store)]
    parts = {_RECORDS: records, _VALUES: list(values.values()), _CHECKPOINTS: checkpoints}
    contents = Contents(game.context.campaign, game.machine, saved.turn, len(records), len(checkpoints))
    about = {
        "format": _FORMAT,
        "questbook": __version__,
        "user": game.context.user,
        "thread": game.thread_id,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        await asyncio.to_thread(_write_archive, path, about | contents._asdict(), parts)
    except OSError as error:
        raise CampaignFileError(f"Cannot write {path}: {error.strerror or error}. Name another file.") from error
    return contents


async def import_campaign(game: Game, path: Path) -> Contents:
    """Read a campaign from a file into one that has not begun, of any user and name; on an error nothing of it stays.

    Raises:
        CampaignFileError: It is no such file, is damaged or newer, belongs to another graph; or the campaign has begun.
    """
    about, parts = await asyncio.to_thread(read_archive, path)
    store = (await game.load()).store
    if store is None:
        raise CampaignFileError(f"Campaign {game.context.campaign!r} has no memory here, so nothing can be imported.")
    if about["machine"] != game.machine:
        raise CampaignFileError(f"{path.name} holds a campaign of {about['machine']}, not of {game.machine}.")
    move = _Move(game, about)
    space, hidden_place = game.context.campaign_namespace(), {"thread_id": move.hidden(game.thread_id)}
    has_begun = await game.saved_game() is not None or await _threads(game) != [game.thread_id]
    if not has_begun and await game.checkpointer.aget_tuple({"configurable": hidden_place}) is not None:
        await _remove(game, store, move)  # a process that imported was killed
    if has_begun or await store.asearch(space, limit=1, refresh_ttl=False):
        raise CampaignFileError(
            f"Campaign {game.context.campaign!r} has begun already. Nothing was changed; import it under another name "
            "(in the terminal: --campaign NAME)."
        )
    try:
        await _put_checkpoints(game, parts, move)
        await _put_records(game, store, parts[_RECORDS], move)
        await game.checkpointer.show_threads({move.hidden(thread): thread for thread in move.threads})
    except BaseException as error:
        await _remove(game, store, move)
        if isinstance(error, KeyError | TypeError | ValueError | AttributeError):
            text = f"{path.name} is no campaign of Questbook's: {error!r:.200}. Nothing was changed."
            raise CampaignFileError(text) from error
        raise
    return Contents.of(about)._replace(campaign=game.context.campaign)


class _Move:
    """What is named otherwise in the home that a file comes to: user, campaign and the campaign's own thread."""

    def __init__(self, game: Game, about: Mapping[str, Any]) -> None:
        self.threads = {game.thread_id}
        self._names = [game.context.user, game.context.campaign]
        self._own, self._new = str(about["thread"]), game.thread_id
        self._user = {"user": self._names[0], "campaign": self._names[1]}

    def thread(self, name: str) -> str:
        """Return a thread's new id. Those that other programs began get one of their own, which no home has yet."""
        thread = self._new if name == self._own else thread_id_of(name, self._new)
        self.threads.add(thread)
        return thread

    def hidden(self, thread: str) -> str:
        """Return the id that a thread has until all of it is there."""
        return thread_id_of("import", thread)

    def key(self, place: Sequence[str], key: str) -> str:
        """Return the key of a record: of a thread's past it is the thread."""
        return self.thread(key) if tuple(place) == (PASTS,) else key

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

    def channel(self, name: str, value: Any) -> Any:
        """Return a channel's value."""
        return self._names if name == "campaign" and value else value


async def _threads(game: Game) -> list[str]:
    context, saver = game.context, game.checkpointer
    names = {saved.thread_id async for saved in last_of_threads(saver, context.user or "", context.campaign)}
    return sorted(names | {game.thread_id})


async def _records(game: Game, store: BaseStore) -> AsyncIterator[JSON]:
    space = game.context.campaign_namespace()
    async for item in items_under(store, space, refresh_ttl=False):
        place = [unescape_label(label) for label in item.namespace[len(space) :]]
        yield {"place": place, "key": item.key, "value": item.value, "index": bool(_SEARCHED & set(place))}


async def _put_records(game: Game, store: BaseStore, lines: list[JSON], move: _Move) -> None:
    ops = [
        PutOp(
            game.context.campaign_namespace(*line["place"]),
            move.key(line["place"], line["key"]),
            move.record(line["value"]),
            None if line["index"] else False,
        )
        for line in lines
    ]
    await put_all(store, ops)  # all or none


async def _checkpoints(game: Game, threads: list[str], values: dict[str, JSON]) -> AsyncIterator[JSON]:
    """Yield the checkpoints of threads, parents first, and collect the values of their channels."""
    for thread in threads:
        tuples = [saved async for saved in game.checkpointer.alist({"configurable": {"thread_id": thread}})]
        for saved in reversed(tuples):
            where = saved.config["configurable"]
            checkpoint: JSON = {**saved.checkpoint}
            channels: Mapping[str, Any] = checkpoint.pop("channel_values")
            yield {
                "thread": thread,
                "namespace": where.get("checkpoint_ns", ""),
                "parent": (saved.parent_config or {"configurable": {}})["configurable"].get("checkpoint_id"),
                "checkpoint": checkpoint,
                "metadata": dict(saved.metadata),
                "values": {name: _keep(values, _encode(value)) for name, value in channels.items()},
                "writes": [
                    {"task": task, "channel": channel, "value": _keep(values, _encode(value))}
                    for task, channel, value in saved.pending_writes or []
                ],
            }


async def _put_checkpoints(game: Game, parts: Mapping[str, list[JSON]], move: _Move) -> None:
    saver = game.checkpointer
    encoded = {line["id"]: line for line in parts[_VALUES]}
    versions: dict[tuple[str, str, str], JSON] = {}

    def value_of(channel: str, number: str) -> Any:
        return move.channel(channel, _decode(encoded[number]))

    for line in parts[_CHECKPOINTS]:
        thread, namespace = move.thread(line["thread"]), line["namespace"]
        values = {name: value_of(name, number) for name, number in line["values"].items()}
        checkpoint: Any = line["checkpoint"] | {"channel_values": values}
        _check_id(checkpoint["id"])
        where: JSON = {"thread_id": move.hidden(thread), "checkpoint_ns": namespace}
        parent = {"checkpoint_id": line["parent"]} if line["parent"] else {}
        before = versions.get((thread, namespace, line["parent"] or ""), {})
        now = versions[thread, namespace, checkpoint["id"]] = checkpoint["channel_versions"]
        changed: Any = {name: version for name, version in now.items() if before.get(name) != version}
        metadata: Any = hidden(move.metadata(line["metadata"]))
        await saver.aput({"configurable": where | parent}, checkpoint, metadata, changed)
        tasks: dict[str, list[tuple[str, Any]]] = {}  # writes of a task are counted, so they come in together
        for write in line["writes"]:
            tasks.setdefault(write["task"], []).append((write["channel"], value_of(write["channel"], write["value"])))
        for task, writes in tasks.items():
            await saver.aput_writes({"configurable": where | {"checkpoint_id": checkpoint["id"]}}, writes, task)


def _check_id(checkpoint: str) -> None:
    """Check that an id tells a time that a clock may have told: the next ids of this home are greater than it."""
    time = time_of(checkpoint)
    if time is None or time - datetime.now(UTC) > _FARTHEST_AHEAD:
        raise ValueError(f"checkpoint {checkpoint!r:.60}: expected an id of LangGraph's that tells no far future")


async def _remove(game: Game, store: BaseStore, move: _Move) -> None:
    space = game.context.campaign_namespace()
    items = [item async for item in items_under(store, space, refresh_ttl=False)]
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
    if line["type"] not in ("msgpack", "null", "bytes", "bytearray"):
        raise ValueError(f"value {line['id']!r:.40} is of type {line['type']!r:.40}, expected msgpack")
    return _SERDE.loads_typed((line["type"], base64.b64decode(line["base64"])))


def _is_json(value: Any) -> bool:
    """Whether a value comes back from JSON as it is: no tuples, no keys that are no text."""
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or type(value) in (str, int, float, bool)


def _write_archive(path: Path, about: JSON, parts: Mapping[str, list[JSON]]) -> None:
    """Write what the manifest says beside checksums, and the lines of each part, to a file that does not exist."""
    texts = {
        name: "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines) for name, lines in parts.items()
    }
    data = {name: text.encode("utf-8", "surrogatepass") for name, text in texts.items()}
    about = about | {"sha256": {name: hashlib.sha256(part).hexdigest() for name, part in data.items()}}
    with path.open("xb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        path.chmod(0o600)
        archive.writestr(_MANIFEST, json.dumps(about, indent=2, ensure_ascii=False))
        for name, part in data.items():
            archive.writestr(name, part)


def read_archive(path: Path) -> tuple[JSON, dict[str, list[JSON]]]:
    """Read an archive: its manifest, and the lines of each part."""
    with _open(path) as (archive, about):
        parts = {name: _part(archive, name) for name in _PARTS}
        for name, part in parts.items():
            if hashlib.sha256(part).hexdigest() != about["sha256"].get(name):
                raise ValueError(f"{name} is not as it was written")
        texts = {name: part.decode("utf-8", "surrogatepass") for name, part in parts.items()}
        return about, {name: [json.loads(line) for line in text.split("\n") if line] for name, text in texts.items()}


def contents_of(path: Path) -> Contents:
    """Return what a file says that it holds; only its manifest is read.

    Raises:
        CampaignFileError: It is no such file, newer, or far larger inside than outside.
    """
    with _open(path) as (_, about):
        return Contents.of(about)


@contextmanager
def _open(path: Path) -> Iterator[tuple[zipfile.ZipFile, JSON]]:
    """Open an archive and read its manifest; what goes wrong while it is open is a CampaignFileError."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_names(archive)
            about: JSON = json.loads(_part(archive, _MANIFEST))
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
        raise CampaignFileError(
            f"{name} was written by a newer version (format {number}; this one reads {_FORMAT}). Nothing was changed; "
            "import it with that version of Questbook."
        )
    if number != _FORMAT:
        raise CampaignFileError(f"{name} has format {number!r:.40}; this version reads format {_FORMAT}.")
    kinds = {"campaign": str, "machine": str, "thread": str, "turn": int, "records": int, "checkpoints": int}
    for field, kind in (kinds | {"sha256": dict}).items():
        if not isinstance(about.get(field), kind):
            raise ValueError(f"{_MANIFEST} says {about.get(field)!r:.40} for {field!r}, expected {kind.__name__}")
    if about["machine"] not in _MACHINES:
        raise ValueError(f"it belongs to {about['machine']!r:.40}, expected {' or '.join(_MACHINES)}")


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:  # it reads no more than the archive says of the part's size
        return file.read()
