"""What is shown, and that nothing shown can steer the terminal."""

import asyncio
import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from questbook.graphs.events import DiceRoll, NodeEnd, NodeStart, Notice, ReplyPiece
from questbook.graphs.interface.text import clean, number_of, one_line, plain, quote, work_text
from questbook.graphs.terminal.play import GameLoop
from questbook.graphs.terminal.screen import (
    LiveReply,
    PlainReply,
    Screen,
    ask,
    complain,
    dice_line,
    say,
    split_paragraphs,
)
from questbook.graphs.terminal.slash_commands import GAME

ROLL = {
    "expression": "1d20+3",
    "total": 17,
    "reason": "Stealth",
    "dc": 12,
    "success": True,
    "text": "1d20+3 = (14) + 3 = 17 vs DC 12: success",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07on", "on"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]never ended", "]never ended"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x1b(Bcharset\x1bc", "charset"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("tab\tstays\n", "tab\tstays\n"),
        ("\x00\x07\x7f\x85", "\n"),
        ("\ud800\udcff", ""),
        ("\u202eevil\u202c \ufeff", "evil "),
        ("naïve 日本 👩‍🚀", "naïve 日本 👩‍🚀"),
    ],
)
def test_clean(text, expected):
    assert clean(text) == expected


def test_one_line_and_quotations():
    assert one_line("a\n  b\tc") == "a b c"
    assert [one_line("x" * 50, 10), one_line("short", 10)] == ["xxxxxxxxx…", "short"]
    assert quote('“Halt!” cries\nthe guard, and "you"\x1b[31m stop.') == "“‘Halt!’ cries the guard, and 'you' stop.”"
    assert quote("one two three", 8) == "“one two…”"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**No**, she *says*:\n\n> *go*\n> > now", "No, she says: go now"),
        ("A fighter, then — good. **Borin Flintbeard…", "A fighter, then — good. Borin Flintbeard…"),
        (
            "## The quay\n\n- a rope\n  * a hook\n\n---\n\n1. one\n__two__ _three_",
            "The quay a rope a hook 1. one two three",
        ),
        (
            "2 * 3*4, wait_for_the tide, a - b, -5, `d20`, \\*so\\*, > no",
            "2 * 3*4, wait_for_the tide, a - b, -5, d20, *so*, > no",
        ),
        ("***\n* * *\nEnd\x1b[31m.", "End."),
    ],
)
def test_an_excerpt_is_plain_text_also_where_it_was_cut(text, shown):
    assert plain(text) == shown


@given(st.text(st.characters(codec=None)))
def test_cleaned_text_can_be_written_and_holds_no_control_characters(text):
    shown = clean(text)
    shown.encode("utf-8")
    assert not any(c not in "\n\t" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0) for c in shown)
    assert clean(shown) == shown


@pytest.mark.parametrize(("text", "whole", "coming"), [
    ("one", "", "one"), ("one\n\ntw", "one", "\n\ntw"), ("one\n\ntwo\n\n", "one\n\ntwo", "\n\n"),
    ("```\ncode\n\nmore", "", "```\ncode\n\nmore"), ("```\ncode\n```\n\nafter", "```\ncode\n```", "\n\nafter"),
])  # fmt: skip
def test_paragraphs_are_split_off_when_they_are_whole(text, whole, coming):
    assert split_paragraphs(text) == (whole, coming)


def test_a_plain_turn(capsys):
    reply = Screen(live=False).reply()
    for event in (
        ReplyPiece("You ", "1"), ReplyPiece("creep.", "1"), NodeEnd("run_quest", True), DiceRoll(ROLL),
        ReplyPiece("Nobody [bold]hears[/bold]\x1b[2J.", "2"), ReplyPiece("And then?", "3"),
        Notice({"turn": 1, "node": "update_state", "text": "Not\nnoted."}),
    ):  # fmt: skip
        reply.show(event)
    reply.close()
    out, err = capsys.readouterr()
    assert out == (
        "You creep.\n[dice] Stealth: 1d20+3 = (14) + 3 = 17 vs DC 12: success\n\n"
        "Nobody [bold]hears[/bold].\n\nAnd then?\n\n"
    )
    assert err == "Not noted.\n"


def live():
    screen = Screen(live=True)
    out = io.StringIO()
    plain = {"markup": False, "emoji": False, "highlight": False, "color_system": None}
    screen._console = Console(file=out, force_terminal=True, width=60, height=20, **plain)
    return screen, out


