"""The memories of a character, the assistant by its name: the LTM extension's recall, if `ltm_config` is set."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from langgraph.runtime import Runtime, ServerInfo
from langgraph.store.base import PutOp

from questbook.graphs.companion.context import CompanionContext, assistant_name
from questbook.graphs.companion.prompts import MEMORY
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.errors import QuestbookError
from questbook.graphs.turn.buffer import summarizer_of
from questbook.graphs.turn.node import GaveWay, give_way
from questbook.graphs.turn.prompt import Prompt, Section, escape
from questbook.graphs.turn.scope import run_thread
from questbook.graphs.turn.state import Memory, Notice, Turn, failure_notice, turn_of
from questbook.graphs.turn.turn import public_turns
from questbook.memory.errors import LtmConfigError
from questbook.memory.ltm.config import LtmConfig, LtmReads, LtmWrites
from questbook.memory.ltm.memories import RecalledMemory, memory_write, recall_messages, strip_speaker
from questbook.memory.ltm.prompt import START, inject_text, memory_block
from questbook.memory.recall.intents import off_record
from questbook.memory.recall.times import phrase_age
from questbook.memory.timeline.namespaces import character_name
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import Timeline, as_of, branch_of, record_key
from questbook.types import JSON

SECTION = "character_memories"  # name of the section of the prompt that holds them
_MEMORY_TOKENS = 120  # of a memory that a model makes
_EVERY = "ltm_config"  # in a directory, the file for characters that have none of their own


async def ltm_of(context: CompanionContext, server: ServerInfo | None = None) -> LtmConfig | None:
    """Return the character's LTM settings, read each time, so that a change of the file takes effect; None without any.

    An LtmConfigError says that the file may not or cannot be read, or names each value in it that is wrong.
    """
    if isinstance(context.ltm_config, Mapping):
        return LtmConfig.of(context.ltm_config)
    if not context.ltm_config:
        return None
    if server is not None and context.ltm_config != os.environ.get("QUESTBOOK_LTM_CONFIG"):
        wrong = f"The setting ltm_config is {context.ltm_config!r:.80}, and a server reads no file that a caller names"
        remedy = "give the settings as an object, or name the file in the server's environment, QUESTBOOK_LTM_CONFIG."
        raise LtmConfigError(f"{wrong}: {remedy}")
    return await asyncio.to_thread(_read, context.ltm_config, assistant_name(context.campaign))


async def character_memories(
    state: CompanionState, runtime: Runtime[CompanionContext], config: LtmConfig, message: str, shown: Sequence[str]
) -> list[Memory]:
    """Recall what the character remembers that fits a message, the nearest first; `shown` is in the prompt anyway."""
    if runtime.store is None:
        return []
    context, character = runtime.context, assistant_name(runtime.context.campaign)
    now = datetime.now(context.zone)
    timeline, in_prompt = as_of(state.timeline, state.written), [strip_speaker(text, character) for text in shown]
    talk: JSON = {"user": context.user, "session": f"{run_thread(runtime) or ''}/{state.session}"}
    memories = await recall_messages(
        runtime.store, character, message, config, timeline=timeline, in_prompt=in_prompt, **talk
    )
    found = [
        {"kind": "memory", "score": 1.0 - one.distance, "why": f"distance {one.distance:.2f}", **one._asdict()}
        | {"age": phrase_age(one.said_at or None, now)}
        for one in memories
    ]
    return cast("list[Memory]", found)  # with fields of its own


def with_memories(
    prompt: Prompt, recalled: Sequence[Mapping[str, Any]], config: LtmConfig, context: CompanionContext
) -> Prompt:
    """Put a character's memories into a prompt, by the templates and at the place that its settings say.

    Before all other sections; or before the first <START> in an added section; or last, beside the newest message.
    """
    memories = [RecalledMemory(*(memory[name] for name in RecalledMemory._fields)) for memory in recalled]
    # Cut first: an escape must not be cut in two.
    cut = config.ltm_reads.memory_length_cutoff_in_chars
    clean = [one._replace(text=_quotable(one.text[:cut]), speaker=_quotable(one.speaker)) for one in memories]
    whole = config.model_copy(update={"ltm_reads": LtmReads(memory_length_cutoff_in_chars=sys.maxsize)})
    now = datetime.now(context.zone)
    block = memory_block(clean, whole, name1=context.user, name2=assistant_name(context.campaign), now=now)
    if not block.strip():
        return prompt
    location, sections = config.ltm_context.injection_location, list(prompt.sections)
    if location == "BEFORE_NORMAL_CONTEXT":
        return prompt._replace(sections=[Section(SECTION, block), *sections])
    index = next((n for n, section in enumerate(sections) if START in section.text), None)
    if index is None:
        return prompt._replace(behind=[*prompt.behind, Section(SECTION, block)])
    sections[index] = sections[index]._replace(text=inject_text(sections[index].text, block, location))
    return prompt._replace(sections=sections)


def _quotable(text: str) -> str:
    """Escape text for a template that puts it between double quotation marks."""
    return " ".join(escape(text).replace('"', "&quot;").split())


def memory_ops(
    state: CompanionState,
    runtime: Runtime[CompanionContext],
    config: LtmConfig,
    turns: Sequence[Turn],
    timeline: Timeline,
    origin: Mapping[str, Any],
    made: Mapping[tuple[int, int], str],
) -> list[PutOp]:
    """Make the writes by which the character remembers turns; `made` is what a model made of long messages."""
    context, writes = runtime.context, list[PutOp]()
    character = assistant_name(context.campaign)
    # What a model made a memory of was long enough.
    of_any_length = config.model_copy(update={"ltm_writes": LtmWrites(min_message_length=0)})
    for turn in turns:
        if off_record(turn["player"]):
            continue
        branch = branch_of(timeline, turn["turn"])
        for number, (speaker, text) in enumerate(((context.user, turn["player"]), (character, turn["reply"]))):
            short = made.get((turn["turn"], number))
            write = memory_write(
                character,
                speaker,
                text if short is None else short,
                config if short is None else of_any_length,
                user=context.user,
                said_at=datetime.fromisoformat(origin["said_at"]) if origin.get("said_at") else datetime.now(UTC),
                session=f"{run_thread(runtime) or ''}/{state.session}",
                stamp={**origin, **Stamp(branch, turn["turn"]).to_json()},
                key=record_key(branch, turn["turn"], "memory", number),
            )
            writes += [write] if write else []
    return writes


class Memories(NamedTuple):
    """What a model made of long messages."""

    texts: dict[tuple[int, int], str]  # by turn and place in it: 0 is the person's message, 1 the reply. "" is none
    notices: list[Notice]  # why messages are kept whole nevertheless


async def make_memories(state: CompanionState, runtime: Runtime[CompanionContext], ltm: LtmConfig | None) -> Memories:
    """Have a model make short memories of the long messages of turns that are not stored yet; none without a store."""
    made, longest = Memories({}, []), ltm.ltm_writes.condense_longer_than if ltm else 0
    if not longest or runtime.store is None:
        return made
    context = runtime.context
    character = assistant_name(context.campaign).replace("{", "").replace("}", "")
    summarizer = summarizer_of(context, MEMORY.format(character=character, words="{words}"))
    for turn in public_turns(state.transcript(state.remembered_through + 1, state.turn)):
        for number, (part, words) in enumerate((("player", turn["player"]), ("reply", turn["reply"]))):
            if len(words) <= longest:
                continue
            alone = turn_of(turn["turn"], {part: words})
            try:
                async with asyncio.timeout(context.update_timeout):
                    text = await give_way(summarizer.fold("", [alone], _MEMORY_TOKENS), runtime)
            except GaveWay:
                return made
            except (TimeoutError, QuestbookError) as error:
                text = "A long message is remembered whole, because no shorter memory could be made of it."
                made.notices.append(failure_notice(state.turn, "remember", text, error))
                continue
            made.texts[turn["turn"], number] = "" if text.strip(" .\n").casefold() == "nothing" else text
    return made


def _read(path: str, character: str) -> LtmConfig:
    try:
        location = Path(path).expanduser()
        if not location.is_dir():
            return LtmConfig.read(location)
        files = {character_name(file.stem): file for file in sorted(location.glob("*.json"))}
    except (OSError, RuntimeError) as error:
        raise LtmConfigError(f"{path} cannot be read: {error}.") from error
    file = files.get(character_name(character)) or files.get(_EVERY)
    if file is None:
        own = f"{character_name(character)}.json"
        raise LtmConfigError(f"{path} has no settings for {character!r}: neither {own!r} nor '{_EVERY}.json'.")
    return LtmConfig.read(file)
