"""Reflection in the background: a server runs it on a thread of its own; without one it ends the turn."""

from fact_play import notices
from reflecting import DEBT, INSIGHT, MILL, Client, ask, conclude, insights, tell
from scripted import call, say

from questbook.graphs.reflect import trigger as reflecting
from questbook.graphs.reflect.graph import build_graph as build_reflection


async def test_without_a_server_the_background_is_the_end_of_the_turn_and_says_so(new_mira):
    game = await new_mira(reflection_importance=6, reflection="background")
    game.model.queue("question", ask())
    game.model.queue("conclude", conclude((INSIGHT, [DEBT["text"]])))
    await tell(game, "I ask.", DEBT)
    assert len(await insights(game)) == 1
    assert "this is no LangGraph Server" in notices(game)


async def test_on_a_server_one_run_at_a_time_reflects_on_a_thread_of_its_own(new_game, monkeypatch):
    game, client = new_game(reflection_importance=6, reflection="background"), Client()
    monkeypatch.setattr(reflecting, "get_client", lambda: client)
    game.config["configurable"]["graph_id"] = "dungeon_master"  # as the server does
    await game.begin()
    await tell(game, "I ask.", DEBT)
    await tell(game, "I wait.")
    [(thread, name, fields)] = client.made
    assert thread != game.config["configurable"]["thread_id"]
    assert (name, fields["input"]["turn"], fields["input"]["through"]) == ("reflect", 2, 2)
    assert (fields["after_seconds"], fields["multitask_strategy"]) == (5, "enqueue")
    assert "reflection_importance" in fields["context"]
    assert "reflection" not in fields["context"], "the setting of the game alone"
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


async def test_what_the_background_has_to_say_is_told_by_the_next_turn_and_once(new_game, monkeypatch):
    game, client = new_game(reflection_importance=6, reflection="background"), Client()
    monkeypatch.setattr(reflecting, "get_client", lambda: client)
    game.config["configurable"]["graph_id"] = "dungeon_master"
    await game.begin()
    await tell(game, "I ask.", DEBT)

    async def run():
        """Do what the server does with the run that waits."""
        own = {"configurable": {"thread_id": client.made[-1][0]}}
        app = build_reflection().compile(checkpointer=game.saver, store=game.store)
        fields = client.waiting.pop()
        await app.ainvoke(fields["input"], own, context=fields["context"], durability="sync")
        client.thread["values"] = app.get_state(own).values

    game.model.queue("question", ConnectionError("503"), ask())
    await run()
    assert notices(game) == ""
    await tell(game, "I wait.")
    assert notices(game).count("The reflection was not finished; nothing is lost") == 1
    assert len(client.made) == 2, "it is taken up again"
    game.model.queue("conclude", lambda m: say("", call("Reflection", insights=[{"text": "Thin air.", "cites": [99]}])))
    await run()
    for words in ("I wait.", "I go on."):
        await tell(game, words)
        assert notices(game).count("was not finished") == 1
        assert notices(game).count("cited nothing") == 1
    assert (len(client.made), game.values["unreflected"]) == (2, 0)
    await tell(game, "I ask Oda.", MILL)
    assert len(client.made) == 3, "enough has come together again"
    assert notices(game).count("cited nothing") == 1
    client.waiting.clear()
    client.thread = {"status": "error", "values": None}  # it broke off, and wrote nothing
    await tell(game, "I wait.")
    assert notices(game).count("broke off") == 1
