"""Who asks for the page: tokens, sessions of several processes, sign-out, and what is written down of it."""

import asyncio
import json
import re
import signal
import time

import httpx
import pytest
from issuer import AUDIENCE, SECRET, signed
from page_sessions import Audit, sign_in_of, token_header
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from web_server import MIRA, Visitor, address_of, page_server, serving

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import SettingsError
from questbook.graphs.identity import tokens
from questbook.graphs.identity.sessions import Sessions
from questbook.graphs.identity.tokens import TokenVerifier
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import HomeError
from questbook.graphs.web.app import create_app
from questbook.graphs.web.audit import AuditLog
from questbook.graphs.web.guard import HEADER, PageGuard
from questbook.graphs.web.limits import Limits
from questbook.graphs.web.serve import ServerError, proxies_of
from questbook.graphs.web.sign_in import PERSON

ISSUER = "https://login.example.org"
BOB = "/u/bob@login.example.org/c/isle/"


def verifier():
    return TokenVerifier(ISSUER, AUDIENCE, secret=SECRET)


def token(name="bob", **claims):
    return signed(ISSUER, name, secret=SECRET, **claims)


def page_of(path, url="http://localhost", **options):
    """One process with the page of a data directory, and somebody who asks it."""
    (path / "campaigns").mkdir(parents=True, exist_ok=True)
    app = create_app(Context(user="ann", model="offline"), FileHome(path), **{"tokens": verifier()} | options)
    return app, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=url)


def csrf_of(page):
    return re.search(r'data-token="([^"]+)"', page.text)[1]


def lines_of(path):
    file = path / "audit.log"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


async def signed_in(web, name="bob"):
    """Sign in; return the token of the session's pages."""
    assert (await web.post("/sign-in", data={"token": token(name)})).status_code == 303
    return csrf_of(await web.get("/"))


async def test_a_session_is_shared_by_the_processes_of_a_home_and_ends_in_all_of_them(tmp_path):
    (app, one), (_, other) = page_of(tmp_path), page_of(tmp_path)
    assert (await one.get("/")).status_code == 401
    csrf = await signed_in(one)
    other.cookies = one.cookies
    page = await other.get("/")
    assert "Sign out" in page.text
    assert csrf_of(page) == csrf
    assert (await other.post("/sign-out")).status_code == 403, "another site cannot sign anybody out"
    out = await other.post("/sign-out", data={"token": csrf})
    assert (out.status_code, out.headers["location"], out.headers["clear-site-data"]) == (303, "/", '"storage"')
    assert 'questbook_session=""' in out.headers["set-cookie"]
    assert (await one.get("/")).status_code == 401
    assert app.state.page.log_in, "each has campaigns of their own"


@pytest.mark.slow
async def test_every_page_has_a_button_to_sign_out(tmp_path):
    app, web = page_of(tmp_path, developer=True)
    csrf = await signed_in(web)
    for path in ("/", "/nowhere", BOB, *(f"{BOB}{view}" for view in ("settings", "chronicle", "fidelity", "behind"))):
        page = (await web.get(path)).text
        assert page.count('action="/sign-out"') >= 1, path
        assert f'name="token" value="{csrf}"' in page, path
    await app.state.page.pool.close()


async def test_all_devices_are_signed_out_together(tmp_path):
    (_, one), (_, other) = page_of(tmp_path), page_of(tmp_path)
    csrf = await signed_in(one)
    await signed_in(other)
    assert (await one.post("/sign-out", data={"token": csrf, "everywhere": "1"})).status_code == 303
    assert (await other.get("/")).status_code == 401
    assert [line.get("everywhere") for line in lines_of(tmp_path) if line["event"] == "sign-out"] == ["yes"]


async def test_who_signs_in_again_leaves_the_last_session(tmp_path):
    (_, one), (_, other) = page_of(tmp_path), page_of(tmp_path)
    await signed_in(one)
    other.cookies = httpx.Cookies(one.cookies)
    await signed_in(one)
    assert (await other.get("/")).status_code == 401


async def test_a_page_of_one_session_changes_nothing_in_another(tmp_path):
    (app, one), (_, other) = page_of(tmp_path), page_of(tmp_path)
    mine, again = await signed_in(one), await signed_in(other)
    assert mine != again, "the same person"
    for wrong in (again, token_header(FileHome(tmp_path), "bob@login.example.org")[HEADER], ""):
        assert (await one.post(f"{BOB}put-away", headers={HEADER: wrong})).status_code == 403
    assert (await one.post(f"{BOB}stop", headers={HEADER: mine})).status_code in (204, 409)
    await app.state.page.pool.close()


