"""Sessions of the page kept in memory, sign-in with a few tokens, and the token of a page."""

from questbook.graphs.identity.sessions import Sessions
from questbook.graphs.web.guard import HEADER, page_token
from questbook.graphs.web.limits import Limits
from questbook.graphs.web.sign_in import People, SignIn


class MemorySessions:
    """A `TableSessions` of one process."""

    def __init__(self):
        self.kept = {}

    async def begin(self, key, session, *, began_since):
        self.kept = {k: s for k, s in self.kept.items() if s.began >= began_since}
        self.kept[key] = session

    async def read(self, key):
        return self.kept.get(key)

    async def renew(self, key, used):
        if key in self.kept:
            self.kept[key] = self.kept[key]._replace(used=used)

    async def end(self, key, person=""):
        self.kept = {k: session for k, session in self.kept.items() if k != key and session.person != (person or None)}


class Audit(list):
    """An audit log that a test can read."""

    async def write(self, event, who, address, **more):
        self.append({"event": event, "who": who, "address": address} | more)


def sign_in_of(people, secret="t" * 20, *, audit=None, limits=None):
    sessions = Sessions(MemorySessions(), secret, idle=3600, most=36000)
    return SignIn(People(people), sessions, Audit() if audit is None else audit, limits or Limits())


def token_header(home, person=""):
    """What a page of a data directory sends with each change, for a person without a session."""
    return {HEADER: page_token((home.path / "page-token").read_text(), person)}
