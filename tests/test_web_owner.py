"""What the owner of a campaign does on the page beside playing: its memories, settings, lore, name, file and place."""

import asyncio
import html
import json
import re

import pytest
from held import hold_campaign
from web_server import MIRA, Visitor, half_answers, page_server

from questbook.graphs.local.databases import open_store
from questbook.graphs.local.home import CampaignBusyError
from questbook.graphs.web import campaigns
from questbook.memory.timeline.namespaces import campaign_namespace


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with page_server(tmp_path_factory.mktemp("owner") / "home", developer=True) as server:
        yield server


@pytest.fixture
def name(request):
    return f"isle {abs(hash(request.node.name)) % 10**6}"


@pytest.fixture
def visitor(server, name):
    """Somebody in a campaign of the test's own, which has not begun."""
    with Visitor(server.url, f"/c/{name}/") as visitor:
        yield visitor


@pytest.fixture
def ann(visitor):
    """Somebody who has a character."""
    visitor.say(MIRA)
    return visitor


def put(server, *items):
    """Write records beside the server, as another program does."""

    async def write():
        async with open_store(server.home.memory) as store:
            for namespace, key, value in items:
                await store.aput(namespace, key, value)

    asyncio.run(write())


def branch_of(server, name):
    async def read():
        async with open_store(server.home.memory) as store:
            [item] = await store.asearch(campaign_namespace("ann", name, "exchanges"))
            return item.value["branch"]

    return asyncio.run(read())


def text_of(answer):
    return html.unescape(answer.text)


def known_in(answer):
    """The facts on the card, each with its key, and whether one may correct it."""
    forms = re.findall(r'name="key" value="([^"]+)">(.*?)</form>', answer.text, re.S)
    return {key: "Correct" in form for key, form in forms}


@pytest.mark.files("it writes memory.db beside the page")
def test_what_is_known_of_a_person_is_listed_what_holds_first_and_corrected_or_deleted(server, name, ann):
    place, here = campaign_namespace("ann", name, "facts"), {"branch": branch_of(server, name), "turn": 1}
    fact, old = {"kind": "trait", "subject": "Oda"} | here, {"expires": "2020-01-01T00:00:00+00:00"}
    put(
        server,
        (place, "a-old", fact | old | {"text": "Oda is ill."}),
        (place, "b-holds", fact | {"text": "Oda sings."}),
        (place, "c-secret", fact | {"text": "Oda stole the crown.", "kind": "secret"}),
        (place, "d-elsewhere", fact | {"text": "Oda fell.", "branch": "z"}),
    )
    shown = ann.get("known")
    assert {key: may for key, may in known_in(shown).items() if key in ("a-old", "b-holds")} == {
        "b-holds": True, "a-old": False,
    }  # fmt: skip
    assert list(known_in(shown))[-1] == "a-old", "what has run out comes last"
    assert "has run out" in shown.text
    assert [words for words in ("crown", "Oda fell", "c-secret") if words in shown.text] == []
    for text in ("", "  ", "x" * 1001):
        refused = ann.post("known", key="b-holds", text=text)
        assert (refused.status_code, "Write 1 to 1,000 characters." in text_of(refused)) == (409, True)
    assert "b-holds" in known_in(ann.get("known"))
    long = "Oda  hums " + "x" * 991
    corrected = ann.post("known", key="b-holds", text=long)
    assert f">{' '.join(long.split())}</textarea>" in corrected.text, corrected.text
    assert known_in(corrected).get("b-holds") in (None, False), "the old one has ended"
    deleted = ann.post("known", key="a-old", text="", delete="1")
    assert (deleted.status_code, "a-old" in known_in(deleted)) == (200, False)


def test_of_a_campaign_that_has_not_begun_nothing_is_known_or_found(visitor):
    assert "Nothing yet." in visitor.get("known").text
    assert "Nothing that is remembered on this line fits “rope”." in text_of(visitor.get("search?words=rope"))
    assert visitor.get("search?words=+").text.strip() == ""
    assert f"fits “{'z' * 500}”." in text_of(visitor.get(f"search?words={'z' * 501}")), "500 characters are read"
    assert "This memory is no longer there." in text_of(visitor.get("memory?key=x"))
    assert "A new campaign begins." in visitor.get().text
    assert "It can be renamed and exported after its first message." in visitor.get("settings").text
    assert "Nothing was rolled yet." in visitor.get("panel/dice").text


