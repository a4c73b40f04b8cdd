"""Flags of the commands that concern what is kept: `import`, `export` and `memories`. Loads nothing heavy."""

from __future__ import annotations

import argparse


def add_memory_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `import ltm`, `export csv` and `memories` to the command line."""
    bring = commands.add_parser(
        "import",
        help="bring over what another program remembered",
        description="Bring over the memories of the LTM extension of text-generation-webui: its databases, of both "
        "layouts, and its CSV exports. Twice is once; nothing in DIR is changed.",
    )
    bring.add_argument("kind", choices=["ltm"], help="the LTM extension")
    bring.add_argument("directory", metavar="DIR", help="the extension's directory, or its user_data/bot_memories")
    bring.add_argument("--character", metavar="NAME", help="whose memories they are, whatever the folders are called")
    export = commands.add_parser(
        "export",
        help="write what characters remember to files",
        description="Write the memories of characters as the LTM extension does: id, name, message, timestamp, "
        "without a header, DIR/<date_time>/<character>.csv.",
    )
    export.add_argument("kind", choices=["csv"])
    export.add_argument("directory", metavar="DIR", nargs="?", default="bot_csv_outputs", help="default: %(default)s")
    export.add_argument("--character", metavar="NAME", help="only this one's")
    for command in (bring, export):
        _owner(command)
    memories = commands.add_parser(
        "memories",
        help="look through memories; add, edit and delete them",
        description="Look through what is remembered, on all branches, and change it. Without a place, `list` tells "
        "the characters. The facts of a campaign or player can be listed, searched and deleted, an assistant's archive "
        "also edited.",
    )
    actions = memories.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", help="say what is remembered, the latest first")
    search = actions.add_parser("search", help="say what fits words, with its cosine distance")
    search.add_argument("words", metavar="WORDS")
    add = actions.add_parser("add", help="add a memory to a character")
    add.add_argument("text", metavar="TEXT")
    add.add_argument("--speaker", metavar="NAME", help="who said it (default: the user)")
    edit = actions.add_parser("edit", help="change what a memory says")
    edit.add_argument("key", metavar="KEY", help="as list and search show it, or its beginning")
    edit.add_argument("text", metavar="TEXT")
    delete = actions.add_parser("delete", help="delete memories, so that no byte of them stays")
    delete.add_argument("keys", metavar="KEY", nargs="*", help="as list and search show them, or their beginnings")
    delete.add_argument("--all", action="store_true", help="everything that the character remembers")
    delete.add_argument("--yes", action="store_true", help="do not ask")
    for name, action in actions.choices.items():
        place = action.add_mutually_exclusive_group()
        place.add_argument("--character", metavar="NAME", help="of a character; '*': of all of the user's")
        if name != "add":
            place.add_argument("--assistant", metavar="NAME", help="what an assistant of `questbook chat` put away")
        if name in ("list", "search", "delete"):
            place.add_argument("--campaign", metavar="NAME", help="the facts of a campaign")
            place.add_argument("--player", action="store_true", help="what is known of the player")
        _owner(action)


def _owner(command: argparse.ArgumentParser) -> None:
    command.add_argument("--user", metavar="NAME", help="whose characters")
    command.add_argument("--shared", action="store_true", help="the characters that all users share")
