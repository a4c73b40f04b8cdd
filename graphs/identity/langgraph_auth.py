"""`auth`: the log-in of LangGraph's server, and of others that take LangGraph's `Auth`, such as Aegra.

`langgraph.json` names it: `"auth": {"path": "questbook.graphs.identity.langgraph_auth:auth"}`. `keep_apart` adds its
rules to an `Auth` with a log-in of your own.
"""

from typing import TYPE_CHECKING, Any

from langgraph_sdk import Auth

from questbook.graphs.errors import IdentityError, SettingsError
from questbook.memory.timeline.namespaces import escape_label

if TYPE_CHECKING:
    from questbook.graphs.identity.tokens import TokenVerifier

_PREFIXES = ("namespace", "namespace_prefix", "prefix")  # LangGraph's name for it, and Aegra's two


def keep_apart(auth: Auth) -> Auth:
    """Let each user see their own threads, runs and memories alone, over the server's own API."""

    @auth.on
    async def own_threads(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, Any]:
        owner = {"owner": ctx.user.identity}
        if ctx.resource == "assistants" and ctx.action in ("read", "search"):
            return {"$or": [owner, {"created_by": "system"}]}  # the server's own, one of each graph
        if value.get("metadata") is None:  # it may be there and be None
            value["metadata"] = {}
        value["metadata"].pop("created_by", None)  # what a person makes is not the server's
        value["metadata"].update(owner)  # in its place: the server keeps this very object
        return owner

    @auth.on.store
    async def own_memories(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:
        own = escape_label(ctx.user.identity)
        named = [tuple(value[name] or ())[:1] for name in _PREFIXES if name in value]
        if not named or any(first != (own,) for first in named):
            detail = f"These are the memories of another user. Your memories are below {own!r}."
            raise Auth.exceptions.HTTPException(status_code=403, detail=detail)

    return auth


def auth_of(verifier: "TokenVerifier") -> Auth:
    """Return an `Auth` whose users are those that a verifier names."""
    made = keep_apart(Auth())

    # LangGraph gives an argument by its name, with bytes; Aegra gives one, whatever it is called, with texts.
    @made.authenticate
    async def log_in(headers: dict[Any, Any]) -> Auth.types.MinimalUserDict:
        try:
            return {"identity": (await verifier.identify(headers)).name}
        except IdentityError as error:  # LangGraph passes on the sentences of 401 and 403 alone
            raise Auth.exceptions.HTTPException(status_code=401, detail=str(error)) from error

    return made


def __getattr__(name: str) -> Auth:
    """Make `auth` of the variables when a server asks for it; what is wrong ends the server.

    An error would not do: where Aegra cannot load a log-in, it lets everybody in.
    """
    if name != "auth":
        raise AttributeError(name)
    try:
        from questbook.graphs.identity import tokens

        if (verifier := tokens.TokenVerifier.from_environment()) is None:
            raise SettingsError(f"The log-in has no issuer. Set {tokens.ISSUER} and {tokens.AUDIENCE}.")
    except ImportError as error:
        raise SystemExit(f"The log-in needs {error.name}: pip install 'questbook[identity]'.") from error
    except SettingsError as error:
        raise SystemExit(str(error)) from error
    globals()[name] = made = auth_of(verifier)
    return made
