"""The memories that are compared: one module each, of about forty lines, with an `ADAPTER` at its end.

- `adapter`: what an adapter says of itself. Read this first, then `plain_node`, the shortest one.
- `trimmed`: which part of the conversation an agent of `create_agent` sends.
"""

from importlib import import_module

from benchmarks.forkbench.adapters.adapter import Adapter

NAMES = (
    "questbook_middleware",
    "questbook_exchanges",
    "questbook_graph",
    "questbook_game",
    "plain_node",
    "store_summary",
    "langmem_tools",
    "langmem_manager",
    "deepagents_memory",
    "mem0_memory",
)


def load_adapter(name: str) -> Adapter:
    """Return the adapter of a module: of one of these by its name, of any other by its import path."""
    path = name if "." in name else f"{__name__}.{name}"
    adapter: Adapter = import_module(path).ADAPTER
    return adapter
