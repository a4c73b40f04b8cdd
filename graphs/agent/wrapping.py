"""Calls of the model and of tools with LangChain's middleware around them: `wrap_model_call` and `wrap_tool_call`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime

from questbook.graphs.agent.hooks import ELSEWHERE, check_update, overrides, unstreamed, values_of, with_config
from questbook.graphs.errors import ModelError, PromptTooLongError
from questbook.graphs.models.providers import explain
from questbook.graphs.turn.context_window import Put
from questbook.graphs.turn.state import TurnState
from questbook.notebooks import DeclarationError
from questbook.types import JSON

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest

_Model = Callable[[Any], Awaitable["Answer"]]


class _TooLong(BaseException):
    """Brings a refused prompt past the middleware, none of which should try it again as it is."""

    def __init__(self, error: PromptTooLongError) -> None:
        super().__init__(str(error))
        self.error = error


class Answer(NamedTuple):
    """What came of a model's call: LangChain's response, and what the middleware around it writes to channels."""

    response: Any
    updates: list[JSON]


def around_model(
    middleware: Sequence[AgentMiddleware[Any, Any]], tools: Sequence[BaseTool], state: TurnState, runtime: Runtime[Any]
) -> AroundModel | None:
    """Return what asks the model with the `wrap_model_call` of middleware around it; None if none has any."""
    wrapping = [each for each in middleware if overrides(each, "wrap_model_call")]
    return AroundModel(wrapping, {tool.name: tool for tool in tools}, state, runtime) if wrapping else None


class AroundModel:
    """Asks a model with middleware around it, the first outermost.

    Attributes:
        updates: What the middleware writes to channels beside the answers.
    """

    def __init__(
        self,
        middleware: Sequence[AgentMiddleware[Any, Any]],
        tools: Mapping[str, BaseTool],
        state: TurnState,
        runtime: Runtime[Any],
    ) -> None:
        self._middleware, self._tools, self._state, self._runtime = middleware, tools, state, runtime
        self.updates: list[JSON] = []

    async def __call__(self, put: Put, model: Any, messages: Sequence[BaseMessage], tools: Sequence[JSON]) -> AIMessage:
        """Ask a model.

        Args:
            put: Asks a model without middleware.
            model: The settings' model.
            messages: The prompt.
            tools: Schemas of what the model may call.

        Raises:
            ModelError: The model failed, and no middleware helped.
            DeclarationError: A middleware asks for what an agent of `build_agent` cannot do.
        """
        from langchain.agents.middleware import ModelRequest, ModelResponse

        name, config, failures = self._runtime.context.model, ensure_config(), list[BaseException]()
        system = messages[0] if messages and isinstance(messages[0], SystemMessage) else None
        request: Any = ModelRequest(
            model=model,
            messages=cast("Any", list(messages[1:] if system else messages)),
            system_message=system,
            tools=[self._tools.get(tool["function"]["name"], tool) for tool in tools],
            state=cast("Any", values_of(self._state)),
            runtime=self._runtime,
        )

        async def ask(request: Any) -> Answer:
            try:
                with with_config(config):
                    message = await put(request.model, *_prompt_of(request), **_options_of(request))
            except PromptTooLongError as error:
                raise _TooLong(error) from error
            except ModelError as error:
                # What middleware decides by, such as a retry's `retry_on`, is the provider's own error.
                failures.append(error.__cause__ if isinstance(error.__cause__, Exception) else error)
                raise failures[-1] from None
            return Answer(ModelResponse(result=[message]), [])

        call: _Model = ask
        for each in reversed(self._middleware):
            call = _wrapped(each, call)
        try:
            with unstreamed():
                answer = await call(request)
        except _TooLong as error:
            raise error.error from None
        except Exception as error:
            raise explain(error, name) if error in failures else error from error
        for update in answer.updates:
            check_update(update, self._state, "wrap_model_call")
        self.updates += answer.updates
        return _only_message(answer.response)


def tool_wrapper(middleware: Sequence[AgentMiddleware[Any, Any]]) -> Any:
    """Return what calls a tool with the `wrap_tool_call` of middleware around it, for a ToolNode; None if none has any.

    An error that no middleware handles becomes the tool's answer.
    """
    wrapping = [each for each in middleware if overrides(each, "wrap_tool_call")]
    if not wrapping:
        return None

    async def call_tool(request: Any, handler: Any) -> Any:
        call = handler
        for each in reversed(wrapping):
            call = _with_handler(each, "wrap_tool_call", call)
        try:
            with unstreamed():
                return await call(request)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 (a tool's error is for the model to read)
            text = f"Error: {error!r}\n Please fix your mistakes."
            name, call_id = request.tool_call["name"], request.tool_call["id"]
            return ToolMessage(text, name=name, tool_call_id=call_id, status="error")

    return call_tool


def _wrapped(middleware: AgentMiddleware[Any, Any], inner: _Model) -> _Model:
    """Put a middleware around a model's call; what it writes comes behind what those inside write."""
    from langchain.agents.middleware import ExtendedModelResponse, ModelResponse

    async def call(request: Any) -> Answer:
        updates = list[JSON]()

        async def handler(request: Any) -> Any:
            updates.clear()  # it may ask again
            answer = await inner(request)
            updates.extend(answer.updates)
            return answer.response

        result: Any = await _with_handler(middleware, "wrap_model_call", handler)(request)
        if isinstance(result, ExtendedModelResponse):
            command = result.command
            if command is not None and (command.goto or command.resume or command.graph):
                raise DeclarationError(
                    f"{middleware.name}.wrap_model_call returned a Command with goto, resume or graph; only `update` "
                    "can be used."
                )
            updates += [_mapping(command.update)] if command and command.update else []
            result = result.model_response
        return Answer(ModelResponse(result=[result]) if isinstance(result, AIMessage) else result, updates)

    return call