def test_a_live_turn_puts_down_every_word_once():
    screen, out = live()
    reply = screen.reply()
    for event in (
        ReplyPiece("You **creep**.\n\nSlow", "1"), ReplyPiece("ly.", "1"), DiceRoll(ROLL),
        ReplyPiece("Nobody hears.", "2"), NodeEnd("run_quest", True), Notice({"text": "Not\nnoted."}),
    ):  # fmt: skip
        reply.show(event)
    reply.close()
    shown = out.getvalue()
    # What stands at the end is what was not erased: erased lines are followed by "erase line" before the next text.
    stays = [line.rsplit("\x1b[2K", 1)[-1].strip() for line in shown.split("\n")]
    for text in ("You creep.", "Slowly.", "Nobody hears.", "Not noted."):
        assert stays.count(text) == 1, (text, stays)
    assert [line for line in stays if "Stealth" in line] == [f"⚅ {dice_line(ROLL)}"]
    roll = next(i for i, line in enumerate(stays) if "Stealth" in line)
    assert stays.index("Slowly.") < roll < stays.index("Nobody hears.")


def test_the_spinner_says_which_work_is_done():
    screen, out = live()
    reply = screen.reply()
    for event, expected in [
        (NodeStart("recall"), "The dungeon master remembers…"), (NodeStart("run_quest"), "The dungeon master thinks…"),
        (DiceRoll(ROLL), ""), (NodeStart("roll_dice"), "The dice are rolling…"),
        (NodeStart("some_node_of_an_app"), ""), (NodeStart("update_state"), "Taking notes…"),
        (NodeStart("reflect"), "Looking back on what happened…"), (NodeStart("condense"), "Summing up older turns…"),
    ]:  # fmt: skip
        before = len(out.getvalue())
        reply.show(event)
        assert expected in out.getvalue()[before:]
    reply.close()
    assert "_" not in out.getvalue()


@pytest.mark.parametrize("streamed", [True, False])
def test_between_blocks_is_one_blank_line(streamed):
    text = "Choose:\n\n- left\n- right\n\n> Who?\n\n---\n\n1. one\n\nEnd."
    screen, out = live()
    screen._console = Console(file=out, width=60)  # nothing is drawn twice
    reply = screen.reply()
    for piece in text if streamed else [text]:
        reply.show(ReplyPiece(piece, "1"))
    reply.close()
    shown = [line.strip() for line in out.getvalue().split("\n")]
    assert shown == ["Choose:", "", "• left", "• right", "", "▌ Who?", "", "-" * 56, "", "1 one", "", "End.", "", ""]


def test_a_reply_higher_than_the_terminal_is_put_down_whole():
    screen, out = live()
    reply = screen.reply()
    text = "\n".join(f"- item {n}" for n in range(60))
    reply.show(ReplyPiece(text, "1"))
    reply.close()
    assert all(f"item {n}" in out.getvalue() for n in range(60))


def test_nothing_shown_is_markup_or_steers_the_terminal():
    screen, out = live()
    hostile = "[red]x[/red] \x1b[2J\x1b]0;t\x07 :skull:"
    screen.say(hostile)
    screen.complain(hostile)
    screen.heading(hostile)
    screen.answer(hostile)
    screen.table(hostile, ("", hostile), [(hostile, hostile)])
    shown = out.getvalue()
    assert shown.count("[red]x[/red]") >= 6
    assert "\x1b[2J" not in shown
    assert "\x1b]" not in shown
    assert ":skull:" in shown


def test_a_roll_without_text_is_still_told():
    assert dice_line({"expression": "1d6", "total": 4}) == "1d6 = 4"
    assert dice_line({**ROLL, "text": "2d20kh1 = (~~3~~, 17) = 17"}) == "Stealth: 2d20kh1 = (~3~, 17) = 17"


async def test_what_upkeep_noted_is_told_above_the_line_that_is_typed_or_before_a_command():
    told, waited, above = [], [], asyncio.Event()

    async def done(*seconds):
        waited.append(seconds)
        return seconds == (1.5,)

    async def line(words=""):
        await asyncio.wait_for(above.wait(), 5)
        return "I wait."

    async def show_above(show):
        show()
        above.set()

    notices = [Notice({"text": "Noted: gold 5.", "page": "quest"}), Notice({"text": "The notes failed."})]
    game = SimpleNamespace(
        wait_for_upkeep=done, finish=done, unread_notices=lambda: notices, context=SimpleNamespace(update_timeout=1)
    )
    terminal = SimpleNamespace(
        game=game, screen=SimpleNamespace(say=told.append), partner=SimpleNamespace(commands=GAME)
    )
    loop = GameLoop(terminal, SimpleNamespace(live=True, line=line, above=show_above), "")
    assert await loop._next_line() == "I wait."
    both = ["Noted: gold 5. /quest shows all of it.", "The notes failed."]
    assert told == both
    assert waited == [(1,)], "as long as notes may take"
    for name in ("/undo", "/xyzzy"):
        await loop._wait_for_upkeep(name)
    assert (told, waited[1:]) == (both * 3, [(), ()]), "what may change something has them give way"
    await loop._wait_for_upkeep("/sheet")
    assert waited[3:] == [(1.5,)]
    assert told[6:] == ["The notes on the last turn are still being made; the pages are as they were before.", *both]


