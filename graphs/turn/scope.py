"""Whose memory a run reads and writes, and with which timeline it looks into the store.

The machine's scope decides the timeline. "campaign": a new thread goes on from the campaign's head. "thread": it begins
with nothing. "user": it sees what the user's other threads know (`questbook.memory.timeline.timeline.UserTimeline`).

Loads neither LangGraph nor LangChain, so that a command that asks no model starts quickly.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.settings import USER_VARIABLE, Settings
from questbook.graphs.turn.api_server import logged_in

if TYPE_CHECKING:
    from langgraph.runtime import Runtime

    from questbook.graphs.turn.state import TurnState
    from questbook.memory.timeline.timeline import Timeline, UserTimeline

SettingsT = TypeVar("SettingsT", bound=Settings)

HEADS = "heads"  # last label of the namespace of the heads of a user's threads
HEAD = "head"  # last label of the namespace of the campaign's head, and its key
_LONGEST = 200


def with_user(settings: SettingsT, configurable: Mapping[str, Any] | None = None) -> SettingsT:
    """Return the settings with their user named, as `user_of` says; `configurable` is None outside a run."""
    said = settings.user if "user" in settings.model_fields_set else None
    user = user_of(configurable or {}, said, settings.user)
    return settings if user == settings.user else settings.model_copy(update={"user": user})


def user_of(configurable: Mapping[str, Any], said: str | None = None, otherwise: str = "") -> str:
    """Return whose memory a run reads and writes: who logged in, else whom the caller names.

    A server puts who logged in into `configurable` (`logged_in`); a caller names "user" there, or in the context or an
    option (`said`). `otherwise` is the user of a program that only one person uses. A SettingsError says that nobody is
    named, or two that differ are, or that a name is no text of 1 to 200 characters.
    """
    named = {
        "the log-in": logged_in(configurable),
        "the context": said or None,
        "configurable": configurable.get("user") or None,
    }
    named = {source: name for source, name in named.items() if name is not None}
    for source, name in named.items():
        if not isinstance(name, str) or len(name) > _LONGEST:
            expected = f"a text of 1 to {_LONGEST} characters"
            raise SettingsError(f"The user of {source}: got {name!r:.80}; expected {expected}.")
    if len(set(named.values())) > 1:
        (first, user), *others = named.items()
        other, another = next(each for each in others if each[1] != user)
        two = f"{user!r} by {first}, {another!r} by {other}"
        one = "Name one of them; nobody reads the memory of somebody else."
        raise SettingsError(f"Two users are named: {two}. {one}")
    user = next(iter(named.values()), otherwise)
    if not user:
        raise SettingsError(
            'No user is named, and memories are kept apart by user. Name one: with context={"user": "ann"}; with '
            'configurable={"user": "ann"}, also beside the checkpoint_id of a fork, since a state that LangGraph '
            "returns does not hold it; with TimelineMemoryMiddleware(user=…), a name or a function of the run, such as "
            'lambda run: run.context["user_id"]; or, for a program that only one person uses, with the variable '
            f"{USER_VARIABLE}. On LangGraph Server with authentication it is who logged in."
        )
    return user


def campaign_of(state: Any) -> Sequence[str]:
    """Return user and campaign that a state's thread belongs to; nothing before its first turn.

    Until then only a run's command can have written them. Threads older than the channel `machine` have a turn.
    """
    has_begun = getattr(state, "machine", "") or getattr(state, "turn", 0)
    return getattr(state, "campaign", ()) if has_begun else ()


def settings_of(settings: SettingsT, state: Any, thread: str | None, given: Mapping[str, Any] | None) -> SettingsT:
    """Return the settings of a run on a thread: their user named; where the caller names no campaign, the thread's.

    Of a thread without a campaign, `new_campaign` of its state may name one. Another user or campaign than the thread's
    is refused (`user_of`, `check_owner`).
    """
    settings, campaign = with_user(settings, given), campaign_of(state)
    if "campaign" not in settings.model_fields_set:
        named = campaign[1] if campaign else getattr(state, "new_campaign", lambda _: "")(thread)
        settings = settings.model_copy(update={"campaign": named}) if named else settings
    check_owner(campaign, settings)
    return settings


def check_owner(campaign: Sequence[str], settings: Settings) -> None:
    """Refuse settings of another user or campaign than a thread's, its channel `campaign`, by an InputError."""
    named = [settings.user, settings.campaign]
    if campaign and list(campaign) != named:
        (user, campaign_name), (new_user, new) = campaign, named
        again = f"Name {campaign_name!r} again, or begin" if user == new_user else "Begin"
        thread = f"This thread belongs to campaign {campaign_name!r} of {user!r}"
        but = f"but the settings name {new!r} of {new_user!r}"
        raise InputError(f"{thread}, {but}. {again} a new thread for that one.")


def run_thread(runtime: "Runtime[Any]") -> str | None:
    """Return the id of the run's thread; None without a checkpointer."""
    thread = runtime.execution_info.thread_id if runtime.execution_info else None
    return None if thread is None else str(thread)


def thread_or_branch(runtime: "Runtime[Any]", timeline: "Timeline") -> str:
    """Return the id of the run's thread; without a checkpointer, where each run is one, the branch that it began on."""
    return run_thread(runtime) or (timeline[0][0] if timeline else "")


def visible_timeline(state: "TurnState", runtime: "Runtime[Any]") -> "Timeline":
    """Return the timeline with which a run reads and writes the store: of scope "user", with the other threads."""
    if state.SCOPE != "user":
        return state.timeline
    return user_timeline(state.timeline, runtime.context, thread_or_branch(runtime, state.timeline))


def user_timeline(timeline: "Timeline", settings: Settings, thread: str) -> "UserTimeline":
    """Return a thread's timeline that sees the user's other threads; those of before heads by the campaign's head."""
    from questbook.memory.timeline.timeline import UserTimeline

    heads, head = (settings.campaign_namespace(name) for name in (HEADS, HEAD))
    return UserTimeline(timeline, thread=thread, heads=heads, fallback=(head, HEAD))
