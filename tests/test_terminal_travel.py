"""Going back, again and elsewhere from the terminal: over a scripted game, through a pipe, and beside Studio."""

import re
from types import SimpleNamespace

import pytest
from conftest import MIRA
from program import one_line_of, play, start
from scripted import call, say
from timing import cpu_seconds

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.errors import ModelError
from questbook.graphs.history.tree import PlayedTurn, branch_names, stretches
from questbook.graphs.history.view import ChangedEntry, Difference
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import find_home
from questbook.graphs.terminal.play import DUNGEON_MASTER
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.slash_commands import Ask, Play, Terminal, run_command
from questbook.graphs.terminal.travel import draw_tree
from questbook.graphs.web.story import records_of, turns_before

TRAVEL = ("/undo", "/retry", "/edit new", "/branch x", "/branches", "/go 2", "/diff 1 2", "/recap")


@pytest.fixture
async def terminal(model):
    async with open_game(Context.of(None, model="scripted", campaign="isle", seed=1)) as game:
        yield Terminal(game, Screen(live=False), DUNGEON_MASTER)


async def tell(terminal, events):
    async for event in events:
        terminal.keep(event)


async def story(terminal, model, turns=3):
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", say("", call("StateNotebook", scene="An inn.", secrets={"Oda": "is the thief"})))
    await tell(terminal, terminal.game.send("I'm Mira."))
    for turn in range(2, turns + 1):
        model.queue("quest", say(f"Reply {turn}."))
        model.queue("update", say("", call("StateNotebook", gold=turn)))
        await tell(terminal, terminal.game.send(f"Deed {turn}"))


async def answer(terminal, line, capsys):
    capsys.readouterr()
    then = await run_command(terminal, line)
    if isinstance(then, Play):
        await tell(terminal, then.events)
    out, err = capsys.readouterr()
    return out + err


async def reply(terminal):
    return (await terminal.game.saved_game()).last_reply


async def test_before_the_first_turn_every_command_says_so_in_one_line(terminal, capsys):
    for command in ("/sheet", "/quest", "/memories", "/prompt", "/campaigns", *TRAVEL):
        assert await run_command(terminal, command) is None
        assert len("".join(capsys.readouterr()).splitlines()) == 1, command


async def test_what_cannot_be_read_is_one_line_that_says_what_can(terminal, model, capsys):
    await story(terminal, model)
    for command in ("/undo x", "/undo 0", "/undo 99", "/retry foo", "/branch", "/go", "/go nowhere", "/diff", "/edit"):
        said = await answer(terminal, command, capsys)
        assert len(said.splitlines()) == 1, said
    assert (await terminal.game.saved_game()).turn == 3


@pytest.mark.parametrize("command", ["/undo", "/go 2"])
async def test_what_a_turn_taken_back_was_told_is_shown_no_more_but_what_the_last_one_here_was(
    terminal, model, capsys, command
):
    await story(terminal, model, turns=4)
    assert "Deed 4" in await answer(terminal, "/prompt messages", capsys)
    assert "there is none" not in await answer(terminal, "/memories", capsys)
    await answer(terminal, command, capsys)
    told, turn = await answer(terminal, "/prompt messages", capsys), 3 if command == "/undo" else 2
    assert f"Deed {turn}" in told
    assert f"Deed {turn + 1}" not in told
    assert "there is none" not in await answer(terminal, "/memories", capsys)


async def test_undo_says_where_one_is_and_shows_the_last_reply(terminal, model, capsys):
    await story(terminal, model, 4)
    recap = await answer(terminal, "/recap", capsys)
    assert "An inn." in recap
    assert "thief" not in recap
    assert await answer(terminal, "/undo", capsys) == "Back at the end of turn 3. “Deed 3”\n\nReply 3.\n\n"
    assert "turn 1. “I'm Mira.”" in await answer(terminal, "/undo 2", capsys)
    assert "(/edit)" in await answer(terminal, "/undo", capsys)
    assert "Back at the end of turn 4." in await answer(terminal, "/go main", capsys)


