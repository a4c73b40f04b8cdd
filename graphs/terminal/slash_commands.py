"""Slash commands: what one is and works on, `run_command`, which runs any, and those that show pages and memories."""

import difflib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import NamedTuple

from questbook.graphs.errors import ForgettingError, HistoryError, InputError, UnreadableError
from questbook.graphs.events import Event, Memories, NodeEnd, PromptReport
from questbook.graphs.interface.text import one_line, plain
from questbook.graphs.local.game import Game
from questbook.graphs.local.saved_game import SavedGame, list_campaigns
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.pages import entry_rows, quest_rows, sheet_rows, why_rows
from questbook.graphs.terminal.screen import Screen, is_yes
from questbook.types import JSON


class Quit(NamedTuple):
    """The program ends."""


class Play(NamedTuple):
    """A turn follows. Its events begin when they are asked for."""

    events: AsyncGenerator[Event]


class Ask(NamedTuple):
    """A question to the player follows."""

    words: str  # what the line holds already, for a person to change; a pipe does not show it
    answered: "Callable[[str], Awaitable[Outcome]]"  # called with the line, "" if the player gave up


Outcome = Quit | Play | Ask | None  # what follows a command; None: the next line of the player


class Command(NamedTuple):
    """A slash command."""

    arguments: str  # what may follow it, for /help
    does: str  # in one line
    run: "Callable[[Terminal, str], Awaitable[Outcome]]"  # given the rest of the line
    words: tuple[str, ...] = ()  # that complete it
    looks: bool = False  # whether it only looks: then the upkeep of the last turn goes on; else it gives way first


class Partner(NamedTuple):
    """Whom the player talks with, and the texts that differ between the game and the companion."""

    machine: str  # name of the graph
    name: str  # who answers, as in "the dungeon master reads at most …"
    commands: Mapping[str, Command]
    blank: str  # answer to a blank line
    offline: str  # note that no language model answers
    goodbye: str
    again: str  # how a turn is played again, after "Turn 7 again, "
    greet: Callable[[SavedGame | None, Settings, Screen], None]  # shows a person where the campaign is


@dataclass
class Terminal:
    """A game that is played at the terminal: what slash commands work on."""

    game: Game
    screen: Screen
    partner: Partner
    recalled: list[JSON] | None = None  # memories of the last turn; None before the first
    prompts: list[PromptReport] = field(default_factory=list)  # what the model saw in the last turn, in order
    speaking: set[str] = field(default_factory=set)  # nodes that wrote to the player

    def clear(self) -> None:
        """Forget the last turn."""
        self.recalled, self.prompts = None, []

    async def look_back(self) -> None:
        """After a restart or a move in the story, learn what was recalled and asked in the last turn here."""
        if not self.prompts:
            for event in await self.game.last_turn():
                self.keep(event)

    def keep(self, event: Event) -> None:
        """Keep what a command may ask for."""
        if isinstance(event, Memories):
            self.recalled = event.memories
        elif isinstance(event, PromptReport):
            self.prompts.append(event)
        elif isinstance(event, NodeEnd) and event.spoke:
            self.speaking.add(event.node)

    def is_too_long(self, message: str) -> bool:
        """Whether a message is too long to be sent; if so, say it to the player."""
        limit = self.game.context.max_message_chars
        if len(message) > limit:
            problem = f"That is {len(message):,} characters; {self.partner.name} reads at most {limit:,} at once."
            self.screen.complain(f"{problem} Nothing was sent; say it in parts.")
        return len(message) > limit


_REPLY_WIDTH = 160
_MOST_CAMPAIGNS = 50  # that are listed unless all are asked for


async def run_command(terminal: Terminal, line: str) -> Outcome:
    """Do what a line that begins with "/" asks for; return what follows."""
    name, *rest = line.split(None, 1)
    commands = terminal.partner.commands
    if (command := commands.get(name.lower())) is not None:
        return await outcome_of(terminal, command.run(terminal, "".join(rest).strip()))
    near = difflib.get_close_matches(name.lower(), commands, n=1, cutoff=0.5)
    hint = f"Did you mean {near[0]}?" if near else "/help lists them."
    terminal.screen.complain(f"There is no command {one_line(name, 40)}. {hint}")
    return None


async def outcome_of(terminal: Terminal, command: Awaitable[Outcome]) -> Outcome:
    """Return what follows a command, or an answer to its question; what it refuses to do is shown."""
    try:
        return await command
    except (HistoryError, ForgettingError, InputError, UnreadableError) as error:
        terminal.screen.complain(str(error))
        return None


async def _sheet(terminal: Terminal, rest: str) -> None:  # noqa: ARG001
    saved = await terminal.game.saved_game()
    view = saved.view if saved else None
    if view is None or not any(view.character.player_view().get(f) for f in ("name", "class", "ancestry", "goal")):
        terminal.screen.answer("No character yet: tell the dungeon master who you want to play.")
    else:
        terminal.screen.table("Character", ("", ""), sheet_rows(view))


