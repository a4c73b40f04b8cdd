"""What is forgotten: forty facts of a campaign, asked for again after 1 to 5,000 turns.

    python benchmarks/forgetting.py                    campaigns of 60, 300, 1,000 and 5,000 turns (up to an hour)
    python benchmarks/forgetting.py --turns 60,300     only these (a few minutes)
    python benchmarks/forgetting.py --misses           name each question whose fact was not in the prompt

The dungeon master plays invented campaigns as the terminal runs it (`questbook.graphs.local.game`: SQLite
checkpoints, FaissStore with the default embedder, default settings, all nodes), answered by a model of tables that
notes what it tells as a good model would (`forgetting_campaign.py`). Of the forty facts some change later, some are
only claimed by the player, some are secret; each is of a person with another name that people call them by, half are
planted at once, half all over the campaign. One future is played and abandoned, and another campaign of the same
player's in the same store; what was told there must not be found here. After 1, 10, 60, 300, 1,000 and 5,000 turns
each fact is asked for in three wordings, on the game's own nodes, without a trace in the campaign
(`forgetting_probe.py`).

A fact counts as in the prompt if its value stands among the turns word for word or the recalled memories; the summary
and the quest's page do not count. A value counts as outdated if a fact in the prompt tells it, or if it stands there
without the one that took its place. Baselines get the same words and, the summary, the same sentences; secrets are left
out for them, since nobody notes them. Each figure is one line `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]
warnings.filterwarnings("ignore", category=DeprecationWarning)

from cost import Turn, measured  # noqa: E402
from forgetting_baselines import BASELINES, Transcript  # noqa: E402
from forgetting_campaign import Campaign, Planted  # noqa: E402
from forgetting_probe import probe, state_of  # noqa: E402
from forgetting_report import DISTANCES, SUMMARY, Asked, Played, report, report_cost  # noqa: E402
from peers import PEERS, peer  # noqa: E402
from tables import Tables  # noqa: E402

import questbook.graphs.models.chat_models  # noqa: E402
from questbook.graphs.dungeon_master.context import Context  # noqa: E402
from questbook.graphs.local.file_home import FileHome  # noqa: E402
from questbook.graphs.local.game import Game, open_game  # noqa: E402
from questbook.memory.timeline.namespaces import campaign_namespace  # noqa: E402
from questbook.memory.timeline.timeline import visible_filters  # noqa: E402

ASTRAY = 15
"""First of the turns of which another future is played and abandoned."""
COSTLY = ("full history", "trim_messages", "SummarizationMiddleware", "OpenGPTs' shape")


async def send(game: Game, text: str) -> None:
    async for _ in game.send(text):
        pass


async def play(turns: int, seed: int, place: FileHome, facts: int = 40) -> Played:
    """Play a campaign, ask on the way, and look into the store at its end."""
    tale = Campaign(turns, seed, facts)
    model = Tables(tale=tale)
    questbook.graphs.models.chat_models.load_chat_model = lambda *_, **__: model  # type: ignore[assignment]
    await elsewhere(model, tale, place)
    due: dict[int, list[tuple[Planted, int]]] = defaultdict(list)
    for fact in tale.facts_planted:
        for distance in DISTANCES:
            if distance <= turns and fact.turn + distance - 1 <= tale.turns:
                due[fact.turn + distance - 1].append((fact, distance))
    said, costs, asked, unheard = Transcript(), list[Turn](), list[Asked](), list[bool]()
    async with open_game(Context(model="tables", user="u", campaign="c", seed=1), place) as game:
        for turn in range(1, tale.turns + 1):
            if turn in range(ASTRAY, ASTRAY + len(tale.elsewhere)):
                await abandoned(game, model, turn, tale)
                costs.append(costs[-1])
            else:
                one = await measured(model, lambda text: send(game, text), turn, place.checkpoints, place.memory)
                costs.append(one)
            said.add(tale.player(turn), tale.reply(turn))
            if due[turn] or turn == tale.turns:
                values = await state_of(game)
                for fact, distance in due[turn]:
                    asked += await ask(game, values, said, fact, distance)
            if turn in (60, tale.turns):
                unheard += [value.casefold() in _all(await probe(game, values, asks)) for value, asks in tale.unheard]
            if turn % 500 == 0:
                print(f"#   turn {turn:,}", file=sys.stderr, flush=True)
        values = await state_of(game)
        if values["turn"] != tale.turns or values["noted_through"] != tale.turns:
            raise SystemExit(f"The game did not get through its {tale.turns} turns: {values['notices']}")
        written = await stored(game, values, tale)
    odd = [f"turn {n['turn']}: {n['text']}" for n in values["notices"] if n["turn"] > 1 and "dropped" not in n["text"]]
    return Played(tale, costs, asked, unheard, written, odd)


async def elsewhere(model: Tables, tale: Campaign, place: FileHome) -> None:
    """Play another campaign of the same player's, that tells what the first must not know."""
    async with open_game(Context(model="tables", user="u", campaign="other", seed=1), place) as game:
        for turn in range(1, len(tale.elsewhere) + 2):
            model.turn[0] = turn
            tale.astray = tale.elsewhere[turn - 2] if turn > 1 else None
            await send(game, tale.player(turn))
    tale.astray = None


