"""`questbook doctor`: compares checkpoints and memories, and rebuilds what can be rebuilt."""

import argparse
import asyncio

from questbook.graphs.interface.text import number_of, one_line
from questbook.graphs.local.databases import minilm_hint
from questbook.graphs.local.doctor import mend as mend_campaign
from questbook.graphs.local.doctor import problem_of, unreachable_turns
from questbook.graphs.local.game import context_class, open_game
from questbook.graphs.local.home import Home, hold_campaign
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import last_of_threads, machine_of
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.screen import say
from questbook.memory.timeline.namespaces import campaign_namespace, unescape_label

_HEAD_LABELS = 3  # user, campaign, "head"
_CAUSE = (
    "Versions before 0.2.1 lost turns where two programs (terminal, page, Studio) used one data directory at once. "
    "Turns that both files lost are not seen here. Keep a copy of both files before you mend."
)


async def doctor(context: Settings, flags: argparse.Namespace) -> bool:
    """Examine both databases, compare them for every campaign and companion of a user, and print what is wrong.

    With the flag `mend`, rebuild what is missing. Return whether nothing is wrong, or nothing any more.
    """
    home = await asyncio.to_thread(find_home)
    damage = await home.find_damage()
    for sentence in damage:
        say(one_line(sentence, 600))
    if damage and "damaged" in damage[-1]:
        say(_CAUSE)
        return False
    campaigns, is_sound = await _contexts(context, home), True
    for machine, settings in campaigns:
        is_sound &= await _examine(settings, home, machine, mend=flags.mend)
    count = number_of(len(campaigns), "campaign")
    say(f"Checkpoints and memories agree ({count} of {one_line(context.user, 60)})." if is_sound else _CAUSE)
    if hint := await minilm_hint(home, context.embeddings):
        say(hint)
    return is_sound


async def _contexts(context: Settings, home: Home) -> list[tuple[str, Settings]]:
    """Return graph and settings of each campaign and companion, as checkpoints and memories know them."""
    campaigns: set[tuple[str, str]] = set()
    async with home.open_checkpointer() as checkpointer:
        async for saved in last_of_threads(checkpointer, context.user):
            if saved.machine and saved.campaign and saved.on_own_thread:
                campaigns.add((saved.machine, saved.campaign))
    for path in await home.list_paths(campaign_namespace(context.user, "")[0], "head"):
        head = await home.read_item(path, "head") or {}
        if (machine := machine_of(head)) and len(path) == _HEAD_LABELS:
            campaigns.add((machine, unescape_label(path[1])))
    contexts = []
    for machine, campaign in sorted(campaigns):
        settings = await asyncio.to_thread(context_class, machine)
        contexts.append((machine, settings.of(None, user=context.user, campaign=campaign)))
    return contexts


async def _examine(context: Settings, home: Home, machine: str, *, mend: bool) -> bool:
    name = f"Campaign {one_line(context.campaign, 60)!r}"
    async with open_game(context, home, machine) as game:
        problem, unreachable = await problem_of(game), await unreachable_turns(game)
        for found in filter(None, (problem, unreachable)):
            say(f"{name}: {found}")
        if not problem:
            return not unreachable
        if not mend or "--mend" not in problem:
            return False
        async with hold_campaign(home, context.user, context.campaign):
            say(f"{name}: {await mend_campaign(game)}")
        return not (await problem_of(game) or unreachable)
