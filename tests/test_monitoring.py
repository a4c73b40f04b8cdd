"""What an operator sees of a server: /health, /ready, /metrics, and log lines without a word of what people wrote."""

import ast
import asyncio
import json
import logging
import re
import resource
import sqlite3
import sys
import uuid
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import psycopg
import pytest
from fake_openai import FakeOpenAI, call, cut, say, status
from honest_model import honest_answer
from langgraph.constants import TAG_HIDDEN, TAG_NOSTREAM
from prometheus_client.parser import text_string_to_metric_families
from starlette.responses import PlainTextResponse
from web_server import ROOT, Visitor, address_of, page_server, serving

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError, SettingsError
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import CampaignBusyError, HomeError
from questbook.graphs.monitoring import endpoints, logs, metrics
from questbook.graphs.monitoring.turns import MACHINES, TurnWatch
from questbook.graphs.turn.node import SPEAKS
from questbook.graphs.web.app import create_app

WORD = "Zanzibar"
"""A word that people and models say, and that no log line may have."""


@contextmanager
def program(home, **environment):
    """Run `questbook web`; when the block ends, it ends, and `lines` are those of its log."""
    running = serving(home, "--port", "0", **environment)
    try:
        running.url = address_of(running)
        yield running
    finally:
        running.terminate()
        running.rest, _ = running.communicate(timeout=60)


def lines_of(ended):
    return [json.loads(line) for line in ended.rest.splitlines() if line.startswith("{")]


def samples(url):
    """Read the metrics: each number by its name and its labels' values."""
    text = httpx.get(f"{url}/metrics").raise_for_status().text
    families = text_string_to_metric_families(text)
    numbers = [one for family in families for one in family.samples]
    return {(one.name, *(one.labels[label] for label in sorted(one.labels))): one.value for one in numbers}


@pytest.fixture
def model():
    with FakeOpenAI(honest_answer) as server:
        yield server