@pytest.mark.files("it writes memory.db beside the page")
def test_words_are_forgotten_once_a_person_is_sure(server, name, ann):
    place, here = campaign_namespace("ann", name, "facts"), {"branch": branch_of(server, name), "turn": 1}
    fact = {"kind": "event"} | here
    put(
        server,
        (place, "k1", fact | {"text": "Marmalade."}),
        (place, "k2", fact | {"text": "Oda sells marmalade here."}),
    )
    asked = text_of(ann.post("forget", words="  marmalade "))
    assert "Forget “marmalade”?" in asked
    assert "Oda sells marmalade here." in asked
    assert 'name="sure" value="1"' in asked
    assert "Oda sells marmalade here." in ann.get("known").text, "nothing was done yet"
    done = text_of(ann.post("forget", words="marmalade", sure="1"))
    assert "Forgotten: 2 memories. Kept without the words: 1 memory." in done
    assert "sure" not in done
    assert "Oda sells [forgotten] here." in ann.get("known").text
    put(server, (place, "k3", fact | {"text": "Herring."}))
    whole = text_of(ann.post("forget", words="herring", sure="1", whole="1"))
    assert "Removed as a whole: 1 memory." in whole


def test_a_turn_is_retracted_once_a_person_is_sure_and_all_who_watch_hear_of_it(ann):
    ann.open()
    ann.post("forget", words="marmalade")
    assert "Retract turn 1?" in ann.post("retract", turn="1").text
    assert "event: pages" not in ann.get(f"events?after={ann.number}&brief").text, "who only looks changes nothing"
    assert "Turn 1 is retracted" in ann.post("retract", turn="1", sure="1").text
    moments = ann.wait_for("pages")
    assert [data for kind, data in moments if kind == "pages"] == [{"isSameLine": False}], "and of nothing before it"
    refused = ann.post("retract", turn="x", sure="1")
    assert (refused.status_code, "Which turn?" in text_of(refused)) == (409, True)


def test_settings_of_a_campaign_alone_are_kept_and_a_refusal_is_shown_beside_its_setting(ann, name):
    for form, place in [
        ({"buffer_tokens": "5"}, "#p-buffer_tokens"),
        ({"weights.words": "-1"}, "#p-weights-words"),
        ({"temperature": "3"}, "#p-temperature"),
    ]:
        refused = ann.post("settings", **form)
        assert (refused.status_code, refused.headers.get("hx-retarget")) == (409, place), refused.text
    kept = {"buffer_tokens": " 900 ", "weights.words": "0.5", "weights.meaning": "", "guard_secrets": "False"}
    kept["seed"] = "7"
    assert "The next turn is played with these settings." in ann.post("settings", **kept).text
    page = ann.get("settings").text
    assert [re.search(rf'name="{setting}" value="([^"]*)"', page)[1] for setting in (
        "buffer_tokens", "weights.words", "weights.meaning", "temperature", "seed",
    )] == ["900", "0.5", "", "", "7"]  # fmt: skip
    assert '<option value="False" selected>no</option>' in page
    assert '<details class="weights" open>' in page
    assert re.search(r'name="temperature"[^>]* inputmode="decimal"', page), "a number with a point is a number"
    assert ann.say("I look around.")
    ann.post("settings")
    assert 'name="buffer_tokens" value=""' in ann.get("settings").text, "what is left empty is as for all campaigns"


