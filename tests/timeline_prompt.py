"""A prompt of the timeline model: what it tells of the past, beside what it may and what it must."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage
from scripted import sections_of
from timeline_records import Record, exchanges_of, facts_of, holding, read

MOST = 48  # memories that a prompt recalls; where there are as many, others may have had no room


def recalled(prompt: Sequence[BaseMessage]) -> list[Record]:
    """What the prompt's memories tell."""
    _, _, after = sections_of(prompt).partition("<memories>\n")
    lines, _, _ = after.partition("\n</memories>")
    return [read(json.loads(line)) for line in lines.splitlines()]


def faults_of(prompt: Sequence[BaseMessage], stored: Sequence[Record], late: Sequence[Record]) -> Counter[str]:
    """Count what a prompt tells and should not, tells twice, does not tell and should, and tells though it is over.

    Args:
        prompt: The messages, the system's first.
        stored: What stands in the store of the past.
        late: What may have come to stand there since; of a past that waits for some, nothing is sure to hold.
    """
    told, holds = Counter(recalled(prompt)), holding(stored)
    words = "\n".join(message.text for message in prompt[1:] if not isinstance(message, HumanMessage))
    here = {one.turn for one in exchanges_of(stored) if one.reply in words}
    exchanges = {one for one in exchanges_of(stored) if one.turn not in here}
    due = exchanges | {fact for fact in holds if fact.kind == "secret" or fact.turn not in here}
    sure = not late and told.total() < MOST
    return Counter(
        leaked=sum(1 for one in told if one not in stored and one not in late),
        missing=sum(1 for one in due if one not in told) if sure else 0,
        doubled=told.total() - len(told) + sum(1 for one in exchanges_of(told) if one.turn in here),
        outdated=0 if late else sum(1 for one in facts_of(told) if one in stored and one not in holds),
    )