async def test_a_bearer_token_on_each_request_needs_no_session_and_a_page_is_its_persons_alone(tmp_path):
    app, web = page_of(tmp_path)
    bearer = {"authorization": f"Bearer {token()}"}
    page = await web.get("/", headers=bearer)
    assert page.status_code == 200
    assert not page.cookies
    assert "Sign out" not in page.text, "who added the token signs them out"
    csrf = {HEADER: csrf_of(page)}
    assert (await web.post(f"{BOB}stop", headers=bearer)).status_code == 403
    assert (await web.post(f"{BOB}stop", headers=bearer | csrf)).status_code in (204, 409)
    eve = {"authorization": f"Bearer {token('eve')}"}
    assert (await web.post(f"{BOB}stop", headers=eve | csrf)).status_code == 403
    assert (await web.get(BOB, headers=eve)).status_code == 404
    assert (await web.post("/sign-in", headers=eve)).status_code == 303, "with the header alone"
    assert (await web.get(BOB)).status_code == 404
    expired = await web.get("/", headers={"authorization": f"Bearer {token(exp=time.time() - 60)}"})
    assert (expired.status_code, expired.headers["www-authenticate"]) == (401, "Bearer")
    assert expired.text == "The token has expired. Log in again."
    await app.state.page.pool.close()


async def test_whoever_is_taken_off_the_list_or_gets_another_token_is_out(tmp_path):
    people = {"ann": "a" * 20, "bob": "b" * 20}
    _, web = page_of(tmp_path, tokens=None, people=people)
    await web.post("/sign-in", data={"token": "a" * 20})
    assert (await web.get("/")).status_code == 200
    for now, status in (({"bob": "b" * 20}, 401), ({"ann": "c" * 20}, 401), ({"bob": "a" * 20}, 401), (people, 200)):
        _, later = page_of(tmp_path, tokens=None, people=now)
        later.cookies = web.cookies
        assert (await later.get("/")).status_code == status, now
    _, issued = page_of(tmp_path)
    issued.cookies = web.cookies
    assert (await issued.get("/")).status_code == 401, "no issuer vouches for them"


async def test_behind_tls_the_cookie_is_this_hosts_alone_and_the_browser_stays_with_tls(tmp_path):
    _, web = page_of(tmp_path, "https://games.example.org")
    asked = await web.get("/")
    assert asked.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    answer = await web.post("/sign-in", data={"token": token()})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-questbook_session=")
    flags = {part.strip().casefold() for part in cookie.split(";")[1:]}
    assert flags == {"httponly", "path=/", "samesite=strict", "secure"}, "and no domain"
    value = cookie.partition("=")[2].partition(";")[0]
    assert (await web.get("/", headers={"cookie": f"__Host-questbook_session={value}"})).status_code == 200
    web.cookies.clear()
    planted = await web.get("/", headers={"cookie": f"questbook_session={value}"})
    assert planted.status_code == 401, "whoever has no TLS could have set it"
    _, plain = page_of(tmp_path)
    answer = await plain.post("/sign-in", data={"token": token()})
    assert answer.headers["set-cookie"].startswith("questbook_session=")
    assert "strict-transport-security" not in answer.headers


@pytest.mark.slow
def test_only_a_proxy_that_is_trusted_says_that_there_is_tls_and_who_asks(tmp_path):
    said = {"x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.7", "host": "games.example.org"}
    people = f"ann:{'a' * 20}"
    for proxies, name, address in (
        ("", "questbook_session", "127.0.0.1"),
        ("127.0.0.1", "__Host-questbook_session", "192.0.2.7"),
    ):
        home = tmp_path / f"home-{bool(proxies)}"
        program = serving(home, "--port", "0", QUESTBOOK_PEOPLE=people, QUESTBOOK_TRUSTED_PROXIES=proxies)
        try:
            answer = httpx.post(f"{address_of(program)}/sign-in", data={"token": "a" * 20}, headers=said)
            assert answer.headers["set-cookie"].startswith(f"{name}=")
            assert ("strict-transport-security" in answer.headers) == bool(proxies)
            assert [line["address"] for line in lines_of(home)] == [address]
        finally:
            program.send_signal(signal.SIGINT)
            program.communicate(timeout=10)


