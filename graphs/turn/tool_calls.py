"""Tool calls of a reply: each is answered, in order; one that may not or cannot be done is answered why."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage, convert_to_messages
from langchain_core.tools import BaseTool, tool
from langgraph.types import Command

from questbook.graphs.turn.channels import Checked
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import PRIVATE_REFUSAL, is_private
from questbook.notebooks import DeclarationError, Notebook, NotebookError, PatchError, apply_fitting
from questbook.types import JSON

PageT = TypeVar("PageT", bound=Notebook)

MOST_CALLS = 10  # calls of tools that one answer may make; those beyond are answered with an error

_UNREADABLE = "The model sent arguments that are no JSON object."


class Call(NamedTuple):
    """One tool call; `problem` says why its arguments could not be read."""

    id: str
    name: str
    args: JSON
    problem: str = ""


class PageEdit(NamedTuple, Generic[PageT]):
    """What one call made of a page."""

    page: PageT  # the page with what fits
    result: ToolMessage  # the answer to the model
    notes: list[str]  # values that code corrected
    problem: str = ""  # why parts were refused, without anything secret, for people to see


class PageEdits(NamedTuple, Generic[PageT]):
    """What a model's calls made of pages."""

    pages: list[PageT]  # the pages, in the order given, with all that fits
    results: list[ToolMessage]  # one tool message for each call, for the model
    notes: list[str]  # values that code corrected
    problems: list[str]  # why calls or parts of them were refused, without anything secret, for people to see
    refused: set[str]  # names of the tools whose calls were refused, also in part


def take_out(message: AIMessage, wanted: Callable[[Call], bool]) -> tuple[AIMessage, list[Call]]:
    """Return a message without some of its calls, in whatever form it has them, and these calls."""
    taken = [call for call in calls_of(message) if wanted(call)]
    if not taken:
        return message, []
    ids = {call.id for call in taken}
    rest = {
        "tool_calls": [call for call in message.tool_calls if (call["id"] or "") not in ids],
        "invalid_tool_calls": [call for call in message.invalid_tool_calls if (call["id"] or "") not in ids],
    }
    content = message.content
    if any(rest.values()) and isinstance(content, list):  # what else a provider put there belongs to the other calls
        blocks = [b for b in content if not isinstance(b, dict) or not ids & {b.get("id"), b.get("call_id")}]
        return message.model_copy(update=rest | {"content": blocks}), taken
    kept = {"response_metadata": message.response_metadata, "usage_metadata": message.usage_metadata}
    return AIMessage(message.text, id=message.id, **kept, **rest), taken


def without_calls(messages: Sequence[AnyMessage], wanted: Callable[[Call], bool]) -> list[AnyMessage]:
    """Return messages without some of their calls, and without the results of these."""
    kept, taken = list[AnyMessage](), set[str]()
    for message in messages:
        if isinstance(message, AIMessage):  # a call's id may come again in a later message
            rest, calls = take_out(message, wanted)
            taken = {call.id for call in calls}
            kept += [rest] if not calls or rest.text.strip() or calls_of(rest) else []
        elif not isinstance(message, ToolMessage) or message.tool_call_id not in taken:
            kept.append(message)
    return kept


def calls_of(message: AIMessage) -> list[Call]:
    """List the calls of a message, those with unreadable arguments last."""
    readable = [Call(call["id"] or "", call["name"], call["args"]) for call in message.tool_calls]
    no_object = "the arguments are no JSON object: {!r}. Send one JSON object."
    broken = [
        Call(call["id"] or "", call["name"] or "", {}, no_object.format((call["args"] or "")[:80]))
        for call in message.invalid_tool_calls
    ]
    return readable + broken


def has_calls(state: TurnState) -> bool:
    """Whether the last message calls tools."""
    return isinstance(state.messages[-1], AIMessage) and bool(calls_of(state.messages[-1]))


def has_results(state: TurnState) -> bool:
    """Whether results of tools come last, so that the model is asked again."""
    return isinstance(state.messages[-1], ToolMessage)


def tool_rounds(state: TurnState) -> int:
    """Count how often the model has called tools in this turn."""
    return sum(1 for message in state.current_turn if isinstance(message, AIMessage) and calls_of(message))


def answer(call: Call, text: str, *, ok: bool = True) -> ToolMessage:
    """Make the result of a call."""
    return ToolMessage(text, tool_call_id=call.id, name=call.name, status="success" if ok else "error")


