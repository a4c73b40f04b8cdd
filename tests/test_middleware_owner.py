"""A thread of an agent of LangChain's belongs to whom it began with; whose memory it is never changes."""

import asyncio
import uuid

import pytest
from answering import THREAD, Answering, Talk, written
from faulty_stores import Broken
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels.last_value import MISSING
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Overwrite
from scripted import call, say

from questbook import FactNotes, MemoryState, TimelineMemoryMiddleware, forget
from questbook.graphs.errors import InputError, PastUnknownError
from questbook.graphs.middleware.owner import Runs, added_messages, owner_of
from questbook.graphs.middleware.state import ThreadOwner
from questbook.graphs.settings import AppRules
from questbook.graphs.turn.pages import Spec
from questbook.memory.timeline.namespaces import escape_label
from questbook.memory.timeline.timeline import record_key
from questbook.notebooks.errors import DeclarationError

APPROVE = Command(resume={"decisions": [{"type": "approve"}]})
CALLS = [True, False]


def as_user(name, thread="1"):
    return {"configurable": {"thread_id": thread, "user": name}}


class Painter(Talk):
    """A talk of several users, whose tool waits for an approval."""

    def __init__(self, *args, **options):
        self.painted = []

        @tool
        def paint(colour: str) -> str:
            """Paint the lamp."""
            self.painted.append(colour)
            return f"Painted {colour}."

        asks = HumanInTheLoopMiddleware(interrupt_on={"paint": True})
        super().__init__(*args, user=None, middleware=[asks], own_tools=[paint], thread=as_user("ann"), **options)

    async def run(self, given, user, *, sync=False):
        if sync:
            return await asyncio.to_thread(self.agent.invoke, given, as_user(user))
        return await self.agent.ainvoke(given, as_user(user))

    async def ask(self, words="Paint it blue.", user="ann"):
        self.model.answers += [say("", call("paint", colour="blue"))]
        return await self.agent.ainvoke({"messages": [("user", words)]}, as_user(user))


@pytest.mark.parametrize("sync", CALLS)
async def test_a_message_of_another_user_is_refused_and_leaves_nothing(sync):
    talk = Painter()
    await talk.say("My lamp is red.")
    with pytest.raises(InputError, match=r"belongs to 'ann', but the run names 'bob'\. Begin a new thread for 'bob'"):
        await talk.run({"messages": [("user", "I am Bob.")]}, "bob", sync=sync)
    assert len(talk.model.prompts) == 1, "no model was asked"
    assert talk.store.search(("bob",)) == []
    await talk.run({"messages": [("user", "It is on the shelf.")]}, "ann", sync=sync)
    assert "Bob" not in str(talk.model.prompts[-1])
    assert written(talk.store) == ["It is on the shelf.", "My lamp is red."]
    assert (talk.values["thread_owner"], talk.values["turn"]) == ("ann", 2)


async def test_what_is_due_is_remembered_by_its_owner_and_nobody_else():
    """A turn that failed, an unanswered message of two parts, and one whose tool waits: then somebody else writes."""
    store = Broken()
    talk = Painter(store)
    await talk.say("My lamp is red.")
    store.error = ConnectionError("the line went dead")
    await talk.say("It is on the shelf.")
    store.error = None
    talk.model.answers += [ValueError("too hot")]
    with pytest.raises(ValueError, match="too hot"):
        await talk.run({"messages": [("user", "It is warm."), ("user", "And bright.")]}, "ann")
    for _ in range(2):
        with pytest.raises(InputError, match="belongs to 'ann'"):
            await talk.run({"messages": [("user", "I am Bob.")]}, "bob")
    await talk.ask("Paint it.")
    with pytest.raises(InputError, match="belongs to 'ann'"):
        await talk.run({"messages": [("user", "I am Bob.")]}, "bob")
    await talk.say("Never mind.")
    assert store.search(("bob",)) == []
    said = ["My lamp is red.", "It is on the shelf.", "It is warm.\nAnd bright.\nPaint it.", "Never mind."]
    assert await talk.sees() == said
    assert "Bob" not in str(talk.values["messages"])


