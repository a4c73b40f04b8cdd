"""Campaigns on the page: what they cost, as files, put away, played by others; and the companion."""

import asyncio
import io
import json
import re
import time
import zipfile
from contextlib import closing, nullcontext, suppress
from types import SimpleNamespace

import pytest
from conftest import MIRA as CHARACTER
from fake_openai import FakeOpenAI, call, say
from filelock import FileLock
from held import hold_campaign
from langchain_openai import ChatOpenAI
from program import start
from web_server import MIRA, Visitor, half_answers, page_server

from questbook.graphs.local.costs import costs_of
from questbook.graphs.local.home import CampaignBusyError, HomeError
from questbook.graphs.web.open_campaign import OpenCampaign

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path):
    with page_server(tmp_path / "home") as server:
        yield server


def test_the_cost_of_a_campaign_outlives_the_server_and_counts_what_was_undone(tmp_path, monkeypatch):
    with FakeOpenAI() as model:
        model.responder = lambda body: say("The wind turns.")
        model.queue(call("CharacterNotebook", CHARACTER))
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
        monkeypatch.setattr(ChatOpenAI, "_should_stream_usage", lambda *_, **__: True)  # as it does at OpenAI's
        with page_server(tmp_path / "home", model="openai:gpt-4o-mini") as server, Visitor(server.url) as visitor:
            visitor.say("I'm Mira.")
            visitor.say("I look around.")
            visitor.post("undo")
            before = asyncio.run(costs_of(server.home, "ann", "isle"))
            first = visitor.get("panel/summary").text
        assert before.total.calls == len(model.requests)
        assert before.total.prompt > 0
        assert before.total.dollars > 0
        assert before.last.calls < before.total.calls
        shown = f"The campaign: {before.total.calls} calls, {before.total.prompt + before.total.answers:,} tokens, $0."
        assert shown in first
        with page_server(tmp_path / "home", model="openai:gpt-4o-mini") as server, Visitor(server.url) as visitor:
            assert shown in visitor.get("panel/summary").text
            visitor.say("I wait.")
        after = asyncio.run(costs_of(server.home, "ann", "isle"))
        prompt = start(server.home.path, "play", "--campaign", "isle", "--user", "ann", words="/prompt\n").stdout
        assert prompt.count(b"The campaign: ") == 1
    assert after.total.calls == len(model.requests)
    assert after.since == before.since
    assert after.total.dollars == pytest.approx(before.total.dollars + after.last.dollars)


def test_a_campaign_comes_by_file_into_an_empty_home_and_goes_on_whole(server, tmp_path):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        visitor.say("I talk to Maren Holt about the Velvet Anchor.")
        visitor.post("line", name="the quay")
        visitor.post("undo")
        visitor.say("I sneak past Maren Holt")
        visitor.post("settings", buffer_tokens="900")
        visitor.web.post("/c/isle/lore", files=[("files", ("gate.md", b"# The gate\n\nIt opens at low tide.\n"))])
        file = visitor.get("export").content
        views = (*(f"panel/{name}" for name in ("sheet", "quest", "dice", "tree", "summary")), "chronicle.md")
        before = [visitor.get(view).text for view in views]
        taken = visitor.web.post("/import", files={"file": ("isle.zip", file)})
        assert taken.status_code == 409
        assert "has begun already" in taken.text
        copy = visitor.web.post("/import", files={"file": ("isle.zip", file)}, data={"name": "a/b"})
        assert copy.status_code == 204
        assert "Mira" in visitor.web.get(copy.headers["hx-redirect"]).text
        visitor.web.post("/import", files={"file": ("x.zip", b"no zip")}, data={"name": "broken"})
        assert "broken" not in visitor.web.get("/").text

    with page_server(tmp_path / "other") as other, Visitor(other.url, "/") as visitor:
        answer = visitor.web.post("/import", files={"file": ("isle.zip", file)})
        assert answer.status_code == 204, answer.text
        assert answer.headers["hx-redirect"] == "/c/isle/"
    with page_server(tmp_path / "other") as other, Visitor(other.url) as visitor:
        assert [visitor.get(view).text for view in views] == before
        settings = visitor.get("settings").text
        assert 'value="900"' in settings
        assert "gate.md" in settings
        again = visitor.get("export").content
        assert lines_of(again) == lines_of(file)
        assert visitor.post("go", where="the quay").status_code == 204
        assert "Velvet Anchor" in visitor.get("story").text
        assert "Velvet Anchor" in visitor.get("search?words=velvet+anchor").text
        assert visitor.post("forget", words="Velvet Anchor", sure="1", whole="1").status_code == 200
        for view in ("story", "chronicle.md", "panel/tree", "search?words=velvet+anchor"):
            assert "Velvet Anchor" not in visitor.get(view).text.replace('value="velvet anchor"', ""), view


