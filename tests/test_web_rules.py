"""The page's rules, by its endpoints: what a model writes, a message without a reply, fields, costs, notices."""

import asyncio
import html
import json
import random
import re
from collections import Counter
from types import SimpleNamespace

import pytest
from conftest import MIRA as CHARACTER
from fake_openai import FakeOpenAI, call, cut, hang_midstream, say, status
from web_server import Visitor, page_server

from questbook.graphs.local.databases import open_store
from questbook.graphs.web import memories
from questbook.graphs.web.markdown import ComingText, to_html
from questbook.memory.recall.query import Reason

BROKEN = status(400, message="The model is broken.")


@pytest.fixture(scope="module")
def model():
    with FakeOpenAI() as model:
        yield model


@pytest.fixture(scope="module")
def server(model, tmp_path_factory):
    with page_server(tmp_path_factory.mktemp("page") / "home", model="openai:gpt-4o-mini", seed=3) as server:
        yield server


@pytest.fixture
def visitor(model, server, request, monkeypatch):
    """Somebody in a campaign of the test's own, whose name ends as the parameter says."""
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    model.responder = lambda _: say("The wind turns.")
    name = f"{abs(hash(request.node.name))}{getattr(request, 'param', '')}"
    with Visitor(server.url, f"/c/{name}/") as visitor:
        yield visitor


@pytest.fixture
def player(model, visitor):
    """Somebody who has a character."""
    model.queue(call("CharacterNotebook", CHARACTER))
    visitor.say("I'm Mira.")
    return visitor


def asked(model):
    """What the model was asked last that has a player's words."""
    return str(model.requests[-1]["messages"])


def ids_of(text):
    return [name for name, number in Counter(re.findall(r'\bid="([^"]*)"', text)).items() if number > 1]


def reply_of(text, which=-1):
    return re.findall(r'<div class="reply">(.*?)</div>', text, re.S)[which]


MARKDOWN = """## The *quay*

Maren says: **no**.

> Not tonight.
> > She means it.

1. Go to the tower

2. Wait_for_the tide

- a rope
  - a hook

---

<b onclick="x">bold</b> [here](javascript:alert(1)) ![map](https://evil.example/x.png) <https://evil.example>

***

Item | Price
---|--:
~~rope~~ | 2 <b>
lamp

```
<script>
```
Done"""
HARMFUL = re.compile(
    r"<(?!/?(?:p|em|strong|s|ul|ol|li|blockquote|pre|code|table|thead|tbody|tr|th|td)>|(?:hr|br) />)"
    r"[^>]*>|<ol start"
)


def test_markdown_is_rendered_and_nothing_of_it_loads_links_or_runs():
    shown = to_html(MARKDOWN)
    for part in (
        "<p><strong>The <em>quay</em></strong></p>", "<strong>no</strong>",
        "<blockquote>\n<p>Not tonight.</p>\n<blockquote>",
        "<li>\n<p>Wait_for_the tide</p>", "<li>a hook</li>", "<hr />", "&lt;b onclick=", "[here](javascript:alert(1))",
        "![map](https://evil.example/x.png)", "<pre><code>&lt;script&gt;", "<th>Price</th>",
        "<td><s>rope</s></td>\n<td>2 &lt;b&gt;</td>", "<td>lamp</td>",
    ):  # fmt: skip
        assert part in shown
    assert not HARMFUL.search(shown)


@pytest.mark.parametrize("seed", range(12))
def test_a_reply_that_comes_in_pieces_is_the_same_at_every_end(seed):
    chance, coming, shown, at = random.Random(seed), ComingText(), [], 0
    while at < len(MARKDOWN):
        piece = MARKDOWN[at : (at := at + chance.randint(1, 9))]
        if (added := coming.add(piece)) is None:
            continue
        after, made = added
        shown = [*shown[:after], *blocks(made)]
        assert "".join(shown) == "".join(blocks(to_html(MARKDOWN[:at])))
        assert len(shown) == coming.blocks
        assert len(shown) - after < 5, "what stands is not sent again"


def test_a_long_list_that_comes_in_small_pieces_is_not_made_again_for_each():
    coming, text = ComingText(), "".join(f"- the {n}th thing in the chest\n" for n in range(300))
    made = [at for at in range(0, len(text), 16) if coming.add(text[at : at + 16]) is not None]
    assert len(text) // 16 > 500
    assert 125 < len(made) < 300, "each piece of the beginning, then what adds a fiftieth"
    assert len(text) - made[-1] < len(text) / 40


