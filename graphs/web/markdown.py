"""The Markdown of replies as HTML: emphasis, lists, tables, quotes and rules, as a whole or while it comes.

Nothing of it loads, links or runs: HTML, links and images stay characters, and a heading is a line in bold.
"""

from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markupsafe import Markup

from questbook.graphs.interface.text import clean


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    columns = state.src[state.bMarks[start] : state.eMarks[start]].count("|") + 1
    return columns * (end - start) <= 1000 and table(state, start, end, silent)  # a row may leave out all but one cell


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
_MARKDOWN.disable(["html_block", "html_inline", "link", "image", "autolink", "reference", "lheading", "code", "entity"])
_MARKDOWN.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
_MARKDOWN.add_render_rule("heading_open", lambda *_: "<p><strong>")
_MARKDOWN.add_render_rule("heading_close", lambda *_: "</strong></p>\n")
_MARKDOWN.add_render_rule("th_open", lambda *_: "<th>")  # without a style, which the page's policy refuses
_MARKDOWN.add_render_rule("td_open", lambda *_: "<td>")
_SHORT, _STEPS = 2000, 50  # beyond so many characters that may still change, a piece waits to be a fiftieth of them


@lru_cache(maxsize=1024)
def to_html(text: str) -> Markup:
    """Return Markdown as HTML, one element for each of its blocks."""
    return Markup(_MARKDOWN.render(clean(text)))  # noqa: S704 (the parser escapes all that is not its own)


class ComingText:
    """A message of Markdown that comes in pieces, of which only the last blocks are made into HTML again."""

    def __init__(self) -> None:
        self.text = ""  # as far as it has come
        self._new, self._open = "", ""  # what waits, and what is shown and may still change
        self._done, self._cost = 0, 0  # blocks before it; characters of its HTML
        self.blocks = 0  # elements that `to_html` makes of it

    def add(self, piece: str) -> tuple[int, Markup] | None:
        """Add a piece; return how many blocks stay as they are, and the HTML of all after them.

        Two blocks stay open: the last may turn out to be part of the one before, such as "2" of a list's "2. …". Where
        they are long, what adds little waits for more: None.
        """
        self.text += piece
        self._new += piece
        if len(self._new) * _STEPS < max(len(self._open), self._cost) - _SHORT:  # each time costs all that is open
            return None
        self._open, self._new = clean(self._open + self._new), ""
        done, html = self._done, to_html.__wrapped__(self._open)
        self._cost = len(html)
        starts = [token.map[0] for token in _MARKDOWN.parse(self._open) if token.map and not token.level]
        self.blocks = done + len(starts)
        if len(starts) > 2:
            self._open = "\n".join(self._open.split("\n")[starts[-2] :])
            self._done += len(starts) - 2
        return done, html
