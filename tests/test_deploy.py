"""What is deployed: the image's recipe, the compose file, and its processes started by hand behind its proxy."""

import ast
import asyncio
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import quote, urlsplit

import httpx
import pytest
import yaml
from issuer import AUDIENCE, SECRET, signed
from program import start
from test_monitoring import samples
from web_server import ROOT, Visitor, address_of, page_server, say, serving, settle

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError
from questbook.graphs.forgetting import suppression
from questbook.graphs.identity import tokens
from questbook.graphs.local.file_home import hold_file
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.monitoring.draining import VARIABLE as DRAIN_SECONDS
from questbook.graphs.terminal.cli import parser
from questbook.graphs.turn.run_guard import ADDRESS
from questbook.graphs.web import audit, guard, serve
from questbook.graphs.web.app import OF_A_CAMPAIGN

pytest_plugins = ["web_browser"]
EXTRAS = ("web", "identity", "ops", "otel", "postgres", "lore", "minilm")
IMAGE = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)?:[0-9]+\.[0-9]+\.[0-9]+[a-z0-9.-]*")
"""A plain name with a whole version, and no registry's host."""
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."


@pytest.fixture(scope="module")
def stages():
    """The stages of the Dockerfile: each a list of instructions with their arguments, the first one "FROM"."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.partition(" ") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = []
    for name, _, arguments in lines:
        if name == "FROM":
            found.append([])
        found[-1].append((name, " ".join(arguments.split())))
    return found


def only(stage, wanted):
    return [arguments for name, arguments in stage if name == wanted]


def copied(stages):
    """What the Dockerfile copies from the checkout."""
    lines = [arguments.split() for stage in stages for arguments in only(stage, "COPY")]
    return [source for words in lines if not words[0].startswith("--from") for source in words[:-1]]


def test_the_image_is_built_of_pinned_stages_and_runs_as_nobody_in_particular(stages):
    build, last = stages
    for stage in stages:
        assert IMAGE.fullmatch(stage[0][1].partition(" AS ")[0]), stage[0]
    [user] = only(last, "USER")
    assert int(user.partition(":")[0]) > 1000
    assert [name for name, _ in last].index("USER") < [name for name, _ in last].index("ENTRYPOINT")
    text = " ".join(arguments for stage in stages for _, arguments in stage)
    assert not re.search(r"\b(apt-get|apk|gcc|build-essential|sudo|curl)\b", text), (
        "no compiler, nothing fetched by hand"
    )
    assert all("-c constraints.txt" in line for line in only(build, "RUN") if "pip install" in line)
    assert not [line for line in only(last, "RUN") if "pip" in line]


def test_the_image_starts_what_the_command_line_understands_and_asks_it_for_its_health(stages):
    [entry], [command], [health] = (only(stages[-1], name) for name in ("ENTRYPOINT", "CMD", "HEALTHCHECK"))
    assert json.loads(entry) == ["questbook"]
    flags = parser().parse_args(json.loads(command))
    assert (flags.command, flags.host, flags.port, flags.no_browser) == ("web", "0.0.0.0", 8000, True)
    assert f"127.0.0.1:{flags.port}/health" in health
    assert only(stages[-1], "EXPOSE") == [str(flags.port)]
    check = json.loads(health[health.index("[") :])
    compile(check[2], "HEALTHCHECK", "exec")


def test_what_is_copied_is_there_and_nothing_else_is_sent(stages):
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert rules[0] == "*", "what nobody has named stays out"
    sources = [source.rstrip("/") for source in copied(stages)]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {rule[1:] for rule in rules if rule[0] == "!"} == {source.partition("/")[0] for source in sources}
    for secret in (".env", ".git", "graphs/.env", "memory/memory.db", "tests", "graphs/__pycache__"):
        last = [rule for rule in rules if fnmatch(secret, rule.lstrip("!").replace("**/", "*"))][-1]
        assert last[0] != "!", secret


@pytest.fixture(scope="module")
def installed():
    """The names of what the image installs: the dependencies, and what its extras bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for name in EXTRAS for line in project["optional-dependencies"][name]]
    return {re.match(r"[\w-]+(\[\w+\])?", line)[0].lower().replace("_", "-") for line in lines}


