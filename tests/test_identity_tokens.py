"""From the headers of a request to who sends it: tokens that hold, and all those that do not."""

import base64
import json
import sys
import time
from importlib import import_module

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from issuer import AUDIENCE, SECRET, issuer_at_work, private_key, public_jwk, signed
from langgraph_sdk import Auth

from questbook.graphs.errors import IdentityError, SettingsError
from questbook.graphs.identity import tokens
from questbook.graphs.identity.identity import Identity
from questbook.graphs.identity.langgraph_auth import auth_of
from questbook.graphs.identity.tokens import TokenVerifier, name_of
from questbook.memory.timeline.namespaces import escape_label, unescape_label

HTTPS = "https://login.example.org"


@pytest.fixture(scope="module")
def server():
    with issuer_at_work() as issuer:
        yield issuer


@pytest.fixture
def issuer(server):
    server.keys, server.asked, server.status, server.about = [public_jwk("one")], [], 200, {}
    return server


def bearer(token):
    return {"authorization": f"Bearer {token}"}


async def refusal_of(verifier, token):
    with pytest.raises(IdentityError) as refused:
        await verifier.identify(bearer(token))
    assert token not in str(refused.value)
    return refused.value


@pytest.mark.parametrize("kind", ["rsa", "ec", "ed"])
async def test_a_token_that_its_issuer_signed_says_who_asks(issuer, kind):
    issuer.keys = [public_jwk("one", kind)]
    verifier = TokenVerifier(issuer.url, AUDIENCE)
    who = await verifier.identify(bearer(issuer.token(kind=kind)))
    assert who == Identity(f"bob@{issuer.url}", issuer.url, "bob")
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]
    at_once = {b"authorization": b"bEARER " + issuer.token("ann", kind=kind).encode()}  # as LangGraph gives them
    assert (await verifier.identify(at_once)).subject == "ann"
    assert len(issuer.asked) == 2, "the keys are kept"


async def test_where_the_keys_are_can_be_named(issuer):
    verifier = TokenVerifier(issuer.url, AUDIENCE, keys_url=f"{issuer.url}/keys")
    assert (await verifier.identify(bearer(issuer.token(aud=["other", AUDIENCE])))).subject == "bob"
    assert issuer.asked == ["/keys"]


def test_two_issuers_bobs_are_two_people_and_each_can_be_a_user():
    issuers = (
        HTTPS,
        f"{HTTPS}/",
        f"{HTTPS}/realms/a",
        "http://127.0.0.1:9",
        "https://127.0.0.1:9",
        "https://b.example",
    )
    subjects = ("bob", "bob@login.example.org", "a|b/c:d*e.f~", "bob@http://127.0.0.1:9", "Ω 1", "x" * 100)
    names = [name_of(issuer, subject) for issuer in issuers for subject in subjects]
    assert len(set(names)) == len(issuers) * len(subjects)
    assert name_of(HTTPS, "bob") == "bob@login.example.org"
    for name in names:
        assert unescape_label(escape_label(name)) == name
    assert len({escape_label(name) for name in names}) == len(names)


@pytest.mark.parametrize("subject", ["", " ", " bob", "bob\n", "b\x00b", "b\u202eb", "x" * 190])
async def test_a_subject_that_cannot_be_a_users_name_is_refused(subject):
    verifier = TokenVerifier(HTTPS, AUDIENCE, secret=SECRET)
    refused = await refusal_of(verifier, signed(HTTPS, subject, secret=SECRET))
    assert "cannot be the name of a user" in str(refused)


now = time.time()  # of the import: a test may run much later
WRONG = {
    "another issuer": ({"iss": "https://evil.example"}, "is from another issuer"),
    "the issuer with a slash": ({"iss": f"{HTTPS}/"}, "is from another issuer"),
    "another audience": ({"aud": "shop"}, "is for another audience"),
    "expired": ({"exp": now - 60}, "has expired"),
    "not yet": ({"nbf": now + 86_400}, "is not valid yet"),
    "issued to come": ({"iat": now + 86_400}, "is not valid yet"),
    "no subject": ({"without": ["sub"]}, "must say iss, aud, exp, sub"),
    "no end": ({"without": ["exp"]}, "must say iss, aud, exp, sub"),
    "no audience": ({"without": ["aud"]}, "must say iss, aud, exp, sub"),
    "no issuer": ({"without": ["iss"]}, "must say iss, aud, exp, sub"),
    "no name": ({"sub": 7}, "cannot be read"),
    "a log-out": ({"headers": {"typ": "logout+jwt"}}, "of a kind that logs nobody in"),
    "what it does not know": ({"headers": {"crit": ["x"], "x": 1}}, "cannot be read"),
}