async def test_of_the_turns_that_are_on_one_side_alone_the_last_six_are_shown(terminal, model, capsys):
    await story(terminal, model, 8)
    assert "Remembered only here: 7 turns; the last 6" in await answer(terminal, "/diff 1", capsys)


async def test_retry_tells_again_with_the_same_dice_or_rolls(terminal, model, capsys):
    await story(terminal, model, 2)
    roll = call("roll_dice", expression="100d100", reason="luck")
    model.queue("quest", say("", roll), say("You fall."))
    await tell(terminal, terminal.game.send("I jump"))
    fell = (await terminal.game.saved_game()).values["rolls"]
    model.queue("quest", say("You plummet."))
    assert await answer(terminal, "/retry", capsys) == "Turn 3 again, in other words, with the same dice.\n"
    assert await reply(terminal) == "You plummet."
    assert (await terminal.game.saved_game()).values["rolls"] == fell
    model.queue("quest", say("", roll), say("You land."))
    await answer(terminal, "/retry dice", capsys)
    assert await reply(terminal) == "You land."
    again = (await terminal.game.saved_game()).values["rolls"]
    assert (again != fell, len(again)) == (True, len(fell)), "in place of the first, not beside it"


async def test_edit_sends_other_words_at_once_or_asks_for_them(terminal, model, capsys):
    await story(terminal, model)
    model.queue("quest", say("Wiser."))
    assert await answer(terminal, "/edit Deed 3, but wiser", capsys) == "Turn 3 again, with your new words.\n"
    assert await reply(terminal) == "Wiser."
    assert "Deed 3\n" not in str(model.asked("quest")[-1])
    assert "at most" in await answer(terminal, "/edit " + "x" * 10_000, capsys)
    terminal.screen = Screen(live=True)
    asked = await run_command(terminal, "/edit")
    assert isinstance(asked, Ask)
    assert asked.words == "Deed 3, but wiser"
    assert await asked.answered("") is None
    assert await reply(terminal) == "Wiser."


async def test_a_look_at_the_lines_does_not_end_what_follows_the_reply(terminal, model, capsys, monkeypatch):
    await story(terminal, model)
    with monkeypatch.context() as patched:
        patched.delattr(type(terminal.game), "finish")
        assert "3 turns on 1 branch" in await answer(terminal, "/branches", capsys)


async def test_lines_are_named_shown_gone_to_and_compared(terminal, model, capsys):
    await story(terminal, model, 4)
    await answer(terminal, "/undo 2", capsys)
    named = await answer(terminal, "/branch the low road", capsys)
    assert "What follows turn 2 is the line “the low road”; /go main goes back to that one." in named
    assert "/go the low road goes there" in await answer(terminal, "/branch the low road", capsys)
    drawn = await answer(terminal, "/branches", capsys)
    assert "● you are here at turn 2" in drawn
    assert "“the low road” begins after turn 2" in drawn
    model.queue("quest", say("> It is **dark**."))
    model.queue("update", say("", call("StateNotebook", gold=9, secrets={"Pell": "is a ghost"})))
    await tell(terminal, terminal.game.send("Into the dark"))
    drawn = await answer(terminal, "/branches", capsys)
    assert "turns 1–3 · main, the low road from turn 3 · ● you are here · “It is dark.”" in drawn
    assert "    └── turns 3–4 · main · “Reply 4.”" in drawn
    compared = await answer(terminal, "/diff main the low road", capsys)
    assert "Gold  4 → 9" in compared
    assert all(words in compared for words in ("Deed 3", "Deed 4", "Into the dark"))
    assert "ghost" not in compared
    assert "thief" not in compared
    assert "Gold  4 → 9" in await answer(terminal, "/diff main", capsys)
    assert "agree" in await answer(terminal, "/diff 'the low road'", capsys)
    gone = await answer(terminal, "/go main", capsys)
    assert gone.startswith("Back at the end of turn 4. “Deed 4”\n\nReply 4.")
    assert "turn 3 on the line “the low road”" in await answer(terminal, "/go the low road", capsys)
    assert "at turn 3" not in await answer(terminal, "/branches", capsys)


