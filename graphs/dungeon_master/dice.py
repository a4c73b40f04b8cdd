"""Dice: the node `roll_dice`, and a small roller for the part of the d20 grammar that a table uses.

The engine rolls, and the roll is in state before the reply tells of it. The grammar of an expression:

    sum     = product (("+" | "-") product)*        product = factor ("*" factor)*
    factor  = ("+" | "-") factor | "(" sum ")" | integer | dice
    dice    = [count] "d" (sides | "%") pick*       pick = ("k" | "p") ("h" | "l") [integer]

`kh3` keeps the highest three, `pl1` drops the lowest; without a number it is one. Neighbouring picks of one
kind choose together, as in d20: `4d6ph1pl1` drops both ends. Case and spaces do not matter.
Unlike in d20, `d%` is a die from 1 to 100, and an expression without dice is refused.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import add, sub
from random import Random
from typing import Annotated, Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.runtime import Runtime
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.turn.prompt import escape
from questbook.graphs.turn.reply import tells_secret
from questbook.graphs.turn.tool_calls import Call, TurnTools, answer, answer_calls, calls_of
from questbook.notebooks.schema import argument_problems, tool_schema
from questbook.types import JSON

MAX_LENGTH, MAX_DICE, MAX_SIDES, MAX_NESTING = 100, 100, 1_000, 20
MAX_INTEGER, MAX_TOTAL = 1_000_000, 1_000_000_000

Advantage: TypeAlias = Literal["advantage", "disadvantage"]

# A roll for such a thing hits or misses; one for a question ("Insight: will it attack?") does not.
_ATTACK = re.compile(
    r"(?i)^(?!.*\?).*\b(?:(?:attack|strike|bite|claw|stab|shoot|slash|swing|lunge)s?|\w*sword|\w*bow|\w*axe|dagger|spear)\b"
)
_EXAMPLES = "such as 1d20+3, 2d20kh1, 4d6pl1 or d%"
# Minus and times signs of typeset text: models write them, and they mean nothing else here.
_TYPESET = str.maketrans({"−": "-", "–": "-", "×": "*"})
_TOKEN = re.compile(r"(?P<count>[0-9]*)d(?P<sides>%|[0-9]+)(?P<picks>(?:[kp][hl][0-9]*)*)|(?P<integer>[0-9]+)|[-+*()]")


class DiceError(ValueError):
    """A roll that cannot be made; the message says what is wrong and what to write instead."""


@dataclass(frozen=True)
class DiceGroup:
    """The dice of one term, in the order in which they fell: their sides, and (face, kept) of each."""

    sides: int
    values: tuple[tuple[int, bool], ...]

    def __str__(self) -> str:
        return "(" + ", ".join(str(face) if kept else f"~~{face}~~" for face, kept in self.values) + ")"


@dataclass(frozen=True)
class Roll:
    """A roll. It is recorded once and never derived again."""

    expression: str  # as asked for, in lower case and without spaces; advantage is not written into it
    total: int  # the result
    breakdown: str  # the expression with each dice term replaced by its faces, such as `(17, ~~5~~) + 3`
    dice: tuple[DiceGroup, ...]  # the dice terms, from left to right
    reason: str = ""  # what the roll is for
    dc: int | None = None  # difficulty class to meet or beat, if there is one
    advantage: Advantage | None = None  # the advantage or disadvantage that was applied
    foe: bool = False  # whether it is rolled against the player's character, so that reaching the DC is no success

    @property
    def success(self) -> bool | None:
        """Whether the total meets the DC; None without a DC."""
        return None if self.dc is None else self.total >= self.dc

    @property
    def natural(self) -> int | None:
        """The face of the d20 when exactly one is kept (for natural 20 and 1), else None."""
        faces = [face for group in self.dice if group.sides == 20 for face, kept in group.values if kept]
        return faces[0] if len(faces) == 1 else None

    def __str__(self) -> str:
        asked = f"{self.expression} with {self.advantage}" if self.advantage else self.expression
        line = f"{asked} = {self.breakdown} = {self.total}"
        if self.dc is None:
            return line
        reached, missed = ("reached", "not reached") if self.foe else ("success", "failure")
        reached, missed = ("hit", "miss") if _ATTACK.search(self.reason) else (reached, missed)
        return f"{line} vs DC {self.dc}: {reached if self.success else missed}"

    def as_dict(self) -> JSON:
        """Return plain JSON values, with `success` and `natural` for readers of the record."""
        dice = [{"sides": group.sides, "values": [list(die) for die in group.values]} for group in self.dice]
        return asdict(self) | {"dice": dice, "success": self.success, "natural": self.natural}


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
    foe: bool = Field(default=False, description="True if an enemy rolls, against the player.")


ROLL_DICE: JSON = tool_schema("roll_dice", RollDice)
ROLL_DICE["function"]["parameters"]["required"] = ["expression", "reason"]  # without a reason it is rolled, too


class _Round(TurnTools):
    def __init__(self, state: DungeonState, context: Context, calls: Sequence[Call]) -> None:
        too_many = "roll what matters, then tell it."
        super().__init__(["roll_dice"], own=context.TOOLS, too_many=too_many, silent=["keep_secret"])
        self.state, self.context, self.calls, self.rolls = state, context, calls, list[JSON]()
        self.done = sum(isinstance(message, ToolMessage) for message in state.current_turn)

    async def run(self, call: Call) -> ToolMessage:
        """Roll, or say what is wrong with the call; a reason that tells a secret is left out: the player reads it."""
        place = next(place for place, each in enumerate(self.calls) if each is call)  # ids may be alike, or missing
        if self.context.guard_secrets and tells_secret(self.state, str(call.args.get("reason", ""))):
            call = call._replace(args=call.args | {"reason": ""})
        try:
            outcome = _rolled(call, _source(self.state, self.context, self.done + place))
        except DiceError as error:
            return answer(call, str(error), ok=False)
        shown = outcome.as_dict() | {"text": str(outcome)}
        self.rolls.append(shown | {"turn": self.state.turn})
        # The model reads one sentence; the numbers go with the message, and it does not see them.
        natural = f" The die shows a natural {outcome.natural}." if outcome.natural in (1, 20) else ""
        sentence = f"{f'{outcome.reason}: ' if outcome.reason else ''}{outcome}.{natural}"
        return answer(call, sentence).model_copy(update={"artifact": shown})


async def roll_dice(state: DungeonState, runtime: Runtime[Context]) -> Any:
    """Answer each call of the last message, in order: with a roll, or with what was wrong with the call.

    What a tool of the application's returns is escaped, so that it cannot pass for a part of the prompt.
    """
    message = state.messages[-1]
    calls = calls_of(message) if isinstance(message, AIMessage) else []
    dice = _Round(state, runtime.context, calls)
    done = await answer_calls(state, dice, calls)
    own = {tool.name for tool in runtime.context.TOOLS}
    ids = {call.id for call in calls if call.name in own}  # what a tool returns may have another name
    messages = [m.model_copy(update={"content": escape(m.text)}) if m.tool_call_id in ids else m for m in done.results]
    return done._replace(messages=messages).update({"rolls": dice.rolls})


def _rolled(call: Call, dice: random.Random) -> Roll:
    if call.problem:
        raise DiceError(f"{call.name}: {call.problem}")
    try:
        arguments = RollDice.model_validate({k: v for k, v in call.args.items() if v is not None})
    except ValidationError as error:
        example = '{"expression": "1d20+3", "reason": "Stealth", "dc": 15}'
        raise DiceError(f"roll_dice: {argument_problems(error, RollDice)} Send such as {example}.") from error
    given = arguments.model_dump(exclude={"expression", "foe"})
    return replace(roll(arguments.expression, rng=dice, **given), foe=arguments.foe)


def _source(state: DungeonState, context: Context, ordinal: int) -> random.Random:
    """Give the dice of one roll: from the system's randomness, or, with a seed, the same whenever it is run again."""
    if context.seed is None:
        return random.SystemRandom()
    branch = state.timeline[-1][0] if state.timeline else ""
    return random.Random(f"{context.seed}/{branch}/{state.turn}/{ordinal}")


