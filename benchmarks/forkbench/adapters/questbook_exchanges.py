"""Ours as middleware of `create_agent` without notes, its default: exchanges alone, and no call of a model."""

from __future__ import annotations

from benchmarks.forkbench.adapters.adapter import OUR_STORES, Adapter
from benchmarks.forkbench.adapters.questbook_middleware import build_with
from benchmarks.forkbench.bench import Bench
from benchmarks.forkbench.game import Agent


def build(bench: Bench) -> Agent:
    """Make the agent without `facts`."""
    return build_with(bench, None)


ADAPTER = Adapter("questbook, without notes", build, package="questbook", doc="docs/middleware.md", stores=OUR_STORES)
