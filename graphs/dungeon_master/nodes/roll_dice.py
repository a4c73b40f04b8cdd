"""roll_dice: the engine rolls, and the roll is in state before the reply tells of it; so do the application's tools."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.runtime import Runtime
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.rules.dice import Advantage, DiceError, Roll, roll
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.prompt import escape
from questbook.graphs.turn.reply import tells_secret
from questbook.graphs.turn.tool_calls import Call, TurnTools, answer, answer_calls, calls_of
from questbook.notebooks.schema import argument_problems, tool_schema
from questbook.types import JSON


def _none_if_said(value: object) -> object:
    """Read "none" as no advantage: models fill in a field that they may leave out."""
    return None if isinstance(value, str) and value.strip().casefold() in ("", "none", "null", "normal") else value


class RollDice(BaseModel):
    """Roll dice where the outcome is open, before telling it. The roll is shown to the player as it fell.

    A check is 1d20 plus the character's modifier against a DC.
    """

    model_config = ConfigDict(extra="forbid")

    expression: str = Field(description="Such as 1d20+3, 2d6+1, 4d6kh3, d%.")
    reason: str = Field(default="", max_length=300, description="What the roll decides, in a few words.")
    dc: int | None = Field(default=None, ge=1, le=99, description="Difficulty to reach, 5 to 30; leave out for damage.")
    advantage: Annotated[Advantage | None, BeforeValidator(_none_if_said)] = None


ROLL_DICE: JSON = tool_schema("roll_dice", RollDice)
ROLL_DICE["function"]["parameters"]["required"] = ["expression", "reason"]  # without a reason it is rolled, too


class _Dice(TurnTools):
    """The dice of one round of calls; `rolls` is what fell."""

    def __init__(self, state: DungeonState, context: Context, calls: Sequence[Call]) -> None:
        super().__init__(
            ["roll_dice"], own=context.TOOLS, too_many="roll what matters, then tell it.", silent=["keep_secret"]
        )
        self.state, self.context, self.calls = state, context, calls
        self.done = sum(isinstance(message, ToolMessage) for message in state.current_turn)
        self.rolls: list[JSON] = []

    async def run(self, call: Call) -> ToolMessage:
        """Roll, or say what is wrong with the call; a reason that tells a secret is left out: the player reads it."""
        place = next(place for place, each in enumerate(self.calls) if each is call)  # ids may be alike, or missing
        if self.context.guard_secrets and tells_secret(self.state, str(call.args.get("reason", ""))):
            call = call._replace(args=call.args | {"reason": ""})
        try:
            outcome = _roll(call, _dice(self.state, self.context, self.done + place))
        except DiceError as error:
            return answer(call, str(error), ok=False)
        shown = outcome.as_dict() | {"text": str(outcome)}
        self.rolls.append(shown | {"turn": self.state.turn})
        # The model reads one sentence; the numbers go with the message, and it does not see them.
        return answer(call, _sentence(outcome)).model_copy(update={"artifact": shown})


async def roll_dice(state: DungeonState, runtime: Runtime[Context]) -> Any:
    """Answer each call of the last message, in order: with a roll, or with what was wrong with the call.

    What a tool of the application's returns is escaped, so that it cannot pass for a part of the prompt.

    Returns:
        The channels to write; with what the application's tools command before them, if they do.
    """
    message = state.messages[-1]
    calls = calls_of(message) if isinstance(message, AIMessage) else []
    dice = _Dice(state, runtime.context, calls)
    results, commands = await answer_calls(state, dice, calls)
    own = {tool.name for tool in runtime.context.TOOLS}
    ids = {call.id for call in calls if call.name in own}  # what a tool returns may have another name
    messages = [m.model_copy(update={"content": escape(m.text)}) if m.tool_call_id in ids else m for m in results]
    update = {"messages": messages, "rolls": dice.rolls}
    return [*commands, update] if commands else update


def _sentence(outcome: Roll) -> str:
    natural = f" The die shows a natural {outcome.natural}." if outcome.natural in (1, 20) else ""
    return f"{f'{outcome.reason}: ' if outcome.reason else ''}{outcome}.{natural}"


def _roll(call: Call, dice: random.Random) -> Roll:
    if call.problem:
        raise DiceError(f"{call.name}: {call.problem}")
    try:
        arguments = RollDice.model_validate({k: v for k, v in call.args.items() if v is not None})
    except ValidationError as error:
        raise DiceError(
            f"roll_dice: {argument_problems(error, RollDice)} "
            'Send such as {"expression": "1d20+3", "reason": "Stealth", "dc": 15}.'
        ) from error
    return roll(arguments.expression, rng=dice, reason=arguments.reason, dc=arguments.dc, advantage=arguments.advantage)


def _dice(state: DungeonState, context: Context, ordinal: int) -> random.Random:
    """Give the dice of one roll: from the system's randomness, or, with a seed, the same whenever it is run again."""
    if context.seed is None:
        return random.SystemRandom()
    branch = state.timeline[-1][0] if state.timeline else ""
    return random.Random(f"{context.seed}/{branch}/{state.turn}/{ordinal}")