def blocks(made):
    """The elements of the outermost level."""
    found, depth, begin = [], 0, 0
    for tag in re.finditer(r"<(/?)(p|ul|ol|blockquote|pre|table|hr)\b[^>]*>", made):
        if tag[2] != "hr":
            depth += -1 if tag[1] else 1
        if not depth:
            found.append(made[begin : tag.end()].strip())
            begin = tag.end()
    return found


def test_the_pieces_on_the_page_make_what_the_story_shows_and_the_prompt_says_which_markdown_is_shown(model, player):
    model.queue(say(MARKDOWN))
    moments = player.say("I ask Maren.")
    assert any("> quotes and --- alone" in str(request["messages"]) for request in model.requests[-3:])
    shown = []
    for data in (data for kind, data in moments if kind == "piece"):
        shown = [*shown[: data["after"]], *blocks(data["html"])]
    assert shown == blocks(reply_of(player.get("story").text)) == blocks(to_html(MARKDOWN))
    chronicle = player.get("chronicle.md").text
    assert "**The *quay***" in chronicle
    assert "- a rope\n  - a hook" in chronicle
    assert "\\<b onclick" in chronicle
    assert "~~rope~~ | 2 \\<b>\n" in chronicle
    assert not HARMFUL.search(reply_of(player.get("fidelity").text) if "reply" in player.get("fidelity").text else "")


def fail(model, visitor, words, behaviour=BROKEN):
    """Say something that gets no reply."""
    model.queue(behaviour)
    visitor.open()
    assert visitor.post("say", text=words, ticket=words).status_code == 200
    visitor.wait_for("problem")
    return visitor.get("story").text


def unanswered_in(story):
    found = re.search(r'<article class="turn unanswered".*?</article>', story, re.S)
    return html.unescape(found[0]) if found else ""


def test_a_message_without_a_reply_stands_by_itself_and_the_model_never_gets_it_glued_to_the_next(model, player):
    story = fail(model, player, "I look around.", cut(6, say("The half of a reply about gulls.")))
    alone = unanswered_in(story)
    assert "I look around." in alone
    assert "The half" in alone, "it stays readable"
    assert [name in alone for name in ("Try again", "Take it back")] == [True, True]
    assert ids_of(player.get().text) == []
    assert 'id="live"' not in story
    assert player.post("line", name="other").status_code == 409, "what would change the story waits"
    assert "The half" in unanswered_in(player.get("story").text)
    player.post("say", text="I dive.", ticket="2")
    player.wait_for()
    story = player.get("story").text
    assert (unanswered_in(story), "I look around." in story, "I dive." in story) == ("", False, True)
    told = [str(request["messages"]) for request in model.requests[-3:]]
    assert any("I dive." in words for words in told)
    assert not any("I look around." in words for words in told)
    assert ids_of(player.get().text) == []


def test_try_again_answers_the_message_once(model, player):
    assert unanswered_in(fail(model, player, "I look around."))
    assert player.post("retry").status_code == 204
    player.wait_for()
    story = player.get("story").text
    assert unanswered_in(story) == ""
    assert story.count('<blockquote class="player">I look around.</blockquote>') == 1
    assert player.get().text.count("turn 2") >= 1


def test_an_undo_can_be_taken_back_until_something_else_changes(player):
    player.say("I look around.")
    player.post("undo")
    assert "Bring it back" in player.get("story").text
    assert player.post("page", page="character", path="goal", value="wants to rest").is_success
    assert "Bring it back" not in player.get("story").text, "the change would get lost"


@pytest.mark.parametrize("is_first", [False, True])
def test_what_has_no_reply_is_taken_back_also_the_first_message(model, visitor, is_first):
    if not is_first:
        model.queue(call("CharacterNotebook", CHARACTER))
        visitor.say("I'm Mira.")
    alone = unanswered_in(fail(model, visitor, "I look around."))
    assert 'data-words="I look around."' in alone
    taken = json.loads(re.search(r"/undo\" hx-vals='([^']+)'", alone)[1])
    for _ in range(2):  # a double click, or two tabs
        assert visitor.post("undo", **taken).status_code == 204
    page = html.unescape(visitor.get().text)
    assert "I look around." not in page
    assert ("I'm Mira." in page) != is_first, "what has a reply stays"
    assert "Bring it back" not in page
    assert ("A new campaign begins." in page) == is_first
    visitor.say("I wait.")
    assert "I look around." not in asked(model)
    assert visitor.get("story").text.count("<article") == (1 if is_first else 2)


