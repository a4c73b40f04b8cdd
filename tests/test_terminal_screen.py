"""What is shown, and that nothing shown can steer the terminal."""

import asyncio
import io
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from questbook.graphs.events import DiceRoll, NodeEnd, NodeStart, Notice, ReplyPiece
from questbook.graphs.interface.text import clean, one_line, plain, quote
from questbook.graphs.terminal.play import GameLoop
from questbook.graphs.terminal.screen import Screen, dice_line, split_paragraphs
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
        ReplyPiece("Nobody hears.", "2"), NodeEnd("run_quest", True), Notice({"text": "Not noted."}),
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
    told, above = [], asyncio.Event()

    async def done(*_):
        return False

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
    await loop._wait_for_upkeep("/undo")
    assert told == both * 2


def test_numbers_of_a_table_stand_under_each_other():
    screen, out = live()
    screen.table("Turns", ("Turn", "You said"), [("9", "I wait."), ("10", "I go.")], right="Turn")
    rows = [line for line in out.getvalue().split("\n") if "I " in line]
    assert rows[0].index("9") == rows[1].index("0")
