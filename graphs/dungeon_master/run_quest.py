"""run_quest: the dungeon master's reply."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime

from graphs.dungeon_master.context import Context
from graphs.dungeon_master.recall import memories_for
from graphs.dungeon_master.roll_dice import ROLL_DICE
from graphs.dungeon_master.sections import quest_prompt
from graphs.dungeon_master.state import DungeonState
from graphs.errors import ModelError
from graphs.model import chat_model
from graphs.models import ask
from graphs.tool_calls import calls_of
from memory.buffer import turns_of


async def run_quest(state: DungeonState, runtime: Runtime[Context]) -> dict[str, Any]:
    """Answer the player, or ask for dice first.

    Raises:
        ModelError: The model failed or said nothing. The player's message stands in the checkpoint; run the thread
            again without input to retry the turn.
    """
    if state.recalled is None:  # the run was resumed here, and what was recalled is not checkpointed
        state = state.model_copy(update={"recalled": await memories_for(state, runtime)})
    prompt = quest_prompt(state, runtime.context)
    runtime.stream_writer(prompt.told("run_quest", state.turn))
    model = (await chat_model(runtime.context)).bind_tools([ROLL_DICE])
    reply = await ask(
        model,
        prompt.messages,
        model_name=runtime.context.model,
        timeout=runtime.context.model_timeout,
    )
    if calls_of(reply) and _rounds(state) >= runtime.context.max_roll_rounds:
        if not reply.text.strip():
            raise ModelError(f"{runtime.context.model} keeps calling tools and tells nothing. Try the turn again.")
        reply = AIMessage(reply.text, id=reply.id)  # told something: the calls beyond the limit are dropped
    return {"messages": [reply]}


def _rounds(state: DungeonState) -> int:
    _, turn = turns_of(state.messages, state.turn)[-1]
    return sum(1 for message in turn if isinstance(message, AIMessage) and calls_of(message))
