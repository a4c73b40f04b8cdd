"""What is known of LangGraph's server, and of what LangGraph puts into a run's configuration. Nothing else names it.

Other servers that speak its API, such as Aegra, give a run its thread and who logged in, and neither a queue of their
own nor a client that asks without a token.

Loads neither LangGraph nor the server: who opens a game in the terminal pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from questbook.types import JSON

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

OWN_CALLS = "/noauth"  # the root path by which the server calls itself, without a socket
# Keys of a run's `configurable`:
RUN_ID = "run_id"  # which run of the server it is
CHECKPOINTER = "__pregel_checkpointer"  # what LangGraph hands on to subgraphs: the run's checkpointer,
DURABILITY = "__pregel_durability"  # its durability,
READ = "__pregel_read"  # and how they read the state


def has_queue(runtime: Runtime[Any]) -> bool:
    """Whether LangGraph's server runs this, so that `client` reaches its threads and its queue of runs."""
    server = runtime.server_info
    return server is not None and bool(server.assistant_id or server.graph_id)


def client() -> Any:
    """Return a client of the server that this process is; it may do what the server itself may."""
    return import_module("langgraph_sdk").get_client()


def logged_in(configurable: Mapping[str, Any]) -> Any:
    """Return the identity of who logged in, from a run's `configurable`; None if nobody did, or there is no log-in."""
    user = configurable.get("langgraph_auth_user")
    identity = user.get("identity") if isinstance(user, Mapping) else getattr(user, "identity", None)
    return identity or configurable.get("langgraph_auth_user_id") or None


def has_log_in() -> bool:
    """Whether people log in to LangGraph's server, by an `Auth` or by LangSmith."""
    config = import_module("langgraph_api.config")
    return bool(config.LANGGRAPH_AUTH) or config.LANGGRAPH_AUTH_TYPE != "noop"


def who_logged_in() -> str | None:
    """Return who asks LangGraph's server, "" without a name; None where the server itself does."""
    caller = import_module("langgraph_api.utils").get_auth_ctx()
    return str(caller.user.identity) if caller and caller.user else None


def read_settings(part: Literal["cors", "store"]) -> JSON:
    """Return `http.cors` or `store` of `langgraph.json`; empty if it is not there."""
    return getattr(import_module("langgraph_api.config"), f"{part.upper()}_CONFIG") or {}
