"""Hostile requests to LangGraph's server with the page: nobody may see another's words, and all must work afterwards.

    python benchmarks/hostile.py --requests 300       some minutes
    python benchmarks/hostile.py                      10,000 requests on each home
    python benchmarks/hostile_page.py                 `questbook web` with an issuer, and its sign-in

LangGraph's development server runs with the log-in of docs/scopes.md, and the page below /play; what they keep is in
files, and then in PostgreSQL. Ann has a
thread, a campaign and memories that are full of one made-up word. Then requests come from bob, from nobody and from a
wrong token: schemathesis makes them of the server's own OpenAPI and of one that is written here of the page's routes.
On top of it, at random, they are aimed at ann's thread, campaign and namespace or at bob's own, claim to be hers in
headers and bodies, have values of a wrong kind, are cut off or far too large. The word in any answer is `foreign`.
Afterwards each view of ann and bob is asked for, and what answers 500 is counted; so are tracebacks in the log, those
that come by a file of ours apart. Left out is /internal, by which the development server lets anyone who has logged in
delete everybody's threads (`POST /internal/truncate`). Nothing leaves this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import sys
import tempfile
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent), str(ROOT / "tests")]

import httpx  # noqa: E402
import schemathesis  # noqa: E402
from database import Database  # noqa: E402
from dev_server import DevServer  # noqa: E402
from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402
from page_players import tracebacks_in  # noqa: E402
from schemathesis.generation import GenerationMode  # noqa: E402
from starlette.routing import Route  # noqa: E402

from questbook.graphs.web import campaigns  # noqa: E402
from questbook.graphs.web.app import OF_A_CAMPAIGN  # noqa: E402

WORD = "zquixannaw"
MIRA = f"I'm Mira, a halfling thief who grew up on the docks of {WORD} and wants her sister back."
CAMPAIGN, BOBS = "/play/u/ann/c/isle/", "/play/u/bob%40example.com/c/isle/"
VIEWS = ("", "story", "panel/sheet", "panel/quest", "panel/memories", "panel/dice", "panel/summary", "panel/tree",
         "fidelity", "chronicle", "chronicle.md", "settings", "earlier?before=9")  # fmt: skip
FIELDS = ("text", "ticket", "turn", "turns", "where", "name", "guests", "words", "sure", "whole", "key", "value",
          "delete", "dice", "message", "label", "new", "up", "model", "seed", "token", "file")  # fmt: skip
QUERY = ("after", "before", "brief", "one", "other", "words", "key", "name", "kind")
_SERVER = (ROOT / "graphs" / "server.py").read_text("utf-8").splitlines()
_PASSES_ON = ("?", *(f"graphs/server.py:{at} " for at, line in enumerate(_SERVER, 1) if line.lstrip()[:6] == "await "))
"""What the server itself fails at comes by no file of ours, or by such a line."""
_LEFT_OUT = "/internal/"  # by /internal/truncate the development server is emptied
_SECONDS = 1.0  # of an answer that are read
_AT_ONCE = 3  # requests of one operation, at least
_MOST = 5_000_000  # bytes
_MUST_BE_0 = ("foreign", "destroyed", "views that answer 500", "tracebacks by a file of ours")
_TRICKS: list[Any] = [
    ["ann"], ["ann", "isle"], ["ann.isle"], [""], [], ["*"], ["~teams", "x"], ["bob%40example.com", "..", "ann"],
    ["bob@example.com.ann"], ["ANN"], ["ann\u0000"], ["..", "ann"], "ann", None,
]  # fmt: skip
_JUNK: list[Any] = [
    None,
    -1,
    10**40,
    1.5,
    "",
    "\0",
    "../..",
    "%00",
    "\u202e",
    "a" * 5000,
    [],
    {},
    True,
    [[]],
    {"$ne": ""},
]
CLAIMS = {"x-user": "ann", "x-auth-user": "ann", "x-forwarded-user": "ann", "x-questbook-user": "ann",
           "x-auth-scheme": "langsmith", "langgraph_auth_user": "ann"}  # fmt: skip


def page_schema(root: str = "") -> dict[str, Any]:
    """Return the OpenAPI of the page's routes, below a path."""
    text = {"type": "string"}
    paths: dict[str, Any] = {}
    of_one = [(f"{root}/u/{{owner}}/{kind}/{{campaign}}", route) for kind in "ca" for route in OF_A_CAMPAIGN]
    for before, route in [*of_one, *((root, route) for route in campaigns.ROUTES)]:
        if not isinstance(route, Route):
            continue
        path = before + route.path
        places = [
            {"name": name, "in": "path", "required": True, "schema": text} for name in re.findall(r"{(\w+)", path)
        ]
        places += [{"name": name, "in": "query", "schema": text} for name in QUERY]
        answers = {"200": {"description": "a page"}}
        for method in (route.methods or set()) - {"HEAD"}:
            operation: dict[str, Any] = {"parameters": places, "responses": answers}
            if method == "POST":
                form = {"type": "object", "properties": dict.fromkeys(FIELDS, text)}
                operation["requestBody"] = {"content": {"application/x-www-form-urlencoded": {"schema": form}}}
            paths.setdefault(re.sub(r":\w+}", "}", path), {})[method.lower()] = operation
    return {"openapi": "3.0.3", "info": {"title": "The page", "version": "1"}, "paths": paths}


