"""Commands about what is kept: `/forget`, `/retract`, `/why`, and `questbook forget`, which shows and asks first.

Graphs and pages are imported where they are used: the first prompt does not wait for them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from questbook.graphs.embedded.campaigns import hold_campaign
from questbook.graphs.embedded.game import Game, open_game
from questbook.graphs.embedded.home import Home
from questbook.graphs.embedded.saved_game import thread_id_of
from questbook.graphs.errors import HistoryError, SettingsError
from questbook.graphs.terminal.input import count_typed, remove_typed
from questbook.graphs.terminal.screen import number_of, one_line, quote
from questbook.graphs.terminal.slash_command import Ask, Command, Outcome, Terminal

if TYPE_CHECKING:
    from questbook.graphs.dungeon_master.context import Context
    from questbook.graphs.forgetting.forget import Forgetting
from questbook.graphs.forgetting.matches import Matches, Removal

Confirm = Callable[[Sequence[str]], Awaitable[bool]]
"""Shows lines to a person and asks whether to go on."""

HIDDEN = "something that only the dungeon master knows"
"""Shown in place of a secret where a person must see that there is something."""
_DECLINED = "Nothing was forgotten."
_SHOWN = 20  # records that are shown; of more, their number
_WIDTH = 100


async def forget(context: Context, words: str | None, *, campaign: str | None, player: bool, yes: bool) -> bool:
    """Do what `questbook forget` asks for; return whether it was done.

    Args:
        context: The settings.
        words: Words to forget in the campaign; None: all of it.
        campaign: The campaign if one was named; without words, only a named campaign is removed.
        player: Remove everything of the user.
        yes: Do not ask.

    Raises:
        SettingsError: It is not clear what to forget.
        CampaignBusyError: Another terminal holds the campaign. Nothing was changed.
    """
    if (words is not None) + player > 1 or (campaign is not None and player):
        raise SettingsError("Forget either words, or a campaign, or with --player everything of a user: one of them.")
    if words is None and campaign is None and not player:
        raise SettingsError("Forget what? Give words, --campaign NAME for a whole campaign, or --player.")
    home, confirm = await asyncio.to_thread(Home.find), _say_yes if yes else ask
    with hold_campaign(home, context.user, context.campaign):
        async with open_game(context, home) as game:
            if player:
                result = await forget_player(game, confirm)
            elif words is None:
                result = await forget_campaign(game, confirm)
            else:
                result = await forget_words(game, words, confirm, _say_no if yes else ask)
    print(result)  # noqa: T201
    return result != _DECLINED


async def ask(lines: Sequence[str], question: str = "Forget it for ever?") -> bool:
    """Show lines on what will be gone for ever, and ask for a yes; return whether it came."""
    print(*lines, sep="\n")  # noqa: T201
    print(f"{question} Type yes: ", end="", flush=True)  # noqa: T201
    answer = await asyncio.to_thread(sys.stdin.readline)
    if not answer.endswith("\n"):
        print()  # noqa: T201
    return is_yes(answer)


def is_yes(answer: str) -> bool:
    """Whether a person has agreed."""
    return answer.strip().casefold() in ("y", "yes")


async def _say_yes(lines: Sequence[str]) -> bool:  # noqa: ARG001
    return True


async def _say_no(lines: Sequence[str]) -> bool:  # noqa: ARG001
    return False


async def forget_words(game: Game, words: str, confirm: Confirm, confirm_removal: Confirm | None = None) -> str:
    """Show what holds words, ask, and forget them: in the campaign, and in what was typed at the prompt.

    Args:
        game: The campaign.
        words: The words.
        confirm: Asked before anything is changed.
        confirm_removal: Asked whether memories that say nothing without the words are removed; else they stay, with
            "[forgotten]" in place of the words. None: `confirm`.

    Returns:
        The line that says what was done.

    Raises:
        ForgettingError: They cannot be forgotten, or not everywhere.
    """
    from questbook.graphs.forgetting.erasure import files_with
    from questbook.graphs.forgetting.phrase import Phrase

    forgetting, phrase = await _forgetting(game), Phrase(words)
    matches = await forgetting.find(words)
    typed = count_typed(game.home.prompt_history, phrase.is_in)
    campaign = _campaign_name(game.context.campaign)
    if (matches or typed) and not await confirm(_preview(matches, typed, campaign)):
        return _DECLINED
    remove = bool(matches.emptied) and await (confirm_removal or confirm)(_emptied_lines(matches))
    await asyncio.to_thread(remove_typed, game.home.prompt_history, phrase.is_in)
    # Even if nothing holds the words: it completes a run that was stopped.
    done = await forgetting.forget(words, lambda _: remove)
    result = f"Nothing in {campaign} says “{phrase.words}”."
    if matches or typed:
        result = f"Forgotten: {_counts(done, typed)}."
        if matches.emptied:
            count = number_of(len(matches.emptied), "memory", "memories")
            result += f" Removed as a whole: {count}." if remove else f" Kept without the words: {count}."
    files = await asyncio.to_thread(files_with, game.home.path, phrase)
    if done.playing:
        result += " A turn is being played elsewhere, such as in Studio, or was stopped just now: it still has these "
        result += "words and writes them again. They leave checkpoints.db when it ends."
        files = [name for name in files if not name.startswith("checkpoints.db")]
    if files:
        result += f" These words can still be read in {', '.join(files)}: another campaign has them, or they are part "
        result += "of the file's own structure."
    return result


async def forget_campaign(game: Game, confirm: Confirm) -> str:
    """Ask, and remove everything of the game's campaign; return the line that says what was done."""
    campaign = _campaign_name(game.context.campaign)
    if not await confirm([f"Everything of {campaign} will be removed: every branch, page and memory."]):
        return _DECLINED
    forgetting = await _forgetting(game)
    typed = await _remove_typed(game.home, forgetting, [game.context.campaign])
    removal = await forgetting.forget_campaign()
    game.home.lock_of(game.thread_id).unlink(missing_ok=True)
    return _removed(removal, typed, campaign)


