"""Lore: what a campaign's world is made of, read from files, kept as records with source and page.

A file is cut into pieces, each a record in `(user, campaign, "lore")`; what stands there of which file is noted in
`(user, campaign, "lore_files")`. A record's key follows from the file's path and the piece's number, so that adding a
file again replaces it, in one batch: all of the new pieces, none of the old. Lore does not rewind.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.errors import UnknownLoreError, UnreadableDocumentError
from questbook.memory.lore.documents import Piece, documents_in, read_bytes, read_document
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import campaign_namespace

LORE = "lore"
"""Value of the field `kind`, and last label of the namespace."""

_FILES = "lore_files"
_READING = b"questbook lore 1\n"  # raise the number when files are read otherwise: they are then read anew

Outcome = Literal["added", "replaced", "unchanged", "unreadable"]


class LoreFile(NamedTuple):
    """A file whose text is kept as lore.

    Attributes:
        key: Key of its note; those of its records begin with it.
        name: What it is called where it is cited: its name, with so much of its path that no other has it.
        path: Where it was read.
        pieces: How many records it made.
        digest: SHA-256 of its content, in 64 hexadecimal digits.
        added_at: When it was read, ISO 8601 in UTC.
    """

    key: str
    name: str
    path: str
    pieces: int
    digest: str
    added_at: str


class Added(NamedTuple):
    """What became of a file that was given.

    Attributes:
        path: The file, as it was given.
        outcome: "added", "replaced", "unchanged" (nothing was written), or "unreadable" (what stood of it stays).
        reason: Why it could not be read; "" if it could.
        file: What stands of it now; None if it could not be read.
    """

    path: Path
    outcome: Outcome
    reason: str = ""
    file: LoreFile | None = None


async def add_lore(
    store: BaseStore, user: str, campaign: str, paths: Iterable[str | os.PathLike[str]]
) -> AsyncGenerator[Added]:
    """Read files into a campaign's lore, one after the other; yield what became of each.

    A file that stands there already is replaced if its content has changed. One that cannot be read is named with the
    reason, and the others go in. Of a directory all files of kinds that can be read are taken (`documents_in`).
    Whoever adds the same file at the same time must be kept apart by the caller.

    Args:
        store: Any store; each file is one batch.
        user: Who plays.
        campaign: The campaign.
        paths: Files and directories.

    Raises:
        StoreError: The store failed; files yielded before are kept.
    """
    files, _ = await asyncio.to_thread(documents_in, paths)
    place = campaign_namespace(user, campaign, _FILES)
    known = {file.key: file for file in await list_lore(store, user, campaign)}
    resolved = dict(zip(files, await asyncio.to_thread(lambda: [_resolved(file) for file in files]), strict=True))
    names = _names({_key(path): path for path in resolved.values()}, {key: file.name for key, file in known.items()})
    for file in files:
        path = resolved[file]
        key = _key(path)
        before = known.get(key)
        try:
            digest, pieces = await asyncio.to_thread(_read, Path(path), before)
        except UnreadableDocumentError as error:
            yield Added(file, "unreadable", str(error))
            continue
        if before and pieces is None:
            yield Added(file, "unchanged", file=before)
            continue
        pieces = pieces or []
        now = datetime.now(UTC).isoformat(timespec="seconds")
        after = LoreFile(key, names[key], printable(path), len(pieces), digest, now)
        records = campaign_namespace(user, campaign, LORE)
        writes = [PutOp(records, _piece_key(key, n), _record(after, piece)) for n, piece in enumerate(pieces)]
        old = range(len(pieces), before.pieces if before else 0)
        writes += [PutOp(records, _piece_key(key, n), None) for n in old]
        await put_all(store, [*writes, PutOp(place, key, _noted(after), index=False)])
        known[key] = after
        yield Added(file, "replaced" if before else "added", file=after)


async def list_lore(store: BaseStore, user: str, campaign: str) -> list[LoreFile]:
    """Return the files whose text is the campaign's lore, by name."""
    place = campaign_namespace(user, campaign, _FILES)
    found = [LoreFile(item.key, **item.value) async for item in items_under(store, place)]
    return sorted(found, key=lambda file: file.name)


async def remove_lore(store: BaseStore, user: str, campaign: str, name: str) -> LoreFile:
    """Remove a file's lore; return what was removed.

    Args:
        store: The store.
        user: Who plays.
        campaign: The campaign.
        name: Its name as `list_lore` tells it, or its path; the file itself need not exist any more.

    Raises:
        UnknownLoreError: There is none of that name.
    """
    files = await list_lore(store, user, campaign)
    key = _key(await asyncio.to_thread(_resolved, Path(name)))
    file = next((f for f in files if f.name == name), None) or next((f for f in files if f.key == key), None)
    if file is None:
        there = ", ".join(repr(f.name) for f in files[:10]) + (", …" if len(files) > 10 else "") or "none"
        raise UnknownLoreError(f"There is no lore of the name {name!r} in campaign {campaign!r}. There is: {there}.")
    records = campaign_namespace(user, campaign, LORE)
    gone = [PutOp(records, _piece_key(file.key, n), None) for n in range(file.pieces)]
    await store.abatch([*gone, PutOp(campaign_namespace(user, campaign, _FILES), file.key, None)])
    return file


def _read(path: Path, before: LoreFile | None) -> tuple[str, list[Piece] | None]:
    """Return a file's digest and its pieces; no pieces if it is as it was before."""
    data = read_bytes(path)
    digest = hashlib.sha256(_READING + data).hexdigest()
    if before and before.digest == digest:
        return digest, None
    return digest, read_document(path, data)


def _record(file: LoreFile, piece: Piece) -> dict[str, Any]:
    return {"kind": LORE, "text": piece.text, "source": file.name, "digest": file.digest, **piece.place}


def _noted(file: LoreFile) -> dict[str, Any]:
    return {name: value for name, value in file._asdict().items() if name != "key"}


def _resolved(path: Path) -> str:
    try:
        return str(path.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or a ring of links: refused when read
        return os.path.abspath(path)


def _key(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _piece_key(key: str, number: int) -> str:
    return f"{key}-{number}"


def _names(paths: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Name files by the shortest end of their path that is no other's; one that has a name keeps it."""
    names = dict(known)
    new = {key: Path(path).parts for key, path in paths.items() if key not in known}
    for key, parts in new.items():
        others: Sequence[tuple[str, ...]] = [other for one, other in new.items() if one != key]
        for length in range(1, len(parts) + 1):
            name = printable("/".join(parts[-length:]))
            if name not in names.values() and all(other[-length:] != parts[-length:] for other in others):
                break
        names[key] = name
    return names


def printable(name: str) -> str:
    """Return a file's name or path as text that can be shown and stored."""
    name = name.encode("utf-8", "replace").decode("utf-8")  # a file's name may be no text
    return "".join(c if c.isprintable() else "?" for c in name)
