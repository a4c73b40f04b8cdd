"""Write the generated parts of CONTRIBUTING.md and docs/play.md again: the machine, and the recorded games.

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
DOCUMENTS = (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "play.md")
GAME = [
    "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.",
    "I look around.",
    "I search for tracks.",
    "What do I know about my sister?",
    "/sheet",
]
# The road to the fight is played and not shown; the fight is lost with this seed.
_DEADLY = 148
ROAD = ["I'm Edda, an elf wizard who grew up in a library and wants her stolen book back.", "I go to Sorrow Bridge."]
UNDO = [
    "I climb down to the Arch.",
    "I attack the pike.",
    "I attack the pike.",
    "I attack the pike.",
    "I attack the pike.",
    "I get up.",
    "/undo 6",
    "What do I know about the pike?",
    "I talk to the troll.",
    "/branches",
]
_END = "/end-of-answer"


def machine() -> str:
    """Draw the dungeon master's graph as Mermaid."""
    sys.path.insert(0, str(ROOT))
    from questbook.graphs.dungeon_master.graph import graph

    picture = graph.get_graph()
    picture.nodes = {
        name: node._replace(metadata=None) for name, node in picture.nodes.items()
    }  # or it stands in the boxes
    drawn = picture.draw_mermaid()
    return f"```mermaid\n{drawn[drawn.index('graph TD') :].strip()}\n```"


def game() -> str:
    """Play the game on the offline storyteller with a seed, and tell what was typed and answered.

    Each line is a program run of its own, so the game that is shown has also been quit and taken up again.
    """
    with tempfile.TemporaryDirectory() as home:
        answers = [_play(home, words + "\n", 6) for words in GAME]
    return _told(GAME, answers)


def undo() -> str:
    """Play to a bad end, take it back, and go elsewhere: one program run, fed through a pipe."""
    lines = [*ROAD, *UNDO]
    with tempfile.TemporaryDirectory() as home:
        # There is no such command, so that what is said of it parts one answer from the next.
        said = _play(home, "\n".join([_END, *(f"{line}\n{_END}" for line in lines)]) + "\n", _DEADLY)
    _, *answers, _ = re.split(rf"^There is no command {_END}.*\n", said, flags=re.MULTILINE)
    return _told(UNDO, answers[len(ROAD) :])


def _play(home: str, words: str, seed: int) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUESTBOOK_")}
    environment |= {"QUESTBOOK_HOME": home, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return subprocess.run(  # noqa: S603 (our own program, with lines that stand above)
        [sys.executable, "-m", "questbook.graphs.terminal", "play", "--seed", str(seed)],
        input=words,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if _END in words else subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def _told(lines: list[str], answers: list[str]) -> str:
    told = []
    for words, answer in zip(lines, answers, strict=True):
        shown = [textwrap.fill(line, 100) if len(line) > 100 else line.rstrip() for line in answer.splitlines()]
        told.append(f"> {words}\n\n" + "\n".join(shown).strip())
    return "```text\n" + "\n\n".join(told) + "\n```"


def refreshed(text: str) -> str:
    """Return a document with its generated parts as they should be."""
    for name, make in (("machine", machine), ("game", game), ("undo", undo)):
        block = re.compile(rf"(<!-- {name}: .*? -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if block.search(text):
            content = make()
            text = block.sub(lambda match, content=content: f"{match[1]}{content}\n{match[2]}", text)
    return text


if __name__ == "__main__":
    outdated = []
    for path in DOCUMENTS:
        before = path.read_text("utf-8")
        after = refreshed(before)
        if after != before:
            outdated.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(after, "utf-8")
    if outdated and "--check" in sys.argv:
        sys.exit(f"{', '.join(outdated)}: out of date. Run `make docs`.")