def test_lore_comes_by_files_of_any_name_and_what_is_none_is_said(ann):
    gate = b"# The gate\n\nIt opens at low tide.\n"
    files = [
        ("../../gate.md", gate), ("C:\\x\\gate.md", gate + b"# Tide\n\nTwice a day."), ("map.EXE", b"MZ"), ("..", b"x"),
        ("broken.pdf", b"no pdf"), ("a<b>:c|d?.TXT", b"Salt."), ("x" * 200 + ".md", b"Long."),
    ]  # fmt: skip
    shown = text_of(ann.web.post(f"{ann.path}lore", files=[("files", file) for file in files]))
    lines = re.findall(r'<li class="(\w+)">([^<]*)</li>', shown)
    assert lines[0] == ("problem", "map.EXE: not read. Lore is text, Markdown, HTML, CSV or PDF.")
    assert lines[1][0] == "problem"
    assert "not read" in lines[1][1]
    assert sorted(line for kind, line in lines[2:] if kind == "done") == [
        "abcd.TXT: added, 1 piece", "gate.md: added, 1 piece", "gate.md: added, 2 pieces",
        f"{'x' * 117}.md: added, 1 piece",
    ]  # fmt: skip
    assert [line.partition(":")[0] for kind, line in lines[2:] if kind == "problem"] == ["broken.pdf"]
    names = re.findall(r"<li><b>([^<]+)</b>", shown)
    assert names == ["1/gate.md", "abcd.TXT", "gate.md", f"{'x' * 117}.md"], "none is outside of its folder"
    assert "The gate" in ann.get("search?words=low+tide").text
    removed = text_of(ann.post("lore/remove", name=names[0]))
    assert f"{names[0]}: removed" in removed
    assert names[0] not in re.findall(r"<li><b>([^<]+)</b>", removed)
    assert ann.post("lore/remove", name=names[0]).status_code == 409


def test_a_campaign_is_renamed_exported_and_comes_back_under_other_names(ann, name):
    for wrong, said in ((" ", "A campaign needs a name."), (name, f"It is called {name!r} already.")):
        refused = ann.post("rename", name=wrong)
        assert (refused.status_code, said in text_of(refused)) == (409, True)
    file = ann.get("export")
    assert file.headers["content-type"] == "application/zip"
    assert file.headers["content-disposition"] == f'attachment; filename="{name.replace(" ", "-")}.zip"'
    copy = ann.web.post("/import", files={"file": ("x.zip", file.content)}, data={"name": f"  a   {name} "})
    assert (copy.status_code, copy.headers["hx-redirect"]) == (204, f"/c/a%20{name.replace(' ', '%20')}/")
    taken = ann.web.post("/import", files={"file": ("x.zip", file.content)})
    assert (taken.status_code, "has begun already" in text_of(taken)) == (409, True)
    none = ann.web.post("/import", data={"name": "x"})
    assert (none.status_code, "Choose a file that was exported from a campaign." in text_of(none)) == (409, True)
    moved = ann.post("rename", name="z" * 70)
    assert (moved.status_code, moved.headers["hx-redirect"]) == (204, f"/c/{'z' * 60}/")
    assert "Mira" in ann.web.get(moved.headers["hx-redirect"]).text
    assert "A new campaign begins." in ann.web.get("/new", params={"name": name}).text


def test_a_page_that_was_open_when_its_campaign_was_renamed_is_led_on_and_begins_no_other(server, ann, name):
    assert ann.post("rename", name=f"{name} <b>").status_code == 204
    there = f"/c/{name.replace(' ', '%20')}%20%3Cb%3E"
    for method, path in (("GET", ""), ("GET", "story"), ("POST", "say"), ("GET", "settings"), ("GET", "events")):
        asked = ann.web.request(method, ann.path + path)
        assert (asked.status_code, asked.headers.get("questbook-moved-to")) == (410, there)
        said = f'This campaign is called “{name} &lt;b&gt;” now. <a href="{there}/">Go on there</a>.'
        assert said in asked.text
    assert ann.post("settings", buffer_tokens="900").status_code == 410
    assert f"<b>{name}</b>" not in ann.web.get("/").text, "none has begun"
    with Visitor(server.url, f"{there}/") as moved:
        assert moved.post("rename", name=name).status_code == 204
        assert "Mira" in ann.get().text, "the name is its own again"
        assert moved.get().headers["questbook-moved-to"] == there.removesuffix("%20%3Cb%3E")


def test_a_page_whose_campaign_is_not_there_says_so_and_begins_no_other(visitor, name):
    open_before = {"x-questbook-begun": "1"}
    for change, form in (("say", {"text": "I wait."}), ("settings", {"buffer_tokens": "900"}), ("wish", {"text": "x"})):
        gone = visitor.web.post(visitor.path + change, data=form, headers=open_before)
        assert (gone.status_code, "questbook-moved-to" in gone.headers) == (410, False)
        assert "is not here any more: it was renamed or removed. Nothing was changed." in gone.text
    assert 'value="900"' not in visitor.get("settings").text
    assert "A new campaign begins." in visitor.get().text
    assert name not in visitor.web.get("/").text
    with half_answers():
        visitor.post("say", text=MIRA)
        visitor.post("stop")
    assert visitor.post("undo", message="1").status_code == 204
    taken_back = visitor.web.get(f"{visitor.path}story", headers=open_before)
    assert (taken_back.status_code, "A new campaign begins." in taken_back.text) == (200, True)