def test_a_double_click_on_undo_takes_one_turn_back(model, player):
    for words in ("I look around.", "I wait."):
        player.say(words)
    shown = dict([re.search(r'id="shown" name="(\w+)" value="(\d+)"', player.get().text).groups()])
    assert shown == {"turn": "3"}
    assert [player.post("undo", **shown).status_code for _ in range(2)] == [204, 204]
    assert 'data-turn="2"' in player.get("story").text
    assert "Bring it back" in player.get("story").text
    refused = player.post("undo", turn="1")  # who sees an older turn
    assert (refused.status_code, "the story is at turn 2 now" in refused.text) == (409, True)
    fail(model, player, "I dive.")
    shown = dict([re.search(r'id="shown" name="(\w+)" value="(\d+)"', player.get().text).groups()])
    assert [player.post("undo", **shown).status_code for _ in range(2)] == [204, 204]
    assert 'data-turn="2"' in player.get("story").text


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("999", "999 does not fit here; the nearest that does is"),
        ("-5", "does is 0"),
        ("abc", "'abc' is no whole number"),
        ("3.5", "'3.5' is no whole"),
    ],
)
def test_hit_points_that_nobody_can_have_are_refused_in_a_sentence_at_their_field(player, value, said):
    before = player.get("panel/sheet").text
    player.web.headers["hx-request"] = "true"
    answer = player.post("page", page="quest", path=["condition", "hp"], value=value)
    assert (answer.status_code, said in html.unescape(answer.text)) == (409, True), answer.text
    assert player.get("panel/sheet").text == before
    card = player.get("field?page=quest&path=condition&path=hp").text
    assert 'aria-describedby="card-problem"' in card
    assert player.post("page", page="quest", path=["condition", "hp"], value="1").status_code == 204
    assert player.post("page", page="quest", delete="1").status_code == 404, "no field is named"


def test_the_hit_of_a_foe_is_no_success(model, player):
    rolls = [
        {"expression": "1d20+9", "reason": f"The pike {verb}", "dc": 1, "foe": True} for verb in ("bites", "tears")
    ]
    model.queue(call("roll_dice", rolls[0]) + call("roll_dice", {"expression": "1d20", "reason": "Dodge", "dc": 1}))
    moments = player.say("I swim.")
    assert [data["foe"] for kind, data in moments if kind == "dice"] == [True, False]
    story = player.get("story").text
    foe, own = re.findall(r'<div class="roll.*?</div>', story, re.S)
    assert 'class="roll foe"' in foe
    assert "against 1, hit" in foe
    assert 'class="roll won"' in own
    dice = player.get("panel/dice").text
    assert "<dd>1 of 1</dd>" in dice, "it is none of the player's checks"
    assert [outcome in dice for outcome in ("against 1, hit", "against 1, success")] == [True, True], "as remembered"


def test_a_search_that_finds_nothing_says_so(player, monkeypatch):
    player.say("I hide the silver key under the third stair.")
    assert "silver key" in player.get("search?words=silver+key").text

    async def recalled(*_):
        reasons = Reason(time=0.8), Reason(named=-1, by_meaning=9, recency=1.0)
        texts = zip(reasons, ("The storm.", "A bell."), strict=True)
        return [SimpleNamespace(value={"text": text}, key=text, score=-0.001, reason=reason) for reason, text in texts]

    monkeypatch.setattr(memories, "recall", recalled)
    found = player.get("search?words=yesterday").text
    assert "The storm." in found
    assert "A bell." not in found, "nothing but that it is remembered speaks for it"
    assert "· -0.00" not in found


def test_a_server_of_one_s_own_tells_what_a_call_used_or_is_asked_without_it(model, player):
    before = len(model.requests)
    model.queue(status(400, message="Unknown field: stream_options"))
    player.say("I look around.")
    first, again = model.requests[before : before + 2]
    assert first["stream_options"] == {"include_usage": True}
    assert again == {name: value for name, value in first.items() if name != "stream_options"}
    player.say("I wait.")
    assert re.search(r"This turn: \d calls?, [\d,]+ tokens", player.get("panel/summary").text)


