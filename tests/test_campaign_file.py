"""A campaign goes into a file and back into an empty home, and nothing of it is lost."""

import json
import zipfile

import pytest

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.embedded.campaign_file import CampaignFileError, export_campaign, import_campaign
from questbook.graphs.embedded.game import open_game
from questbook.graphs.embedded.home import Home

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
CONTEXT = Context(model="offline", seed=6, user="ann", campaign="isle")


async def play(game, *words):
    for said in words:
        async for _ in game.send(said):
            pass
    await game.finish()


async def told(game):
    """Everything that a campaign has: turns of all lines, every state of the thread, every record."""
    history, graph = await game.history(), await game.load()
    states = [
        (state.config["configurable"]["checkpoint_id"], state.next, {**state.values, "campaign": None})
        async for state in graph.aget_state_history(game.config)
    ]
    names = (game.context.user, game.context.campaign)
    records = {
        (item.namespace[2:], item.key): {**item.value, "thread": None}
        for item in await graph.store.asearch(names, limit=10_000)
    }
    return [turn._replace(thread="") for turn in await history.turns()], states, records


@pytest.fixture
async def exported(tmp_path):
    home = Home(tmp_path / "one")
    home.locks.mkdir(parents=True)
    async with open_game(CONTEXT, home) as game:
        await play(game, MIRA, "I look around", "I talk to Maren Holt")
        await (await game.history()).name_line("the quay")
        await (await game.history()).undo(2)
        await play(game, "I leave the town")
        contents = await export_campaign(game, tmp_path / "isle.zip")
        return tmp_path / "isle.zip", contents, await told(game)


async def test_it_comes_back_whole_into_an_empty_home_and_is_played_on(exported, tmp_path):
    path, contents, before = exported
    home = Home(tmp_path / "two")
    home.locks.mkdir(parents=True)
    context = CONTEXT.model_copy(update={"user": "bob", "campaign": "other isle"})
    async with open_game(context, home) as game:
        done = await import_campaign(game, path)
        assert done == contents._replace(campaign="other isle")
        after = await told(game)
        assert after[0] == before[0]
        assert after[1] == before[1]
        assert after[2] == before[2]
        assert (await game.saved_game()).values["campaign"] == ["bob", "other isle"]
        await (await game.history()).go("the quay")
        assert (await game.saved_game()).turn == 3
        await play(game, "I go on")
        assert (await game.saved_game()).turn == 4
        async for _ in await_all(game):
            pass
        await (await game.history()).undo()
        assert (await game.saved_game()).turn == 3


async def await_all(game):
    async for event in game.retry():
        yield event


@pytest.mark.slow
async def test_what_it_says_can_be_read(exported):
    path, contents, _ = exported
    with zipfile.ZipFile(path) as archive:
        about = json.loads(archive.read("manifest.json"))
        records = [json.loads(line) for line in archive.read("records.jsonl").splitlines()]
        values = [json.loads(line) for line in archive.read("values.jsonl").splitlines()]
    assert (about["format"], about["campaign"], about["turn"]) == (1, "isle", contents.turn)
    assert any(record["value"].get("player") == "I look around" for record in records)
    assert not [value for value in values if "base64" in value], "every value of a game is readable"


async def test_a_campaign_that_has_begun_is_not_overwritten(exported, tmp_path):
    path, *_ = exported
    async with open_game(CONTEXT, Home(tmp_path / "one")) as game:
        before = await told(game)
        with pytest.raises(CampaignFileError, match="--campaign NAME"):
            await import_campaign(game, path)
        assert await told(game) == before
        with pytest.raises(CampaignFileError, match="Cannot write"):
            await export_campaign(game, path)


@pytest.mark.parametrize(
    "damage", ["byte", *(pytest.param(d, marks=pytest.mark.slow) for d in ("part", "no zip", "format"))]
)
async def test_a_damaged_file_is_refused_and_nothing_is_written(exported, tmp_path, damage):
    path, *_ = exported
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    if damage == "byte":
        parts["records.jsonl"] = parts["records.jsonl"].replace(b"look", b"look!", 1)
    elif damage == "part":
        del parts["checkpoints.jsonl"]
    elif damage == "format":
        parts["manifest.json"] = parts["manifest.json"].replace(b'"format": 1', b'"format": 2')
    bad = tmp_path / "bad.zip"
    with zipfile.ZipFile(bad, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    if damage == "no zip":
        bad.write_bytes(b"hello")
    home = Home(tmp_path / "three")
    home.locks.mkdir(parents=True)
    async with open_game(CONTEXT, home) as game:
        with pytest.raises(CampaignFileError):
            await import_campaign(game, bad)
        assert await game.saved_game() is None
        assert await (await game.load()).store.asearch(("ann",)) == []


@pytest.mark.slow
async def test_a_file_that_fails_half_way_leaves_nothing(exported, tmp_path, monkeypatch):
    path, *_ = exported
    home = Home(tmp_path / "four")
    home.locks.mkdir(parents=True)
    async with open_game(CONTEXT, home) as game:
        put, left = game.checkpointer.aput, [5]

        async def aput(*args):
            left[0] -= 1
            if not left[0]:
                raise OSError("no space")
            return await put(*args)

        monkeypatch.setattr(game.checkpointer, "aput", aput)
        with pytest.raises(OSError, match="no space"):
            await import_campaign(game, path)
        assert await game.saved_game() is None
        assert await (await game.load()).store.asearch(("ann",)) == []
