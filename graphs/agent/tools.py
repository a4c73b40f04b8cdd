"""An agent's tools: the pages written on demand, the application's own, handing over; and the node `use_tools`."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from questbook.graphs.agent import prompts
from questbook.graphs.agent.context import AgentContext
from questbook.graphs.agent.spec import HAND_OVER, AgentSpec
from questbook.graphs.agent.state import AgentState
from questbook.graphs.turn.state import notice
from questbook.graphs.turn.tool_calls import Call, TurnTools, answer, edit_page, run_round, schemas_of
from questbook.notebooks import Notebook
from questbook.types import JSON


def tools_of(spec: AgentSpec, *, private: bool = False) -> list[JSON]:
    """Return what the model may call in its replies, in the OpenAI function format; in a private turn no page."""
    pages = [] if private else [page.tool() for page in spec.on_demand.values()]
    return [*pages, *schemas_of(spec.tools), *([_hand_over(spec)] if spec.handoffs else [])]


class AgentTools(TurnTools):
    """Pages that are written on demand, and handing over.

    Attributes:
        pages: The pages after the calls, by the name of their tool.
        remarks: What a person should know.
        handover: The agent that takes over; "": none.
    """

    def __init__(self, state: AgentState) -> None:
        spec = state.SPEC
        self.pages: dict[str, Notebook] = {page.__name__: getattr(state, name) for name, page in spec.on_demand.items()}
        self.remarks, self.handover, self._handoffs = list[str](), "", list(spec.handoffs)
        super().__init__([*self.pages, *([HAND_OVER] * bool(spec.handoffs))], noting=[*self.pages], own=spec.tools)

    async def run(self, call: Call) -> ToolMessage:
        """Patch a page, or hand over."""
        if call.name in self.pages:
            self.pages[call.name], result, notes, problem = edit_page(self.pages[call.name], call)
            self.remarks += [*notes, *([problem] if problem else [])]
            return result
        if call.args.get("to") not in self._handoffs:  # whatever a model sends as "to"
            known = ", ".join(self._handoffs)
            return answer(call, f"{HAND_OVER}: to: got {call.args.get('to')!r:.60}; there are {known}.", ok=False)
        self.handover, self.is_over = call.args["to"], True
        return answer(call, f"Handed over to {self.handover}.")


async def use_tools(state: AgentState, runtime: Runtime[AgentContext]) -> Any:
    """Answer each call of the last message; handing over ends the turn.

    Returns:
        The channels to write; with what the application's tools command before them, if they do.
    """
    tools = AgentTools(state)
    done = await run_round(state, tools, runtime.context.max_tool_rounds)
    own = {tool.name for tool in tools.own}
    failed = [result for result in done.results if result.status == "error" and result.name in own]
    remarks = [*tools.remarks, *(f"{result.name} failed. {result.text}" for result in failed)]
    patches = {page.channel(): page.patch_from(getattr(state, page.channel())) for page in tools.pages.values()}
    return done.update(
        {
            "notices": [notice(state.turn, "use_tools", text) for text in remarks],
            "handover": tools.handover,
            **{name: patch for name, patch in patches.items() if patch},
        }
    )


def _hand_over(spec: AgentSpec) -> JSON:
    whom = "; ".join(f"{name}: {when}" for name, when in spec.handoffs.items())
    to = {"type": "string", "enum": list(spec.handoffs), "description": "To whom."}
    function = {
        "name": HAND_OVER,
        "description": prompts.HAND_OVER.format(whom=whom),
        "parameters": {"type": "object", "properties": {"to": to}, "required": ["to"]},
    }
    return {"type": "function", "function": function}