async def test_after_the_buffer_was_emptied_a_strangers_words_go_too():
    talk = Painter()
    await talk.say("My lamp is red.")
    talk.forget_messages()
    with pytest.raises(InputError, match="belongs to 'ann'"):
        await talk.run({"messages": [("user", "I am Bob.")]}, "bob")
    assert talk.values["messages"] == []


@pytest.mark.parametrize("sync", CALLS)
async def test_a_resume_by_another_user_is_refused_before_the_tool_is_called(sync):
    talk = Painter()
    await talk.ask()
    with pytest.raises(InputError, match="belongs to 'ann', but the run names 'boss'"):
        await talk.run(APPROVE, "boss", sync=sync)
    assert talk.painted == []
    assert talk.store.search(("boss",)) == []
    await talk.run(None, "ann", sync=sync)  # goes on where it was refused
    assert talk.painted == ["blue"]
    assert await talk.sees() == ["Paint it blue."]


@pytest.mark.slow
@pytest.mark.parametrize(
    "resumed_by",
    [["boss"], {"boss": 1}.keys(), lambda run: run.execution_info.thread_id == "1"],
    ids=["list", "set", "function"],
)
@pytest.mark.parametrize("sync", CALLS)
async def test_who_may_resume_works_with_the_memory_of_the_owner(resumed_by, sync):
    talk = Painter(resumed_by=resumed_by, tools=True)
    await talk.agent.ainvoke({"messages": [("user", "The boss's lamp is green.")]}, as_user("boss", "2"))
    await talk.say("My lamp is red.")
    talk.forget_messages()
    await talk.ask("Paint my lamp blue.")
    talk.model.answers += [
        say("", call("manage_memory", action="create", content="Ann wants blue.")),
        say("", call("search_memory", query="Which colour has the lamp?")),
        "It is blue.",
    ]
    await talk.run(APPROVE, "boss", sync=sync)
    assert talk.painted == ["blue"]
    found = next(message.text for message in talk.model.prompts[-1] if getattr(message, "name", "") == "search_memory")
    assert "My lamp is red." in found
    assert "green" not in found + talk.model.remembered
    assert "My lamp is red." in talk.model.remembered
    assert written(talk.store, user="boss") == ["The boss's lamp is green."]
    assert written(talk.store) == ["My lamp is red.", "Paint my lamp blue."]
    assert written(talk.store, "facts") == ["Ann wants blue."]
    with pytest.raises(InputError, match="belongs to 'ann'"):  # a new message is no answer
        await talk.run({"messages": [("user", "I am the boss.")]}, "boss", sync=sync)
    with pytest.raises(InputError, match="belongs to 'ann'"):
        await talk.run({"messages": [("user", "I am Eve.")]}, "eve", sync=sync)


async def test_who_may_not_resume_is_refused_though_another_one_may():
    talk = Painter(resumed_by=["boss"])
    await talk.ask()
    with pytest.raises(InputError, match="the run names 'eve'"):
        await talk.run(APPROVE, "eve")
    assert talk.painted == []


async def test_a_retry_by_another_user_is_refused():
    talk = Painter()
    await talk.say("My lamp is red.")
    begun = [state for state in talk.agent.get_state_history(THREAD) if state.next and state.values.get("turn")]
    assert len(begun) == 3
    for state in begun:
        with pytest.raises(InputError, match="belongs to 'ann'"):
            await talk.agent.ainvoke(None, {"configurable": state.config["configurable"] | {"user": "bob"}})
    assert talk.store.search(("bob",)) == []


@pytest.mark.parametrize("sync", CALLS)
async def test_nobody_takes_a_thread_over_from_before_its_first_turn(sync):
    talk = Painter()
    await talk.say("My PIN is 4711.")
    for state in [state for state in talk.agent.get_state_history(THREAD) if not state.values.get("turn")]:
        where = {"configurable": state.config["configurable"] | {"user": "bob"}}
        for _ in range(6):  # what a refused run leaves names nobody either
            with pytest.raises(InputError, match="belongs to 'ann'"):
                await (asyncio.to_thread(talk.agent.invoke, None, where) if sync else talk.agent.ainvoke(None, where))
    assert len(talk.model.prompts) == 1
    assert talk.store.search(("bob",)) == []
    await talk.run({"messages": [("user", "My lamp is red.")]}, "ann", sync=sync)
    assert talk.values["thread_owner"] == "ann"


