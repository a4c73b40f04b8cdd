"""A model of `openai:…` on this machine that answers after a while, for `load.py` and `faults.py`.

    python benchmarks/loopback_model.py 0.3      its URL on the first line; at the end of the input, what it counted

What it says repeats the words of the message, so that a reply that reaches the wrong player is noticed. Each prompt is
searched for the words of more than one player.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

from fake_openai import KEY, Behaviour, FakeOpenAI, call, say  # noqa: E402
from page_players import players_in  # noqa: E402

ENVIRONMENT = {"QUESTBOOK_MODEL": "openai:loopback", "OPENAI_API_KEY": KEY}
PROSE = "The door stands open, and beyond it the stair goes down to the water; somebody has lit a lamp. "


def answer(body: dict[str, Any]) -> Behaviour:
    """Answer a request by the tools that it binds; without any, in prose with the words of the last message."""
    tools = {tool["function"]["name"] for tool in body.get("tools") or ()}
    said = [json.dumps(message["content"]) for message in body["messages"] if message["role"] == "user"]
    word = (re.findall(r"zq\w+", said[-1] if said else "") or ["nothing"])[-1]
    if "CharacterNotebook" in tools:
        page = {"name": "Mira", "ancestry": "halfling", "class": "rogue", "background": f"the docks of {word}"}
        return call("CharacterNotebook", {**page, "goal": "wants her sister back"})
    if "StateNotebook" in tools:
        return call("StateNotebook", {"scene": f"The wall says {word}."})
    if "Questions" in tools:
        return call("Questions", {"questions": [f"Who wrote {word}?"]})
    if "Reflection" in tools:
        return call("Reflection", {"insights": [], "contradictions": []})
    return say(f"The wall says {word}. {PROSE * 3}")


class Loopback:
    """What answers, `seconds` after it was asked; `counts` are the calls, and the prompts with another's words."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.counts = seconds, Counter[str]()

    def __call__(self, body: dict[str, Any]) -> Behaviour:
        """Answer a request."""
        self.counts["calls"] += 1
        self.counts["foreign"] += max(len(players_in(json.dumps(body["messages"]))) - 1, 0)
        time.sleep(self.seconds)
        return answer(body)


def main() -> None:
    responder = Loopback(float(sys.argv[1]))
    with FakeOpenAI(responder) as server:
        print(server.url, flush=True)
        sys.stdin.read()
    print(json.dumps(responder.counts))


if __name__ == "__main__":
    main()