def with_model(model, **more):
    names = {"QUESTBOOK_MODEL": "openai:fake", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-x"}
    return names | {"QUESTBOOK_EMBEDDINGS": "hash"} | more


def fails(visitor, words):
    """Play a turn that ends with a problem."""
    visitor.open()
    visitor.post("say", text=words, ticket=uuid.uuid4().hex)
    with pytest.raises(AssertionError):
        visitor.wait_for("never")


@pytest.mark.slow
def test_metrics_tell_turns_times_tokens_and_failures(tmp_path, model):
    with program(tmp_path, **with_model(model)) as page, Visitor(page.url) as ann:
        assert httpx.get(f"{page.url}/health").text == "ok"
        assert httpx.get(f"{page.url}/ready").text == "ready"
        assert samples(page.url)["questbook_canary_leaked_total",] == 0
        ann.say("Hello.")
        ann.say("I look around.")
        model.queue(status(401, message="wrong key"))
        fails(ann, "I wait.")
        found = samples(page.url)
    game = "dungeon_master"
    assert found["questbook_turns_total", game, "replied"] == 2
    assert found["questbook_turns_total", game, "failed"] == 1
    assert found["questbook_failures_total", "FatalModelError", game] == 1
    for name in ("first_token_seconds", "turn_seconds", "upkeep_seconds"):
        assert found[f"questbook_{name}_count", game] == 2, name
    assert 0 < found["questbook_first_token_seconds_sum", game] < found["questbook_turn_seconds_sum", game]
    assert found["questbook_recall_seconds_count",] >= 1
    assert found["questbook_tokens_total", "prompt"] == 2 * found["questbook_tokens_total", "answer"] > 0
    assert found["questbook_upkeep_backlog",] == 0
    assert found["questbook_open_campaigns",] == 1
    assert found["process_resident_memory_bytes",] > 0


@pytest.mark.slow
def test_a_turn_whose_notes_are_made_is_the_backlog(tmp_path, model):
    def slow_notes(body):
        answer = honest_answer(body)
        is_notes = any(tool["function"]["name"] == "StateNotebook" for tool in body.get("tools", []))
        return say("no change, " * 40, delay=0.05) if is_notes else answer

    model.responder = slow_notes
    with program(tmp_path, **with_model(model)) as page, Visitor(page.url) as ann:
        ann.say("Hello.")
        ann.open()
        ann.post("say", text="I look around.", ticket="1")
        ann.wait_for("replied")
        assert samples(page.url)["questbook_upkeep_backlog",] == 1
        ann.wait_for()
        assert samples(page.url)["questbook_upkeep_backlog",] == 0


@pytest.fixture
def asked():
    """Ask the endpoints of an app as if from a computer, with headers; return status and text."""

    async def ask(path="/metrics", client="127.0.0.1", problem="", root="", **headers):
        async def find_problem():
            await asyncio.sleep(5 if problem == "slow" else 0)
            return problem

        app = endpoints.Endpoints(PlainTextResponse("the page"), find_problem, root)
        transport = httpx.ASGITransport(app=app, client=(client, 1))
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as web:
            answer = await web.get(path, headers=headers)
            return answer.status_code, answer.text

    return ask


@pytest.mark.parametrize(
    "asking",
    [
        {"client": "10.0.0.7"},
        {"host": "games.example.org"},
        {"x_forwarded_for": "10.0.0.7"},
        {"forwarded": "for=10.0.0.7"},
        {"via": "1.1 proxy"},
        {"x_forwarded_proto": "https"},
        {"authorization": "Bearer anything", "client": "10.0.0.7"},
    ],
    ids=lambda asking: next(iter(asking)),
)
async def test_metrics_are_for_this_computer_and_not_through_a_proxy(asked, asking):
    assert (await asked(**asking))[0] == 403
    assert (await asked())[0] == (await asked(host="localhost:9"))[0] == 200


async def test_with_a_token_metrics_are_for_whoever_brings_it_and_nobody_else(asked, monkeypatch):
    monkeypatch.setenv(endpoints.VARIABLE, "a-long-token")
    assert (await asked(client="10.0.0.7", host="games", authorization="Bearer a-long-token"))[0] == 200
    for wrong in ("Bearer a-long", "a-long-token", "Bearer a-long-token2", "Bearer é"):
        assert (await asked(authorization=wrong.encode()))[0] == 403
    assert (await asked())[0] == 403


async def test_health_and_ready_are_for_anybody_and_all_else_is_the_page_s(asked):
    stranger = {"client": "10.0.0.7", "host": "10.0.0.9:8000"}
    assert await asked("/health", **stranger) == (200, "ok")
    assert await asked("/ready", **stranger) == (200, "ready")
    assert await asked("/ready", problem="draining", **stranger) == (503, "draining")
    assert await asked("/c/ready") == (200, "the page")
    assert await asked("/play/health", root="/play") == (200, "ok")


async def test_what_it_says_of_itself_is_kept_nowhere():
    async def well():
        return ""

    app = endpoints.Endpoints(None, well)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as web:
        for path in ("/health", "/ready", "/metrics"):
            headers = (await web.get(path)).headers
            assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")


async def test_what_does_not_answer_is_not_ready(asked, monkeypatch):
    monkeypatch.setattr(endpoints, "_SECONDS", 0.01)
    assert await asked("/ready", problem="slow") == (503, "slow")


def test_a_home_that_cannot_be_read_is_not_ready(tmp_path):
    with page_server(tmp_path) as page:
        assert httpx.get(f"{page.url}/ready").text == "ready", "there is nothing yet"
        (tmp_path / "memory.db").write_bytes(b"no database" * 400)
        answer = httpx.get(f"{page.url}/ready")
        assert (answer.status_code, answer.text) == (503, "home")


async def test_a_full_disk_is_not_ready(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))  # less than a turn
    try:
        assert await FileHome(tmp_path).problem() == "home"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert await FileHome(tmp_path).problem() == ""
    assert list(tmp_path.iterdir()) == []


def coded(raises):
    """The errors of a line that says, without its trace, why something failed."""
    try:
        raises()
    except Exception as error:
        away = HomeError(WORD)
        away.__cause__ = error
    return [error.get("code") for error in rendered("Away: %s", away)["errors"]]