class Attack(ABC):
    """Requests of schemathesis, aimed and spoilt; a subclass says at whom (`aims`) and who sends them (`send`)."""

    thread = ""  # of ann's

    def __init__(self, number: int) -> None:
        self.counts, self.dice = Counter[str](), random.Random(number)

    @abstractmethod
    def begin(self) -> None:
        """Start the server, with what is attacked."""

    @abstractmethod
    def end(self) -> None:
        """Stop the server."""

    @abstractmethod
    def read_log(self) -> None:
        """Count what its logs say."""

    @abstractmethod
    def schemas(self) -> list[dict[str, Any]]:
        """Return OpenAPIs of what is attacked."""

    @abstractmethod
    def send(self, case: Any) -> None:
        """Send a request of schemathesis."""

    @abstractmethod
    def aims(self) -> dict[str, Any]:
        """Return values of parameters that reach what is ann's, by their names."""

    @abstractmethod
    def look_afterwards(self) -> None:
        """Ask for each view; count what fails, and what ann has lost."""

    def report(self, home: str, must_be_0: Sequence[str]) -> bool:
        """Print the counts; return whether those are 0 that must be."""
        for name, number in self.counts.most_common():
            if name not in must_be_0:
                print(f"# {home}: {name}: {number}")
        for name in ("requests", "operations", "views", *must_be_0, "tracebacks"):
            print(f"hostile_{home}_{name.replace(' ', '_')}: {self.counts[name]} {name.split()[0]}", flush=True)
        return not any(self.counts[name] for name in must_be_0)

    def attack(self, requests: int, seconds: float = math.inf) -> None:
        """Send so many requests, the operations in turn, and none after so many seconds."""
        self.ends = time.monotonic() + seconds
        schemas = [schemathesis.openapi.from_dict(schema) for schema in self.schemas()]
        every = [found.ok() for schema in schemas for found in schema.get_all_operations()]
        operations = [operation for operation in every if not operation.path.startswith(_LEFT_OUT)]
        self.counts["operations"] = len(operations)
        while self.counts["requests"] < requests and time.monotonic() < self.ends:
            self.dice.shuffle(operations)
            for operation in operations:
                left = requests - self.counts["requests"]
                self._attack(operation, min(max(requests // len(operations), _AT_ONCE), left))

    def _attack(self, operation: Any, most: int) -> None:
        if most < 1:
            return

        numbers = count()

        @seed(self.dice.randrange(2**32))
        @settings(
            max_examples=most + 1, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
        def send(case: Any) -> None:
            if next(numbers) and time.monotonic() < self.ends:  # the first is the simplest that there is
                self.send(case)

        try:
            send()
        except Unsatisfiable:
            self.counts["operations of which no request can be made"] += 1

    def path_of(self, case: Any) -> str:
        """Return where a request goes; some parts are aimed, some are no such thing."""
        parts = dict(case.path_parameters or {})
        for name in parts:
            if name in self.aims() and self.dice.random() < 0.6:
                parts[name] = self.aims()[name]
            elif self.dice.random() < 0.2:
                parts[name] = self.dice.choice(_JUNK)
        path = case.path
        for name, value in parts.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe="") or "x")
        return path

    def body_of(self, case: Any) -> dict[str, Any]:
        """Return the body of a request, aimed, broken off or far too large; of the kind that httpx takes."""
        if case.media_type is None:
            return {}
        if "form" in case.media_type:
            form = case.body if isinstance(case.body, dict) else {"text": case.body}
            form = {str(name): _plain(value) for name, value in form.items()}
            if self.dice.random() < 0.05:
                form["text"] = "a" * 2_000_000
            return {"data": form}
        body = self._aimed(case.body)
        if isinstance(body, dict) and self.dice.random() < 0.5:
            body |= dict(self.dice.sample(sorted(self.aims().items(), key=str), 3))
        if isinstance(body, dict) and self.dice.random() < 0.4:
            claim = {"user": "ann", "campaign": "isle", "thread_id": self.thread, "langgraph_auth_user_id": "ann"}
            body = body | self.dice.choice(
                [{"context": claim}, {"config": {"configurable": claim}}, {"metadata": {"owner": "ann"}}]
            )
        try:
            text = json.dumps(body)
        except (TypeError, ValueError):
            text = repr(body)
        luck = self.dice.random()
        text = text[: len(text) // 2] if luck < 0.05 else "[" * 50_000 if luck < 0.07 else text
        text = text + " " * 8_000_000 if luck > 0.99 else text
        return {"content": text.encode("utf-8", "replace"), "headers": {"content-type": "application/json"}}

    def _aimed(self, body: Any) -> Any:
        """Return a body of which some parts are aimed at ann's."""
        if isinstance(body, dict):
            aims = self.aims()
            return {
                name: aims[name] if name in aims and self.dice.random() < 0.6 else self._aimed(value)
                for name, value in body.items()
            }
        if self.dice.random() < 0.05:
            return self.dice.choice(_JUNK)
        return [self._aimed(each) for each in body] if isinstance(body, list) else body

    def ask(
        self, who: httpx.Client, method: str, path: str, query: dict[str, str], headers: dict[str, str],
        body: dict[str, Any],
    ) -> httpx.Response | None:  # fmt: skip
        """Send a request, and read the answer for a second; return it, or None if there is none."""
        self.counts["requests"] += 1
        if self.counts["requests"] % 100 == 0:
            print(f"# {self.counts['requests']} requests", flush=True)
        headers, answer = headers | body.pop("headers", {}), None
        end, text = time.monotonic() + _SECONDS, b""
        try:
            request = who.build_request(method, path, params=query or None, headers=headers, timeout=_SECONDS, **body)
            answer = who.send(request, stream=True)
            try:
                for piece in answer.iter_raw() if answer.headers.get("content-encoding") else answer.iter_bytes():
                    text += piece
                    if time.monotonic() > end or len(text) > _MOST:
                        break
            finally:
                answer.close()
            self.counts[f"answers {answer.status_code}"] += 1
            if answer.status_code >= 500:
                self.counts[f"500 of {method} {re.sub(r'[0-9a-f-]{36}', 'ID', path)[:60]}"] += 1
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            self.counts[f"without an answer: {type(error).__name__}"] += 1
        if WORD.encode() in text.lower() and WORD not in repr(body).lower():
            self.counts["foreign"] += 1
            print(f"foreign: {method} {path} {query} {headers} {repr(body)[:300]}", file=sys.stderr)
        return answer

    def view(self, who: httpx.Client, method: str, path: str, **more: Any) -> str:
        """Ask for something that must be there; return its text."""
        self.counts["views"] += 1
        answer = who.request(method, path, **more)
        if answer.status_code >= 500:
            self.counts["views that answer 500"] += 1
            print(f"afterwards: {method} {path} answers {answer.status_code}", file=sys.stderr)
        return answer.text


class Siege(Attack):
    """The server with ann's things, and the requests."""

    def __init__(self, directory: Path, number: int, database: str = "") -> None:
        super().__init__(number)
        self.server = DevServer(directory / "home", directory / "server")
        self.server.environment["QUESTBOOK_DATABASE"] = database
        config = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
        path = self.server.state / "langgraph.json"
        path.unlink()
        path.write_text(json.dumps(config | {"auth": {"path": "./log_in.py:auth"}}), "utf-8")
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "scopes.md").read_text("utf-8"), re.DOTALL)
        (self.server.state / "log_in.py").write_text(next(b for b in blocks if "@auth.authenticate" in b), "utf-8")

    def begin(self) -> None:
        """Start the server, and let ann and bob play."""
        self.server.start()
        self.ann, self.bob = (self._person(f"secret-of-{name}") for name in ("ann", "bob"))
        self.nobody = httpx.Client(base_url=self.server.url, timeout=30)
        self.token = self._say(self.ann, CAMPAIGN, MIRA)
        self._say(self.ann, CAMPAIGN, f"I write {WORD} on the wall, and go on.")
        self.bobs_token = self._say(self.bob, BOBS, "I'm Ada, an elf wizard.")
        self.thread = self.ann.post("/threads", json={"graph_id": "dungeon_master"}).json()["thread_id"]
        run = {"assistant_id": "dungeon_master", "input": {"messages": [{"role": "user", "content": MIRA}]}}
        self.ann.post(f"/threads/{self.thread}/runs/wait", json=run).raise_for_status()
        self.run_id = self.ann.get(f"/threads/{self.thread}/runs").json()[0]["run_id"]
        self.own = self.bob.post("/threads", json={"graph_id": "dungeon_master"}).json()["thread_id"]
        item = {"namespace": ["ann", "notes"], "key": "one", "value": {"text": f"The password is {WORD}."}}
        self.ann.put("/store/items", json=item).raise_for_status()

    def _person(self, secret: str) -> httpx.Client:
        headers = {"authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=self.server.url, headers=headers, timeout=60, follow_redirects=True)

    def _say(self, who: httpx.Client, path: str, words: str) -> str:
        page = who.get(path)
        token, number = (re.search(rf'data-{name}="([^"]+)"', page.text)[1] for name in ("token", "number"))  # type: ignore[index]
        headers = {"x-questbook-token": token, "hx-request": "true"}
        who.post(f"{path}say", data={"text": words, "ticket": words}, headers=headers).raise_for_status()
        with who.stream("GET", f"{path}events?after={number}") as events:
            any(line == "event: pages" for line in events.iter_lines())
        return token

    def schemas(self) -> list[dict[str, Any]]:  # noqa: D102
        served = self.ann.get("/openapi.json").json()
        for path in served["paths"].values():
            for operation in path.values():
                if isinstance(operation, dict) and "requestBody" in operation:
                    operation["requestBody"]["required"] = True  # else most requests have none
        return [page_schema("/play"), served]

    def send(self, case: Any) -> None:  # noqa: D102
        path = self.path_of(case)
        who = self.dice.choices([self.bob, self.nobody], [4, 1])[0]
        token = self.dice.choices([self.bobs_token, self.token, ""], [6, 2, 2])[0]  # bob's comes by the guard
        headers = {"x-questbook-token": token} if token else {}
        if self.dice.random() < 0.3:
            headers |= dict(self.dice.sample(sorted(CLAIMS.items()), 2))
        if who is self.nobody and self.dice.random() < 0.5:
            headers["authorization"] = self.dice.choice(["Bearer secret-of-", "Bearer ann", "ann", "Basic YW5uOg=="])
        self.ask(who, case.method, path, query_of(case), headers, self.body_of(case))

    def aims(self) -> dict[str, Any]:  # noqa: D102
        return {
            "owner": self.dice.choice(["ann", "ann", "bob@example.com"]), "campaign": "isle",
            "thread_id": self.dice.choice([self.thread, self.thread, self.own]), "run_id": self.run_id, "user": "ann",
            "assistant_id": self.dice.choice(["dungeon_master", "companion", "reflect"]), "graph_id": "dungeon_master",
            "namespace": self.dice.choice(_TRICKS), "namespace_prefix": self.dice.choice(_TRICKS), "key": "one",
            "prefix": self.dice.choice(_TRICKS), "suffix": self.dice.choice(_TRICKS), "ids": [self.thread],
        }  # fmt: skip

    def look_afterwards(self) -> None:  # noqa: D102
        wanted = {self.ann: CAMPAIGN, self.bob: BOBS}
        for who, campaign in wanted.items():
            for view in (f"{campaign}{view}" for view in VIEWS):
                self.view(who, "GET", view)
            self.view(who, "GET", "/play/")
            self.view(who, "POST", "/threads/search", json={})
            self.view(who, "POST", "/assistants/search", json={})
        for place in ("", "/state", "/history", "/runs"):
            self.view(self.ann, "GET", f"/threads/{self.thread}{place}")
        story = self.view(self.ann, "GET", f"{CAMPAIGN}chronicle.md")
        state = self.view(self.ann, "GET", f"/threads/{self.thread}/state")
        found = self.view(self.ann, "POST", "/store/items/search", json={"namespace_prefix": ["ann", "notes"]})
        for name, text in (("story", story), ("thread", state), ("memories", found)):
            if WORD not in text.lower():
                self.counts["destroyed"] += 1
                print(f"destroyed: ann's {name}: {text[:300]}", file=sys.stderr)

    def end(self) -> None:  # noqa: D102
        self.server.stop()

    def read_log(self) -> None:
        """Count the tracebacks, and those that come by a file of ours."""
        for trace in tracebacks_in((self.server.state / "log").read_text("utf-8", "replace")):
            self.counts["tracebacks"] += 1
            self.counts["tracebacks by a file of ours"] += not trace.startswith(_PASSES_ON)
            self.counts[f"traceback {trace}"] += 1


def query_of(case: Any) -> dict[str, str]:
    """Return the query of a request as texts."""
    return {name: _plain(value) for name, value in dict(case.query or {}).items()}


def _plain(value: Any) -> str:
    """Return a value as a text that can be sent."""
    return str(value).encode("utf-8", "replace").decode()


def attack_homes(
    attack_of: Callable[[Path, int, str], Attack], usage: str | None, requests: int, name: str, must_be_0: Sequence[str]
) -> None:
    """Read the command line, attack each home, and exit with 1 if a count is not 0 that must be."""
    warnings.simplefilter("ignore")  # of hypothesis, about formats of texts
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=requests)
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds on a home, after which none is sent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--homes", nargs="+", choices=("sqlite", "postgres"), default=["sqlite", "postgres"])
    arguments = parser.parse_args()
    is_well = True
    for home in arguments.homes:
        with tempfile.TemporaryDirectory() as directory, ExitStack() as opened:
            url = asyncio.run(opened.enter_context(Database()).new()) if home == "postgres" else ""
            attack = attack_of(Path(directory), arguments.seed, url)
            try:
                attack.begin()
                began = time.monotonic()
                attack.attack(arguments.requests, arguments.limit)
                print(f"# {home}: {time.monotonic() - began:.0f} seconds")
                attack.look_afterwards()
            finally:
                attack.end()
            attack.read_log()
        is_well &= attack.report(name.format(home), must_be_0)
    if not is_well:
        raise SystemExit(1)


if __name__ == "__main__":
    attack_homes(Siege, __doc__, 10_000, "{}", _MUST_BE_0)