def test_numbers_of_a_table_stand_under_each_other():
    screen, out = live()
    screen.table("Turns", ("Turn", "You said"), [("9", "I wait."), ("10", "I go.")], right="Turn")
    rows = [line for line in out.getvalue().split("\n") if "I " in line]
    assert rows[0].index("9") == rows[1].index("0")


@pytest.mark.parametrize(
    ("node", "says"),
    [
        ("recall", "The dungeon master remembers…"), ("build_character", "The dungeon master thinks…"),
        ("run_quest", "The dungeon master thinks…"), ("respond", "The dungeon master thinks…"),
        ("roll_dice", "The dice are rolling…"), ("use_tools", "The dungeon master looks it up…"),
        ("update_state", "Taking notes…"), ("remember", "Writing the turn to memory…"),
        ("learn", "Noting what it learnt…"), ("reflect", "Looking back on what happened…"),
        ("condense", "Summing up older turns…"), ("a node of an app", ""),
    ],
)  # fmt: skip
def test_what_a_person_waits_for_is_said_of_each_node(node, says):
    assert work_text(node, "the dungeon master") == says


@pytest.mark.parametrize(
    ("number", "nouns", "says"),
    [
        (0, ("turn",), "0 turns"), (1, ("turn",), "1 turn"), (2000, ("turn",), "2,000 turns"),
        (1, ("memory", "memories"), "1 memory"), (2, ("memory", "memories"), "2 memories"),
    ],
)  # fmt: skip
def test_a_number_comes_with_its_noun(number, nouns, says):
    assert number_of(number, *nouns) == says


