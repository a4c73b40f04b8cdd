"""Files that become lore: each kind, LangChain's indexes too, what cannot be read, and the worst in little time."""

import codecs
import csv
import os
import pickle
import struct
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from langchain_core.documents import Document
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from paper import files, pdf
from saved_faiss import save
from timing import cpu_seconds

from questbook import FaissStore, HashEmbeddings
from questbook.graphs.terminal.cli import main
from questbook.graphs.terminal.play import DUNGEON_MASTER
from questbook.graphs.turn.recall import memory_line
from questbook.memory.embeddings.embedders import KnownVectors
from questbook.memory.errors import StoreError, UnknownLoreError, UnreadableDocumentError
from questbook.memory.lore.collection import add_lore, list_lore, printable, remove_lore
from questbook.memory.lore.documents import PIECE_CHARS, LorePiece, find_documents, read_document
from questbook.memory.lore.langchain_index import import_langchain_faiss, read_langchain_vectors, read_texts
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.namespaces import campaign_namespace

LORE = campaign_namespace("u", "c", "lore")


class Counting(InMemoryStore):
    """Counts batches that write."""

    batches = 0

    async def abatch(self, ops):
        ops = list(ops)
        self.batches += any(isinstance(op, PutOp) for op in ops)
        return await super().abatch(ops)


@pytest.fixture
def store():
    return Counting()


async def add(store, *paths):
    return [done async for done in add_lore(store, "u", "c", paths)]


async def records(store):
    return [item.value for item in sorted(await store.asearch(LORE, limit=100_000), key=lambda item: item.key)]


async def texts(store):
    return [record["text"] for record in await records(store)]


async def reason(store, path):
    (done,) = await add(store, path)
    assert done.outcome == "unreadable"
    assert done.file is None
    assert await list_lore(store, "u", "c") == []
    return done.reason


async def test_files_are_listed_by_name_and_names_that_are_no_text_stay_apart(store, tmp_path):
    paths = [tmp_path / os.fsdecode(name) for name in (b"b.md", b"a\xff.md", b"a\xfe.md")]
    for path in paths:
        path.write_text("Ash sleeps.")
    await add(store, *paths)
    listed = [file.name for file in await list_lore(store, "u", "c")]
    assert (len(listed), listed) == (3, sorted(listed))


async def test_a_file_that_is_uploaded_again_takes_the_place_of_the_first(store, tmp_path):
    outcomes = []
    for number, text in enumerate(["Ash sleeps.", "Ash sleeps.", "Ash wakes."]):
        directory = tmp_path / f"upload{number}"
        directory.mkdir()
        (directory / "gods.md").write_text(text)
        added = add_lore(store, "u", "c", [directory / "gods.md"], below=str(directory))
        outcomes += [done.outcome async for done in added]
    assert outcomes == ["added", "unchanged", "replaced"]
    assert [file.name for file in await list_lore(store, "u", "c")] == ["gods.md"]
    assert await texts(store) == ["Ash wakes."]


async def test_a_page_of_a_pdf_is_cited_by_its_number(store, tmp_path):
    (path,) = files(tmp_path, bestiary_pdf=pdf("The owlbear sleeps.", "", "The troll (under) the bridge reads."))
    (done,) = await add(store, path)
    assert (done.outcome, done.file.pieces) == ("added", 2)
    owlbear, troll = await records(store)
    assert troll["text"] == "The troll (under) the bridge reads."
    assert LorePiece.from_json(troll).citation == "bestiary.pdf, page 3"
    assert LorePiece.from_json(owlbear).citation == "bestiary.pdf, page 1"
    assert troll["kind"] == "lore"
    assert troll["digest"] == done.file.digest


async def test_markdown_is_cut_at_headings_and_each_piece_is_found_by_them(store, tmp_path):
    text = "before\n# Gods\n\nThey are old.\n\nAnd many.\n## Ash\nShe sleeps.\n# Inns\n```\n# no heading\n```\n"
    text += "".join(f"{'#' * level} L{level}\n" for level in range(2, 7)) + "It is deep.\n"
    await add(store, *files(tmp_path, world_md=text))
    found = {LorePiece.from_json(record).citation: record["text"] for record in await records(store)}
    gods = {"Gods": "Gods\nThey are old.\n\nAnd many.", "Gods › Ash": "Gods › Ash\nShe sleeps."}
    deep = "Inns › L2 › L3 › L4 › L5 › L6"
    sections = gods | {"Inns": "Inns\n```\n# no heading\n```", deep: f"{deep}\nIt is deep."}
    assert found == {"world.md": "before"} | {f"world.md, {name}": text for name, text in sections.items()}


