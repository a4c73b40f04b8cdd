"""Reports of what was forgotten: tables, and one line for each figure."""

from __future__ import annotations

from typing import NamedTuple

from cost import CITED, Turn, cost
from forgetting_baselines import BASELINES, Transcript
from forgetting_campaign import Campaign, Planted
from forgetting_probe import FIRST

DISTANCES = (1, 10, 60, 300, 1000, 5000)
SUMMARY = "buffer and summary"
"""The game's own conversation and summary, without recall."""


class Asked(NamedTuple):
    """What came of one question: each figure 0 or 1, None where it does not apply."""

    fact: Planted
    distance: int
    question: str
    figures: dict[str, bool | None]


class Played(NamedTuple):
    """A campaign that was played, what was asked in it, and what was found in the store after it."""

    campaign: Campaign
    turns: list[Turn]
    asked: list[Asked]
    unheard: list[bool]
    written: list[bool]
    notices: list[str]


def share(asked: list[Asked], figure: str) -> float | None:
    counted = [one.figures[figure] for one in asked if one.figures.get(figure) is not None]
    return 100 * sum(map(bool, counted)) / len(counted) if counted else None


def shown(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.1f}"


def report(played: dict[int, Played]) -> list[str]:
    """Print the tables; return the lines of figures."""
    every = [one for game in played.values() for one in game.asked]
    names = [one.name for one in BASELINES] + [SUMMARY]
    lines = []
    print(f"\n| distance | questions | found in the first {FIRST} | **in the prompt** | {' | '.join(names)} |")
    print("|---" * (len(names) + 4) + "|")
    for distance in (d for d in DISTANCES if any(one.distance == d for one in every)):
        at = [one for one in every if one.distance == distance]
        figures = [shown(share(at, name)) for name in ("found", "ours", *names)]
        print(f"| {distance:,} | {len(at)} | {' | '.join(figures)} |")
        lines += [f"forgetting_in_prompt_distance_{distance}: {figures[1]} %"]
        lines += [f"forgetting_found_distance_{distance}: {figures[0]} %"]
    print(
        "\n| sort of fact | written | found | in the prompt | outdated as current | claims as facts | secrets in view |"
    )
    print("|---" * 7 + "|")
    for sort in ("plain", "updated", "claimed", "secret"):
        at = [one for one in every if one.fact.sort == sort]
        wrote = [
            done
            for game in played.values()
            for fact, done in zip(game.campaign.facts_planted, game.written, strict=True)
            if fact.sort == sort
        ]
        figures = [shown(share(at, name)) for name in ("found", "ours", "outdated", "believed", "leaked")]
        print(f"| {sort} | {sum(wrote)} of {len(wrote)} | {' | '.join(figures)} |")
        lines.append(f"forgetting_written_{sort}: {100 * sum(wrote) / len(wrote):.1f} %")
    for name, figure in (
        ("outdated_as_current", "outdated"),
        ("claims_as_facts", "believed"),
        ("secrets_in_view", "leaked"),
    ):
        lines.append(f"forgetting_{name}: {sum(bool(one.figures[figure]) for one in every)} questions")
    for name in names:
        old = [one for one in every if one.figures.get(f"outdated, {name}")]
        lines.append(f"forgetting_outdated_as_current_{_key(name)}: {len(old)} questions")
    wrong = [one for game in played.values() for one in game.unheard]
    lines.append(f"forgetting_never_planted_and_found: {sum(wrong)} of {len(wrong)} questions")
    return lines


def report_cost(played: dict[int, Played], others: dict[str, list[Turn]]) -> list[str]:
    """Print what turns cost early and late."""
    lines = []
    print("\n| | turn | CPU ms | wall ms | checkpoint KB | store KB | prompt tokens | model calls |")
    print("|---" * 8 + "|")
    ours = {f"ours, {turns:,} turns": game.turns for turns, game in played.items()}
    for name, turns in (ours | others).items():
        first = min(100, len(turns))
        for last in sorted({first, len(turns)}):
            c = cost(turns, last, min(50, first // 2))
            told = f"{c.ms:.1f} | {c.wall:.1f} | {c.kb:.1f} | {c.store_kb:.1f} | {c.tokens:,.0f} | {c.calls:.2f}"
            print(f"| {name} | {last:,} | {told} |")
    longest = max(played)
    turns = played[longest].turns
    first, last = cost(turns, min(100, len(turns)), 50), cost(turns, len(turns), 50)
    for field, unit in (("ms", "ms"), ("kb", "KB"), ("store_kb", "KB"), ("tokens", "tokens"), ("calls", "calls")):
        lines.append(f"forgetting_{field}_turn_{longest}: {getattr(last, field):.2f} {unit}")
        lines.append(f"forgetting_{field}_growth: {getattr(last, field) / getattr(first, field):.3f} times")
    said = Transcript()
    for turn in range(1, played[longest].campaign.turns + 1):
        said.add(played[longest].campaign.player(turn), played[longest].campaign.reply(turn))
    lines += [f"forgetting_tokens_turn_{longest}_{_key(one.name)}: {one.tokens(said)} tokens" for one in BASELINES]
    print("\nModel calls of others, cited from their code and documentation, not measured here:")
    for name, calls in CITED:
        print(f"| {name} | {calls} |")
    return lines


def _key(name: str) -> str:
    return name.replace("'", "").replace(",", "").replace(" ", "_")
