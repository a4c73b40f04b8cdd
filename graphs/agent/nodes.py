"""An agent's nodes `begin`, `fill`, `recall`, `respond` and `use_tools`, with its prompts and tools."""

import tomllib
from importlib.resources import files
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.runtime import Runtime

from questbook.graphs.agent.spec import HAND_OVER, AgentContext, AgentSpec, AgentState, Mode
from questbook.graphs.settings import Settings
from questbook.graphs.turn import sessions
from questbook.graphs.turn.buffer import conversation
from questbook.graphs.turn.interview import interview
from questbook.graphs.turn.prompt import Prompt, Section, escape, opening_sections, page_sections, stack
from questbook.graphs.turn.recall import (
    ASSISTANT,
    RecallPlan,
    assistant_plan,
    memory_lines,
    recall_or_notice,
    with_recalled,
)
from questbook.graphs.turn.reply import reply
from questbook.graphs.turn.state import notice
from questbook.graphs.turn.tool_calls import Call, TurnTools, answer, edit_page, run_round, schemas_of
from questbook.graphs.turn.turn import is_private
from questbook.notebooks import Notebook
from questbook.types import JSON

_TEXTS: JSON = tomllib.loads(files("questbook.graphs.agent").joinpath("prompts.toml").read_text("utf-8"))
RULES, WRITES, INTERVIEW = _TEXTS["RULES"], _TEXTS["WRITES"], _TEXTS["INTERVIEW"]
COMPLETE = "The page is complete. Go on now with what the person wants."  # what the tool then answers
QUESTION = "Please tell me: {missing}."  # what is asked if the model asks nothing
_HAND_OVER = "Hand the person over to a colleague, who is given their last message. To whom, and when: {whom}."


async def begin(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Open the turn in its mode."""
    now, update, _ = await sessions.begin(state, runtime)
    return {**update, "mode": state.SPEC.mode(now).name, "recalled": None, "handover": ""}


async def fill(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Interview the person for a page; once nothing is missing, the next mode answers in the same turn."""
    mode = state.SPEC.named(state.mode)
    assert mode.fills is not None  # noqa: S101 (the edges lead here for no other mode)
    channel = mode.fills.channel()
    before: Notebook = getattr(state, channel)

    def prompt(page: Notebook, messages: list[AnyMessage]) -> Prompt:
        now = state.model_copy(update={channel: page, "messages": [*state.messages, *messages]})
        return agent_prompt(now, runtime.context, mode, page)

    page, messages, notices, window = await interview(state, before, runtime, prompt, node=mode.name, question=QUESTION)
    update: JSON = {"messages": messages, "notices": notices, channel: page.patch_from(before)} | window
    if page.complete:
        messages[-1] = messages[-1].model_copy(update={"content": COMPLETE})
        update["mode"] = state.SPEC.mode(state.model_copy(update={channel: page})).name
    return update


async def recall(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Recall for the turn; if the store fails, the conversation goes on without, and a notice says so."""
    return await recall_or_notice(state, runtime, recall_plan)


async def respond(state: AgentState, runtime: Runtime[AgentContext]) -> JSON:
    """Answer the person as the turn's mode says, call tools, or both."""
    state = await with_recalled(state, runtime, recall_plan)
    mode = state.SPEC.named(state.mode)
    prompt, rounds = agent_prompt(state, runtime.context, mode), runtime.context.max_tool_rounds
    tools = tools_of(state.SPEC, private=is_private(state))
    update, _ = await reply(state, runtime, prompt, node=mode.name, tools=tools, most_rounds=rounds)
    return update


async def recall_plan(state: AgentState, runtime: Runtime[AgentContext]) -> RecallPlan:
    """Return what an agent recalls: the exchanges, and facts, that fit the message best and are not in the prompt."""
    facts = state.SPEC.facts or bool(runtime.context.team)
    return assistant_plan(state, runtime.context, state.SPEC.recall, facts=facts)


def agent_prompt(state: AgentState, settings: Settings, mode: Mode, missing: Notebook | None = None) -> Prompt:
    """Make the prompt of a mode; that of an interview has fields that the page still lacks in the place of memories."""
    spec = state.SPEC
    if missing is not None:
        task = INTERVIEW.format(page=missing.channel(), tool=type(missing).__name__)
        rules, last = [task, RULES], Section("missing", ", ".join(missing.missing))
    else:
        pages = ", ".join(f"<{channel}> ({page.__name__})" for channel, page in spec.on_demand.items())
        writes = f"\n{WRITES.format(pages=pages)}" if pages and not is_private(state) else ""
        rules, last = [RULES + writes], Section("memories", memory_lines(state.recalled, ASSISTANT))
    parts = (spec.instructions, mode.instructions, *rules)
    instructions = "\n\n".join(part.strip() for part in parts if part.strip())
    sections = [*opening_sections(instructions, state), Section("summary", escape(state.summary))]
    return stack(sections, conversation(state, settings), settings, [*page_sections(state, "last"), last])


def tools_of(spec: AgentSpec, *, private: bool = False) -> list[JSON]:
    """Return what the model may call in its replies, in the OpenAI function format; in a private turn no page."""
    pages = [] if private else [page.tool() for page in spec.on_demand.values()]
    return [*pages, *schemas_of(spec.tools), *([_hand_over(spec)] if spec.handoffs else [])]


class AgentTools(TurnTools):
    """Pages that are written on demand, by the name of their tool, and handing over to an agent; "": to none."""

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
    """Answer each call of the last message; handing over ends the turn."""
    tools = AgentTools(state)
    done = await run_round(state, tools, runtime.context.max_tool_rounds)
    own = {tool.name for tool in tools.own}
    failed = [result for result in done.results if result.status == "error" and result.name in own]
    remarks = [*tools.remarks, *(f"{result.name} failed. {result.text}" for result in failed)]
    patches = {page.channel(): page.patch_from(getattr(state, page.channel())) for page in tools.pages.values()}
    changed = {name: patch for name, patch in patches.items() if patch}
    notices = [notice(state.turn, "use_tools", text) for text in remarks]
    return done.update({"notices": notices, "handover": tools.handover, **changed})


def _hand_over(spec: AgentSpec) -> JSON:
    whom = "; ".join(f"{name}: {when}" for name, when in spec.handoffs.items())
    to = {"type": "string", "enum": list(spec.handoffs), "description": "To whom."}
    parameters = {"type": "object", "properties": {"to": to}, "required": ["to"]}
    function = {"name": HAND_OVER, "description": _HAND_OVER.format(whom=whom), "parameters": parameters}
    return {"type": "function", "function": function}
