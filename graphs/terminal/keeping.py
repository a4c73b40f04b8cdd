"""Slash commands about what is kept: forget words, retract a turn, ask where something came from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from questbook.graphs.terminal.table import Ask, Command, Outcome, Table, Then


async def _forget(table: Table, rest: str) -> Outcome:
    from questbook.graphs.terminal.forget import run_forget

    if not rest:
        table.screen.complain("Forget what? /forget WORDS forgets them on every branch, after showing what says them.")
        return Then.PROMPT
    shown: list[str] = []

    async def show(lines: Sequence[str]) -> bool:
        shown.extend(lines)
        return False

    told = await run_forget(table.game, rest, show)
    if not shown:
        table.screen.say(told)
        return Then.PROMPT
    table.screen.answer("\n".join(shown))
    table.screen.say("Forget it for ever? yes, or anything else to keep it.")
    return Ask("", partial(_forget_if, table, rest))


async def _forget_if(table: Table, words: str, answer: str) -> Outcome:
    from questbook.graphs.terminal.forget import run_forget

    if answer.strip().casefold() != "yes":
        table.screen.say("Nothing was forgotten.")
        return Then.PROMPT

    async def agreed(lines: Sequence[str]) -> bool:  # noqa: ARG001
        return True

    table.screen.say(await run_forget(table.game, words, agreed))
    table.clear()  # what the last turn recalled and was told may hold the words
    return Then.PROMPT


async def _retract(table: Table, rest: str) -> Outcome:
    from questbook.graphs.terminal.forget import run_retract

    table.screen.answer(await run_retract(table.game, rest))
    table.clear()
    return Then.PROMPT


async def _why(table: Table, rest: str) -> Outcome:
    from questbook.graphs.terminal.forget import run_why

    table.screen.table("Why", ("Turn", "When", "Noted", "You said"), await run_why(table.game, rest))
    return Then.PROMPT


KEEPING: dict[str, Command] = {
    "/forget": Command("WORDS", "forget words on every branch and in every file; asks first", _forget),
    "/retract": Command("TURN", "undo what was noted, remembered and summarised of one turn", _retract),
    "/why": Command("FIELD|WORDS", "which message set a field of the quest, or left a memory", _why),
}
