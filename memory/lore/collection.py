"""The lore of a campaign: files added, listed and removed.

A file is cut into pieces, each a record in `(user, campaign, "lore")`; a note about the file is in `(user, campaign,
"lore_files")`. Adding it again replaces all pieces in one batch. Lore belongs to no timeline: no rewind hides it.
"""

import asyncio
import hashlib
import os
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from langgraph.store.base import BaseStore, PutOp

from questbook.memory.errors import UnknownLoreError, UnreadableDocumentError
from questbook.memory.lore.documents import AnyPath, LorePiece, find_documents, read_bytes, read_document
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.types import JSON

LORE = "lore"  # last label of the namespace of a campaign's lore

_FILES = "lore_files"
_READER_VERSION = b"questbook lore 2\n"  # part of each digest: with another number, unchanged files are read again

Outcome = Literal["added", "replaced", "unchanged", "unreadable"]


class LoreFile(NamedTuple):
    """A file whose text is kept as lore."""

    key: str  # of its note; the keys of its records begin with it
    name: str  # in citations: the file's name, with as much of its path as no other file has
    path: str  # the whole path when it was read
    pieces: int  # how many records it became
    digest: str  # SHA-256 of its content, in 64 hexadecimal digits
    added_at: str  # ISO 8601 in UTC


class AddResult(NamedTuple):
    """The outcome of adding one file: "unchanged", nothing was written; "unreadable", earlier lore of it stays."""

    path: Path  # as the caller named it
    outcome: Outcome
    reason: str = ""  # why it could not be read
    file: LoreFile | None = None  # as it is kept now; None if it could not be read


async def add_lore(
    store: BaseStore, user: str, campaign: str, paths: AnyPath | Iterable[AnyPath], *, below: AnyPath | None = None
) -> AsyncGenerator[AddResult]:
    """Read files into a campaign's lore, one after the other; yield the outcome of each.

    A file that is lore already is replaced if its content has changed. In a directory, all files of supported kinds are
    read (`find_documents`). The caller must not add the same file twice at the same time. `below` is a directory that
    holds the files only now, such as one for uploads: it is no part of their names. Without it a file is known by its
    whole path.

    Raises:
        StoreError: The store failed; the files yielded before are kept.
    """
    files, _ = await asyncio.to_thread(find_documents, paths)
    kept = {file.key: file for file in await list_lore(store, user, campaign)}
    resolved = await asyncio.to_thread(lambda: {file: _resolve(file, below) for file in files})
    by_key = {_file_key(path): path for path in resolved.values()}
    names = _choose_names(by_key, {key: file.name for key, file in kept.items()})
    for file, path in resolved.items():
        key = _file_key(path)
        before = kept.get(key)
        try:
            digest, pieces = await asyncio.to_thread(_read, file, before)
        except UnreadableDocumentError as error:
            yield AddResult(file, "unreadable", str(error))
            continue
        if before and pieces is None:
            yield AddResult(file, "unchanged", file=before)
            continue
        pieces = pieces or []
        now = datetime.now(UTC).isoformat(timespec="seconds")
        kept[key] = LoreFile(key, names[key], printable(path), len(pieces), digest, now)
        await put_all(store, _writes(user, campaign, kept[key], pieces, before.pieces if before else 0))
        yield AddResult(file, "replaced" if before else "added", file=kept[key])


async def list_lore(store: BaseStore, user: str, campaign: str) -> list[LoreFile]:
    """Return the files that are a campaign's lore, by name."""
    namespace = campaign_namespace(user, campaign, _FILES)
    files = [LoreFile(item.key, **item.value) async for item in items_under(store, namespace)]
    return sorted(files, key=lambda file: file.name)


async def remove_lore(store: BaseStore, user: str, campaign: str, name: str) -> LoreFile:
    """Remove a file's lore by its name, as `list_lore` returns it, or by its path, which need not exist; return it.

    Raises:
        UnknownLoreError: There is no lore with that name.
    """
    files = await list_lore(store, user, campaign)
    key = _file_key(await asyncio.to_thread(_resolve, Path(name)))
    file = next((f for f in files if f.name == name), None) or next((f for f in files if f.key == key), None)
    if file is None:
        names = ", ".join(repr(f.name) for f in files[:10]) + (", …" if len(files) > 10 else "") or "none"
        raise UnknownLoreError(f"There is no lore named {name!r} in campaign {campaign!r}. There is: {names}.")
    await put_all(store, _writes(user, campaign, file, None, file.pieces))
    return file


def _read(path: Path, before: LoreFile | None) -> tuple[str, list[LorePiece] | None]:
    """Return a file's digest and its pieces; None instead of the pieces if it has not changed."""
    data = read_bytes(path)
    digest = hashlib.sha256(_READER_VERSION + data).hexdigest()
    return digest, None if before and before.digest == digest else read_document(path, data)


def _writes(user: str, campaign: str, file: LoreFile, pieces: Sequence[LorePiece] | None, old: int) -> list[PutOp]:
    """Return the writes of a file's pieces and note, or None: of their removal; old pieces beyond the new ones go."""
    records, notes = campaign_namespace(user, campaign, LORE), campaign_namespace(user, campaign, _FILES)
    new = [replace(piece, source=file.name, digest=file.digest).to_json() for piece in pieces or ()]
    values: list[JSON | None] = [*new, *([None] * (old - len(new)))]
    note = None if pieces is None else {name: value for name, value in file._asdict().items() if name != "key"}
    writes = [PutOp(records, f"{file.key}-{number}", value) for number, value in enumerate(values)]
    return [*writes, PutOp(notes, file.key, note, index=False)]


def _resolve(path: AnyPath, below: AnyPath | None = None) -> str:
    try:
        whole = str(Path(path).resolve())
    except (OSError, ValueError, RuntimeError):  # an impossible name, or a ring of links: refused when it is read
        whole = os.path.abspath(path)
    return whole if below is None else os.path.relpath(whole, _resolve(below))


def _file_key(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _choose_names(paths: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Name added files, by key, by the shortest end of their path that no other has; the others keep their names."""
    names = dict(names)
    new = {key: Path(path).parts for key, path in paths.items() if key not in names}
    ends = Counter(parts[-length:] for parts in new.values() for length in range(1, len(parts) + 1))
    taken = set(names.values())
    for key, parts in new.items():
        for length in range(1, len(parts) + 1):
            name = printable("/".join(parts[-length:]))
            if name not in taken and ends[parts[-length:]] == 1:
                break
        names[key] = name
        taken.add(name)
    return names


def printable(name: str) -> str:
    """Return a file's name or path as text that can be shown and stored."""
    name = name.encode("utf-8", "replace").decode("utf-8")  # a file's name may have bytes that are not text
    return "".join(c if c.isprintable() else "?" for c in name)
