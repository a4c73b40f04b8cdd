"""Tools of an application, which the model may call in its replies beside the machine's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import ToolMessage, convert_to_messages
from langchain_core.tools import BaseTool, tool
from langgraph.types import Command

from questbook.graphs.turn.reply import Call
from questbook.types import JSON


def tools_from(tools: Sequence[BaseTool | Callable[..., Any]]) -> list[BaseTool]:
    """Make tools of functions with a docstring; LangChain's tools stay as they are."""
    return [each if isinstance(each, BaseTool) else tool(each) for each in tools]


def schemas_of(tools: Sequence[BaseTool]) -> list[JSON]:
    """Return tools in the OpenAI function format."""
    if not tools:
        return []
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return [convert_to_openai_tool(each) for each in tools]


async def run_tools(
    tools: Sequence[BaseTool], calls: Sequence[Call]
) -> tuple[dict[str, ToolMessage], list[Command[Any]]]:
    """Call an application's own tools; return their answers by call, and what else they command."""
    if not calls:
        return {}, []
    from langgraph.prebuilt import ToolNode  # which a game without such tools need not wait for

    node = ToolNode(list(tools), handle_tool_errors=True)
    tool_calls = [{"type": "tool_call", "name": call.name, "args": call.args, "id": call.id} for call in calls]
    output: Any = await node.ainvoke(tool_calls)
    answers, commands = dict[str, ToolMessage](), list[Command[Any]]()
    for part in output if isinstance(output, list) else [output]:
        command = part if isinstance(part, Command) else None
        update = part if command is None else command.update
        if isinstance(update, dict) and (command is None or command.graph is None):
            messages = convert_to_messages(update.get("messages", []))
            answers |= {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
            others = [message for message in messages if not isinstance(message, ToolMessage)]
            update = {**update, "messages": others}  # the answer goes with those of the other calls
        if command is not None:
            commands.append(replace(command, update=update))
    return answers, commands
