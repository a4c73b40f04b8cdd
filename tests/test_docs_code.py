"""Every code block of README and docs does what it shows: Python runs, commands are understood, JSON is read."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import inspect
import json
import re
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from ltm_fixture import write_database
from paper import pdf
from program import start
from saved_faiss import save as save_faiss

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
SERVER = "http://127.0.0.1:2024"
FILES = {  # that documents speak of
    "world.md": "# Isle\nOda keeps the lamp of the isle.\n",
    "ltm_config.json": "{}",
}
LANGUAGES = {"python", "console", "json", "mermaid", "nginx", "text"}


def blocks(path: Path, language: str) -> list[str]:
    return [code for _, found, code in BLOCK.findall(path.read_text("utf-8")) if found == language]


def commands(path: Path) -> list[list[str]]:
    """Words of each command after a `$`, without comments, prompts and what is set before it."""
    lines = "".join(blocks(path, "console")).replace("\\\n", " ").splitlines()
    words = [shlex.split(line[2:].replace("…", "x"), comments=True) for line in lines if line.startswith("$ ")]
    return [[word for n, word in enumerate(line) if "=" not in word or n > 3] for line in words]


def lacks_peer(code: str) -> bool:
    """Whether a block shows a program of others that only the benchmarks install."""
    return any(f"from {peer} import" in code and not importlib.util.find_spec(peer) for peer in ("langmem",))


@pytest.fixture(autouse=True)
def nobody_is_named(monkeypatch):
    """Whoever copies a block has no QUESTBOOK_USER: the block names the user itself."""
    monkeypatch.delenv("QUESTBOOK_USER")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_each_block_says_what_it_is(path):
    text = path.read_text("utf-8")
    assert text.count("```") % 2 == 0
    assert {language for _, language, _ in BLOCK.findall(text)} <= LANGUAGES
    assert all(isinstance(json.loads(code), dict) for code in blocks(path, "json"))


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path, "python")], ids=lambda path: path.name)
def test_python_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content, "utf-8")
    if path.stem == "lore":
        save_faiss(tmp_path / "faiss_index")
    module = ModuleType(f"code_of_{path.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # pydantic looks a class's module up
    with asyncio.Runner() as runner:
        run = [code for code in blocks(path, "python") if SERVER not in code and not lacks_peer(code)]
        for code in run:
            done = eval(compile(code, path.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), vars(module))
            if inspect.iscoroutine(done):
                runner.run(done)
    assert run or path.stem == "studio"


@pytest.mark.slow
async def test_code_for_a_running_server_runs(studio):
    client = await asyncio.to_thread(studio.start)
    run = [code for path in DOCUMENTS for code in blocks(path, "python") if SERVER in code]
    for code in run:
        done = eval(compile(code.replace(SERVER, studio.url), "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), {})
        if inspect.iscoroutine(done):
            await done
    assert len(await client.threads.search()) == len(run)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if commands(path)], ids=lambda path: path.name)
def test_commands_are_understood(path):
    from questbook.graphs.terminal.cli import parser

    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for words in commands(path):
        program = words[0].removeprefix(".venv/bin/")
        if program == "questbook":
            parser().parse_args(words[1:])
        elif program == "make":
            assert words[1] in targets, words
        elif words[1:2] == ["-m"]:
            assert (ROOT / words[2].replace(".", "/")).is_dir(), words
        elif program in ("python", ".venv/bin/python"):
            assert (ROOT / words[1]).exists() or words[1] == "desk.py", words
        else:
            assert program in {"pip", "git", "langgraph"}, words


def test_the_readmes_example_has_four_lines_and_prints_what_it_says(capsys):
    (example,) = blocks(ROOT / "README.md", "python")
    exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    printed = capsys.readouterr().out.splitlines()
    _, _, lines = example.partition("# namespaces")  # what comes before is imports and names
    assert lines.splitlines()[5:] == [f"# {line}" for line in printed]
    assert ["blue" in line for line in printed] == [True, False]


MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
PLACEHOLDERS = {"3f2a91c0", "PATH", "minilm"}  # an id that each reader has another of; what is fetched from elsewhere


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if any("questbook" in words[0] for words in commands(path))],
    ids=lambda path: path.name,
)
def test_commands_do_what_they_show(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world").mkdir()
    for name, content in {
        **FILES,
        "rules.md": "Nobody swims at night.\n",
        "world/inn.md": "The inn is closed.\n",
    }.items():
        Path(name).write_text(content, "utf-8")
    Path("bestiary.pdf").write_bytes(pdf("The owlbear sleeps."))
    if path.stem == "lore":
        save_faiss(tmp_path / "faiss_index")
    write_database(tmp_path / "user_data" / "bot_memories" / "chiharu")
    shutil.copy("ltm_config.json", "user_data")
    if any("add" in words and {"--campaign", "--assistant"} & set(words) for words in commands(path)):
        start(tmp_path / "home", "play", "--campaign", "isle", words=f"{MIRA}\n")
        start(tmp_path / "home", "chat", "--assistant", "work", words="Hello.\n")
    for words in commands(path):
        if words[0].endswith("questbook"):
            answer = "yes\n" if words[1] in ("forget", "memories") else "/quit\n"
            run = start(tmp_path / "home", *words[1:], words=answer, OPENAI_API_KEY="sk-x", COLUMNS="200")
            assert b"Traceback" not in run.stderr
            assert run.returncode == 0 or PLACEHOLDERS & set(words), (words, run.stderr.decode())
