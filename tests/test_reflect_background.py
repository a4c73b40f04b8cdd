"""Reflection in the background: a server runs it on a thread of its own; without one it ends the turn."""

from fact_play import notices
from reflecting import DEBT, INSIGHT, ask, conclude, insights, tell

from graphs.dungeon_master import reflect as reflecting
from graphs.reflect.graph import build_graph as build_reflection


async def test_without_a_server_the_background_is_the_end_of_the_turn_and_says_so(new_game):
    game = new_game(reflection_importance=6, reflection="background")
    await game.begin()
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    await tell(game, "I ask.", DEBT)
    assert len(await insights(game)) == 1
    assert "this is no LangGraph Server" in notices(game)


class Client:
    """Stands for LangGraph Server: keeps what was asked of it."""

    def __init__(self):
        self.threads = self.runs = self
        self.made, self.waiting = [], []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None

    async def create(self, *args, **fields):
        if args:
            self.made.append((*args, fields))
            self.waiting.append(fields)

    async def list(self, thread, *, status, limit):
        return self.waiting[:limit] if status == "pending" else []


async def test_on_a_server_one_run_at_a_time_reflects_on_a_thread_of_its_own(new_game, monkeypatch):
    game, client = new_game(reflection_importance=6, reflection="background"), Client()
    monkeypatch.setattr(reflecting, "get_client", lambda: client)
    game.config["configurable"]["graph_id"] = "dungeon_master"  # as the server does
    await game.begin()
    await tell(game, "I ask.", DEBT)
    await tell(game, "I wait.")
    [(thread, name, fields)] = client.made
    assert thread != game.config["configurable"]["thread_id"]
    assert (name, fields["input"]["turn"], fields["after_seconds"] > 0) == ("reflect", 2, True)
    assert not game.model.asked("question")
    assert game.values["unreflected"] == 6, "not done before it is written"

    # What the server does with it.
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    app = build_reflection().compile(checkpointer=game.saver, store=game.store)
    own = {"configurable": {"thread_id": thread}}
    await app.ainvoke(fields["input"], own, context=fields["context"], durability="sync")
    client.waiting.clear()
    assert [v["text"] for v in (await insights(game)).values()] == [INSIGHT]
    kept = [repr(saved.checkpoint["channel_values"]) for saved in game.saver.list(own)]
    assert kept
    assert not any("Goran" in one for one in kept), "no checkpoint of it holds a memory"
    await tell(game, "I wait again.")
    assert (len(client.made), game.values["unreflected"]) == (1, 0)


async def test_a_server_that_refuses_has_it_done_at_the_end_of_the_turn(new_game, monkeypatch):
    game = new_game(reflection_importance=6, reflection="background")

    def broken():
        raise ConnectionError("no server")

    monkeypatch.setattr(reflecting, "get_client", broken)
    game.config["configurable"]["graph_id"] = "dungeon_master"
    await game.begin()
    await tell(game, "I ask.", DEBT)
    assert len(game.model.asked("question")) == 1
    assert "no server" in notices(game)
