"""Mutants: break the code on purpose, one place at a time, and count how many of the breaks a test notices.

    python benchmarks/mutants.py                       100 mutants of four rooms (about half an hour on two cores)
    python benchmarks/mutants.py --count 25 --rooms memory/recall
    python benchmarks/mutants.py --seed 2              other places
    python benchmarks/mutants.py --tests 'test_recall_*' 'test_dungeon_*'      only these tests, which is quicker

A mutant is one small change in a copy of the project: a comparison turned round, a condition negated, `and` for `or`,
a number one greater, an argument left out, `min` for `max`. First all quick tests run once with coverage, which says
which tests reach which line. Then each mutant runs the tests that reach its line, those of the least reach first, until
one fails. A mutant that no test notices survives: it is printed. The last lines are `name: value unit`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
ROOMS = ("memory/recall", "memory/facts", "memory/timeline", "graphs/dungeon_master")
WORKERS = 2
MOST_TESTS = 40  # a line that hundreds of tests reach is judged by those of the least reach, then by its room's tests
TIMEOUT = 900  # seconds; a mutant that loops for ever is noticed, too

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """One change: where it is, and the text before and after."""

    path: str
    line: int
    end_line: int
    column: int
    end_column: int
    before: str
    after: str


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield each mutant of a module; annotations, docstrings, log calls and errors' texts are left alone."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    for function in (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))):
        for statement in function.body:
            for node in _code_of(statement):
                for changed in _changes(node):
                    before = ast.get_source_segment(source, node) or ""
                    after = ast.unparse(ast.fix_missing_locations(changed))
                    if isinstance(node, (ast.BoolOp, ast.BinOp, ast.Compare, ast.UnaryOp, ast.IfExp)):
                        after = f"({after})"
                    place = (node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0)
                    yield Mutant(str(path.relative_to(ROOT)), *place, before, after)


def _code_of(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the expressions of a statement, without nested functions, raised errors and log calls, and `strict`.

    `strict` of `zip` only asserts what holds.
    """
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Raise, ast.ClassDef)):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(("_log.", "log.")):
            continue
        if isinstance(node, ast.expr):
            yield node
        children = [] if isinstance(node, ast.JoinedStr) else list(ast.iter_child_nodes(node))
        children = [child for child in children if not (isinstance(child, ast.keyword) and child.arg == "strict")]
        if isinstance(node, ast.AnnAssign):
            children.remove(node.annotation)
        queue.extend(children)


def _changes(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        changed = copy.deepcopy(node)
        changed.ops = [_COMPARISONS[type(node.ops[0])]()]
        yield changed
    elif isinstance(node, ast.BoolOp):
        changed_bool = copy.deepcopy(node)
        changed_bool.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed_bool
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        changed_operator = copy.deepcopy(node)
        changed_operator.op = _OPERATORS[type(node.op)]()
        yield changed_operator
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.IfExp):
        changed_choice = copy.deepcopy(node)
        changed_choice.body, changed_choice.orelse = changed_choice.orelse, changed_choice.body
        yield changed_choice
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            changed_call = copy.deepcopy(node)
            changed_call.func = ast.Name(_FUNCTIONS[node.func.id])
            yield changed_call
        for number, keyword in enumerate(node.keywords):
            if keyword.arg and keyword.arg != "strict":
                shorter = copy.deepcopy(node)
                del shorter.keywords[number]
                yield shorter


def copy_of_project(directory: Path) -> Path:
    """Copy what git knows of the project, links included."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, files):
        source, target = ROOT / name, directory / name
        if source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(os.readlink(source))
        elif source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return directory


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which a copy's tests import the copy."""
    return {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}


def measure_reach(tree: Path, rooms: list[str], files: list[str], number: int) -> Path:
    """Run test files with coverage and return the data file: which test function reached which line."""
    data, settings = tree / f"reach{number}", tree / f"reach{number}.ini"
    include = "\n    ".join(f"{tree}/{room}/*" for room in rooms)
    concurrency = "concurrency = thread"
    settings.write_text(f"[run]\ndynamic_context = test_function\n{concurrency}\ninclude =\n    {include}\n", "utf-8")
    command = [sys.executable, "-m", "coverage", "run", f"--data-file={data}", f"--rcfile={settings}", "-m", "pytest"]
    command += ["-q", "-m", "not slow", "-p", "no:cacheprovider", "--timeout=600", *files]
    subprocess.run(command, cwd=tree, env=environment(tree), capture_output=True, check=False)
    return data


def reach_of(data: Path) -> dict[tuple[str, int], set[str]]:
    """Read a data file: (path, line) to the names of test functions, such as `test_recall.test_x`."""
    from coverage.numbits import numbits_to_nums

    reach: dict[tuple[str, int], set[str]] = defaultdict(set)
    with sqlite3.connect(data) as database:
        rows = database.execute(
            "SELECT file.path, context.context, line_bits.numbits FROM line_bits "
            "JOIN file ON file.id = file_id JOIN context ON context.id = context_id WHERE context.context != ''"
        )
        for path, context, numbits in rows:
            for line in numbits_to_nums(numbits):
                reach[path, line].add(context)
    database.close()
    return reach