@pytest.mark.parametrize(("claims", "reason"), WRONG.values(), ids=WRONG)
async def test_a_token_that_does_not_hold_is_refused_with_the_reason(issuer, claims, reason):
    claims = {name: f"{issuer.url}/" if value == f"{HTTPS}/" else value for name, value in claims.items()}
    token = signed(claims.pop("iss", issuer.url), **claims) if claims != {"sub": 7} else numbered(issuer.url)
    refused = await refusal_of(TokenVerifier(issuer.url, AUDIENCE), token)
    assert reason in str(refused)
    assert refused.status == 401


def numbered(url):
    claims = {"iss": url, "sub": 7, "aud": AUDIENCE, "exp": time.time() + 60}
    return jwt.PyJWS().encode(json.dumps(claims).encode(), private_key("rsa", 0), "RS256", headers={"kid": "one"})


async def test_clocks_may_differ_by_half_a_minute(issuer):
    verifier, now = TokenVerifier(issuer.url, AUDIENCE), time.time()
    assert (await verifier.identify(bearer(issuer.token(exp=now - 20, nbf=now + 20)))).subject == "bob"


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_a_signature_that_is_not_the_issuers_is_refused(issuer):
    verifier, good = TokenVerifier(issuer.url, AUDIENCE), issuer.token()
    head, claims, signature = good.split(".")
    ann = part(jwt.decode(good, options={"verify_signature": False}) | {"sub": "ann"})
    pem = issuer.keys[0]["n"]
    tampered = {
        "other words": f"{head}.{ann}.{signature}",
        "another's key": issuer.token(number=1),
        "no signature": f"{head}.{claims}.",
        "none": f"{part({'alg': 'none', 'typ': 'JWT'})}.{claims}.",
        "none of a key": f"{part({'alg': 'none', 'kid': 'one'})}.{claims}.{signature}",
        "a secret that all know": signed(issuer.url, secret=pem, headers={"kid": "one"}),
        "another algorithm": f"{part({'alg': 'PS256', 'kid': 'one'})}.{claims}.{signature}",
        "a list": f"{part({'alg': [], 'kid': 'one'})}.{claims}.{signature}",
        "an object": f"{part({'alg': {'RS256': 1}, 'kid': 'one'})}.{claims}.{signature}",
        "its own key": signed(issuer.url, number=1, headers={"jwk": public_jwk("one", number=1)}),
    }
    for name, token in tampered.items():
        said = str(await refusal_of(verifier, token))
        assert "is not signed by its issuer" in said or "an algorithm that is not allowed" in said, name


async def test_words_that_are_no_token_are_refused_and_whoever_sends_none_is_nobody(issuer):
    verifier = TokenVerifier(issuer.url, AUDIENCE)
    deep = base64.urlsafe_b64encode(b'{"alg":' + b"[" * 30_000).decode()
    for token in ("x", "a.b.c", "é.é.é", "\udcff", "a" * 9000, f"{deep}.e30.e30", f"{part([1])}.e30.x"):
        assert "cannot be read" in str(await refusal_of(verifier, token))
    assert issuer.asked == [], "no stranger has the keys fetched with words that are no token"
    for headers in ({}, {"authorization": ""}, {"authorization": "Basic YTpi"}, bearer("")):
        with pytest.raises(IdentityError, match="Nobody is logged in"):
            await verifier.identify(headers)


async def test_a_shared_secret_signs_and_no_other_kind_of_token_holds_beside_it():
    verifier = TokenVerifier(HTTPS, AUDIENCE, secret=SECRET)
    assert (await verifier.identify(bearer(signed(HTTPS, secret=SECRET)))).name == "bob@login.example.org"
    assert "not signed by" in str(await refusal_of(verifier, signed(HTTPS, secret="t" * 32)))
    assert "algorithm that is not allowed" in str(await refusal_of(verifier, signed(HTTPS)))


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def keys_of(issuer):
    clock = Clock()
    return tokens.IssuerKeys(issuer.url, f"{issuer.url}/keys", clock=clock), clock


async def missing(known, name):
    with pytest.raises(IdentityError) as refused:
        await known.key(name)
    return refused.value.status


