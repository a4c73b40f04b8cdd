"""A campaign as one file: everything of it, readable, and back again without loss.

The file is a zip archive of JSON Lines:

- `manifest.json`: the format's number, the campaign, its graph, and the SHA-256 of every other part.
- `records.jsonl`: what memory holds: {"place", "key", "value", "index"}; the place is below the campaign's namespace.
- `values.jsonl`: values of channels, each once: {"id", …} with the value as "json", as "messages", or, where it is
  neither, as LangGraph's serializer writes it ("type" and "base64").
- `checkpoints.jsonl`: {"thread", "namespace", "parent", "checkpoint", "metadata", "values", "writes"}, where `values`
  names for each channel the id of its value.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import zipfile
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, PutOp

from questbook import __version__
from questbook.graphs.embedded.game import Game
from questbook.graphs.embedded.saved_game import last_of_threads, thread_id_of
from questbook.graphs.errors import QuestbookError
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import campaign_namespace, unescape_label
from questbook.types import JSON

FORMAT = 1
_MANIFEST, _RECORDS, _VALUES, _CHECKPOINTS = "manifest.json", "records.jsonl", "values.jsonl", "checkpoints.jsonl"
_PARTS = (_RECORDS, _VALUES, _CHECKPOINTS)
_SEARCHED = frozenset({"exchanges", "facts", "reflections", "lore", "archive"})  # what recall looks for by meaning
_MOST_BYTES = 4_000_000_000  # of a part, unpacked: a small file may claim to hold far more
_AT_ONCE = 200  # records in one batch


class CampaignFileError(QuestbookError):
    """A campaign cannot be written to a file or read from one; the message says why, and nothing was changed."""


class Contents(NamedTuple):
    """What a file holds.

    Attributes:
        campaign: The campaign's name.
        machine: Its graph.
        turn: Its last turn.
        records: How many records of memory.
        checkpoints: How many checkpoints.
    """

    campaign: str
    machine: str
    turn: int
    records: int
    checkpoints: int


async def export_campaign(game: Game, path: Path) -> Contents:
    """Write everything of a campaign to a file.

    Args:
        game: The campaign; nobody may play it meanwhile.
        path: The file; it must not exist.

    Raises:
        CampaignFileError: There is no such campaign, or the file cannot be written.
    """
    saved, store = await game.saved_game(), (await game.load()).store
    if saved is None or store is None:
        raise CampaignFileError(f"There is nothing to export of campaign {game.context.campaign!r}: it has not begun.")
    threads = await _threads(game)
    records = [line async for line in _records(game, store)]
    values: dict[str, JSON] = {}
    checkpoints = [line async for line in _checkpoints(game, threads, values)]
    parts = {_RECORDS: records, _VALUES: list(values.values()), _CHECKPOINTS: checkpoints}
    contents = Contents(game.context.campaign, game.machine, saved.turn, len(records), len(checkpoints))
    about = {
        "format": FORMAT,
        "questbook": __version__,
        "user": game.context.user,
        "thread": game.thread_id,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        await asyncio.to_thread(_write, path, about | contents._asdict(), parts)
    except OSError as error:
        raise CampaignFileError(f"Cannot write {path}: {error.strerror or error}. Name another file.") from error
    return contents


async def import_campaign(game: Game, path: Path) -> Contents:
    """Read a campaign from a file into one that has not begun; on an error nothing of it stays.

    Args:
        game: The campaign to make; its user and name may be others than those in the file.
        path: The file.

    Raises:
        CampaignFileError: It is no such file, is damaged or newer, belongs to another graph; or the campaign has begun.
    """
    about, parts = await asyncio.to_thread(_read, path)
    store = (await game.load()).store
    if store is None or await game.saved_game() is not None or await _threads(game) != [game.thread_id]:
        raise CampaignFileError(
            f"Campaign {game.context.campaign!r} has begun already. Import it under another name: --campaign NAME."
        )
    if about["machine"] != game.machine:
        raise CampaignFileError(f"{path.name} holds a campaign of {about['machine']}, not of {game.machine}.")
    move = _Move(game, about)
    threads: set[str] = set()
    try:
        await _put_records(game, store, parts[_RECORDS], move)
        await _put_checkpoints(game, parts, move, threads)
    except BaseException:
        await _remove(game, store, threads)
        raise
    return Contents(game.context.campaign, game.machine, about["turn"], about["records"], about["checkpoints"])


def campaign_in(path: Path) -> str:
    """Return the name of the campaign in a file.

    Raises:
        CampaignFileError: It is no such file, or is damaged.
    """
    return str(_read(path)[0]["campaign"])


class _Move:
    """What is named otherwise in the home that a file comes to: user, campaign and the campaign's own thread."""

    def __init__(self, game: Game, about: Mapping[str, Any]) -> None:
        self._names = [game.context.user, game.context.campaign]
        self._own, self._new = str(about["thread"]), game.thread_id
        self._user = {"user": self._names[0], "campaign": self._names[1]}

    def thread(self, name: str) -> str:
        """Return a thread's new id. Those that other programs began get one of their own, which no home has yet."""
        return self._new if name == self._own else thread_id_of(name, self._new)

    def record(self, value: JSON) -> JSON:
        """Return a record with the thread that wrote it."""
        return value | ({"thread": self.thread(value["thread"])} if isinstance(value.get("thread"), str) else {})

    def metadata(self, value: JSON) -> JSON:
        """Return a checkpoint's metadata."""
        moved = {**value, **{name: new for name, new in self._user.items() if name in value}}
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
    space = campaign_namespace(game.context.user or "", game.context.campaign)
    async for item in items_under(store, space, refresh_ttl=False):
        place = [unescape_label(label) for label in item.namespace[len(space) :]]
        yield {"place": place, "key": item.key, "value": item.value, "index": bool(_SEARCHED & set(place))}


