"""Commands on a whole home: `questbook migrate`, `copy`, `backup`, `restore`, `doctor` and `prune`."""

import argparse
import asyncio
import os
import time
from collections import Counter
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from questbook.graphs.errors import SettingsError, UnreadableError
from questbook.graphs.forgetting.backends import erasure_of
from questbook.graphs.forgetting.replay import forget_again
from questbook.graphs.forgetting.suppression import VARIABLE, SuppressionList
from questbook.graphs.interface.text import number_of, one_line
from questbook.graphs.local.backup import back_up, restore
from questbook.graphs.local.copying import CopyReport, copy_home
from questbook.graphs.local.databases import minilm_hint
from questbook.graphs.local.doctor import mend as mend_campaign
from questbook.graphs.local.doctor import problem_of, unreachable_turns
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import context_class, open_game
from questbook.graphs.local.home import CampaignBusyError, Home, hold_campaign
from questbook.graphs.local.homes import DATABASE, find_home, home_at
from questbook.graphs.local.saved_game import last_of_threads, machine_of, thread_id_of
from questbook.graphs.pruning.prune import Pruned
from questbook.graphs.pruning.prune import prune as prune_threads
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import ask, say
from questbook.memory.timeline.namespaces import campaign_namespace, unescape_label

_AT_ONCE = 500  # threads that are held together: PostgreSQL has room for some thousand locks of all programs
_STEP = 2.0  # seconds between two lines that say how far it is


async def migrate(_: Settings, flags: argparse.Namespace) -> None:
    """Make or renew the tables of a database."""
    home = await asyncio.to_thread(find_home)
    if not hasattr(home, "migrate"):
        raise SettingsError(f"Which database? Name it with --database postgresql://… or {DATABASE}.")
    done = await home.migrate(flags.embeddings, say)
    say(f"The {home.name} is ready." + "".join(f"\n{line}" for line in done))


async def copy(_: Settings, flags: argparse.Namespace) -> None:
    """Bring all games from one home to another."""
    source, target = await asyncio.to_thread(_homes, flags)
    said, done = time.monotonic(), CopyReport()
    async for done in copy_home(source, target):
        if time.monotonic() - said > _STEP:
            said = time.monotonic()
            count = f"{done.checkpoints:,} checkpoints, {done.records:,} records, {done.written:,} written"
            say(f"{done.threads:,} of {done.of_threads:,} threads, {count} …")
    what = f"{done.threads:,} threads with {done.checkpoints:,} checkpoints, {done.records:,} records"
    say(f"The same in both: {what}. Written now: {done.written:,}.")
    if done.others:
        say(f"Also in {target.name}, of users who have nothing here: {one_line(', '.join(done.others), 600)}.")


def _homes(flags: argparse.Namespace) -> list[Home]:
    for flag, place in {"--from": flags.source, "--to": flags.target}.items():
        if "://" not in place and (not place or place.startswith(("postgres:", "postgresql:")) or "dbname=" in place):
            raise SettingsError(f"{flag}: expected a directory, or a database as postgresql://USER@HOST/NAME.")
    files = FileHome(Path(os.path.expanduser(flags.source)).absolute())
    if "://" not in flags.source and not (files.checkpoints.exists() or files.memory.exists()):
        raise SettingsError(f"--from: {files.path} has no games; expected a directory with {files.memory.name}.")
    source, target = (home_at(place, find_home("").path) for place in (flags.source, flags.target))
    if source.name == target.name:
        raise SettingsError(f"--from and --to are the same place: {source.name}.")
    return [source, target]


async def backup(_: Settings, flags: argparse.Namespace) -> None:
    """Copy both databases."""
    home = await _files()
    await asyncio.to_thread(back_up, home, Path(flags.directory))
    say(f"{home.path} was copied to {flags.directory}. Keep it as carefully: it holds all that was said.")


async def bring_back(context: Settings, flags: argparse.Namespace) -> None:
    """Put a backup into an empty data directory, and forget again what was forgotten since it was made."""
    home, listed = await _files(), SuppressionList.find()
    if listed is not None:
        await asyncio.to_thread(listed.since, datetime.now(UTC))  # that it can be read
    begun = await asyncio.to_thread(restore, home, Path(flags.directory))
    say(f"{flags.directory} was restored to {home.path}. `questbook doctor` compares both files.")
    if listed is None:
        say(f"No list says what was forgotten since then ({VARIABLE}): whatever was, is back. Forget it again.")
    else:
        await replay(home, context, begun)