@pytest.mark.parametrize("sync", CALLS)
@pytest.mark.parametrize(
    "change", [HumanMessage("Pay Bob.", id="words"), RemoveMessage("words"), RemoveMessage(REMOVE_ALL_MESSAGES)]
)
async def test_what_a_refused_run_has_changed_or_removed_is_as_it_was(change, sync):
    talk = Painter()
    await talk.run({"messages": [HumanMessage("My lamp is red.", id="words")]}, "ann")
    before = talk.values["messages"]
    for _ in range(2):
        with pytest.raises(InputError, match="belongs to 'ann'"):
            await talk.run({"messages": [change, ("user", "I am Bob.")]}, "bob", sync=sync)
        assert talk.values["messages"] == before
    await talk.run({"messages": [("user", "It is on the shelf.")]}, "ann")
    assert written(talk.store) == ["It is on the shelf.", "My lamp is red."]


async def test_a_thread_whose_id_is_no_text_is_remembered():
    talk = Painter()
    for thread in (7, uuid.uuid4()):
        await talk.agent.ainvoke({"messages": [("user", f"Thread {thread}.")]}, as_user("ann", thread))
    assert len(written(talk.store)) == 2


@pytest.mark.parametrize("forged", ["bob", Overwrite("bob"), {"__overwrite__": "bob"}, "", None, 7])
async def test_no_edit_gives_a_thread_away(forged):
    talk = Painter()
    await talk.say("My lamp is red.")
    edit = {"thread_owner": forged}
    for node in ("before_agent", "after_agent"):
        with pytest.raises(InputError, match="The thread belongs to 'ann', and remains theirs"):
            talk.agent.update_state(talk.thread, edit, as_node=f"TimelineMemoryMiddleware.{node}")
    assert talk.values["thread_owner"] == "ann"
    with pytest.raises(InputError, match="belongs to 'ann'"):
        await talk.run({"messages": [("user", "I am Bob.")]}, "bob")


def test_an_owner_is_a_name_that_is_written_once_in_any_form_of_a_write():
    channel = ThreadOwner().from_checkpoint("ann")
    channel.update(["bob", Overwrite("bob"), {"__overwrite__": "bob"}, 7, "", "ann"])
    assert channel.get() == "ann"
    new = ThreadOwner().from_checkpoint(MISSING)
    new.update([7, None])
    assert not new.is_available()
    new.update(["bob"])
    assert new.get() == "bob"


@pytest.mark.parametrize(
    "edit",
    [
        {"due": [{"a": 1}]},
        {"turn": -5},
        *({"timeline": [["x", n]]} for n in (-1, 1)),
        {"staged": [{"turn": 1}]},
        {"noted": 3},
    ],
)
async def test_an_edit_that_does_not_fit_is_refused_and_the_thread_goes_on(edit):
    talk = Painter()
    await talk.say("My lamp is red.")
    before, [name] = talk.values, edit
    for node in ({"as_node": "TimelineMemoryMiddleware.before_agent"}, {}):  # {}: the one that wrote last
        with pytest.raises(InputError, match=rf"{name}.*: got"):
            talk.agent.update_state(talk.thread, edit, **node)
    assert talk.values == before
    await talk.say("I paint it blue.")
    assert (talk.values["turn"], talk.values["remembered_through"]) == (2, 2)