async def _quest(terminal: Terminal, rest: str) -> None:  # noqa: ARG001
    saved = await terminal.game.saved_game()
    if saved is None or not saved.character.complete:
        terminal.screen.answer("No quest yet: it begins when your character is complete.")
    else:
        terminal.screen.table("Quest", ("", ""), quest_rows(saved.view))


async def _recap(terminal: Terminal, rest: str) -> None:  # noqa: ARG001
    saved = await terminal.game.saved_game()
    if saved is None or not saved.character.complete:
        terminal.screen.answer("Nothing to tell yet: the story begins when your character is complete.")
    else:
        terminal.screen.tell(saved.view.recap())


async def _memories(terminal: Terminal, rest: str) -> None:  # noqa: ARG001
    from questbook.memory.lore.documents import LorePiece

    if terminal.recalled is None:
        await terminal.look_back()
    if terminal.recalled is None:
        terminal.screen.answer("/memories shows what was recalled for the last turn of the story; there is none yet.")
    elif not terminal.recalled:
        reason = "nothing fits it but what the conversation still holds"
        terminal.screen.answer(f"Nothing was recalled for the last turn: {reason}.")
    else:
        rows = []
        for memory in terminal.recalled:
            turn, age, why, told = (str(memory.get(name) or "") for name in ("turn", "age", "why", "reply"))
            lore, speaker = LorePiece.from_json(memory), memory.get("speaker")
            text = (f"{speaker}: " if speaker else "") + str(memory.get("player") or memory.get("text") or "")
            text = f"[{lore.citation}] {lore.body}" if lore.citation else text
            said, reply = (one_line(plain(part), _REPLY_WIDTH) for part in (text, told))
            score = f"{score:.2f}" if isinstance(score := memory.get("score"), int | float) else "–"
            rows.append((turn, age, score, said, reply, why))
        columns = ("Turn", "When", "Score", "You said", "Reply", "Why")
        terminal.screen.table("Recalled for the last turn", columns, rows, right="Score")


async def _prompt(terminal: Terminal, rest: str) -> None:
    screen = terminal.screen
    await terminal.look_back()
    prompts = [prompt for prompt in terminal.prompts if prompt.node in terminal.speaking] or terminal.prompts
    if not prompts:
        return screen.answer("Nothing has been played yet; /prompt shows what the model saw in the last turn.")
    node, sections, fidelity = prompts[-1]
    if rest == "summary":
        saved = await terminal.game.saved_game()
        text = str(saved.values.get("summary") or "") if saved else ""
        title = f"summary ({-(-len(text) // 4):,} tokens), as it is now"
        return _show_section(screen, title, text or "Nothing has left the conversation yet.")
    names = [str(section["section"]) for section in sections]
    if not rest:
        rows = [(str(section["section"]), f"{section['tokens']:,}") for section in sections]
        rows.append(("total", f"{sum(section['tokens'] for section in sections):,}"))
        title = f"What the model saw last ({node}); /prompt SECTION or /prompt all shows the text"
        screen.table(title, ("Section", "Tokens"), rows, right="Tokens")
        screen.answer("The schemas of its tools are not in the table; a provider counts them, too.")
        if fidelity:
            screen.answer(f"Word for word: {fidelity['turns']} of {fidelity['of']} earlier turns.")
        from questbook.graphs.local.costs import costs_of  # LangChain, which came with the last turn

        game = terminal.game
        costs = await costs_of(game.home, game.context.user, game.context.campaign)
        if costs.total.calls:
            screen.answer(f"Cost: {costs.last}. The campaign: {costs.total}, with turns undone or played again.")
        return None
    if rest != "all" and rest not in names:
        near = difflib.get_close_matches(rest, names, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(names)} and all."
        raise InputError(f"The prompt has no section {one_line(rest, 40)}. {hint}")
    for section in sections:
        if rest in ("all", section["section"]):
            _show_section(screen, f"{section['section']} ({section['tokens']:,} tokens)", str(section["text"]))
    return None


def _show_section(screen: Screen, title: str, text: str) -> None:
    screen.answer(title, style="bold")
    screen.answer(text)
    screen.blank()


async def _campaigns(terminal: Terminal, rest: str) -> None:
    game, most = terminal.game, None if rest == "all" else _MOST_CAMPAIGNS
    if not (campaigns := await list_campaigns(game.checkpointer, game.context.user, most)):
        return terminal.screen.answer("No campaign yet: your first message begins this one.")
    rows = []
    for saved in campaigns:
        mark = "*" if saved.thread_id == game.thread_id else ""
        who = ", ".join(filter(None, (saved.character.name, saved.character.class_name)))
        when = datetime.fromisoformat(saved.played).astimezone().strftime("%Y-%m-%d %H:%M")
        rows.append((mark, one_line(saved.campaign, 60), who or "–", str(saved.turn), when, saved.thread_id))
    columns = ("", "Campaign", "Character", "Turn", "Last played", "Thread")
    terminal.screen.table("Campaigns (questbook play --campaign NAME opens one)", columns, rows, right="Turn")
    if len(rows) == most:
        terminal.screen.answer(f"These are the {most} that you played last; /campaigns all shows every one.")
    return None