def test_the_image_can_do_both_log_ins(installed):
    modules = {module.partition(".")[0] for module in imported_by(ROOT / "graphs" / "identity" / "tokens.py")}
    others = modules - {"questbook"} - sys.stdlib_module_names
    assert others == {"httpx", "jwt"}, "what checks an issuer's tokens needs"
    assert {"httpx", "pyjwt[crypto]", "starlette", "uvicorn"} <= installed


def imported_by(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_all_that_the_image_installs_is_pinned(installed):
    names = {name.partition("[")[0] for name in installed}
    pinned = [line.partition("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").open()]
    assert names - set(pinned) == set()
    assert str(EXTRAS) in (ROOT / "Dockerfile").read_text(), "those are the image's extras"


@pytest.mark.slow
def test_the_package_can_be_built_of_what_is_copied_alone(stages, tmp_path):
    context = tmp_path / "context"
    for source in copied(stages):
        target = context / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / source, target)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path]
    subprocess.run([*command, context], check=True, capture_output=True)
    assert list(tmp_path.glob("questbook-*.whl"))


SERVICE = {
    "image": str, "build": str, "init": bool, "restart": str, "environment": dict, "depends_on": dict, "ports": list,
    "stop_grace_period": str, "read_only": bool, "tmpfs": list, "cap_drop": list, "security_opt": list, "volumes": list,
    "healthcheck": dict, "command": list,
}  # fmt: skip
"""Keys of a service, of those that the compose specification has, with their types."""


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_compose_file_has_the_shape_of_the_specification(compose):
    assert set(compose) <= {"name", "services", "volumes", "x-settings", "x-page"}
    assert set(compose["services"]) == {"postgres", "migrate", "page1", "page2", "proxy"}
    for name, service in compose["services"].items():
        assert {key: type(value) for key, value in service.items()} == {key: SERVICE[key] for key in service}, name
        assert all(isinstance(value, str) for value in service["environment"].values()), "YAML reads no number or yes"
        for other, condition in service.get("depends_on", {}).items():
            ends, is_checked = "command" in compose["services"][other], "healthcheck" in compose["services"][other]
            wanted = "service_completed_successfully" if ends else "service_healthy"
            assert condition == {"condition": wanted}, (name, other)
            assert ends or is_checked or "build" in compose["services"][other], f"{other} says when it is healthy"
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in compose["volumes"] or (ROOT / source).is_file(), volume
        if "build" not in service:
            assert IMAGE.fullmatch(service["image"].replace(":0.8.1-pg17", ":0.8.1")), service["image"]


