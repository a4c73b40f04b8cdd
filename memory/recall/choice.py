"""What of the order is chosen: no more than fits, of long records the parts that answer, and nothing twice."""

import math
from collections.abc import Callable, Iterable, Sequence

from questbook.memory.recall.intents import asks_for_order, asks_for_summary
from questbook.memory.recall.query import Passage, Query, Recalled, Said, said_in
from questbook.memory.text.passages import Span, cut, lead

_SAME = 0.9  # share of the words of two texts that both have, from which on they say the same
_STANDING_SHARE, _MOST_STANDING = 5, 200  # what is to be done from now on may take a fifth of the budget, in tokens
_STANDING_WORDS = 40  # of each
_SHORTEST_LINE, _LONGEST_LINE, _LINE_SHARE = 20, 80, 0.5  # words of a person's message, where each turn gets a line
_ASKED_WORDS = 15  # of the person's message, before a part of the reply
_REPLY_WORDS = 22  # of the reply, in a summary and beside what it answers


def choose(records: Iterable[Recalled], query: Query) -> list[Recalled]:
    """Return of records in their order, best first, those to recall: with a budget, as far as they fit into it."""
    if query.budget is None:
        folding = Folding()
        for record in records:
            if folding.add(record, 2 * query.limit) is None:
                break
        return folding.kept[: query.limit]
    return _Choice(query, query.budget).of(list(records))


def shorten(record: Recalled, budget: int, cost: Callable[[Recalled], int]) -> Recalled | None:
    """Return a record of which only so much is shown as fits: how it began, and how it ended; None if nothing fits."""
    said = said_in(record.value)
    shown = record._replace(shown=(lead(said.asked or said.text, _ASKED_WORDS, _ASKED_WORDS),))
    if cost(shown) > budget:
        return None
    start = said.reply or 0
    for span in reversed(cut(said.text[start:])):
        longer = shown._replace(shown=(*shown.shown, _moved(span, start)))
        if cost(longer) > budget:
            break
        shown = longer
    return shown


class Folding:
    """Records of which each says something else: what says the same as one before is folded into that."""

    def __init__(self) -> None:
        self.kept: list[Recalled] = []
        self._compared: list[tuple[set[str], object]] = []
        self._vocabulary = set[str]()

    def add(self, record: Recalled, most: int) -> int | None:
        """Keep a record, or fold it; return the place it has, or None if `most` are kept and it says something else."""
        words, speaker = set(str(record.value.get("text", "")).casefold().split()), record.value.get("speaker")
        alike = (n for n, (other, by) in enumerate(self._compared) if by == speaker and _say_the_same(words, other))
        # Most texts have words that none before them has, too many of them to say the same as any.
        same = next(alike, None) if len(words - self._vocabulary) <= (1 - _SAME) * len(words) + 1 else None
        if same is not None:
            self.kept[same] = self.kept[same]._replace(folded=(*self.kept[same].folded, record.key))
            return same
        if len(self.kept) >= most:
            return None
        self._vocabulary.update(words)
        self._compared.append((words, speaker))
        self.kept.append(record)
        return len(self.kept) - 1


