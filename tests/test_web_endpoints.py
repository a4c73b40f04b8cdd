"""Every endpoint of the page against requests that are wrong, foreign, too large or incomplete: a table of answers."""

import httpx
import pytest
from page_sessions import token_header
from test_campaign_file import archive
from web_server import MIRA, Visitor, page_server

from questbook.graphs.web.app import OF_A_CAMPAIGN

ISLE = "/u/ann/c/isle/"
POSTS = sorted({route.path[1:] for route in OF_A_CAMPAIGN if "POST" in route.methods})
GETS = sorted({route.path[1:] for route in OF_A_CAMPAIGN if "GET" in route.methods} - {"panel/{panel}"})
OF_THE_OWNER = {
    "behind",
    "known",
    "settings",
    "export",
    "share",
    "put-away",
    "rename",
    "lore",
    "lore/remove",
    "forget",
    "retract",
}
LONG, TOO_LARGE = "9" * 5000, "x" * 1_200_000
WRONG = ["x", "-1", "0", "1e9", "²", LONG, "1" * 15, "\x00", "NaN", "<b>", "\ud7ff", "../.."]
FORM = {"content-type": "application/x-www-form-urlencoded"}
MULTIPART = {"content-type": "multipart/form-data; boundary=x"}


def ask(path, status, method="GET", /, who="ann", **options):
    """Return a line of the table: who asks for what, with which options of httpx, and what the server must answer."""
    return (who, method, path if path.startswith("/") else ISLE + path, status, options)


def asks(paths, status, *more, **options):
    return [ask(path, status, *more, **options) for path in paths]


def looks(name, values, status, **more):
    """Return a line for each value of one parameter."""
    path, _, name = name.partition("?")
    return [ask(path, status, params=more | {name: value}) for value in values]


def forms(name, values, status, **more):
    path, _, name = name.partition("?")
    return [ask(path, status, "POST", data=more | {name: value}) for value in values]