async def test_html_keeps_words_together_and_drops_scripts(store, tmp_path):
    html = (
        "<html><head><title>T</title><style>x{}</style></head><body><h1>The <i>Bent</i> Nail</h1><p>An <b>old</b>, "
        "<em>very</em> <strong>old</strong><img src='x.png' alt='a nail'> inn &amp; a <a href='x'>well</a>_house*.</p>"
        "<p>Next.</p><script>alert(1)</script></body></html>"
    )
    await add(store, *files(tmp_path, inn_html=html))
    (record,) = await records(store)
    assert record["text"] == "The Bent Nail\nAn old, very old inn & a well_house*.\n\nNext."
    assert LorePiece.from_json(record).citation == "inn.html, The Bent Nail"


@pytest.mark.parametrize("sign", [",", ";", "\t"])
async def test_rows_of_a_csv_file_are_cited(store, tmp_path, sign):
    rows = ["name,craft,town", "Ada,smith,Ford", "Bo,,Ford,extra,more", ",,", "Cy"]
    await add(store, *files(tmp_path, people_csv="\n".join(rows).replace(",", sign)))
    found = await records(store)
    assert [LorePiece.from_json(record).citation for record in found] == [f"people.csv, row {n}" for n in (1, 2, 4)]
    assert found[0]["text"] == "name: Ada\ncraft: smith\ntown: Ford"
    assert found[1]["text"] == "name: Bo\ncraft: \ntown: Ford\nmore: extra,more"
    assert found[2]["text"] == "name: Cy\ncraft: \ntown:"


async def test_a_table_keeps_columns_of_one_name_and_long_fields_and_begins_below_blank_lines(store, tmp_path):
    await add(store, *files(tmp_path, a_csv="\n \t\nname,note,note\nOda,first,second\n\nBo,,third\n"))
    assert await texts(store) == ["name: Oda\nnote: first\nnote: second", "name: Bo\nnote: \nnote: third"]
    assert [record["row"] for record in await records(store)] == [1, 2]
    await add(store, *files(tmp_path, c_csv="sep=;\r\nname;town\r\nIda;Ford\r\n"))
    assert "name: Ida\ntown: Ford" in await texts(store), "Excel's first line is no header"
    pieces = read_document(tmp_path / "b.csv", f"name,note\nOda,{'word ' * 40_000}\nBel,ok\n".encode())
    assert pieces[-1].text == "name: Bel\nnote: ok"
    assert sum(piece.text.count("word") for piece in pieces) == 40_000
    assert csv.field_size_limit() < 200_000, "the limit is put back"


@pytest.mark.parametrize("name", ["a.md", "a.html"])
async def test_blanks_of_any_kind_keep_words_apart_and_a_heading_without_text_is_kept(store, tmp_path, name):
    lines = [
        "# World",
        "## The king is called Arn",
        "## The\xa0queen",
        "She rules the\u202fNorth.\tName\x0bAge",
        "# End",
    ]
    data = "\n\n".join(lines)
    if name == "a.html":
        data = "".join(
            f"<h{line.count('#')}>{line.strip('# ')}</h{line.count('#')}>" if line[0] == "#" else f"<p>{line}</p>"
            for line in lines
        )
    (tmp_path / name).write_text(data)
    await add(store, tmp_path / name)
    assert await texts(store) == [
        "World › The king is called Arn",
        "World › The queen\nShe rules the North. Name Age",
        "End",
    ]


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a_txt", "Gönül’s bell".encode("utf-8-sig"), "Gönül’s bell"),
        ("a_txt", "Gönül’s bell".encode("utf-16"), "Gönül’s bell"),
        ("a_txt", codecs.BOM_UTF16_BE + "Gönül’s bell".encode("utf-16-be"), "Gönül’s bell"),
        ("a_txt", "The\u2003owl\x07bear\tsleeps", "The\u2003owlbear\tsleeps"),
        ("a_htm", "<meta charset=latin-1><p>café</p>".encode("latin-1"), "café"),
        ("world_md", "# Gods\n# Inns\n", "# Gods\n# Inns"),  # headings alone are text, too
    ],
)
async def test_a_byte_order_mark_or_a_page_says_the_encoding(store, tmp_path, name, data, text):
    await add(store, *files(tmp_path, **{name: data}))
    assert await texts(store) == [text]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a_txt", b"", "the file is empty"), ("a_md", b" \n\t\n", "the file is empty"),
        ("a_txt", b"\xe9t\xe9", "it is not in UTF-8: byte 0xe9 at 0. Save it as UTF-8, or convert it with iconv"),
        ("a_txt", b"\x89PNG\0\0", "it is binary, not text"),
        ("a_txt", b"\xff\xfeabc", "it is not in utf-16-le: truncated data at byte 4"),
        ("a_html", b"<p>\xe9</p>", "it is not in UTF-8: byte 0xe9 at 3. Save it as UTF-8, or convert it with iconv"),
        ("a_html", b"<meta charset=klingon><p>\xe9</p>", "it is not in UTF-8: byte 0xe9 at 25."),
        ("a_html", b"<p></p>", "there is no text in it"), ("a_csv", b"name,craft\n", "there is no text in it"),
        ("a_csv", "\n\n".encode("utf-16"), "there is no text in it"),
        ("a_pdf", b"not one", "it is not a PDF file, although its name says so"),
        ("a_pdf", b"%PDF-1.4\n garbage", "it is broken: "), ("a_pdf", pdf("Hello there")[:200], "it is broken: "),
        ("a_pdf", pdf(""), "there is no text in it; scanned pages need text recognition (OCR) first"),
        ("a_pdf", pdf("Hidden", password="x"), "it is encrypted; save a copy without a password"),
        ("a_docx", b"PK", ".docx files are not supported; supported: .txt, .text, .md, "),
    ],
)  # fmt: skip
async def test_a_file_that_cannot_be_read_is_refused_with_the_reason(store, tmp_path, name, data, expected):
    assert (await reason(store, *files(tmp_path, **{name: data}))).startswith(expected)
    assert store.batches == 0