async def _forget(terminal: Terminal, rest: str) -> Outcome:
    from questbook.graphs.interface.forgetting import find_words

    if not rest:
        raise InputError("Forget what? /forget WORDS forgets them on every branch, and first shows what holds them.")
    found = await find_words(terminal.game, rest)
    terminal.screen.answer("\n".join(found.lines))
    terminal.screen.say("Forget it for ever? yes, or anything else to keep it.")
    return Ask("", partial(_forget_if_yes, terminal, rest, found.emptied))


async def _forget_if_yes(terminal: Terminal, words: str, emptied: Sequence[str], answer: str) -> Outcome:
    if not is_yes(answer):
        return await _kept(terminal, "Nothing was forgotten.", answer)
    if not emptied:
        return await _forget_now(terminal, words, "")
    terminal.screen.answer("\n".join(emptied))
    return Ask("", partial(_forget_now, terminal, words))


async def _forget_now(terminal: Terminal, words: str, answer: str) -> Outcome:
    from questbook.graphs.interface.forgetting import forget_words

    done = await forget_words(terminal.game, words, remove_emptied=is_yes(answer))
    terminal.clear()  # memories and prompt of the last turn may hold the words
    return await _kept(terminal, done, answer)


async def _kept(terminal: Terminal, done: str, answer: str) -> Outcome:
    """Say what came of a question; then do what a command asks for that was typed in place of an answer."""
    terminal.screen.say(done)
    return await run_command(terminal, answer) if answer.startswith("/") else None


async def _retract(terminal: Terminal, rest: str) -> Outcome:
    from questbook.graphs.interface.forgetting import turn_to_retract

    goes = await turn_to_retract(terminal.game, rest) if terminal.screen.live else ""
    if not goes:  # a script is not asked; and what is no turn is refused at once
        return await _retract_if_yes(terminal, rest, "yes")
    terminal.screen.answer(goes)
    terminal.screen.say("Retract it? yes, or anything else to keep it.")
    return Ask("", partial(_retract_if_yes, terminal, rest))


async def _retract_if_yes(terminal: Terminal, number: str, answer: str) -> Outcome:
    from questbook.graphs.interface.forgetting import retract_turn

    if not is_yes(answer):
        return await _kept(terminal, "Nothing was retracted.", answer)
    terminal.screen.answer("\n".join(await retract_turn(terminal.game, number)))
    terminal.clear()
    return None


async def _why(terminal: Terminal, rest: str) -> None:
    saved = None if rest else await terminal.game.saved_game()
    if rest:
        terminal.screen.table("Why", ("Turn", "When", "Noted", "You said"), await why_rows(terminal.game, rest))
    elif rows := entry_rows(saved.view) if saved else []:
        terminal.screen.table("Why what? /why with one of these, or with words of a memory", ("", ""), rows)
    else:
        terminal.screen.answer("Nothing is noted yet; /why gold, or words of a memory, says where it comes from.")


async def _help(terminal: Terminal, rest: str) -> None:  # noqa: ARG001
    rows = [(f"{name} {each.arguments}".strip(), each.does) for name, each in terminal.partner.commands.items()]
    terminal.screen.table("Commands", ("", ""), rows)
    terminal.screen.say(f"Everything else goes to {terminal.partner.name}. Ctrl-C stops a reply, Ctrl-D quits.")


async def _quit(terminal: Terminal, rest: str) -> Quit:  # noqa: ARG001
    return Quit()


_CAUSES = "which message set a field of the sheet or the quest, or left a memory; alone: what there is"
_SEEN = "what the model saw in the last turn, secrets included, with token counts"
_SECTIONS = ("all", "instructions", "character", "quest", "summary", "memories", "messages")
GAME = {
    "/sheet": Command("", "your character", _sheet, looks=True),
    "/quest": Command("", "the quest, as far as you know it", _quest, looks=True),
    "/recap": Command("", "previously on…", _recap, looks=True),
    "/campaigns": Command("[all]", "the campaigns that you played last", _campaigns, looks=True),
    "/retract": Command("TURN", "undo what was noted, remembered and summarised of one turn", _retract),
    "/why": Command("[FIELD|WORDS]", _CAUSES, _why, looks=True),
}
"""Commands of the dungeon master's game alone."""
ALWAYS = {
    "/memories": Command("", "what was recalled for the last turn, with age, score and reason", _memories, looks=True),
    "/prompt": Command("[SECTION|all]", _SEEN, _prompt, _SECTIONS, looks=True),
    "/forget": Command("WORDS", "forget words on every branch and in every file; asks first", _forget),
    "/help": Command("", "this list", _help, looks=True),
    "/quit": Command("", "leave; the campaign is kept", _quit),
}
"""Commands of every machine."""
