"""`questbook lore add FILE…`, `lore list`, `lore remove NAME…`: the files that the dungeon master knows."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from langgraph.store.base import BaseStore

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.interface.text import number_of
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.screen import complain, say
from questbook.memory.errors import UnknownLoreError, UnreadableDocumentError
from questbook.memory.lore.collection import add_lore, list_lore, printable, remove_lore
from questbook.memory.lore.documents import find_documents
from questbook.memory.lore.langchain_index import TEXTS, read_langchain_vectors

_NAMED = 5  # files of other kinds that are named; of more, their number
WAIT = 60.0  # seconds to wait until another terminal has read its files


async def lore(context: Context, flags: argparse.Namespace) -> bool:
    """Do what `questbook lore` asks for; return whether all was done. A game that is played knows it next turn."""
    home = await asyncio.to_thread(find_home)
    known = await asyncio.to_thread(_vectors, flags.what) if flags.vectors else {}
    lock = f"{thread_id_of(context.user, context.campaign)}.lore"
    busy = f"Another terminal is changing the lore of campaign {context.campaign!r}. Try again when it is done."
    async with home.open_store(context.embeddings, known=known) as store:
        if flags.action == "list":
            if not (files := await list_lore(store, context.user, context.campaign)):
                say(f"No lore in campaign {context.campaign!r}. Add files: questbook lore add FILE…", 400)
            for file in files:
                say(f"{file.name}: {number_of(file.pieces, 'piece')}, read {file.added_at[:10]} from {file.path}", 400)
            return True
        async with home.hold(lock, busy, WAIT):  # two versions of a file never mix
            return await (_add if flags.action == "add" else _remove)(store, context, flags.what)


def _vectors(paths: Sequence[str]) -> dict[str, list[float]]:
    files, _ = find_documents(paths)
    known: dict[str, list[float]] = {}
    for file in files:
        if file.suffix.lower() == TEXTS:
            try:
                known |= (of_file := read_langchain_vectors(file.parent, file.stem))
                say(f"{printable(str(file))}: {len(of_file):,} vectors are taken over", 400)
            except UnreadableDocumentError as error:
                complain(f"{printable(str(file))}: its vectors are made again: {error}.")
    return known


async def _add(store: BaseStore, context: Context, paths: Sequence[str]) -> bool:
    succeeded = True
    async for done in add_lore(store, context.user, context.campaign, paths):
        if done.outcome == "unreadable":
            succeeded = False
            complain(f"{printable(str(Path(done.path)))}: not added: {done.reason}.")
        elif done.file:
            say(f"{done.file.name}: {done.outcome}, {number_of(done.file.pieces, 'piece')}", 400)
    _, others = await asyncio.to_thread(find_documents, paths)
    if others:
        named = ", ".join(printable(path.name) for path in others[:_NAMED]) + (", …" if len(others) > _NAMED else "")
        say(f"Passed over, of other kinds: {len(others):,} ({named})", 400)
    return succeeded


async def _remove(store: BaseStore, context: Context, names: Sequence[str]) -> bool:
    succeeded = True
    for name in names:
        try:
            file = await remove_lore(store, context.user, context.campaign, name)
            say(f"{file.name}: removed, {number_of(file.pieces, 'piece')}", 400)
        except UnknownLoreError as error:
            succeeded = False
            complain(str(error))
    return succeeded