async def test_what_is_no_file_is_refused_with_the_reason(store, tmp_path):
    assert await reason(store, tmp_path / "none.md") == "there is no such file"
    assert await reason(store, "a\0b.md") == "there is no such file"
    assert await reason(store, "x" * 5000 + ".md") in ("there is no such file", "File name too long")
    assert (await reason(store, tmp_path)).endswith("it has no file that can be read")
    (tmp_path / "ring.md").symlink_to(tmp_path / "ring.md")
    assert await reason(store, tmp_path / "ring.md")
    assert (await reason(store, "/dev/null.md")) == "there is no such file"
    assert (await reason(store, "/dev/null")) == "it is not a regular file"
    for size, said in ((64 << 20, "it is binary, not text"), ((64 << 20) + 1, "it has 64 MiB; at most 64 MiB can")):
        with (tmp_path / "large.md").open("wb") as file:
            file.truncate(size)
        assert (await reason(store, tmp_path / "large.md")).startswith(said)


async def test_a_missing_library_is_named_with_how_to_get_it(store, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    said = await reason(store, *files(tmp_path, a_pdf=pdf("x")))
    assert said.startswith("pypdf is not installed. Install the extra `lore`: pip install 'questbook[lore]'")
    monkeypatch.setitem(sys.modules, "bs4", None)
    assert "bs4 is not installed" in await reason(store, *files(tmp_path, a_html="<p>x</p>"))


async def test_an_unchanged_file_writes_nothing_and_a_changed_one_replaces_all_of_it_in_one_batch(store, tmp_path):
    (path,) = files(tmp_path, gods_md="# A\na\n# B\nb\n# C\nc")
    await add(store, path)
    assert store.batches == 1
    (done,) = await add(store, path, path)
    assert (done.outcome, done.file.pieces, store.batches) == ("unchanged", 3, 1)
    path.write_text("# A\nnew")
    (done,) = await add(store, path)
    assert (done.outcome, done.file.pieces, store.batches) == ("replaced", 1, 2)
    assert await texts(store) == ["A\nnew"]
    path.write_bytes(b"\xff")
    (done,) = await add(store, path)
    assert done.outcome == "unreadable"
    assert await texts(store) == ["A\nnew"], "what stood there stays"


async def test_a_store_that_fails_leaves_the_old_pieces(tmp_path):
    class Embedder:
        dims = 4
        broken = False

        def __call__(self, given):
            if self.broken:
                raise ValueError("the embedder is gone")
            return [[1.0, 0, 0, 0] for _ in given]

    embedder = Embedder()
    async with FaissStore.open(tmp_path / "m.db", {"embed": embedder, "dims": 4, "fields": ["text"]}) as store:
        (path,) = files(tmp_path, gods_md="# A\na\n# B\nb")
        await add(store, path)
        embedder.broken = True
        path.write_text("# A\nnew")
        with pytest.raises(StoreError, match="the embedder is gone"):
            await add(store, path)
        assert sorted(await texts(store)) == ["A\na", "B\nb"]
        assert [file.pieces for file in await list_lore(store, "u", "c")] == [2]
        embedder.broken = False
        (done,) = await add(store, path)
        assert done.outcome == "replaced"
        assert await texts(store) == ["A\nnew"]


async def test_files_of_one_name_do_not_collide_and_are_told_apart(store, tmp_path):
    for place in ("north", "south", "east", "west"):
        (tmp_path / place).mkdir()
        files(tmp_path / place, notes_md=f"in the {place}")
    first, second = await add(store, tmp_path / "north" / "notes.md", tmp_path / "south" / "notes.md")
    assert (first.file.name, second.file.name) == ("north/notes.md", "south/notes.md")
    assert sorted(await texts(store)) == ["in the north", "in the south"]
    (third,) = await add(store, tmp_path / "east" / "notes.md")
    assert third.file.name == "notes.md", "the shortest that is free"
    (again,) = await add(store, tmp_path / "north" / ".." / "east" / "notes.md")
    assert again.outcome == "unchanged", "one file by two paths is one"
    (fourth,) = await add(store, tmp_path / "west" / "notes.md")
    assert (fourth.file.name, (await remove_lore(store, "u", "c", "west/notes.md")).key) == (
        "west/notes.md",
        fourth.file.key,
    )
    await remove_lore(store, "u", "c", "north/notes.md")
    assert sorted(await texts(store)) == ["in the east", "in the south"]


async def test_removed_by_name_or_path_and_unknown_names_are_refused(store, tmp_path):
    one, two = files(tmp_path, a_md="# x\n1\n# y\n2", b_md="b")
    await add(store, one, two)
    two.unlink()
    assert (await remove_lore(store, "u", "c", "a.md")).pieces == 2
    assert (await remove_lore(store, "u", "c", str(two))).name == "b.md"
    assert await texts(store) == []
    with pytest.raises(UnknownLoreError, match=r"There is no lore named 'a.md' in campaign 'c'. There is: none"):
        await remove_lore(store, "u", "c", "a.md")


async def test_of_a_directory_what_can_be_read_is_taken(store, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    files(tmp_path, **{"b_md": "b", "a_png": "x", ".e_md": "e"})
    files(tmp_path / "deep", c_txt="c")
    files(tmp_path / ".git", d_txt="d")
    (tmp_path / "deep" / "up").symlink_to(tmp_path)
    assert [done.path.name for done in await add(store, tmp_path, tmp_path / "b.md")] == ["b.md", "c.txt"]
    assert [path.name for path in find_documents([tmp_path])[1]] == ["a.png"]


@pytest.mark.parametrize("of", [str, Path])
async def test_one_path_is_one_file_whatever_lies_in_the_working_directory(store, tmp_path, monkeypatch, of):
    files(tmp_path, world_md="The king is called Arn.", secret_md="nobody knows")
    monkeypatch.chdir(tmp_path)
    done = [each async for each in add_lore(store, "u", "c", of("world.md"))]
    assert [(each.path, each.outcome) for each in done] == [(Path("world.md"), "added")]
    assert find_documents(of("world.md")) == ([Path("world.md")], [])


async def test_names_that_are_no_text_are_shown_and_kept(store, tmp_path):
    path = tmp_path / "g\udce9.md"
    path.write_text("x")
    (done,) = await add(store, path)
    assert done.file.name == "g?.md"
    (again,) = await add(store, path)
    assert again.outcome == "unchanged"


async def test_a_file_that_cannot_be_read_keeps_the_others_out_of_nothing(store, tmp_path):
    one, two = files(tmp_path, a_md=b"\xff", b_md="b")
    assert [done.outcome for done in await add(store, one, tmp_path / "none.md", two)] == [*["unreadable"] * 2, "added"]


async def test_the_note_of_a_file_is_not_found_by_its_words(tmp_path):
    async with FaissStore.open(tmp_path / "m.db", {"embed": HashEmbeddings()}) as store:
        await add(store, *files(tmp_path, gods_md="Ash sleeps."))
        (note,) = await store.asearch(campaign_namespace("u", "c", "lore_files"), query="gods.md")
        assert note.score is None


@pytest.mark.parametrize("text", ["x" * 1_000_000, "bell " * 200_000], ids=["a word", "a line"])
async def test_a_line_of_a_million_characters_is_cut(store, tmp_path, text):
    await add(store, *files(tmp_path, a_txt=text))
    found = await texts(store)
    assert len(found) == 1250
    assert max(map(len, found)) <= PIECE_CHARS
    assert "".join("".join(found).split()) == "".join(text.split())
    await add(store, *files(tmp_path, a_txt="The bell of Ashen rings. Nobody pulls it! " * 60))
    assert {text[-1] for text in await texts(store)} <= {".", "!"}, "pieces end where sentences do"


@pytest.mark.slow
async def test_ten_megabytes_go_in(tmp_path):
    text = "\n\n".join(f"Chapter {n}. " + "The bell of Ashen rings at night. It is old. " * 16 for n in range(14_000))
    assert len(text) > 10_000_000
    async with FaissStore.open(tmp_path / "m.db") as store:
        begun = time.process_time()
        (done,) = await add(store, *files(tmp_path, long_txt=text))
        assert done.file.pieces == 14_000
        assert time.process_time() - begun < 100
        best = await recall(store, LORE, "chapter 9731")
        assert best[0].value["text"].startswith("Chapter 9731.")


async def test_it_is_recalled_with_source_and_page_in_the_prompts_line(tmp_path):
    async with FaissStore.open(tmp_path / "m.db") as store:
        texts = ("The owlbear fears silver bells.", "Trolls collect debts.")
        await add(store, *files(tmp_path, bestiary_pdf=pdf(*texts), gods_md="# Ash\nThe Ash Mother sleeps."))
        (best, *_) = await recall(store, LORE, "What does the owlbear fear?")
        line = memory_line(best.value)
        assert line == '{"source": "bestiary.pdf, page 1", "text": "The owlbear fears silver bells."}'
        (best, *_) = await recall(store, LORE, "Who is the ash mother?")
        assert memory_line(best.value) == '{"source": "gods.md, Ash", "text": "The Ash Mother sleeps."}'
        assert await store.asearch(campaign_namespace("u", "other", "lore")) == []


async def test_the_command_memories_tells_source_and_page():
    class Screen:
        def table(self, title, columns, rows, **named):
            self.rows = rows

    lore = {"kind": "lore", "text": "The owlbear fears bells.", "source": "bestiary.pdf", "page": 3, "score": 0.5}
    exchange = {"turn": 2, "age": "just now", "score": 0.4, "player": "I look.", "reply": "You see."}
    table = SimpleNamespace(recalled=[lore, exchange], screen=Screen())
    await DUNGEON_MASTER.commands["/memories"].run(table, "")
    assert ["bestiary.pdf, page 3" in " ".join(row) for row in table.screen.rows] == [True, False]
    assert "The owlbear fears bells." in " ".join(table.screen.rows[0])


SIZE = 360_000
UNCLOSED = [
    "<title", "<title>", "</title", "<!--", "<script", "<style>", "<", "</", "<a ", "<a b='", "<?", "<![CDATA[",
    "<![if>",
]  # fmt: skip
REPEATED = [
    "<!--x", "&#32;", "&#x20;", "&#0", "&nbsp;", " ", "\n", "\t \n", "<a \"'", "</a>", "<?a>", "</title ", "&", "a",
]  # fmt: skip
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
@pytest.mark.parametrize("unit", UNCLOSED + REPEATED)
def test_a_page_of_whatever_is_slow_is_read_in_linear_time(tmp_path, unit):
    for head in ("<p>The owlbear sleeps.</p>", "<p>x", "<a ", "<!-- "):
        read, seconds = pieces(tmp_path, "a.html", f"{head}{unit * (SIZE // len(unit))}<p>The troll reads.</p>", 25)
        assert seconds < 25, head
        if unit in ("<title", "<!--", "<a ", "&#32;") and "owlbear" in head:
            told = " ".join(piece.text for piece in read)
            assert "The owlbear sleeps." in told
            assert "The troll reads." in told


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
    <script>if (a < b) { "</p><!--" }</script></head><body><h1>Ash</h1><!-- <p>an old <i>draft</i></p> -->
    <p title="a > b, 'so'">She has 3 < 5 goats &amp; a <b class='x>y'>bell</b>.</p>
    <![if !supportEmptyParas]><p>Bell &lt;rings&gt;</p><![endif]><p>I <3 goats</p></body></html>"""
    (piece,), _ = pieces(tmp_path, "a.html", page)
    assert piece.section == "Ash"
    assert piece.body == "She has 3 < 5 goats & a bell.\n\nBell <rings>\n\nI <3 goats"


SAID = ["The owlbear sleeps in the mill.", "Giants built the tower."]
PLACES = ("u", "docs")


@pytest.fixture
def folder(tmp_path):
    """A folder as LangChain itself writes it."""
    first = {"source": "books/bestiary.pdf", "page": 2, "read": datetime(2026, 3, 1, tzinfo=UTC)}
    second = {"tags": {"old"}, "deep": {"a": [1, None], (2, 3): 4}}
    save(tmp_path / "saved", Document(SAID[0], metadata=first), Document(SAID[1], metadata=second))
    return tmp_path / "saved"


async def test_texts_and_metadata_come_over_into_any_store_once(folder):
    store = InMemoryStore()
    for _ in range(2):
        assert await import_langchain_faiss(store, PLACES, folder) == 2
    items = {item.value["text"]: item for item in await store.asearch(PLACES)}
    assert set(items) == set(SAID)
    read = {"source": "books/bestiary.pdf", "page": 2, "read": "2026-03-01T00:00:00+00:00"}
    assert items[SAID[0]].value["metadata"] == read
    assert items[SAID[1]].value["metadata"] == {"tags": ["old"], "deep": {"a": [1, None], "(2, 3)": 4}}


class Refusing(HashEmbeddings):
    """An embedder that costs too much to be asked for what is known."""

    def embed_documents(self, texts):
        assert not set(texts) & set(SAID)
        return super().embed_documents(texts)


async def test_vectors_of_the_same_embedder_are_taken_over(folder, tmp_path):
    vectors = read_langchain_vectors(folder)
    assert set(vectors) == set(SAID)
    assert vectors[SAID[0]] == pytest.approx(HashEmbeddings().embed_query(SAID[0]), abs=1e-6)
    embed = KnownVectors(Refusing(), vectors)
    async with FaissStore.open(tmp_path / "m.db", {"embed": embed, "fields": ["text"], "lexical": False}) as store:
        await import_langchain_faiss(store, PLACES, folder)
        assert (await store.asearch(PLACES, query="owlbear in a mill", limit=1))[0].value["text"] == SAID[0]


async def test_as_lore_it_is_one_file_that_is_cited_listed_and_added_once(folder):
    store = InMemoryStore()
    assert [done.outcome async for done in add_lore(store, "ann", "isle", [folder])] == ["added"]
    assert [done.outcome async for done in add_lore(store, "ann", "isle", [folder])] == ["unchanged"]
    assert [(file.name, file.pieces) for file in await list_lore(store, "ann", "isle")] == [("index.pkl", 2)]
    pieces = [item.value for item in await store.asearch(campaign_namespace("ann", "isle", "lore"))]
    places = {(piece["text"], piece.get("page", 0), piece.get("section", "")) for piece in pieces}
    assert places == {(SAID[0], 3, "bestiary.pdf"), (SAID[1], 0, "")}


async def test_a_pickle_alone_in_a_directory_is_no_lore(folder):
    (folder / "index.faiss").unlink()
    (folder / "notes.md").write_text("The inn is closed.")
    results = [done async for done in add_lore(InMemoryStore(), "ann", "isle", [folder])]
    assert [(done.path.name, done.outcome) for done in results] == [("notes.md", "added")]


def test_the_command_brings_texts_and_vectors_over(folder, capsys, monkeypatch):
    monkeypatch.setattr("questbook.graphs.terminal.cli.signal.signal", lambda *_: None)
    assert main(["lore", "add", str(folder), "--vectors"]) == 0
    out = capsys.readouterr().out
    assert "2 vectors are taken over" in out
    assert "index.pkl: added, 2 pieces" in out
    (folder / "index.faiss").write_bytes(b"IxFI")
    assert main(["lore", "add", str(folder), "--vectors"]) == 0
    assert "index.pkl: its vectors are made again: " in capsys.readouterr().err


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


class Builds:
    """Calls a function of Python's own with what it likes."""

    def __reduce__(self):
        return eval, ("__import__('os').getpid()",)


@pytest.mark.parametrize("place", ["docstore", "metadata", "text", "keys", "whole"])
def test_code_in_the_pickle_is_named_and_not_run(folder, tmp_path, place):
    proof = tmp_path / "proof"
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    evil, first = Evil(proof), keys[0]
    documents = saved._dict
    if place == "docstore":
        documents["evil"] = evil
    elif place == "metadata":
        documents[first].metadata["evil"] = evil
    elif place == "text":
        documents[first].__dict__["page_content"] = evil
    elif place == "keys":
        keys[7] = evil
    whole = evil if place == "whole" else (saved, keys)
    (folder / "index.pkl").write_bytes(pickle.dumps(whole))
    with pytest.raises(UnreadableDocumentError, match=r"(posix|nt)\.system, which is not loaded"):
        read_texts((folder / "index.pkl").read_bytes())
    assert not proof.exists()


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Builds()),
        b"cos\nsystem\n(S'true'\ntR.",
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"\x80\x04\x8c\x16langchain_core.runnables\x8c\x0eRunnableLambda\x93.",
        b"clangchain_core.documents.base\nDocument.evil\n.",
        b"\x80\x02\x82\x01.",  # a registered extension
        b"P1\n.",  # a persistent id
        b"\x80\x04N" + b"r" + struct.pack("<I", 2**31 - 1) + b".",  # a memo of two thousand million places
        b"\x80\x04\x8d" + struct.pack("<Q", 2**50) + b"x.",
        pickle.dumps(({}, {})),
        pickle.dumps((set(), {0: "a"})),
        b"",
        b"\x00" * 100,
        b"not a pickle",
    ],
    ids=range(14),
)
def test_anything_else_is_refused_with_a_reason(data):
    with pytest.raises(UnreadableDocumentError):
        read_texts(data)


