"""What the page shows: why a memory came, the tree of lines, which turn those who watch see, a reply rewritten."""

import asyncio
import html
import re
from contextlib import AsyncExitStack
from types import SimpleNamespace

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.memory import InMemoryStore
from page_play import turn as play_turn
from web_server import MIRA, Visitor, page_server

from questbook.graphs.companion.context import CompanionContext, own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import HistoryError, QuestbookError
from questbook.graphs.events import DiceRoll, Memories, NodeStart, Notice, PromptReport, ReplyPiece
from questbook.graphs.history.tree import PlayedTurn, stretches
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.saved_game import SavedGame
from questbook.graphs.web.edits import origin
from questbook.graphs.web.memories import add_reasons, recalled_memories
from questbook.graphs.web.open_campaign import BusyError, OpenCampaign
from questbook.graphs.web.story import Undo, latest_turns, rewrite_reply, rows_of, takes_of, turns_before, undo_of
from questbook.memory.errors import StoreError
from questbook.memory.recall.query import Reason
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import record_key


def test_a_reason_is_in_plain_words_and_names_the_words_that_are_shared():
    memories = [
        {"player": "I hid the lanterns.", "reply": "Under the reef.", "reason": Reason(1.0, by_words=1, by_meaning=2)},
        {"text": "Maren Holt sails.", "reason": Reason(0.5, by_words=9, time=0.4, named=1, phrase=True)},
        {"text": "A bell.", "reason": Reason(0.1, named=-1, by_meaning=40, recency=0.99)},
        {"text": "It rang.", "reason": Reason(because="the turn after “A bell.”")},
    ]
    memories = [memory | {"reason": memory["reason"]._asdict()} for memory in memories]
    distance = {"text": "A diary.", "why": "distance 0.31"}
    assert str(Reason()) == "", "nothing is said of what is not known"
    shown = add_reasons([*memories, distance], "Where is the lantern of the reef, Maren?")
    words = "amber brook cedar delta ember fjord grove"
    [many] = add_reasons([{"text": words, "reason": Reason(1.0)._asdict()}], words)
    ranks = [{"text": "x", "reason": Reason(1.0, by_meaning=rank)._asdict()} for rank in (5, 6)]
    assert [memory["because"] for memory in add_reasons(ranks, words)] == ["close in meaning", ""], "the first five are"
    assert many["because"] == "shares the words amber, brook, cedar, delta, ember, fjord", "six are named"
    assert [memory["because"] for memory in shown] == [
        "shares the words lantern, reef; close in meaning",
        "shares the word maren; is about what you named; is of the time that you named",
        "",
        "the turn after “A bell.”",
        "close in meaning",
    ]


def played(branch, turn, player, reply, after=None, line="main"):
    return PlayedTurn(branch, turn, after, line, player, reply, "", "", "", f"{turn}{branch}")


async def say(value):
    return value


async def rows(turns, current, **values):
    history = SimpleNamespace(current_turn=lambda: say(current), turns=lambda: say(turns))
    game = SimpleNamespace(history=lambda only_looks: say(history))  # it stops no notes
    game.saved_game = lambda: say(SavedGame("ann", "isle", "t", "", values))
    return await rows_of(game)


@pytest.mark.parametrize(("remembered", "reply", "last"), [(1, "Wet.", 2), (2, "Wet.", 1), (1, "", 1)])
async def test_the_last_turn_is_in_the_tree_before_its_notes_are_made(remembered, reply, last):
    messages = [HumanMessage("I dive."), *([AIMessage(reply)] if reply else [])]
    here = {"turn": 2, "timeline": [["a", 2]], "remembered_through": remembered, "messages": messages}
    (row,) = await rows([played("a", 1, "Hello.", "Hello.")], ("a", 1), **here)
    assert (row.first, row.last, row.here, row.handle) == (1, last, last, "main")