@pytest.mark.slow
def test_two_programs_on_one_home_know_the_same_sessions(tmp_path):
    settings = {tokens.ISSUER: ISSUER, tokens.AUDIENCE: AUDIENCE, tokens.SECRET: SECRET}
    programs = [serving(tmp_path / "home", "--port", "0", **settings) for _ in range(2)]
    try:
        one, other = [httpx.Client(base_url=address_of(program), follow_redirects=True) for program in programs]
        assert "Your campaigns" in one.post("/sign-in", data={"token": token()}).text
        other.cookies = one.cookies
        page = other.get("/")
        assert "Your campaigns" in page.text
        assert other.post("/sign-out", data={"token": csrf_of(page)}).status_code == 401
        assert one.get("/").status_code == 401
    finally:
        for program in programs:
            program.send_signal(signal.SIGINT)
        said = [program.communicate(timeout=10)[0] for program in programs]
    assert all("Traceback" not in text for text in said), said


WRONG = {
    "half": ({tokens.ISSUER: ISSUER}, "QUESTBOOK_OIDC_AUDIENCE is missing"),
    "both": ({tokens.ISSUER: ISSUER, tokens.AUDIENCE: "x", "QUESTBOOK_PEOPLE": f"ann:{'a' * 20}"}, "not both"),
    "a limit": (
        {"QUESTBOOK_PEOPLE": f"ann:{'a' * 20}", "QUESTBOOK_MOST_TURNS": "many"},
        "QUESTBOOK_MOST_TURNS: got 'many'",
    ),
    "the log": ({"QUESTBOOK_PEOPLE": f"ann:{'a' * 20}", "QUESTBOOK_AUDIT": "disk"}, "QUESTBOOK_AUDIT: got 'disk'"),
    "the list of the forgotten": (
        {"QUESTBOOK_FORGOTTEN": "/tmp/list", "QUESTBOOK_FORGOTTEN_KEY": "short"},
        "QUESTBOOK_FORGOTTEN_KEY 32 random characters",
    ),
    "a proxy": ({"QUESTBOOK_TRUSTED_PROXIES": "*"}, "QUESTBOOK_TRUSTED_PROXIES: got '*'"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("variables", "said"), WRONG.values(), ids=WRONG)
def test_half_or_wrong_settings_are_refused_in_one_line_before_anybody_comes(tmp_path, variables, said):
    program = serving(tmp_path / "home", "--port", "0", **variables)
    text = program.communicate(timeout=60)[0]
    assert program.returncode == 2
    assert said in text
    assert text.count("\n") == 1, text


def test_proxies_are_addresses_and_networks():
    assert proxies_of(" 127.0.0.1, 10.0.0.0/8 ,::1,") == ["127.0.0.1", "10.0.0.0/8", "::1"]
    for wrong in ("*", "proxy", "10.0.0.1/8", "127.0.0.1 10.0.0.1"):
        with pytest.raises(ServerError, match=re.escape(f"got {wrong!r}")):
            proxies_of(wrong)


def guarded(audit, limits=None, people=None):
    """A page that says who asks, and its guard; its clients come from an address each."""
    sign_in = sign_in_of(people or {"ann": "a" * 20}, audit=audit, limits=limits)

    async def look(request):
        return Response(request.scope[PERSON])

    app = PageGuard(Starlette(routes=[Route("/", look)]), "t" * 20, sign_in, limits=limits)

    def client(address):
        return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(address, 1)), base_url="http://localhost")

    return client


async def test_an_address_tries_a_few_tokens_a_minute_and_others_are_not_kept_waiting():
    audit = Audit()
    client = guarded(audit, Limits(sign_ins=3))
    async with client("192.0.2.1") as eve, client("192.0.2.2") as ann:
        tries = [await eve.post("/sign-in", data={"token": f"{n}"}) for n in range(5)]
        assert [answer.status_code for answer in tries] == [403, 403, 403, 429, 429]
        seconds = int(tries[3].headers["retry-after"])
        assert 1 < seconds <= 20
        assert tries[3].text == f"That was too often. Try again in {seconds} seconds."
        right = await eve.post("/sign-in", data={"token": "a" * 20})
        assert right.status_code == 429, "nor is the right one tried"
        for guess in ("x", "a" * 20):
            assert (await eve.get("/", headers={"authorization": f"Bearer {guess}"})).status_code == 429
        assert (await ann.get("/", headers={"authorization": f"Bearer {'a' * 20}"})).status_code == 200
        assert (await ann.post("/sign-in", data={"token": "a" * 20})).status_code == 303
    assert [line["event"] for line in audit] == ["failed sign-in"] * 3 + ["sign-in"], "a flood fills no disk"


