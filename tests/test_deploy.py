"""What is deployed: the image's recipe, the compose file, and its processes started by hand behind its proxy."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from issuer import AUDIENCE, SECRET, signed
from program import start
from test_monitoring import samples
from web_server import ROOT, Visitor, address_of, say, serving, settle

from questbook.graphs.identity import tokens
from questbook.graphs.monitoring.draining import VARIABLE as DRAIN_SECONDS
from questbook.graphs.terminal.cli import parser

pytest_plugins = ["web_browser"]
EXTRAS = ("web", "ops", "otel", "postgres", "lore", "minilm")
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


def test_all_that_the_image_installs_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = project["dependencies"] + [line for name in EXTRAS for line in project["optional-dependencies"][name]]
    names = {re.match(r"[\w-]+", line)[0].lower().replace("_", "-") for line in lines}
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
    assert set(compose) <= {"name", "services", "volumes", "x-page"}
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
    assert services["page1"] == services["page2"]
    assert parser().parse_args(services["migrate"]["command"]).command == "migrate"
    assert services["migrate"]["environment"] == services["page1"]["environment"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    pages = services["proxy"]["environment"]["QUESTBOOK_PAGES"].split()
    assert pages == ["page1:8000", "page2:8000"]
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
    variables = dict(re.findall(r"\$\{(\w+)(:[?-])", text))
    assert {name for name, how in variables.items() if how == ":?"} == {"POSTGRES_PASSWORD", "QUESTBOOK_PEOPLE"}
    for name, value in _environment(compose):
        if re.search("PASSWORD|KEY|TOKEN|PEOPLE|DATABASE", name):
            assert "${" in value, name


def _environment(compose):
    return [pair for service in compose["services"].values() for pair in service["environment"].items()]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def proxied(home, environment):
    """Start two pages on one home, and the proxy of the compose file in front; return its URL and the pages."""
    caddy = shutil.which("caddy") or pytest.skip("needs caddy")
    with ExitStack() as programs:
        pages = [serving(home, "--port", "0", **environment) for _ in range(2)]
        for page in pages:
            programs.callback(page.communicate)
            programs.callback(page.kill)
        for page in pages:
            page.url = address_of(page)
        url, state = f"http://127.0.0.1:{free_port()}", programs.enter_context(tempfile.TemporaryDirectory())
        names = {"QUESTBOOK_SITE": url, "QUESTBOOK_PAGES": " ".join(urlsplit(page.url).netloc for page in pages)}
        names |= {"XDG_DATA_HOME": state, "XDG_CONFIG_HOME": state, "PATH": os.environ["PATH"]}
        command = [caddy, "run", "--config", ROOT / "deploy" / "Caddyfile", "--adapter", "caddyfile"]
        proxy = subprocess.Popen(command, env=names, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        programs.callback(proxy.wait)
        programs.callback(proxy.kill)
        wait_until(lambda: answers(f"{url}/"))
        yield url, pages


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
    campaigns = [f"isle{number}" for number in range(6)]
    with proxied(tmp_path, {}) as (url, pages), ExitStack() as visits:
        visitors = [visits.enter_context(Visitor(url, f"/c/{name}/")) for name in campaigns]
        for visitor in visitors:
            visitor.say(MIRA)
        assert sum(open_at(pages)) == len(campaigns), "each is open in one process"
        assert min(open_at(pages)) > 0, "they are shared out"
        for visitor in visitors:
            visitor.say("I look around.")
            assert visitor.post("undo", turn="2").status_code == 204
        assert sum(open_at(pages)) == len(campaigns), "each request of one went to the same process"
        for path in ("metrics", "ready", "health"):
            assert httpx.get(f"{url}/{path}").status_code == 404, "not for the world"

        pages[0].send_signal(signal.SIGKILL)
        pages[0].wait(10)
        wait_until(lambda: all(answers(f"{url}/c/{name}/") for name in campaigns))
        for visitor in visitors:
            visitor.say("I wait.")
            assert 'data-turn="2"' in visitor.get("story").text, "one was undone, one was played"
        assert open_at(pages[1:]) == [len(campaigns)]


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
        bob.click(".brand")
        bob.click("a:has-text('reef')")
        say(bob, "I look around.")
        assert "Velvet" not in bob.content()
        assert "Mira" not in bob.locator("#story").inner_text()
        assert signed_in(browser, url, "eve").goto(ann.url).status == 404