@pytest.mark.parametrize(
    "edit", [{"turn": 7}, {"turn": 0}, *({name: 99} for name in ("remembered_through", "facts_through"))]
)
async def test_an_edit_that_does_not_go_with_the_rest_is_put_right_by_the_next_turn(edit):
    talk = Painter()
    await talk.say("My lamp is red.")
    talk.agent.update_state(talk.thread, edit)
    await talk.say("My rose is white.")
    values = talk.values
    assert [values[name] for name in ("turn", "remembered_through")] == [2, 2]
    assert values.get("facts_through", 0) <= 2
    assert written(talk.store) == ["My lamp is red.", "My rose is white."], "each is remembered once"
    assert [next(iter(edit)) in one["detail"] for one in values["notices"]] == [True]


async def by_and_by(run):
    return False


async def test_who_may_resume_is_said_by_true_alone():
    talk = Painter(resumed_by=lambda run: by_and_by(run))
    await talk.ask()
    with pytest.warns(RuntimeWarning, match="never awaited"), pytest.raises(InputError, match="belongs to 'ann'"):
        await talk.run(APPROVE, "eve")
    assert talk.painted == []


@pytest.mark.parametrize("resumed_by", ["boss", b"boss", [""], [None], 7, {"boss": True}, by_and_by])
def test_who_may_resume_is_names_or_a_function(resumed_by):
    with pytest.raises(DeclarationError, match=r"resumed_by: got .* expected names of users"):
        TimelineMemoryMiddleware(resumed_by=resumed_by)


async def of_0_2(talk, *users):
    """Make a thread that an older version has left: without an owner; each user has said something on it."""
    for user in users:
        await talk.agent.ainvoke({"messages": [("user", f"I am {user}.")]}, as_user(user, user))
    first = talk.agent.get_state(as_user(users[0], users[0])).values
    private = await talk.agent.checkpointer.aget_tuple(as_user(users[0], users[0]))
    values = {**first, **private.checkpoint["channel_values"]}
    kept = ("messages", "timeline", "turn", "opened_by", "remembered_through", "due")
    old = {name: values[name] for name in kept if name in values}
    talk.agent.update_state(as_user("x"), old, as_node="TimelineMemoryMiddleware.after_agent")


@pytest.mark.parametrize("page", [1, 1_000])
async def test_a_thread_of_before_this_rule_belongs_to_whom_the_store_names(monkeypatch, page):
    monkeypatch.setattr("questbook.graphs.middleware.owner._PAGE", page)
    talk = Painter()
    for user in ("abe", "amy"):  # who have said something elsewhere
        await talk.agent.ainvoke({"messages": [("user", "Hello.")]}, as_user(user, f"of {user}"))
    await of_0_2(talk, "ann", "bob")
    with pytest.raises(InputError, match="belongs to 'ann', but the run names 'bob'"):
        await talk.run({"messages": [("user", "I am Bob.")]}, "bob")
    await talk.say("It is me.")
    assert written(talk.store) == ["I am ann.", "It is me."]
    assert (talk.values["thread_owner"], talk.values.get("notices", [])) == ("ann", [])


async def test_a_thread_that_neither_state_nor_store_gives_an_owner_belongs_to_who_runs_it_and_a_notice_says_so():
    talk = Painter()
    await of_0_2(talk, "ann")
    for item in talk.store.search(("ann",), limit=100):
        talk.store.delete(item.namespace, item.key)
    await talk.run({"messages": [("user", "I am Bob.")]}, "bob")
    assert talk.values["thread_owner"] == "bob"
    [entry] = talk.values["notices"]
    assert "it now belongs to 'bob', who runs it" in entry["text"]
    with pytest.raises(InputError, match="belongs to 'bob'"):
        await talk.say("It is me.")


async def test_a_thread_of_before_this_rule_waits_for_a_store_that_cannot_be_read():
    store = Broken()
    talk = Painter(store)
    await of_0_2(talk, "ann")
    store.error = ConnectionError("the line went dead")
    with pytest.raises(PastUnknownError, match="Whose thread this is cannot be read"):
        await talk.say("It is me.")
    store.error = None
    await talk.run(None, "ann")
    assert written(store) == ["I am ann.", "It is me."]


