"""An agent's tools: the pages written on demand, the application's own, handing over; and the node `use_tools`."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from questbook.graphs.agent import prompts
from questbook.graphs.agent.context import Context
from questbook.graphs.agent.description import HAND_OVER, Agent
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.own_tools import run_tools, schemas_of
from questbook.graphs.turn.reply import MOST_CALLS, Call, after_tools, answer, calls_of, edit_page, tool_rounds
from questbook.graphs.turn.turn import PRIVATE_REFUSAL, is_private, notice
from questbook.notebooks import Notebook
from questbook.types import JSON


def tools_of(agent: Agent, *, private: bool = False) -> list[JSON]:
    """Return what the model may call in its replies, in the OpenAI function format.

    Args:
        agent: The agent.
        private: Whether the person asked that the turn not be remembered: then no page is offered.
    """
    pages = [] if private else [page.tool() for page in agent.on_demand.values()]
    return [*pages, *schemas_of(agent.tools), *([_hand_over(agent)] if agent.handoffs else [])]


async def use_tools(state: AgentState, runtime: Runtime[Context]) -> Any:
    """Answer each call of the last message; one that does not fit changes nothing and is answered why.

    The model is asked again when it has said nothing yet, when a call failed, and when it asked for something; not
    when it only wrote on a page, beside its answer. Handing over ends the turn.

    Returns:
        The channels to write; with what the application's tools command before them, if they do.
    """
    agent = state.AGENT
    message: Any = state.messages[-1]  # an AIMessage that calls tools: the edges lead here for nothing else
    calls = calls_of(message)
    channels = {page.__name__: channel for channel, page in agent.on_demand.items()}
    own = {tool.name for tool in agent.tools}
    pages: dict[str, Notebook] = {channel: getattr(state, channel) for channel in channels.values()}
    results: dict[str, ToolMessage] = {}
    remarks, own_calls, handover = list[str](), list[Call](), ""
    for number, call in enumerate(calls):
        if number >= MOST_CALLS:
            refusal = f"That is more than {MOST_CALLS} calls at once; this one was not done."
            results[call.id] = answer(call, refusal, ok=False)
        elif call.name in channels and is_private(state):
            results[call.id] = answer(call, PRIVATE_REFUSAL, ok=False)
        elif call.name in channels:
            channel = channels[call.name]
            pages[channel], results[call.id], notes, problem = edit_page(pages[channel], call)
            remarks += [*notes, *([problem] if problem else [])]
        elif call.problem:
            results[call.id] = answer(call, f"{call.name}: {call.problem}", ok=False)
        elif call.name == HAND_OVER and call.args.get("to") in list(agent.handoffs):  # whatever a model sends as "to"
            handover = call.args["to"]
            results[call.id] = answer(call, f"Handed over to {handover}.")
        elif call.name in own:
            own_calls.append(call)
        else:
            known = ", ".join([*channels, *own, *(f"{HAND_OVER} to {name}" for name in agent.handoffs)])
            results[call.id] = answer(call, f"There is no {call.name} {call.args or ''}: there are {known}.", ok=False)
    answers, commands = await run_tools(agent.tools, own_calls)
    results |= answers
    remarks += [f"{result.name} failed. {result.text}" for result in answers.values() if result.status == "error"]
    ordered = [results[call.id] for call in calls if call.id in results]
    spent = tool_rounds(state) >= runtime.context.max_tool_rounds
    failed = any(result.status == "error" for result in ordered)
    silent = not message.text.strip()  # then nothing was said that the turn could end with
    again = silent or (not handover and not spent and (failed or bool(own_calls)))
    patches = {name: page.patch_from(getattr(state, name)) for name, page in pages.items()}
    update = {
        "messages": after_tools(message, ordered, again=again, spent=spent and not handover),
        "notices": [notice(state.turn, "use_tools", text) for text in remarks],
        "handover": handover,
        **{name: patch for name, patch in patches.items() if patch},
    }
    return [*commands, update] if commands else update


def _hand_over(agent: Agent) -> JSON:
    whom = "; ".join(f"{name}: {when}" for name, when in agent.handoffs.items())
    to = {"type": "string", "enum": list(agent.handoffs), "description": "To whom."}
    function = {
        "name": HAND_OVER,
        "description": prompts.HAND_OVER.format(whom=whom),
        "parameters": {"type": "object", "properties": {"to": to}, "required": ["to"]},
    }
    return {"type": "function", "function": function}