def test_what_upkeep_could_not_do_is_told_on_the_page(model, player):
    answers = iter([say("The wind turns.")])
    model.responder = lambda _: next(answers, BROKEN)
    moments = player.say("I look around.")
    notices = [data["text"] for kind, data in moments if kind == "notice"]
    assert ["The model is broken." in text for text in notices] == [True], moments
    shown = re.findall(r'<p class="undone">([^<]*)</p>', player.get("story").text)
    assert html.unescape("".join(shown)) == notices[0], "for those who see, too"
    model.responder = lambda _: say("no change")
    player.say("I wait.")
    assert "The model is broken." not in player.get("story").text


def test_a_wish_says_for_how_many_turns_it_is_and_the_tree_on_which_line_they_will_be(player):
    player.post("wish", text="More of the sea.", turns="2")
    assert "Your wish, for 2 more turns" in player.get("story").text
    player.post("line", name="low road")
    assert "The next turns are on the line “low road”." in player.get("panel/tree").text
    player.post("wish", text="")
    assert "A wish for the next turns" in player.get("story").text


def test_only_the_last_reply_is_rewritten(player):
    player.say("I look around.")
    assert player.post("rewrite", turn="1", text="Gold rains.").status_code == 409
    assert "Gold rains." not in player.get("story").text
    assert player.post("edit", turn="1", text="I fly.").status_code == 409
    long = player.post("rewrite", turn="2", text="x" * 20_001)
    assert "The reply has 20,001 characters; it may have 20,000 at most. Shorten it." in long.text
    assert "xxx" not in player.get("story").text
    assert player.post("rewrite", turn="2", text="It rains.").status_code == 204
    assert "It rains." in player.get("story").text


ROLL = {"expression": "1d20+3", "reason": "Stealth", "natural": 14, "total": 17, "dc": 12, "success": True}
ROLL |= {"text": "1d20+3 = 17 vs DC 12: success", "breakdown": "14 + 3"}
ROLLS = {
    1: [ROLL | {"natural": 20, "reason": "First"}, ROLL | {"natural": 1, "success": False, "reason": "Second"}],
    2: [
        ROLL | {"natural": 6, "reason": "Third"}, ROLL | {"natural": 20, "reason": "The pike bites", "foe": True},
        {"expression": "2d6", "reason": "Harm", "total": 7, "breakdown": "3 + 4"},
    ],
}  # fmt: skip


async def change_records(server, campaign, changes):
    """Change the records of a campaign's turns in the store."""
    async with open_store(server.home.memory) as store:
        for item in await store.asearch(("ann", campaign, "exchanges")):
            change = changes.get(item.value["turn"], {})
            await store.aput(item.namespace, item.key, item.value | change, index=False)


def test_the_dice_of_the_whole_line_are_counted_and_shown_the_latest_first(server, player):
    player.say("I look around.")
    changes = {turn: {"rolls": rolls} for turn, rolls in ROLLS.items()}
    asyncio.run(change_records(server, player.path.split("/")[2], changes))
    dice = player.get("panel/dice").text
    facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", dice))
    assert facts == {"Rolls": "5", "Won": "2 of 3", "d20 mean": "11.8", "20s, 1s": "2, 1"}, "a foe's are no checks"
    shown = re.findall(r"<p>(\w[^<]*): <b>.*?turn (\d)", dice, re.S)
    names = [("Harm", "2"), ("The pike bites", "2"), ("Third", "2"), ("Second", "1"), ("First", "1")]
    assert shown == names


def test_the_dice_of_a_turn_that_has_no_reply_are_all_shown_the_latest_first(model, player):
    rolls = [{"expression": "1d20", "reason": reason} for reason in ("Climb", "Jump", "Hide")]
    answers = iter([call("roll_dice", rolls[0]) + call("roll_dice", rolls[1]) + call("roll_dice", rolls[2])])
    model.responder = lambda _: next(answers, BROKEN)
    player.open()
    player.post("say", text="I flee.", ticket="1")
    player.wait_for("problem")
    dice = player.get("panel/dice").text
    assert re.findall(r"<p>(\w[^<]*): <b>.*?turn (\d)", dice, re.S) == [("Hide", "2"), ("Jump", "2"), ("Climb", "2")]