def test_the_pages_are_alike_and_only_the_proxy_is_reached(compose):
    services = compose["services"]
    pages = [services[name] for name in ("page1", "page2")]
    addresses = [page["environment"][ADDRESS] for page in pages]
    assert addresses == ["page1:8000", "page2:8000"], "the names by which the proxy knows them"
    assert services["proxy"]["environment"]["QUESTBOOK_PAGES"].split() == addresses
    shared = [page | {"environment": page["environment"] | {ADDRESS: ""}} for page in pages]
    assert shared[0] == shared[1]
    assert parser().parse_args(services["migrate"]["command"]).command == "migrate"
    assert services["migrate"]["environment"] | {ADDRESS: ""} == shared[0]["environment"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    page = services["page1"]
    drains = int(page["environment"][DRAIN_SECONDS])
    assert int(page["stop_grace_period"].rstrip("s")) > drains + 5, "docker does not kill what is still draining"
    database = urlsplit(re.sub(r"\$\{.*?\}", "x", page["environment"]["QUESTBOOK_DATABASE"]))
    assert database.scheme == "postgresql"
    named = services["postgres"]["environment"]
    assert (database.username, database.path) == (named["POSTGRES_USER"], f"/{named['POSTGRES_DB']}")
    assert database.hostname in services


def test_secrets_come_from_outside_and_the_needed_ones_are_asked_for(compose):
    text = (ROOT / "compose.yaml").read_text()
    needed = set(re.findall(r"\$\{(\w+):\?", text))
    assert needed == {"POSTGRES_PASSWORD", "QUESTBOOK_FORGOTTEN_KEY"}
    for name, value in _environment(compose):
        if re.search("PASSWORD|KEY|TOKEN|PEOPLE|DATABASE|SECRET", name):
            assert "${" in value, name


def _environment(compose):
    return [pair for service in compose["services"].values() for pair in service["environment"].items()]


_VARIABLE = re.compile(r"\$\{(\w+):([?-])([^}]*)\}")


def settings_of(compose, **given):
    """Return a page's environment, as docker compose makes it of the variables that are given."""
    page = compose["services"]["page1"]["environment"]
    assert not [value for value in page.values() if "$" in _VARIABLE.sub("", value)], "no other forms are used"

    def value_of(match):
        name, how, other = match.groups()
        assert given.get(name) or how == "-", f"{name}: {other}"
        return given.get(name) or other

    return {name: _VARIABLE.sub(value_of, value) for name, value in page.items()}


KEYS = {"POSTGRES_PASSWORD": "x", "QUESTBOOK_FORGOTTEN_KEY": "k" * 32}
OIDC = {tokens.ISSUER: "https://login.example.org", tokens.AUDIENCE: AUDIENCE}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "they must sign in: set QUESTBOOK_PEOPLE to names and tokens .* or an issuer, QUESTBOOK_OIDC_ISSUER"),
        (OIDC | {"QUESTBOOK_PEOPLE": f"ann:{'a' * 20}"}, "Take QUESTBOOK_PEOPLE, .* or an issuer's tokens; not both"),
        ({tokens.ISSUER: "https://login.example.org"}, "QUESTBOOK_OIDC_AUDIENCE is missing"),
        ({"QUESTBOOK_PEOPLE": f"ann:{'a' * 20}"}, ""),
        (OIDC, ""),
        (OIDC | {tokens.KEYS_URL: "https://login.example.org/keys"}, ""),
        (OIDC | {tokens.SECRET: SECRET}, ""),
    ],
)
def test_a_page_of_the_compose_file_needs_one_log_in_and_says_so(compose, stages, tmp_path, monkeypatch, given, says):
    for name, value in settings_of(compose, **KEYS, **given).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(serve, "start_logging", lambda: None)
    monkeypatch.setattr(serve.socket, "create_server", Mock(side_effect=LookupError("it begins")))
    flags = parser().parse_args(json.loads(only(stages[-1], "CMD")[0]))
    with pytest.raises(QuestbookError if says else LookupError, match=says or "it begins"):
        asyncio.run(serve.serve(Context(), flags))


def test_what_must_outlive_a_container_is_not_kept_in_it(compose, stages):
    page = compose["services"]["page1"]
    assert [place.partition(":")[0] for place in page["tmpfs"]] == ["/tmp", "/data"]
    settings = settings_of(compose, **KEYS)
    assert settings[audit.VARIABLE] == "stderr", "to the containers' logs: the data directory goes with the container"
    listed, key = Path(settings[suppression.VARIABLE]), settings[suppression.KEY_VARIABLE]
    assert key == KEYS["QUESTBOOK_FORGOTTEN_KEY"]
    assert page["volumes"] == [f"forgotten:{listed.parent}"]
    assert "forgotten" in compose["volumes"]
    # A new volume is as the image's directory: of who runs it, for else the list could not be written.
    made = re.search(r"install -d -m 700 -o (\d+) -g (\d+) (\S+)", " ".join(only(stages[-1], "RUN")))
    assert f"{made[1]}:{made[2]}" == only(stages[-1], "USER")[0]
    assert made[3] == str(listed.parent)
    for name in ("page1", "page2", "migrate"):
        assert compose["services"][name]["volumes"] == page["volumes"], "`questbook forget --again` reads it there"