async def test_one_person_signs_in_a_few_times_a_minute_from_wherever():
    client = guarded(Audit(), Limits(sign_ins=2))
    answers = []
    for number in range(3):
        async with client(f"192.0.2.{number}") as web:
            answers.append(await web.post("/sign-in", data={"token": "a" * 20}))
    assert [answer.status_code for answer in answers] == [303, 303, 429]


async def test_an_address_and_a_person_ask_so_often_and_a_house_of_ipv6_is_one_address():
    client = guarded(Audit(), Limits(address_requests=3, requests=100))
    async with client("2001:db8::1") as one, client("2001:db8::ffff") as other, client("2001:db8:1::1") as far:
        answers = [await web.get("/static/x.css") for web in (one, other, one, other, far)]
        assert [answer.status_code for answer in answers] == [404, 404, 404, 429, 404]
    client = guarded(Audit(), Limits(requests=2))
    bearer = {"authorization": f"Bearer {'a' * 20}"}
    answers = []
    for number in range(3):
        async with client(f"192.0.2.{number}") as web:
            answers.append(await web.get("/", headers=bearer))
    assert [answer.status_code for answer in answers] == [200, 200, 429]


async def test_what_a_stranger_does_is_written_down_without_a_token(tmp_path):
    _, web = page_of(tmp_path)
    bad = token(aud="shop")
    await web.post("/sign-in", data={"token": bad})
    await web.get("/", headers={"authorization": f"Bearer {bad}"})
    csrf = await signed_in(web)
    await web.post("/sign-out", data={"token": csrf})
    lines = lines_of(tmp_path)
    assert [(line["event"], line["who"]) for line in lines] == [
        ("failed sign-in", ""), ("failed sign-in", ""), ("sign-in", "bob@login.example.org"),
        ("sign-out", "bob@login.example.org"),
    ]  # fmt: skip
    assert all(line["address"] == "127.0.0.1" and re.fullmatch(r"\d{4}-.*\+00:00", line["time"]) for line in lines)
    assert lines[0]["reason"] == "The token is for another audience."
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600
    text = (tmp_path / "audit.log").read_text()
    assert bad not in text
    assert csrf not in text


async def test_a_name_as_long_as_a_path_fills_no_log(tmp_path):
    app, web = page_of(tmp_path)
    bearer = {"authorization": f"Bearer {token()}"}
    assert (await web.get(f"/u/{'e' * 20_000}/c/{'x' * 20_000}/", headers=bearer)).status_code == 404
    [line] = lines_of(tmp_path)
    assert (line["event"], line["owner"], line["campaign"]) == ("refused", "e" * 200, "x" * 200)
    await app.state.page.pool.close()


async def test_what_cannot_be_written_down_does_not_happen(tmp_path, caplog):
    _, web = page_of(tmp_path)
    (tmp_path / "audit.log").mkdir()
    answer = await web.post("/sign-in", data={"token": token()})
    assert (answer.status_code, str(tmp_path) in answer.text) == (503, False)
    assert "The audit log cannot be written: Is a directory" in caplog.text
    assert (await web.get("/")).status_code == 401
    (tmp_path / "audit.log").rmdir()
    csrf = await signed_in(web)
    (tmp_path / "audit.log").rename(tmp_path / "old.log")
    (tmp_path / "audit.log").mkdir()
    assert (await web.post("/sign-out", data={"token": csrf})).status_code == 503
    assert (await web.get("/")).status_code == 200, "nor is anybody signed out"
    with pytest.raises(
        SettingsError, match=r"Cannot write .*audit.log: correct its permissions, or set QUESTBOOK_AUDIT"
    ):
        page_of(tmp_path)


async def test_a_page_that_shows_what_others_play_does_not_keep_its_person_signed_in(tmp_path, monkeypatch):
    noted, find = [], Sessions.find

    async def note(self, cookie, *, uses=True):
        noted.append(uses)
        return await find(self, cookie, uses=uses)

    _, web = page_of(tmp_path)
    await signed_in(web)
    monkeypatch.setattr(Sessions, "find", note)
    await web.get("/", headers={"x-questbook-refresh": "1"})
    await web.get("/")
    assert noted == [False, True]


async def test_lines_go_to_standard_error_if_the_setting_says_so(tmp_path, monkeypatch, capsys):
    log = AuditLog.from_environment(tmp_path, {"QUESTBOOK_AUDIT": "stderr"})
    await log.write("sign-in", "ann\n\u202e", "::1", more=["x"])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.isascii(), "nobody writes a line of their own"
    assert json.loads(said) | {"time": 0} == {
        "time": 0, "event": "sign-in", "who": "ann\n\u202e", "address": "::1", "more": ["x"],
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SettingsError, match='expected "file" or "stderr"'):
        AuditLog.from_environment(tmp_path, {"QUESTBOOK_AUDIT": "x"})


