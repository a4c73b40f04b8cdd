"""What Prometheus reads of this process: turns, times, upkeep, recall, tokens, failures, and the leak canary.

Labels are names of ours: machines, outcomes, modules, classes of errors. No user, no campaign, no word is among them.
"""

import logging
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily

from questbook.graphs.turn import canary

REGISTRY = CollectorRegistry()
_REPLY = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)  # seconds: of a built-in model, and of a slow one
_RECALL = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.3, 2.6, 5, 20)
_OF, _ALL = ["machine"], dict[str, Any](registry=REGISTRY, namespace="questbook")

TURNS = Counter("turns", "Turns that have ended.", ["machine", "outcome"], **_ALL)
FIRST_TOKEN = Histogram("first_token_seconds", "From a message to the reply's start.", _OF, buckets=_REPLY, **_ALL)
REPLY = Histogram("turn_seconds", "From a message to the end of its reply.", _OF, buckets=_REPLY, **_ALL)
UPKEEP = Histogram("upkeep_seconds", "From the end of a reply to the end of its notes.", _OF, buckets=_REPLY, **_ALL)
BACKLOG = Gauge("upkeep_backlog", "Turns that were replied to and are still being noted.", **_ALL)
RECALL = Histogram("recall_seconds", "Searches in memory for a turn.", buckets=_RECALL, **_ALL)
TOKENS = Counter("tokens", "Tokens, as providers counted them.", ["direction"], **_ALL)
FAILURES = Counter("failures", "What failed, by module or machine, and class of error.", ["where", "kind"], **_ALL)
CAMPAIGNS = Gauge("open_campaigns", "Campaigns that are open on the page.", **_ALL)
STREAMS = Gauge("streams", "Pages that listen.", **_ALL)
ProcessCollector(registry=REGISTRY)


class _Canary:
    def collect(self) -> Iterator[CounterMetricFamily]:
        checked = "Records that were checked before they went into a prompt."
        leaked = "Of those, records that the run may not see, and that were left out. Always 0."
        for name, text in (("checked", checked), ("leaked", leaked)):
            yield CounterMetricFamily(f"questbook_canary_{name}", text, canary.counts[name])


class Failures(logging.Handler):
    """Counts warnings and errors of ours: each says that something failed, and mostly that the turn went on."""

    def emit(self, record: logging.LogRecord) -> None:  # noqa: D102
        error = record.exc_info[0] if record.exc_info else None
        kind = error.__name__ if error else getattr(record, "kind", record.levelname)
        FAILURES.labels(record.name.removeprefix("questbook."), kind).inc()


REGISTRY.register(_Canary())


def render() -> bytes:
    """Return the counts as Prometheus reads them."""
    return generate_latest(REGISTRY)
