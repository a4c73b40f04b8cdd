"""The leak canary: it looks once more at the records of a prompt, and calls out if the run may not see one.

It compares labels and numbers by itself: a mistake in namespaces or timelines is no mistake here. What it finds is left
out of the prompt, counted in `counts` ("checked", "leaked"), and logged as an error.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from questbook.graphs.settings import Settings
from questbook.memory.timeline.namespaces import unescape_label
from questbook.memory.timeline.timeline import Timeline, UserTimeline

if TYPE_CHECKING:
    from questbook.graphs.turn.state import TurnState
    from questbook.memory.recall.query import Recalled

_log = logging.getLogger(__name__)
_TEAMS, _PLAYER = "~teams", "player"  # labels that no name escapes to
counts = Counter[str](checked=0, leaked=0)


def without_leaks(
    records: Iterable["Recalled"], state: "TurnState", settings: Settings, timeline: Timeline
) -> list["Recalled"]:
    """Return the records that the run of a turn may see; `timeline` is that of `visible_timeline`."""
    kept: list[Recalled] = []
    for record in records:
        counts["checked"] += 1
        if problem := _problem(record, state, settings, timeline):
            counts["leaked"] += 1
            _log.error("Turn %d: a record was left out of the prompt, because it is of %s", state.turn, problem)
        else:
            kept.append(record)
    return kept


def _problem(record: "Recalled", state: "TurnState", settings: Settings, timeline: Timeline) -> str:
    owner, campaign, *_ = (*record.namespace, "", "")
    if owner == _TEAMS:
        if unescape_label(campaign) != settings.team:
            return "another team"
    elif owner and unescape_label(owner) != settings.user:
        return "another user"
    elif owner and campaign != _PLAYER and unescape_label(campaign) != settings.campaign:
        return "another campaign"
    branch, turn = record.value.get("branch"), int(record.value.get("turn") or 0)
    if branch is None or (turn < state.turn and any(name == branch and turn <= end for name, end in state.timeline)):
        return ""
    other: Timeline = ()
    if isinstance(timeline, UserTimeline) and state.SCOPE == "user":
        other = timeline.head_of(timeline.other_thread(str(record.value.get("thread") or ""), str(branch), turn))
    return "" if any(name == branch and turn <= end for name, end in other) else "another future"
