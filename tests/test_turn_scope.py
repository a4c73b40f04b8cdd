"""Whose memory it is comes from the log-in or the app, and is never guessed."""

from types import SimpleNamespace

import pytest
from desk import TicketNotebook
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.memory import InMemoryStore
from langgraph_sdk import Auth

from questbook import History, TeamState, as_node, build_agent
from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph as build_dungeon_master
from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.local.game import open_game
from questbook.graphs.settings import Settings
from questbook.graphs.turn.scope import settings_of, user_of, visible_timeline, with_user
from questbook.graphs.turn.state import TurnState

HELLO = {"messages": [("user", "Hello.")]}
BUILDERS = {
    "dungeon_master": build_dungeon_master,
    "companion": build_companion,
    "agent": lambda: build_agent([TicketNotebook]),
}


class LoggedIn(dict):
    """A user as LangGraph Server has one: attributes and keys."""

    is_authenticated = True
    permissions = ()

    @property
    def identity(self):
        return self["identity"]

    display_name = identity


ANN = LoggedIn(identity="ann")


def config(thread="1", **configurable):
    return {"configurable": {"thread_id": thread, **configurable}}


async def users_in(app):
    return {namespace[0] for namespace in await app.store.alist_namespaces()}


@pytest.fixture
def nobody(monkeypatch):
    monkeypatch.delenv("QUESTBOOK_USER")


@pytest.fixture(params=BUILDERS)
def app(request, nobody):
    return BUILDERS[request.param]().compile(checkpointer=InMemorySaver(), store=InMemoryStore())


