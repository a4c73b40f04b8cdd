"""The instruments of `benchmarks/load.py` and `faults.py`: what is lost, doubled or another's is counted."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import page_players
from benchmarks.page_players import foreign_words, sentence, word_of

ROOT = Path(__file__).parent.parent


def test_each_turn_of_each_player_has_a_word_of_its_own():
    words = {word_of(player, turn) for player in range(300) for turn in range(40)}
    assert len(words) == 300 * 40


def test_the_words_of_other_players_are_found_in_any_spelling_and_ones_own_are_not():
    text = f"<p>{sentence(3, 2)} {word_of(4, 1).upper()} and {word_of(4, 2)}, {word_of(250, 7)}.</p>"
    assert foreign_words(text, 3) == 2
    assert foreign_words(text, 4) == 2
    assert foreign_words(sentence(3, 1), 3) == 0
    assert foreign_words(f'{{"text": "On the wall:\\n{word_of(4, 1)}\\n"}}', 3) == 1
    assert foreign_words(f'<html data-token="iiAJ{word_of(4, 1)}bmSx"><p>x_{word_of(4, 1)}', 3) == 0, "it is random"


def test_the_model_counts_prompts_that_have_words_of_two_players(monkeypatch):
    for folder in ("benchmarks", "tests"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    from benchmarks.loopback_model import Loopback

    model = Loopback(0.0)
    for words in (sentence(1, 2), f"{sentence(1, 3)} {word_of(2, 3)}"):
        model({"messages": [{"role": "user", "content": words}]})
    assert model.counts == {"calls": 2, "foreign": 1}


def test_a_row_that_was_cut_off_says_how_many_turns_were_not_played(monkeypatch):
    for folder in ("benchmarks", "tests"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    from benchmarks import load

    setup, turns = load.Setup("ours", "postgres", 4, "300ms"), [page_players.Timed(0.5, 1.0, 2.0)]
    whole = load.Measured(turns, 2.0, 0.1, 0.02, 2048, 2**27, Counter())
    assert load.row(setup, whole).startswith("| **ours** | PostgreSQL | 4 | 300ms | 1 | 0.5 | 0.50 / 0.50 / 0.50 |")
    cut = whole._replace(turns=[], counts=Counter({"not played": 1200, "lost": 2}))
    assert load.row(setup, cut).startswith("| **ours** | PostgreSQL | 4 | 300ms | 0, cut off: 1,200 not played | 0.0 |")
    assert load.row(setup, cut).endswith("| 0, 2, 0, 0 |")


class Pages(page_players.Player):
    """A player whose pages are given."""

    def __init__(self, turn, chronicle, panel=""):
        super().__init__(1, ["http://127.0.0.1:9"], Counter())
        self.told = [word_of(1, 1), word_of(1, 2)]
        self.turn, self.chronicle, self.panel = turn, chronicle, panel

    async def open(self):
        return f'data-turn="{self.turn}"'

    async def get(self, place=""):
        text = self.chronicle if place == "chronicle.md" else self.panel
        self.look(text)
        return page_players.httpx.Response(200, text=text)


@pytest.mark.parametrize(
    ("turn", "turns", "panel", "counted"),
    [
        (2, (1, 2), "", {}),
        (2, (1,), "", {"lost": 1}),
        (1, (1, 2), "", {"lost": 1}),
        (3, (1, 2, 2), "", {"doubled": 1}),
        (3, (1, 2), "", {"doubled": 1}),
        (2, (1, 2), word_of(2, 2), {"foreign": 4}),
    ],
)
async def test_a_story_is_compared_with_what_its_player_said(turn, turns, panel, counted):
    player = Pages(turn, "\n\n".join(f"> {sentence(1, number)}" for number in turns), panel)
    await player.check()
    await player.close()
    assert {name: number for name, number in player.counts.items() if number} == counted


@pytest.mark.parametrize(
    ("status", "text", "foreign"), [(404, "There is nothing.", 0), (200, "A page.", 1), (403, word_of(2, 1), 1)]
)
async def test_a_page_of_anothers_campaign_is_foreign_if_it_is_shown_or_has_their_words(status, text, foreign):
    asked = []

    def answer(request):
        asked.append(request.url.path)
        return page_players.httpx.Response(status, text=text)

    player = page_players.Player(1, ["http://127.0.0.1:9"], Counter(), 3)
    player.web = page_players.httpx.AsyncClient(transport=page_players.httpx.MockTransport(answer))
    for turn in range(1, 13):
        await player.pry(turn)
    await player.close()
    assert player.counts == Counter({"asked for others": 12, "foreign": 12 * foreign})
    assert {path.split("/")[2] for path in asked} == {page_players.user_of(each) for each in (0, 2)}
    assert {path.rpartition("/")[2] for path in asked} == {"", "story", "chronicle.md", "events", "memories", "behind"}


def test_tracebacks_of_a_log_name_the_file_of_ours_that_they_came_by_last():
    ours = (
        '  File "/a/questbook/graphs/web/views.py", line 7, in story\n    x\n  File "/b/psycopg/c.py", line 2, in d\n'
    )
    log = f"ok\nTraceback (most recent call last):\n{ours}psycopg.Error: gone\nok\n"
    log += 'Traceback (most recent call last):\n  File "/b/c.py", line 3, in e\n    z\nValueError: no\ngraphs/x.py\n'
    assert page_players.tracebacks_in(log) == ["graphs/web/views.py:7 psycopg.Error: gone", "? ValueError: no"]


@pytest.fixture
async def proxy(tmp_path, monkeypatch):
    """A proxy before a server that says everything back, and a connection to it."""
    for folder in ("benchmarks", "tests"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    from benchmarks.fault_scene import Proxy

    async def echo(reader, writer):
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_unix_server(echo, str(tmp_path / "socket"))
    proxy = Proxy(tmp_path / "socket")
    yield proxy, await proxy.start()
    await proxy.close()
    server.close()


async def says_back(reader, writer):
    writer.write(b"x")
    return await asyncio.wait_for(reader.read(1), 5)


async def test_a_proxy_passes_on_and_cuts_what_is_open(proxy):
    proxy, port = proxy
    one = await asyncio.open_connection("127.0.0.1", port)
    assert await says_back(*one) == b"x"
    await proxy.drop(0.0)
    assert await asyncio.wait_for(one[0].read(1), 5) == b"", "the end"
    assert await says_back(*await asyncio.open_connection("127.0.0.1", port)) == b"x"


async def test_a_silent_proxy_passes_nothing_on_and_then_cuts(proxy):
    proxy, port = proxy
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await says_back(reader, writer) == b"x"
    silence = asyncio.create_task(proxy.go_silent(0.2))
    await asyncio.sleep(0.05)
    writer.write(b"y")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.1)
    await silence
    assert await asyncio.wait_for(reader.read(1), 5) == b"", "the end"


@pytest.mark.slow
@pytest.mark.parametrize("home", ["postgres"])
def test_a_small_load_is_played_without_a_fault(home):
    size = ["--players", "3", "--turns", "2", "--homes", home, "--processes", "2", "--models", "300ms"]
    command = [sys.executable, str(ROOT / "benchmarks" / "load.py"), *size]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"load_ours_{home}_2_300ms_turns: 6 turns" in done.stdout