@dataclass(frozen=True)
class _Dice:
    count: int
    sides: int
    picks: tuple[tuple[str, str, int], ...] = ()  # ("k" or "p", "h" or "l", how many)

    def roll(self, rng: Random) -> DiceGroup:
        faces = [rng.randint(1, self.sides) for _ in range(self.count)]
        kept = list(range(self.count))
        for kind, picks in groupby(self.picks, key=lambda pick: pick[0]):
            chosen: set[int] = set()
            for _, end, number in picks:  # the sort is stable: of equal faces the first one is chosen
                chosen.update(sorted(kept, key=faces.__getitem__, reverse=end == "h")[:number])
            kept = [i for i in kept if (i in chosen) == (kind == "k")]
        return DiceGroup(self.sides, tuple((face, i in kept) for i, face in enumerate(faces)))


def roll(
    expression: str, *, rng: Random, reason: str = "", dc: int | None = None, advantage: Advantage | None = None
) -> Roll:
    """Roll the dice; an expression that is refused draws nothing from `rng`, the only source of chance.

    Advantage rolls the first plain `1d20` twice and keeps the higher face (`"disadvantage"`: the lower). A DiceError
    says that the expression is not in the grammar or is past a limit, or that advantage finds no single d20.
    """
    text, tokens = _tokenize(expression)
    terms = [_dice(match) for token in tokens if (match := _TOKEN.match(token)) and match["sides"]]
    if advantage:
        if _Dice(1, 20) not in terms:
            raise DiceError(f"{text!r} has no single d20 for {advantage}. Write 1d20+3, or leave advantage out.")
        terms[terms.index(_Dice(1, 20))] = _Dice(2, 20, (("k", "h" if advantage == "advantage" else "l", 1),))
    if not 1 <= (count := sum(term.count for term in terms)) <= MAX_DICE:
        raise DiceError(f"{text!r} rolls {count} dice. Use 1 to {MAX_DICE} in all, {_EXAMPLES}.")
    highest = [term.count * term.sides for term in terms]
    if _Reader(tokens, highest, minus=add).read() > MAX_TOTAL:
        raise DiceError(f"{text!r} can pass {MAX_TOTAL:,}. Use smaller numbers, {_EXAMPLES}.")

    groups = [term.roll(rng) for term in terms]
    total = _Reader(tokens, [sum(face for face, kept in group.values if kept) for group in groups]).read()
    fallen = map(str, groups)
    breakdown = "".join(next(fallen) if "d" in token else token for token in tokens)
    breakdown = re.sub(r"(?<=[0-9)])([-+*])", r" \1 ", breakdown)  # an operator after a value, not a sign
    return Roll(text, total, breakdown, tuple(groups), reason, dc, advantage)


