"""Words found and forgotten, in a game and in what was typed at its prompt; a turn retracted; in plain sentences."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from questbook.graphs.companion.context import assistant_name, own_campaign
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.why import visible_records
from questbook.graphs.errors import HistoryError
from questbook.graphs.forgetting.erasure import files_with
from questbook.graphs.forgetting.forget import Forgetting, Matches
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.interface.text import number_of, one_line, plain, quote
from questbook.graphs.local.game import Game
from questbook.graphs.local.home import HomeError
from questbook.graphs.turn.player_view import is_secret, shown_fields
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.lore.documents import LorePiece
from questbook.memory.timeline.timeline import remembered_timeline
from questbook.types import JSON

HIDDEN = "something that only the dungeon master knows"
"""Shown in place of a secret where a person must see that there is something."""
_SHOWN = 20  # records that are shown; of more, their number
_WIDTH = 100


class Preview(NamedTuple):
    """What a player may see that holds some words, in lines to read before they are forgotten; of secrets nothing."""

    lines: list[str]  # what holds them
    emptied: list[str]  # memories that say little or nothing without them, and what a yes does to these


async def forgetting_of(game: Game) -> Forgetting:
    """Return what forgets in the store and the checkpoints of a game's campaign."""
    store: Any = (await game.load()).store
    return Forgetting(store, game.checkpointer, game.context.user, game.context.campaign, [game.thread_id])


async def find_words(game: Game, words: str, *, alone: bool = False) -> Preview:
    """Return what holds words and a player may see: in the campaign, and in what was typed at the prompt.

    `alone`: nothing is read, changed or said of what others keep here, such as the prompt's lines.
    """
    matches = await _find_shown(await forgetting_of(game), words)
    entries = [] if alone else _typed_entries(game.home.prompt_history)
    typed = sum(Phrase(words).is_in(_typed_text(entry)) for entry in entries)
    lines = _preview(matches, typed, name_of(game.context.campaign))
    emptied = ["Without these words, little or nothing is left of:", *_records(matches.emptied, "")]
    emptied.append("Yes removes them as a whole; else they stay, with “[forgotten]” in place of the words.")
    return Preview(lines, emptied if matches.emptied else [])


async def forget_words(game: Game, words: str, *, remove_emptied: bool = False, alone: bool = False) -> str:
    """Forget words in the campaign and in what was typed at the prompt; return the sentences that say what was done.

    If `remove_emptied`, memories that say nothing without the words are removed; else they stay, with "[forgotten]" in
    place of the words. `alone` is as in `find_words`; then files are written again only if they held the words.
    """
    forgetting, phrase = await forgetting_of(game), Phrase(words)
    matches = await _find_shown(forgetting, words)
    typed = 0 if alone else await asyncio.to_thread(remove_typed, game.home.prompt_history, phrase.is_in)
    # Even if nothing holds the words: it completes a run that was stopped.
    done = await forgetting.forget(words, lambda _: remove_emptied, completes=not alone)
    name = name_of(game.context.campaign)
    result = f"Nothing that you can see in {name} says “{phrase.words}”; nothing else does now."
    if counts := _counts(matches, typed):
        result = f"Forgotten: {counts}."
        if matches.emptied:
            count = number_of(len(matches.emptied), "memory", "memories")
            result += f" {'Removed as a whole' if remove_emptied else 'Kept without the words'}: {count}."
    files = [] if alone else await asyncio.to_thread(files_with, game.home.path, phrase)
    if done.playing:
        result += " A turn is being played elsewhere, such as in Studio, or was stopped just now: it still has these "
        result += "words and writes them again. They leave checkpoints.db when it ends."
        files = [name for name in files if not name.startswith("checkpoints.db")]
    if files:
        result += f" These words can still be read in {', '.join(files)}: another campaign has them, or they are part "
        result += "of the file's own structure."
    return f"{result} {game.home.out_of_reach}".strip()


async def _find_shown(forgetting: Forgetting, words: str) -> Matches:
    shown = ("archived", "summary", "notices", "rolls", "line")
    matches = await forgetting.find(words, shown, lambda record: not is_secret_record(record))
    paths = [path for path in matches.fields if not path.startswith("quest.") or not is_secret(path[len("quest.") :])]
    return matches._replace(fields=paths)


async def turn_to_retract(game: Game, number: str) -> str:
    """Return what retracting a turn will do, for a person to be asked; "" if there is no such turn on this line."""
    saved, graph = await game.saved_game(), await game.load()
    records = await visible_records(graph, game.context, remembered_timeline(saved.values)) if saved else []
    words = next((str(record["player"]) for record in records if str(record["turn"]) == number.strip()), None)
    text = "is put back, unless something later changed it; nothing of it is recalled or summarised any more."
    return "" if words is None else f"Turn {number.strip()}, {quote(words, 80)}: what it noted on the pages {text}"