async def test_agents_that_share_a_memory_in_their_parent_refuse_another_user_too():
    class Team(MessagesState, MemoryState):
        """What all agents know."""

    store = InMemoryStore()
    desk = create_agent(Answering(), [], middleware=[TimelineMemoryMiddleware(shared=True)])
    team = StateGraph(Team).add_node("desk", desk).add_edge(START, "desk")
    team = team.compile(checkpointer=InMemorySaver(), store=store)
    await team.ainvoke({"messages": [("user", "My lamp is red.")]}, as_user("ann"))
    assert team.get_state(THREAD).values["thread_owner"] == "ann"
    with pytest.raises(InputError, match="belongs to 'ann'"):
        await team.ainvoke({"messages": [("user", "I am Bob.")]}, as_user("bob"))
    assert store.search(("bob",)) == []
    assert written(store) == ["My lamp is red."]


async def test_without_a_thread_there_is_nothing_to_own():
    store = InMemoryStore()
    agent = create_agent(Answering(), [], middleware=[TimelineMemoryMiddleware()], store=store)
    for name in ("ann", "bob"):
        await agent.ainvoke({"messages": [("user", f"I am {name}.")]}, {"configurable": {"user": name}})
        assert written(store, user=name) == [f"I am {name}."]


async def test_who_logged_in_to_a_server_is_who_runs_it():
    talk = Painter()

    def logged_in(name):
        return {"configurable": {"thread_id": "1", "langgraph_auth_user": {"identity": name}}}

    await talk.agent.ainvoke({"messages": [("user", "My lamp is red.")]}, logged_in("ann"))
    with pytest.raises(InputError, match="the run names 'bob'"):
        await talk.agent.ainvoke({"messages": [("user", "I am Bob.")]}, logged_in("bob"))


async def test_who_resumed_or_was_refused_does_not_forget_the_owners_thread_and_the_owner_does(tmp_path):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        talk = Painter(saver=saver, resumed_by=["boss"])
        await talk.ask("Paint my silver heron.")
        await talk.run(APPROVE, "boss")
        with pytest.raises(InputError, match="belongs to 'ann'"):
            await talk.run({"messages": [("user", "I am Bob.")]}, "bob")
        for name in ("boss", "bob"):
            await forget(talk.store, name, checkpointer=saver)
        assert "silver heron" in str((await talk.agent.aget_state(THREAD)).values["messages"])
        assert written(talk.store) == ["Paint my silver heron."]
        await forget(talk.store, "ann", "agent:agent", words="silver heron", checkpointer=saver)
        assert "silver" not in str((await talk.agent.aget_state(THREAD)).values)
        await forget(talk.store, "ann", checkpointer=saver)
        assert (await talk.agent.aget_state(THREAD)).values == {}


async def test_runs_with_many_models_keep_the_settings_of_the_last_ones(monkeypatch):
    monkeypatch.setattr("questbook.graphs.middleware.owner._MOST_MODELS", 2)
    store = InMemoryStore()
    memory = TimelineMemoryMiddleware(user="ann", facts=FactNotes())
    saver = InMemorySaver()
    for n in range(5):
        agent = create_agent(Answering(), [], middleware=[memory], checkpointer=saver, store=store)
        await agent.ainvoke({"messages": [("user", f"Lamp {n}.")]}, as_user("ann"))
    assert written(store) == [f"Lamp {n}." for n in range(5)]


MADE_UP = HumanMessage("s", id="s", additional_kwargs={"lc_source": "x"})  # by middleware


