"""Record a golden campaign: `python tests/golden/record.py NAME` writes tests/golden/NAME as this version would.

Done once for each released version; what is recorded must load and play on for ever (tests/test_golden.py).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
GAME = """\
I'm Mira, a halfling thief who grew up on the docks and wants her sister back.
I tell Maren Holt that the password of the smugglers is swordfish
go to the Drowned Cat
ask about the keeper
search
"""

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"QUESTBOOK_HOME": home, "PYTHONPATH": str(HERE.parent.parent)}
        command = [sys.executable, "-m", "questbook.graphs.terminal", "play", "--seed", "6"]
        subprocess.run(command, input=GAME, text=True, env=environment, check=True)
        target = HERE / sys.argv[1]
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        for name in ("checkpoints.db", "memory.db"):
            with sqlite3.connect(Path(home) / name) as database:  # one file each, without -wal
                database.execute("VACUUM INTO ?", (str(target / name),))