class _Choice:
    """What fits into a budget so far."""

    def __init__(self, query: Query, budget: int) -> None:
        self._query, self._left = query, budget
        self._cost = query.cost or (lambda record: math.ceil(len(record.excerpt) / 4) + 1)
        self._most = min(budget / _STANDING_SHARE, _MOST_STANDING)
        self._folding = Folding()
        self._places = dict[int, int]()  # of the records that are shown
        self._folded = set[int]()  # records that are not, whatever fits
        self._prices = list[int]()

    def of(self, records: Sequence[Recalled]) -> list[Recalled]:
        """Return the records that fit, with what is shown of them."""
        for number, record in enumerate(records):
            if record.standing is not None:
                start, end = record.standing
                first = lead(said_in(record.value).text[start:end], _STANDING_WORDS, _STANDING_WORDS)
                spent = self._put(number, record, [_moved(first, start)], self._most)
                self._most -= spent or 0
        sums_up = asks_for_summary(self._query.text)
        as_lines, lines = sums_up or asks_for_order(self._query.text), set[int]()
        for number, span in _offers(records):
            if span.end - span.start > 4 * self._left and not as_lines:
                continue
            record = records[number]
            said = said_in(record.value)
            if not as_lines or not said.asked:
                if self._put(number, record, [*self._beside(number, span, record, said), span]) is None:
                    self._put(number, record, [span])
            elif number not in lines:
                lines.add(number)
                first = lead(said.asked, _SHORTEST_LINE, _LONGEST_LINE, _LINE_SHARE)
                if self._put(number, record, [first]) is not None and sums_up:
                    self._put(number, record, _start_of_reply(record, said))
        if not self._folding.kept and records and (begun := shorten(records[0], self._left, self._cost)) is not None:
            return [begun]  # not even one passage fits: how the best begins
        return self._folding.kept

    def _beside(self, number: int, span: Span, record: Recalled, said: Said) -> list[Span]:
        """Return what comes with the first passage of an exchange: with the reply's, the first words of the person.

        Where replies are wanted, with the person's the first words of the reply's best.
        """
        if number in self._places or not said.asked:
            return []
        if span.start > len(said.asked):
            return [lead(said.asked, _ASKED_WORDS, _ASKED_WORDS)]
        return _start_of_reply(record, said) if self._query.replies else []

    def _put(self, number: int, record: Recalled, spans: Sequence[Span], most: float = math.inf) -> int | None:
        """Show spans of a record if they fit; return what they cost, None if they are shown already or do not fit."""
        place, room = self._places.get(number), min(self._left, most)
        kept = record if place is None else self._folding.kept[place]
        new = [span for span in spans if not any(a <= span.start and span.end <= b for a, b in kept.shown)]
        if number in self._folded or not new or sum(b - a for a, b in new) / 4 > room:
            return None
        with_them = kept._replace(shown=(*kept.shown, *new))
        price = self._cost(with_them)
        tokens = price - (0 if place is None else self._prices[place])
        if tokens > room:
            return None
        if place is None:
            place = self._folding.add(with_them, self._query.limit)
            if place is None or place < len(self._prices):
                self._folded.add(number)  # another says the same, or there are enough
                return None
            self._places[number] = place
            self._prices.append(price)
        self._left -= tokens
        self._prices[place], self._folding.kept[place] = price, with_them
        return tokens


def _offers(records: Sequence[Recalled]) -> Iterable[tuple[int, Span]]:
    """Return the passages of records, best first, with their records' numbers; the best of each keeps its place."""
    # A record that was put before a better one, as by a re-ranker, is offered before that one's passages.
    weights = [record.weight for record in records]
    for number in range(len(weights) - 2, -1, -1):
        weights[number] = max(weights[number], weights[number + 1])
    offers: list[tuple[float, int, int, Span]] = []
    for number, (record, weight) in enumerate(zip(records, weights, strict=True)):
        passages = record.passages
        if not passages and record.standing is None:
            text = said_in(record.value).text
            passages = tuple(Passage(span, weight) for span in cut(text) or (Span(0, len(text)),))
        weighed = zip(passages, [weight, *(passage.weight for passage in passages[1:])], strict=False)
        offers += [(-worth, number, place, passage.span) for place, (passage, worth) in enumerate(weighed)]
    return [(number, span) for _, number, _, span in sorted(offers)]


def _start_of_reply(record: Recalled, said: Said) -> list[Span]:
    """Return the first words of the reply's best passage."""
    best = next((passage.span for passage in record.passages if passage.span.start > len(said.asked)), None)
    return [] if best is None else [_moved(lead(said.text[slice(*best)], _REPLY_WORDS, _REPLY_WORDS), best.start)]


def _moved(span: Span, by: int) -> Span:
    return Span(span.start + by, span.end + by)


def _say_the_same(words: set[str], other: set[str]) -> bool:
    both = len(words & other)
    return both > 0 and both >= _SAME * (len(words) + len(other) - both)