@pytest.mark.parametrize("visitor", ["_red_"], indirect=True)
def test_the_chronicle_has_its_sessions_with_their_days_and_the_dead(model, server, player):
    people = {"Pell": {"alive": False, "fate": "fell *far*"}, "Oda": {"alive": True}, "Rook": {"alive": False}}
    model.queue(say("## The *quay*\n[here](x)"), call("StateNotebook", {"people": people | {"Gil": {}}}))
    player.say("I look\n# around ~here~.")
    changes = {1: {"session": None, "said_at": "2026-01-02T10:00:00+00:00"}, 2: {"session": 2, "said_at": ""}}
    asyncio.run(change_records(server, name := player.path.split("/")[2], changes))
    lines = player.get("chronicle.md").text.splitlines()
    assert lines[0] == "# {}: the tale of Mira".format(name.replace("_", "\\_")), "no name is markup"
    assert [line for line in lines if line.startswith("## ")] == [
        "## Session 1, 2026-01-02",
        "## Session 2",
        "## The dead",
    ]
    assert [line for line in lines if line.startswith(">")] == ["> I'm Mira.", "> I look", "> \\# around \\~here\\~."]
    assert lines[lines.index("> \\# around \\~here\\~.") + 2 :][:2] == ["**The *quay***", "\\[here\\](x)"]
    assert lines[-2:] == ["- **Pell**: fell \\*far\\*", "- **Rook**: died"]
    page = player.get("chronicle").text
    assert re.findall(r"<li><b>(\w+)</b>, ([^<]*)</li>", page) == [("Pell", "fell *far*"), ("Rook", "died")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("panel/summary", "Word for word: 1 of 1 earlier turns. Prompt: "),
        ("fidelity", "Word for word: 1 of 1 earlier"),
        ("panel/memories", "Nothing had to come back for this turn"),
    ],
)
def test_what_the_model_saw_and_recalled_is_known_also_where_no_stream_has_told_it(player, path, said):
    player.say("I look around.")
    player.post("line", name="the quay")  # what the model saw is of the state before
    assert said in player.get(path).text


def test_the_conversation_side_by_side_has_all_turns_the_earliest_first(player):
    player.say("I look around.")
    conversation = re.search(r'aria-labelledby="conversation">(.*?)</section>', player.get("fidelity").text, re.S)[1]
    assert re.findall(r"<small>turn (\d)</small>", conversation) == ["1", "2"]


OF_THE_QUEST = {
    "people": {"Oda": {"role": "innkeeper", "last_seen": "the bar"}}, "quests": {"The bell": {"notes": "It rings."}},
    "inventory": {"rope": 2}, "facts": {"the bell": "is cursed"}, "location": "The quay",
}  # fmt: skip


@pytest.fixture
def noted(model, player):
    """Somebody whose quest has an entry of each kind."""
    model.queue(say("The bell rings."), call("StateNotebook", OF_THE_QUEST))
    player.say("I listen.")
    return player


YES_NO = '<option value="True" selected>yes</option><option value="False">no</option>'
STATUS = '<option value="open" selected>open</option><option value="done">done</option><option value="failed">'
CARDS = [
    ("character", "class", ">rogue</textarea>", "Rogue, wizard, fighter"),
    ("character", "level", 'value="1" inputmode="numeric"', "<small>1 to 20.</small>"),
    ("character", "hit_points", 'value="9" inputmode="numeric"', "Maximum hit points."),
    ("character", "abilities/strength", 'inputmode="numeric"', "Physical power."),
    ("quest", "people/Oda/alive", YES_NO, "Whether they live."),
    ("quest", "people/Oda/last_seen", ">the bar</textarea>", "<b>last seen</b> the bar"),
    ("quest", "people/Oda", ">innkeeper</button>", "<dt>last seen</dt>"),
    ("quest", "quests/The bell/status", STATUS, "Whether it goes on."),
    ("quest", "inventory/rope", 'value="2" inputmode="numeric"', "I listen."),
    ("quest", "inventory", "Something carried", "How many"),
    ("quest", "facts", "Something learnt", "What of it"),
    ("quest", "objective", "</textarea>", "Nothing is written here yet."),
    ("quest", "clock/day", 'value="1" inputmode="numeric"', "Day of the adventure, from 1."),
]
NO_CARDS = [
    "character/class_name", "character", "quest/secrets", "quest/fallen", "quest",
    "quest/condition/max_hp", "quest/people/Oda/nose", "core/sections",
]  # fmt: skip


def card(visitor, page, path):
    return visitor.web.get(f"{visitor.path}field", params={"page": page, "path": path.split("/") if path else []})