async def retract_turn(game: Game, number: str) -> list[str]:
    """Retract a turn; return the lines that say what was undone."""
    if not number.strip().isdecimal() or len(number) > 15:
        raise HistoryError("Which turn? /retract 7 undoes what was noted, remembered and summarised of turn 7.")
    done = await retract(await game.load(), game.config, game.context, int(number))
    restored, kept = shown_fields(done.fields), shown_fields(done.kept)
    if both := set(restored) & set(kept):  # a player sees no names of secrets: some were restored, some were not
        restored, kept = ([f"some {name}" if name in both else name for name in names] for names in (restored, kept))
    turns = ", ".join(map(str, done.noted_with))
    lines = [
        f"Turn {done.turn} is retracted: {quote(done.player, 80)}",
        f"Put back: {', '.join(restored) or 'no field of the page'}.",
        f"Changed since, so left: {', '.join(kept)}." if kept else "",
        f"Facts that are no longer known: {done.facts}." if done.facts else "",
        f"Its notes were made together with those of turn {turns}, which are gone too." if turns else "",
        "The summary was written again without it." if done.summarised else "",
    ]
    return [line for line in lines if line]


def remove_typed(path: Path, matches: Callable[[str], bool]) -> int:
    """Remove the entries of a prompt history for which `matches` is true; return how many.

    A new file is written beside the old one and replaces it, so that the file is whole at any moment.
    """
    entries = _typed_entries(path)
    kept = [entry for entry in entries if not matches(_typed_text(entry))]
    draft = path.with_name(f"{path.name}.part")
    try:
        draft.unlink(missing_ok=True)  # of a run that was stopped
        if len(kept) == len(entries):
            return 0
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(b"".join(line for entry in kept for line in entry))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise _unusable(path, error) from error
    return len(entries) - len(kept)


def name_of(campaign: str) -> str:
    """Return the campaign's name, or the assistant's, for a person."""
    kind = "assistant" if own_campaign(campaign) == campaign else "campaign"
    return f"{kind} {one_line(assistant_name(campaign), 60)!r}"


def _preview(matches: Matches, typed: int, campaign: str) -> list[str]:
    counts = _counts(matches, typed)
    lines = [f"{quote(matches.words, 80)} in {campaign}, on every branch:", *_records(matches.records, "memories")]
    if matches.insights:
        lines.append("These conclusions from the memories are removed with them:")
        lines += _records(matches.insights, "insights")
    lines += [f"  {one_line(path, _WIDTH)}" for path in matches.fields]
    if not counts:
        hidden = "They also go from what is hidden, and from earlier states."
        lines.append(f"Nothing that you can see holds the words. {hidden}")
    lines.append(f"The words are cut out; what else a memory says stays. Altogether: {counts or 'nothing to be seen'}.")
    return lines


def _records(records: Sequence[JSON], many: str) -> list[str]:
    lines = []
    for record in records[:_SHOWN]:
        line = one_line(str(record.get("line") or ""), 40)
        where = f"turn {record['turn']}{f' ({line})' if line else ''}" if record.get("branch") else "about you"
        where = one_line(LorePiece.from_json(record).citation, _WIDTH) or where
        lines.append(f"  {where}: {one_line(plain(str(record.get('text', ''))), _WIDTH)}")
    return lines + ([f"  … and {len(records) - _SHOWN} more {many}".rstrip()] if len(records) > _SHOWN else [])


def _counts(matches: Matches, typed: int) -> str:
    parts = [
        (len(matches.records), "memory", "memories"),
        (len(matches.insights), "insight drawn from them", "insights drawn from them"),
        (len(matches.fields), "field", "fields"),
        (typed, "typed line", "typed lines"),
    ]
    return ", ".join(number_of(*part) for part in parts if part[0])


def _typed_entries(path: Path) -> list[list[bytes]]:
    """Split a file of prompt_toolkit's into entries: a line "# when", then the lines of the entry, each after a "+"."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(path, error) from error
    entries: list[list[bytes]] = [[]]
    for line in lines:
        if not line.startswith(b"+") and any(before.startswith(b"+") for before in entries[-1]):
            entries.append([])
        entries[-1].append(line)
    return [entry for entry in entries if entry]


def _typed_text(entry: list[bytes]) -> str:
    lines = [line[1:] for line in entry if line.startswith(b"+")] or entry
    return b"".join(lines).decode("utf-8", "ignore").rstrip("\n")


def _unusable(path: Path, error: OSError) -> HomeError:
    return HomeError(f"Cannot use {path}: {error.strerror or error}. Correct its permissions, or remove it.")