async def abandoned(game: Game, model: Tables, turn: int, tale: Campaign) -> None:
    """Play a turn that tells what must not be known, and then another in its place."""
    model.turn[0], tale.astray = turn, tale.elsewhere[turn - ASTRAY]
    await send(game, f"I go astray, and {tale.player(turn)}")
    tale.astray = None
    async for _ in game.edit(tale.player(turn)):
        pass


async def ask(game: Game, values: dict[str, Any], said: Transcript, fact: Planted, distance: int) -> list[Asked]:
    """Ask for a fact in each of its wordings."""
    value, outdated = fact.value.casefold(), fact.outdated.casefold()
    others = {} if fact.sort == "secret" else {one.name: "\n".join(one.shown(said)) for one in BASELINES}
    answers = []
    for question in fact.probes:
        seen = await probe(game, values, question)
        if fact.sort != "secret":
            others[SUMMARY] = f"{seen.conversation}\n{seen.summary}"
        figures: dict[str, bool | None] = {
            "found": value in seen.found or value in seen.conversation,
            "ours": value in seen.prompt,
            "outdated": _stale(outdated, value, seen.prompt) or outdated in seen.facts if outdated else None,
            "leaked": value in seen.player if fact.sort == "secret" else None,
            "believed": value in seen.facts if fact.sort == "claimed" else None,
        }
        for name, shown in others.items():
            figures[name] = value in shown
            figures[f"outdated, {name}"] = _stale(outdated, value, shown) if outdated else None
        answers.append(Asked(fact, distance, question, figures))
    return answers


def _stale(outdated: str, value: str, shown: str) -> bool:
    return bool(outdated) and outdated in shown and value not in shown


def _all(seen: Any) -> str:
    return "\n".join(seen)


async def stored(game: Game, values: dict[str, Any], tale: Campaign) -> list[bool]:
    """Say of each planted fact whether the store has it as what it is."""
    graph, context = await game.load(), game.context
    space = campaign_namespace(context.user, context.campaign, "facts")
    items = [
        i
        for only in visible_filters(values["timeline"])
        for i in await graph.store.asearch(space, filter=only, limit=10**6)
    ]
    kinds = {str(item.value["value"]).casefold(): item.value["kind"] for item in items}
    right = {"claimed": ("rumour",), "secret": ("secret",)}
    return [
        kinds.get(fact.value.casefold()) in right.get(fact.sort, ("trait", "event", "promise"))
        and (not fact.outdated or fact.outdated.casefold() in kinds)
        for fact in tale.facts_planted
    ]


async def run(arguments: argparse.Namespace) -> tuple[dict[int, Played], dict[str, list[Turn]]]:
    played, others = dict[int, Played](), dict[str, list[Turn]]()
    for seed, turns in enumerate(arguments.turns, arguments.seed):
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            place, begun = FileHome(Path(directory) / "home"), time.perf_counter()
            place.locks.mkdir(parents=True)
            game = played[turns] = await play(turns, seed, place)
        print(f"# {turns:,} turns, {len(game.asked)} questions: {time.perf_counter() - begun:.0f} s", flush=True)
        for text in game.notices:
            print(f"# notice, {text}")
        for one in game.asked if arguments.misses else []:
            if not one.figures["ours"] or one.figures["outdated"] or one.figures["believed"] or one.figures["leaked"]:
                said = {name: value for name, value in one.figures.items() if name in ("found", "ours", "outdated")}
                print(f"# missed: {one.fact.sort}, {one.distance:,} turns, {one.question!r} ({one.fact.value}): {said}")
    for name in COSTLY if arguments.peer_turns else ():
        with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
            model = Tables(tale=Campaign(max(arguments.turns), arguments.seed))
            others[name] = await peer(PEERS[name], model, arguments.peer_turns, Path(directory) / "home")
    return played, others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--turns", default="60,300,1000,5000", type=lambda text: [int(part) for part in text.split(",")],
        help="lengths of the campaigns (default: 60,300,1000,5000)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of the first campaign (default: 1)")
    parser.add_argument("--peer-turns", type=int, default=300, help="turns of others, for their cost (default: 300)")
    parser.add_argument("--misses", action="store_true", help="name each question that went wrong")
    parser.add_argument("--directory", help="where to put the databases meanwhile (default: the system's)")
    arguments = parser.parse_args()
    played, others = asyncio.run(run(arguments))
    lines = report(played) + report_cost(played, others)
    print()
    print("\n".join(lines))


if __name__ == "__main__":
    main()