async def test_a_turn_that_memory_has_already_stands_once_in_the_tree():
    messages = [HumanMessage("I dive."), AIMessage("Wet.")]
    here = {"turn": 2, "timeline": [["a", 2]], "remembered_through": 1, "messages": messages}
    turns = [played("a", 1, "Hello.", "Hello."), played("a", 2, "I dive.", "Wet.", "a")]
    assert [(row.first, row.last, row.here) for row in await rows(turns, ("a", 2), **here)] == [(1, 2, 2)]


async def test_what_was_recalled_for_a_turn_that_is_taken_back_meanwhile_is_not_kept():
    game = SlowGame()
    campaign = OpenCampaign(game, AsyncExitStack())

    async def last_turn():
        campaign.number += 1
        return [Memories([{"text": "Of the turn before."}])]

    game.last_turn = last_turn
    await campaign.look_back()
    assert campaign.memories is None


@pytest.mark.slow
def test_a_second_click_on_undo_takes_no_other_turn_back(tmp_path):
    with page_server(tmp_path / "home") as server, Visitor(server.url) as page:
        for words in ("Hello", MIRA, "I look around"):
            page.say(words)
        page.open()
        turn = re.search(r'id="shown" name="turn" value="(\d+)"', page.get("story").text)[1]
        assert [page.post("undo", turn=turn).status_code for _ in range(2)] == [204, 204]
        story = page.get("story").text
        assert 'data-turn="2"' in story
        assert "Turn 3 is taken back" in story
        assert "Bring it back" in story
        other = page.post("undo", turn="1")
        assert (other.status_code, "the story is at turn 2 now. Nothing was changed." in other.text) == (409, True)
        assert 'data-turn="2"' in page.get("story").text


async def test_ways_of_telling_the_same_words_are_told_apart_by_their_replies():
    quay = played("a", 1, "I go to the quay.", "Gulls.")
    fall, climb = (
        played(branch, 2, "I climb.", reply, "a") for branch, reply in (("a", "You fall."), ("b", "You climb."))
    )
    trunk, fork = await rows([quay, fall, climb], ("a", 2))
    assert (trunk.title, fork.title) == ("turn 2 of main: I go to the quay.", "turn 2: You climb.")
    leave = played("c", 2, "I leave.", "You leave.", "a", "the road")
    _, fork = await rows([quay, fall, leave], ("a", 2))
    assert fork.title == "turn 2 of the road: I leave."
    for words in ("I go home. " + "x" * 37, "I go home. " + "x" * 38):  # 48 characters are shown whole
        (row,) = await rows([played("a", 1, words, "Oh.")], ("a", 1))
        assert row.title == "turn 1 of main: " + (words if len(words) == 48 else "I go home.…")


async def test_ways_whose_words_are_alike_are_numbered_in_the_order_of_playing():
    hello, road = played("a", 1, "Hello.", "Hello."), played("e", 1, "Hello.", "Hello.")
    ways = [played(branch, 2, "I wait.", f"You wait, and {'the sea ' * 20}{branch}", "a") for branch in "abc"]
    for current in ("b", 2), ("c", 2):  # numbers stay when one goes elsewhere
        shown = await rows([hello, *ways, road], current)
        labels = {row.title.partition(", and")[0] for row in shown}
        others = [number for number, way in enumerate(ways, 1) if way.key != current]
        assert labels == {
            *(f"turn 2: way {number}: You wait" for number in others),
            "turn 2 of main: Hello.",
            "turn 1 of main: Hello.",
        }
        assert len({(row.first, row.last, row.name, row.says[:70]) for row in shown}) == len(shown) == 4


async def test_200_ways_of_playing_a_turn_are_offered_at_most():
    store, context = InMemoryStore(), CompanionContext(user="ann", campaign="isle")
    for number in range(201):
        await store.aput(context.campaign_namespace("exchanges"), f"{number}", {"turn": 1, "branch": f"b{number}"})
    saved = SavedGame("ann", "isle", "t", "", {"turn": 1, "remembered_through": 1, "timeline": [("b0", 1)]})
    game = SimpleNamespace(store=lambda: say(store), context=context, saved_game=lambda: say(saved), is_loaded=True)
    assert len(await takes_of(game)) == 200


