"""How much one person, or one address, may do: settings, rates, and quotas of what is kept.

They count where people sign in; one person at home has none. Each process counts rates by itself.
"""

import ipaddress
import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, Self

from starlette.exceptions import HTTPException

from questbook.graphs.errors import SettingsError
from questbook.graphs.local.home import Home
from questbook.graphs.local.saved_game import last_of_threads

_PREFIX = "QUESTBOOK_MOST_"
_MEASURED_SECONDS = 600.0  # how long it is believed how much somebody keeps
_MOST_KEYS = 10_000
_FORGET = "questbook forget --user USER --campaign NAME"


def too_much(text: str, wait: float = 0.0) -> HTTPException:
    """Refuse somebody who asks for more than they may have; after `wait` seconds they may, 0: waiting does not help."""
    return HTTPException(429, text, {"retry-after": str(math.ceil(wait))} if wait else None)


class Limits(NamedTuple):
    """What one person may have at most; each is also a setting, such as QUESTBOOK_MOST_TURNS."""

    sign_ins: int = 20  # a minute, of one address and of one person
    address_requests: int = 3000  # a minute, of one address
    requests: int = 1200  # a minute
    turns: int = 30  # a minute
    campaigns: int = 200
    megabytes: int = 5000  # of the campaigns that are theirs
    open_campaigns: int = 10  # at the same time
    streams: int = 20  # pages that listen
    idle_minutes: int = 120  # after which a session ends
    session_hours: int = 12  # after which it ends in any case

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ) -> Self:
        """Read the settings; a SettingsError says which is no whole number from 1 on."""
        given = {field: variables.get(f"{_PREFIX}{field.upper()}", "").strip() for field in cls._fields}
        for field, text in given.items():
            if text and not (text.isascii() and text.isdecimal() and int(text[:12]) > 0 and len(text) < 12):
                raise SettingsError(f"{_PREFIX}{field.upper()}: got {text!r:.40}; expected a whole number from 1 on.")
        return cls(**{field: int(text) for field, text in given.items() if text})


class Rate:
    """A rate of `most` in a minute, by key; so many may also come at once."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._each, self._clock = 60.0 / most, clock
        self._whole: dict[str, float] = {}  # when the allowance of a key will be whole again
        self._most_keys = _MOST_KEYS

    def wait(self, key: str, *, counts: bool = True) -> float:
        """Count one, if it `counts`, and return 0.0; or count none, and return the seconds until there is room."""
        now = self._clock()
        whole = max(self._whole.get(key, now), now) + self._each
        if (wait := whole - now - 60.0) > 1e-6:
            return wait
        if not counts:
            return 0.0
        if len(self._whole) >= self._most_keys:
            self._whole = {key: when for key, when in self._whole.items() if when > now}
            self._most_keys = max(_MOST_KEYS, 2 * len(self._whole))
        self._whole[key] = whole
        return 0.0

    def check(self, key: str, *, counts: bool = True) -> None:
        """Count one, if it `counts`, or answer with the seconds after which there is room for it."""
        if wait := math.ceil(self.wait(key, counts=counts)):
            raise too_much(f"That was too often. Try again in {wait} second{'' if wait == 1 else 's'}.", wait)


class Usage(NamedTuple):
    """What somebody keeps."""

    campaigns: int
    bytes: int
    measured: float


class Quotas:
    """What people may still do: each `check` refuses what is too much."""

    def __init__(self, home: Home, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._home, self._clock = limits, home, clock
        self._turns = Rate(limits.turns, clock)
        self._usages: dict[str, Usage] = {}

    def check_turn(self, person: str) -> None:
        """Count a turn of a person."""
        if wait := self._turns.wait(person):
            raise too_much(f"You may play {self.limits.turns} turns a minute. Wait a moment.", wait)

    def check_open(self, what: Literal["pages", "campaigns"], count: int) -> None:
        """Check how many pages listen, or how many campaigns are open, for a person already."""
        most = self.limits.streams if what == "pages" else self.limits.open_campaigns
        if count >= most:
            raise too_much(f"You may have {most} {what} open at the same time. Close one, or wait a minute.", 60.0)

    async def check_kept(self, owner: str, *, is_new: bool) -> None:
        """Check what the owner of a campaign keeps, before something is added to it, or a new one begins."""
        usage, now = self._usages.get(owner), self._clock()
        if usage is None or is_new or now >= usage.measured + _MEASURED_SECONDS:
            usage = self._usages[owner] = await usage_of(self._home, owner, now)
        if is_new and usage.campaigns >= self.limits.campaigns:
            have = f"{owner!r:.60} has {usage.campaigns} campaigns, and may have no more"
            raise too_much(f"{have}. Ask the owner of this server to forget one: {_FORGET}.")
        if usage.bytes >= self.limits.megabytes * 1_000_000:
            have = f"The campaigns of {owner!r:.60} take {usage.bytes / 1e6:,.0f} MB of {self.limits.megabytes:,}"
            raise too_much(f"{have}. Ask the owner of this server to prune them, or to forget one: {_FORGET}.")


async def usage_of(home: Home, user: str, now: float) -> Usage:
    """Measure what somebody keeps: the bytes of their checkpoints, and of their memories with vectors.

    Indexes and free pages of the files are not counted. The time grows with what they keep.
    """
    async with home.open_checkpointer() as saver:
        saved = [one async for one in last_of_threads(saver, user)]
    size = await home.size_of(user, [one.thread_id for one in saved])
    return Usage(len({(one.machine, one.campaign) for one in saved}), size, now)


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the network of 64 bits that one house has."""
    try:
        read = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(read, ipaddress.IPv4Address) or read.ipv4_mapped:  # a proxy may write either as the other
        return str(getattr(read, "ipv4_mapped", None) or read)
    return str(ipaddress.ip_network((read, 64), strict=False))
