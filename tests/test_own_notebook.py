"""docs/your-own-notebook.md: its lines are a support desk that runs, remembers, and goes back."""

import asyncio
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from fake_openai import call, say
from langchain_core.messages import convert_to_messages
from scripted import sections_of, words_of

ROOT = Path(__file__).parent.parent
*DESK, TOOL, SECOND_THOUGHTS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "your-own-notebook.md").read_text("utf-8"), re.DOTALL
)
PROGRAM = "\n\n".join(DESK)

NOTES = {
    "It flickers.": {"problem": "The lamp flickers."},
    "A new bulb helped!": {"tried": {"new bulb": "helped"}, "status": "solved"},
    "It hums.": {"problem": "The lamp hums."},
}


def desk_clerk(body):
    """Answer as a model would that does what it is told."""
    messages = convert_to_messages(body["messages"])
    sections, words = sections_of(messages), words_of(messages)[-1]
    last = messages[-1].text if body["messages"][-1]["role"] != "user" else words
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    if "<due>\n" in sections:
        told = last.split("\n")[-2]
        notes = [fields for words, fields in NOTES.items() if words in told]
        return call("TicketNotebook", notes[0]) if notes else say("no change")
    if tools == ["CustomerNotebook"]:
        known = call("CustomerNotebook", {"name": "Ann", "lamp": "Lumen Arc"})
        return say("") + known if "Ann" in last else say("Welcome to Lumen! Who are you, and which lamp do you have?")
    if last == "until May 2027":
        return say(f"It is under warranty {last}. What is wrong with it?")
    if "L-7" in words:
        return call("warranty", {"serial": "L-7"})
    mode = "Good day!" if "Thank them" in sections else "Please try a new bulb."
    return say(f"{mode} {'Ann' if 'Ann' in sections else '?'}")


@pytest.fixture
def clerk(server):
    server.responder = desk_clerk
    return server


@pytest.fixture
def desk(tmp_path):
    path = tmp_path / "desk.py"
    path.write_text(f"{PROGRAM}\n\n{TOOL}\n\n{SECOND_THOUGHTS}", "utf-8")
    return runpy.run_path(str(path), run_name="desk")


async def tell(desk, *words):
    config = {"configurable": {"thread_id": "ann"}}
    for said in words:
        values = await desk["app"].ainvoke({"messages": [("user", said)]}, config, context={"user": "ann"})
    return config, values


def test_the_desk_is_under_60_lines():
    assert 30 < len(PROGRAM.splitlines()) < 60, "blank lines count"


@pytest.mark.slow
def test_it_runs_as_a_program_and_fills_its_pages(clerk, tmp_path):
    path = tmp_path / "desk.py"
    path.write_text(PROGRAM, "utf-8")
    run = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert run.returncode == 0, run.stderr
    *talk, customer, ticket = run.stdout.splitlines()
    assert talk[1] == "Welcome to Lumen! Who are you, and which lamp do you have?"
    assert talk[3] == "It is under warranty until May 2027. What is wrong with it?"
    assert talk[5] == "Please try a new bulb. Ann"
    assert talk[9] == "Good day! Ann", "the ticket is solved: another mode"
    assert customer == "{'version': 1, 'name': 'Ann', 'lamp': 'Lumen Arc'}"
    assert "'tried': {'new bulb': 'helped'}, 'status': 'solved'" in ticket


async def test_it_remembers_over_turns_and_asks_no_more_often_than_it_says(clerk, desk):
    _, values = await tell(desk, "Hello?", "Ann. I have the Lumen Arc, L-7.", "It flickers.")
    assert values["ticket"]["problem"] == "The lamp flickers."
    assert values["noted"] == {"ticket": 3}
    due = [body for body in clerk.requests if "<due>\n" in str(body["messages"][-1]["content"])]
    assert [len(body["tools"]) for body in due] == [1, 1], "once a turn, and not while the interview goes on"
    assert values["notices"] == []


async def test_second_thoughts_lead_back_to_what_was_known_then(clerk, desk):
    config, values = await tell(
        desk, "Hello?", "Ann. I have the Lumen Arc, L-7.", "It flickers.", "A new bulb helped!", "Bye."
    )
    assert (values["mode"], values["ticket"]["status"]) == ("close", "solved")
    back = await asyncio.to_thread(desk["second_thoughts"], config)
    assert back["ticket"] == {"version": 1, "problem": "The lamp hums.", "tried": {}, "status": "open"}
    assert (back["turn"], back["mode"], back["customer"]["name"]) == (3, "solve", "Ann")
    last = "\n".join(str(message["content"]) for message in clerk.requests[-2]["messages"])
    assert "It hums." in last
    assert "flickers" not in last
    assert "new bulb" not in last
