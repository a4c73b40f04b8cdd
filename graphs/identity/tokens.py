"""`TokenVerifier`: from the headers of a request to who sends it, by a token of an OpenID Connect issuer.

`IssuerKeys`: the public keys with which the issuer signs its tokens, fetched from it (JWKS) and kept for a while.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import jwt

from questbook.graphs.errors import IdentityError, SettingsError
from questbook.graphs.identity.identity import Identity, bearer_of

_log = logging.getLogger(__name__)
ISSUER, AUDIENCE = "QUESTBOOK_OIDC_ISSUER", "QUESTBOOK_OIDC_AUDIENCE"
KEYS_URL, SECRET = "QUESTBOOK_OIDC_JWKS_URL", "QUESTBOOK_JWT_SECRET"
VARIABLES = (ISSUER, AUDIENCE, KEYS_URL, SECRET)
_LEEWAY_SECONDS = 30.0  # by which clocks may differ
_SHORTEST_SECRET = 32  # bytes, as many as HS256 makes
_LONGEST_NAME = 200  # characters, as of every user
_KINDS = ("jwt", "at+jwt", "application/at+jwt")  # of the header's `typ`; a log-out token is no log-in
_CLAIMS = ("iss", "aud", "exp", "sub")
_REASONS: Mapping[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "has expired. Log in again",
    jwt.ImmatureSignatureError: "is not valid yet. Compare the clocks of this server and of the log-in",
    jwt.InvalidAudienceError: "is for another audience",
    jwt.InvalidIssuerError: "is from another issuer",
    jwt.MissingRequiredClaimError: f"must say {', '.join(_CLAIMS)}",
    jwt.InvalidAlgorithmError: "is signed by an algorithm that is not allowed",
    jwt.InvalidSignatureError: "is not signed by its issuer",
}
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"})
"""Those of public keys. "none" is not among them, nor any whose key would be a secret."""
_FRESH_SECONDS = 600.0  # then the keys are fetched again: the issuer may have withdrawn one
_LAST_SECONDS = 3600.0  # how long they hold while the issuer does not answer
_PAUSE_SECONDS = 30.0  # between two fetches, whatever strangers send
_TIMEOUT_SECONDS = 5.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class TokenVerifier:
    """Checks tokens of one issuer for one audience.

    Args:
        issuer: The issuer's URL, exactly as its tokens say it.
        audience: Whom its tokens must be for: the id of this application there.
        keys_url: Where its public keys (JWKS) are; "": its `/.well-known/openid-configuration` says so.
        secret: For tests and small set-ups: tokens are signed with this secret (HS256), and the issuer is not asked.

    Raises:
        SettingsError: One is missing or wrong, or `keys_url` and `secret` are both there.
    """

    def __init__(self, issuer: str, audience: str, *, keys_url: str = "", secret: str = "") -> None:
        if not issuer or not audience:
            missing = ISSUER if not issuer else AUDIENCE
            raise SettingsError(f"{missing} is missing: a token holds for one issuer and one audience. Set both.")
        check_url(ISSUER, issuer)
        if keys_url and secret:
            raise SettingsError(f"Set {KEYS_URL} or {SECRET}, not both: tokens have one kind of signature.")
        if secret and len(secret.encode()) < _SHORTEST_SECRET:
            problem = f"{SECRET}: got {len(secret.encode())} bytes; expected {_SHORTEST_SECRET} or more"
            raise SettingsError(f"{problem}, such as: openssl rand -hex 32.")
        self.issuer, self._audience, self._secret = issuer, audience, secret
        self._keys = IssuerKeys(issuer, keys_url and check_url(KEYS_URL, keys_url))

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> Self | None:
        """Return the verifier that the variables describe; None if none of them is set."""
        issuer, audience, keys_url, secret = (variables.get(name, "").strip() for name in VARIABLES)
        if not (issuer or audience or keys_url or secret):
            return None
        return cls(issuer, audience, keys_url=keys_url, secret=secret)

    async def identify(self, headers: Mapping[Any, Any]) -> Identity:
        """Return who sends a request with these headers, or raise an IdentityError (`TokenCheck.identify_token`)."""
        return await self.identify_token(bearer_of(headers))

    async def identify_token(self, token: str) -> Identity:
        """As `identify`, of the token alone."""
        if not token:
            raise IdentityError("Nobody is logged in: the request has no bearer token.")
        try:
            if not token.isascii():
                raise jwt.DecodeError
            header = jwt.get_unverified_header(token)
            if str(header.get("typ", "jwt")).casefold() not in _KINDS:
                raise IdentityError("The token is of a kind that logs nobody in.")
            key, algorithms = await self._key_for(header)
            claims = jwt.decode(
                token, key, algorithms, audience=self._audience, issuer=self.issuer, leeway=_LEEWAY_SECONDS,
                options={"require": list(_CLAIMS), "enforce_minimum_key_length": True},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            reason = next((text for kind, text in _REASONS.items() if isinstance(error, kind)), "cannot be read")
            raise IdentityError(f"The token {reason}.") from error
        return Identity(name_of(self.issuer, claims["sub"]), self.issuer, claims["sub"])

    def vouches(self, person: str, issuer: str) -> bool:  # noqa: D102
        return issuer == self.issuer and bool(person)

    async def _key_for(self, header: Mapping[str, Any]) -> tuple[jwt.PyJWK | str, list[str]]:
        """Return the key and the algorithms that may have signed; the header chooses among keys, never their kind."""
        if self._secret:
            return self._secret, ["HS256"]
        if str(header.get("alg")) not in ALGORITHMS:  # a list is none, and cannot be looked up
            raise jwt.InvalidAlgorithmError  # so that strangers cannot have the keys fetched
        key = await self._keys.key(str(header.get("kid", "")))
        return key, [key.algorithm_name]


def name_of(issuer: str, subject: str) -> str:
    """Return the name of an issuer's subject. No two have the same one: an issuer's URL has no "@"."""
    name = f"{subject}@{issuer.removeprefix('https://')}"
    if not subject.strip() or not subject.isprintable() or subject != subject.strip() or len(name) > _LONGEST_NAME:
        problem = f"{name!r:.80} cannot be the name of a user"
        raise IdentityError(f"{problem}: it has 1 to {_LONGEST_NAME} characters, all of which can be seen.")
    return name


class IssuerKeys:
    """The keys of an issuer, by their id; at `url`, or where the issuer's configuration says ("")."""

    def __init__(self, issuer: str, url: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer, self._url, self._clock = issuer, url, clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._task: asyncio.Task[None] | None = None
        self._fetched = self._asked = float("-inf")  # when keys came last; when the issuer was asked last
        self._fetching = asyncio.Lock()

    async def key(self, name: str) -> jwt.PyJWK:
        """Return the key with this id; an IdentityError, if there is none (401), or all are too old (503)."""
        age = self._clock() - self._fetched
        if name not in self._keys or age >= _LAST_SECONDS:
            await self._fetch()
        elif age >= _FRESH_SECONDS and not self._fetching.locked():
            self._task = asyncio.create_task(self._fetch())  # nobody waits for an issuer that is slow
        if self._clock() >= self._fetched + _LAST_SECONDS:
            raise IdentityError("The keys of the log-in cannot be fetched now. Try again in a minute.", 503)
        if name not in self._keys:
            raise IdentityError("The token is signed with a key that its issuer does not name. Log in again.")
        return self._keys[name]

    async def _fetch(self) -> None:
        """Fetch the keys, unless the issuer was asked just now; if that fails, log it, and the old ones hold on."""
        async with self._fetching:  # one thread at most waits for the issuer
            if self._clock() < self._asked + _PAUSE_SECONDS:
                return
            self._asked = self._clock()
            try:
                self._keys = await asyncio.to_thread(self._read)
                self._fetched = self._clock()
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, TypeError, LookupError, SettingsError) as error:
                _log.warning("The keys of %s cannot be fetched: %s", self._issuer, error)

    def _read(self) -> dict[str, jwt.PyJWK]:
        url = self._url
        if not url:
            about = _get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
            if about.get("issuer") != self._issuer:
                raise ValueError(f"its configuration is that of {about.get('issuer')!r:.200}")
            url = check_url("jwks_uri", str(about.get("jwks_uri", "")))
        found = [key for each in _get(url)["keys"] if (key := _usable(each)) is not None]
        if not found:
            raise ValueError(f"{url} names no key that can be used")
        return {str(key.key_id): key for key in found}