async def test_a_new_key_is_fetched_and_strangers_have_them_fetched_twice_a_minute_at_most(issuer):
    known, clock = keys_of(issuer)
    await known.key("one")
    issuer.keys = [public_jwk("two")]
    for number in range(20):
        assert await missing(known, f"x{number}") == 401
    assert len(issuer.asked) == 1
    clock.now += 31
    assert (await known.key("two")).key_id == "two"
    assert await missing(known, "one") == 401, "it was withdrawn"
    assert len(issuer.asked) == 2


async def test_a_key_that_was_withdrawn_is_noticed_with_the_first_request_after_ten_minutes_and_no_request_waits(
    issuer,
):
    known, clock = keys_of(issuer)
    await known.key("one")
    issuer.keys = [public_jwk("two")]
    clock.now += 599
    await known.key("one")
    assert len(issuer.asked) == 1
    clock.now += 2
    await known.key("one")
    await known._task
    assert await missing(known, "one") == 401


async def test_while_the_issuer_is_silent_its_keys_hold_for_an_hour_and_then_nobody_gets_in(issuer):
    known, clock = keys_of(issuer)
    await known.key("one")
    issuer.status = 500
    clock.now += 3599
    await known.key("one")
    await known._task
    clock.now += 31
    assert await missing(known, "one") == 503
    asked = len(issuer.asked)
    assert await missing(known, "one") == 503
    assert len(issuer.asked) == asked, "a silent issuer is not asked by each request"
    issuer.status = 200
    clock.now += 31
    await known.key("one")


async def test_keys_of_other_kinds_and_purposes_are_left_out(issuer):
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "secret", "alg": "HS256"}
    issuer.keys = [
        public_jwk("", number=1), public_jwk("enc", use="enc"), secret, {"kty": "XYZ", "kid": "new"}, 7,
        {"kty": "RSA", "kid": "half"}, {"kty": "RSA", "kid": "odd", "alg": ["RS256"]}, public_jwk("one", use="sig"),
    ]  # fmt: skip
    known, _ = keys_of(issuer)
    await known.key("one")
    for name in ("", "enc", "secret", "new", "half", "odd"):
        assert await missing(known, name) == 401


