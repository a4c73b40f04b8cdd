"""A campaign that another program holds, without an event loop."""

from contextlib import AbstractContextManager

from questbook.graphs.local.file_home import FileHome, hold_file
from questbook.graphs.local.saved_game import thread_id_of


def hold_campaign(home: FileHome, user: str, campaign: str) -> AbstractContextManager[None]:
    busy = f"Campaign {campaign!r} is open in another terminal or page. Close it, or play another: --campaign NAME."
    return hold_file(home.lock_of(thread_id_of(user, campaign)), busy)