async def forget_player(game: Game, confirm: Confirm) -> str:
    """Ask, and remove everything of the game's user: all campaigns; return the line that says what was done.

    If no game of any user is left, the whole prompt history is removed too.

    Raises:
        CampaignBusyError: One of them is open in another terminal. Nothing was changed.
    """
    from questbook.graphs.forgetting.erasure import Erasure

    forgetting, user = await _forgetting(game), game.context.user
    names = await forgetting.campaigns()
    player = f"player {one_line(user, 60)!r}"
    with ExitStack() as locks:
        for name in sorted({*names, game.context.campaign} - {game.context.campaign}):
            locks.enter_context(hold_campaign(game.home, user, name))
        campaigns = ", ".join(one_line(name, 60) for name in names) or "none"
        if not await confirm([f"Everything of {player} will be removed. Campaigns: {campaigns}."]):
            return _DECLINED
        typed = await _remove_typed(game.home, forgetting, names)
        removal = await forgetting.forget_user()
        for name in names:
            game.home.lock_of(thread_id_of(user, name)).unlink(missing_ok=True)
        if await Erasure(game.checkpointer).is_empty():
            typed += await asyncio.to_thread(remove_typed, game.home.prompt_history, bool)
        return _removed(removal, typed, player)


async def retract_turn(game: Game, number: str) -> str:
    """Retract a turn; return the lines that say what was undone.

    Raises:
        HistoryError: There is no such turn on this line.
    """
    from questbook.graphs.dungeon_master.forgetting.retract import retract
    from questbook.graphs.turn.player_view import shown_fields

    if not number.strip().isdecimal():
        raise HistoryError("Which turn? /retract 7 undoes what was noted, remembered and summarised of turn 7.")
    done = await retract(await game.load(), game.config, game.context, int(number))
    lines = [f"Turn {done.turn} is retracted: {quote(done.player, 80)}"]
    restored, kept = shown_fields(done.fields), shown_fields(done.kept)
    if both := set(restored) & set(kept):  # a player sees no names of secrets: some were restored, some were not
        restored, kept = ([f"some {name}" if name in both else name for name in names] for names in (restored, kept))
    lines.append(f"Put back: {', '.join(restored) or 'no field of the page'}.")
    lines += [f"Changed since, so left: {', '.join(kept)}."] if kept else []
    lines += [f"Facts that are no longer known: {done.facts}."] if done.facts else []
    if done.noted_with:
        turns = ", ".join(map(str, done.noted_with))
        lines.append(f"Its notes were made together with those of turn {turns}, which are gone too.")
    lines += ["The summary was written again without it."] if done.summarised else []
    return "\n".join(lines)


