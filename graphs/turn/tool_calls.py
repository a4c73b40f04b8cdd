"""Tool calls of a reply: each is answered, in order; one that may not or cannot be done is answered why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from questbook.graphs.turn.app_tools import run_tools
from questbook.graphs.turn.reply import MOST_CALLS, Call, after_tools, answer, calls_of, tool_rounds
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import PRIVATE_REFUSAL, is_private
from questbook.types import JSON


class TurnTools:
    """The tools of a machine for one round of calls; a subclass runs them, and holds what they change.

    Attributes:
        names: Names of its tools, as an answer lists them.
        noting: Those that note something: in a private turn they are refused.
        own: Tools of the application beside them.
        silent: Those that need no answer (`questbook.graphs.turn.reply`), as an answer lists them.
        is_over: Whether a call has ended the turn, so that the model is not asked again.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        noting: Collection[str] = (),
        own: Sequence[BaseTool] = (),
        too_many: str = "",
        silent: Sequence[str] = (),
    ) -> None:
        self.names, self.noting, self.own, self.silent, self.is_over = names, noting, own, silent, False
        self.too_many = too_many or "this one was not done."

    async def run(self, call: Call) -> ToolMessage:
        """Run a call of one of the machine's tools; its arguments may be unreadable (`call.problem`)."""
        raise NotImplementedError

    def asks_again(self, call: Call) -> bool:
        """Whether the model is asked again after a call, to tell of its result."""
        return any(tool.name == call.name for tool in self.own)


class Answers(NamedTuple):
    """The answers to calls, in order.

    Attributes:
        results: The answers; an application's tool that hands over at once has none.
        commands: What the application's tools command beside them.
    """

    results: list[ToolMessage]
    commands: list[Command[Any]]


class Round(NamedTuple):
    """A round of tools.

    Attributes:
        messages: The messages to add.
        results: The answers among them.
        commands: What the application's tools command beside them.
    """

    messages: list[AnyMessage]
    results: list[ToolMessage]
    commands: list[Command[Any]]

    def update(self, channels: JSON) -> Any:
        """Return what a node returns: these channels with the messages, behind what the application's tools command."""
        update = {"messages": self.messages, **channels}
        return [*self.commands, update] if self.commands else update


async def answer_calls(state: TurnState, tools: TurnTools, calls: Sequence[Call]) -> Answers:
    """Answer the calls of a message: the machine's tools one after the other, then the application's."""
    own, private = [tool.name for tool in tools.own], is_private(state)
    answered, own_calls = dict[int, ToolMessage](), dict[int, Call]()
    for number, call in enumerate(calls):
        if number >= MOST_CALLS:
            refusal = f"That is more than {MOST_CALLS} calls at once: {tools.too_many}"
        elif private and call.name in tools.noting:
            refusal = f"{call.name}: {PRIVATE_REFUSAL}"
        elif call.name in tools.names:
            answered[number] = await tools.run(call)
            continue
        elif call.problem:
            refusal = f"{call.name}: {call.problem}"
        elif call.name in own:
            own_calls[number] = call
            continue
        else:
            refusal = f"There is no tool {call.name!r:.60}; there are {', '.join([*tools.names, *tools.silent, *own])}."
        answered[number] = answer(call, refusal, ok=False)
    results, commands = await run_tools(tools.own, list(own_calls.values()))
    answered |= {number: results[call.id] for number, call in own_calls.items() if call.id in results}
    return Answers([answered[number] for number in sorted(answered)], commands)


async def run_round(state: TurnState, tools: TurnTools, most_rounds: int) -> Round:
    """Answer the calls of the last message, which calls tools.

    The model is asked again when it has said nothing yet, when a call failed, and when a tool wants it; not after
    `most_rounds` rounds in one turn, unless it has said nothing.
    """
    message: Any = state.messages[-1]
    calls = calls_of(message)
    results, commands = await answer_calls(state, tools, calls)
    spent = tool_rounds(state) >= most_rounds
    wanted = any(result.status == "error" for result in results) or any(map(tools.asks_again, calls))
    again = not message.text.strip() or (wanted and not spent and not tools.is_over)
    return Round(after_tools(message, results, again=again, spent=spent and not tools.is_over), results, commands)