async def test_a_stretch_on_two_lines_has_both_names():
    turns = [played("a", 1, "Hello.", "Hello."), played("a", 2, "I dive.", "Wet.", "a", "the cave")]
    (row,) = await rows(turns, ("a", 2))
    assert row.name == "main → the cave"


async def test_of_several_beginnings_the_one_that_is_played_stands_first_and_alone_leads_here():
    turns = [played("a", 1, "Hello.", "Hi."), played("b", 1, "Ahoy.", "Ay."), played("b", 2, "I row.", "Far.", "b")]
    shown = await rows(turns, ("a", 1))
    assert [(row.id, row.on_the_way, row.here, row.depth, row.parent) for row in shown] == [
        ("a-1", True, 1, 0, -1),
        ("b-1", False, 0, 0, -1),
    ]


def wounded(branch, turn, after=None, line="main", hp=None):
    """A turn after which the character has these hit points."""
    return played(branch, turn, f"Deed {turn}", f"**Reply** {turn} of {branch}.", after, line)._replace(hp=hp)


def test_the_longest_way_goes_on_and_the_others_fork_off_in_the_order_of_playing():
    played = ["a1", "a2", "c3", "b3", "b4", "b5", "b6", "c4", "d3", "e4"]  # e4 comes after c3, too
    before = {"b3": "a", "c3": "a", "d3": "a", "e4": "c"}
    turns = [
        PlayedTurn(at[0], int(at[1]), before.get(at, at[0]), "main", at, "", "", "t", f"{number:02}", "")
        for number, at in enumerate(played)
    ]

    def rows(stretch):
        return ["".join(turn.player for turn in stretch.turns), stretch.handle, *map(rows, stretch.forks)]

    [whole] = stretches(turns)
    of_c = ["c3e4", "main", ["c4", "main#2"]]
    assert rows(whole) == ["a1a2b3b4b5b6", "main#3", of_c, ["d3", "main#4"]]
    [whole] = stretches(turns, ("d", 3))
    assert rows(whole) == ["a1a2d3", "main#4", of_c, ["b3b4b5b6", "main#3"]]


async def test_forks_stand_below_their_stretch_in_order_and_a_line_is_named_where_it_is_another():
    turns = [
        wounded("a", 1), wounded("a", 2, "a", hp=0), wounded("a", 3, "a", hp=4), wounded("a", 4, "a", "the cave"),
        wounded("b", 2, "a", hp=0), wounded("c", 4, "a", "the reef"), wounded("d", 3, "b"),
    ]  # fmt: skip
    shown = await rows([*turns, wounded("e", 5, "a", "the cave")._replace(player="I leave.")], ("a", 3))
    told = [(row.id, row.depth, row.parent, row.is_named, row.dead, row.here, row.says) for row in shown]
    assert told == [
        ("a-1", 0, -1, True, False, 3, "Deed 1"),
        ("b-2", 1, 0, False, True, 0, "Reply 2 of b."),
        ("c-4", 1, 0, True, False, 0, "Reply 4 of c."),
    ], "marks of Markdown are not shown; who lived on is not dead"
    assert [(row.first, row.last, row.on_the_way) for row in shown] == [(1, 5, True), (2, 3, False), (4, 4, False)]


async def test_a_turn_whose_words_were_said_once_is_told_by_them_as_they_were_written():
    fork = played("b", 2, "*I leave.*", "You leave.", "a")
    shown = await rows([played("a", 1, "Hello.", "Hi."), played("a", 2, "I stay.", "So.", "a"), fork], ("a", 2))
    assert shown[1].says == "*I leave.*"
    twice = [played(branch, 1, "Hello.", "Hi.") for branch in ("a", "b")]
    said = [row.says for row in await rows(twice, ("a", 1))]
    assert said == ["way 1: Hello.", "way 2: Hello."], "beginnings are told by their words"


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, [("b", True), ("a", False)]),
        ({"remembered_through": 1}, []),
        ({"timeline": [["c", 2]]}, []),
    ],
)
async def test_the_ways_a_turn_was_played_come_in_the_order_of_playing_and_only_after_the_same_turn(values, shown):
    store, context = InMemoryStore(), CompanionContext(user="ann", campaign="isle")
    for branch, after, checkpoint in (("a", "x", "3"), ("b", "x", "2"), ("z", "y", "1")):
        record = {"turn": 2, "branch": branch, "after": after, "checkpoint": checkpoint}
        await store.aput(context.campaign_namespace("exchanges"), branch, record)
    here = {"turn": 2, "remembered_through": 2, "timeline": [["x", 1], ["b", 2]]} | values
    game = SimpleNamespace(store=lambda: say(store), context=context, is_loaded=True)
    game.saved_game = lambda: say(SavedGame("ann", "isle", "t", "", here))
    assert [(take.branch, take.is_here) for take in await takes_of(game)] == shown
    game.is_loaded = False
    assert await takes_of(game) == [], "the page waits for no store"


