"""`Identity`: who asks. `TokenCheck`: what says so, by a token; `bearer_of`: the token of a request."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Identity(NamedTuple):
    """Who asks. Two issuers' "bob" are two people, so a name says both."""

    name: str  # the user under whom all is kept: "bob@login.example.org"
    issuer: str  # who vouches for them
    subject: str  # what the issuer calls them


class TokenCheck(Protocol):
    """Says whose a token is, and whether what vouched for a session still does."""

    async def identify_token(self, token: str) -> Identity:
        """Return whose token it is; an IdentityError, if it does not hold, or cannot be checked now."""

    def vouches(self, person: str, issuer: str) -> bool:
        """Whether a person's session, which a token of this issuer began, may go on."""


def bearer_of(headers: Mapping[Any, Any]) -> str:
    """Return the bearer token of a request; "" if it has none. Names and values are texts, or bytes as in ASGI."""
    for name, value in headers.items():
        name, value = (each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in (name, value))
        kind, _, token = value.partition(" ")
        if name.casefold() == "authorization" and kind.casefold() == "bearer":
            return str(token).strip()
    return ""