async def interviewed(terminal, model):
    """Play three turns of an interview; the second notes a class."""
    for words, noted in (("Hello?", {}), ("A rogue.", {"class": "rogue"}), ("I'm Mira.", {"name": "Mira"})):
        model.queue("interview", say(f"Why {words}", *([call("CharacterNotebook", **noted)] if noted else [])))
        await tell(terminal, terminal.game.send(words))


async def test_the_interview_is_on_the_timeline_and_can_be_gone_back_in_and_forth(terminal, model, capsys):
    await interviewed(terminal, model)
    assert "turns 1–3 · main · ● you are here · “Why I'm Mira.”" in await answer(terminal, "/branches", capsys)
    assert "class: rogue   A rogue." in await answer(terminal, "/why class", capsys)
    await answer(terminal, "/undo", capsys)
    assert "● you are here at turn 2" in await answer(terminal, "/branches", capsys)
    assert "Back at the end of turn 3. “I'm Mira.”" in await answer(terminal, "/go main", capsys)
    await answer(terminal, "/undo 2", capsys)
    assert "No turn of this line noted 'class'" in await answer(terminal, "/why class", capsys)
    model.queue("interview", say("Why nobody?", call("CharacterNotebook", **{"class": "monk"})))
    await tell(terminal, terminal.game.send("A monk."))
    drawn = await answer(terminal, "/branches", capsys)
    assert "turns 1–2 · main · ● you are here · “Why nobody?”" in drawn
    assert "turns 2–3 · main#1 · “Why I'm Mira.”" in drawn
    assert "monk" in await answer(terminal, "/why class", capsys)
    assert [record["player"] for record in await records_of(terminal.game)] == ["Hello?", "A monk."]
    await answer(terminal, "/go main#1", capsys)
    assert (await terminal.game.saved_game()).character.name == "Mira"


async def test_a_new_thread_does_not_go_on_from_a_character_that_is_not_made_yet(terminal, model):
    await interviewed(terminal, model)
    graph = await terminal.game.load()
    place = terminal.game.context.campaign_namespace("head")
    assert await graph.store.aget(place, "head") is None
    await story(terminal, model, 1)
    assert (await graph.store.aget(place, "head")).value["turn"] == 4


async def test_while_a_turn_is_played_again_what_was_given_up_under_its_number_is_not_shown(terminal, model, capsys):
    await story(terminal, model)
    await answer(terminal, "/undo", capsys)
    model.queue("quest", ModelError("Busy."))
    with pytest.raises(ModelError):
        await tell(terminal, terminal.game.send("look"))
    assert [record["player"] for record in await records_of(terminal.game)] == ["I'm Mira.", "Deed 2"]
    assert [turn.player for turn in await turns_before(terminal.game, 99)] == ["I'm Mira.", "Deed 2"]
    assert "gold: 3" not in await answer(terminal, "/why gold", capsys)


@pytest.mark.slow
async def test_no_command_shows_the_id_of_a_branch(terminal, model, capsys, home):
    await interviewed(terminal, model)
    await story(terminal, model)
    for line in ("/retry", "/undo 2", "/branch the low road", "/edit Down", "/undo 99", "/go 77"):
        await answer(terminal, line, capsys)
    turns = await (await terminal.game.history()).turns()
    branches = sorted({turn.branch for turn in turns})
    assert len(branches) > 2
    lines = [f"{name}{rest}" for name in terminal.partner.commands for rest in ("", " main#1", " 2", " class", " Mira")]
    lines += [
        "/prompt all",
        "/diff main#1 main",
        "/diff the low road main#2",
        "/go main#9",
        "/branch main#1",
        "/why Deed",
    ]
    shown = "".join([await answer(terminal, line, capsys) for line in lines if not line.startswith("/quit")])
    assert "main#1" in shown
    assert [branch for branch in branches if branch in shown] == []


