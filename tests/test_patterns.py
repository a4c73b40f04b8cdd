"""Every regular expression of the package takes linear time on texts that are the worst for it."""

import re
import time

import pytest
from patterns import Use, uses, worst_texts

MODULES = sorted({use.module for use in uses()})
# What never meets a longer text: the offline models cut a message before they read it (`OfflineModel.longest`), and the
# storyteller reads an intent from 600 characters without two blanks side by side.
LONGEST = {
    "questbook.graphs.offline.storyteller": 2_000,
    "questbook.graphs.offline": 12_000,
}
INTENT = "questbook.graphs.offline.storyteller.intent"


def longest(module: str, size: int) -> int:
    return min([size, *(most for name, most in LONGEST.items() if module.startswith(name))])


def slowest(use: Use, size: int, most: int | None = None) -> tuple[float, str]:
    """Return the seconds that the worst text of a size takes, and its beginning."""
    pattern = re.compile(use.pattern, use.flags)
    worst = (0.0, "")
    for text in worst_texts(use.pattern, use.flags, longest(use.module, size))[:most]:
        if use.module == INTENT:
            text = " ".join(text.split())[:600]
        started = time.process_time()
        if use.at_each_place:
            for _ in pattern.finditer(text):
                pass
        else:
            pattern.match(text)
            pattern.fullmatch(text)
        worst = max(worst, (time.process_time() - started, text[:60]))
        if worst[0] > 0.25:
            break
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_no_expression_takes_quadratic_time(module):
    for use in uses():
        if use.module == module:
            seconds, text = slowest(use, 20_000, 12 if "storyteller" in module else None)
            assert seconds < 0.25, f"{use} on {text!r}"


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_every_expression_reads_a_megabyte_of_its_worst(module):
    for use in uses():
        if use.module == module:
            seconds, text = slowest(use, 1_000_000, 12)
            assert seconds < 8, f"{use} on {text!r}"


def test_the_expressions_are_all_there():
    assert len(uses()) > 150
    assert {"questbook.memory.timeline.privacy", "questbook.memory.lore.html_text", INTENT} <= set(MODULES)


@pytest.mark.parametrize("pattern", [r"“[^”]*”"])
def test_an_expression_that_takes_longer_is_noticed(pattern):
    assert slowest(Use("", 0, pattern, 0, at_each_place=True), 30_000)[0] > 0.25
