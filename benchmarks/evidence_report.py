"""Tables of figures by memory, and the same as lines."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One value, such as that of one question.

    Attributes:
        title: Data set and embedder.
        system: The memory.
        measure: What was measured; shares lie between 0 and 1.
        kind: Ability or kind of the question; "" if there are no kinds.
        value: The value.
        asked: Conversation and question; "" if there is none.
    """

    title: str
    system: str
    measure: str
    kind: str
    value: float
    asked: str = ""


def report(rows: Sequence[Row]) -> None:
    """Print a table for each data set and measure, then each figure as a line."""
    lines = list[str]()
    for title in dict.fromkeys(row.title for row in rows):
        measures = dict.fromkeys(row.measure for row in rows if row.title == title)
        for measure in sorted(measures, key=lambda one: (one.split()[0], len(one), one)):
            lines += _table(title, measure, [row for row in rows if (row.title, row.measure) == (title, measure)])
    print()
    print("\n".join(lines))


def _table(title: str, measure: str, rows: Sequence[Row]) -> list[str]:
    """Print the mean by memory and kind; return its lines."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.system][row.kind].append(row.value)
    shares = measure.startswith(("evidence", "filled", "recall"))
    kinds = sorted({row.kind for row in rows} - {""})
    together = not kinds or not measure.startswith("filled")
    print(f"\n{title}: {measure}{', %' if shares else ''}")
    if kinds:
        print(f"{'':<34}{'all' if together else '':>8}   {', '.join(kinds)}")
    lines = []
    for system, by in found.items():
        figures = {"": [value for values in by.values() for value in values]} if together else {}
        figures |= {kind: by[kind] for kind in kinds if by[kind]}
        means = {kind: (100 if shares else 1) * statistics.mean(values) for kind, values in figures.items()}
        first = f"{means['']:>8.1f}" if together else f"{'':>8}"
        print(f"{system:<34}{first}   " + " / ".join(f"{means[kind]:.1f}" if kind in means else "-" for kind in kinds))
        unit = "%" if shares else ("ms" if measure.endswith("ms") else "bytes" if "bytes" in measure else "of 10")
        for kind, value in means.items():
            name = ", ".join(filter(None, (title, system, measure.removesuffix(", ms"), kind)))
            lines.append(f"{name}: {value:.1f} {unit}")
    return lines