async def test_every_road_in_the_tree_has_a_name_that_leads_there(terminal, model, capsys):
    await story(terminal, model, 2)
    for number in range(3):
        model.queue("quest", say(f"Other {number}."))
        await answer(terminal, "/retry", capsys)
    drawn = await answer(terminal, "/branches", capsys)
    names = re.findall(r"main#\d", drawn)
    assert names == ["main#1", "main#2", "main#3"], "in the order in which they were begun"
    said = {(await answer(terminal, f"/go {name}", capsys)).splitlines()[2] for name in names}
    assert said == {"Reply 2.", "Other 0.", "Other 1."}
    assert "Other 2." in await answer(terminal, "/go main", capsys)


@pytest.mark.slow
def test_die_undo_and_take_another_road_through_a_pipe(tmp_path):
    died = play(
        tmp_path,
        "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back\n"
        "I tell everyone that I am the lost queen Zenobia\n/undo\n/branch quiet\nlook around\n"
        "What do I know about Zenobia?\n/branches\n/go main\n/diff quiet\n/undo 9\n",
    )
    assert died.returncode == 0, died.stderr
    out = died.stdout.decode()
    asked = out[out.index("What follows turn 1") : out.index("default: ")]
    assert "You said" not in asked
    assert out.count("Zenobia") >= 3
    assert "Back at the end of turn 2. “I tell everyone that I am the lost queen Zenobia”" in out
    assert "Remembered only at “quiet”: 2 turns" in out
    assert died.stderr.decode().splitlines()[-1] == "This is turn 2, so 9 turns cannot be taken back, but 1 can."
    rewound = start(tmp_path, "rewind", "--to", "1")
    assert rewound.stdout.decode().startswith("Back at the end of turn 1. “I'm Mira,")
    assert rewound.returncode == 0
    assert "● you are here at turn 1" in play(tmp_path, "/branches\n").stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--to", "1"], "Nothing has been said yet."), (["--to", "1", "--campaign", "x" * 300], "QUESTBOOK_CAMPAIGN")],
)
def test_rewind_that_cannot_be_is_one_line(tmp_path, arguments, said):
    run = start(tmp_path, "rewind", *arguments)
    assert run.returncode == 2
    assert said in one_line_of(run)


def place(branch, turn, after, line="main", thread="here"):
    moment = f"2026-01-01T{turn // 60:02}:{turn % 60:02}"
    return PlayedTurn(branch, turn, after, line, f"Deed {turn}", f"Reply {turn} of {branch}.", "", thread, "", moment)


def test_roads_that_part_at_one_turn_come_in_the_order_in_which_they_were_taken():
    long, first, second = (
        [place(road, turn, "a" if turn == 2 else road)._replace(said_at=when) for turn in range(2, 2 + length)]
        for road, length, when in (("long", 3, "2026-01-01"), ("first", 1, "2026-01-02"), ("second", 2, "2026-01-03"))
    )
    [trunk] = stretches([place("a", 1, None), *long, *first, *second])
    assert [turn.branch for turn in trunk.turns] == ["a", "long", "long", "long"]
    assert [fork.turns[0].branch for fork in trunk.forks] == ["first", "second"]


def test_branches_are_counted_line_by_line():
    turns = [place("a", 1, None), place("q", 2, "a", line="quiet"), place("b", 3, "a")]
    assert branch_names(turns) == {"a": "main#1", "q": "quiet#1", "b": "main#2"}


def test_a_hundred_branches_and_two_thousand_turns_are_a_screenful_a_person_can_read(capsys):
    # Each branch grows from the one before it: nested as deep as can be.
    places, before = [], None
    for branch in range(100):
        name = f"b{branch:03}"
        for turn in range(branch * 13 + 1, branch * 13 + 21):
            after = before if turn == branch * 13 + 1 else name
            places.append(place(name, turn, after if turn > 1 else None, line=f"road {branch}"))
        before = name
    assert len(places) == 2000

    def draw():
        capsys.readouterr()
        assert len(stretches(places, ("b050", 660))) == 1
        Screen(live=False).draw(draw_tree("isle", places, ("b050", 660), {}, "here"))

    assert cpu_seconds(draw, 2) < 2
    drawn = capsys.readouterr().out.splitlines()
    assert len(drawn) == 1 + 100 + 1
    assert max(map(len, drawn)) <= 100
    assert max(line.index("turn") for line in drawn[1:-1]) <= 16, "and not pushed off to the right"
    assert sum("you are here" in line for line in drawn) == 1