@pytest.mark.parametrize(
    ("values", "undo"),
    [
        ({}, (2, "I dive.", "a")),
        ({"remembered_through": 1}, None),
        ({"timeline": []}, None),
        ({"messages": []}, None),
    ],
)
def test_only_a_turn_that_memory_has_comes_back(values, undo):
    messages = [HumanMessage("Hello."), AIMessage("Hi."), HumanMessage("I dive."), AIMessage("Wet.")]
    here = {"turn": 2, "timeline": [["a", 2]], "remembered_through": 2, "messages": messages}
    assert undo_of(SavedGame("ann", "isle", "t", "", here | values)) == undo


def test_a_turn_is_shown_with_its_own_rolls_and_of_many_turns_the_last_thirty():
    messages = [part for turn in range(1, 33) for part in (HumanMessage(f"Deed {turn}"), AIMessage(f"Reply {turn}"))]
    rolls = [{"turn": 31, "total": 3}, {"turn": 32, "total": 4}, {"total": 5}]
    shown = latest_turns(SavedGame("ann", "isle", "t", "", {"turn": 32, "messages": messages, "rolls": rolls}))
    assert [turn.turn for turn in shown] == list(range(3, 33))
    assert [turn.rolls for turn in shown[-2:]] == [[rolls[0]], [rolls[1]]]
    assert shown[-1][:3] == (32, "Deed 32", "Reply 32")


async def test_earlier_turns_come_thirty_at_a_time_from_the_way_to_here():
    store, context = InMemoryStore(), CompanionContext(user="ann", campaign="isle")
    space = context.campaign_namespace("exchanges")
    for branch, turn in [*(("a", turn) for turn in range(1, 41)), ("b", 39), ("b", 40)]:
        record = {"turn": turn, "player": f"{branch}{turn}", "rolls": [{"total": turn}] if turn > 39 else None}
        await store.aput(space, record_key(branch, turn, "exchange"), record)
    here = {"turn": 41, "remembered_through": 40, "timeline": [["a", 38], ["b", 40]]}
    game = SimpleNamespace(store=lambda: say(store), context=context)
    game.saved_game = lambda: say(SavedGame("ann", "isle", "t", "", here))
    shown = await turns_before(game, 99)
    assert [turn.player for turn in shown] == [*(f"a{turn}" for turn in range(11, 39)), "b39", "b40"]
    assert [turn.rolls for turn in shown[-2:]] == [[], [{"total": 40}]]
    assert [turn.turn for turn in await turns_before(game, 11)] == list(range(1, 11))
    assert await turns_before(game, 1) == []


async def test_a_reply_of_tools_alone_is_not_the_one_that_is_rewritten():
    written, config = [], {"configurable": {"checkpoint_id": "2", "more": 1}}
    graph = SimpleNamespace(aupdate_state=lambda *given, **named: say(written.append((given, named)) or config))
    call = AIMessage("", tool_calls=[{"name": "roll_dice", "args": {}, "id": "1"}])
    messages = [HumanMessage("I dive.", id="h"), AIMessage("Wet.", id="a"), call]
    history = SimpleNamespace(graph=graph, config={"configurable": {}, "metadata": {"user": "ann"}})
    history.current_state = lambda: say(SimpleNamespace(values={"messages": messages}))
    history.before_upkeep = lambda: say(SimpleNamespace(config={"before": 1}))
    history.last_question = lambda: say(SimpleNamespace(node="run_quest"))
    run_on = await rewrite_reply(history, "Dry.")
    [((where, update), named)] = written
    assert (where, named, update["messages"][0].id, update["messages"][0].text) == (
        {"before": 1}, {"as_node": "run_quest"}, "a", "Dry.",
    )  # fmt: skip
    assert run_on == {"metadata": {"user": "ann"}, **config}
    messages[1:] = [AIMessage(" ")]
    with pytest.raises(HistoryError, match="There is no reply to rewrite"):
        await rewrite_reply(history, "Dry.")


