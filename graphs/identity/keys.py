"""`IssuerKeys`: the public keys with which an issuer signs its tokens, fetched from it (JWKS) and kept for a while."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from questbook.graphs.errors import IdentityError, SettingsError

_log = logging.getLogger(__name__)
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)  # fmt: skip
"""Those of public keys. "none" is not among them, nor any whose key would be a secret."""
_FRESH_SECONDS = 600.0  # then the keys are fetched again: the issuer may have withdrawn one
_LAST_SECONDS = 3600.0  # how long they hold while the issuer does not answer
_PAUSE_SECONDS = 30.0  # between two fetches, whatever strangers send
_TIMEOUT_SECONDS = 5.0
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class IssuerKeys:
    """The keys of an issuer, by their id.

    Args:
        issuer: Its URL, where its configuration says at which address the keys are.
        url: That address, if it is named; "": ask the issuer.
        clock: Seconds; for tests.
    """

    def __init__(self, issuer: str, url: str = "", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer, self._url, self._clock = issuer, url, clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._task: asyncio.Task[None] | None = None
        self._fetched = self._asked = float("-inf")  # when keys came last; when the issuer was asked last
        self._fetching = asyncio.Lock()

    async def key(self, name: str) -> jwt.PyJWK:
        """Return the key with this id.

        Raises:
            IdentityError: There is none (401), or the issuer has not said for too long which there are (503).
        """
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
    """Return a URL from which keys may come: by HTTPS, or from this computer.

    Raises:
        SettingsError: It is none.
    """
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
