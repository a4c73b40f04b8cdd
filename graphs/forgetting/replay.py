"""What was forgotten is forgotten again: `forget_again`, after a backup of an earlier day was restored."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from questbook.graphs.errors import ForgettingError, SettingsError
from questbook.graphs.forgetting.forget import Forgetting, Removal, forget
from questbook.graphs.forgetting.suppression import KEY_VARIABLE, VARIABLE, SuppressionList
from questbook.memory.store.any_store import with_async_methods
from questbook.memory.timeline.namespaces import unescape_label

_PAGE = 500


async def forget_again(
    store: BaseStore, checkpointer: BaseCheckpointSaver[Any], users: Iterable[str], since: datetime
) -> list[Removal]:
    """Forget again what the suppression list says was forgotten since a time, after a backup of then was restored.

    The memories of `users` are looked through, and of those that the store's namespaces name. If the environment names
    no list and key, or a list that cannot be read, it is a SettingsError; of lines, at the end, a ForgettingError.
    """
    if (listed := SuppressionList.find()) is None:
        raise SettingsError(f"Nothing says what was forgotten: set {VARIABLE} and {KEY_VARIABLE}.")
    lines, unreadable = await asyncio.to_thread(listed.since, since)
    done, named = list[Removal](), await _users_of(with_async_methods(store))
    for user in sorted({*users, *named} if lines else ()):
        every = Forgetting(store, checkpointer, user, "")
        if listed.names(lines, "user", user):
            done.append(await every.forget_user())
            continue
        for campaign in await every.campaigns():
            one = every.of_campaign(campaign)
            if listed.names(lines, "campaign", user, campaign):
                done.append(await one.forget_campaign())
                continue
            texts = {text async for text in one.texts()}
            for words in await asyncio.to_thread(listed.find_words, lines, user, campaign, texts):
                done.append(await forget(store, user, campaign, words=words, checkpointer=checkpointer))
    if unreadable:
        problem = f"What line {', '.join(map(str, unreadable))} of {listed.path} says cannot be read, and may be back"
        hint = "Put back a copy of the list that has it and repeat this, or take it out"
        raise ForgettingError(f"{problem}. All else, {len(done)} of the list, is forgotten again. {hint}.")
    return done


async def _users_of(store: BaseStore) -> set[str]:
    labels, users = set[str](), set[str]()
    while page := await store.alist_namespaces(max_depth=1, limit=_PAGE, offset=len(labels)):
        labels |= {space[0] for space in page}
    for label in labels:
        with suppress(ValueError):  # a label that no name escapes to, such as that of teams
            users.add(unescape_label(label))
    return users