def _tokenize(expression: str) -> tuple[str, list[str]]:
    if len(expression) > MAX_LENGTH:
        problem = f"has {len(expression):,} characters; at most {MAX_LENGTH} are read"
        raise DiceError(f"{expression[:80]!r}… {problem}. Roll it in parts, {_EXAMPLES}.")
    if gap := re.search(r"[0-9]\s+[0-9]", expression):  # or "1 0" would be read as 10
        raise DiceError(f"{expression!r} has {gap[0]!r}. Write + - or * between two numbers, {_EXAMPLES}.")
    text = "".join(expression.lower().translate(_TYPESET).split())
    tokens, at = list[str](), 0
    while match := _TOKEN.match(text, at):
        tokens.append(match[0])
        at = match.end()
        if match["integer"] and int(match[0]) > MAX_INTEGER:
            raise DiceError(f"{match[0]} is too large. Use an integer up to {MAX_INTEGER:,}, such as 1d20+3.")
    if at < len(text):
        known = "dice (with kh, kl, ph or pl), integers, + - * and parentheses"
        raise DiceError(f"{expression!r} has {text[at:]!r}, which is no part of a roll. Use {known}, {_EXAMPLES}.")
    return text, tokens


def _dice(match: re.Match[str]) -> _Dice:
    count, sides = int(match["count"] or 1), 100 if match["sides"] == "%" else int(match["sides"])
    if count < 1:
        raise DiceError(f"{match[0]} rolls no dice. Use 1 to {MAX_DICE}, {_EXAMPLES}.")
    if not 1 <= sides <= MAX_SIDES:
        raise DiceError(f"{match[0]} has {sides} sides. Use a die with 1 to {MAX_SIDES:,}, {_EXAMPLES}.")
    picks = tuple((k, e, int(n or 1)) for k, e, n in re.findall(r"([kp])([hl])([0-9]*)", match["picks"]))
    if not all(1 <= number <= count for _, _, number in picks):
        raise DiceError(f"{match[0]} keeps or drops dice it does not roll. Use 1 to {count}, such as 4d6kh3.")
    return _Dice(count, sides, picks)


class _Reader:
    """Recursive descent that adds up as it reads; its methods are the rules of the grammar above.

    With `minus=add`, on the highest value of each dice term, it bounds what the expression can reach.
    """

    def __init__(self, tokens: list[str], dice: list[int], minus: Callable[[int, int], int] = sub) -> None:
        self._tokens, self._dice, self._minus, self._at = tokens, iter(dice), minus, 0

    def read(self) -> int:
        value = self._sum(0)
        if self._at < len(self._tokens):
            raise self._error("+ - * or the end")
        return value

    def _sum(self, depth: int) -> int:
        value = self._product(depth)
        while sign := self._accept("+", "-"):
            right = self._product(depth)
            value = value + right if sign == "+" else self._minus(value, right)
        return value

    def _product(self, depth: int) -> int:
        value = self._factor(depth)
        while self._accept("*"):
            value *= self._factor(depth)
        return value

    def _factor(self, depth: int) -> int:
        if depth > MAX_NESTING:
            raise self._error(f"at most {MAX_NESTING} levels of parentheses and signs")
        if sign := self._accept("+", "-"):
            value = self._factor(depth + 1)
            return value if sign == "+" else self._minus(0, value)
        if self._accept("("):
            value = self._sum(depth + 1)
            if not self._accept(")"):
                raise self._error("')'")
            return value
        if self._at == len(self._tokens) or self._tokens[self._at] in "*)":
            raise self._error("dice, an integer or '('")
        token = self._tokens[self._at]
        self._at += 1
        return next(self._dice) if "d" in token else int(token)

    def _accept(self, *wanted: str) -> str:
        if self._at == len(self._tokens) or self._tokens[self._at] not in wanted:
            return ""
        self._at += 1
        return self._tokens[self._at - 1]

    def _error(self, expected: str) -> DiceError:
        read, text = "".join(self._tokens[: self._at]), "".join(self._tokens)
        where = f"after {read!r}" if read else "at the start"
        return DiceError(f"{text!r} cannot be read {where}: expected {expected}. Write it {_EXAMPLES}.")
