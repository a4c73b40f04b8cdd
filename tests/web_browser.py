"""Fixtures of the page's tests: a browser, a server, a page that asks nobody else; and what a person did on a page."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from web_server import CHROMIUM, page_server

from questbook.graphs.web.app import create_app

TEMPLATES = Path(__file__).parent.parent / "graphs" / "web" / "templates"
_CONTROLS = ("a", "button", "form", "input", "select", "summary", "textarea", "li")
_TELLING = (
    "action", "data-view", "href", "hx-get", "hx-post", "hx-vals", "id", "name", "popovertarget",
    "popovertargetaction", "role",
)  # fmt: skip
_WATCH = """
for (const kind of ["click", "submit", "input", "change"]) addEventListener(kind, (event) => {
  const used = event.target.closest?.("a, button, form, input, select, summary, textarea, [role=treeitem]");
  if (!used || (kind === "click" && /^(INPUT|SELECT|TEXTAREA)$/.test(used.tagName))) return;
  const attributes = Object.fromEntries([...used.attributes].map(({ name, value }) => [name, value]));
  const words = used.matches("button, summary") ? used.innerText : "";
  window.used_by_person([used.tagName.toLowerCase(), attributes, words]);
}, true);
"""


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("needs Chromium, which .ci/run installs")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def site(tmp_path):
    with page_server(tmp_path / "home", developer=True) as server:
        yield server


@pytest.fixture
def page(browser, site):
    """A page of the campaign; what it asks of another host, an error of the script or of the policy fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, problems = context.new_page(), []
    page.on("request", lambda request: request.url.startswith((site.url, "blob:")) or problems.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda told: (
            told.type == "error" and "Policy" in told.text and problems.append((told.text[:90], told.location))
        ),
    )
    page.goto(f"{site.url}/c/isle/")
    yield page
    context.close()
    assert not problems, problems


class Usage:
    """What a person used of the page: its controls, and the routes that were asked.

    Args:
        page: The page; all that is loaded in it is watched.
    """

    def __init__(self, page):
        self.controls, self.requests = [], set()
        page.context.expose_binding("used_by_person", lambda _, used: self.controls.append(used))
        page.context.add_init_script(_WATCH)
        page.on("request", lambda asked: self.requests.add((asked.method, _path(asked.url))))
        page.on("download", lambda sent: self.requests.add(("GET", _path(sent.url))))

    def missing_routes(self, server):
        """Return the routes of the app that nobody asked; a campaign and a companion have the same ones."""
        missing = []
        for route in create_app(server.context, server.home, developer=True).routes:
            if route.path == "/a/{campaign}":
                continue
            for inner in getattr(route, "routes", None) or [route]:
                path = route.path + (inner.path if inner is not route else "")
                for method in getattr(inner, "methods", None) or ():
                    pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)).replace("/c/", "/[ca]/")
                    asked = any(m == method and re.fullmatch(pattern, p) for m, p in self.requests)
                    if method != "HEAD" and not asked:
                        missing.append(f"{method} {path}")
        return sorted(missing)

    def missing_controls(self):
        """Return the controls and the calls of `field` and `add` in the templates that nobody used."""
        return sorted(str(control) for control in controls() if not any(_fits(control, used) for used in self.controls))


def _path(url):
    return "/" + url.split("/", 3)[3].split("?")[0]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.controls = []

    def handle_starttag(self, tag, attributes):
        telling = {name: value or "" for name, value in attributes if name in _TELLING}
        hidden = ("type", "hidden") in attributes
        if tag in _CONTROLS and not hidden and (tag != "li" or telling.get("role") == "treeitem"):
            self.controls.append([tag, telling, ""])

    def handle_data(self, text):
        if self.controls and self.controls[-1][0] in ("button", "summary") and not self.controls[-1][2]:
            self.controls[-1][2] = text.strip()


def controls():
    """Return each control of the templates: tag, what tells it from others, and its words; \\0 stands for anything."""
    seen = []
    for path in sorted(TEMPLATES.glob("*.html")):
        text = path.read_text("utf-8")
        calls = re.findall(r'\b(?:field|add)\("(\w+)", (\[[^\]]*\](?: \+ \[[^\]]*\])?)', text)
        text = re.sub(r"\{% if [^%]*%\}[^<]*?\{% else %\}[^<]*?\{% endif %\}(?=</summary>)", "\0", text)
        text = re.sub(r"\{%.*?%\}", "", re.sub(r"\{\{.*?\}\}", "\0", text, flags=re.DOTALL), flags=re.DOTALL)
        reader = _Reader()
        reader.feed(text)
        seen += reader.controls
        for page, names in calls:
            parts = [part.strip() for part in names.strip("[]").split(",")]
            query = "".join(f"&path={part.strip(chr(34)) if part.startswith(chr(34)) else chr(0)}" for part in parts)
            seen.append(["button", {"hx-get": f"\0/field?page={page}{query}"}, ""])
    return [list(control) for control in dict.fromkeys(map(_frozen, seen))]


def _frozen(control):
    return control[0], tuple(control[1].items()), control[2]


def _fits(control, used):
    tag, telling, words = control
    return (
        tag == used[0]
        and all(_like(value, used[1].get(name)) for name, value in telling)
        and (not words or _like(words, used[2].strip()))
    )


def _like(pattern, text):
    return text is not None and re.fullmatch(
        ".*".join(map(re.escape, pattern.split("\0"))), text, re.DOTALL | re.IGNORECASE
    )