def edit_page(page: PageT, call: Call, stored: PageT | None = None) -> PageEdit[PageT]:
    """Apply what fits of a call of a page's tool; the answer says of all the rest why it does not fit, and what would.

    `page` is as earlier calls left it; `stored` is the one in state, whose reducer gets one patch of all calls.
    """
    if call.problem:
        return PageEdit(page, answer(call, call.problem, ok=False), [], _UNREADABLE)
    name, (edited, notes, problems) = type(page).__name__, apply_fitting(page, call.args)
    try:
        if stored is not None and stored is not page:
            stored.apply(edited.patch_from(stored))
    except NotebookError as error:
        edited, notes, problems = page, [], [*problems, *getattr(error, "problems", [str(error)])]
    if not problems:
        return PageEdit(edited, answer(call, " ".join(["Noted.", *notes])), notes)
    kept = "What fits is noted; send only the rest again." if edited is not page else f"{name} was left as it is."
    result = answer(call, " ".join([kept, *notes, *problems]), ok=False)
    return PageEdit(edited, result, notes, " ".join([kept, *_public(type(page), problems)]))


def _public(page: type[Notebook], problems: Sequence[str]) -> list[str]:
    secret = {*page.SECRET, *(["the whole"] if page.SECRET else [])}  # a page's own rules may quote what they refuse
    public = [problem for problem in problems if problem.split(".")[0].split(":")[0] not in secret]
    return [*public, *(["A secret did not fit."] if len(public) < len(problems) else [])]


def fitting(update: JSON, pages: Mapping[str, Checked]) -> JSON:
    """Return what an application's tool writes without what does not fit a page: its answer then says why.

    Once it is saved, such a write would end the run. `pages` are those of `page_channels_in`.
    """
    fits, problems = dict(update), list[str]()
    for name in [name for name in pages if name in update]:
        page = pages[name].typ
        try:
            pages[name].update([update[name]])
        except ValueError as error:
            del fits[name]
            problems.append(str(PatchError(page.__name__, _public(page, getattr(error, "problems", [str(error)])))))
    said, messages = {"content": " ".join(problems), "status": "error"}, convert_to_messages(update.get("messages", []))
    answers = [each.model_copy(update=said) if isinstance(each, ToolMessage) else each for each in messages]
    return {**fits, "messages": answers} if problems else update


def page_channels_in(state: TurnState) -> dict[str, Checked]:
    """Return copies of the channels of a state's pages: a ValueError refuses what does not fit."""
    fields = type(state).model_fields
    kinds = {name: mark for name in state.PAGES for mark in fields[name].metadata if isinstance(mark, Checked)}
    return {name: kind.from_checkpoint(getattr(state, name).as_json()).copy() for name, kind in kinds.items()}


def edit_pages(
    pages: Sequence[PageT],
    message: AIMessage,
    *,
    other_tools: Collection[str] = (),
    stored: Sequence[PageT] | None = None,
) -> PageEdits[PageT]:
    """Apply what fits of a message's calls of the pages' tools, in order; what does not is refused with the reason.

    Calls of `other_tools` are answered here, and the caller reads them. `stored`: as for `edit_page`.
    """
    edits: PageEdits[PageT] = PageEdits(list(pages), [], [], [], set())
    tools = [type(page).__name__ for page in pages]
    for call in calls_of(message):
        if call.name in tools:
            index = tools.index(call.name)
            edits.pages[index], result, notes, problem = edit_page(edits.pages[index], call, (stored or pages)[index])
            edits.notes.extend(notes)
        elif call.name in other_tools:
            result = answer(call, call.problem or "Noted.", ok=not call.problem)
            problem = _UNREADABLE if call.problem else ""
        else:
            problem = _no_such_tool(call, [*tools, *other_tools])
            result = answer(call, problem, ok=False)
        edits.results.append(result)
        if problem:
            edits.problems.append(problem)
            edits.refused.add(call.name)
    return edits


def refuse_edits(pages: Sequence[PageT], message: AIMessage, reason: str) -> PageEdits[PageT]:
    """Answer a message's calls without doing any of them; that is no mistake of the model's, so no problem."""
    return PageEdits(list(pages), [answer(call, reason, ok=False) for call in calls_of(message)], [], [], set())


def _no_such_tool(call: Call, known: Sequence[str]) -> str:
    only = "the only one is" if len(known) == 1 else "there are"
    return f"There is no tool {call.name!r:.60}; {only} {', '.join(known)}."