def others(*texts):
    """Messages of a thread: a question and its answer in turn, each with its place as its id."""
    return [(HumanMessage, AIMessage)[n % 2](text, id=str(n)) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("messages", "opened_by", "due", "added"),
    [
        (others("a", "b", "c"), "0", [], ["2"]),
        (others("a", "b", "c", "d"), "0", [], ["2", "3"]),
        (others("a", "b"), "0", [], []),
        (others("a", "b", "c"), "gone", [], ["2"]),
        (others("a", "b", "c", "d"), "gone", [], []),
        (others("a", "b", "c", "d", "e"), "0", [{"newest": "2"}], ["4"]),
        (others("a", "b", "c", "d", "e"), "0", [{"newest": "1"}], ["2", "3", "4"]),
        (others("a", "b", "c"), "0", [{"newest": "gone"}], ["2"]),
        ([*others("a", "b"), HumanMessage("c")], "0", [], []),
        ([*others("a", "b"), MADE_UP, *others("a", "b", "c")[2:]], "0", [{"newest": "1"}], ["2"]),
        ([*others("a", "b"), MADE_UP], "0", [{"newest": "1"}], []),
        ([*others("a", "b"), MADE_UP], "0", [], []),
    ],
)
def test_what_the_newest_input_has_added_is_known_as_far_as_the_messages_tell(messages, opened_by, due, added):
    assert added_messages(messages, opened_by, due) == added


def caller(context=None, configurable=None, *, user=None, app=None, store=None, **options):
    """The run of an agent, as its memory reads it."""
    spec = Spec(name="desk", app=app or AppRules())
    runs = Runs(spec, user, None, options.pop("model", None), {"reflection": "off", "reflection_importance": 9})
    run = Runtime(context=context, store=store, server_info=None)
    return runs.of_caller(run, {"configurable": configurable or {}}, **options)


class Named:
    user = "ann"


@pytest.mark.parametrize(("context", "configurable", "user"), [
    ({"user": "ann"}, {}, None), (Named(), {}, None), (None, {"user": "ann"}, None), (None, {}, "ann"),
    ({"who": "ann"}, {}, lambda run: run.context["who"]), ({"user": "bob"}, {}, "ann"),
    (None, {"langgraph_auth_user_id": "ann"}, None),
])  # fmt: skip
def test_who_runs_an_agent_is_said_by_the_app_the_context_the_configuration_or_the_log_in(context, configurable, user):
    run = caller(context, configurable, user=user)
    assert (run.context.user, run.context.campaign) == ("ann", "agent:desk")
    assert (run.context.reflection, run.context.reflection_importance) == ("off", 9)


def test_a_run_has_what_the_app_says_of_it_its_store_in_time_and_the_model_that_takes_notes():
    app = AppRules(team=lambda run: run.context["team"], metadata={"app": "a"})
    run = caller({"user": "ann", "team": "crew"}, app=app, store=InMemoryStore())
    assert (run.context.team, run.context.metadata) == ("crew", {"app": "a"})
    assert type(run.store) is not InMemoryStore, "one that hangs is given up"
    mine, other = Answering(), Answering()
    assert caller({"user": "ann"}, model=mine).context.CHAT_MODEL is mine
    spec, run = Spec(name="desk"), Runtime(context={"user": "ann"})
    runs = Runs(spec, None, None, None, {})
    for model in (mine, other, mine):
        assert runs.of_caller(run, {"configurable": {}}, model=model).context.CHAT_MODEL is model
    own = Runs(spec, None, None, mine, {})
    assert own.of_caller(run, {"configurable": {}}, model=other).context.CHAT_MODEL is mine


async def test_whose_an_old_thread_is_says_the_place_of_its_first_exchange_and_that_alone():
    store, key = InMemoryStore(), record_key("b", 1, "exchange")
    run = caller({"user": "ann"}, store=store)
    old = {"timeline": [["b", 3]], "turn": 3}
    own = run.context.campaign_namespace("exchanges")
    assert await owner_of({}, run) == await owner_of({"timeline": []}, run) == "ann", "nothing has begun"
    assert await owner_of(old, run) is None
    await store.aput(("a team", "of it", *own[1:]), key, {"player": "Hi."})
    await store.aput((*own, "copy"), key, {"player": "Hi."})
    assert await owner_of(old, run) is None
    await store.aput((escape_label("bob: the boss"), *own[1:]), key, {"player": "Hi."})
    assert await owner_of(old, run) == "bob: the boss"
    await store.aput(own, key, {"player": "Hi."})
    assert await owner_of(old, run) == "ann", "who runs it comes first"
    assert await owner_of(old | {"thread_owner": "eve"}, run) == "eve"
    assert await owner_of(old, run.override(store=None)) is None
