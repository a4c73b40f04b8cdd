"""Without a setting, a store goes on with the embedder that made it; a new one takes MiniLM, if it is ready here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_minilm
from fake_terminal import PROMPT, FakeTerminal
from program import questbook
from starlette.testclient import TestClient
from stores import execute
from tiny_minilm import WIDTH, checksums, write_tiny

from questbook import FaissStore, HashEmbeddings, MiniLMEmbeddings
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import find_home
from questbook.graphs.terminal.chat import ltm_hint
from questbook.graphs.web.app import create_app
from questbook.memory.embeddings import loading, minilm
from questbook.memory.errors import EmbeddingError

MINILM = f"all-MiniLM-L6-v2 with {WIDTH} dimensions"
HASH = "hash-1:512 with 512 dimensions"
HINT = "MiniLM, a small model (91 MB) that runs on this computer, also finds what was said in other words"
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.\n"


@pytest.fixture
def get_weights(tmp_path_factory, monkeypatch):
    """Put a tiny model where the weights belong, in the place of the published one."""
    published = checksums(write_tiny(tmp_path_factory.mktemp("published")))
    monkeypatch.setattr(minilm, "SHA256", published)
    monkeypatch.setattr(MiniLMEmbeddings, "dims", WIDTH)
    return lambda: write_tiny(minilm.minilm_directory())


def lose_weights():
    for file in minilm.minilm_directory().iterdir():
        file.unlink()


def recorded(file):
    return execute(file, "SELECT value FROM meta WHERE key = 'embedder'")[0][0]


def vectors_of(file):
    return execute(file, "SELECT id, vector FROM vectors ORDER BY id")


async def say(*words, machine="dungeon_master", context=Context):
    home = find_home()
    async with open_game(context(user="adventurer", seed=3), home, machine) as game:
        for said in words:
            async for _ in game.send(said):
                pass
    return recorded(home.memory)


def test_the_weights_are_looked_for_where_the_command_puts_them(monkeypatch, tmp_path):
    assert minilm.minilm_directory() == find_home().path / "minilm"
    monkeypatch.setenv("QUESTBOOK_MINILM", str(tmp_path / "elsewhere"))
    assert minilm.minilm_directory() == tmp_path / "elsewhere"


@pytest.mark.parametrize("lack", ["", "weights", "tokenizer"])
async def test_new_stores_take_minilm_if_it_is_ready(get_weights, tmp_path, monkeypatch, lack):
    is_there = not lack
    if lack != "weights":
        get_weights()
    if lack == "tokenizer":
        monkeypatch.setitem(sys.modules, "tokenizers", None)
    async with find_home().open_store() as store:
        assert isinstance(store.embeddings, MiniLMEmbeddings if is_there else HashEmbeddings)
    with FaissStore.open(tmp_path / "own.db") as store:
        assert isinstance(store.embeddings, MiniLMEmbeddings if is_there else HashEmbeddings)
        assert store.index_config["dims"] == (WIDTH if is_there else 512)
        store.put(("a",), "k", {"text": "the dragon"})
        assert store.search(("a",), query="The dragons")[0].key == "k"
    assert recorded(tmp_path / "own.db") == recorded(find_home().memory) == (MINILM if is_there else HASH)


async def test_a_store_opened_in_an_event_loop_decides_at_its_first_call(get_weights, tmp_path):
    get_weights()
    store = FaissStore.open(tmp_path / "s.db")
    await store.aput(("a",), "k", {"text": "the dragon"})
    assert store.embeddings.identity == "all-MiniLM-L6-v2"
    await store.aclose()


@pytest.mark.parametrize(("machine", "context"), [("dungeon_master", Context), ("companion", CompanionContext)])
async def test_a_game_takes_it_and_recalls_with_it(get_weights, machine, context):
    get_weights()
    assert await say(MIRA, "look around", machine=machine, context=context) == MINILM
    assert vectors_of(find_home().memory)


@pytest.mark.slow
async def test_a_game_that_began_with_hash_goes_on_with_it_until_a_setting_says_else(get_weights, monkeypatch):
    assert await say(MIRA, "look around") == HASH
    get_weights()
    assert await say("look around") == HASH
    assert {len(blob) for _, blob in vectors_of(find_home().memory)} == {4 * 512}
    monkeypatch.setenv("QUESTBOOK_EMBEDDINGS", "minilm")
    assert await say() == HASH, "the store was not opened"
    async with find_home().open_store() as store:
        assert len(store.search((), limit=100)) > 2
    assert {len(blob) for _, blob in vectors_of(find_home().memory)} == {4 * WIDTH}
    monkeypatch.delenv("QUESTBOOK_EMBEDDINGS")
    assert await say("look around") == MINILM


@pytest.mark.parametrize("embed", ["hash", "hash:64"])
def test_a_store_made_with_any_hash_goes_on_with_it(get_weights, tmp_path, embed):
    with FaissStore.open(tmp_path / "s.db", {"embed": embed}) as store:
        store.put(("a",), "k", {"text": "the dragon"})
    before = vectors_of(tmp_path / "s.db")
    get_weights()
    with FaissStore.open(tmp_path / "s.db") as store:
        assert store.search(("a",), query="the dragon")[0].score > 0.1
    assert vectors_of(tmp_path / "s.db") == before


@pytest.mark.parametrize("lack", ["weights", "tokenizer"])
async def test_without_its_minilm_a_store_is_not_embedded_with_hash_in_silence(get_weights, monkeypatch, lack):
    get_weights()
    async with find_home().open_store() as store:
        await store.aput(("a",), "k", {"text": "the dragon"})
    file = find_home().memory
    before = vectors_of(file)
    if lack == "weights":
        lose_weights()
    else:
        monkeypatch.setitem(sys.modules, "tokenizers", None)
    step = "questbook embeddings get minilm" if lack == "weights" else r"pip install 'questbook\[minilm\]'"
    with pytest.raises(EmbeddingError, match=rf"memory\.db.*MiniLM.*`{step}`.*QUESTBOOK_EMBEDDINGS=hash"):
        async with find_home().open_store():
            pass
    assert (recorded(file), vectors_of(file)) == (MINILM, before)
    monkeypatch.setenv("QUESTBOOK_EMBEDDINGS", "hash")
    async with find_home().open_store() as store:
        assert (await store.asearch(("a",), query="the dragon"))[0].key == "k"
    assert recorded(file) == HASH


def test_a_store_of_another_embedder_is_not_embedded_again_because_nobody_names_it(tmp_path):
    class Provider(HashEmbeddings):
        identity = "ProviderEmbeddings:large"

    with FaissStore.open(tmp_path / "s.db", {"embed": Provider(32)}) as store:
        store.put(("a",), "k", {"text": "the dragon"})
    before = vectors_of(tmp_path / "s.db")
    with pytest.raises(EmbeddingError, match=r"s\.db has vectors of ProviderEmbeddings:large with 32.*QUESTBOOK_EMB"):
        FaissStore.open(tmp_path / "s.db")
    assert vectors_of(tmp_path / "s.db") == before


@pytest.mark.parametrize("writes", [True, False])
def test_a_store_that_another_process_creates_meanwhile_decides(get_weights, tmp_path, monkeypatch, writes):
    get_weights()
    ready, others = minilm.steps_to_minilm, []

    def another_process_is_faster():
        if not others:
            others.append(FaissStore.open(tmp_path / "s.db", {"embed": "hash"}))
            if writes:
                others[0].put(("a",), "theirs", {"text": "the dragon"})
        return ready()

    monkeypatch.setattr(loading, "steps_to_minilm", another_process_is_faster)
    with FaissStore.open(tmp_path / "s.db") as store, others[0] as other:
        assert isinstance(store.embeddings, HashEmbeddings)
        store.put(("a",), "ours", {"text": "the dragon"})
        assert {item.key for item in other.search(("a",), query="dragon")} == {"ours", *(["theirs"] if writes else [])}


@pytest.mark.parametrize("each", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_processes_that_create_a_store_at_once_agree(get_weights, tmp_path, each):
    weights, gate = get_weights(), tmp_path / "gate"
    command = [sys.executable, tiny_minilm.__file__, tmp_path / "s.db", gate, json.dumps(minilm.SHA256)]
    environments = [{**os.environ, "QUESTBOOK_MINILM": str(path)} for path in (weights, tmp_path / "none") * each]
    path = f"{Path(__file__).parent}{os.pathsep}{Path(__file__).parents[1]}"
    running = [
        subprocess.Popen(command, env=one | {"PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for one in environments
    ]
    gate.touch()
    ended = [process.communicate(timeout=100) for process in running]
    # Who has no weights cannot go on with a file that another made with them: it says so, and changes nothing.
    chosen = recorded(tmp_path / "s.db").split(" with ")[0]
    for one, process, (out, err) in zip(environments, running, ended, strict=True):
        if chosen.startswith("hash") or one["QUESTBOOK_MINILM"] == str(weights):
            assert (process.returncode, out.decode().strip()) == (0, chosen), err.decode()
        else:
            assert b"questbook embeddings get minilm" in err
    assert execute(tmp_path / "s.db", "SELECT count(DISTINCT length(vector)) FROM vectors") == [(1,)]


@pytest.mark.parametrize("made_with", ["hash:24", None])
async def test_known_vectors_serve_the_embedder_that_the_file_has(get_weights, made_with):
    if made_with:
        async with find_home().open_store(embeddings=made_with) as store:
            await store.aput(("a",), "before", {"text": "cafe"})
    get_weights()
    known = {"the dragon": [1.0] + [0.0] * (WIDTH - 1)}
    async with find_home().open_store(known=known) as store:
        await store.aput(("a",), "k", {"text": "the dragon"})
    file = find_home().memory
    assert recorded(file) == (f"hash-1:{WIDTH} with {WIDTH} dimensions" if made_with else MINILM)
    assert vectors_of(file)[-1][1] == b"\x00\x00\x80\x3f" + bytes(4 * (WIDTH - 1))


@pytest.mark.parametrize("starts", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_only_the_first_start_at_a_terminal_without_a_setting_says_what_minilm_brings(tmp_path, starts):
    minilm = {"QUESTBOOK_EMBEDDINGS": "minilm"}
    for home, settings, says in [("a", {}, True), ("a", {}, False), ("b", minilm, False)][:starts]:
        terminal = FakeTerminal.play(tmp_path / home, COLUMNS="400", **settings)
        shown = terminal.expect(PROMPT)
        terminal.send("\x04")
        assert terminal.close() == 0
        assert (HINT in shown, "questbook embeddings get minilm" in shown) == (says, says)


@pytest.mark.parametrize("is_there", [True, False])
async def test_only_the_first_start_of_the_page_without_weights_says_it(get_weights, is_there):
    if is_there:
        get_weights()
    client = TestClient(create_app(Context(user="adventurer")), base_url="http://127.0.0.1")
    assert (HINT in client.get("/").text) is not is_there
    await say(MIRA)
    assert HINT not in client.get("/").text


@pytest.mark.slow
async def test_the_doctor_says_it_until_minilm_is_in_use(get_weights, tmp_path):
    home = find_home().path
    await say(MIRA)
    said = questbook(home, "doctor").stdout
    assert HINT in said
    assert "questbook embeddings get minilm, then start once with QUESTBOOK_EMBEDDINGS=minilm" in said
    got = questbook(home, "embeddings", "get", "minilm", "--from", str(write_tiny(tmp_path / "from"))).stdout
    assert "start once with QUESTBOOK_EMBEDDINGS=minilm" in got
    assert "questbook embeddings get" not in got
    assert questbook(home, "play", words="look around\n", QUESTBOOK_EMBEDDINGS="minilm").returncode == 0
    assert HINT not in questbook(home, "doctor").stdout
    lose_weights()
    run = questbook(home, "doctor")
    assert (run.returncode, len(run.stderr.strip().splitlines())) == (2, 1)
    assert "questbook embeddings get minilm" in run.stderr
    run = questbook(home, "play", words="look around\n")
    assert "questbook embeddings get minilm" in run.stderr
    assert recorded(find_home().memory) == MINILM


def test_got_before_the_first_game_they_are_used_at_once(get_weights, tmp_path):
    home, source = find_home().path, write_tiny(tmp_path / "from")
    got = questbook(home, "embeddings", "get", "minilm", "--from", str(source))
    assert "Memories that begin now are found by meaning, too." in got.stdout
    got = questbook(home, "embeddings", "get", "minilm", "--from", str(source), QUESTBOOK_EMBEDDINGS="hash")
    assert "QUESTBOOK_EMBEDDINGS=hash" in got.stdout
    assert questbook(home, "play", words=MIRA).returncode == 0
    assert recorded(find_home().memory) == MINILM


async def test_advice_on_distances_is_for_stores_that_know_spelling_alone(get_weights, tmp_path):
    config = tmp_path / "ltm_config.json"
    config.write_text(json.dumps({"ltm_reads": {"max_cosine_distance": 0.6}}))
    context = CompanionContext(user="adventurer", ltm_config=str(config))
    assert "hash seldom reaches" in await ltm_hint(context)
    get_weights()
    assert await ltm_hint(context) == ""
    async with find_home().open_store(embeddings="hash:64"):
        pass
    assert "hash seldom reaches" in await ltm_hint(context)