def test_the_card_of_a_field_has_a_control_for_it_what_belongs_in_it_and_where_it_comes_from(noted):
    for page, path, *parts in CARDS:
        shown = re.sub(r">\s+<", "><", html.unescape(card(noted, page, path).text))
        assert [part for part in parts if part not in shown] == [], (path, shown)
    key = re.search(r'memory\?key=([^"]+-2-exchange-0)"', noted.get("search?words=bell").text)[1]
    assert "These are the words of turn 2 themselves." in noted.get(f"memory?key={key}").text
    assert "How many of each" not in card(noted, "quest", "inventory/rope").text, "that is of the list"
    for path in NO_CARDS:
        page, _, rest = path.partition("/")
        assert card(noted, page, rest).status_code == 404, path
    assert noted.post("page", page="quest", path=["condition", "hp"], value="0").status_code == 204
    assert "Nothing is written here yet." not in card(noted, "quest", "condition/hp").text, "0 is written there"


def change(visitor, path, value=None, **more):
    page, *names = path.split("/")
    return visitor.post("page", page=page, path=names, **({} if value is None else {"value": value}), **more)


CHANGES = [
    ("character/level", " +2 ", {}, "level <button>2</button>"),
    ("quest/gold", "7", {}, "<button>7 gold</button>"),
    ("character/kit", "2", {"name": "copper bell"}, "<button>copper bell ×2</button>"),
    ("quest/people/Oda/alive", "False", {}, "<small>dead"),
    ("quest/quests/The bell/status", "done", {}, '<span class="chip">done</span>'),
    ("quest/inventory", None, {"name": " brass   lamp "}, ">brass lamp</button>"),
    ("quest/inventory", "3", {"name": "torch"}, ">torch ×3</button>"),
    ("quest/inventory", None, {"name": "x" * 80}, "x" * 80),
    ("quest/facts", None, {"name": "the tide"}, "<dt>the tide</dt>"),
    ("quest/people", None, {"name": "Pell", "part.role": "guard", "part.alive": "False"}, "guard"),
    ("quest/quests", None, {"name": "The key", "part.status": "failed"}, '<span class="chip">failed</span>'),
]
GONE = [("quest/inventory/rope", ""), ("quest/facts/the bell", " "), ("quest/location", "")]
REFUSED = [
    ("quest/gold", "1" * 16, {}, "is no whole number"),
    ("quest/gold", "1 000", {}, "'1 000' is no whole number, and this field holds one. Nothing was changed."),
    ("quest/gold", "-+1", {}, "is no whole number"),
    ("quest/inventory", None, {"name": "x" * 81}, "A new entry needs a name of 1 to 80 characters"),
    ("quest/inventory", None, {"name": " "}, "got ''"),
    ("quest/inventory", None, {"name": "ROPE"}, "'rope' is on the page already. Choose it there to change it."),
    ("quest/inventory/rope", "-1", {}, "-1 does not fit here; the nearest that does is 0. Nothing was changed."),
    ("quest/people/Oda/alive", "maybe", {}, "alive"),
    ("character/goal", " ", {}, "Since the quest has begun, this cannot be empty."),
    ("character/name", None, {"delete": "1"}, "Write something else here."),
]


@pytest.mark.slow
def test_what_is_written_into_a_field_is_read_as_its_kind_and_a_refusal_says_what_is_expected(noted):
    def pages():
        shown = html.unescape(noted.get("panel/sheet").text + noted.get("panel/quest").text)
        return " ".join(re.sub("<button[^>]*>", "<button>", shown).split())

    for path, value, more, said in REFUSED:
        before, answer = pages(), change(noted, path, value, **more)
        assert (answer.status_code, said in html.unescape(answer.text)) == (409, True), (path, answer.text)
        assert pages() == before
    for path, value, more, shown in CHANGES:
        before, answer = pages(), change(noted, path, value, **more)
        assert (answer.status_code, shown in before, shown in pages()) == (204, False, True), (path, answer.text)
    assert pages().count("<small>dead") == 2
    for path, value in GONE:
        assert change(noted, path, value).status_code == 204, path
    assert [words for words in ("rope", "<dt>the bell</dt>", "The quay") if words in pages()] == []
    assert change(noted, "quest/inventory", delete="1", name="lamp").status_code == 204
    assert "torch" not in pages(), "the whole list is removed"


@pytest.mark.slow
def test_the_card_of_a_field_names_the_last_four_turns_that_set_it_the_latest_first(model, player):
    for turn in range(2, 7):
        model.queue(say("So."), call("StateNotebook", {"gold": turn, "people": {"Oda": {"role": ""}}}))
        player.say(f"Deed {turn}")
    shown = card(player, "quest", "gold").text
    assert re.findall(r"<li><small>turn (\d)", shown) == ["6", "5", "4", "3"]
    assert "<b>gold</b> 6" in shown
    assert "<s><b>gold</b> 5</s>" in re.sub(r"\s+", " ", shown).replace("<s> ", "<s>").replace(" </s>", "</s>")


