"""HTML as Markdown, in time that grows with the length of the file and no faster.

Python's own parser, under Beautiful Soup, looks for the end of each tag and comment up to the end of the file: 360 kB
of `<title` take minutes. So what begins and does not end is made text before it parses.
"""

from __future__ import annotations

import re

_INLINE_TAGS = ["a", "b", "em", "i", "img", "strong"]  # only their text is kept

_HIDDEN = re.compile(r"<!--|<(?P<tag>title|script|style)\b", re.IGNORECASE)
_END = {"": re.compile("-->")} | {
    tag: re.compile(rf"</{tag}\s*+>", re.IGNORECASE) for tag in ("title", "script", "style")
}
_SECTION = re.compile(r"<!\[(?:CDATA\[|[^<>\]]*+\]>)")  # `<![if !IE]>`, as word processors write it
# Possessive, so that nothing is tried twice. A scan ends at the next "<" outside of quotation marks; at most three
# scans (outside, in single, in double marks) can pass over the same text.
_NO_TAG = re.compile(r"""<(?!(?:[a-z/?]|!doctype)(?:[^<>"']++|"[^"]*+"|'[^']*+')*+>)""", re.IGNORECASE)
_BLANK = re.compile(r"&(?:#0*+(?:9|10|13|32)(?!\d)|#x0*+(?:9|a|d|20)(?![\da-f])|(?:tab|newline)\b);?", re.IGNORECASE)
_MANY_BLANKS = re.compile(r"\s{100,}+")


def to_markdown(html: str) -> str:
    """Return what a page says as Markdown, without scripts, comments, its title and links.

    Raises:
        ImportError: If `markdownify` or Beautiful Soup is missing.
        RecursionError: If tags are nested too deep.
    """
    from langchain_community.document_transformers import MarkdownifyTransformer
    from langchain_core.documents import Document

    markdownify = MarkdownifyTransformer(strip=_INLINE_TAGS, escape_misc=False, escape_asterisks=False)
    (page,) = markdownify.transform_documents([Document(_sound(html))])
    return page.page_content.replace("\\_", "_")


def _sound(html: str) -> str:
    """Leave out what is not shown, and make every "<" text that begins no whole tag."""
    html = _MANY_BLANKS.sub("\n\n", _BLANK.sub(" ", _without_hidden(html)))
    return _NO_TAG.sub("&lt;", _SECTION.sub("", html))


def _without_hidden(html: str) -> str:
    """Leave out comments, scripts, styles and the title: a title that is a heading is in the page too."""
    parts, place = [], 0
    unclosed = set[str]()
    for start in _HIDDEN.finditer(html):
        tag = (start["tag"] or "").lower()
        if start.start() < place or tag in unclosed:
            continue
        end = _END[tag].search(html, start.end())
        if end is None:
            unclosed.add(tag)  # its text is kept, and nothing looks for the end a second time
            continue
        parts.append(html[place : start.start()])
        place = end.end()
    return "".join([*parts, html[place:]])
