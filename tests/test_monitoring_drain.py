"""`questbook web` ends: no new turns, the replies that are coming end in time, and a second signal ends it at once."""

import asyncio
import os
import signal
import threading
import time
import uuid

import httpx
import pytest
from fake_openai import FakeOpenAI, say
from honest_model import honest_answer
from postgres import OF_LOCKS, execute, migrated_database
from starlette.responses import Response
from test_monitoring import program, with_model
from web_server import Visitor, Watching

from questbook.graphs.errors import SettingsError
from questbook.graphs.monitoring import draining

STORY = "The lamp burns on. " * 12 + "The end."


class Slow:
    """A model on this computer whose replies take some seconds, when it is asked to."""

    def __init__(self, server):
        self.server, self.delay = server, 0.0
        server.responder = self.answer

    def answer(self, body):
        answer = honest_answer(body)
        return (
            say(STORY, delay=self.delay) if self.delay and not answer.calls and answer.text != "no change" else answer
        )


@pytest.fixture
def slow():
    with FakeOpenAI() as server:
        yield Slow(server)


def begin(page, slow, delay):
    """Begin a turn whose reply comes slowly; return who plays it, and watches."""
    ann = Visitor(page.url)
    ann.open()
    ann.say("Hello.")
    slow.delay = delay
    ann.open()
    watching = Watching(ann)
    assert ann.post("say", text="I look around.", ticket=uuid.uuid4().hex).status_code == 200
    watching.wait_for("event: piece")
    return ann, watching


def seconds_to_end(page, most=60):
    begun = time.monotonic()
    page.wait(most)
    return time.monotonic() - begun


def is_draining(page):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        answer = httpx.get(f"{page.url}/ready")
        if (answer.status_code, answer.text) == (503, "draining"):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_the_reply_that_is_coming_ends_and_nothing_new_begins(tmp_path, slow):
    with program(tmp_path, **with_model(slow.server)) as page:
        ann, watching = begin(page, slow, 0.08)
        page.send_signal(signal.SIGTERM)
        assert is_draining(page)
        assert httpx.get(f"{page.url}/health").text == "ok", "the process is up"
        refused = ann.post("say", text="And I wait.", ticket=uuid.uuid4().hex)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert "takes no new turns" in refused.text
        with Visitor(page.url, "/c/another/") as other:
            opened = other.open()
            assert (opened.status_code, opened.headers["retry-after"]) == (503, "5"), "what is not open stays closed"
        assert ann.get().status_code == 200, "what is open can be read"
        watching.wait_for("event: replied")
        assert seconds_to_end(page) < 15
        assert watching.rest(), "the stream has ended"
        assert page.returncode == -signal.SIGTERM
    slow.delay = 0
    with program(tmp_path, **with_model(slow.server)) as page, Visitor(page.url) as ann:
        assert "The end." in ann.get("story").text, "the whole reply was kept"
        assert "And I wait." not in ann.get("story").text


@pytest.mark.slow
def test_a_reply_that_takes_too_long_is_stopped_and_its_message_is_answered_by_the_next(tmp_path, slow):
    with program(tmp_path, **with_model(slow.server, QUESTBOOK_DRAIN_SECONDS="1")) as page:
        begin(page, slow, 1.0)
        page.send_signal(signal.SIGTERM)
        assert 0.9 < seconds_to_end(page) < 8
    slow.delay = 0
    with program(tmp_path, **with_model(slow.server)) as page, Visitor(page.url) as ann:
        ann.wait_for("pages")
        story = ann.get("story").text
        assert 'data-turn="2"' in story, "the message is one turn"
        assert "I look around." in story


@pytest.mark.slow
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(tmp_path, slow, second):
    with program(tmp_path, **with_model(slow.server)) as page:
        begin(page, slow, 1.0)
        page.send_signal(signal.SIGTERM)
        assert is_draining(page)
        page.send_signal(second)
        assert seconds_to_end(page) < 4


@pytest.mark.slow
def test_ctrl_c_alone_ends_it_as_ever(tmp_path, slow):
    with program(tmp_path, **with_model(slow.server)) as page:
        begin(page, slow, 1.0)
        page.send_signal(signal.SIGINT)
        assert seconds_to_end(page) < 8


@pytest.mark.slow
def test_who_plays_nothing_is_not_waited_for(tmp_path):
    with program(tmp_path) as page:
        threading.Event().wait(0.2)
        page.send_signal(signal.SIGTERM)
        assert seconds_to_end(page) < 4


@pytest.mark.slow
@pytest.mark.parametrize(("signals", "most"), [(1, 14), (2, 4)])
def test_a_database_that_does_not_answer_holds_up_no_end(tmp_path, signals, most):
    url = migrated_database()
    with program(tmp_path, QUESTBOOK_DATABASE=url) as page, Visitor(page.url) as ann:
        ann.say("I'm Mira, a halfling thief who grew up on the docks and wants her sister back.")
        asked = f"SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND {OF_LOCKS}"
        sessions = [pid for (pid,) in execute(url, asked)]
        assert sessions, "the page holds the campaign"
        try:
            for pid in sessions:
                os.kill(pid, signal.SIGSTOP)
            page.send_signal(signal.SIGTERM)
            time.sleep(1.0)
            for _ in range(signals - 1):
                page.send_signal(signal.SIGTERM)
            assert seconds_to_end(page) < most
        finally:
            for pid in sessions:
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("method", "path", "is_waited_for"),
    [("POST", "/c/isle/forget", True), ("GET", "/c/isle/export", True), ("GET", "/c/isle/events", False)],
)
async def test_what_is_being_changed_or_exported_ends_before_the_server_does(method, path, is_waited_for):
    drain, goes_on, began = draining.Drain(lambda: False), asyncio.Event(), asyncio.Event()

    async def forget(scope, receive, send):
        began.set()
        await goes_on.wait()
        await Response("done")(scope, receive, send)

    transport = httpx.ASGITransport(drain.refuse_changes(forget))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
        asked = asyncio.create_task(web.request(method, path))
        await began.wait()
        assert drain.begin(signal.SIGTERM)
        assert drain.is_over is not is_waited_for
        assert (await web.post("/c/isle/forget")).status_code == 503
        goes_on.set()
        assert (await asked).text == "done"
    assert drain.is_over


@pytest.mark.parametrize("said", ["soon", "-1", "inf", "nan"])
def test_a_time_that_is_none_is_refused(monkeypatch, said):
    monkeypatch.setenv(draining.VARIABLE, said)
    with pytest.raises(SettingsError, match=f"QUESTBOOK_DRAIN_SECONDS: got '{said}'; expected seconds"):
        draining.Drain(bool)