def seen(page):
    """What a person sees of a page, or has read to them."""
    spoken = re.findall(r'(?:aria-label|title|placeholder|alt)="([^"]*)"', page)
    return html.unescape(re.sub(r"<[^>]*>", " ", page) + " ".join(spoken))


@pytest.mark.slow
async def test_no_part_of_the_page_shows_the_id_of_a_branch(tmp_path):
    with page_server(tmp_path / "home") as server, Visitor(server.url) as page:
        for words in ("Hello", MIRA, "I look around"):
            page.say(words)
        page.open()
        page.post("undo")
        undone = seen(page.get("story").text)
        assert "Bring it back" in undone
        page.say("I ask Maren Holt about the lamp")
        page.open()
        names = re.findall(r'data-where="([^"]+)"', page.get("panel/tree").text)
        assert names == ["main", "main#1"]
        [exchange, *_] = re.findall(r"[a-z2-7]{8}-2-exchange-0", page.get("search?words=halfling").text)
        panels = [f"panel/{name}" for name in ("sheet", "quest", "memories", "dice", "summary", "tree")]
        fields = ["field?page=character&path=class", "field?page=quest&path=location"]
        paths = ["", "story", "earlier?before=3", *panels, *fields, "fidelity", "chronicle", "chronicle.md"]
        paths += [
            "compare?one=main%231&other=main",
            "compare?one=nowhere",
            "search?words=halfling",
            f"memory?key={exchange}",
        ]
        shown = undone + "".join([seen(page.get(path).text) for path in paths])
        assert "These are the words of turn 2 themselves." in shown
    async with open_game(server.context, server.home) as game:
        branches = {turn.branch for turn in await (await game.history()).turns()}
    assert len(branches) == 2
    assert [branch for branch in branches if branch in shown or branch[:8] in shown] == []


class SlowGame:
    """A game whose notes on a turn take as long as a test wants."""

    machine = "dungeon_master"

    def __init__(self):
        self.noted = asyncio.Event()

    async def wait_for_upkeep(self, seconds):
        await self.noted.wait()

    def unread_notices(self):
        return []


async def test_the_end_of_a_turn_s_notes_leaves_the_next_turn_on_the_page():
    game = SlowGame()
    campaign = OpenCampaign(game, AsyncExitStack())

    async def first():
        yield ReplyPiece("The gate opens.", "a")
        yield NodeStart("update_state", upkeep=True)

    async def second():
        yield ReplyPiece("The dragon", "b")
        await asyncio.Event().wait()

    await campaign.play(first(), "I knock.")
    await campaign.wait_for_reply(5)
    await campaign.play(second(), "I go in.")
    game.noted.set()
    while campaign.in_upkeep or not campaign.live.pieces:
        await asyncio.sleep(0)
    assert campaign.is_replying
    assert (campaign.live.player, campaign.live.pieces["b"].text) == ("I go in.", "The dragon")
    await campaign.close()


async def test_the_assistant_s_reply_is_rewritten_too_and_remembered_so(tmp_path):
    home = FileHome(tmp_path)
    home.locks.mkdir()
    context = CompanionContext(model="offline", user="ann", campaign=own_campaign("chat"), seed=1)
    async with open_game(context, home, "companion") as game:
        async for _ in game.send("My cat is called Soot."):
            pass
        await game.wait_for_upkeep(20)
        config = await rewrite_reply(await game.history(), "Soot is a fine name.")
        assert config is not None
        async for _ in game.replay(config):
            pass
        await game.wait_for_upkeep(20)
        turns = await (await game.history()).turns()
    assert [turn.reply for turn in turns if "soot is a fine" in turn.reply.casefold()] == ["Soot is a fine name."]