def test_rows_that_are_no_numbers_are_refused(folder):
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    with pytest.raises(UnreadableDocumentError, match="save_local"):
        read_texts(pickle.dumps((saved, keys | {"one": keys[0]})))


def test_one_text_that_is_named_a_million_times_is_refused(folder):
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    documents, first = saved._dict, keys[0]
    documents[first].__dict__["page_content"] = "x" * 100_000
    for number in range(2, 400):
        keys[number] = first
    with pytest.raises(UnreadableDocumentError, match="many times as long"):
        read_texts(pickle.dumps((saved, keys)))


async def test_metadata_that_is_too_much_or_no_json_is_refused(folder):
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    shared: list = []
    for _ in range(60):
        shared = [shared, shared]  # 2 to the 60 lists, if each is counted
    for value, reason in ((shared, "too large or too deep"), (frozenset([b"x"]), "holds a bytes, which is no JSON")):
        saved._dict[keys[0]].metadata["odd"] = value
        (folder / "index.pkl").write_bytes(pickle.dumps((saved, keys)))
        with pytest.raises(UnreadableDocumentError, match=reason):
            await import_langchain_faiss(InMemoryStore(), PLACES, folder)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_older_protocols_are_read(folder, protocol):
    saved = pickle.loads((folder / "index.pkl").read_bytes())
    if protocol == 2:  # which writes a time by a call of a function
        del saved[0]._dict[saved[1][0]].metadata["read"]
    read = read_texts(pickle.dumps(saved, protocol=protocol))
    assert [text.text for text in read] == SAID
    assert read[1].metadata["tags"] == {"old"}


