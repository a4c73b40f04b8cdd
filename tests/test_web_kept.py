"""What the page has taken is kept, in files or in a database: no answer says so before the checkpoint holds it."""

import asyncio
import os
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from postgres import migrated_database
from web_server import MIRA, Visitor, address_of, half_answers, page_server, serving

from questbook.graphs.errors import HistoryError
from questbook.graphs.local.checkpointer import Checkpointer
from questbook.graphs.local.game import Game
from questbook.graphs.local.homes import home_at
from questbook.graphs.local.postgres_checkpointer import PostgresCheckpointer
from questbook.graphs.local.saved_game import read_saved_game, thread_id_of

WORDS = "I hide the silver key under the third stair."


@pytest.fixture(params=["", pytest.param("postgres", marks=pytest.mark.slow)], ids=["files", "postgres"])
def database(request):
    """URL of a database of the test's own; "": games in files."""
    return request.param and migrated_database()


@pytest.fixture
def server(database, tmp_path):
    with page_server(home_at(database or str(tmp_path / "home"), tmp_path / "home")) as server:
        yield server


@pytest.fixture
def saver(database):
    """The class that writes the checkpoints."""
    return PostgresCheckpointer if database else Checkpointer


@pytest.fixture
def visitor(server):
    with Visitor(server.url) as visitor:
        visitor.say(MIRA)
        yield visitor


@pytest.fixture
def slow(visitor, saver, monkeypatch):
    """Let each write of a checkpoint take half a second."""
    quick = saver.aput

    async def aput(self, *args):
        await asyncio.sleep(0.5)
        return await quick(self, *args)

    monkeypatch.setattr(saver, "aput", aput)


def saved_game(server):
    """What the last checkpoint says, as another process reads it."""

    async def read():
        async with server.home.open_checkpointer() as saver:
            return await read_saved_game(saver, thread_id_of("ann", "isle"))

    return asyncio.run(read())


def words_of(saved):
    return [message.text for message in saved.values["messages"] if message.type == "human"]


def last_words(server):
    saved = saved_game(server)
    return saved.unanswered or words_of(saved)[-1]


def say(visitor, words=WORDS):
    return visitor.post("say", text=words, ticket=uuid.uuid4().hex)


@pytest.mark.slow
def test_a_message_is_in_the_checkpoint_when_the_page_hears_that_it_was_taken(server, visitor, slow):
    assert say(visitor).status_code == 200
    assert last_words(server) == WORDS


def test_a_stopped_reply_waits_for_its_person_and_one_that_was_cut_off_goes_on_by_itself(server, visitor):
    def begin_again():
        server.stop()
        server.start()
        visitor.open()
        return visitor.get("story").text

    with half_answers():
        say(visitor)
        assert visitor.post("stop").status_code == 204
        for _ in range(2):
            story = begin_again()
            assert ("Try again" in story, "Take it back" in story, 'id="live"' in story) == (True, True, False)
        assert visitor.post("retry").status_code == 204
        assert 'id="live"' in begin_again(), "the retry was cut off"
    visitor.wait_for()
    assert saved_game(server).unanswered is None


@pytest.mark.slow
def test_other_words_for_the_last_message_are_in_the_checkpoint_when_they_are_taken(server, visitor, slow):
    assert visitor.post("edit", text=WORDS, turn="1").status_code == 204
    assert last_words(server) == WORDS


def test_a_message_that_cannot_be_kept_is_refused_in_a_sentence_and_not_shown(server, visitor, saver, monkeypatch):
    quick = saver.aput

    async def aput(self, *args):
        raise OSError("database or disk is full")

    monkeypatch.setattr(saver, "aput", aput)
    answer = say(visitor)
    assert answer.status_code == 409
    assert "database or disk is full. Your message was not kept; say it again." in answer.text
    assert "silver key" not in visitor.get("story").text
    assert last_words(server) == MIRA
    monkeypatch.setattr(saver, "aput", quick)
    assert say(visitor).status_code == 200
    assert last_words(server) == WORDS


def test_what_cannot_be_tried_again_is_refused_and_the_story_stays_as_it_was(visitor, monkeypatch):
    async def retry(self, *, dice=False):
        raise HistoryError("There is no reply to replace.")
        yield

    before = visitor.get("story").text.partition("ticket")[0]
    monkeypatch.setattr("questbook.graphs.local.game.Game.retry", retry)
    answer = visitor.post("retry")
    assert (answer.status_code, "There is no reply to replace." in answer.text) == (409, True)
    assert visitor.get("story").text.partition("ticket")[0] == before
    assert "replying" not in before


@pytest.mark.slow
@pytest.mark.parametrize(("method", "calls", "status"), [("aget_tuple", 0, 409), ("aput", 1, 200)])
def test_a_stop_before_the_first_event_says_whether_the_message_is_kept(
    server, visitor, saver, monkeypatch, method, calls, status
):
    quick, begun, done = getattr(saver, method), threading.Event(), []
    send, sent = Game.send, threading.Event()

    async def slow(self, *args):
        if not sent.is_set():  # the page and the notes of the turn before read, too
            return await quick(self, *args)
        if len(done) == calls:  # before anything is written; or between the two checkpoints before the first event
            begun.set()
            await asyncio.sleep(2)
        done.append(args)
        return await quick(self, *args)

    monkeypatch.setattr(saver, method, slow)
    monkeypatch.setattr(Game, "send", lambda *words: sent.set() or send(*words))
    with ThreadPoolExecutor(1) as pool:
        saying = pool.submit(say, visitor)
        assert begun.wait(20)
        visitor.post("stop")
        answer = saying.result(20)
    assert answer.status_code == status, answer.text
    assert ("before anything of it was kept" in answer.text) == (status == 409)
    assert (last_words(server) == WORDS) == ("silver key" in visitor.get("story").text) == (status == 200)
    more = "I wait." if status == 200 else WORDS
    visitor.say(more)
    assert words_of(saved_game(server)) == [MIRA, more]  # what has no reply is not glued to what is said next


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_message_that_was_taken_outlives_kill_9(database, tmp_path):
    taken, chance, place = [], random.Random(22), {"QUESTBOOK_DATABASE": database}
    for turn in range(2 if database else 5):
        program = serving(tmp_path / "home", "--port", "0", **place)
        with Visitor(address_of(program), "/c/isle/") as visitor:
            while 'id="live"' in (story := visitor.get("story").text):
                time.sleep(0.1)  # what was not answered yet is answered first
            assert all(words in story for words in taken), taken
            words = MIRA if not turn else f"I count {turn} stairs."
            assert say(visitor, words).status_code == 200
            taken.append(words.replace("'", "&#39;"))
            time.sleep(chance.uniform(0, 0.03))
            os.kill(program.pid, 9)
        program.wait()
        program.stdout.close()
    program = serving(tmp_path / "home", "--port", "0", **place)
    with Visitor(address_of(program), "/c/isle/") as visitor:
        story = visitor.get("story").text
    program.kill()
    program.wait()
    program.stdout.close()
    assert [words for words in taken if words not in story] == []