async def _files() -> FileHome:
    home = await asyncio.to_thread(find_home)
    if not isinstance(home, FileHome):
        raise SettingsError(f"The {home.name} is copied by PostgreSQL's own means: pg_dump, pg_restore.")
    return home


async def replay(home: Home, context: Settings, since: datetime) -> None:
    """Forget again what was forgotten since a time."""
    async with home.open_checkpointer() as checkpointer, home.open_store() as store:
        done = await forget_again(store, checkpointer, [context.user], since)
    say(f"Forgotten again: {number_of(len(done), 'entry', 'entries')} of the list.")


async def forget_since(context: Settings, flags: argparse.Namespace) -> bool:
    """Do what `questbook forget --again TIME` asks for; return whether it was done."""
    try:
        since = datetime.fromisoformat(flags.again)
        if since.tzinfo is None or since > datetime.now(UTC):
            raise ValueError("it has no zone, or is to come")
        moment = f"{since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError) as error:
        expected = "a time that has passed, with its zone: 2027-01-31T04:00Z, as date -u +%FT%TZ writes it"
        raise SettingsError(f"--again: got {flags.again!r:.40}; expected {expected}.") from error
    home, listed = await asyncio.to_thread(find_home), SuppressionList.find()
    lines = (await asyncio.to_thread(listed.since, since))[0] if listed else []
    kinds = Counter({line["digest"]: line["kind"] for line in lines}.values())
    amounts = [number_of(count, {"words": "phrase"}.get(kind, kind)) for kind, count in sorted(kinds.items())]
    shown = f"Forgotten since {moment}, by the list: {', '.join(amounts) or 'nothing'}."
    if flags.yes or not kinds:
        say(shown)
    elif not await ask([shown], "Forget it again?"):
        say("Nothing was forgotten.")
        return False
    await replay(home, context, since)
    return True


_HEAD_LABELS = 3  # user, campaign, "head"
_CAUSE = (
    "In a data directory, versions before 0.2.1 lost turns where two programs (terminal, page, Studio) used it at once."
    " Turns that are in neither are not seen here. Keep a copy of both before you mend."
)


async def doctor(context: Settings, flags: argparse.Namespace) -> bool:
    """Examine both databases, compare them for every campaign and companion of a user, and print what is wrong.

    With the flag `mend`, rebuild what is missing. Return whether nothing is wrong, or nothing any more.
    """
    home = await asyncio.to_thread(find_home)
    damage = await home.find_damage()
    for sentence in damage:
        say(one_line(sentence, 600))
    if damage and "damaged" in damage[-1]:
        say(_CAUSE)
        return False
    if damage and not (await home.size() or await home.has_begun()):
        return False  # nothing is there, and to look for campaigns would make a file
    campaigns, is_sound = await _contexts(context, home), True
    for machine, settings in campaigns:
        try:
            is_sound &= await _examine(settings, home, machine, mend=flags.mend)
        except (CampaignBusyError, UnreadableError) as error:
            say(f"Campaign {one_line(settings.campaign, 60)!r}: {error}")
            is_sound = False
    count = number_of(len(campaigns), "campaign")
    say(f"Checkpoints and memories agree ({count} of {one_line(context.user, 60)})." if is_sound else _CAUSE)
    if hint := await minilm_hint(home, context.embeddings):
        say(hint)
    return is_sound


async def _contexts(context: Settings, home: Home) -> list[tuple[str, Settings]]:
    """Return graph and settings of each campaign and companion, as checkpoints and memories know them."""
    campaigns: set[tuple[str, str]] = set()
    async with home.open_checkpointer() as checkpointer:
        async for saved in last_of_threads(checkpointer, context.user):
            if saved.machine and saved.campaign and saved.on_own_thread:
                campaigns.add((saved.machine, saved.campaign))
    for path, head in (await home.records(campaign_namespace(context.user, "")[0], "head", "head")).items():
        if (machine := machine_of(head)) and len(path) == _HEAD_LABELS:
            campaigns.add((machine, unescape_label(path[1])))
    contexts = []
    for machine, campaign in sorted(campaigns):
        settings = await asyncio.to_thread(context_class, machine)
        contexts.append((machine, settings.of(None, user=context.user, campaign=campaign)))
    return contexts


async def _examine(context: Settings, home: Home, machine: str, *, mend: bool) -> bool:
    name = f"Campaign {one_line(context.campaign, 60)!r}"
    async with open_game(context, home, machine) as game:
        problem, unreachable = await problem_of(game), await unreachable_turns(game)
        for found in filter(None, (problem, unreachable)):
            say(f"{name}: {found}")
        if not problem:
            return not unreachable
        if not mend or "--mend" not in problem:
            return False
        async with hold_campaign(home, context.user, context.campaign):
            say(f"{name}: {await mend_campaign(game)}")
        return not (await problem_of(game) or unreachable)


