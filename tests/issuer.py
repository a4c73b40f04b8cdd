"""An OpenID Connect issuer on this computer: its configuration and keys over HTTP, and tokens that it signs."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "questbook"
SECRET = "s" * 32


@cache
def private_key(kind="rsa", number=0):
    """A key of this run; making one of RSA takes a while."""
    if kind == "rsa":
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1()) if kind == "ec" else ed25519.Ed25519PrivateKey.generate()


ALGORITHM = {"rsa": "RS256", "ec": "ES256", "ed": "EdDSA"}


def public_jwk(name, kind="rsa", number=0, **more):
    algorithm = jwt.get_algorithm_by_name(ALGORITHM[kind])
    return algorithm.to_jwk(private_key(kind, number).public_key(), as_dict=True) | {"kid": name} | more


def signed(issuer, subject="bob", *, name="one", kind="rsa", number=0, secret="", headers=None, without=(), **claims):
    """Sign a token for a quarter of an hour; `claims` replace its own."""
    now = int(time.time())
    said = {"iss": issuer, "sub": subject, "aud": AUDIENCE, "iat": now, "exp": now + 900} | claims
    said = {claim: value for claim, value in said.items() if claim not in without}
    key, algorithm = (secret, "HS256") if secret else (private_key(kind, number), ALGORITHM[kind])
    return jwt.encode(said, key, algorithm, headers=({} if secret else {"kid": name}) | (headers or {}))


class Issuer:
    """What it says, and which paths were asked for; `status` is that of each answer."""

    def __init__(self, url):
        self.url, self.keys, self.asked, self.status, self.about = url, [public_jwk("one")], [], 200, {}

    def answer(self, path):
        if path == "/keys":
            return {"keys": self.keys}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | self.about

    def token(self, subject="bob", **claims):
        return signed(self.url, subject, **claims)


@contextmanager
def issuer_at_work():
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            issuer.asked.append(self.path)
            self.send_response(issuer.status)
            self.end_headers()
            self.wfile.write(json.dumps(issuer.answer(self.path)).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer = Issuer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
