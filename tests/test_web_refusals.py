"""What the page refuses changes nothing, and what two people do at one moment both holds."""

import asyncio
import html
import re
import uuid

import httpx
import pytest
from web_server import MIRA, Visitor, page_server

from questbook.graphs.local import campaign_file
from questbook.graphs.web.serve import ServerError, people_of
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.namespaces import campaign_namespace

LOOK = "I look around."


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with page_server(tmp_path_factory.mktemp("page") / "home", log_in=True) as server:
        yield server


@pytest.fixture
def ann(server, request):
    """The owner of a campaign of the test's own, who has begun to play."""
    name = re.sub(r"\W+", "-", request.node.name)[-50:]
    with Visitor(server.url, f"/u/ann/c/{name}/", "ann") as visitor:
        visitor.say(MIRA)
        yield visitor


def story(visitor):
    page = visitor.get("story").text
    turn = re.search(r'data-turn="(\d+)"', page)[1]
    return (
        turn,
        [html.unescape(said) for said in re.findall(r'class="player">([^<]*)', page)],
        'id="unanswered"' in page,
    )


def test_other_words_that_cannot_be_played_change_nothing(ann):
    ann.say(LOOK)
    before = story(ann)
    for words, says in (("y" * 8001, "has 8,001 characters; at most 8,000 can be read"), ("\x07\x1c", "blank")):
        for act in ("edit", "say"):
            answer = ann.post(act, text=words, turn="2", ticket=uuid.uuid4().hex)
            assert answer.status_code == 409
            assert says in answer.text
            assert story(ann) == before
    assert before[2] is False


def test_a_name_stands_once_before_words_that_are_edited(ann):
    assert ann.post("share", guests="bob").status_code == 200
    ann.say("I go north.")
    for words in ("ann: I go north, slowly.", "I go south."):
        ann.open()
        assert ann.post("edit", text=words, turn="2").status_code < 300
        ann.wait_for()
        assert story(ann)[1][-1] == f"ann: {words.removeprefix('ann: ')}"


def test_other_words_are_told_of_the_turn_that_the_page_shows(ann):
    ann.say(LOOK)
    ann.say("I wait.")
    before = story(ann)
    answer = ann.post("retry", turn="2")
    assert answer.status_code == 409
    assert "This is for turn 2, and the story is at turn 3 now" in answer.text
    assert story(ann) == before


def test_words_that_are_forgotten_are_not_told_again(ann):
    before = ann.number
    ann.say("I whisper the word xylophonequartz to the keeper.")
    assert ann.post("forget", words="xylophonequartz", sure="1").status_code == 200
    with ann.web.stream("GET", f"{ann.path}events?after={before}&brief=1") as stream:
        told = "".join(stream.iter_text())
    assert "event: pages" in told
    assert "xylophonequartz" not in told


def test_two_names_that_are_exchanged_at_once_hold_up_nobody(server, ann):
    with Visitor(server.url, "/u/ann/c/other/", "ann") as other:
        other.say(MIRA)
        own = ann.path.split("/")[4]

        async def exchange():
            async with httpx.AsyncClient(base_url=server.url, headers=dict(ann.web.headers), timeout=20) as web:
                names = ((ann.path, "other"), (other.path, own))
                posts = (web.post(f"{path}rename", data={"name": name}) for path, name in names)
                return [answer.status_code for answer in await asyncio.gather(*posts)]

        assert asyncio.run(exchange()) == [409, 409]
        other.say(LOOK)
        assert story(other)[1][-1] == LOOK


def test_a_campaign_keeps_its_settings_under_another_name_and_from_a_file(server, ann):
    assert ann.post("settings", max_message_chars="200").status_code == 200
    exported = ann.get("export").content
    assert ann.post("rename", name="renamed").status_code == 204
    file = {"file": ("campaign.zip", exported)}
    assert ann.web.post("/import", data={"name": "brought"}, files=file).status_code == 204
    for name in ("renamed", "brought"):
        with Visitor(server.url, f"/u/ann/c/{name}/", "ann") as visitor:
            visitor.open()
            answer = visitor.post("say", text="x" * 201, ticket=uuid.uuid4().hex)
            assert answer.status_code == 409
            assert "at most 200 can be read" in answer.text


def test_who_is_no_guest_any_more_stays_out_whatever_else_is_changed(server, ann):
    async def change():
        web = httpx.AsyncClient(base_url=server.url, headers=dict(ann.web.headers))
        for _ in range(10):
            await web.post(f"{ann.path}share", data={"guests": "bob"})
            changes = (("share", {"guests": ""}), ("put-away", {"away": "1"}))
            await asyncio.gather(*(web.post(f"{ann.path}{path}", data=form) for path, form in changes))
            assert (await web.get(ann.path, headers={"x-user": "bob"})).status_code == 404
        await web.aclose()

    asyncio.run(change())


def test_a_message_that_the_server_fails_at_is_told_below_the_story(ann, monkeypatch):
    async def fail(*_):
        raise RuntimeError("a bug")

    ann.open()
    monkeypatch.setattr("questbook.graphs.web.open_campaign.OpenCampaign.say", fail)
    answer = ann.web.post(f"{ann.path}say", data={"text": LOOK}, headers={"hx-request": "true"})
    assert answer.status_code == 500
    assert answer.headers["hx-retarget"] == "#problem", "else it would take the place of the ticket"


def test_lore_of_any_name_and_two_files_at_once(server, ann):
    long_name = {"files": ("龍" * 90 + ".txt", b"The dragon sleeps.")}
    assert ann.web.post(f"{ann.path}lore", files=long_name).status_code == 200

    async def bring():
        async with httpx.AsyncClient(base_url=str(ann.web.base_url), headers=dict(ann.web.headers)) as web:
            texts = ["\n\n".join(f"{word} stone {n} of the gate. " * 40 for n in range(12)) for word in ("Red", "Blue")]
            posts = (web.post(f"{ann.path}lore", files={"files": ("gate.md", text.encode())}) for text in texts)
            return [answer.status_code for answer in await asyncio.gather(*posts)]

    assert asyncio.run(bring()) == [200, 200]
    assert ann.post("lore/remove", name="gate.md").status_code == 200

    async def left():
        async with server.home.open_store() as store:
            return [item.value async for item in items_under(store, campaign_namespace("ann", ann.path.split("/")[4]))]

    assert not [value for value in asyncio.run(left()) if "of the gate" in str(value)], "no piece of either is left"


def test_a_person_has_one_token():
    with pytest.raises(ServerError, match="got an entry for 'ann'"):
        people_of("ann:aaaaaaaaaaaaaaaaaaaa, ann:bbbbbbbbbbbbbbbbbbbb")


async def test_an_export_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    with pytest.raises(OSError, match="No space"):
        campaign_file._write_archive(tmp_path / "isle.zip", {}, {"records": []})
    assert not (tmp_path / "isle.zip").exists()


def test_names_are_kept_as_the_page_shows_them(ann):
    assert ann.post("page", page="quest", path="inventory", name="rope\u202eedge", value="2").status_code < 300
    assert "ropeedge" in ann.get("panel/quest").text
    assert ann.post("page", page="quest", path=["inventory", "ropeedge"], delete="1").status_code < 300
    assert "ropeedge" not in ann.get("panel/quest").text
    assert ann.post("rename", name="is\x00land").status_code == 204
    with Visitor(str(ann.web.base_url), "/u/ann/c/island/", "ann") as renamed:
        assert "Mira" in renamed.get("story").text