class TurnTools(ABC):
    """The tools of a machine for one round of calls; a subclass runs them, and holds what they change.

    Those that are `noting` something are refused in a private turn; `own` are the application's; `silent` ones need no
    answer (`questbook.graphs.turn.reply`). `is_over`: a call has ended the turn, and the model is not asked again.
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

    @abstractmethod
    async def run(self, call: Call) -> ToolMessage:
        """Run a call of one of the machine's tools; its arguments may be unreadable (`call.problem`)."""

    def asks_again(self, call: Call) -> bool:
        """Whether the model is asked again after a call, to tell of its result."""
        return any(tool.name == call.name for tool in self.own)


class Round(NamedTuple):
    """A round of tools."""

    messages: Sequence[AnyMessage]  # those to add
    results: list[ToolMessage]  # the answers among them, in order; a tool that hands over at once has none
    commands: list[Command[Any]]  # what the application's tools command beside them

    def update(self, channels: JSON) -> Any:
        """Return what a node returns: these channels with the messages, behind what the application's tools command."""
        update = {"messages": self.messages, **channels}
        return [*self.commands, update] if self.commands else update


async def answer_calls(state: TurnState, tools: TurnTools, calls: Sequence[Call]) -> Round:
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
            refusal = _no_such_tool(call, [*tools.names, *tools.silent, *own])
        answered[number] = answer(call, refusal, ok=False)
    own_results, commands = await _run_tools(state, tools.own, list(own_calls.values()))
    answered |= {number: own_results[call.id] for number, call in own_calls.items() if call.id in own_results}
    results = [answered[number] for number in sorted(answered)]
    return Round(results, results, commands)


async def run_round(state: TurnState, tools: TurnTools, most_rounds: int) -> Round:
    """Answer the calls of the last message, which calls tools.

    The model is asked again when it has said nothing yet; also, up to `most_rounds` in one turn, when a call failed or
    a tool wants it.
    """
    message: Any = state.messages[-1]
    calls = calls_of(message)
    done = await answer_calls(state, tools, calls)
    spent = tool_rounds(state) >= most_rounds
    wanted = any(result.status == "error" for result in done.results) or any(map(tools.asks_again, calls))
    if message.text.strip() and (not wanted or spent or tools.is_over):  # the turn ends with what was said
        silent = message.model_copy(update={"content": ""})
        return done._replace(messages=[silent, *done.results, AIMessage(message.text, id=f"{message.id}-said")])
    if not spent or tools.is_over or not done.results:
        return done
    *results, last = done.results
    text = f"{last.text}\nNo more tools in this turn: answer now."
    return done._replace(messages=[*results, last.model_copy(update={"content": text})])


def tools_from(tools: Sequence[BaseTool | Callable[..., Any]]) -> list[BaseTool]:
    """Make tools of functions with a docstring; LangChain's tools stay as they are, what is neither is refused."""
    many = isinstance(tools, Iterable) and not isinstance(tools, str | Mapping | BaseTool)
    for each in tools if many else [tools]:
        if not many or not (isinstance(each, BaseTool) or (callable(each) and not isinstance(each, type))):
            raise DeclarationError(f"tools: got {each!r:.80}; expected a list of tools or functions, such as [search].")
        if isinstance(each, BaseTool) and each.return_direct:
            raise DeclarationError(f"tools: {each.name} has return_direct, but here the model replies. Leave it out.")
    return [each if isinstance(each, BaseTool) else tool(each) for each in tools]


def schemas_of(tools: Sequence[BaseTool]) -> list[JSON]:
    """Return tools in the OpenAI function format."""
    if not tools:
        return []
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return [convert_to_openai_tool(each) for each in tools]


async def _run_tools(
    state: TurnState, tools: Sequence[BaseTool], calls: list[Call]
) -> tuple[dict[str, ToolMessage], list[Command[Any]]]:
    """Call an application's own tools; return their answers by call, and what else they command."""
    if not calls:
        return {}, []
    from langgraph.prebuilt import ToolNode  # which a game without such tools need not wait for

    node = ToolNode(list(tools), handle_tool_errors=True)
    tool_calls = [{"type": "tool_call", "name": call.name, "args": call.args, "id": call.id} for call in calls]
    output: Any = await node.ainvoke(tool_calls)
    answers, commands, pages = dict[str, ToolMessage](), list[Command[Any]](), page_channels_in(state)
    for part in output if isinstance(output, list) else [output]:
        command = part if isinstance(part, Command) else None
        update = part if command is None else command.update
        if isinstance(update, dict) and (command is None or command.graph is None):
            update = fitting(update, pages)
            messages = convert_to_messages(update.get("messages", []))
            answers |= {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
            others = [message for message in messages if not isinstance(message, ToolMessage)]
            update = {**update, "messages": others}  # the answer goes with those of the other calls
        if command is not None:
            commands.append(replace(command, update=update))
    return answers, commands
