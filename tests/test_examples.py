"""The examples run as they stand, and do what they promise."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import MIRA
from scripted import call, say, sections_of

ROOT = Path(__file__).parent.parent


async def test_the_graph_lives_inside_somebody_elses_app(model):
    source = (ROOT / "examples" / "embed.py").read_text("utf-8")
    assert len([line for line in source.splitlines() if line.strip()]) < 40
    app = runpy.run_path(str(ROOT / "examples" / "embed.py"))["app"]
    config = {"configurable": {"thread_id": "t"}}
    context = {"model": "scripted", "campaign": "my-app"}
    model.queue("interview", say("And your people?", call("CharacterNotebook", name="Mira")))
    out = await app.ainvoke({"messages": [("user", "hello")]}, {"configurable": {"thread_id": "u"}}, context=context)
    assert out["messages"][-1].text == "And your people?"
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    out = await app.ainvoke({"messages": [("user", "I'm Mira")]}, config, context=context)
    assert out["messages"][-1].text.startswith("The wind")
    model.queue("update", say("", call("StateNotebook", gold=3)))
    out = await app.ainvoke({"messages": [("user", "I look")]}, config, context=context)
    assert len(out["messages"]) == 4, "the host keeps its own messages"
    await app.ainvoke({"messages": [("user", "I go")]}, config, context=context)
    assert "gold: 3" in sections_of(model.asked("quest")[-1]), "the dungeon master's state outlives a call"
    stored = await app.store.asearch(("adventurer", "my-app", "exchanges"))
    assert sorted(item.value["turn"] for item in stored) == [1, 1, 2, 3], "the first is of the other thread's interview"


@pytest.mark.slow
@pytest.mark.parametrize("example", ["embed.py", "support_team.py"])
def test_they_run_as_programs_on_the_offline_models(example):
    run = subprocess.run(
        [sys.executable, f"examples/{example}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        env={"PATH": "", "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("> ") == 2
    assert len(run.stdout) > 150


def test_an_agent_of_langchains_is_rewound_with_its_memory(monkeypatch, capsys):
    monkeypatch.delenv("QUESTBOOK_USER")
    runpy.run_path(str(ROOT / "examples" / "middleware.py"), run_name="__main__")
    *_, painted, back = [line for line in capsys.readouterr().out.splitlines() if line.startswith("I remember")]
    assert "painted my lamp blue" in painted
    assert back == "I remember: My lamp is red."
