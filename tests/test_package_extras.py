"""Without the extras: everything public can be imported, and what an extra is needed for says which one."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXTRAS = {
    "web": ("starlette", "uvicorn", "jinja2", "multipart", "python_multipart"),
    "studio": ("langgraph_api", "langgraph_cli"), "lore": ("bs4", "lxml", "markdownify", "pypdf"),
    "minilm": ("tokenizers",), "ltm": ("numcodecs",), "otel": ("opentelemetry",), "identity": ("jwt",),
    "ops": ("prometheus_client", "structlog"),
}  # fmt: skip
ALL = sum(EXTRAS.values(), ())

pytestmark = pytest.mark.slow


def run(program, home, *arguments, blocked=ALL):
    command = [sys.executable, "-c", f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n{program}", *arguments]
    environment = {"PYTHONPATH": str(ROOT), "QUESTBOOK_HOME": str(home), "PATH": "/usr/bin:/bin"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_everything_public_can_be_imported_and_an_agent_remembers(tmp_path):
    program = """
import questbook
for name in questbook.__all__:
    getattr(questbook, name)
from langchain.agents import create_agent
from langchain_core.language_models import FakeListChatModel
with questbook.FaissStore.open("memory.db") as store:
    memory = questbook.TimelineMemoryMiddleware(user="ann")
    agent = create_agent(FakeListChatModel(responses=["Fine."]), [], middleware=[memory], store=store)
    agent.invoke({"messages": [("user", "My lamp is red.")]}, {"configurable": {"thread_id": "1"}})
    print(len(store.search(("ann",), query="lamp")))
"""
    done = run(f"import os; os.chdir({str(tmp_path)!r})" + program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout)


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [(("web", "--no-browser"), "web"), (("lore", "add", "inn.html"), "lore"), (("lore", "add", "inn.pdf"), "lore")],
)
def test_a_command_that_needs_an_extra_names_it(arguments, extra, tmp_path):
    (tmp_path / "inn.html").write_text("<p>The inn is closed.</p>")
    (tmp_path / "inn.pdf").write_text("%PDF-1.4")
    arguments = [str(tmp_path / word) if "." in word else word for word in arguments]
    done = run("from questbook.graphs.terminal.cli import main; sys.exit(main())", tmp_path, *arguments)
    assert done.returncode == 2
    assert f"pip install 'questbook[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_works_without_metrics_and_says_what_they_need(tmp_path):
    program = """
from starlette.testclient import TestClient
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.web.app import create_app
from questbook.graphs.web.serve import _watch
app = create_app(Context(user="ann"))
_watch(app.state.page)
web = TestClient(app, base_url="http://localhost:80", client=("127.0.0.1", 1))
for path in ("/health", "/ready", "/metrics"):
    answer = web.get(path, headers={"host": "localhost"})
    print(answer.status_code, answer.text)
"""
    done = run(program, tmp_path, blocked=EXTRAS["ops"])
    needs = "501 Metrics need prometheus_client: pip install 'questbook[ops]'."
    assert done.stdout == f"200 ok\n200 ready\n{needs}\n", done.stderr


def test_logs_as_json_name_the_extra_that_they_lack(tmp_path):
    program = """
import os
os.environ["QUESTBOOK_LOG"] = "json"
from questbook.graphs.terminal.cli import main
sys.exit(main())
"""
    done = run(program, tmp_path, "web", "--no-browser", blocked=EXTRAS["ops"])
    assert done.returncode == 2
    assert "QUESTBOOK_LOG=json needs structlog: pip install 'questbook[ops]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_page_on_langgraphs_server_names_the_extra_that_it_lacks(tmp_path):
    program = """
import os
os.environ |= {"DATABASE_URI": ":memory:", "REDIS_URI": "fake", "QUESTBOOK_USER": "ann"}
from starlette.testclient import TestClient
from questbook.graphs.server import app
answer = TestClient(app, base_url="http://localhost").get("/play/")
print(answer.status_code, answer.text)
"""
    done = run(program, tmp_path, blocked=("jinja2",))
    assert done.stdout == "501 The page needs jinja2: pip install 'questbook[web]'.\n", done.stderr