def free_port():
    """Return a port that no outgoing connection takes while its program is away: one below those."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@contextmanager
def proxy_of(addresses):
    """Start the proxy of the compose file in front of pages, by their addresses; return its URL."""
    caddy = shutil.which("caddy") or pytest.skip("needs caddy")
    with tempfile.TemporaryDirectory() as state:
        url = f"http://127.0.0.1:{free_port()}"
        names = {"QUESTBOOK_SITE": url, "QUESTBOOK_PAGES": " ".join(addresses), "PATH": os.environ["PATH"]}
        names |= {"XDG_DATA_HOME": state, "XDG_CONFIG_HOME": state}
        command = [caddy, "run", "--config", ROOT / "deploy" / "Caddyfile", "--adapter", "caddyfile"]
        proxy = subprocess.Popen(command, env=names, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: answers(f"{url}/"))
            yield url
        finally:
            proxy.kill()
            proxy.wait()


class Pages:
    """Two pages on one home, each with an address that it keeps when it is started again; `pages[0]` is a process."""

    def __init__(self, home, environment):
        self._home, self._environment = home, environment
        self.addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self._programs = [self._begin(address) for address in self.addresses]
        for page in self._programs:
            page.url = address_of(page)

    def __getitem__(self, number):
        return self._programs[number]

    def _begin(self, address):
        named = self._environment | {ADDRESS: address}
        return serving(self._home, "--port", address.rpartition(":")[2], **named)

    def start_again(self, number):
        """Start a page that has ended, and wait until it is ready."""
        self._programs[number].communicate()
        page = self._programs[number] = self._begin(self.addresses[number])
        page.url = address_of(page)
        wait_until(lambda: answers(f"{page.url}/ready"))

    def end(self):
        for page in self._programs:
            page.kill()
            page.communicate()


@contextmanager
def proxied(home, environment):
    """Start two pages on one home, and the proxy of the compose file in front; return its URL and the pages."""
    shutil.which("caddy") or pytest.skip("needs caddy")
    with ExitStack() as programs:
        pages = Pages(home, environment)
        programs.callback(pages.end)
        yield programs.enter_context(proxy_of(pages.addresses)), pages


def answers(url):
    try:
        return httpx.get(url, timeout=5).status_code in (200, 401)  # 401: the page asks who you are
    except httpx.TransportError:
        return False


def wait_until(is_so, seconds=40):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.1)


def open_at(pages):
    return [samples(page.url)["questbook_open_campaigns",] for page in pages]


class StandIn(ThreadingHTTPServer):
    """A page's stand-in: it refuses each campaign that is `held` elsewhere, and notes what it is asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), StandInHandler)
        self.address, self.held, self.asked = f"127.0.0.1:{self.server_port}", {}, []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class StandInHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        path, holder = self.path, self.server.held.get(self.path.rpartition("/")[0])
        if path != "/ready":
            self.server.asked.append((self.command, path, body))
        text = "held" if holder else f"{self.server.address} has {body}"
        lines = ["HTTP/1.1 409 Conflict", f"Questbook-Held-By: {holder}"] if holder else ["HTTP/1.1 200 OK"]
        head = "\r\n".join([*lines, f"Content-Length: {len(text)}", "", ""])
        self.wfile.write(f"{head}{text if self.command != 'HEAD' else ''}".encode())

    def log_message(self, *_):
        pass

    do_GET = do_HEAD = do_POST = answer  # noqa: N815


@pytest.fixture
def stand_ins():
    """Two pages, a stranger, and the URL of the proxy in front of the pages."""
    with StandIn() as one, StandIn() as other, StandIn() as stranger, proxy_of([one.address, other.address]) as url:
        yield [one, other], stranger, url


TOLD = ("I look around.", "I wait.", "I sing.", "I listen.")
NAMES = ["isle", quote("Wer da? 100% Küste #2 {http.request.host}", safe="")]


def hashed(url, pages, path):
    """Return the page that a campaign's path leads to, and the other one; nobody is asked for anything afterwards."""
    for page in pages:
        page.asked.clear()
    assert httpx.get(f"{url}{path}/").status_code == 200
    pages = sorted(pages, key=lambda page: len(page.asked), reverse=True)
    assert [len(page.asked) for page in pages] == [1, 0]
    pages[0].asked.clear()
    return pages


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["/c/", "/a/", "/u/ann%40login.example.org/c/"])
def test_the_proxy_brings_each_request_to_the_page_that_holds_the_campaign(stand_ins, kind, name):
    pages, _, url = stand_ins
    path, words = kind + name, "What I say. " * 50_000
    hashed_page, holder = hashed(url, pages, path)
    answer = httpx.post(f"{url}{path}/say", content="I sing.")
    assert answer.text == f"{hashed_page.address} has I sing.", "it is free, and opened where the hash leads"
    assert hashed_page.asked == [("HEAD", f"{path}/say", ""), ("POST", f"{path}/say", "I sing.")]
    assert holder.asked == []

    for page in pages:
        page.held[path] = holder.address
        page.asked.clear()
    holder.held.clear()
    answers = [httpx.get(f"{url}{path}/story?x=1"), httpx.post(f"{url}{path}/page?x=1", content=words)]
    assert [answer.text for answer in answers] == [f"{holder.address} has ", f"{holder.address} has {words}"]
    asked = [("GET", f"{path}/story?x=1", ""), ("POST", f"{path}/page?x=1", words)]
    assert holder.asked == asked, "each once, and whole"
    assert hashed_page.asked == [asked[0], ("HEAD", f"{path}/page?x=1", "")], "it has nothing of what is sent"


