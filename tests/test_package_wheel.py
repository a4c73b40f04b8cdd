"""The wheel: one package that lives beside an app's own `memory`, `graphs` and `notebooks`, and serves every graph."""

import json
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import httpx
import pytest
from dev_server import DevServer, say

import questbook

ROOT = Path(__file__).parent.parent
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
GRAPHS = ("dungeon_master", "companion", "reflect")

pytestmark = pytest.mark.slow


def run(*command, **options):
    finished = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    assert finished.returncode == 0, finished.stdout[-3000:] + finished.stderr[-3000:]
    return finished.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Build what `make dist` builds, without a network."""
    directory = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT)
    [wheel], [source] = directory.glob("*.whl"), directory.glob("*.tar.gz")
    return wheel, source


@pytest.fixture(scope="module")
def environment(archives, tmp_path_factory):
    """Install the wheel alone; return the environment's Python and what is new in its site-packages.

    What Questbook depends on is found in this environment, through a path file that is written afterwards. Path files
    there are not read, so that this checkout cannot be found.
    """
    directory = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", directory)
    python = directory / "bin" / "python"
    [site] = directory.glob("lib/python*/site-packages")
    before = set(site.iterdir())
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "--quiet", archives[0])
    new = {path.name for path in set(site.iterdir()) - before}
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python, new


@pytest.fixture
def app(tmp_path):
    """An app that has a `memory`, `graphs` and `notebooks` of its own."""
    directory = tmp_path / "app"
    directory.mkdir()
    (directory / "memory.py").write_text('NAME = "my memory"\n')
    for package in ("graphs", "notebooks"):
        (directory / package).mkdir()
        (directory / package / "__init__.py").write_text(f'NAME = "my {package}"\n')
    return directory


def test_the_archives_hold_questbook_alone_with_its_tables_and_types(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        names = wheel.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"questbook"}
    assert len({name.split("/")[0] for name in names}) == 2, "the package and its dist-info"
    files = {
        path.relative_to(ROOT) for room in ("graphs", "memory", "notebooks") for path in (ROOT / room).rglob("*.*")
    }
    expected = {f"questbook/{path}" for path in files if path.suffix != ".pyc"}
    assert expected | {"questbook/__init__.pyi", "questbook/py.typed", "questbook/types.py"} <= set(names)
    assert [name for name in names if name.endswith(".toml")]
    with tarfile.open(archives[1]) as source:
        top = {name.split("/")[1] for name in source.getnames() if "/" in name}
    assert {"questbook", "graphs", "memory", "notebooks"} <= top
    assert not {"tests", "benchmarks", "docs", ".github"} & top


def test_the_archives_pass_the_checks_of_make_dist(archives):
    run(sys.executable, "-m", "twine", "check", "--strict", *archives)
    run(Path(sys.executable).parent / "check-wheel-contents", archives[0])


def test_it_lives_beside_an_apps_own_modules_and_plays(environment, app, tmp_path):
    python, new = environment
    assert sorted(name.split("-")[0] for name in new) == ["questbook", "questbook"]
    (app / "main.py").write_text(
        "import graphs, memory, notebooks, questbook\n"
        "print(memory.NAME, graphs.NAME, notebooks.NAME, questbook.__version__, questbook.__file__)\n"
        "store = questbook.FaissStore.open('app.db')\n"
        "store.put(('ann',), 'cat', {'text': 'My cat is called Biscuit.'})\n"
        "print(store.search(('ann',), query='cat')[0].key, questbook.Notebook.__module__)\n"
        "store.close()\n"
    )
    clean = {"PATH": "/usr/bin:/bin", "QUESTBOOK_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    own, kept = run(python, "main.py", cwd=app, env=clean).splitlines()
    assert own.startswith("my memory my graphs my notebooks ")
    assert Path(own.split()[-1]).is_relative_to(python.parent.parent), "not the checkout"
    assert kept == "cat questbook.notebooks.base"
    command = python.parent / "questbook"
    told = run(command, "play", "--seed", "1", cwd=app, env=clean, input=f"{MIRA}\nI look around.\n/sheet\n")
    assert "Mira" in told
    assert run(command, "--version", cwd=app, env=clean) == f"questbook {questbook.__version__}\n"


async def test_langgraph_dev_serves_every_graph_from_the_wheel(environment, app, tmp_path):
    python, _ = environment
    (app / "server.py").write_text("from questbook.graphs.server import app, open_checkpointer, open_store\n")
    config = {
        "dependencies": ["."],
        "graphs": {name: f"questbook.graphs.{name}.graph:graph" for name in GRAPHS},
        "checkpointer": {"path": "./server.py:open_checkpointer"},
        "store": {"path": "./server.py:open_store"},
        "http": {"app": "./server.py:app"},
    }
    (app / "langgraph.json").write_text(json.dumps(config))
    server = DevServer(tmp_path / "home", app, python, checkout=False)
    try:
        client = server.start()
        strange = {"origin": "https://evil.example"}, {"host": "evil.example"}
        assert [httpx.get(f"{server.url}/ok", headers=headers).status_code for headers in strange] == [403, 400]
        for graph in GRAPHS:
            [assistant] = await client.assistants.search(graph_id=graph)
            schemas = await client.assistants.get_schemas(assistant["assistant_id"])
            assert schemas["context_schema"]["properties"]["campaign"]
        thread = await client.threads.create(graph_id="dungeon_master")
        opened, _ = await say(client, thread, MIRA)
        assert len(opened) > 80
        thread = await client.threads.create(graph_id="companion")
        asked = {"messages": [{"role": "user", "content": "My name is Ann and I like tea."}]}
        final = await client.runs.wait(thread["thread_id"], "companion", input=asked, context={"campaign": "desk"})
        assert final["messages"][-1]["content"].startswith("I note: ")
        items = await client.store.search_items(["adventurer", "studio", "exchanges"])
        assert len(items["items"]) == 1
    finally:
        server.stop()
    assert (tmp_path / "home" / "store.db").exists() or list((tmp_path / "home").rglob("*.db"))
    assert "BlockingError" not in (app / "log").read_text()