def nodes_of(tests: set[str], reach_count: dict[str, int]) -> list[str]:
    """Turn test functions into arguments for pytest, those that reach the least first."""
    order = sorted(tests, key=lambda name: (reach_count[name], name))[:MOST_TESTS]
    return [f"tests/{module}.py::{function}" for module, _, function in (name.rpartition(".") for name in order)]


def tests_of_room(mutant: Mutant) -> list[str]:
    """Return the test files that are named after the mutant's room."""
    room = Path(mutant.path).parts[1].split("_")[0]
    return sorted(f"tests/{path.name}" for path in (ROOT / "tests").glob(f"test_{room}*.py"))


def is_noticed(mutant: Mutant, tree: Path, tests: list[str]) -> bool:
    """Apply a mutant in a copy, run the tests until one fails, and put the module back."""
    path = tree / mutant.path
    source = path.read_text("utf-8")
    lines = source.encode().splitlines(keepends=True)
    head = lines[mutant.line - 1][: mutant.column]
    tail = lines[mutant.end_line - 1][mutant.end_column :]
    lines[mutant.line - 1 : mutant.end_line] = [head + mutant.after.encode() + tail]
    path.write_bytes(b"".join(lines))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment(tree), capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(source, "utf-8")
    if run.returncode not in (0, 1, 2):
        raise RuntimeError(f"pytest could not run {tests}: {run.stdout[-800:]}{run.stderr[-800:]}")
    return run.returncode != 0


def main() -> None:
    """Make mutants, run their tests, and print who survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="mutants in all (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="which places (default: 1)")
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), help="folders to change")
    parser.add_argument("--tests", nargs="+", default=["test_*"], help="patterns of test files (default: all)")
    parser.add_argument("--survivors", type=Path, help="write the survivors to this JSON file")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as directory:
        trees = [copy_of_project(Path(directory).resolve() / str(number)) for number in range(WORKERS)]
        reach, known = _reach(trees, options.rooms, options.tests)
        counts: dict[str, int] = defaultdict(int)
        for tests in reach.values():
            for test in tests:
                counts[test] += 1
        mutants: list[Mutant] = []
        for number, room in enumerate(options.rooms):
            places = [m for path in sorted((ROOT / room).rglob("*.py")) for m in mutants_of(path)]
            share = options.count // len(options.rooms) + (number < options.count % len(options.rooms))
            mutants += chance.sample(places, min(share, len(places)))
        free: Queue[Path] = Queue()
        for tree in trees:
            free.put(tree)

        def judge(mutant: Mutant) -> tuple[Mutant, str]:
            tests = {t for line in range(mutant.line, mutant.end_line + 1) for t in reach.get((mutant.path, line), ())}
            tree = free.get()
            try:
                nearest = nodes_of(tests & known, counts)
                # Coverage loses the test where LangGraph runs a node in a task of its own, so the room's tests follow.
                dead = (nearest and is_noticed(mutant, tree, nearest)) or is_noticed(
                    mutant, tree, tests_of_room(mutant)
                )
                return mutant, "" if dead else "survived"
            finally:
                free.put(tree)

        with ThreadPoolExecutor(WORKERS) as pool:
            verdicts = list(pool.map(judge, mutants))
    report(verdicts, options.rooms, options.survivors)


def _reach(
    trees: list[Path], rooms: list[str], patterns: list[str]
) -> tuple[dict[tuple[str, int], set[str]], set[str]]:
    """Measure on all copies at once; return the reach of each line (paths from the root) and all tests' names."""
    names = sorted({path.name for pattern in patterns for path in (ROOT / "tests").glob(f"{pattern}.py")})
    parts = [[f"tests/{name}" for name in names[number::WORKERS]] for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        files = list(pool.map(lambda n: measure_reach(trees[n], rooms, parts[n], n), range(WORKERS)))
    reach: dict[tuple[str, int], set[str]] = defaultdict(set)
    for tree, data in zip(trees, files, strict=True):
        for (path, line), tests in reach_of(data).items():
            reach[str(Path(path).resolve().relative_to(tree)), line] |= {t.removeprefix("tests.") for t in tests}
    functions = {
        f"{path.stem}.{name}"
        for path in (ROOT / "tests").glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    return reach, functions


def report(verdicts: list[tuple[Mutant, str]], rooms: list[str], survivors: Path | None) -> None:
    """Print each survivor and the share that was noticed, by room and in all."""
    alive = [(mutant, why) for mutant, why in verdicts if why]
    for mutant, why in alive:
        print(f"{mutant.path}:{mutant.line} {why}\n    - {mutant.before}\n    + {mutant.after}")
    if survivors:
        survivors.write_text(
            json.dumps([mutant._asdict() | {"verdict": why} for mutant, why in alive], indent=1), "utf-8"
        )
    print()
    for room in rooms:
        own = [why for mutant, why in verdicts if mutant.path.startswith(f"{room}/")]
        if own:
            print(f"mutants_noticed_{room.replace('/', '_')}: {100 * own.count('') / len(own):.0f} %")
    dead = sum(not why for _, why in verdicts)
    print(f"mutants: {len(verdicts)} mutants")
    print(f"mutants_noticed: {100 * dead / len(verdicts):.0f} %")


if __name__ == "__main__":
    main()
