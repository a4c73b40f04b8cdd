"""What of a character's memory goes into a prompt: recalled memories, and when they last talked, and of what."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from langchain_core.messages import AnyMessage, SystemMessage
from langgraph.store.base import BaseStore, PutOp

from questbook.memory.ltm.config import Location, LtmConfig
from questbook.memory.ltm.memories import MEMORIES, SESSIONS, RecalledMemory
from questbook.memory.recall.times import phrase_age
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import character_namespace
from questbook.memory.timeline.timeline import Timeline, is_visible

Parts = list[str | dict[object, object]]
START = "<START>"  # in a character's context: here begin the example messages


class LastTalk(NamedTuple):
    """When they last talked, ISO 8601, in how many sessions, and of what: "" and 0 if never."""

    said_at: str = ""
    sessions: int = 0
    speaker: str = ""
    text: str = ""


def memory_block(
    memories: Sequence[RecalledMemory], config: LtmConfig, *, name1: str, name2: str, now: datetime
) -> str:
    """Render memories as the block that goes into the prompt; "" if there are none.

    name1 is the user's name, name2 the character's; the ages of the memories count from `now`.
    """
    if not memories:
        return ""
    lines = "\n".join(
        config.ltm_context.memory_template.format(
            time_difference=phrase_age(memory.said_at, now),
            memory_name=memory.speaker,
            memory_message=memory.text[: config.ltm_reads.memory_length_cutoff_in_chars],
            memory_date=memory.said_at[:10] or "unknown date",
            memory_times=str(memory.times),
        )
        for memory in memories
    )
    return config.ltm_context.memory_context_template.format(name1=name1, name2=name2, all_memories=lines)


def inject_text(context: str, block: str, location: Location) -> str:
    """Put a block into a character's context, on lines of its own.

    Before the context, or after it: before the first <START>, which stays, or at the end of a context that has none.
    An empty block leaves the context as it is.
    """
    if not block.strip():
        return context
    if location == "BEFORE_NORMAL_CONTEXT":
        return f"{block.strip()}\n{context.strip()}"
    before, start, after = context.partition(START)
    return f"{before.rstrip()}\n{block.strip()}\n{start}{after}".strip("\n")


def inject(
    messages: Sequence[AnyMessage],
    memories: Sequence[RecalledMemory],
    config: LtmConfig | None = None,
    *,
    name1: str = "User",
    name2: str = "Assistant",
    now: datetime | None = None,
) -> list[AnyMessage]:
    """Return the messages with the memories in their context, which is the first system message, or a new one.

    The messages themselves are not changed, so the memories last for this one prompt. Settings that are not given are
    the extension's example; name1 is the user's name, name2 the character's.
    """
    config, prompt = config or LtmConfig(), list(messages)
    block = memory_block(memories, config, name1=name1, name2=name2, now=now or datetime.now(UTC))
    if not block.strip():
        return prompt
    for position, message in enumerate(prompt):
        if isinstance(message, SystemMessage):
            content = _inject_content(message.content, block, config.ltm_context.injection_location)
            prompt[position] = message.model_copy(update={"content": content})
            return prompt
    return [SystemMessage(block.strip()), *prompt]


async def note_session(
    store: BaseStore,
    character: str,
    session: str,
    *,
    user: str | None = None,
    now: datetime | None = None,
    memory: str | None = None,
) -> None:
    """Note that they talk; to be called once a turn, since also a talk of which nothing is remembered was one.

    No undo takes it back. The session is a thread's id, `memory` the key of what was remembered of it, if anything was.
    """
    at = (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")
    place = character_namespace(character, SESSIONS, user=user)
    known = await store.aget(place, session)
    value = dict(known.value) if known else {"began": at, "memory": None}
    value |= {"last": max(at, str(value.get("last", ""))), "memory": memory or value["memory"]}
    await put_all(store, [PutOp(place, session, value, index=False)])


async def last_talk(
    store: BaseStore,
    character: str,
    *,
    user: str | None = None,
    session: str | None = None,
    timeline: Timeline | None = None,
) -> LastTalk:
    """Find out when they last talked, before the session that is going on, which does not count.

    A memory that carries a branch and turn is used only if the timeline sees it.
    """
    place = character_namespace(character, SESSIONS, user=user)
    talks = [item.value async for item in items_under(store, place) if item.key != session]
    if not talks:
        return LastTalk()
    talks.sort(key=lambda talk: str(talk["last"]), reverse=True)
    talk = LastTalk(str(talks[0]["last"]), len(talks))
    for key in (talk["memory"] for talk in talks if talk["memory"]):
        memory = await store.aget(character_namespace(character, MEMORIES, user=user), str(key))
        if memory is not None and is_visible(timeline, memory.value):
            return talk._replace(speaker=str(memory.value["speaker"]), text=str(memory.value["text"]))
    return talk


def greeting_line(talk: LastTalk, *, name1: str, name2: str, now: datetime) -> str:
    """Say for the prompt how long it has been, so that the character (name2) can greet the user (name1) accordingly."""
    if not talk.sessions:
        return f"{name1} and {name2} have not talked before."
    often = "once" if talk.sessions == 1 else f"{talk.sessions} times"
    line = f"{name1} and {name2} have talked {often} before, last {phrase_age(talk.said_at, now)}."
    return f"{line} Of what {talk.speaker} said then is remembered: “{talk.text[:300]}”" if talk.text else line


def _inject_content(content: str | Parts, block: str, location: Location) -> str | Parts:
    if isinstance(content, str):
        return inject_text(content, block, location)
    # Content in parts, as for prompt caching: the block is a part of its own, so that the others stay as they were.
    part: dict[object, object] = {"type": "text", "text": f"{block.strip()}\n"}
    if location == "BEFORE_NORMAL_CONTEXT":
        return [part, *content]
    for position, old in enumerate(content):
        text = old if isinstance(old, str) else old.get("text")
        if isinstance(text, str) and START in text:
            changed = inject_text(text, block, location)
            new = changed if isinstance(old, str) else {**old, "text": changed}
            return [*content[:position], new, *content[position + 1 :]]
    return [*content, part]