async def nothing(*_):
    return None


class QuickGame:
    """A game that says what a test gives it, and keeps nothing."""

    machine = "dungeon_master"

    def __init__(self):
        self.context = SimpleNamespace(max_message_chars=20, campaign="isle")
        self.saved, self.sent, self.notices = None, [], []
        self.finish = self.wait_for_upkeep = nothing

    async def saved_game(self):
        return self.saved

    async def send(self, text):
        self.sent.append(text)
        yield ReplyPiece(f"You say {text}.", "a")

    async def keep_stopped(self):
        self.sent.append("stopped")

    def unread_notices(self):
        return self.notices


@pytest.fixture
async def campaign():
    campaign = OpenCampaign(QuickGame(), AsyncExitStack())
    campaign.began = campaign.number
    yield campaign
    await campaign.close()


async def told(campaign):
    """What those who watch have been told so far."""
    updates = campaign.updates(campaign.began)
    return [
        (update.kind, update.data) for update in [await anext(updates) for _ in range(campaign.began, campaign.number)]
    ]


async def waiting(said="The dragon"):
    yield ReplyPiece(said, "b")
    await asyncio.Event().wait()


BUSY = "The reply to the last message is still coming. Wait for it, or stop it."


async def test_while_a_reply_is_coming_nothing_else_is_played_or_changed_and_a_stop_keeps_it(campaign):
    await campaign.play(waiting(), "I knock.")
    closed = []

    async def other():
        try:
            yield
        finally:
            closed.append(True)

    events = other()
    await anext(events)
    with pytest.raises(BusyError, match=re.escape(BUSY)):
        await campaign.play(events, "I go in.")
    assert closed == [True], "what is not played is given up"
    with pytest.raises(BusyError, match=re.escape(BUSY)):
        async with campaign.change():
            raise AssertionError("it may not be changed")
    with pytest.raises(BusyError, match=re.escape(BUSY)):
        await campaign.say("I go in.", "1")
    assert (campaign.is_replying, campaign.is_idle, campaign.live.player) == (True, False, "I knock.")
    await campaign.stop()
    assert (campaign.is_replying, campaign.live.is_over, campaign.problem) == (False, True, "")
    assert [kind for kind, _ in await told(campaign)] == ["turn", "piece", "stopped"]
    async with campaign.alone():
        assert campaign.live.is_over, "the half of the reply stays on the page"


async def test_a_message_is_played_once_for_its_ticket_and_other_words_are_played(campaign):
    for words, ticket in (
        ("I wait.", "0"),
        ("I wait.", "0"),
        ("I go.", "1"),
        ("I run.", "1"),
        ("I go.", ""),
        ("I go.", ""),
    ):
        await campaign.say(words, ticket)
        await campaign.wait_for_reply(5)
    assert campaign.game.sent == ["I wait.", "I go.", "I run.", "I go.", "I go."], "one without a ticket, each time"
    for ticket in range(2, 201):
        await campaign.say("More.", str(ticket))
        await campaign.wait_for_reply(5)
    for ticket, words, last in (("2", "More.", "More."), ("0", "I wait.", "I wait.")):
        await campaign.say(words, ticket)
        await campaign.wait_for_reply(5)
        assert campaign.game.sent[-1] == last, "200 of them are remembered"