@pytest.mark.parametrize("mark", [*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\x1b\x80\x9f\ud83d"])
def test_no_mark_that_steers_a_screen_or_turns_its_reading_is_left(mark):
    assert clean(f"a{mark}b") == "ab"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
def test_a_line_end_of_any_kind_is_a_line_feed(end):
    assert clean(f"ä{end}b") == "ä\nb"


@pytest.mark.parametrize(("text", "width", "shown"), [
    ("abcd", 4, "abcd"), ("abcde", 4, "abc…"), ("ab cde", 4, "ab…"), ("a  b", 3, "a b"), ("abcde", 0, "abcde"),
])  # fmt: skip
def test_a_line_is_cut_where_it_passes_its_width(text, width, shown):
    assert one_line(text, width) == shown


async def test_a_question_is_asked_on_one_line_and_silence_is_no_yes(capsys, monkeypatch):
    for answer, agrees in (("Yes\n", True), (" y ", True), ("yes please\n", False), ("", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        assert await ask(["One.", "Two."]) is agrees
        end = "" if answer.endswith("\n") else "\n"
        assert capsys.readouterr().out == f"One.\nTwo.\nForget it for ever? Type yes: {end}"


async def test_a_question_can_be_asked_in_any_thread(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert await asyncio.to_thread(asyncio.run, ask(["One."]))


def test_what_a_command_says_is_one_line_where_it_has_a_width_and_keeps_its_indent(capsys):
    say("  a\nb" + "x" * 20, 10)
    say("a\nb")
    complain("What\nis\x1b[31m wrong.")
    out, err = capsys.readouterr()
    assert out == "  a bxxxxxx…\na\nb\n"
    assert err == "questbook: What is wrong.\n"


@pytest.mark.parametrize(
    ("roll", "style"),
    [
        ({"success": True}, "bold green"), ({"success": False}, "bold red"), ({}, "bold yellow"),
        ({"success": True, "foe": True}, "bold yellow"), ({"success": None}, "bold yellow"),
    ],
)  # fmt: skip
def test_a_roll_is_green_if_it_is_won_and_red_if_it_is_lost_but_a_foe_s_is_neither(roll, style):
    screen, _ = live()
    printed = []
    screen._console.print = lambda text="", style="": printed.append((text, style))
    reply = screen.reply()
    reply.show(DiceRoll(ROLL | {"success": None} | roll))
    reply.close()
    assert (f"⚅ {dice_line(ROLL)}", style) in printed


def test_pieces_of_replies_and_rolls_stand_apart_in_a_plain_turn(capsys):
    reply = Screen(live=False).reply()
    for event in (
        ReplyPiece("\n\nYou ", "1"), ReplyPiece("\ncreep.\n", "1"), ReplyPiece("\nOn.", "1"), DiceRoll({"total": 3}),
        Notice({"text": "Noted.", "page": "quest"}), ReplyPiece("And.", "2"),
    ):  # fmt: skip
        reply.show(event)
    reply.close()
    out, err = capsys.readouterr()
    assert out == "You \ncreep.\n\nOn.\n[dice] = 3\n\nAnd.\n\n"
    assert err == "Noted. /quest shows all of it.\n"
    Screen(live=False).reply().close()
    assert capsys.readouterr().out == "", "of nothing nothing is shown"


def test_each_kind_of_words_has_its_own_look():
    screen, _ = live()
    printed = []
    screen._console.print = lambda text="", style="": printed.append((text, style))
    screen.heading("Welcome.")
    screen.say("A note.")
    screen.complain("What\nis wrong.")
    screen.answer("So.")
    screen.answer("Title", style="bold")
    screen.blank()
    assert printed == [
        ("Welcome.", "bold"), ("A note.", "dim"), ("What is wrong.", "red"), ("So.", ""), ("Title", "bold"), ("", ""),
    ]  # fmt: skip


def test_a_table_with_headings_has_a_rule_and_a_page_has_labels_that_stay_whole(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    Screen(live=False).table("Turns", ("Turn", "Thread"), [("1", "t" * 40)])
    Screen(live=False).table("Sheet", ("", ""), [("Still missing so far", "word " * 9)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["Turn", "Thread"]
    assert set(lines[3]) - {" "} == {"─"}
    assert sum(line.count("t") for line in lines[4:6]) == 40, "what is cut opens nothing"
    page = lines[lines.index("Sheet") + 1 :]
    assert page[0].startswith("Still missing so far  word")
    assert not any("─" in line for line in page)


def test_a_terminal_that_does_not_know_its_size_has_one(monkeypatch):
    monkeypatch.setenv("LINES", "0")
    monkeypatch.setenv("COLUMNS", "0")
    console = Screen(live=True).console
    assert min(console.height, console.width) > 0
    assert not console.no_color
    monkeypatch.setenv("NO_COLOR", "1")
    assert Screen(live=True).console.no_color


def test_the_end_of_a_long_paragraph_is_seen_while_it_comes_and_a_roll_alone_ends_with_a_free_line(capsys):
    screen, out = live()
    reply = screen.reply()
    reply._live.refresh()
    assert "Your message is sent…" in out.getvalue()
    reply.show(ReplyPiece("\n".join(f"- item {n}" for n in range(60)), "1"))
    reply._live.refresh()
    assert ("item 59" in out.getvalue(), "item 10" in out.getvalue()) == (True, False)
    reply.close()
    plain = Screen(live=False).reply()
    plain.show(DiceRoll({"total": 3, "reason": "a\nb"}))
    plain.close()
    assert capsys.readouterr().out == "[dice] a b: = 3\n\n"


def test_a_table_for_a_program_is_a_hundred_wide_or_as_wide_as_it_says(capsys, monkeypatch):
    for columns, width in (("", 100), ("60", 60), ("0", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        Screen(live=False).table("Turns", ("Turn", "You said"), [("1", "word " * 60), ("10", "[b]x[/b]")], right="Turn")
        title, *lines = capsys.readouterr().out.splitlines()
        assert title == "Turns"
        assert width - 8 < max(map(len, lines)) <= width
        assert not any(line.endswith(" ") for line in lines)
        assert any(line.split() == ["10", "[b]x[/b]"] for line in lines)


def test_a_terminal_that_can_draw_nothing_gets_plain_replies_in_colour_or_not(monkeypatch):
    screen, out = live()
    screen._console = Console(file=out, force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(screen.reply(), PlainReply)
    screen, _ = live()
    reply = screen.reply()
    assert isinstance(reply, LiveReply)
    reply.close()
    assert Screen(live=False).console.no_color


@pytest.mark.parametrize("size", [1, 2, 3, 99])
def test_a_plain_reply_is_the_same_however_it_is_cut(size, capsys):
    text = "\n\nFirst.\n\nSecond.\n\n```\na\n\n\nb\n```\n"
    reply = PlainReply(Screen(live=False))
    for start in range(0, len(text), size):
        reply.show(ReplyPiece(text[start : start + size], "one"))
    reply.show(DiceRoll({"text": "1d20 = 7"}))
    for piece in ("\n", "\n", "Third."):
        reply.show(ReplyPiece(piece, "one"))
    reply.close()
    assert capsys.readouterr().out == f"{text.strip()}\n[dice] 1d20 = 7\nThird.\n\n"


@pytest.mark.parametrize(("width", "story"), [(200, 100), (80, 76), (30, 26), (22, 20)])
def test_the_story_is_as_wide_as_one_reads_well(width, story):
    screen, out = live()
    screen._console = Console(file=out, width=width, color_system=None)
    reply = screen.reply()
    reply.show(ReplyPiece("x" * 300 + "\n\n[here](https://a.example)", "1"))
    reply.close()
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert max(len(line) for line in lines if set(line) == {"x"}) == story
    assert "https://a.example" in "".join(lines), "a link shows where it leads"
