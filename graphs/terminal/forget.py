"""Forgetting at the terminal: show first, ask, then forget. Also retracting, and asking where something came from."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Any

from questbook.graphs.companion.context import assistant_name, own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.forgetting.forget import Findings, Forgetting, Removal
from questbook.graphs.dungeon_master.forgetting.provenance import MEMORY, why
from questbook.graphs.dungeon_master.forgetting.retract import retract
from questbook.graphs.embedded.game import Game, open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.errors import HistoryError, SettingsError
from questbook.graphs.terminal.campaigns import hold_campaign
from questbook.graphs.terminal.text import one_line, quoted
from questbook.graphs.turn.player_view import shown_fields
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.lore.documents import LorePiece

Confirm = Callable[[Sequence[str]], Awaitable[bool]]
"""Shows lines to a person and asks whether to go on."""

_DECLINED = "Nothing was forgotten."
UNSAID = "something that only the dungeon master knows"
"""What stands for a secret where a person must see that there is something."""
_SHOWN = 20  # records that are shown; of more, their number
_WIDTH = 100


async def run_forget(game: Game, what: str, confirm: Confirm) -> str:
    """Show what holds the words, ask, and forget them; return the line that says what was done.

    Raises:
        ForgettingError: They cannot be forgotten, or not everywhere.
    """
    forgetting = await _forgetting(game)
    found = await forgetting.find(what)
    if not found.is_empty and not await confirm(_lines(found, game.context.campaign)):
        return _DECLINED
    done = await forgetting.forget(what)  # also if nothing holds it: a run that was stopped is completed
    campaign = _named(game.context.campaign)
    told = f"Nothing in {campaign} says “{found.words}”." if found.is_empty else f"Forgotten: {_counted(done)}."
    if done.files:
        told += f" These words can still be read in {', '.join(done.files)}: another campaign says them, or the file "
        told += "itself is made of them."
    return told


async def run_forget_campaign(game: Game, confirm: Confirm) -> str:
    """Ask, and remove everything of the game's campaign; return the line that says what was done."""
    campaign = _named(game.context.campaign)
    question = f"Everything of {campaign} will be removed: every branch, page and memory."
    if not await confirm([question]):
        return _DECLINED
    return _removed(await (await _forgetting(game)).forget_campaign(), campaign)


async def run_forget_player(game: Game, confirm: Confirm) -> str:
    """Ask, and remove everything of the game's user: all campaigns; return the line that says what was done.

    Raises:
        CampaignBusyError: One of them is open in another terminal. Nothing was changed.
    """
    forgetting, user = await _forgetting(game), game.context.user
    names = await forgetting.campaigns()
    with ExitStack() as held:
        for name in sorted({*names, game.context.campaign} - {game.context.campaign}):
            held.enter_context(hold_campaign(game.home, user, name))
        told = ", ".join(one_line(name, 60) for name in names) or "none"
        if not await confirm([f"Everything of player {one_line(user, 60)!r} will be removed. Campaigns: {told}."]):
            return _DECLINED
        return _removed(await forgetting.forget_player(), f"player {one_line(user, 60)!r}")


async def run_retract(game: Game, rest: str) -> str:
    """Retract a turn; return the lines that say what was undone.

    Raises:
        HistoryError: There is no such turn on this line.
    """
    if not rest.strip().isdecimal():
        raise HistoryError("Which turn? /retract 7 undoes what was noted, remembered and summarised of turn 7.")
    done = await retract(await game.load(), game.config, game.context, int(rest))
    lines = [f"Turn {done.turn} is retracted: {quoted(done.player, 80)}"]
    put, left = shown_fields(done.fields), shown_fields(done.kept)
    if both := set(put) & set(left):  # of the secrets a player sees no names: some were put back, some not
        put, left = ([f"some {field}" if field in both else field for field in fields] for fields in (put, left))
    lines.append(f"Put back: {', '.join(put) or 'no field of the page'}.")
    lines += [f"Changed since, so left: {', '.join(left)}."] if left else []
    lines += [f"Facts that are known no more: {done.facts}."] if done.facts else []
    if done.noted_with:
        turns = ", ".join(map(str, done.noted_with))
        lines.append(f"Its notes were made together with those of turn {turns}; they went too.")
    lines += ["The summary was made anew without it."] if done.summarised else []
    return "\n".join(lines)


