"""Files that were made to be slow to read, or large in memory: their time grows with their length, and no faster."""

from contextlib import suppress

import pytest
from timing import cpu_seconds

from questbook.memory.errors import UnreadableDocumentError
from questbook.memory.lore.documents import PIECE_CHARS, read_document

SIZE = 360_000
UNCLOSED = [
    "<title",
    "<title>",
    "</title",
    "<!--",
    "<script",
    "<style>",
    "<",
    "</",
    "<a ",
    "<a b='",
    "<?",
    "<![CDATA[",
    "<![if>",
]
REPEATED = [
    "<!--x",
    "&#32;",
    "&#x20;",
    "&#0",
    "&nbsp;",
    " ",
    "\n",
    "\t \n",
    "<a \"'",
    "</a>",
    "<?a>",
    "</title ",
    "&",
    "a",
]
MARKDOWN = ["#", "# ", "# a\n", "```\n", "a", " ", "\n", " \n", "- ", "a. ", "é"]


def pieces(tmp_path, name, text, enough=12):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    read = []

    def work():
        with suppress(UnreadableDocumentError):
            read[:] = read_document(path, path.read_bytes())

    return read, cpu_seconds(work, enough)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["<title", "<!--", "<a ", "&#32;"])
def test_a_page_of_beginnings_that_never_end_is_read_at_once(tmp_path, unit):
    text = f"<p>The owlbear sleeps.</p>{unit * (SIZE // len(unit))}<p>The troll reads.</p>"
    read, seconds = pieces(tmp_path, "a.html", text)
    assert seconds < 12, "it took more than 90 s"
    assert any("The owlbear sleeps." in piece.text for piece in read)
    assert any("The troll reads." in piece.text for piece in read)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNCLOSED + REPEATED)
def test_a_page_of_whatever_is_slow_is_read_in_linear_time(tmp_path, unit):
    for head in ("", "<p>x", "<a ", "<!-- "):
        _, seconds = pieces(tmp_path, "a.html", f"{head}{unit * (SIZE // len(unit))}<p>x", 25)
        assert seconds < 25, head


@pytest.mark.parametrize("unit", MARKDOWN)
@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_a_text_of_whatever_is_slow_is_read_at_once(tmp_path, name, unit):
    _, seconds = pieces(tmp_path, name, unit * (SIZE // 3 // len(unit)), 4)
    assert seconds < 4


@pytest.mark.parametrize("name", ["a.md", pytest.param("a.html", marks=pytest.mark.slow)])
def test_a_heading_of_three_megabytes_is_cut_like_other_text(tmp_path, name):
    words = "The Very Long Annals of Ash. " * 100_000
    heading = f"<h1>{words}</h1><p>She sleeps.</p>" if name == "a.html" else f"# {words}\nShe sleeps.\n"
    read, seconds = pieces(tmp_path, name, heading + ("And on. " * 1000))
    assert seconds < 12
    assert max(len(piece.text) for piece in read) < PIECE_CHARS + 150
    assert max(len(piece.section) for piece in read) <= 101
    assert all(piece.section.startswith("The Very Long Annals of Ash.") for piece in read)
    assert sum(piece.body.count("Annals") for piece in read) == 100_000, "nothing of it is lost"
    assert any("She sleeps." in piece.text for piece in read)


def test_what_is_not_shown_is_left_out_and_what_only_looks_like_a_tag_stays(tmp_path):
    page = """<!DOCTYPE html><html><head><TITLE lang="en">No <b>title</TITLE ><style>p { color: red }</style>
    <script>if (a < b) { "</p>" }</script></head><body><!-- <p>an old <i>draft</i></p> --><h1>Ash</h1>
    <p title="a > b, 'so'">She has 3 < 5 goats &amp; a <b class='x>y'>bell</b>.</p>
    <![if !supportEmptyParas]><p>Bell &lt;rings&gt;</p><![endif]><p>I <3 goats</p></body></html>"""
    (piece,), _ = pieces(tmp_path, "a.html", page)
    assert piece.section == "Ash"
    assert piece.body == "She has 3 < 5 goats & a bell.\n\nBell <rings>\n\nI <3 goats"
