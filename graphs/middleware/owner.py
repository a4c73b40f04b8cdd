"""To whom a thread belongs: the user with whom it began. Who else may resume its runs, says the app."""

from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import iscoroutinefunction
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from questbook.graphs.errors import InputError, PastUnknownError
from questbook.graphs.middleware.state import is_synthetic, later_turns
from questbook.graphs.settings import NotingContext
from questbook.graphs.turn.pages import Spec, are_names, expect
from questbook.graphs.turn.scope import run_thread, user_of
from questbook.graphs.turn.sessions import owner_before
from questbook.memory.store.any_store import get_values, timed
from questbook.memory.timeline.namespaces import unescape_label
from questbook.memory.timeline.timeline import exchange_key, read_timeline
from questbook.types import JSON

User = str | Callable[[Runtime[Any]], str]  # whose memory it is: a name, or a function of the run that returns one
Resumers = Collection[str] | Callable[[Runtime[Any]], bool]
"""Who may resume the runs of others: names of users, or a function of the run that says so."""

UNKNOWN = (
    "This thread is older than the rule that a thread belongs to one user, and the store does not say whose it is: it "
    "now belongs to {user!r}, who runs it."
)
_PAGE = 1_000  # namespaces
_MOST_MODELS = 32  # models whose settings are kept


class Runs:
    """The runs of an agent, each with its settings and with the user whose memory it is.

    The arguments are the agent's spec, those of `TimelineMemoryMiddleware`, and settings of notes and reflections.
    """

    def __init__(
        self,
        spec: Spec,
        user: User | None,
        resumed_by: Resumers | None,
        model: str | BaseChatModel | None,
        reflection: JSON,
    ) -> None:
        is_function = callable(resumed_by) and not iscoroutinefunction(resumed_by)
        fits = resumed_by is None or is_function or are_names(resumed_by)
        expected = "names of users, such as ['boss'], or a function of the run that says whether its user may resume it"
        expect(fits, "resumed_by", resumed_by, f"{expected}, such as lambda run: run.context['role'] == 'approver'")
        self._spec, self._user, self._resumed_by, self._model = spec, user, resumed_by, model
        self._reflection = reflection
        self._settings: dict[Any, NotingContext] = {}

    def of_caller(
        self, runtime: Runtime[Any], config: RunnableConfig | None = None, *, model: BaseChatModel | None = None
    ) -> Runtime[NotingContext]:
        """Return the run with its settings: who runs it (`user_of`), and the model that takes notes."""
        settings, given = self._settings_with(self._model or model), runtime.context
        if self._user is not None:
            said: Any = self._user(runtime) if callable(self._user) else self._user
        else:
            said = given.get("user") if isinstance(given, Mapping) else getattr(given, "user", None)
        user = user_of((config or get_config()).get("configurable", {}), said, settings.user)
        context = settings.model_copy(update={"user": user}).for_run(runtime)
        return runtime.override(context=context, store=timed(runtime.store, context.store_timeout))

    async def of_owner(
        self,
        values: Mapping[str, Any],
        runtime: Runtime[Any],
        config: RunnableConfig | None = None,
        *,
        model: BaseChatModel | None = None,
    ) -> Runtime[NotingContext]:
        """Return the run with its settings: the user is the one with whom the thread began, not who resumes it.

        `values` is the agent's state, `config` the run's (None: that of the node), `model` the one that answers. An
        InputError refuses another user, who may not resume it.
        """
        run = self.of_caller(runtime, config, model=model)
        user = run.context.user
        owner = await owner_of(values, run) or user
        if owner == user:
            return run
        others = self._resumed_by
        if (others(runtime) if callable(others) else user in (others or ())) is not True:
            raise InputError(refusal(owner, user))
        return run.override(context=run.context.model_copy(update={"user": owner}))

    def _settings_with(self, model: str | BaseChatModel | None) -> NotingContext:
        key = model if isinstance(model, str) else id(model)
        if key not in self._settings:
            if len(self._settings) >= _MOST_MODELS:
                self._settings.clear()
            # Its class keeps the model, so that no other one has this id.
            self._settings[key] = self._spec.settings(NotingContext, model).of(self._reflection)
        return self._settings[key]


def refusal(owner: str, user: str) -> str:
    """Say why a run is refused."""
    return (
        f"This thread belongs to {owner!r}, but the run names {user!r}. Begin a new thread for {user!r}, or name "
        f"{owner!r}. Who else may resume a run, to approve a tool's call for example, is said by "
        "TimelineMemoryMiddleware(resumed_by=…)."
    )


async def owner_of(values: Mapping[str, Any], run: Runtime[NotingContext]) -> str | None:
    """Return to whom a thread belongs; of one that has never begun, who runs it.

    None: the thread is older than this rule (0.2.1), and the store does not tell. A PastUnknownError says that the
    store cannot be read.
    """
    if owner := values.get("thread_owner"):
        return str(owner)
    timeline = read_timeline(values)
    if not timeline:
        return next(iter(await owner_before(run_thread(run))), run.context.user)
    if run.store is None:
        return None
    try:
        return await _writer_of(run.store, run.context, exchange_key(timeline, 1))
    except Exception as error:  # any store may be behind this; a guess could show one person's memory to another
        raise PastUnknownError(
            f"Whose thread this is cannot be read from the store: {error} The message is kept; mend the store and run "
            "the turn again."
        ) from error


async def _writer_of(store: BaseStore, context: NotingContext, key: str) -> str | None:
    own = context.campaign_namespace("exchanges")
    if await store.aget(own, key) is not None:
        return context.user
    read = 0
    while page := await store.alist_namespaces(suffix=own[1:], limit=_PAGE, offset=read):
        read += len(page)
        found = await get_values(store, [(place, key) for place in page if len(place) == len(own)])
        if found:
            return unescape_label(min(found)[0][0])
    return None


def added_messages(messages: Sequence[AnyMessage], opened_by: str, due: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the ids of what the newest input has added to a thread's messages, as far as they tell.

    `opened_by` is the id of the message that opened the last turn; `due` are the turns that are not remembered yet:
    `newest` of the last is the id of the newest message when it began.
    """
    own = [message for message in messages if not is_synthetic(message)]
    ids = [message.id for message in own]
    newest = due[-1].get("newest") if due else None
    if newest in ids:
        later: Sequence[AnyMessage] = own[ids.index(newest) + 1 :]
        first = next((n for n, message in enumerate(later) if isinstance(message, HumanMessage)), len(later))
        later = later[first:]
    else:
        later = later_turns(messages, opened_by)
    return [message.id for message in later if message.id]