async def _put_records(game: Game, store: BaseStore, lines: list[JSON], move: _Move) -> None:
    user, campaign = game.context.user or "", game.context.campaign
    puts = [
        PutOp(
            campaign_namespace(user, campaign, *line["place"]),
            line["key"],
            move.record(line["value"]),
            None if line["index"] else False,
        )
        for line in lines
    ]
    for start in range(0, len(puts), _AT_ONCE):
        await put_all(store, puts[start : start + _AT_ONCE])


async def _checkpoints(game: Game, threads: list[str], values: dict[str, JSON]) -> AsyncIterator[JSON]:
    """Yield the checkpoints of threads, parents first, and collect the values of their channels."""
    serde = game.checkpointer.serde
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
                "values": {name: _kept(values, _encoded(value, serde)) for name, value in channels.items()},
                "writes": [
                    {"task": task, "channel": channel, "value": _kept(values, _encoded(value, serde))}
                    for task, channel, value in saved.pending_writes or []
                ],
            }


async def _put_checkpoints(game: Game, parts: Mapping[str, list[JSON]], move: _Move, threads: set[str]) -> None:
    saver = game.checkpointer
    values = {line["id"]: line for line in parts[_VALUES]}
    versions: dict[tuple[str, str, str], JSON] = {}
    for line in parts[_CHECKPOINTS]:
        thread, namespace = move.thread(line["thread"]), line["namespace"]
        threads.add(thread)
        checkpoint: Any = line["checkpoint"] | {
            "channel_values": {
                name: move.channel(name, _decoded(values[value], saver.serde)) for name, value in line["values"].items()
            }
        }
        where: JSON = {"thread_id": thread, "checkpoint_ns": namespace}
        parent = {"checkpoint_id": line["parent"]} if line["parent"] else {}
        before = versions.get((thread, namespace, line["parent"] or ""), {})
        now: JSON = checkpoint["channel_versions"]
        versions[thread, namespace, checkpoint["id"]] = now
        changed: Any = {name: version for name, version in now.items() if before.get(name) != version}
        config: RunnableConfig = {"configurable": where | parent}
        metadata: Any = move.metadata(line["metadata"])
        await saver.aput(config, checkpoint, metadata, changed)
        here: RunnableConfig = {"configurable": where | {"checkpoint_id": checkpoint["id"]}}
        for write in line["writes"]:
            value = move.channel(write["channel"], _decoded(values[write["value"]], saver.serde))
            await saver.aput_writes(here, [(write["channel"], value)], write["task"])


async def _remove(game: Game, store: BaseStore, threads: set[str]) -> None:
    space = campaign_namespace(game.context.user or "", game.context.campaign)
    items = [item async for item in items_under(store, space, refresh_ttl=False)]
    await put_all(store, [PutOp(item.namespace, item.key, None) for item in items])
    for thread in threads:
        await game.checkpointer.adelete_thread(thread)


def _kept(values: dict[str, JSON], encoded: JSON) -> str:
    """Keep a value once; return its id."""
    text = json.dumps(encoded, ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    values.setdefault(digest, {"id": digest} | encoded)
    return digest


def _encoded(value: Any, serde: Any) -> JSON:
    if isinstance(value, list) and value and all(isinstance(part, BaseMessage) for part in value):
        encoded: JSON = {"messages": messages_to_dict(value)}
        if _is_json(encoded) and messages_from_dict(encoded["messages"]) == value:
            return encoded
    if _is_json(value):
        return {"json": value}
    kind, data = serde.dumps_typed(value)
    return {"type": kind, "base64": base64.b64encode(data).decode("ascii")}


def _decoded(line: Mapping[str, Any], serde: Any) -> Any:
    if "messages" in line:
        return messages_from_dict(line["messages"])
    return line["json"] if "json" in line else serde.loads_typed((line["type"], base64.b64decode(line["base64"])))


def _is_json(value: Any) -> bool:
    """Whether a value comes back from JSON as it is: no tuples, no keys that are no text."""
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or type(value) in (str, int, float, bool)


def _write(path: Path, about: JSON, parts: Mapping[str, list[JSON]]) -> None:
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


def _read(path: Path) -> tuple[JSON, dict[str, list[JSON]]]:
    problem = f"{path.name} is no campaign of Questbook's, or is damaged"
    try:
        with zipfile.ZipFile(path) as archive:
            about: JSON = json.loads(_part(archive, _MANIFEST))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                number = about.get("format") if isinstance(about, dict) else None
                raise CampaignFileError(f"{path.name} has format {number!r}; this version reads format {FORMAT}.")
            parts = {name: _part(archive, name) for name in _PARTS}
    except OSError as error:
        raise CampaignFileError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise CampaignFileError(f"{problem}: {error}. Nothing was changed.") from error
    for name, part in parts.items():
        if hashlib.sha256(part).hexdigest() != (about.get("sha256") or {}).get(name):
            raise CampaignFileError(f"{problem}: {name} is not as it was written. Nothing was changed.")
    return about, {name: list(_lines(part)) for name, part in parts.items()}


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    file: IO[bytes]
    with archive.open(name) as file:
        part = file.read(_MOST_BYTES + 1)
    if len(part) > _MOST_BYTES:
        raise ValueError(f"{name} has more than {_MOST_BYTES:,} bytes")
    return part


def _lines(part: bytes) -> Iterator[JSON]:
    return (json.loads(line) for line in part.decode("utf-8", "surrogatepass").split("\n") if line)