def _with_handler(middleware: AgentMiddleware[Any, Any], hook: str, handler: Any) -> Callable[[Any], Awaitable[Any]]:
    """Return a hook that wraps; a hook for sync agents alone runs in a thread."""
    from langchain.agents.middleware import AgentMiddleware

    async def call(request: Any) -> Any:
        name = f"a{hook}"
        if getattr(type(middleware), name) is not getattr(AgentMiddleware, name):
            return await getattr(middleware, name)(request, handler)
        loop = asyncio.get_running_loop()

        def wait(request: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(handler(request), loop).result()

        return await asyncio.to_thread(getattr(middleware, hook), request, wait)

    return call


def _mapping(update: Any) -> JSON:
    if not isinstance(update, Mapping):
        raise DeclarationError(f"A middleware wrote {update!r:.80}; expected a mapping of channels.")
    return dict(update)


def _prompt_of(request: ModelRequest[Any]) -> tuple[list[BaseMessage], list[JSON]]:
    system = [request.system_message] if request.system_message else []
    tools = [convert_to_openai_tool(tool) if isinstance(tool, BaseTool) else tool for tool in request.tools]
    return [*system, *request.messages], tools


def _options_of(request: ModelRequest[Any]) -> JSON:
    if request.response_format is not None:
        raise DeclarationError(
            "wrap_model_call asks for a response_format; an agent of build_agent answers in words and keeps data on "
            f"its notebooks. For structured output {ELSEWHERE}."
        )
    choice = {"tool_choice": request.tool_choice} if request.tool_choice is not None else {}
    return {**choice, **request.model_settings}


def _only_message(response: Any) -> AIMessage:
    messages: Any = getattr(response, "result", None)
    if not isinstance(messages, list) or len(messages) != 1 or not isinstance(messages[0], AIMessage):
        raise DeclarationError(
            f"wrap_model_call returned {messages if messages is not None else response!r:.80}; expected one AIMessage, "
            "or a ModelResponse with one."
        )
    return messages[0]