def test_a_line_says_by_codes_why_a_home_is_away():
    def database(statement):
        with closing(sqlite3.connect(":memory:")) as memory:
            memory.execute(statement)

    assert coded(lambda: Path("/no/such/file").read_bytes()) == [None, "ENOENT"]
    assert coded(lambda: database(WORD)) == [None, "SQLITE_ERROR"]
    assert coded(lambda: psycopg.connect("postgresql://127.0.0.1:1/none")) == [None, "ECONNREFUSED"]
    assert coded(lambda: (_ for _ in ()).throw(psycopg.errors.DiskFull(WORD))) == [None, "53100"]


@pytest.mark.slow
def test_no_line_of_the_log_has_a_word_of_what_was_said(tmp_path, model):
    secret = {"QUESTBOOK_USER": f"{WORD}-ann", "QUESTBOOK_LOG": "json", "QUESTBOOK_UPDATE_TIMEOUT": "2"}
    with program(tmp_path, **with_model(model, **secret)) as page, Visitor(page.url, f"/c/{WORD}/") as ann:
        ann.say(f"Hello {WORD}.")
        model.queue(say(f"The {WORD} sails. "), call("StateNotebook", f'{{"scene": "{WORD}'), status(400, message=WORD))
        ann.say(f"I look for the {WORD}.")
        model.queue(status(401, message=f"{WORD} is no key"))
        fails(ann, f"I look at the {WORD}.")
        model.queue(*[cut(2, say(f"{WORD} {WORD} {WORD}"))] * 8)
        fails(ann, f"I wait for the {WORD}.")
        model._behaviours.clear()
        with sqlite3.connect(tmp_path / "memory.db") as database:
            database.execute("UPDATE items SET value = value || ? WHERE value LIKE '%reply%'", (WORD,))
        ann.say(f"I think of the {WORD}.")
        ann.get(f"{WORD}/{WORD}")
        ann.post("edit", text=WORD, turn=WORD)
        ann.web.get(f"/c/{WORD}/memories?words={WORD}")
    lines, text = lines_of(page), page.rest
    assert WORD.casefold() not in text.casefold()
    assert all(line.keys() >= {"event", "level", "time", "logger", "at"} for line in lines)
    others = [line for line in text.splitlines() if not line.startswith("{")]
    assert others in ([], ["Nobody signs in: it is for one person, on this computer alone."]), "each line is JSON"
    turns = [line for line in lines if line["event"] == "A turn has ended."]
    assert [line["outcome"] for line in turns] == ["replied", "replied", "failed", "failed", "replied"]
    assert len({(line["user"], line["campaign"], line["thread"]) for line in turns}) == 1
    assert {line["error"] for line in turns if line["outcome"] == "failed"} == {"FatalModelError", "ModelError"}
    [failure, *_] = [line for line in lines if line.get("errors") and line.get("node") == "recall"]
    assert [error["type"] for error in failure["errors"]] == ["CorruptStoreError", "ValueError"]
    assert failure["errors"][-1]["places"][-1].startswith("rows:")
    assert failure["thread"] == turns[0]["thread"]
    assert datetime.fromisoformat(failure["time"]).utcoffset() == timedelta()


def test_the_first_token_is_the_first_that_reaches_the_person():
    watch, root, said, hidden = TurnWatch(), uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
    watch.on_chain_start(None, {}, run_id=root, name="companion", metadata={})
    speaks = {"parent_run_id": root, "metadata": {SPEAKS: "answers"}}
    watch.on_chat_model_start({}, [], run_id=hidden, tags=[TAG_NOSTREAM], **speaks)
    watch.on_chat_model_start({}, [], run_id=said, tags=[TAG_HIDDEN], **speaks)
    turn = watch._turns[root]
    watch.on_llm_new_token("the model's own", run_id=hidden)
    watch.on_llm_new_token("", run_id=said)
    assert turn.spoke is None, "the guard holds it back"
    watch.on_llm_new_token("The", run_id=said)
    first = turn.spoke
    watch.on_llm_new_token("gate", run_id=said)
    assert turn.spoke == first is not None
    watch.on_chain_end({}, run_id=root)
    assert not watch._turns, "nothing is kept of a turn that has ended"


def rendered(template, *values, name="questbook.graphs.turn", **more):
    formatted = []
    record = logging.LogRecord(name, logging.WARNING, __file__, 1, template, values, more.get("exc_info"))
    formatted.append(logs._Line()(None, "warning", {"_record": record, "positional_args": record.args, **more}))
    return formatted[0]


