"""The command `questbook`. Heavy imports wait until they are needed: `--help` answers at once."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from questbook import __version__

if TYPE_CHECKING:
    from questbook.graphs.settings import Settings

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


async def get_minilm(_: Settings, flags: argparse.Namespace) -> None:
    """Fetch MiniLM's weights, and say whether memories are found by meaning now."""
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
    """Return the parser of the command line, with all commands, as cli.toml describes them."""
    told, table = (Path(__file__).with_name(name).read_text("utf-8") for name in ("help.txt", "cli.toml"))
    explained: dict[str, Any] = {"epilog": told, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="questbook", description="A dungeon master that remembers.", **explained)
    parser.add_argument("--version", action="version", version=f"questbook {__version__}", help="show the version")
    parser.set_defaults(machine="dungeon_master")
    commands, described = parser.add_subparsers(dest="command", metavar="COMMAND"), tomllib.loads(table)
    for each in described["commands"]:
        short = each["help"]
        does = each.get("description", f"{short[0].upper()}{short[1:]}.")
        more = explained if each.get("explained") else {}
        command = commands.add_parser(each["name"], help=short, description=does or None, **more)
        command.set_defaults(run=_later(*each["run"].split(":")))
        _fill(command, each, described["common"])
    return parser


def _fill(command: argparse.ArgumentParser, described: dict[str, Any], common: dict[str, Any]) -> None:
    """Add what a table describes to a command, or to an action of one."""
    command.set_defaults(**described.get("defaults", {}))
    for given in described["arguments"]:
        to = command.add_mutually_exclusive_group() if given == "owner" else command
        for argument in common[given] if isinstance(given, str) else [given]:
            _add(to, **argument)
    if "actions" in described:
        actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
        for each in described["actions"]:
            _fill(actions.add_parser(each["name"], help=each["help"]), each, common)


def _add(to: argparse._ActionsContainer, name: str, *, type: str = "", **more: Any) -> None:  # noqa: A002
    name, _, value = name.partition(" ")
    kind: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"} if name.startswith("-") else {}
    more |= {"type": {"int": int, "float": float}[type]} if type else {}
    more |= {"default": argparse.SUPPRESS} if more.get("default") == "SUPPRESS" else {}
    to.add_argument(name, **(kind | more))
