"""`TokenVerifier`: from the headers of a request to who sends it, by a token of an OpenID Connect issuer."""

import os
from collections.abc import Mapping
from typing import Any, Self

import jwt

from questbook.graphs.errors import IdentityError, SettingsError
from questbook.graphs.identity.identity import Identity, bearer_of
from questbook.graphs.identity.keys import ALGORITHMS, IssuerKeys, check_url

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
        """Return the verifier that the variables describe; None if none of them is set.

        Raises:
            SettingsError: They are wrong, or some are missing.
        """
        issuer, audience, keys_url, secret = (variables.get(name, "").strip() for name in VARIABLES)
        if not (issuer or audience or keys_url or secret):
            return None
        return cls(issuer, audience, keys_url=keys_url, secret=secret)

    async def identify(self, headers: Mapping[Any, Any]) -> Identity:
        """Return who sends a request with these headers.

        Raises:
            IdentityError: They name nobody, the token does not hold, or it cannot be checked now.
        """
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

    def vouches(self, person: str, issuer: str) -> bool:
        """Whether a session that an issuer's token began may go on."""
        return issuer == self.issuer and bool(person)

    async def _key_for(self, header: Mapping[str, Any]) -> tuple[jwt.PyJWK | str, list[str]]:
        """Return the key and the algorithms that may have signed; the header chooses among keys, never their kind."""
        if self._secret:
            return self._secret, ["HS256"]
        if header.get("alg") not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError  # so that strangers cannot have the keys fetched
        key = await self._keys.key(str(header.get("kid", "")))
        return key, [key.algorithm_name]


def name_of(issuer: str, subject: str) -> str:
    """Return the name of an issuer's subject. No two have the same one: an issuer's URL has no "@".

    Raises:
        IdentityError: The subject is empty, too long, or has characters that cannot be seen.
    """
    name = f"{subject}@{issuer.removeprefix('https://')}"
    if not subject.strip() or not subject.isprintable() or subject != subject.strip() or len(name) > _LONGEST_NAME:
        problem = f"{name!r:.80} cannot be the name of a user"
        raise IdentityError(f"{problem}: it has 1 to {_LONGEST_NAME} characters, all of which can be seen.")
    return name
