"""The trials of `benchmarks/trials`: random use counts no fault, and their oracles notice what they look for."""

import httpx
import pytest

from benchmarks.trials.page import PageTrial
from benchmarks.trials.server import ServerTrial, Spot, Story


def faults(counts):
    return {name: number for name, (number, unit) in counts.items() if unit == "faults" and number}


@pytest.mark.slow
async def test_the_server_is_used_at_random_edited_and_killed_and_nothing_leaks_is_doubled_or_lost(tmp_path):
    counts = await ServerTrial(tmp_path, seed=5).play(40)
    assert not faults(counts)
    assert counts["turns"][0] >= 20
    assert counts["kills"][0] >= 1


@pytest.mark.slow
def test_two_users_and_a_guest_on_one_page_see_what_is_theirs(tmp_path):
    counts = PageTrial(tmp_path, seed=5).play(60)
    assert not faults(counts)
    assert counts["answers"][0] >= 60


@pytest.mark.parametrize(
    ("shown", "asked", "fault"),
    [
        ("On the wall is zqaaaaaa.", "", None),
        ("On the wall is zqbbbbbb.", "", "leaked"),
        ("branch: zqcccccc", "", None),
        ("What do I know of zqaaaaaa? The wall says zqaaaaaa.", "zqaaaaaa", None),
        ("What do I know of zqaaaaaa? Nothing.", "zqaaaaaa", "missing"),
    ],
)
def test_the_server_s_oracle_notices_a_leak_and_a_gap(tmp_path, shown, asked, fault):
    trial = ServerTrial(tmp_path, seed=1)
    trial.words = ["zqaaaaaa", "zqbbbbbb"]
    trial._compare(shown, {"zqaaaaaa"}, asked)
    assert +trial.counts == ({"turns": 1} | ({fault: 1} if fault else {}))


@pytest.mark.parametrize(
    ("turn", "said", "fault"),
    [
        (2, ["I sing."], None),
        (1, ["I sing."], "lost"),
        (3, ["I sing."], "doubled"),
        (2, ["I sing.", "I sing."], "doubled"),
    ],
)
async def test_the_server_s_oracle_notices_a_turn_that_is_lost_or_there_twice(tmp_path, turn, said, fault):
    class Threads:
        threads = property(lambda self: self)

        async def get_state(self, _):
            messages = [{"type": "human", "content": words} for words in said]
            return {"values": {"turn": turn, "messages": messages}, "checkpoint": {"checkpoint_id": "c"}}

    trial = ServerTrial(tmp_path, seed=1)
    trial.client = Threads()
    await trial._arrive(Story("t", "c"), Spot("", ("zqaaaaaa",)), "I sing.", "zqbbbbbb")
    assert +trial.counts == ({fault: 1} if fault else {})


@pytest.mark.parametrize(
    ("status", "text", "fault"),
    [(200, "zqaaaaaa", None), (200, "zqbbbbbb", "foreign_words"), (404, "", "shut_out"), (500, "", "errors")],
)
def test_the_page_s_oracle_notices_foreign_words_and_closed_doors(tmp_path, status, text, fault):
    trial = PageTrial(tmp_path, seed=1)
    trial.told |= {("ann", "isle"): ["zqaaaaaa"], ("bob", "isle"): ["zqbbbbbb"]}
    trial._read(httpx.Response(status, text=text), "ann", "")
    assert trial.counts["answers"] == 1
    assert bool(fault) == any(trial.counts[name] for name in ("foreign_words", "let_in", "shut_out", "errors"))
    assert not fault or trial.counts[fault] == 1