def test_an_export_that_fails_leaves_no_file(ann, monkeypatch, tmp_path):
    made = []

    def mkdtemp():
        made.append(tmp_path / "made")
        made[0].mkdir()
        return str(made[0])

    async def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(campaigns.tempfile, "mkdtemp", mkdtemp)
    monkeypatch.setattr(campaigns, "export_campaign", fail)
    assert ann.get("export").status_code == 500
    assert (len(made), made[0].exists()) == (1, False)


def test_a_file_that_needs_too_much_memory_is_left_to_the_terminal(ann, monkeypatch):
    file = ann.get("export").content
    monkeypatch.setattr(campaigns, "_MOST_MEMORY", 1000)
    refused = ann.web.post("/import", files={"file": ("x.zip", file)}, data={"name": "large"})
    assert (refused.status_code, "questbook import FILE.zip takes larger ones" in text_of(refused)) == (409, True)
    assert "large" not in ann.web.get("/").text


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("", "/c/default/"), ("?name=%20 a%20%20b%20", "/c/a%20b/"), ("?kind=companion", "/a/companion/"),
        ("?kind=companion&name=Ada", "/a/Ada/"), ("?kind=x&name=..", "/c/~2e%3B~2e%3B/"),
        (f"?name={'x' * 61}", f"/c/{'x' * 60}/"),
    ],
)  # fmt: skip
def test_a_new_campaign_or_companion_has_a_page_of_its_name(visitor, query, path):
    answer = visitor.web.get(f"/new{query}", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].casefold() == path.casefold()


@pytest.mark.slow
def test_the_list_has_campaigns_companions_and_what_was_put_away(server, ann, name):
    with Visitor(server.url, f"/a/of {name}/") as talk:
        talk.say("My name is Ann.")
    page = ann.web.get("/").text
    assert f"<b>{name}</b>" in page.partition("<h2>Companions")[0]
    assert f"<b>of {name}</b><span>a companion" in page.partition("<h2>Companions")[2]
    assert f"<b>{name}</b>" not in page.partition("<h2>Companions")[2]
    assert "The built-in offline storyteller leads the game: no key is needed." in page
    assert ann.post("put-away", away="1").headers["hx-redirect"] == "/"
    played, _, away = ann.web.get("/").text.partition('<details class="away">')
    assert [f"<b>{name}</b>" in part for part in (played, away)] == [False, True]
    assert "Put it back" in ann.get("settings").text
    ann.post("put-away")
    assert f"<b>{name}</b>" not in ann.web.get("/").text.partition('<details class="away">')[2]


def test_a_wish_is_kept_for_its_turns_and_ended_by_no_words(ann):
    for turns, kept in (("0", 1), ("-3", 1), ("7", 7), ("100", 99)):
        assert ann.post("wish", text=" More  sea. ", turns=turns).status_code == 204
        story = ann.get("story").text
        assert f"Your wish, for {kept} more turn{'' if kept == 1 else 's'}" in story
        assert ">More sea.</textarea>" in story
    ann.post("wish", text="  ")
    assert "A wish for the next turns" in ann.get("story").text
    ann.post("wish", text="Slower.", turns="1")
    ann.say("I look around.")
    assert "A wish for the next turns" in ann.get("story").text, "it was of one turn"


@pytest.mark.files("it holds a lock file")
def test_a_campaign_that_is_played_elsewhere_is_left_alone_and_one_that_is_open_here_is_held(server, ann, name):
    with hold_campaign(server.home, "ann", "of a terminal"):
        busy = ann.web.get("/c/of a terminal/story")
        assert busy.status_code == 200, "a name that nobody has played is only looked at"
        refused = ann.web.post("/c/of a terminal/stop")
        assert (refused.status_code, "is open in another terminal" in text_of(refused)) == (409, True)
    with pytest.raises(CampaignBusyError), hold_campaign(server.home, "ann", name):
        raise AssertionError("the server holds it")


