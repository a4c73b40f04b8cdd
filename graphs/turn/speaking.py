"""Speaking: which nodes of a graph have words for the person; their metadata says so, in its stream as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

KEY = "speaks"

ASKS = {KEY: "asks"}
"""Metadata of a node that asks for what a page still lacks."""
ANSWERS = {KEY: "answers"}
"""Metadata of a node that answers, and is asked again after its tools have answered."""


def speaking(graph: CompiledStateGraph[Any, Any, Any, Any]) -> dict[str, str]:
    """Return the nodes that speak, each with how: "asks" or "answers"."""
    nodes = graph.builder.nodes.items()
    return {name: str(node.metadata[KEY]) for name, node in nodes if node.metadata and KEY in node.metadata}
