"""The graphs that `aegra.json` names: Aegra wants a file, where LangGraph's server takes a module."""

from questbook.graphs.companion.graph import graph as companion
from questbook.graphs.dungeon_master.graph import graph as dungeon_master
from questbook.graphs.reflect.graph import graph as reflect

__all__ = ["companion", "dungeon_master", "reflect"]