def test_sections_of_core_memory_are_added_moved_changed_and_removed_and_each_refusal_says_why(server, visitor):
    with Visitor(server.url, "/a/ada/") as talk:
        early = talk.post("core", label="human", value="x")
        assert "Core memory is a companion's, and begins with your first message to it." in html.unescape(early.text)
        talk.say("Hello.")

        def labels():
            return re.findall(r'name="label" value="([^"]+)"', talk.get("panel/core").text)

        assert labels() == ["persona", "human", "scratchpad"]
        refused = {
            "There is no section 'x'. Nothing was changed.": [{"label": "x", "up": "1"}, {"label": "x", "delete": "1"}],
            "There is a section 'Human' already.": [{"label": "Human", "new": "1"}],
        }
        for said, forms in refused.items():
            for form in forms:
                answer = talk.post("core", **form)
                assert (answer.status_code, said in html.unescape(answer.text)) == (409, True), answer.text
        for form, order in [
            ({"label": " my  plans ", "new": "1"}, ["persona", "human", "scratchpad", "my plans"]),
            ({"label": "my plans", "up": "1"}, ["persona", "human", "my plans", "scratchpad"]),
            ({"label": "persona", "up": "1"}, ["persona", "human", "my plans", "scratchpad"]),
            ({"label": "human", "up": "1"}, ["human", "persona", "my plans", "scratchpad"]),
            ({"label": "my plans", "delete": "1"}, ["human", "persona", "scratchpad"]),
        ]:
            assert talk.post("core", **form).status_code == 204, form
            assert labels() == order
        talk.open()
        assert talk.post("core", label="human", value="She sails.").status_code == 204
        assert talk.wait_for("pages")[-1] == ("pages", {"isSameLine": True}), "other pages that are open show it"
        assert "She sails.</textarea>" in talk.get("panel/core").text
    with Visitor(server.url, "/c/no companion/") as player:
        player.say("Hello.")
        assert player.post("core", label="human", value="x").status_code == 409