async def prune(context: Settings, flags: argparse.Namespace) -> bool:
    """Do what `questbook prune` asks for; return whether it was done."""
    if flags.keep_turns < 1:
        raise SettingsError(f"--keep-turns takes a number from 1, got {flags.keep_turns}.")
    if flags.older_than is not None and not 0 <= flags.older_than < timedelta.max.days:
        raise SettingsError(f"--older-than takes a number of days, got {flags.older_than}.")
    home = await asyncio.to_thread(find_home)
    if not await home.size():
        say(f"Nothing to prune: there are no checkpoints in {home.name}.")
        return True
    older_than = None if flags.older_than is None else timedelta(days=flags.older_than)
    async with home.open_checkpointer() as saver:
        erasure = erasure_of(saver)
        campaigns, named = await erasure.threads_of(context.user) if erasure else {}, dict[str, Any]()
        if flags.campaign is None:
            named = {} if flags.user else dict(await saver.newest_of_threads())
            threads = [*(campaigns if flags.user else named)]
        else:
            own = thread_id_of(context.user, context.campaign)
            threads = [thread for thread, campaign in campaigns.items() if campaign == context.campaign] or [own]
            if own not in campaigns and threads == [own] and await saver.first(own) is None:
                of_user = f"{one_line(context.campaign, 60)!r} of {one_line(context.user, 60)!r}"
                raise SettingsError(f"There is no campaign {of_user}. In `questbook play`, /campaigns lists them.")
        limits: dict[str, Any] = {"keep_turns": flags.keep_turns, "older_than": older_than}
        done = await prune_threads(saver, threads=threads, dry_run=True, **limits)
        would = f"{_amount(done)} would go. Kept: {done.kept:,}."
        if not done.checkpoints:
            say(f"Nothing to prune. Kept: {number_of(done.kept, 'checkpoint')}.")
        elif flags.dry_run:
            say(would)
        else:
            if not flags.yes and not await ask([would], "Delete them for ever?"):
                say("Nothing was deleted.")
                return False
            started, before = time.monotonic(), await home.size()
            done = await _prune_held(saver, home, threads, limits)
            seconds, size = time.monotonic() - started, await home.size()
            say(f"{_amount(done)} deleted.")
            say(f"The checkpoints had {before / 1e6:,.1f} MB and have {size / 1e6:,.1f} MB now ({seconds:.1f} s).")
    if done.compacted is False:
        reason = "because another program uses it or the disk is full: what is free in it is used again"
        say(f"The file could not be made smaller now, {reason}. The next `questbook prune` tries again.")
    for thread, reason in done.skipped.items():
        whose = {"user": context.user, "campaign": campaigns.get(thread)} | named.get(thread, {})
        user, campaign = (one_line(str(whose.get(name) or ""), 60) for name in ("user", "campaign"))
        name = f"campaign {campaign!r} of {user}" if user and campaign else f"thread {thread}"
        say(f"Left as it is: {name}. {one_line(reason, 200)}")
    return True


async def _prune_held(saver: Any, home: Home, threads: list[str], limits: dict[str, Any]) -> Pruned:
    """Prune threads, so many at once, and hold their campaigns meanwhile; those that are played are skipped."""
    counts, skipped, compacted = [0] * 6, dict[str, str](), None
    for start in range(0, len(threads), _AT_ONCE):
        free, is_last = list[str](), start + _AT_ONCE >= len(threads)
        async with AsyncExitStack() as locks:
            for thread in threads[start : start + _AT_ONCE]:
                try:
                    if await home.was_held(thread):  # else no terminal has ever played on it
                        await locks.enter_async_context(home.hold(thread, "It is open in another terminal."))
                    free.append(thread)
                except CampaignBusyError as error:
                    skipped[thread] = str(error)
            *more, left, compacted = await prune_threads(saver, threads=free, compact=is_last, **limits)
        counts, skipped = [*map(sum, zip(counts, more, strict=True))], skipped | left
    return Pruned._make([*counts, skipped, compacted])


def _amount(pruned: Pruned) -> str:
    checkpoints, threads = number_of(pruned.checkpoints, "checkpoint"), number_of(pruned.threads, "thread")
    writes, values = number_of(pruned.writes, "write"), number_of(pruned.blobs, "value")
    return f"{checkpoints} of {threads}, with {writes} and {values} ({pruned.bytes / 1e6:,.1f} MB),"
