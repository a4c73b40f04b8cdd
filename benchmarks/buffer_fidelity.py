"""How much of a conversation its buffer and summary still say: BLEU and ROUGE against the whole, for each policy.

    python benchmarks/buffer_fidelity.py                     about three minutes
    python benchmarks/buffer_fidelity.py --model NAME        summaries by a chat model, such as openai:gpt-4.1-mini

A conversation is folded turn by turn, as after each reply in a game. At its end, what the next prompt would hold of it,
the summary and the turns of the buffer, is the candidate, and the whole conversation is the reference. BLEU (sacreBLEU,
sentence level, 0 to 100) takes off for what is missing: its brevity penalty is what a short candidate costs. ROUGE
(rouge-score, with stemming, in %) is recall: the share of the whole's words, pairs of words, and longest common
sequence that is still there.

The conversations are three made campaigns of 200 turns, the same each time. Needs the dependency group `bench`. The
last line is `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage  # noqa: E402
from langchain_core.messages.utils import count_tokens_approximately  # noqa: E402
from planted_campaign import campaign  # noqa: E402
from rouge_score.rouge_scorer import RougeScorer  # noqa: E402
from sacrebleu import sentence_bleu  # noqa: E402

from questbook import BufferPolicy, LastTurns, RunningSummary, TokenBudget  # noqa: E402
from questbook.graphs.dungeon_master.context import Context  # noqa: E402
from questbook.graphs.dungeon_master.prompts import CONDENSE  # noqa: E402
from questbook.graphs.turn.buffer import ModelSummarizer  # noqa: E402
from questbook.memory.buffer.policies import Buffer, Unbounded, turn_text  # noqa: E402
from questbook.memory.buffer.summary import ExtractiveSummarizer  # noqa: E402

TURNS = 200
SUMMARY_TOKENS = 400
DEFAULT = "tokens 1000, extractive"
ROUGE = ("rouge1", "rouge2", "rougeL")
SCORER = RougeScorer(ROUGE, use_stemmer=True)


class Score(NamedTuple):
    """Tokens of the candidate, BLEU, and ROUGE-1, -2 and -L as recall in %."""

    tokens: float
    bleu: float
    rouge1: float
    rouge2: float
    rouge_l: float


def policies(model: str) -> dict[str, BufferPolicy]:
    """The policies by name; each summary has 400 tokens at most."""
    by_model = ModelSummarizer(Context.of(None, model=model, seed=1), CONDENSE)
    return {
        "unbounded": Unbounded(),
        "last 10 turns": LastTurns(10),
        "tokens 1000, no summary": TokenBudget(1000, None),
        DEFAULT: TokenBudget(1000, ExtractiveSummarizer()),
        f"tokens 1000, {model}": TokenBudget(1000, by_model),
        "tokens 4000, extractive": TokenBudget(4000, ExtractiveSummarizer()),
        "summary of all but 2, extractive": RunningSummary(2, ExtractiveSummarizer()),
        f"summary of all but 2, {model}": RunningSummary(2, by_model),
    }


async def prompt_text(policy: BufferPolicy, turns: Sequence[tuple[str, str]]) -> str:
    """Fold a conversation turn by turn; return what the prompt after it holds of it."""
    messages, summary, summarised = list[AnyMessage](), "", 0
    for number, (player, reply) in enumerate(turns, 1):
        messages += [HumanMessage(player), AIMessage(reply)]
        folded, dropped = policy.evict(Buffer(messages, number, summarised, stored_through=number))
        if folded and policy.summarizer:
            told = [{"turn": turn.number, **turn_text(turn.messages)._asdict()} for turn in folded]
            summary = await policy.summarizer.fold(summary, told, SUMMARY_TOKENS)
            summarised = folded[-1].number
        gone = {id(message) for turn in dropped for message in turn.messages}
        messages = [message for message in messages if id(message) not in gone]
    shown = policy.select(Buffer([*messages, HumanMessage("")], len(turns) + 1, summarised, stored_through=len(turns)))
    return "\n".join(filter(None, [summary, *(message.text for message in shown)]))


def score(candidate: str, whole: str) -> Score:
    """Hold a candidate against the whole conversation."""
    rouge = SCORER.score(whole, candidate)
    recalls = [100 * rouge[kind].recall for kind in ROUGE]
    tokens = float(count_tokens_approximately([candidate]))
    return Score(tokens, sentence_bleu(candidate, [whole]).score, *recalls)


async def main(model: str) -> None:
    talks = [[(turn["player"], turn["reply"]) for turn in campaign(seed, TURNS)[1]] for seed in (1, 2, 3)]
    tokens = statistics.mean(count_tokens_approximately([" ".join(map(" ".join, talk))]) for talk in talks)
    print(f"{len(talks)} conversations of {tokens:,.0f} tokens\n")
    print("| policy | tokens in the prompt | BLEU | ROUGE-1 | ROUGE-2 | ROUGE-L |\n|---|---|---|---|---|---|")
    figure = 0.0
    for label, policy in policies(model).items():
        scores = []
        for talk in talks:
            whole = "\n".join(text for turn in talk for text in turn)
            scores.append(score(await prompt_text(policy, talk), whole))
        mean = Score(*map(statistics.mean, zip(*scores, strict=True)))
        print(f"| {label} | {mean.tokens:,.0f} | " + " | ".join(f"{value:.1f}" for value in mean[1:]) + " |")
        figure = mean.rouge1 if label == DEFAULT else figure
    print(f"\nbuffer_fidelity_rouge1_recall: {figure:.1f} %")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="offline", help="chat model that summarises")
    asyncio.run(main(parser.parse_args().model))
