"""Every regular expression of the package takes linear time on texts that are the worst for it."""

import re
from functools import partial
from pathlib import Path

import pytest
from patterns import Use, uses, worst_texts
from timing import cpu_seconds

import questbook
from questbook.memory.recall import intents


def modules_with_expressions() -> list[str]:
    """Name the modules that have expressions, by their text: to load them all takes each collecting process seconds."""
    package = Path(questbook.__file__).parent
    paths = {*package.rglob("*.py"), *package.glob("*/**/*.py")}  # folders may be links
    names = {
        ".".join(("questbook", *path.relative_to(package).with_suffix("").parts)).removesuffix(".__init__")
        for path in paths
        if re.search(r"\bre\.[a-z]", path.read_text("utf-8"))
    }
    return sorted(names)


MODULES = modules_with_expressions()
# What never meets a longer text, because it is cut before: the offline models cut a message before they read it
# (`OfflineModel.longest`), the storyteller reads an intent from 600 characters without two blanks side by side, and
# the other modules have a `_LONGEST`.
LONGEST = {
    "questbook.graphs.offline.storyteller": 2_000,
    "questbook.graphs.offline": 12_000,
    "questbook.memory.recall.intents": 2_000,  # `_LONGEST` of both modules; but for what `off_record` reads
    "questbook.memory.facts.attributes": 1_000,
}
WHOLE = {pattern.pattern for pattern in (intents.QUOTATION, intents._ASKS, intents._NEXT, intents._SENTENCE)}
INTENT = "questbook.graphs.offline.storyteller.intent"


def longest(use: Use, size: int) -> int:
    if use.pattern in WHOLE:
        return size
    return min([size, *(most for name, most in LONGEST.items() if use.module.startswith(name))])


def slowest(use: Use, size: int, enough: float, most: int | None = None) -> tuple[float, str]:
    """Return the seconds of the worst text of a size, and its beginning; the first that takes too long ends it."""
    pattern = re.compile(use.pattern, use.flags)

    def read(text: str) -> None:
        if use.at_each_place:
            for _ in pattern.finditer(text):
                pass
        else:
            pattern.match(text)
            pattern.fullmatch(text)

    worst = (0.0, "")
    for text in worst_texts(use.pattern, use.flags, longest(use, size))[:most]:
        if use.module == INTENT:
            text = " ".join(text.split())[:600]
        worst = max(worst, (cpu_seconds(partial(read, text), enough), text[:60]))
        if worst[0] >= enough:
            break
    return worst


def slowness() -> float:
    """Return how many times longer an expression takes now than where the limits were set, 1 to 2: machines vary."""
    return min(2.0, max(1.0, cpu_seconds(lambda: re.findall("“[^”]*”", "“" * 6_000), 0.0) / 0.05))


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_no_expression_takes_quadratic_time(module):
    limit = 0.25 * slowness()
    for use in uses():
        if use.module == module:
            seconds, text = slowest(use, 20_000, limit, 12 if "storyteller" in module else None)
            assert seconds < limit, f"{use} on {text!r}"


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_every_expression_reads_a_quarter_of_a_megabyte_of_its_worst(module):
    limit = 2 * slowness()
    for use in uses():
        if use.module == module:
            seconds, text = slowest(use, 250_000, limit, 12)
            assert seconds < limit, f"{use} on {text!r}"


@pytest.mark.slow
def test_the_expressions_are_all_there():
    assert len(uses()) > 150
    assert {"questbook.memory.recall.intents", "questbook.memory.lore.documents", INTENT} <= set(MODULES)
    assert {use.module for use in uses()} <= set(MODULES)


@pytest.mark.parametrize("pattern", [r"“[^”]*”"])
@pytest.mark.slow
def test_an_expression_that_takes_longer_is_noticed(pattern):
    assert slowest(Use("", 0, pattern, 0, at_each_place=True), 20_000, 0.05)[0] > 0.05
