"""Turns of a game whose model hands over facts, and what the store holds of them."""

from scripted import call, say

from questbook.graphs.dungeon_master.context import Context
from questbook.memory.facts.validity import keep_valid
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace

FACTS = campaign_namespace("adventurer", "default", "facts")
PLAYER = player_namespace("adventurer", "facts")
CONTEXT = Context(model="scripted", user="adventurer", seed=7)


def facts(*given):
    return say("", call("Facts", facts=list(given)))


async def play(game, words, *given, reply="The wind turns. What do you do?", **answers):
    """Play a turn whose reply and facts are given; of other jobs of the model, such as "conclude", its answers."""
    if given:
        game.model.queue("update", facts(*given))
    return await game.play(words, quest=say(reply), **answers)


async def stored(game, place=FACTS):
    return {item.key: item.value for item in await game.store.asearch(place, limit=1000)}


async def known(game):
    timeline = [tuple(segment) for segment in game.values["timeline"]]
    everything = await game.store.asearch(FACTS, limit=1000)
    found = [i for i in everything if any(b == i.value["branch"] and i.value["turn"] <= t for b, t in timeline)]
    return sorted(item.value["text"] for item in await keep_valid(game.store, found, timeline=timeline))


def notices(game):
    return " | ".join(f"{entry['text']} {entry.get('detail', '')}" for entry in game.values["notices"])