def test_what_the_model_saw_is_shown_to_a_developer_also_after_a_change(ann):
    ann.say("I look around.")
    ann.post("line", name="the quay")
    behind = ann.get("behind").text
    assert "Nothing has been played yet." not in behind
    assert "<b>instructions</b>" in behind
    assert "What the model saw" in ann.get("panel/summary").text


def test_the_events_of_a_turn_come_with_growing_numbers_and_a_beginning_that_is_lost_is_told(ann):
    ann.open()
    began = int(ann.number)
    ann.post("say", text="I look around.", ticket="1")
    kinds = [kind for kind, _ in ann.wait_for("pages")]
    assert kinds[0] == "turn"
    assert kinds.index("replied") < kinds.index("pages")
    lines = ann.get(f"events?after={began}&brief").text
    numbers = [int(number) for number in re.findall(r"id: (\d+)", lines)]
    assert numbers == list(range(began + 1, began + len(numbers) + 1))
    assert lines.startswith("retry: 3000\n\n"), "a stream that was cut short is opened seldom"
    assert "event: pages\ndata: {}" in ann.get("events?after=1&brief").text, "the page loads the story again"
    again = ann.get(f"events?after={numbers[-1]}&brief").text
    assert "event:" not in again, "nothing has happened since"
    resumed = ann.web.get(f"{ann.path}events?after=0&brief", headers={"last-event-id": str(numbers[-2])}).text
    assert re.findall(r"id: (\d+)", resumed) == [str(numbers[-1])], "the browser's own header counts first"


def test_the_same_ticket_plays_once_and_no_words_play_nothing(ann):
    for _ in range(2):
        assert ann.post("say", text="I look around.", ticket="same").status_code == 200
    ann.wait_for("pages")
    assert ann.post("say", text="  ", ticket="2").status_code in (200, 303)
    assert ann.post("edit", text=" ").status_code == 409
    assert ann.post("rewrite", text=" ").status_code == 409
    assert re.findall(r'id="turn-(\d)"', ann.get("story").text) == ["1", "2"]
    ticket = ann.web.post(f"{ann.path}say", data={"text": "", "ticket": "3"}, headers={"hx-request": "true"}).text
    assert re.search(r'name="ticket" value="[0-9a-f]{32}"', ticket)


@pytest.mark.parametrize("words", ["/undo", " /sheet now", "/help", "/quit", "/recap", "/retract 3", "/why gold"])
def test_a_command_of_the_terminal_is_refused_and_what_only_looks_like_one_is_said(visitor, words):
    refused = visitor.post("say", text=words, ticket="1")
    assert (refused.status_code, f"{words.split()[0]} is a command of the terminal." in text_of(refused)) == (409, True)
    assert "of the terminal" not in visitor.post("say", text="/undoing is no command", ticket="2").text


@pytest.mark.slow
def test_two_places_are_compared_by_the_names_that_the_tree_shows(ann):
    ann.say("I look around.")
    ann.post("undo", turn="2")
    ann.say("I leave the town.")
    rows = re.findall(
        r'<option value="([^"]*)">([^<]*)</option>', ann.get("panel/tree").text.partition('id="other"')[0]
    )
    assert [handle for handle, _ in rows[:2]] == ["1", "main"], "the turn before stands first"
    [(other, _)] = rows[2:]
    shown = text_of(ann.web.get(f"{ann.path}compare", params={"one": other, "other": ""}))
    titles = {handle: html.unescape(title) for handle, title in rows}
    sides = re.findall(r"Remembered only at</h3><p>([^<]*)</p>(.*?)</section>", shown, re.S)
    assert [label for label, _ in sides] == [titles[other], "here"]
    assert ["I look around." in sides[0][1], "I leave the town." in sides[1][1]] == [True, True]
    assert "I leave" not in sides[0][1]
    main = text_of(ann.web.get(f"{ann.path}compare", params={"one": other, "other": "main"}))
    assert f"<p>{titles['main']}</p>" in main


def test_cost_and_secrets_stay_out_of_the_first_page(ann):
    page = ann.get().text
    assert 'id="costs"' not in page, "the built-in model costs nothing"
    assert (
        json.loads(re.search(r'data-panels="([^"]*)"', page)[1].join('""')) == "sheet quest memories dice summary tree"
    )