async def test_a_run_that_names_nobody_is_refused_and_nothing_is_kept(app):
    for context in (None, {}, {"user": ""}):
        with pytest.raises(
            SettingsError, match=r'No user is named.*context=\{"user": "ann"\}.*fork.*Middleware\(user=.*QUESTBOOK_USER'
        ):
            await app.ainvoke(HELLO, config(), context=context)
    with pytest.raises(SettingsError, match="No user"):
        app.invoke(HELLO, config())
    assert await app.store.alist_namespaces() == []
    assert not app.get_state(config()).values.get("turn")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("configurable", "context"),
    [
        ({}, {"user": "ann"}), ({"user": "ann"}, None), ({"user": "ann"}, {"user": "ann"}),
        ({"langgraph_auth_user": ANN}, None), ({"langgraph_auth_user": ANN, "user": "ann"}, {"user": "ann"}),
        ({"langgraph_auth_user_id": "ann"}, None),
    ],
)  # fmt: skip
async def test_the_log_in_the_context_and_configurable_are_honoured(app, configurable, context, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_USER", "adventurer")  # comes last
    values = await app.ainvoke(HELLO, config(**configurable), context=context)
    assert values["campaign"][0] == "ann"
    assert await users_in(app) == {"ann"}
    app.invoke(HELLO, config("2", **configurable), context=context)
    assert await users_in(app) == {"ann"}


@pytest.mark.parametrize(
    ("configurable", "context", "message"),
    [
        ({"user": "bob"}, {"user": "ann"}, "'ann' by the context, 'bob' by configurable"),
        ({"langgraph_auth_user": ANN}, {"user": "bob"}, "'ann' by the log-in, 'bob' by the"),
        ({"langgraph_auth_user": ANN, "user": "bob"}, None, "by the log-in, 'bob' by configurable"),
        ({"langgraph_auth_user": ANN, "user": "bob"}, {"user": "ann"}, "'ann' by the log-in, 'bob' by configurable"),
        ({"user": 5}, None, "The user of configurable: got 5; expected a text"),
        ({"user": "a" * 201}, None, "expected a text of 1 to 200"),
    ],
)
async def test_two_that_differ_and_what_is_no_name_are_refused(app, configurable, context, message):
    with pytest.raises(SettingsError, match=message):
        await app.ainvoke(HELLO, config(**configurable), context=context)
    assert await app.store.alist_namespaces() == []


async def test_an_empty_identity_is_no_log_in(app):
    """The development server without a log-in has a user whose identity is empty."""
    nobody = LoggedIn(identity="")
    with pytest.raises(SettingsError, match="No user is named"):
        await app.ainvoke(HELLO, config(langgraph_auth_user=nobody, langgraph_auth_user_id=""))
    values = await app.ainvoke(HELLO, config(langgraph_auth_user=nobody, user="ann"))
    assert values["campaign"][0] == "ann"


async def test_a_graph_inside_another_has_the_same_user(nobody):
    inner = build_companion().compile(checkpointer=True)

    async def talk(state: MessagesState) -> MessagesState:
        values = await inner.ainvoke({"messages": state["messages"][-1:]})
        return {"messages": values["messages"][-1:]}

    builder = StateGraph(MessagesState).add_node(talk).add_edge(START, "talk").add_edge("talk", END)
    app = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    await app.ainvoke(HELLO, config(langgraph_auth_user=ANN))
    await app.ainvoke(HELLO, config("2", user="ann"))
    assert await users_in(app) == {"ann"}


async def test_settings_of_another_graph_name_the_user_only_if_the_caller_did(monkeypatch):
    monkeypatch.setenv("QUESTBOOK_USER", "adventurer")
    agent = build_agent([TicketNotebook]).context_schema
    assert with_user(agent.of(Context()), {"user": "ann"}).user == "ann"
    with pytest.raises(SettingsError, match="Two users"):
        with_user(agent.of(Context(user="bob")), {"user": "ann"})
    assert with_user(Context()).user == "adventurer"


async def test_history_and_an_embedded_game_name_the_user_or_refuse(nobody, game):
    with pytest.raises(SettingsError, match="No user"):
        History(game.app, game.config, Context())
    assert History(game.app, config(user="ann"), Context()).context.user == "ann"
    with pytest.raises(SettingsError, match="No user"):
        async with open_game(Context()):
            pass


def test_an_option_of_a_middleware_counts_as_said():
    assert user_of({}, "ann") == "ann"
    assert user_of({"langgraph_auth_user": Auth.types.MinimalUserDict(identity="ann")}, "") == "ann"
    with pytest.raises(SettingsError, match="Two users"):
        user_of({"user": "bob"}, "ann")


async def test_what_a_team_knows_of_ann_is_not_answered_to_bob(nobody):
    sales = as_node(build_agent([TicketNotebook], name="sales").compile())
    team = StateGraph(TeamState).add_node("sales", sales).add_edge(START, "sales")
    app = team.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    await app.ainvoke(HELLO, config(), context={"user": "ann"})
    with pytest.raises(InputError, match="of 'ann', but the settings name"):
        await app.ainvoke(HELLO, config(), context={"user": "bob"})


class Identity:
    identity = "ann"


@pytest.mark.parametrize(("configurable", "said", "otherwise", "user"), [
    ({"user": "ann"}, None, "", "ann"), ({}, "ann", "", "ann"), ({}, None, "ann", "ann"), ({}, "", "ann", "ann"),
    ({"user": ""}, "ann", "", "ann"), ({"user": ""}, None, "ann", "ann"), ({"user": "ann"}, "ann", "bob", "ann"),
    ({"langgraph_auth_user": {"identity": "ann"}}, None, "bob", "ann"),
    ({"langgraph_auth_user": Identity()}, "", "", "ann"), ({"langgraph_auth_user_id": "ann"}, None, "", "ann"),
    ({"langgraph_auth_user": None, "user": "ann"}, None, "", "ann"),
    ({"langgraph_auth_user": {"identity": ""}}, "ann", "", "ann"), ({}, "x" * 200, "", "x" * 200),
])  # fmt: skip
def test_the_user_is_who_logged_in_or_whom_the_caller_names_and_else_the_only_one(configurable, said, otherwise, user):
    assert user_of(configurable, said, otherwise) == user


@pytest.mark.parametrize(("configurable", "said", "problem"), [
    ({"user": "bob"}, "ann", "Two users are named: 'ann' by the context, 'bob' by configurable."),
    ({"user": "bob", "langgraph_auth_user_id": "ann"}, "ann", "Two users are named: 'ann' by the log-in, 'bob' by"),
    ({"langgraph_auth_user_id": "ann"}, "bob", "Two users are named: 'ann' by the log-in, 'bob' by the context."),
    ({"user": 7}, None, "The user of configurable: got 7; expected a text of 1 to 200 characters."),
    ({}, "x" * 201, "The user of the context: got 'xxx"),
    ({"langgraph_auth_user_id": 7}, None, "The user of the log-in: got 7"),
    ({}, None, "No user is named"), ({}, "", "No user is named"),
])  # fmt: skip
def test_a_user_that_is_none_or_two_is_refused_with_who_said_so(configurable, said, problem):
    with pytest.raises(SettingsError) as error:
        user_of(configurable, said)
    assert problem in str(error.value)


def state(campaign=(), turn=0, machine="", new=""):
    begins = SimpleNamespace(new_campaign=lambda thread: new and f"{new} {thread}")
    begins.campaign, begins.turn, begins.machine = campaign, turn, machine
    return begins


@pytest.mark.parametrize(("given", "of", "campaign"), [
    ({}, state(), "default"), ({}, state(new="tale"), "tale t"), ({"campaign": "isle"}, state(new="tale"), "isle"),
    ({}, state(["ann", "cave"], 1), "cave"), ({}, state(["ann", "cave"], 0, "tale"), "cave"),
    ({"campaign": "cave"}, state(["ann", "cave"], 1, new="tale"), "cave"),
    ({}, state(["bob", "cave"]), "default"),  # which only a run's command can have written
    ({"campaign": "isle"}, state(["bob", "cave"]), "isle"), ({}, SimpleNamespace(), "default"),
])  # fmt: skip
def test_a_run_goes_on_with_its_threads_campaign_unless_the_caller_names_it(given, of, campaign):
    settings = settings_of(Settings.of({"user": "ann"} | given), of, "t", {})
    assert (settings.user, settings.campaign) == ("ann", campaign)
    assert settings_of(Settings.of(given), of, "t", {"user": "ann"}).user == "ann"


@pytest.mark.parametrize(("given", "again"), [
    ({"user": "ann", "campaign": "isle"}, "Name 'cave' again, or begin a new thread"),
    ({"user": "bob"}, "Begin a new thread for that one."),
    ({"user": "bob", "campaign": "cave"}, "Begin a new thread for that one."),
])  # fmt: skip
def test_a_thread_is_of_one_user_and_campaign(given, again):
    thread = state(["ann", "cave"], 1)
    with pytest.raises(InputError, match="This thread belongs to campaign 'cave' of 'ann', but the settings") as error:
        settings_of(Settings.of(given), thread, "t", {})
    assert again in str(error.value)


class Users(TurnState):
    SCOPE = "user"


def test_a_scope_decides_with_which_timeline_a_run_looks_into_the_store():
    def run(thread):
        info = ExecutionInfo(checkpoint_id="", checkpoint_ns="", task_id="", thread_id=thread)
        return Runtime(context=Settings.of({"user": "ann", "campaign": "tale"}), execution_info=info)

    at_two = {"turn": 2, "timeline": [("b", 2)]}
    plain = visible_timeline(TurnState(**at_two), run("t"))
    assert (type(plain), plain) == (list, [("b", 2)])
    for thread, values, known in (("t", at_two, "t"), (None, at_two, "b"), (None, {}, "")):
        view = visible_timeline(Users(**values), run(thread))
        assert (list(view), view.thread) == (values.get("timeline", []), known)
        assert (view.heads, view.fallback) == (("ann", "tale", "heads"), (("ann", "tale", "head"), "head"))
    assert visible_timeline(Users(**at_two), Runtime(context=Settings.of({"user": "ann"}))).thread == "b"