def test_the_proxy_asks_nobody_whom_a_client_or_an_answer_names(stand_ins):
    pages, stranger, url = stand_ins
    other = hashed(url, pages, "/c/isle")[1]
    headers = {"Questbook-Held-By": other.address, "X-Questbook-Campaign": "/c/reef"}
    for answer in (httpx.get(f"{url}/c/isle/", headers=headers), httpx.post(f"{url}/c/isle/say", headers=headers)):
        assert answer.status_code == 200
        assert other.asked == [], "what a client says counts for nothing"
    for named in (stranger.address, f"terminal:{os.getpid()}", f"{other.address},{stranger.address}", "{env.PATH}"):
        for page in pages:
            page.held = {"/c/isle": named}
        answers = [httpx.get(f"{url}/c/isle/"), httpx.post(f"{url}/c/isle/say", content="I sing.")]
        assert [answer.status_code for answer in answers] == [409, 409]
        assert [answer.text for answer in answers] == ["held", "held"], "the page's own words"
        assert other.asked == stranger.asked == []


def test_the_proxy_takes_what_a_page_takes_and_not_much_more():
    most = max(limit for limit, _ in guard._LIMITS.values())
    [taken] = re.findall(r"max_size (\d+)MB", (ROOT / "deploy" / "Caddyfile").read_text())
    assert most < int(taken) * 1_000_000 < most * 1.1


def test_without_a_page_the_proxy_says_so(stand_ins, monkeypatch):
    monkeypatch.setattr(StandInHandler, "do_GET", lambda self: setattr(self, "close_connection", True))
    answer = httpx.get(f"{stand_ins[2]}/c/isle/", timeout=30)
    assert (answer.status_code, answer.headers["retry-after"]) in ((502, "5"), (503, "5"))
    assert answer.text.startswith("The games cannot be reached at the moment.")


def test_what_names_its_campaign_in_its_body_is_not_sent_on_without_it(stand_ins):
    pages, _, url = stand_ins
    for page in pages:
        page.held = {"": pages[0].address}
        page.asked.clear()
    answer = httpx.post(f"{url}/import", content="a campaign")
    assert (answer.status_code, answer.text) == (409, "held")
    assert [asked for page in pages for asked in page.asked] == [("POST", "/import", "a campaign")]


@pytest.mark.files("holds a campaign by its file")
def test_by_head_the_proxy_finds_who_holds_a_campaign_and_nothing_is_done(tmp_path):
    changes = sorted({route.path[1:] for route in OF_A_CAMPAIGN if "POST" in route.methods})
    with page_server(tmp_path) as server, Visitor(server.url) as visitor:
        visitor.say(MIRA)
        before, lock = visitor.get("chronicle").text, server.home.lock_of(thread_id_of("ann", "isle"))
        for path in changes:
            answer = visitor.web.head(visitor.path + path)
            assert (answer.status_code, answer.content) in [(204, b""), (200, b"")], path
        assert visitor.get("chronicle").text == before
    with hold_file(lock, "It is held."), page_server(tmp_path) as server, Visitor(server.url) as visitor:
        for path in changes:
            assert visitor.web.head(visitor.path + path).status_code == 409, "it is opened here, or refused"


@pytest.fixture
def database(tmp_path):
    """A database as the compose file names it, with the tables of `questbook migrate`."""
    database = {"QUESTBOOK_DATABASE": pytest.importorskip("postgres").new_database()}
    done = start(tmp_path, "migrate", **database)
    assert done.returncode == 0, done.stderr
    return database


@pytest.fixture(params=["files", "database"])
def environment(request):
    """Where games are kept: in the data directory, or in a database."""
    return {} if request.param == "files" else request.getfixturevalue("database")