async def test_of_metadata_six_levels_and_a_thousand_values_are_brought_over(folder):
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())

    async def outcome(value):
        saved._dict[keys[0]].metadata = {"odd": value}
        (folder / "index.pkl").write_bytes(pickle.dumps((saved, keys)))
        try:
            await import_langchain_faiss(store := InMemoryStore(), PLACES, folder)
        except UnreadableDocumentError:
            return None
        return next(item.value["metadata"]["odd"] for item in await store.asearch(PLACES) if "page" not in item.value)

    deep = [[[[["x"]]]]]
    for value in (deep, [1] * 999):
        assert await outcome(value) is not None
    for value in ([deep], [1] * 1000):
        assert await outcome(value) is None


async def test_as_lore_a_long_saved_text_is_cut_and_a_page_that_is_none_is_not_cited(folder, tmp_path):
    lengths = {}
    for length in (2000, 2001):
        save(tmp_path / "long", Document("x" * length, metadata={"source": "a/b.txt", "page": -3}))
        data = (tmp_path / "long" / "index.pkl").read_bytes()
        read = read_document(Path("index.pkl"), data)
        lengths[length] = [len(piece.text) for piece in read]
        assert {(piece.page, piece.section) for piece in read} == {(0, "b.txt")}
    assert lengths == {2000: [2000], 2001: [800, 800, 401]}