def test_a_tree_with_holes_and_other_threads_is_still_drawn(capsys):
    places = [place("a", 1, None), place("a", 3, "a"), place("z", 1, None, thread="elsewhere")]
    Screen(live=False).draw(draw_tree("isle", places, ("a", 9), {"gone": ("q", 4)}, "here"))
    drawn = capsys.readouterr().out
    assert drawn.count("turn") == 3
    assert "on thread elsewhere" in drawn


async def test_retry_goes_on_with_a_turn_that_has_no_reply(terminal, model, capsys):
    await story(terminal, model)
    model.queue("quest", ModelError("Busy."))
    with pytest.raises(ModelError):
        await tell(terminal, terminal.game.send("look"))
    model.queue("quest", say("You look."))
    assert await answer(terminal, "/retry", capsys) == "Turn 4 goes on.\n"
    assert await reply(terminal) == "You look."


async def test_what_studio_does_is_seen_here_and_what_is_done_here_is_seen_in_studio(terminal, model, capsys):
    await story(terminal, model)
    thread = {"configurable": {"thread_id": terminal.game.thread_id}}
    async with find_home().open_checkpointer() as saver, find_home().open_store() as store:
        studio = build_graph().compile(checkpointer=saver, store=store)
        await studio.aupdate_state(thread, {"quest": {"gold": 55}}, as_node="remember")
        assert "55" in await answer(terminal, "/quest", capsys)
        second = [s async for s in studio.aget_state_history(thread) if not s.next and s.values.get("turn") == 2][-1]
        model.queue("quest", say("A third way."))
        said, context = {"messages": [("user", "Elsewhere")]}, {"model": "scripted", "campaign": "isle"}
        await studio.ainvoke(said, second.config, context=context, durability="sync")
        drawn = await answer(terminal, "/branches", capsys)
        assert "A third way." in drawn
        [name] = re.findall(r"turn 3 · (main#\d)", drawn)
        assert "Gold" in await answer(terminal, f"/diff {name} main", capsys)
        await answer(terminal, f"/go {name}", capsys)
        assert "55" in await answer(terminal, "/quest", capsys), "with what was edited in Studio"
        await answer(terminal, "/undo", capsys)
        state = await studio.aget_state(thread)
        assert (state.values["turn"], state.metadata["source"]) == (2, "fork")


def test_the_tree_says_of_each_stretch_its_turns_lines_and_last_words_and_where_one_is(capsys):
    elsewhere = "t" * 50
    turns = [
        place("a", 1, None), place("a", 2, "a"), place("a", 3, "a", "quiet"), place("a", 4, "a", "x" * 50),
        place("a", 5, "a", "loud"), place("a", 6, "a", "loud"), place("b", 2, "a"), place("b", 3, "b"),
        place("c", 3, "a", "quiet")._replace(reply=f"> **{'w' * 90}**"), place("d", 3, "a"),
        place("e", 4, "d", "other", thread=elsewhere),
        place("f", 6, "a", "loud"),
    ]  # fmt: skip
    names = {"road": ("a", 2), "main": ("b", 3), "far": ("q", 1)}
    Screen(live=False).draw(draw_tree("isle\x1b[31m", turns, ("b", 2), names, "here"))
    drawn = capsys.readouterr().out
    assert drawn.splitlines() == [
        "isle",
        "└── turns 1–3 · main#2 · ● you are here at turn 2 · “Reply 3 of b.”",
        "    └── turns 2–6 · main, …, loud from turn 5 · “road” begins after turn 2 · “Reply 6 of f.”",
        f"        ├── turn 3 · quiet · “{'w' * 59}…”",
        f"        ├── turns 3–4 · main, other from turn 4 · on thread {'t' * 39}…",
        "        └── turn 6 · main#1 · “Reply 6 of a.”",
        "",
    ]  # fmt: skip
    Screen(live=False).draw(draw_tree("isle", turns[:1], ("a", 1), {}, "here"))
    assert capsys.readouterr().out.splitlines()[1] == "└── turn 1 · main · ● you are here · “Reply 1 of a.”"