@pytest.mark.parametrize(
    ("error", "is_kept", "problem"),
    [
        (QuestbookError("The model is busy."), True, "The model is busy."),
        (StoreError("The disk is full."), True, "The disk is full."),
        (RuntimeError("odd"), True, "The turn failed: odd. Your message is kept; try again."),
        (QuestbookError("It is too long."), False, "It is too long."),
        (RuntimeError("odd"), False, "The turn failed: odd. Your message was not kept; say it again."),
    ],
)
async def test_a_turn_that_fails_is_told_to_all_if_it_was_kept_and_else_to_who_sent_it(
    campaign, error, is_kept, problem
):
    async def failing():
        if is_kept:
            yield NodeStart("run_quest")
        else:
            yield Notice({"text": "A write was left out."})
        raise error

    before = campaign.problem, campaign.undo = "old", Undo(1, "I dive.", "a")
    if is_kept:
        await campaign.play(failing(), "I knock.")
        await campaign.wait_for_reply(5)
        assert (campaign.problem, campaign.undo, campaign.live.is_over) == (problem, None, True)
        assert (await told(campaign))[-1] == ("problem", {"text": problem})
    else:
        with pytest.raises((QuestbookError, StoreError), match=re.escape(problem)):
            await campaign.play(failing(), "I knock.")
        assert ((campaign.problem, campaign.undo), campaign.live) == (before, None), "nothing of it is shown"
        assert [kind for kind, _ in await told(campaign)] == ["turn", "notice", "stopped"]


async def test_what_happens_in_a_turn_is_told_as_it_happens_and_made_harmless(campaign):
    async def turn():
        yield NodeStart("recall")
        yield Memories([{"text": "A bell."}])
        yield NodeStart("some_node_of_an_app")
        yield PromptReport("run_quest", [])
        yield DiceRoll({"total": 7, "reason": "luck"})
        yield ReplyPiece("One.\n\nTwo", "a")
        yield ReplyPiece("Three.", "b")
        yield Notice({"text": "Not \x1b[31mnoted\u202e."})
        yield NodeStart("update_state", upkeep=True)
        yield ReplyPiece("Nobody hears this.", "c")

    campaign.game.notices = [Notice({"text": "Late."})]
    await campaign.play(turn(), "I \x07knock.")
    live = campaign.live
    await campaign.wait_for_reply(5)
    rolled = [roll["reason"] for roll in live.rolls]
    assert (rolled, live.work, live.is_told, live.is_over) == (["luck"], "some_node_of_an_app", True, False)
    while campaign.in_upkeep:
        await asyncio.sleep(0)
    thinks = "The dungeon master thinks…"
    assert await told(campaign) == [
        ("turn", {"player": "I knock.", "work": thinks}),
        ("work", {"text": "The dungeon master remembers…"}), ("memories", {}), ("work", {"text": thinks}),
        ("prompt", {}), ("dice", {"total": 7, "reason": "luck"}),
        ("piece", {"after": 0, "html": "<p>One.</p>\n<p>Two</p>\n"}),
        ("piece", {"after": 2, "html": "<p>Three.</p>\n"}),
        ("notice", {"text": "Not noted."}), ("replied", {}), ("notice", {"text": "Late."}),
        ("pages", {"isSameLine": True}),
    ]  # fmt: skip
    assert (campaign.memories, campaign.report.node, campaign.live) == ([{"text": "A bell."}], "run_quest", None)
    campaign.game.machine = "companion"
    assert campaign.work() == "The companion thinks…"


@pytest.mark.parametrize("is_same_line", [False, True])
async def test_a_change_is_told_to_all_and_ends_what_was_known_of_the_last_turn(campaign, is_same_line):
    campaign.memories, campaign.report, campaign.undo = [], PromptReport("run_quest", []), Undo(1, "I dive.", "a")
    async with campaign.change(is_same_line=is_same_line):
        pass
    assert (campaign.memories, campaign.report, campaign.undo) == (None, None, None)
    assert await told(campaign) == [("pages", {"isSameLine": is_same_line})]
    async with campaign.change(is_same_line=True):
        campaign.undo = taken = Undo(2, "I swim.", "a")
    assert campaign.undo is taken, "what was taken back just now can come back"
    with pytest.raises(HistoryError):
        async with campaign.change():
            raise HistoryError("There is no such turn.")
    assert (campaign.undo, len(await told(campaign))) == (taken, 2), "what was refused is no change"