@pytest.mark.slow
def test_two_pages_behind_the_proxy_play_on_when_one_is_killed(tmp_path):
    with proxied(tmp_path, {}) as (url, pages), ExitStack() as visits:
        visitors = []
        # Where a campaign goes is as the toss of a coin: the hash is of its path and of the pages' ports.
        while len(visitors) < 4 or min(open_at(pages)) == 0:
            assert len(visitors) < 24, f"they are shared out: {open_at(pages)}"
            visitors.append(visits.enter_context(Visitor(url, f"/c/isle{len(visitors)}/")))
            visitors[-1].say(MIRA)
            assert sum(open_at(pages)) == len(visitors), "each is open in one process"
        campaigns = [visitor.path for visitor in visitors]
        for visitor in visitors:
            visitor.say("I look around.")
            assert visitor.post("undo", turn="2").status_code == 204
        assert sum(open_at(pages)) == len(campaigns), "each request of one went to the same process"
        for path in ("metrics", "ready", "health"):
            assert httpx.get(f"{url}/{path}").status_code == 404, "not for the world"

        pages[0].send_signal(signal.SIGKILL)
        pages[0].wait(10)
        wait_until(lambda: all(answers(url + path) for path in campaigns))
        for visitor in visitors:
            visitor.say("I wait.")
            assert 'data-turn="2"' in visitor.get("story").text, "one was undone, one was played"
        assert open_at(pages[1:]) == [len(campaigns)]


def test_the_processes_of_the_docs_have_the_addresses_that_the_proxy_knows():
    text = (ROOT / "docs" / "deploy.md").read_text()
    named = re.search(r'QUESTBOOK_PAGES="([^"]+)"', text)[1].split()
    begun = re.findall(rf"{ADDRESS}=(\S+:(\d+)) questbook web --port (\d+)", text)
    assert [address for address, _, _ in begun] == named
    assert all(port == served for _, port, served in begun)


@pytest.mark.slow
def test_what_was_played_elsewhere_while_a_page_was_away_goes_on_there(tmp_path, database):
    with proxied(tmp_path, database) as (url, pages), ExitStack() as visits:
        there = []  # who plays at the first page
        for number in range(40):
            visitor, before = visits.enter_context(Visitor(url, f"/c/isle{number}/")), open_at(pages)[0]
            visitor.say(MIRA)
            there += [visitor] if open_at(pages)[0] > before else []
            if len(there) == 6:
                break
        player, *others = there
        pages[0].kill()
        pages[0].wait(10)
        wait_until(lambda: answers(url + player.path))
        player.say("I look around.")

        pages.start_again(0)
        for other in others:  # until the hash leads there again
            time.sleep(3)
            assert other.get().status_code == 200
            if open_at(pages)[0]:
                break
        assert open_at(pages)[0] == 1
        assert holder_of(pages, player) == pages.addresses[1]

        said = player.post("say", text="I wait.", ticket="one")  # as from a page that is open
        assert said.status_code == 200, said.text
        assert {"piece", "replied", "pages"} <= {kind for kind, _ in player.wait_for()}, (
            "the stream comes as it is made"
        )
        assert player.post("edit", text="I sing.", turn="3").status_code == 204
        player.wait_for("replied")
        player.wait_for()
        assert player.post("undo", turn="3").status_code == 204
        player.say("I listen.")
        told = re.findall(r"I [a-z ]+\.", player.get("chronicle.md").text)
        assert [words for words in told if words in TOLD] == ["I look around.", "I listen."], "each once, none is lost"
        upload = {"files": ("reef.md", b"The reef is called Long Tooth. " * 20_000)}
        assert "reef.md" in player.web.post(f"{player.path}lore", files=upload).text
        assert holder_of(pages, player) == pages.addresses[1], "it stays where it was"


def holder_of(pages, visitor):
    """Return which page holds a campaign, as the first one says that does not."""
    answer = httpx.get(pages[0].url + visitor.path)
    assert answer.status_code == 409
    return answer.headers["questbook-held-by"]