def test_the_vectors_of_every_kind_of_flat_index_are_read_up_to_a_size(folder, monkeypatch):
    index = folder / "index.faiss"
    whole, vectors = index.read_bytes(), read_langchain_vectors(folder)
    # The metric is the last number of the header, of 37 bytes; those from 2 on have an argument.
    for kind, metric, argument in ((b"IxF2", 1, b""), (b"IxFI", 0, b""), (b"IxFl", 2, b"\0\0\0\0")):
        index.write_bytes(kind + whole[4:33] + struct.pack("<i", metric) + argument + whole[37:])
        assert read_langchain_vectors(folder) == vectors
    index.write_bytes(whole[:8] + struct.pack("<q", 1) + whole[16:45] + whole[45 : 45 + (len(whole) - 45) // 2])
    with pytest.raises(UnreadableDocumentError, match="does not belong to the texts"):
        read_langchain_vectors(folder)
    monkeypatch.setattr("questbook.memory.lore.langchain_index._MAX_BYTES", len(index.read_bytes()) - 1)
    with pytest.raises(UnreadableDocumentError, match=r"index\.faiss has more than"):
        read_langchain_vectors(folder)


def test_an_index_that_does_not_belong_to_the_texts_is_refused_and_another_kind_gives_no_vectors(folder):
    index = folder / "index.faiss"
    whole = index.read_bytes()
    index.write_bytes(b"IwFl" + whole[4:])
    assert read_langchain_vectors(folder) == {}
    wide, long = struct.pack("<i", 2**31 - 1), struct.pack("<q", 2**62)
    damaged = whole[:-1], whole[:20], whole + b"1234", whole[:4] + wide + whole[8:], whole[:8] + long + whole[16:]
    for data in damaged:
        index.write_bytes(data)
        with pytest.raises(UnreadableDocumentError, match="index of vectors"):
            read_langchain_vectors(folder)
    index.unlink()
    with pytest.raises(UnreadableDocumentError, match="No such file"):
        read_langchain_vectors(folder)


def test_each_text_has_its_own_vector_in_whatever_order_the_index_names_them(folder):
    before = read_langchain_vectors(folder)
    saved, keys = pickle.loads((folder / "index.pkl").read_bytes())
    (folder / "index.pkl").write_bytes(pickle.dumps((saved, dict(reversed(keys.items())))))
    assert read_langchain_vectors(folder) == before
    assert [text.text for text in read_texts((folder / "index.pkl").read_bytes())] == SAID


def test_langchain_community_is_not_needed_to_read_it(folder, monkeypatch):
    data = (folder / "index.pkl").read_bytes()
    for name in [name for name in sys.modules if name.startswith("langchain_community")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "langchain_community", None)
    assert [text.text for text in read_texts(data)] == SAID


def test_where_a_piece_is_found():
    assert LorePiece(source="a.pdf", page=12).citation == "a.pdf, page 12"
    assert LorePiece(source="a.csv", row=4).citation == "a.csv, row 4"
    assert LorePiece(source="a.md", section="Gods › Ash").citation == "a.md, Gods › Ash"
    assert LorePiece(source="a.txt").citation == "a.txt"
    assert LorePiece(page=12, section="x").citation == ""
    assert LorePiece(text="Gods › Ash\nIt burns.", section="Gods › Ash").body == "It burns."
    assert LorePiece(text="Gods\nIt burns.").body == "Gods\nIt burns."


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.docx", b"x",
        ".docx files are not supported; supported: .txt, .text, .md, .markdown, .html, .htm, .csv, .pdf, .pkl"),
        ("x", b"x", "its name has no suffix; supported: .txt"), ("x.txt", b" \n\t ", "the file is empty"),
        ("x.TXT", b"", "the file is empty"), ("x.txt", b"a\0b", "it is binary, not text"),
        ("x.md", b"caf\xe9", "it is not in UTF-8: byte 0xe9 at 3. Save it as UTF-8, or convert it with iconv"),
        ("x.html", b"<style>x</style>", "there is no text in it"),
        ("x.pdf", b"no pdf", "it is not a PDF file, although its name says so"),
        ("x.csv", b"a,b\n,\n", "there is no text in it"), ("x.pkl", b"no pickle", "it is no pickle that can be read"),
    ],
)  # fmt: skip
def test_a_document_that_cannot_be_read_says_why(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UnreadableDocumentError) as caught:
        read_document(tmp_path / name, data)
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_sign_between_the_columns_of_a_table_is_the_one_of_its_header(tmp_path, sign):
    data = f"name{sign}town\nOda{sign}Harrow\n{sign}\nTom{sign}Bay\n".encode()
    (tmp_path / "x.csv").write_bytes(data)
    pieces = read_document(tmp_path / "x.csv", data)
    assert [(piece.text, piece.row) for piece in pieces] == [
        ("name: Oda\ntown: Harrow", 1),
        ("name: Tom\ntown: Bay", 3),
    ]