def check_url(name: str, url: str) -> str:
    """Return a URL from which keys may come: by HTTPS, or from this computer."""
    try:
        parts = urlsplit(url)
        is_safe = bool(parts.hostname) and parts.scheme == "https"
        is_safe |= parts.scheme == "http" and parts.hostname in _LOOPBACK
    except ValueError:
        is_safe = False
    if not is_safe or any(sign in url for sign in "@?#") or not url.isprintable() or " " in url:
        expected = "an https:// address without user, query and fragment; http:// on this computer alone"
        raise SettingsError(f"{name}: got {url!r:.200}; expected {expected}.")
    return url


def _get(url: str) -> Mapping[str, Any]:
    answer = httpx.get(url, timeout=_TIMEOUT_SECONDS, follow_redirects=False)
    answer.raise_for_status()
    about = answer.json()
    if not isinstance(about, dict):
        raise ValueError(f"{url} answers no JSON object")
    return about


def _usable(key: Any) -> jwt.PyJWK | None:
    """Read a key; None if it has no id, is not for signatures, or is of a kind that is not allowed.

    An RSA key that names no algorithm is for RS256.
    """
    if not isinstance(key, dict) or not key.get("kid") or key.get("use", "sig") != "sig":
        return None
    try:
        read = jwt.PyJWK.from_dict(key)
    except (jwt.PyJWTError, ValueError, TypeError, LookupError):
        return None  # issuers may name keys of kinds that this program does not know
    return read if read.algorithm_name in ALGORITHMS else None
