"""use_tools: do what the model asked its tools for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage, convert_to_messages
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from langgraph.types import Command

from questbook.graphs.agent.context import Context
from questbook.graphs.agent.description import HAND_OVER
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.reply import rounds_of, tools_answered
from questbook.graphs.turn.tool_calls import Call, answer, calls_of, edit
from questbook.graphs.turn.turn import notice
from questbook.graphs.turn.withheld import REFUSED, private
from questbook.notebooks import Notebook

_MOST_CALLS = 10


async def use_tools(state: AgentState, runtime: Runtime[Context]) -> Any:
    """Answer each call of the last message; one that does not fit changes nothing and is told why.

    The model is asked again when it has said nothing yet, when a call failed, and when it asked for something; not
    when it only wrote on a page, beside its answer. Handing over ends the turn.
    """
    agent, message = state.AGENT, state.messages[-1]
    channels = {page.__name__: channel for channel, page in agent.on_demand.items()}
    own = {tool.name for tool in agent.tools}
    pages: dict[str, Notebook] = {channel: getattr(state, channel) for channel in channels.values()}
    results: dict[str, ToolMessage] = {}
    notices, asked, handover = list[str](), list[Call](), ""
    calls = calls_of(message)  # type: ignore[arg-type]
    for number, call in enumerate(calls):
        if number >= _MOST_CALLS:
            told = f"That is more than {_MOST_CALLS} calls at once; this one was not done."
            results[call.id] = answer(call, told, ok=False)
        elif call.name in channels and private(state):
            results[call.id] = answer(call, REFUSED, ok=False)
        elif call.name in channels:
            channel = channels[call.name]
            pages[channel], results[call.id], notes, problem = edit(pages[channel], call)
            notices += [*notes, *([problem] if problem else [])]
        elif call.problem:
            results[call.id] = answer(call, f"{call.name}: {call.problem}", ok=False)
        elif call.name == HAND_OVER and call.args.get("to") in list(agent.handoffs):  # whatever a model sends as "to"
            handover = call.args["to"]
            results[call.id] = answer(call, f"Handed over to {handover}.")
        elif call.name in own:
            asked.append(call)
        else:
            known = ", ".join([*channels, *own, *(f"{HAND_OVER} to {name}" for name in agent.handoffs)])
            results[call.id] = answer(call, f"There is no {call.name} {call.args or ''}: there are {known}.", ok=False)
    answered, commands = await _called(state, asked)
    results |= answered
    notices += [f"{result.name} failed. {result.text}" for result in answered.values() if result.status == "error"]
    told_back = [results[call.id] for call in calls if call.id in results]
    spent = rounds_of(state) >= runtime.context.max_tool_rounds
    failed = any(result.status == "error" for result in told_back)
    silent = not message.text.strip()  # then nothing was said that the turn could end with
    again = silent or (not handover and not spent and (failed or bool(asked)))
    patches = {  # what a tool of the application commands may change the same page
        name: page.patch_from(getattr(state, name)) for name, page in pages.items()
    }
    update = {
        "messages": tools_answered(message, told_back, again=again, spent=spent and not handover),  # type: ignore[arg-type]
        "notices": [notice(state.turn, "use_tools", text) for text in notices],
        "handover": handover,
        **{name: patch for name, patch in patches.items() if patch},
    }
    return [*commands, update] if commands else update


async def _called(state: AgentState, calls: Sequence[Call]) -> tuple[dict[str, ToolMessage], list[Command[Any]]]:
    """Call the application's own tools; what they answer by call, and what else they command."""
    if not calls:
        return {}, []
    node = ToolNode(list(state.AGENT.tools), handle_tool_errors=True)
    asked = [{"type": "tool_call", "name": call.name, "args": call.args, "id": call.id} for call in calls]
    out: Any = await node.ainvoke(asked)
    parts = out if isinstance(out, list) else [out]
    answered, commands = dict[str, ToolMessage](), list[Command[Any]]()
    for part in parts:
        command = part if isinstance(part, Command) else None
        update = part if command is None else command.update
        if isinstance(update, dict) and (command is None or command.graph is None):
            told = convert_to_messages(update.get("messages", []))
            answered |= {message.tool_call_id: message for message in told if isinstance(message, ToolMessage)}
            others = [message for message in told if not isinstance(message, ToolMessage)]
            update = {**update, "messages": others}  # the answer stands with those of the other calls
        if command is not None:
            commands.append(replace(command, update=update))
    return answered, commands