@pytest.mark.slow
def test_a_page_that_drains_gives_its_campaigns_to_the_other(tmp_path, environment):
    campaigns = [f"isle{number}" for number in range(4)]
    with proxied(tmp_path, environment) as (url, pages), ExitStack() as visits:
        visitors = [visits.enter_context(Visitor(url, f"/c/{name}/")) for name in campaigns]
        for visitor in visitors:
            visitor.say(MIRA)
        pages[1].terminate()
        assert pages[1].wait(20) == -signal.SIGTERM
        wait_until(lambda: all(answers(f"{url}/c/{name}/") for name in campaigns))
        for visitor in visitors:
            visitor.say("I look around.")
        assert open_at(pages[:1]) == [len(campaigns)]


def signed_in(browser, url, name):
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(30_000)
    page.goto(url)
    page.fill("[name=token]", signed("https://login.example.org", name, secret=SECRET))
    page.keyboard.press("Enter")
    page.locator("#name").wait_for()
    return page


def begin(page, campaign, words):
    page.fill("#name", campaign)
    page.click("button:text-is('Begin')")
    page.locator(".opening").wait_for()
    say(page, words)


def said_on(page):
    """What was said, by the page as it is loaded again."""
    page.reload()
    page.locator("#text").wait_for()
    return [words.rpartition(": ")[2] for words in page.locator(".turn .player").all_inner_texts()]


@pytest.mark.slow
def test_two_browsers_play_an_evening_on_two_pages_and_one_is_killed(browser, tmp_path, database):
    log_in = {tokens.ISSUER: "https://login.example.org", tokens.AUDIENCE: AUDIENCE, tokens.SECRET: SECRET}
    with proxied(tmp_path, database | log_in) as (url, pages):
        ann, bob = signed_in(browser, url, "ann"), signed_in(browser, url, "bob")
        begin(ann, "isle", MIRA)
        holder = open_at(pages).index(1)
        say(ann, "I tell everybody about the Velvet Anchor.")
        ann.click("a:text-is('Settings')")
        ann.fill("#guests", "bob@login.example.org")
        ann.click("button:text-is('Share')")
        ann.locator("#share-done .done").wait_for()
        ann.go_back()
        begin(bob, "reef", "I'm Tam, a human wizard who hides the Zephyrite Lamp.")
        bob.click(".brand")
        bob.click("a:has-text('isle')")
        say(bob, "I look around.")

        ann.locator(".turn .player", has_text="look around").wait_for()  # a share: each sees what the other says
        say(ann, "I wait.")
        ann.locator(".plain", has_text="Undo").click()
        ann.locator(".turn .player", has_text="I wait.").wait_for(state="detached")
        bob.locator(".turn .player", has_text="I wait.").wait_for(state="detached")
        say(ann, "I sing.")
        ann.click("text=Change your words")  # a fork
        ann.fill("[id^=edit-]", "I hum.")
        ann.click("text=Play it again")
        bob.locator(".turn:not(.live) .player", has_text="I hum.").wait_for()
        settle(bob)

        bob.fill("#text", "I listen.")
        bob.press("#text", "Enter")
        pages[holder].kill()
        bob.locator(".turn:not(.live) .player:text('I listen.'), #unheard:text('stay')").first.wait_for(timeout=60_000)
        if bob.input_value("#text"):  # it was killed before it had the words; then they stand where they were written
            bob.locator("#unheard:empty").wait_for(state="attached", timeout=60_000)
            bob.press("#text", "Enter")
        bob.locator(".turn:not(.live) .player", has_text="I listen.").wait_for(timeout=60_000)
        settle(bob)
        say(ann, "I go on.")
        told = [MIRA, "I tell everybody about the Velvet Anchor.", "I look around.", "I hum.", "I listen.", "I go on."]
        assert said_on(ann) == said_on(bob) == told, "nothing is lost or doubled"
        assert "Zephyrite" not in ann.content()
        assert ann.locator("#tree [role=treeitem]").count() == 3, "what was undone and forked is kept"

        pages.start_again(holder)  # the hash leads to it again, and the other one holds what is played
        time.sleep(4)
        say(bob, "I rest.")
        say(ann, "I leave.")
        told += ["I rest.", "I leave."]
        assert said_on(ann) == said_on(bob) == told, "nothing is lost or doubled"
        bob.click(".brand")
        bob.click("a:has-text('reef')")
        say(bob, "I look around.")
        assert "Velvet" not in bob.content()
        assert "Mira" not in bob.locator("#story").inner_text()
        assert signed_in(browser, url, "eve").goto(ann.url).status == 404