def test_a_line_shows_numbers_and_classes_and_hides_all_else():
    line = rendered("Turn %d, %s: %r %.200s %s", 3, WORD, WORD, [WORD], ModelError(WORD))
    assert line["event"] == "Turn 3, …: … … ModelError"
    assert rendered("Turn %d", WORD)["event"] == "Turn %d", "a number was expected"
    assert rendered(WORD, name="httpx")["event"] == "…", "nobody knows what another library quotes"
    assert rendered(ValueError(WORD))["event"] == "…"
    assert rendered("%(word)s", {"word": WORD})["event"] == "%(word)s"
    try:
        try:
            raise ValueError(WORD)
        except ValueError as error:
            raise ModelError(WORD) from error
    except ModelError:
        line = rendered("Failed", exc_info=sys.exc_info())
    assert [error["type"] for error in line["errors"]] == ["ModelError", "ValueError"]
    assert WORD not in json.dumps(line)


def test_names_are_digests_that_a_key_makes_the_same_everywhere(monkeypatch):
    record = logging.makeLogRecord({"name": "questbook.x", "msg": "m", "ids": {"user": WORD, "campaign": WORD + "2"}})
    lines = [logs._Line()(None, "info", {"_record": record}) for _ in range(2)]
    assert lines[0]["user"] != lines[1]["user"], "each process has a key of its own"
    monkeypatch.setenv(logs.KEY_VARIABLE, "the owner's key")
    [one, two] = [logs._Line()(None, "info", {"_record": record}) for _ in range(2)]
    assert (one["user"], one["campaign"]) == (two["user"], two["campaign"])
    assert one["user"] != one["campaign"]


@pytest.mark.slow
def test_every_text_of_a_log_line_is_a_constant_in_our_source():
    """A text that is put together would bring its parts into the line's event."""
    paths = [path for folder in ("graphs", "memory", "notebooks") for path in (ROOT / folder).rglob("*.py")]
    nodes = [(path.name, node) for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    calls = [(name, node) for name, node in nodes if isinstance(node, ast.Call)]
    texts = [(name, call.args[0]) for name, call in calls if re.match(r"_log\.\w+$", ast.unparse(call.func))]
    assert len(texts) > 30
    plain = {text for _, text in texts if isinstance(text, ast.Constant) or re.match("_[A-Z]+$", ast.unparse(text))}
    assert [(name, ast.unparse(text)) for name, text in texts if text not in plain] == []


def test_a_wrong_setting_is_refused_by_name(monkeypatch):
    monkeypatch.setenv(logs.VARIABLE, "xml")
    with pytest.raises(SettingsError, match="QUESTBOOK_LOG: got 'xml'; expected json"):
        logs.start_logging()


def test_the_machines_that_are_watched_are_those_of_the_server():
    assert set(json.loads((ROOT / "langgraph.json").read_text())["graphs"]) == set(MACHINES)


async def test_a_message_that_is_refused_because_the_home_is_away_is_counted_and_logged(tmp_path, monkeypatch, caplog):
    (tmp_path / "locks").mkdir()
    app = create_app(Context.of({"user": "ann", "model": "offline"}), FileHome(tmp_path))
    counting = metrics.Failures(logging.WARNING)
    logging.getLogger("questbook").addHandler(counting)
    for error, code in (
        (HomeError("The database was stopped."), 503),
        (CampaignBusyError("It is open elsewhere."), 409),
    ):

        async def get(*_, error=error):
            raise error

        monkeypatch.setattr(app.state.page.pool, "get", get)
        web = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000")
        answer = await web.get("/c/isle/")
        assert (answer.status_code, str(error) in answer.text) == (code, True)
    logging.getLogger("questbook").removeHandler(counting)
    assert [record.getMessage() for record in caplog.records] == ["GET /c/isle/: The database was stopped."]
    counted = {line.split(b"}")[0] for line in metrics.render().splitlines()}
    assert b'questbook_failures_total{kind="HomeError",where="graphs.web.app"' in counted
    assert b'questbook_failures_total{kind="CampaignBusyError",where="graphs.web.app"' not in counted
