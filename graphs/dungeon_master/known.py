"""What the notes are shown as known: of the subjects at hand, which attributes have been noted, by which names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages.utils import count_tokens_approximately
from langgraph.runtime import Runtime

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.note_facts import FACTS
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.memory.facts.reading import split_aside
from questbook.memory.facts.writing import Slot, find_slots, subjects_in
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace
from questbook.notebooks import render_value

JSON = dict[str, Any]

_TOKENS = 240  # that the lines may cost, in a campaign of any length
_PEOPLE = 4  # the player's character and whom turns name, whose facts are looked for by themselves
_NO_FACTS = ("exchange", "lore")


async def known_attributes(
    state: DungeonState, runtime: Runtime[Context], turns: Sequence[JSON], recalled: Iterable[Mapping[str, Any]]
) -> str:
    """Tell which attributes are known of the character, of whom turns name, and of what was recalled for them.

    A line is {"subject", "attributes"}. Attributes of secrets are among them: the notes are the dungeon master's own.

    Args:
        state: The state before the notes.
        runtime: With a store, or nothing is known.
        turns: The turns to note, as `transcript` tells them.
        recalled: What was recalled into the prompt.
    """
    if runtime.store is None:
        return ""
    context = runtime.context
    said = "\n".join(str(turn[part]) for turn in turns for part in ("player", "reply"))
    keys = [str(one["key"]) for one in recalled if one.get("key") and one.get("kind") not in _NO_FACTS]
    own = state.character.name or ""  # "you" in what is told
    people = [own, *sorted(subjects_in(said, state.quest.people))]
    facts = campaign_namespace(context.user, context.campaign, FACTS)
    found = await find_slots(
        runtime.store,
        facts,
        said,
        subjects=list(filter(None, people))[:_PEOPLE],
        keys=keys,
        timeline=state.timeline,
        before=state.remembered_through + 1,  # a turn that has no place yet may stand where another future was
    )
    named = subjects_in(f"{said}\n{own}", (one.subject for one in found))
    shown = [one for one in found if one.key in keys or one.subject in named]
    aside = "\n".join(split_aside(str(turn["player"]))[1] for turn in turns).strip()
    if aside:  # only talk out of character tells of the person who plays
        shown += await find_slots(runtime.store, player_namespace(context.user, FACTS), aside)
    return "\n".join(_lines(shown))


def _lines(slots: Iterable[Slot]) -> list[str]:
    """Put attributes together by subject, the first first, as many as fit."""
    by_subject: dict[str, tuple[str, list[str]]] = {}
    lines: dict[str, str] = {}
    left = _TOKENS
    for one in slots:
        about = one.slot.partition("|")[0]
        subject, attributes = by_subject.get(about, (one.subject, []))
        if one.attribute in attributes:  # also a secret, or claimed
            continue
        line = render_value({"subject": subject, "attributes": [*attributes, one.attribute]})
        cost = count_tokens_approximately([line]) - (
            count_tokens_approximately([lines[about]]) if about in lines else 0
        )
        if cost <= left:
            left -= cost
            by_subject[about] = (subject, [*attributes, one.attribute])
            lines[about] = line
    return list(lines.values())
