"""Check the types of the examples and of every Python block in README and docs: `make lint` runs it.

A page's blocks are one program. They become the body of a function, because a page may await at its top.
"""

import re
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
HEAD = "# mypy: allow-redefinition\n\nasync def page() -> None:\n"  # options of its own would need a cache of their own
PEERS = ("langmem",)  # shown, but not installed


def page_program(path: Path) -> str:
    """Return a page's blocks as one program; "" if it has none."""
    blocks = [textwrap.dedent(code) for _, code in BLOCK.findall(path.read_text("utf-8"))]
    shown = [code for code in blocks if all(find_spec(peer) or f"from {peer} " not in code for peer in PEERS)]
    return HEAD + textwrap.indent("\n".join(shown), "    ") if shown else ""


def main(directory: Path) -> int:
    """Write each page's program to a directory, check them all, and return mypy's exit code."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        program = directory / f"page_{path.stem.replace('-', '_')}.py"
        program.write_text(page_program(path), "utf-8")
    programs = [*sorted((ROOT / "examples").glob("*.py")), *sorted(directory.glob("page_*.py"))]
    mypy = [sys.executable, "-m", "mypy", "--strict"]
    return subprocess.run([*mypy, *map(str, programs)], cwd=ROOT, check=False).returncode  # noqa: S603 (mypy)


if __name__ == "__main__":
    sys.exit(main(ROOT / ".mypy_cache" / "snippets"))