async def why_rows(game: Game, what: str) -> list[tuple[str, str, str, str]]:
    """Return rows (turn, when, what was noted, the player's words) on what set a field or left a memory.

    Raises:
        HistoryError: No turn of this line did.
    """
    from questbook.graphs.dungeon_master.forgetting.provenance import MEMORY, why

    rows = []
    for cause in await why(await game.load(), game.config, game.context, what):
        first, last = cause.turns
        value = "deleted by the notes of this turn" if cause.value is None else cause.value
        noted = "memory" if cause.field == MEMORY else f"{cause.field}: {value}"
        noted += "" if cause.holds else " (changed since)"
        turn = str(last) if first == last else f"{first}–{last}"
        rows.append((turn, cause.said_at, one_line(noted, _WIDTH), one_line(cause.player, _WIDTH)))
        rows += [("", "", one_line(f"drawn from: {text}", _WIDTH), "") for text in cause.drawn_from]
    return rows


async def _forgetting(game: Game) -> Forgetting:
    from questbook.graphs.forgetting.forget import Forgetting

    store: Any = (await game.load()).store
    return Forgetting(store, game.checkpointer, game.context.user, game.context.campaign, [game.thread_id])


async def _remove_typed(home: Home, forgetting: Forgetting, campaigns: Sequence[str]) -> int:
    """Remove what was typed in campaigns from the prompt history; return how many entries that were."""
    typed = 0
    for name in campaigns:
        messages = await forgetting.of_campaign(name).messages()
        typed += await asyncio.to_thread(remove_typed, home.prompt_history, messages.__contains__)
    return typed


def _campaign_name(campaign: str) -> str:
    """Return the campaign's name, or the assistant's, for a person."""
    from questbook.graphs.companion.context import assistant_name, own_campaign

    if own_campaign(campaign) == campaign:
        return f"assistant {one_line(assistant_name(campaign), 60)!r}"
    return f"campaign {one_line(campaign, 60)!r}"


def _preview(matches: Matches, typed: int, campaign: str) -> list[str]:
    from questbook.graphs.turn.player_view import shown_fields

    lines = [f"{quote(matches.words, 80)} in {campaign}, on every branch:"]
    lines += [f"  {_record_line(record)}" for record in matches.records[:_SHOWN]]
    if len(matches.records) > _SHOWN:
        lines.append(f"  … and {len(matches.records) - _SHOWN} more memories")
    if matches.insights:
        lines.append("These conclusions from the memories are removed with them:")
        lines += [f"  {_record_line(record)}" for record in matches.insights[:_SHOWN]]
    if len(matches.insights) > _SHOWN:
        lines.append(f"  … and {len(matches.insights) - _SHOWN} more insights")
    quest = [path.removeprefix("quest.") for path in matches.fields if path.startswith("quest.")]
    fields = [path for path in matches.fields if not path.startswith("quest.")]
    fields += [f"quest.{path}" for path in shown_fields(quest)]
    lines += [f"  {one_line(path, _WIDTH)}" for path in fields]
    return [*lines, f"The words are cut out; what else a memory says stays. Altogether: {_counts(matches, typed)}."]


def _emptied_lines(matches: Matches) -> list[str]:
    """Return the memories that the person has to decide about."""
    lines = ["Without these words, little or nothing is left of:"]
    lines += [f"  {_record_line(record)}" for record in matches.emptied[:_SHOWN]]
    lines += [f"  … and {len(matches.emptied) - _SHOWN} more"] if len(matches.emptied) > _SHOWN else []
    return [*lines, "Yes removes them as a whole; else they stay, with “[forgotten]” in place of the words."]