TABLE = {
    "the token, one fault at a time": [
        ask(path, 403, "POST", token=token)
        for path in POSTS
        for token in (
            [None, "", "x", "{t}x", "x{t}", "{t}{t}", "{swapped}", "é", LONG] if path == "stop" else [None, "x{t}"]
        )
    ]
    + [ask("stop", 403, "POST", token=None, params={"token": "{t}"}), ask("/import", 403, "POST", token="x")],
    "nobody": asks(GETS, 401, who=None) + asks(POSTS, 401, "POST", who=None) + asks(["/", "/new"], 401, who=""),
    "a stranger": asks([*GETS, "panel/sheet"], 404, who="eve") + asks(POSTS, 404, "POST", who="eve"),
    "a guest": asks([path for path in GETS if path in OF_THE_OWNER], 403, who="bob")
    + asks([path for path in POSTS if path in OF_THE_OWNER], 403, "POST", who="bob")
    + asks(["", "story", "panel/sheet", "chronicle", "earlier", "search", "events?brief"], 200, who="bob"),
    "a name that is not theirs": [
        ask(path + below, 404, method, who=who)
        for path in (
            "/u/ann/c/isle2/",
            "/u/Ann/c/isle/",
            "/u/ann%20/c/isle/",
            "/u/nobody/c/isle/",
            "/u//c/isle/",
            "/c/isle/",
            "/u/ann/x/isle/",
            "/u/ann/c/isle%00/",
            "/u/ann/a/companion/",
            "/u/ann/c/../../ann/c/isle/",
            "/u/ann/c/isle%2f/",
        )
        for who, method, below in (("eve", "GET", ""), ("bob2", "GET", "story"), ("eve", "POST", "stop"))
    ],
    "a user who says another name": [
        ask(
            "story",
            404,
            who="eve",
            headers={"x-forwarded-user": "ann", "cookie": "questbook_session=ann", "authorization": "ann"},
        ),
        ask("story", 404, who="eve", params={"user": "ann", "owner": "ann"}),
        ask("story", 404, who="ANN"),
        ask("story", 404, who="ann,eve"),
        ask("story", 404, who="~616e6e"),
    ],
    "another method": [
        ask(path, 405, method)
        for path in ("", "say", "settings", "export")
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS")
    ]
    + asks(sorted({*POSTS} - {*GETS}), 405)
    + asks(sorted({*GETS} - {*POSTS}), 405, "POST")
    + asks(["", "story", "settings"], 200, "HEAD"),
    "too large": forms("say?text", [TOO_LARGE], 413)
    + forms("page?value", [TOO_LARGE], 413)
    + forms("share?guests", [TOO_LARGE], 413)
    + forms("say?text", ["x" * 900_000], 409)
    + forms("line?name", ["x" * 900_000], 409)
    + forms("share?guests", ["x" * 201, ",".join(map(str, range(21)))], 409)
    + [
        ask(f"/u/ann/c/{'a' * 300}/", 409),
        ask(f"/u/ann/c/{'a' * 300}/stop", 409, "POST"),
        ask("/new", 303, params={"name": "a" * 3000}),
        ask("/new", 409, params={"name": "  "}),
    ]
    + [ask("lore", 400, "POST", files=[("files", (f"{n}.md", b"x")) for n in range(21)])],
    "no form at all": [
        *asks(["lore", "settings", "share", "retract"], 200, "POST"),
        *asks(["stop", "put-away", "wish"], 204, "POST"),
        *asks(["edit", "rewrite", "forget", "go", "line", "lore/remove", "rename", "/import"], 409, "POST"),
        ask("page", 404, "POST"),
        ask("say", 303, "POST"),
    ],
    "a form that is none": [
        ask(path, status, "POST", content=b"--x\r\n\xff{}[", headers=headers)
        for headers, statuses in [
            (MULTIPART, (400, 400, 400, 400)),
            ({"content-type": "multipart/form-data"}, (400, 400, 400, 400)),
            ({"content-type": "application/json"}, (303, 404, 200, 409)),
            (FORM, (303, 404, 200, 409)),
            ({}, (303, 404, 200, 409)),
        ]
        for path, status in zip(("say", "page", "lore", "/import"), statuses, strict=True)
    ],
    "numbers and places that are none": looks("earlier?before", WRONG, 200)
    + looks("events?after", WRONG, 200, brief="")
    + looks("memory?key", WRONG, 404)
    + looks("compare?other", WRONG, 409, one="main")
    + looks("field?path", WRONG, 404, page="quest")
    + looks("search?words", WRONG, 200)
    + asks(["panel/x", "panel/secrets", "panel/", "x", "static/x"], 404)
    + forms("go?where", WRONG, 409)
    + forms("retract?turn", WRONG, 409, sure="1")
    + forms("page?page", WRONG, 404, path="name")
    + forms("edit?turn", WRONG, 409, text="x")
    + forms("rewrite?turn", WRONG, 409, text="x")
    + forms("lore/remove?name", WRONG, 409)
    + forms("page?value", [number for number in WRONG if number != "0"], 409, page="quest", path=["condition", "hp"])
    + forms("page?value", ["-1", "x"], 409, page="quest", path=["inventory", "rope"])
    + forms("core?label", [*WRONG, "persona", "human"], 409, value="x")
    + forms("core?label", WRONG, 409, new="1")
    + forms("core?label", WRONG, 409, delete="1")
    + forms("settings?buffer_tokens", WRONG[:6], 409)
    + forms("page?path", ["secrets", "people/x/secret", LONG], 404, page="quest"),
    "a file that is none": [
        ask("/import", 409, "POST", files={"file": ("isle.zip", content)})
        for content in (b"", b"PK", b"x" * 1000, "{none}", "{bomb}")
    ],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server with a log-in, and Ann's game, which Bob may play; whatever fails inside fails the test."""
    home = tmp_path_factory.mktemp("endpoints")
    with page_server(home / "home", log_in=True, developer=True) as server, Visitor(server.url, ISLE, "ann") as ann:
        ann.say(MIRA)
        none = archive(home / "none.zip", drop=("thread",))
        bomb = archive(home / "bomb.zip", parts={"values.jsonl": b"[" + b"[]," * 300_000 + b"[]]"})
        yield server, ann, {"{none}": none.read_bytes(), "{bomb}": bomb.read_bytes()}


@pytest.mark.parametrize("lines", TABLE.values(), ids=TABLE)
@pytest.mark.files("a key with NUL is 404 there, and an error of PostgreSQL")
@pytest.mark.slow
def test_every_answer_is_the_one_of_the_table(site, lines):
    server, ann, files = site
    ann.post("share", guests="bob")
    deviations = []
    with httpx.Client(base_url=server.url, timeout=30) as web:
        for who, method, path, status, options in lines:
            options = {**options}
            said = options.pop("token", "{t}")
            headers = dict(options.pop("headers", {})) | ({} if who is None else {"x-user": who})
            if said is not None:
                token = token_header(server.home, who or "")["x-questbook-token"]
                said = said.replace("{t}", token).replace("{swapped}", token.swapcase())
                headers["x-questbook-token"] = said.encode()
            if "files" in options and isinstance(options["files"], dict):
                name, content = options["files"]["file"]
                options["files"] = {"file": (name, files.get(content, content))}
            answer = web.request(method, path, headers=headers, **options)
            if answer.status_code != status:
                deviations.append((who, method, path[:80], str(options)[:120], answer.status_code, status))
    assert not deviations


def test_the_table_has_every_endpoint_with_the_token_and_without_a_log_in():
    said = {(method, path) for lines in TABLE.values() for _, method, path, *_ in lines}
    assert {("POST", ISLE + path) for path in POSTS} <= said
    assert {("GET", ISLE + path) for path in GETS} <= said
    assert {*POSTS} & {*GETS} == {"known", "settings"}, "what changes something is no GET, which needs no token"
