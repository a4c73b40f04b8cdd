"""FakeOpenAI: a loopback server that speaks the OpenAI chat-completions protocol as a test tells it to.

    with FakeOpenAI() as server:
        server.queue(status(429, headers={"Retry-After": "0"}), say("The gate opens.") + call("roll_dice", {"dc": 12}))
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ...
        assert server.requests[-1]["messages"][-1]["content"] == "I knock."

Each request takes the next behaviour of the queue; when that is empty, the responder answers, if there is one.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from langchain_core.messages import AIMessage

KEY = "sk-proj-abcdefghijklmnopqrstuvwx"
"""A key as they look; no message may show it."""


@dataclass(frozen=True)
class Reply:
    """An answer: text, then tool calls as (tool, arguments as they are sent); `+` puts two into one answer.

    Attributes:
        delay: Seconds between two pieces of a stream.
        stop_after: Pieces of a stream that get out before `ending` happens; None: all, and a proper end.
        ending: "cut" drops the connection, "end" ends the stream politely but without finish reason, "hang" is silent.
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    stop_after: int | None = None
    ending: str = "cut"

    def __add__(self, other: Reply) -> Reply:
        return replace(self, text=self.text + other.text, calls=self.calls + other.calls)

    @property
    def finish_reason(self) -> str:
        return "tool_calls" if self.calls else "stop"


@dataclass(frozen=True)
class Status:
    """An HTTP error in OpenAI's shape."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    code: str | None = None


@dataclass(frozen=True)
class Hang:
    """No answer at all, until the client gives up or the server is closed."""


Behaviour = Reply | Status | Hang
Responder = Callable[[dict[str, Any]], Behaviour]


def say(text: str = "", *, delay: float = 0.0) -> Reply:
    """Answer with text; without any, a blank answer."""
    return Reply(text=text, delay=delay)


def call(tool: str, arguments: Mapping[str, Any] | str) -> Reply:
    """Call a tool; arguments in a string are sent as they are, however malformed."""
    return Reply(calls=((tool, arguments if isinstance(arguments, str) else json.dumps(arguments)),))


def reply(message: AIMessage) -> Reply:
    """Answer what a LangChain message says, such as the offline storyteller's."""
    calls = [(made["name"], json.dumps(made["args"])) for made in message.tool_calls]
    broken = [(made["name"] or "", made["args"] or "") for made in message.invalid_tool_calls]
    return Reply(text=message.text, calls=(*calls, *broken))


def status(
    status: int, *, headers: Mapping[str, str] | None = None, message: str = "", code: str | None = None
) -> Status:
    """Refuse with an HTTP status; queue what the client's next try shall get behind it."""
    return Status(status, headers or {}, message, code)


def cut(after: int = 3, answer: Reply | None = None, *, politely: bool = False) -> Reply:
    """Break off after some pieces: drop the connection, or, politely, end the stream as if that were all."""
    return replace(
        answer or say("A story that nobody hears the end of."), stop_after=after, ending="end" if politely else "cut"
    )


def hang() -> Hang:
    """Never answer."""
    return Hang()


def hang_midstream(after: int = 3, answer: Reply | None = None) -> Reply:
    """Fall silent after some pieces, with the connection open."""
    return replace(answer or say("A story that nobody hears the end of."), stop_after=after, ending="hang")