def _record_line(record: Mapping[str, Any]) -> str:
    from questbook.memory.facts.fact import is_secret_record
    from questbook.memory.lore.documents import LorePiece

    text = HIDDEN if is_secret_record(record) else one_line(str(record.get("text", "")), _WIDTH)
    line = one_line(str(record.get("line") or ""), 40)
    where = f"turn {record['turn']}{f' ({line})' if line else ''}" if record.get("branch") else "about you"
    return f"{one_line(LorePiece.from_json(record).citation, _WIDTH) or where}: {text}"


def _counts(matches: Matches, typed: int) -> str:
    parts = [
        (len(matches.records), "memory", "memories"),
        (len(matches.insights), "insight drawn from them", "insights drawn from them"),
        (matches.items, "other item", "other items"),
        (matches.checkpoints, "checkpoint or write", "checkpoints and writes"),
        (typed, "typed line", "typed lines"),
    ]
    return ", ".join(number_of(*part) for part in parts if part[0])


def _removed(removal: Removal, typed: int, what: str) -> str:
    if not (removal.threads or removal.items):
        return f"Nothing was kept of {what}."
    return (
        f"Forgotten: {what}. Threads, with all their checkpoints: {removal.threads:,}; memories and other items: "
        f"{removal.items:,}; typed lines: {typed:,}."
    )


async def _forget(terminal: Terminal, rest: str) -> Outcome:
    if not rest:
        terminal.screen.complain(
            "Forget what? /forget WORDS forgets them on every branch, and first shows what holds them."
        )
        return None
    preview: list[str] = []

    async def show(lines: Sequence[str]) -> bool:
        preview.extend(lines)
        return False

    result = await forget_words(terminal.game, rest, show)
    if not preview:
        terminal.screen.say(result)
        return None
    terminal.screen.answer("\n".join(preview))
    terminal.screen.say("Forget it for ever? yes, or anything else to keep it.")
    return Ask("", partial(_forget_if_yes, terminal, rest))


async def _forget_if_yes(terminal: Terminal, words: str, answer: str) -> Outcome:
    if not is_yes(answer):
        terminal.screen.say(_DECLINED)
        return None
    if (matches := await (await _forgetting(terminal.game)).find(words)).emptied:
        terminal.screen.answer("\n".join(_emptied_lines(matches)))
        return Ask("", partial(_forget_now, terminal, words))
    await _forget_now(terminal, words, "")
    return None


async def _forget_now(terminal: Terminal, words: str, answer: str) -> None:
    remove = _say_yes if is_yes(answer) else _say_no
    terminal.screen.say(await forget_words(terminal.game, words, _say_yes, remove))
    terminal.clear()  # memories and prompt of the last turn may hold the words


async def _retract(terminal: Terminal, rest: str) -> None:
    terminal.screen.answer(await retract_turn(terminal.game, rest))
    terminal.clear()


async def _why(terminal: Terminal, rest: str) -> None:
    if not rest:
        from questbook.graphs.terminal.pages import entry_rows

        saved = await terminal.game.saved_game()
        if rows := entry_rows(saved.view) if saved else []:
            terminal.screen.table("Why what? /why with one of these, or with words of a memory", ("", ""), rows)
        else:
            terminal.screen.answer("Nothing is noted yet; /why gold, or words of a memory, says where it comes from.")
        return
    terminal.screen.table("Why", ("Turn", "When", "Noted", "You said"), await why_rows(terminal.game, rest))


FORGET = {"/forget": Command("WORDS", "forget words on every branch and in every file; asks first", _forget)}
PROVENANCE = {
    "/retract": Command("TURN", "undo what was noted, remembered and summarised of one turn", _retract),
    "/why": Command(
        "[FIELD|WORDS]",
        "which message set a field of the sheet or the quest, or left a memory; alone: what there is",
        _why,
        looks=True,
    ),
}