def lines_of(content):
    """The records and values of a campaign's file; threads have other ids in another home."""
    file = zipfile.ZipFile(io.BytesIO(content))
    lines = [line for part in ("records.jsonl", "values.jsonl") for line in file.read(part).decode().splitlines()]
    return sorted(re.sub(r'"thread": "[^"]+"', '"thread": ""', line) for line in lines)


def test_a_campaign_is_exported_whole_while_it_is_played(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        visitor.post("say", text="I look around.", ticket="t")
        file = visitor.get("export")
        assert file.status_code == 200
        about = json.loads(zipfile.ZipFile(io.BytesIO(file.content)).read("manifest.json"))
        assert about["turn"] == 2
        copy = visitor.web.post("/import", files={"file": ("x.zip", file.content)}, data={"name": "copy"})
        assert copy.status_code == 204, copy.text
        assert "I look around." in visitor.web.get("/c/copy/story").text


def test_a_campaign_that_a_terminal_plays_is_said_to_be_busy_and_loses_nothing(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        with Visitor(server.url, "/c/other/") as other:
            other.say(MIRA)
        with pytest.raises(Exception, match="open in another"), hold_campaign(server.home, "ann", "isle"):
            pass
    with hold_campaign(server.home, "ann", "third"):
        third = Visitor(server.url, "/c/third/")
        assert third.open().status_code == 200, "nobody has played it: only words open it"
        busy = third.post("say", text=MIRA)
        assert (busy.status_code, "is open in another terminal" in busy.text) == (409, True)
    assert third.post("say", text=MIRA).status_code < 300
    assert "Mira" in Visitor(server.url).open().text


def wait_until_free(server, name):
    """Wait until a terminal could play a campaign that the page had open."""
    for _ in range(100):
        with suppress(CampaignBusyError), hold_campaign(server.home, "ann", name):
            return
        time.sleep(0.1)
    raise AssertionError("it stays locked")


def test_a_campaign_that_nobody_looks_at_is_free_for_a_terminal(server, monkeypatch):
    monkeypatch.setattr("questbook.graphs.web.campaign_pool._IDLE_SECONDS", 0.4)
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        wait_until_free(server, "isle")
        assert "Mira" in visitor.get("story").text, "and opens again"


def test_idle_campaigns_are_closed_also_after_one_could_not_be(server, monkeypatch):
    close, failed = OpenCampaign.close, []

    async def fail_once(self):
        await close(self)
        if not failed and not self.is_preview:
            failed.append(self)
            raise HomeError("Cannot use the database: it was stopped.")

    monkeypatch.setattr(OpenCampaign, "close", fail_once)
    monkeypatch.setattr("questbook.graphs.web.campaign_pool._IDLE_SECONDS", 0.4)
    with Visitor(server.url, "/c/isle/") as visitor, Visitor(server.url, "/c/other/") as other:
        visitor.say(MIRA)
        other.say(MIRA)
    for name in ("isle", "other"):
        wait_until_free(server, name)  # nobody asks the page for anything meanwhile
    assert failed


def test_a_campaign_stays_open_for_a_minute_as_the_manual_says(server, monkeypatch):
    later = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later)
    Visitor(server.url).say(MIRA)
    monkeypatch.setattr("questbook.graphs.web.campaign_pool.time", clock)
    for later, is_open in ((50.0, True), (200.0, False)):  # the end of its event stream may come after 50
        Visitor(server.url, f"/c/after {later}/").say(MIRA)  # whoever opens one closes those that nobody uses
        busy = pytest.raises(CampaignBusyError) if is_open else nullcontext()
        with busy, hold_campaign(server.home, "ann", "isle"):
            pass


def test_no_more_campaigns_are_open_than_a_server_can_hold(server, monkeypatch):
    monkeypatch.setattr("questbook.graphs.web.campaign_pool._MOST_OPEN", 3)
    for number in range(8):
        Visitor(server.url, f"/c/name {number}/").say(MIRA)
    free = 0
    for path in (server.home.path / "campaigns").iterdir():
        with suppress(TimeoutError), FileLock(path, timeout=0):
            free += 1
    assert free >= 5


def test_put_away_campaigns_are_counted_and_come_back(server):
    with Visitor(server.url) as visitor:
        assert "Put it away" not in visitor.get("settings").text, "there is nothing to be put away"
        visitor.say(MIRA)
        assert "Put it away" in visitor.get("settings").text
        assert "Put away" not in visitor.web.get("/").text
        assert visitor.post("put-away", away="1").headers["hx-redirect"] == "/"
        listed = visitor.web.get("/").text
        assert "Put away (1)" in listed
        assert 'class="campaigns"' not in listed.partition("Put away")[0]
        assert "Put it back" in visitor.get("settings").text
        visitor.post("put-away", away="0")
        assert "Put away" not in visitor.web.get("/").text


def test_a_second_click_on_another_way_to_tell_it_is_refused_while_the_first_is_told(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        visitor.say("I look around.")
        with half_answers():
            assert visitor.post("retry").status_code == 204
            for change in ("retry", "undo", "rewrite", "edit", "go", "wish", "line", "page", "forget", "settings"):
                again = visitor.post(
                    change, text="x", where="1", name="x", page="quest", path="gold", value="1", words="x"
                )
                assert again.status_code == 409, change
                assert "still coming" in again.text
            refused = visitor.post("say", text="I wait.", ticket="w")
            assert refused.status_code == 409
            assert refused.headers["hx-retarget"] == "#problem", "the message stays in its form"
        visitor.wait_for()
        assert "I look around." in visitor.get("story").text
        visitor.open()
        for _ in range(2):
            assert visitor.post("say", text="I wait.", ticket="w").status_code in (200, 409)
        visitor.wait_for()
        assert visitor.post("say", text="I wait.", ticket="w").status_code == 200
        assert 'id="live"' not in visitor.get("story").text
        assert visitor.get("story").text.count('class="player">I wait.') == 1, "a double click plays once"
        long = visitor.post("say", text="x" * 9000, ticket="x")
        assert long.status_code == 409
        assert "9,000 characters" in long.text


def test_the_companion_has_its_core_memory_edited_and_two_tabs_see_it(server):
    with Visitor(server.url, "/a/sage/") as visitor, Visitor(server.url, "/a/sage/") as tab:
        visitor.say("My name is Ann and I live in Oslo.")
        assert any(kind == "piece" for kind, _ in tab.wait_for())
        core = visitor.get("panel/core").text
        assert 'value="human"' in core
        tab.open()
        known = visitor.get("known").text
        assert "Oslo" in known
        key = re.search(r'name="key" value="([^"]+)"', known)[1]
        corrected = visitor.post("known", key=key, text="Ann lives in Bergen.").text
        assert ">Ann lives in Bergen.</textarea>" in corrected
        assert re.search(r"<s>[^<]*Oslo[^<]*</s> <small>has ended", corrected)
        assert [visitor.post("known", key=key, text=text).status_code for text in (" ", "x" * 9000)] == [409] * 2
        assert f'value="{key}"' not in visitor.post("known", key=key, delete="1").text
        assert "Bergen" in visitor.get("search?words=Bergen").text
        changed = visitor.post("core", label="human", value="Ann. Likes the sea.")
        assert changed.status_code == 204
        tab.wait_for("pages")
        assert "Likes the sea." in tab.get("panel/core").text
        for form in (
            {"label": "human", "value": "x" * 100_000},
            {"label": "", "value": "x"},
            {"label": "plans", "delete": "1"},
            {"label": "plans", "up": "1"},
        ):
            refused = visitor.post("core", **form)
            assert refused.status_code == 409, refused.text
        assert "Likes the sea." in tab.get("panel/core").text
        visitor.say("What is the capital of France?")
        assert visitor.get("panel/memories").status_code == 200
        assert visitor.post("undo").status_code == 204
        assert "capital of France" not in visitor.get("story").text.partition("is taken back")[0]
        assert "Likes the sea." in visitor.get("panel/core").text
        assert "Oslo" in visitor.get("search?words=Oslo").text
        visitor.post("settings", temperature="0.5")
        file = visitor.get("export")
        assert file.status_code == 200
        copy = visitor.web.post("/import", files={"file": ("x.zip", file.content)}, data={"name": "other"})
        assert copy.headers["hx-redirect"] == "/a/other/", copy.text
        listed = visitor.web.get("/").text
        assert "/a/sage/" in listed
        assert "/a/other/" in listed
        assert 'value="0.5"' in visitor.web.get("/a/other/settings").text


def test_every_name_has_its_page(server):
    for name in ("a/b", "..", "~", "ä ö", "a?b#c", "x" * 60, "C:\\x", "%2e%2e"):
        with closing(Visitor(server.url, "/").web) as web:
            page = web.get("/new", params={"name": name})
            assert page.status_code == 200, name
            assert page.url.path.startswith("/c/")
            assert "Who do you want to play?" in page.text
    assert not (server.home.path.parent / "b").exists()


def test_a_campaign_without_a_message_offers_no_file_and_no_other_name(server):
    with Visitor(server.url) as visitor:
        settings = visitor.get("settings").text
        assert "after its first message" in settings
        assert "/export" not in settings
        visitor.say("I'm Mira.")
        settings = visitor.get("settings").text
        assert "after its first message" not in settings
        assert "/export" in settings
        assert "/rename" in settings


def test_a_remembered_fact_names_the_line_of_its_turn(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        assert visitor.post("settings", buffer_tokens="200").status_code == 200
        for message in ("I talk to Maren Holt.", "I search for tracks.", "I climb the ivy to the lamp."):
            visitor.say(message)
        memories = visitor.get("panel/memories").text
    assert "trait · turn 1 of main" in memories
    assert "on branch" not in memories
