"""Turns of a game whose model notes changes of the quest's page."""

from scripted import call, say


async def turn(game, words, **noted):
    game.model.queue("quest", say(f"So be it: {words}."))
    game.model.queue("update", say("", call("StateNotebook", **noted)) if noted else say("no change"))
    return await game.play(words)