async def test_who_watches_gets_what_is_new_and_loads_the_story_again_where_some_of_it_is_lost(campaign):
    assert campaign.number > 10**12, "greater than all numbers before the server began"
    assert OpenCampaign(QuickGame(), AsyncExitStack(), is_preview=True).number == 0
    first = campaign.number
    for _ in range(3):
        await campaign.ask_again()

    async def heard(after):
        updates, found = campaign.updates(after), []
        while not found or (found[-1] or SimpleNamespace(number=campaign.number)).number < campaign.number:
            found.append(await anext(updates))
        await updates.aclose()
        return [update and update.number - first for update in found]

    assert await heard(first + 1) == [2, 3]
    assert await heard(first) == [1, 2, 3]
    assert await heard(first - 1) == [None], "that was before the server began"
    assert await heard(first + 9) == [None], "of another server"
    await campaign.end_streams()
    assert [update async for update in campaign.updates(first)] == []


async def test_a_campaign_is_in_use_while_a_request_a_reply_or_notes_use_it(campaign):
    assert campaign.is_idle
    campaign.requests = 1
    assert not campaign.is_idle
    campaign.requests = 0
    noted = asyncio.Event()
    campaign.game.wait_for_upkeep = lambda _: noted.wait()
    await campaign.say("I wait.", "1")
    await campaign.wait_for_reply(5)
    assert (campaign.is_replying, campaign.in_upkeep, campaign.is_idle) == (False, True, False)
    noted.set()
    while campaign.in_upkeep:
        await asyncio.sleep(0)
    assert campaign.is_idle


@pytest.mark.parametrize(("is_owner", "texts"), [(True, ["A bell.", "A dog.", "A trap."]), (False, ["A bell."])])
async def test_what_was_forgotten_meanwhile_is_shown_to_its_owner_alone(is_owner, texts):
    context, store = CompanionContext(user="ann", campaign="isle"), InMemoryStore()
    place, exchanges = (campaign_namespace("ann", context.campaign, kind) for kind in ("facts", "exchanges"))
    await store.aput(place, "k", {"text": "A bell.", "branch": "b", "turn": 1})
    await store.aput(place, "s", {"text": "A trap.", "branch": "b", "turn": 1, "kind": "secret"})
    await store.aput(exchanges, record_key("b", 1, "exchange"), {"player": "Ring!", "turn": 1, "line": "the quay"})
    game = SimpleNamespace(context=context, store=lambda: say(store))
    page = SimpleNamespace(is_owner=lambda _: is_owner)
    request = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(page=page)))
    campaign = SimpleNamespace(game=game, memories=[])
    told = {"k": "A bell.", "x": "A dog.", "s": "A trap."}
    campaign.memories = [{"key": key, "text": text} for key, text in told.items()]
    shown = await recalled_memories(request, campaign, "a bell")
    assert [memory["text"] for memory in shown] == texts
    assert (shown[0]["branch"], shown[0]["line"]) == ("b", "the quay")
    campaign.memories = None
    assert await recalled_memories(request, campaign, "a bell") is None


async def test_where_something_comes_from_names_the_turns_and_what_each_set(game):
    await game.begin()
    await play_turn(game, "I meet Oda", people={"Oda": {"last_seen": "the bar"}})
    await play_turn(game, "I follow Oda", people={"Oda": {"last_seen": "the quay", "attitude": "wary"}})
    opened = SimpleNamespace(config=game.config, context=Context.of(game.settings), load=lambda: say(game.app))

    async def sets(what, **more):
        found = await origin(opened, what, **more)
        return [(each["turn"], each["sets"]) for each in found["causes"]] or found["reason"]

    last = (3, [("attitude", "wary", True), ("last seen", "the quay", True)])
    first = (2, [("last seen", "the bar", False), ("alive", True, True)])
    assert await sets("people.Oda") == [last, first], "without what it left empty"
    assert await sets("people.Oda", turn=2) == [first], "the one that is meant"
    assert len(await sets("people.Oda", turn=9)) == 2
    assert await sets("follow Oda") == [(3, [])], "a memory sets nothing"
    assert await sets("xylophone", reason="It is from a file.") == "It is from a file."
    assert "no memory of this line says it" in await sets("xylophone")