async def test_lines_of_several_writers_do_not_mix(tmp_path):
    logs = [AuditLog(tmp_path / "audit.log") for _ in range(4)]
    await asyncio.gather(*(log.write("export", "ann", "::1", text="x" * 500) for log in logs for _ in range(25)))
    assert len(lines_of(tmp_path)) == 100


@pytest.mark.slow
def test_share_forget_rename_and_export_are_written_down_without_a_word_that_was_said(tmp_path):
    home = tmp_path / "home"
    isle = {"owner": "ann", "campaign": "isle", "machine": "dungeon_master"}
    with page_server(home, log_in=True) as server:
        with Visitor(server.url, "/u/ann/c/isle/", "ann") as ann:
            ann.say(MIRA)
            assert ann.post("share", guests="bob, cleo").status_code == 200
            ann.post("forget", words="halfling")
            assert [line["event"] for line in lines_of(home)] == ["share"], "it was only looked for"
            assert ann.post("forget", words="halfling", sure="1").status_code == 200
            assert ann.get("export").status_code == 200
            assert ann.post("known", key="no-fact", delete="1").status_code == 409
        for name, status in (("bob", 403), ("eve", 404)):
            with Visitor(server.url, "/u/ann/c/isle/", name) as other:
                assert other.get("export").status_code == status
                assert other.get("chronicle.md").status_code == (200 if name == "bob" else 404)
        with Visitor(server.url, "/u/ann/c/isle/", "ann") as ann:
            assert ann.post("rename", name="cape").status_code == 204
    lines = [{name: value for name, value in line.items() if name != "time"} for line in lines_of(home)]
    rest = {"address": "127.0.0.1"} | isle
    assert lines[:3] == [
        {"event": "share", "guests": ["bob", "cleo"], "who": "ann"} | rest,
        {"event": "forget", "who": "ann"} | rest,
        {"event": "export", "who": "ann"} | rest,
    ]
    assert lines[3:] == [
        {"event": "forget", "who": "ann"} | rest,  # a fact, which is not there: what is tried is written down
        {"event": "refused", "who": "bob"} | rest,  # only its owner exports it
        {"event": "export", "who": "bob"} | rest,  # as a chronicle
        *[{"event": "refused", "who": "eve"} | rest] * 3,  # its page, its export, its chronicle
        {"event": "rename", "to": "cape", "who": "ann"} | rest,
    ]
    assert not re.search("halfling|Mira", (home / "audit.log").read_text())


@pytest.mark.slow
def test_one_person_at_home_has_no_log_and_no_sessions(tmp_path):
    home = tmp_path / "home"
    with page_server(home) as server, Visitor(server.url) as ann:
        ann.say(MIRA)
        assert ann.get("export").status_code == 200
        assert "Sign out" not in ann.open().text
    assert not {"audit.log", "sessions.db"} & {path.name for path in home.iterdir()}


async def test_sessions_that_cannot_be_kept_are_said_with_what_to_do(tmp_path):
    (tmp_path / "sessions.db").mkdir()
    with pytest.raises(HomeError, match=r"Cannot use .*sessions.db: .*Remove it, and all sign in again"):
        page_of(tmp_path)


async def test_a_database_that_is_away_when_a_session_is_looked_up_is_said_in_a_sentence(tmp_path, monkeypatch, caplog):
    app, _ = page_of(tmp_path)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as web:
        await signed_in(web)

        async def read(self, key):
            raise HomeError("Cannot use the database: it was stopped.")

        monkeypatch.setattr("questbook.graphs.local.file_home.FileSessions.read", read)
        answer = await web.get("/")
    assert (answer.status_code, "try again in a moment" in answer.text) == (503, True)
    assert "it was stopped" not in answer.text, "what is inside is for who runs the server"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "Cannot use the database: it was stopped." in caplog.text


async def test_a_file_of_sessions_that_is_damaged_while_the_page_runs_is_said_in_a_sentence(tmp_path, caplog):
    app, _ = page_of(tmp_path)
    quiet = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=quiet, base_url="http://localhost") as web:
        await signed_in(web)
        (tmp_path / "sessions.db").write_bytes(b"no database, but more than nothing " * 40)
        answer = await web.get("/")
        (tmp_path / "sessions.db").unlink()  # as the log says
        again = await web.get("/")
    assert (answer.status_code, "Remove it, and all sign in again" in caplog.text) == (503, True)
    assert (again.status_code, "sign-in" in again.text) == (401, True)
