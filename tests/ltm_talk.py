"""Talk between Anon and Miku: what is said, and what of it is recalled for a message."""

from datetime import UTC, datetime, timedelta

from questbook.memory.ltm.config import LtmConfig
from questbook.memory.ltm.memories import recall_messages, remember_message

NOW = datetime(2026, 7, 10, 12, tzinfo=UTC)
BOATS = "I grew up by the sea, in a small town where my father repaired boats and my mother taught the piano."
CAT = "My cat is called Miso, she is nine years old, and she always sleeps on my keyboard whenever I want to work."
TRAIN = "Next week I take the night train to Vienna, because my younger sister is getting married there on Saturday."
EVERYTHING = LtmConfig.of({"ltm_reads": {"max_cosine_distance": 2.0, "num_memories_to_fetch": 10}})
SHORT = LtmConfig.of({"ltm_writes": {"min_message_length": 0}, "ltm_reads": {"max_cosine_distance": 2.0}})


async def tell(store, *texts, character="Miku", speaker="Anon", config=None, **more):
    for number, text in enumerate(texts):
        at = NOW - timedelta(days=len(texts) - number)
        await remember_message(store, character, speaker, text, config, **{"said_at": at, **more})


async def recalled(store, message, config=EVERYTHING, character="Miku", **more):
    return [memory.text for memory in await recall_messages(store, character, message, config, **more)]
