"""Write the generated parts of the README anew: the picture of the machine, and the recorded game.

`python docs/refresh.py` writes them; with `--check` it only says whether they are up to date (exit status 1 if not).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
GAME = [
    "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.",
    "I look around.",
    "I search for tracks.",
    "What do I know about my sister?",
    "/sheet",
]


def machine() -> str:
    """Draw the dungeon master's graph as Mermaid."""
    sys.path.insert(0, str(ROOT))
    from graphs.dungeon_master.graph import graph

    drawn = graph.get_graph().draw_mermaid()
    return f"```mermaid\n{drawn[drawn.index('graph TD') :].strip()}\n```"


def game() -> str:
    """Play the game on the offline storyteller with a seed, and tell what was typed and answered.

    Each line is a program run of its own, so the game that is shown has also been quit and taken up again.
    """
    with tempfile.TemporaryDirectory() as home:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("QUESTBOOK_")}
        environment |= {"QUESTBOOK_HOME": home, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
        told = []
        for words in GAME:
            run = subprocess.run(
                [sys.executable, "-m", "graphs.terminal", "play", "--seed", "6"],
                input=words + "\n",
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            lines = [textwrap.fill(line, 100) if len(line) > 100 else line.rstrip() for line in run.stdout.splitlines()]
            told.append(f"> {words}\n\n" + "\n".join(lines).strip())
    return "```text\n" + "\n\n".join(told) + "\n```"


def refreshed(text: str) -> str:
    """Return the README with its generated parts as they should be."""
    for name, content in (("machine", machine()), ("game", game())):
        block = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = block.sub(lambda found, content=content: f"{found[1]}{content}\n{found[2]}", text)
    return text


if __name__ == "__main__":
    before = README.read_text("utf-8")
    after = refreshed(before)
    if "--check" in sys.argv:
        sys.exit(0 if after == before else "README.md is out of date: run `make docs`.")
    README.write_text(after, "utf-8")
