"""`questbook export` and `questbook import`: a campaign as one file FILE.zip, or memories of the LTM extension."""

import argparse
import asyncio
import shlex
from datetime import UTC, datetime
from pathlib import Path

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import SettingsError
from questbook.graphs.interface.text import one_line
from questbook.graphs.local.campaign_file import contents_of, export_campaign, import_campaign
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.homes import find_home
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import say
from questbook.memory.ltm.extension_files import write_csv
from questbook.memory.ltm.memories import EVERYONE, MEMORIES, list_characters, list_memories
from questbook.memory.ltm.migration import MODEL, import_ltm, read_known_vectors
from questbook.memory.timeline.namespaces import character_name, character_namespace

_REASONS_SHOWN = 10  # of one source; of more, their number
_WIDTH = 300


async def send(context: Context, flags: argparse.Namespace) -> bool:
    """Do `questbook export`; return whether there was anything."""
    if not _is_campaign(flags, "csv", "bot_csv_outputs"):
        return await _export_csv(context, flags)
    async with open_game(context, holds=True) as game:
        done = await export_campaign(game, Path(flags.kind))
    records = f"{done.records:,} memories and other records"
    say(f"{flags.kind}: campaign {one_line(done.campaign, 60)!r} to turn {done.turn}, {records}.")
    return True


async def bring(context: Context, flags: argparse.Namespace) -> bool:
    """Do `questbook import`; a campaign that is not named keeps its name. Return whether anything could be read."""
    if not _is_campaign(flags, "ltm"):
        return await _import_ltm(context, flags)
    if not flags.campaign:
        contents = await asyncio.to_thread(contents_of, Path(flags.kind))
        context = context.model_copy(update={"campaign": contents.campaign})
    async with open_game(context, holds=True) as game:
        done = await import_campaign(game, Path(flags.kind))
    how = shlex.join(["--campaign", done.campaign, *(["--user", flags.user] if flags.user else [])])
    say(f"Campaign {one_line(done.campaign, 60)!r} is here, to turn {done.turn}: questbook play {how}", _WIDTH)
    return True


def _is_campaign(flags: argparse.Namespace, kind: str, directory: str | None = None) -> bool:
    """Return whether a campaign's file is meant; else it is memories of a kind, in a directory that may have a name."""
    is_file: bool = flags.kind.lower().endswith(".zip")
    if is_file and (flags.directory or flags.character or flags.shared):
        raise SettingsError(f"{flags.command} {flags.kind}: a campaign is one file. Leave DIR and other options out.")
    flags.directory = flags.directory or directory
    if not is_file and (flags.kind != kind or flags.directory is None):
        expected = f"expected {kind} and a directory, or a file FILE.zip"
        raise SettingsError(f"{flags.command}: got {flags.kind!r}; {expected}.")
    return is_file


async def _import_ltm(context: Settings, flags: argparse.Namespace) -> bool:
    """Import what the LTM extension remembered; return whether anything could be read."""
    user = None if flags.shared else context.user
    home, source = await asyncio.to_thread(find_home), Path(flags.directory)
    vectors, problems = dict[str, list[float]](), list[str]()
    if MODEL in context.embeddings:
        vectors, problems = await asyncio.to_thread(read_known_vectors, source)
    async with home.open_store(context.embeddings, known=vectors) as store:
        sources = await import_ltm(store, source, user=user, character=flags.character)
    for one in sources:
        say(f"{one.path}, {_character(one.character)}: {one.added:,} imported, {one.known:,} there already", _WIDTH)
        for what, reasons in (("skipped", one.skipped), ("note", one.notes)):
            more = len(reasons) - _REASONS_SHOWN
            for reason in [*reasons[:_REASONS_SHOWN], *([f"… and {more:,} more"] if more > 0 else [])]:
                say(f"  {what}: {reason}", _WIDTH)
    for problem in problems:
        say(f"Vectors were computed again: {problem}", _WIDTH)
    if vectors:
        say(f"{len(vectors):,} vectors of {MODEL} were taken over.", _WIDTH)
    added, known = sum(one.added for one in sources), sum(one.known for one in sources)
    skipped = sum(len(one.skipped) for one in sources)
    say(f"Imported: {added:,} memories; there already: {known:,}; skipped (see above): {skipped:,}.", _WIDTH)
    return any(one.added or one.known or not one.skipped for one in sources)


async def _export_csv(context: Settings, flags: argparse.Namespace) -> bool:
    """Write what characters remember to CSV files; return whether there was anything."""
    home, user = await asyncio.to_thread(find_home), None if flags.shared else context.user
    async with home.open_store(context.embeddings) as store:
        characters = await list_characters(store, user)
        names = list(characters) if flags.character is None else [character_name(flags.character)]
        if missing := [name for name in names if name not in characters]:
            others = ", ".join(characters) or "nobody"
            raise SettingsError(f"Character {missing[0]!r} remembers nothing. There are memories of: {others}.")
        spaces = {name: character_namespace(name, MEMORIES, user=user) for name in names}
        exports = {name: [item.value for item in await list_memories(store, spaces[name])] for name in names}
    if not exports:
        say("No character remembers anything: nothing was written.", _WIDTH)
    now = datetime.now(UTC)
    for name, values in exports.items():
        try:
            path = await asyncio.to_thread(write_csv, Path(flags.directory), name, values, now)
        except OSError as error:
            raise HomeError(f"Cannot write to {flags.directory}: {error.strerror or error}.") from error
        say(f"{path}: {len(values):,} memories of {_character(name)}", _WIDTH)
    return bool(exports)


def _character(name: str) -> str:
    return "all characters" if name == EVERYONE else f"character {name!r}"