def test_pieces_are_no_longer_than_they_may_be_and_cut_at_the_best_place(tmp_path):
    def pieces(text):
        (tmp_path / "x.txt").write_text(text)
        return [piece.text for piece in read_document(tmp_path / "x.txt", text.encode())]

    for sign in (".", "!", "?", ";", ","):
        cut = pieces(f"{'a word ' * 20}at its end{sign} " * 20)
        assert len(cut) > 1
        assert {piece[-1] for piece in cut} == {sign}
    first, second = "A sentence of some words. " * 28, "Another one, not too long. " * 40
    cut = pieces(f"{first}\n\n{second}")
    assert max(map(len, cut)) <= PIECE_CHARS == 800
    assert cut[0] == first.strip(), "the end of a paragraph is the best place"
    assert all(piece.endswith(".") for piece in cut)
    assert [[len(piece) for piece in pieces("x" * length)] for length in (800, 801)] == [[800], [800, 1]]


async def test_unknown_lore_is_refused_with_what_there_is(store, tmp_path):
    paths = files(tmp_path, **{f"n{n:02}_md": f"note {n}" for n in range(11)})
    await add(store, *paths)
    assert [file.name for file in await list_lore(store, "u", "c")] == [f"n{n:02}.md" for n in range(11)]
    with pytest.raises(UnknownLoreError) as caught:
        await remove_lore(store, "u", "c", "x.md")
    listed = ", ".join(repr(f"n{n:02}.md") for n in range(10))
    assert str(caught.value) == f"There is no lore named 'x.md' in campaign 'c'. There is: {listed}, …."
    await remove_lore(store, "u", "c", "n10.md")
    with pytest.raises(UnknownLoreError, match=r"n09\.md'\.$"):
        await remove_lore(store, "u", "c", "x.md")


async def test_a_shorter_file_leaves_no_piece_of_the_longer_one_and_says_that_it_was_replaced(store, tmp_path):
    (path,) = files(tmp_path, a_md="# x\n1\n# y\n2\n# z\n3")
    outcomes = [[done.outcome for done in await add(store, path)]]
    outcomes.append([done.outcome for done in await add(store, path)])
    path.write_text("# x\n4")
    outcomes.append([done.outcome for done in await add(store, path)])
    assert outcomes == [["added"], ["unchanged"], ["replaced"]]
    assert await texts(store) == ["x\n4"]
    assert [file.pieces for file in await list_lore(store, "u", "c")] == [1]


def test_names_are_shown_as_text():
    assert printable("a\u202eb\nc\x07") == "a?b?c?"
    assert printable("g\udce9.md") == "g?.md"
    assert printable("Größe 東.md") == "Größe 東.md"