@pytest.mark.parametrize(
    "about",
    [
        {"issuer": "https://evil.example"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": "http://evil.example/k"},
        {"jwks_uri": None},
    ],
)
async def test_a_configuration_that_is_anothers_or_leads_elsewhere_is_not_used(issuer, about):
    issuer.about = about
    assert (await refusal_of(TokenVerifier(issuer.url, AUDIENCE), issuer.token())).status == 503


async def test_a_key_that_is_too_short_signs_nothing(issuer):
    short = rsa.generate_private_key(65537, 1024)
    issuer.keys = [jwt.get_algorithm_by_name("RS256").to_jwk(short.public_key(), as_dict=True) | {"kid": "one"}]
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        token = jwt.encode(claims, short, "RS256", headers={"kid": "one"})
    assert (await refusal_of(TokenVerifier(issuer.url, AUDIENCE), token)).status == 401


@pytest.mark.parametrize("found", [[], ["x"], [{"kid": "one"}]])
async def test_an_answer_without_keys_lets_nobody_in(issuer, found):
    issuer.keys = found
    assert (await refusal_of(TokenVerifier(issuer.url, AUDIENCE), issuer.token())).status == 503


BOTH = {tokens.ISSUER: HTTPS, tokens.AUDIENCE: AUDIENCE}
MISTAKES = {
    "no audience": ({tokens.ISSUER: HTTPS}, "QUESTBOOK_OIDC_AUDIENCE is missing"),
    "no issuer": ({tokens.AUDIENCE: "x"}, "QUESTBOOK_OIDC_ISSUER is missing"),
    "a secret alone": ({tokens.SECRET: SECRET}, "QUESTBOOK_OIDC_ISSUER is missing"),
    "keys alone": ({tokens.KEYS_URL: HTTPS}, "QUESTBOOK_OIDC_ISSUER is missing"),
    "two kinds": (
        BOTH | {tokens.KEYS_URL: HTTPS, tokens.SECRET: SECRET},
        "QUESTBOOK_OIDC_JWKS_URL or QUESTBOOK_JWT_SECRET",
    ),
    "a short secret": (BOTH | {tokens.SECRET: "short"}, "got 5 bytes; expected 32 or more"),
    "no TLS": (
        BOTH | {tokens.ISSUER: "http://login.example.org"},
        "QUESTBOOK_OIDC_ISSUER: got 'http://login.example.org'",
    ),
    "keys without TLS": (
        BOTH | {tokens.KEYS_URL: "http://a.example/k"},
        "QUESTBOOK_OIDC_JWKS_URL: got 'http://a.example/k'",
    ),
    "a name with a user": (BOTH | {tokens.ISSUER: "https://a@b.example"}, "expected an https:// address"),
    "no address": (BOTH | {tokens.ISSUER: "login"}, "expected an https:// address"),
    "half an address": (BOTH | {tokens.ISSUER: "https://[::1"}, "expected an https:// address"),
}


@pytest.mark.parametrize(("variables", "said"), MISTAKES.values(), ids=MISTAKES)
def test_half_or_wrong_settings_are_refused_at_the_start_and_the_secret_is_not_said(variables, said, monkeypatch):
    with pytest.raises(SettingsError, match="QUESTBOOK") as refused:
        TokenVerifier.from_environment(variables)
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    module = import_module("questbook.graphs.identity.langgraph_auth")
    with pytest.raises(SystemExit, match="QUESTBOOK"):
        _ = module.auth  # an error would let everybody in, on Aegra


def test_without_settings_there_is_no_log_in(monkeypatch):
    assert TokenVerifier.from_environment({}) is None
    for name in tokens.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    module = import_module("questbook.graphs.identity.langgraph_auth")
    with pytest.raises(SystemExit, match="Set QUESTBOOK_OIDC_ISSUER and QUESTBOOK_OIDC_AUDIENCE"):
        _ = module.auth
    monkeypatch.setitem(sys.modules, "jwt", None)
    monkeypatch.delitem(sys.modules, "questbook.graphs.identity.tokens")
    monkeypatch.delattr(sys.modules["questbook.graphs.identity"], "tokens")
    with pytest.raises(SystemExit, match=r"needs jwt: pip install 'questbook\[identity\]'"):
        _ = module.auth
    with pytest.raises(AttributeError):
        _ = module.other


class Asking:
    """Who asks, as the servers say it to a rule."""

    def __init__(self, identity, resource="threads", action="create"):
        self.user = self
        self.identity, self.resource, self.action = identity, resource, action


async def test_the_log_in_of_langgraph_and_of_aegra_names_the_same_user():
    auth = auth_of(TokenVerifier(HTTPS, AUDIENCE, secret=SECRET))
    token = signed(HTTPS, secret=SECRET)
    for headers in ({b"authorization": f"Bearer {token}".encode()}, bearer(token)):
        for given in ((headers,), ()):  # Aegra gives no name
            assert await auth._authenticate_handler(*given, **({} if given else {"headers": headers})) == {
                "identity": "bob@login.example.org"
            }
    for headers in ({}, bearer("x")):
        with pytest.raises(Auth.exceptions.HTTPException) as refused:
            await auth._authenticate_handler(headers)
        assert refused.value.status_code == 401


async def test_threads_and_memories_are_their_owners_alone_whatever_the_server_calls_the_namespace():
    auth = auth_of(TokenVerifier(HTTPS, AUDIENCE, secret=SECRET))
    ctx = Asking("bob@example.com")
    [rule], [store] = auth._global_handlers, auth._handlers["store", "*"]
    for value in ({}, {"metadata": None}, {"metadata": {"owner": "ann", "a": 1}}):
        given = value.get("metadata")
        assert await rule(ctx=ctx, value=value) == {"owner": "bob@example.com"}
        assert given is None or value["metadata"] is given, "the server keeps the object that it gave"
        assert value["metadata"]["owner"] == "bob@example.com"
    assert value["metadata"]["a"] == 1
    for action in ("read", "search"):
        value = {"metadata": None}
        shown = await rule(ctx=Asking("bob@example.com", "assistants", action), value=value)
        assert shown == {"$or": [{"owner": "bob@example.com"}, {"created_by": "system"}]}, "each graph's own, too"
        assert value == {"metadata": None}, "a search for an owner would leave out the server's own"
    value = {"metadata": {"created_by": "system"}}
    assert await rule(ctx=Asking("bob@example.com", "assistants"), value=value) == {"owner": "bob@example.com"}
    assert value == {"metadata": {"owner": "bob@example.com"}}, "nobody makes one that all see"
    own, other = ("bob@example~2e;com", "isle"), ("ann",)
    for name in ("namespace", "namespace_prefix", "prefix"):
        assert await store(ctx=ctx, value={name: own}) is None
        assert await store(ctx=ctx, value={name: list(own)}) is None
        for value in ({name: other}, {name: ()}, {name: None}, {}, {"namespace": own, "prefix": other}):
            with pytest.raises(Auth.exceptions.HTTPException) as refused:
                await store(ctx=ctx, value=value)
            assert refused.value.status_code == 403
