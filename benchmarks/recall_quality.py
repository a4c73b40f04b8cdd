"""How much of what answers a question is recalled. (Being written.)"""

from __future__ import annotations
import argparse, asyncio, json, re, sys, time, tempfile, collections
from pathlib import Path
from datetime import datetime, UTC

sys.path[:0] = [str(Path(__file__).parent.parent)]
from memory import FaissStore, HashEmbeddings, MiniLMEmbeddings
from memory.recall import recall, Present
from memory.remember import remember
from memory.weights import Weights


def load(p):
    d = json.loads(p.read_text())
    turns = []
    for s in d["sessions"]:
        at = datetime.strptime(s["date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for t in s["turns"]:
            turns.append(
                {
                    "text": t["text"] + (f" [{t['blip_caption']}]" if t.get("blip_caption") else ""),
                    "speaker": t["speaker"],
                    "session": s["session"],
                    "said_at": at.isoformat(),
                    "id": t["dia_id"],
                }
            )
    ids = {t["id"] for t in turns}
    qs = []
    for q in d["qa"]:
        if q["category"] == 5:
            continue
        ev = set()
        for e in q["evidence"]:
            for a, b in re.findall(r"D:?(\d+):0*(\d+)", e):
                ev.add(f"D{a}:{b}")
        ev &= ids
        if ev:
            qs.append((q["question"], q["category"], ev))
    return turns, qs, (d["speaker_a"], d["speaker_b"])


class Cached:
    def __init__(s, inner):
        s.i = inner
        s.c = {}


async def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--embed", default="hash")
    ap.add_argument("--set", default="")
    ap.add_argument("--drop", default="")
    ap.add_argument("--width", type=int)
    a = ap.parse_args()
    if a.width:
        import memory.candidates as c

        c.WIDTH = a.width
        c._searched.__defaults__ = (a.width,)
    w = Weights(**(json.loads(a.set) if a.set else {}))
    embed = HashEmbeddings() if a.embed == "hash" else MiniLMEmbeddings("/tmp/recallwork/minilm")
    import pickle

    cp = Path(f"/tmp/recallwork/q-{a.embed}.pkl")
    cache = pickle.loads(cp.read_bytes()) if cp.exists() else {}
    real = embed.embed_query
    reald = embed.embed_documents

    def eq(t):
        if t not in cache:
            cache[t] = real(t)
        return cache[t]

    embed.embed_query = eq

    def ed(ts):
        out = []
        for t in ts:
            if t not in cache:
                cache[t] = reald([t])[0]
            out.append(cache[t])
        return out

    embed.embed_documents = ed
    R = collections.defaultdict(list)
    T = []
    for p in sorted(Path("/work/shared/data/locomo").glob("*.json")):
        turns, qs, sp = load(p)
        db = Path(f"/tmp/recallwork/{a.embed}-{p.stem}.db")
        new = not db.exists()
        async with FaissStore.open(db, {"embed": embed, "fields": ["text"]}) as st:
            ns = ("locomo", p.stem)
            if new:
                await remember(st, ns, turns)
            now = datetime.fromisoformat(turns[-1]["said_at"])
            for q, cat, ev in qs:
                t0 = time.perf_counter()
                f = await recall(st, ns, q, limit=20, weights=w, speakers=sp, present=Present(now))
                T.append(time.perf_counter() - t0)
                got = [r.value["id"] for r in f]
                for k in (5, 10, 20):
                    v = len(ev & set(got[:k])) / len(ev)
                    R["all", k].append(v)
                    R[cat, k].append(v)
                    R[p.stem, k].append(v)
    cp.write_bytes(pickle.dumps(cache))
    for g in ["all", 1, 2, 3, 4] + [p.stem for p in sorted(Path("/work/shared/data/locomo").glob("*.json"))]:
        print(g, len(R[g, 5]), *(f"{100 * sum(R[g, k]) / len(R[g, k]):.1f}" for k in (5, 10, 20)))
    T.sort()
    print("ms median", 1000 * T[len(T) // 2])


if __name__ == "__main__":
    asyncio.run(main())