class Lines:
    """A history that knows these lines, and says nothing of what differs."""

    def __init__(self):
        self.asked = []

    async def turns(self):
        lines = ("the low road", "the", "low road", "it's")  # of names that could be one or two, the longest counts
        return [place("a", 1, None), *(place(f"b{n}", 2, "a", line=line) for n, line in enumerate(lines))]

    async def line_names(self):
        return {"quiet road": ("a", 1)}

    async def difference(self, one, other):
        self.asked.append((one, other))
        return Difference([], [], [])


@pytest.mark.parametrize(
    ("typed", "names", "said"),
    [
        ("main", ("main", ""), "“main” and here agree"), ("2 main#1", ("2", "main#1"), "turn 2 and “main#1” agree"),
        ("'the low road' main", ("the low road", "main"), "“the low road” and “main” agree"),
        ("the low road", ("the low road", ""), "“the low road” and here agree"),
        ("low road", ("low road", ""), "“low road” and here agree"), ("a b", ("a", "b"), "“a” and “b” agree"),
        ("the low road 2", ("the low road", "2"), "“the low road” and turn 2 agree"),
        ("quiet road the low road", ("quiet road", "the low road"), "agree"),
        ("the low road#1 quiet road", ("the low road#1", "quiet road"), "agree"),
        ("it's main", ("it's", "main"), "“it's” and “main” agree"),
        ("one two three", None, "/diff A B compares two lines, branches or turns; /diff A compares one with"),
        ("", None, "/diff A B compares two lines"),
    ],
)  # fmt: skip
async def test_names_of_several_words_may_be_written_without_quotes(typed, names, said, capsys):
    lines = Lines()

    async def history(*, only_looks):
        return lines if only_looks else None

    terminal = Terminal(SimpleNamespace(history=history), Screen(live=False), DUNGEON_MASTER)
    assert said in await answer(terminal, f"/diff {typed}", capsys)
    assert lines.asked == ([names] if names else [])


async def test_what_differs_is_shown_side_by_side_with_where_it_is_remembered(capsys):
    lines = Lines()
    deeds = [place("a", turn, "a")._replace(player="x" * 100, reply="**So**.") for turn in range(1, 9)]

    async def difference(one, other):
        return Difference([ChangedEntry("quest", ("gold",), 4, 9)], deeds[:1], deeds)

    async def history(*, only_looks):
        return lines

    lines.difference = difference
    terminal = Terminal(SimpleNamespace(history=history), Screen(live=False), DUNGEON_MASTER)
    shown = await answer(terminal, "/diff quiet", capsys)
    for part in (
        "Pages, “quiet” → here", "Gold  4 → 9", "Remembered only at “quiet”: 1 turn\n",
        "Remembered only here: 8 turns; the last 6\n", "So.",
    ):  # fmt: skip
        assert part in shown
    assert "**" not in shown
    assert shown.partition("the last 6")[2].count("x") == 6 * 79, "of long words the beginning is shown"
    assert [line.split()[0] for line in shown.partition("the last 6")[2].splitlines() if "xxx" in line] == list(
        "345678"
    )


async def test_a_message_is_given_up_or_played_again_in_other_words(terminal, model, capsys):
    await story(terminal, model, 1)
    await tell(terminal, terminal.game.send("Deed\n2"))
    terminal.screen = Screen(live=True)
    asked = await run_command(terminal, "/edit")
    assert asked.words == "Deed 2", "on one line"
    capsys.readouterr()
    assert await asked.answered("") is None
    assert capsys.readouterr().out == "Your message was not changed.\n"
    assert await asked.answered("x" * 8001) is None
    assert "Nothing was sent; say it in parts." in " ".join(capsys.readouterr().out.split())
    assert isinstance(await asked.answered("Wiser."), Play)
    assert capsys.readouterr().out == "Turn 2 again, with your new words.\n"
    assert isinstance(await run_command(terminal, "/edit Wiser."), Play), "words in the command are not asked for"
