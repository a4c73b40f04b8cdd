"""Whose memory it is comes from the log-in or the app, and is never guessed."""

import pytest
from desk import TicketNotebook
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph_sdk import Auth

from questbook import History, TeamState, as_node, build_agent
from questbook.graphs.companion.graph import build_graph as build_companion
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph as build_dungeon_master
from questbook.graphs.errors import InputError, SettingsError
from questbook.graphs.local.game import open_game
from questbook.graphs.turn.scope import user_of, with_user

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
    inner = build_companion().compile()

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