def test_a_section_that_is_a_list_has_a_line_for_each_item(server, visitor, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_CORE", '{"plans": {"value": ["sail"]}}')
    with Visitor(server.url, "/a/lists/") as talk:
        talk.say("Hello.")
        assert talk.post("core", label="plans", value="row\n\n \nswim").status_code == 204
        assert ">row\nswim</textarea>" in talk.get("panel/core").text


def test_the_sheet_shows_how_the_character_fares_and_what_is_not_written_yet(model, player):
    sheet = html.unescape(player.get("panel/sheet").text)
    most = int(re.search(r'aria-label="Hit points: \d+ of (\d+)"', sheet)[1])
    assert f'aria-label="Hit points: {most} of {most}"' in sheet
    assert '<rect class="well" width="100"' in sheet
    unwritten = sheet.partition("Not written yet:")[2].partition("</p>")[0]
    assert re.findall(r'path=(\w+)"', unwritten) == ["appearance", "personality", "alignment"]
    assert "Still missing" not in sheet
    assert re.search(r'path=strength"[^>]*><abbr title="strength">STR</abbr> <b>[+-]\d</b>', sheet)
    for points, look in ((most // 2, "hurt"), (1, "low"), (0, "low")):
        change(player, "quest/condition/hp", str(points))
        share = round(100 * points / most)
        shown = player.get("panel/sheet").text
        assert f'<rect class="{look}" width="{share}"' in shown
        assert f'aria-label="Hit points: {points} of {most}"' in shown


def test_before_the_character_is_complete_the_sheet_says_what_is_wanted_and_there_is_no_quest(model, visitor):
    model.queue(call("CharacterNotebook", {"name": "Mira", "alignment": "good"}), say("And?"))
    visitor.say("I'm Mira.")
    page = html.unescape(visitor.get().text)
    sheet = page.partition('id="sheet"')[2].partition("</section>")[0]
    missing = sheet.partition("Still missing:")[2].partition("</p>")[0]
    assert re.findall(r'path=(\w+)"', missing) == ["ancestry", "class", "background", "goal"]
    assert re.findall(r'path=(\w+)"', sheet.partition("Not written yet:")[2].partition("</p>")[0]) == [
        "appearance", "personality",
    ]  # fmt: skip
    assert "It begins when your character is complete." in page
    assert 'id="recap"' not in page
    story = visitor.get("story").text
    assert "Still missing:" in story, "beside the story, too"


def test_a_recap_and_the_ways_of_the_last_turn_are_offered_once_there_are_two(model, noted):
    story = noted.get("story").text
    assert 'id="recap"' in story
    assert "Previously on" in story
    assert "Previously" not in story.partition('id="recap"')[2].partition("</summary>")[2].partition("</details>")[0]
    assert "Ways this turn was played" not in story
    model.queue(say("The bell is silent."))
    assert noted.post("retry").status_code == 204
    noted.wait_for()
    story = noted.get("story").text
    assert "Played 2 ways" in story
    assert re.findall(r'aria-pressed="(\w+)" aria-label="Way (\d) of 2"', story) == [("false", "1"), ("true", "2")]
    first = re.search(r'hx-vals=\'\{"where": "([^"]+)"\}\' hx-target="#problem" aria-pressed="false"', story)[1]
    noted.post("go", where=first)
    assert "The bell rings." in noted.get("story").text
    assert re.findall(r'aria-pressed="(\w+)" aria-label="Way', noted.get("story").text) == ["true", "false"]


def test_while_a_reply_comes_the_page_shows_it_as_far_as_it_has_come(model, player):
    player.open()
    model.queue(hang_midstream(3, say("The half of a reply about gulls.")))
    assert player.post("say", text="I wait.", ticket="1").status_code == 200
    player.wait_for("piece")
    story = player.get("story").text
    live = story.partition('id="live"')[2]
    assert '<blockquote class="player">I wait.</blockquote>' in live
    assert "The half" in live
    assert "Played" not in story
    assert story.count("I wait.") == 1, "it is no turn yet"
    assert player.post("line", name="x").status_code == 409
    assert player.post("stop").status_code == 204
    alone = unanswered_in(player.get("story").text)
    assert "The reply was broken off. What you say instead takes its place." in alone


def test_a_table_with_more_cells_than_anybody_reads_stays_text():
    row = "|".join("abc")
    assert "<table>" in to_html(f"{row}\n---|---|---\n" + f"{row}\n" * 300)
    assert "<table>" not in to_html(f"{row}\n---|---|---\n" + "a\n" * 2000)


def test_a_table_that_comes_in_small_pieces_is_not_made_again_for_each():
    coming, text = ComingText(), f"{'|'.join('x' * 40)}\n{'|'.join(['-'] * 40)}\n" + "x\n" * 20
    pieces = [coming.add(text[at : at + 2]) for at in range(0, len(text), 2)]
    made = sum(len(html) for _, html in filter(None, pieces))
    assert made < 6 * len(to_html(text)), "each time costs as much as all that is shown"


def test_a_level_raises_the_hit_points_on_the_page_at_once_and_a_person_may_set_their_maximum(player):
    def points():
        sheet = player.get("panel/sheet").text
        assert 'aria-label="level: ' in sheet
        return re.findall(r'aria-label="(?:Hit points|hit points|hp): ([\w ]+)"', sheet)

    assert points() == ["9 of 9", "9", "9"]
    assert change(player, "character/level", "5").status_code == 204
    assert points() == ["33 of 33", "33", "33"]
    assert change(player, "character/hit_points", "40").status_code == 204
    assert change(player, "quest/condition/hp", "39").status_code == 204
    assert points() == ["39 of 40", "39", "40"]
    player.say("I wait.")
    assert points() == ["39 of 40", "39", "40"]


def test_places_are_compared_with_the_turn_before_first_and_empty_words_are_refused_in_a_sentence(player):
    player.say("I wait.")
    assert re.search(r'name="one"><option value="1">turn 1, the one before</option>', player.get("panel/tree").text)
    assert "<p>turn 1</p>" in player.get("compare?one=1&other=").text
    for act in ("edit", "rewrite"):
        answer = player.post(act, text=" ", turn="2")
        assert (answer.status_code, "Nothing is written here, so nothing was changed." in answer.text) == (409, True)


def test_a_key_that_the_provider_refuses_sends_a_player_to_the_settings(model, player):
    story = fail(model, player, "I dive.", status(401, message="Wrong key."))
    assert "or choose another model under Settings, or tell whoever runs this page." in html.unescape(story)
    assert "--model" not in story