async def run_why(game: Game, what: str) -> list[tuple[str, str, str, str]]:
    """Return rows (turn, when, what was noted, the words) on which messages set a field or left a memory.

    Raises:
        HistoryError: No turn of this line did.
    """
    if not what.strip():
        raise HistoryError("Why what? /why gold, /why people.Goran, or words of a memory.")
    rows = []
    for cause in await why(await game.load(), game.config, game.context, what):
        first, last = cause.turns
        noted = (
            "memory" if cause.field == MEMORY else f"{cause.field}: {'removed' if cause.value is None else cause.value}"
        )
        noted += "" if cause.holds else " (changed since)"
        turn = str(last) if first == last else f"{first}–{last}"
        rows.append((turn, cause.said_at, one_line(noted, _WIDTH), one_line(cause.player, _WIDTH)))
        rows += [("", "", one_line(f"drawn from: {text}", _WIDTH), "") for text in cause.drawn_from]
    return rows


async def forget(context: Context, what: str | None, *, campaign: str | None, player: bool, yes: bool) -> bool:
    """Do what `questbook forget` asks for; return whether it was done.

    Args:
        context: The settings.
        what: Words to forget in the campaign; None: all of it.
        campaign: The campaign that was named, if one was: without words, only what is named is removed.
        player: Remove everything of the user.
        yes: Do not ask.

    Raises:
        SettingsError: It is not clear what to forget.
        CampaignBusyError: Another terminal holds the campaign. Nothing was changed.
    """
    if (what is not None) + player > 1 or (campaign is not None and player):
        raise SettingsError("Forget either words, or a campaign, or with --player everything of a user: one of them.")
    if what is None and campaign is None and not player:
        raise SettingsError("Forget what? Give words, --campaign NAME for a whole campaign, or --player.")
    home, confirm = await asyncio.to_thread(Home.find), _yes if yes else ask
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            if player:
                told = await run_forget_player(game, confirm)
            elif what is None:
                told = await run_forget_campaign(game, confirm)
            else:
                told = await run_forget(game, what, confirm)
    print(told)  # noqa: T201
    return told != _DECLINED


async def _yes(lines: Sequence[str]) -> bool:  # noqa: ARG001
    return True


async def ask(lines: Sequence[str]) -> bool:
    """Show lines, and ask whether to forget what they tell of; return whether the answer is yes."""
    print(*lines, sep="\n")  # noqa: T201
    print("Forget it for ever? Type yes: ", end="", flush=True)  # noqa: T201
    answer = await asyncio.to_thread(sys.stdin.readline)
    if not answer.endswith("\n"):
        print()  # noqa: T201
    return bool(answer.strip().casefold() == "yes")


async def _forgetting(game: Game) -> Forgetting:
    return Forgetting(await game.load(), game.config, game.context, game.home)


def _named(campaign: str) -> str:
    """Name what a person plays or whom they talk with, as they know it."""
    if own_campaign(campaign) == campaign:
        return f"assistant {one_line(assistant_name(campaign), 60)!r}"
    return f"campaign {one_line(campaign, 60)!r}"


def _lines(found: Findings, campaign: str) -> list[str]:
    lines = [f"{quoted(found.words, 80)} in {_named(campaign)}, on every branch:"]
    lines += [f"  {_told(value)}" for value in found.records[:_SHOWN]]
    if len(found.records) > _SHOWN:
        lines.append(f"  … and {len(found.records) - _SHOWN} more memories")
    if found.insights:
        lines.append("What was concluded from these memories goes with them:")
        lines += [f"  {_told(value)}" for value in found.insights[:_SHOWN]]
    if len(found.insights) > _SHOWN:
        lines.append(f"  … and {len(found.insights) - _SHOWN} more insights")
    pages = [place.removeprefix("quest.") for place in found.fields if place.startswith("quest.")]
    places = [place for place in found.fields if not place.startswith("quest.")]
    places += [f"quest.{path}" for path in shown_fields(pages)]
    lines += [f"  {one_line(place, _WIDTH)}" for place in places]
    return [*lines, f"Memories go as a whole; elsewhere the words go. Altogether: {_counted(found)}."]


def _told(value: dict[str, Any]) -> str:
    text = UNSAID if is_secret_record(value) else one_line(str(value.get("text", "")), _WIDTH)
    where = f"turn {value.get('turn', '?')} ({one_line(str(value.get('line') or 'main'), 40)})"
    return f"{one_line(LorePiece.from_json(value).citation, _WIDTH) or where}: {text}"


def _counted(found: Findings) -> str:
    parts = [
        (len(found.records), "memory", "memories"),
        (len(found.insights), "insight drawn from them", "insights drawn from them"),
        (found.items, "other item", "other items"),
        (found.checkpoints, "checkpoint or write", "checkpoints and writes"),
        (found.typed_lines, "typed line", "typed lines"),
    ]
    return ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in parts if count)


def _removed(removed: Removal, what: str) -> str:
    if not (removed.threads or removed.items):
        return f"Nothing was kept of {what}."
    return (
        f"Forgotten: {what}. Threads, with all their checkpoints: {removed.threads:,}; memories and other items: "
        f"{removed.items:,}; typed lines: {removed.typed_lines:,}."
    )