class FakeOpenAI:
    """The server; a context manager.

    Attributes:
        requests: The parsed body of every request, oldest first.
        keys: The key that each request brought.
    """

    def __init__(self, responder: Responder | None = None) -> None:
        self.responder = responder
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.closing = threading.Event()
        self._behaviours: deque[Behaviour] = deque()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """What OPENAI_BASE_URL shall be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def queue(self, *behaviours: Behaviour) -> None:
        """Append what the next requests get, one each."""
        with self._lock:
            self._behaviours.extend(behaviours)

    def behave(self, body: dict[str, Any], key: str) -> Behaviour:
        """Record a request and choose what it gets."""
        with self._lock:
            self.requests.append(body)
            self.keys.append(key)
            if self._behaviours:
                return self._behaviours.popleft()
        if self.responder is None:
            return status(400, message="FakeOpenAI: nothing is queued and there is no responder")
        try:
            return self.responder(body)
        except Exception as error:
            return status(400, message=f"FakeOpenAI: the responder failed with {error!r}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    fake: FakeOpenAI


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Stay quiet: pytest shows stderr of every test that fails."""

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # clients that give up are part of the tests
            super().handle()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            self._send_status(status(404, message=f"FakeOpenAI: no such path: {self.path}"))
            return
        if unanswered := _unanswered(body["messages"]):
            said = f"An assistant message with 'tool_calls' must be followed by tool messages: {sorted(unanswered)}"
            self._send_status(status(400, message=said))
            return
        match self.server.fake.behave(body, self.headers.get("Authorization", "").removeprefix("Bearer ")):
            case Status() as refusal:
                self._send_status(refusal)
            case Hang():
                self._hang()
            case Reply() as answer if body.get("stream"):
                self._stream(answer, body)
            case Reply() as answer:
                self._send_whole(answer, body)

    def _hang(self) -> None:
        self.server.fake.closing.wait()
        self.close_connection = True

    def _drop(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _send_status(self, refusal: Status) -> None:
        message = refusal.message or f"FakeOpenAI says {refusal.status}"
        body = {"error": {"message": message, "type": "fake", "param": None, "code": refusal.code}}
        self._send_json(refusal.status, body, refusal.headers)

    def _send_whole(self, answer: Reply, request: dict[str, Any]) -> None:
        if answer.stop_after is not None:
            (self._hang if answer.ending == "hang" else self._drop)()
            return
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
        if answer.calls:
            message["tool_calls"] = [
                {"id": f"call_{place}", "type": "function", "function": {"name": tool, "arguments": arguments}}
                for place, (tool, arguments) in enumerate(answer.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
        self._send_json(200, _envelope("chat.completion", request) | {"choices": [choice], "usage": _USAGE}, {})

    def _send_json(self, code: int, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, answer: Reply, request: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for sent, event in enumerate(_events(answer, request)):
            if answer.stop_after is not None and sent >= answer.stop_after:
                if answer.ending == "end":
                    break
                (self._hang if answer.ending == "hang" else self._drop)()
                return
            if answer.delay:
                time.sleep(answer.delay)
            data = f"data: {event}\n\n".encode()
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")


def _unanswered(messages: list[dict[str, Any]]) -> set[str]:
    """Find calls without a result right behind them, and results without a call, both of which OpenAI refuses."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return {message["tool_call_id"]}
            open_calls.discard(message["tool_call_id"])
        elif open_calls:
            return open_calls
        else:
            open_calls = {call["id"] for call in message.get("tool_calls") or []}
    return open_calls


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _envelope(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    # Clients merge pieces by their id: two answers must not share one.
    identity = f"chatcmpl-{time.monotonic_ns()}"
    return {"id": identity, "object": kind, "created": 1_700_000_000, "model": request.get("model", "fake")}


def _events(answer: Reply, request: dict[str, Any]) -> Iterator[str]:
    """Yield the data of each event: text and arguments in small pieces, the end, the usage, [DONE]."""
    envelope = _envelope("chat.completion.chunk", request)

    def event(delta: dict[str, Any], finish: str | None = None) -> str:
        return json.dumps(envelope | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def piece_of_call(place: int, function: dict[str, str], **start: str) -> str:
        return event({"tool_calls": [{"index": place, **start, "function": function}]})

    yield event({"role": "assistant", "content": ""})
    for start in range(0, len(answer.text), 4):
        yield event({"content": answer.text[start : start + 4]})
    for place, (tool, arguments) in enumerate(answer.calls):
        yield piece_of_call(place, {"name": tool, "arguments": ""}, id=f"call_{place}", type="function")
        for start in range(0, len(arguments), 3):
            yield piece_of_call(place, {"arguments": arguments[start : start + 3]})
    yield event({}, answer.finish_reason)
    if (request.get("stream_options") or {}).get("include_usage"):
        yield json.dumps(envelope | {"choices": [], "usage": _USAGE})
    yield "[DONE]"
