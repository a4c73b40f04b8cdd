"""Compressed checkpoints: read back as written, with older ones beside them; damage and strangers are told apart."""

import sqlite3

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from stored_bytes import contents

from questbook.graphs.embedded.compression import compressing_serializer, decompress
from questbook.graphs.embedded.databases import open_checkpointer
from questbook.graphs.embedded.saved_game import read_saved_game
from questbook.graphs.errors import ForgettingError, UnreadableError
from questbook.graphs.forgetting.erasure import Erasure, files_with
from questbook.graphs.forgetting.phrase import Phrase

SAID = [
    message for n in range(20) for message in (HumanMessage(f"I go on {n}", id=f"h{n}"), AIMessage("Yes.", id=f"a{n}"))
]


def at(thread):
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


async def put(saver, thread, messages=SAID):
    checkpoint = empty_checkpoint() | {"channel_values": {"messages": messages}}
    return await saver.aput(at(thread), checkpoint, {"source": "loop", "step": 1}, {})


def test_values_come_back_and_take_a_fraction():
    serde = compressing_serializer()
    kind, data = serde.dumps_typed(SAID)
    assert kind == "msgpack+zlib"
    assert serde.loads_typed((kind, data)) == SAID
    plain = JsonPlusSerializer().dumps_typed(SAID)
    assert len(data) < len(plain[1]) / 5
    assert serde.loads_typed(plain) == SAID, "as older versions wrote it"
    assert decompress(kind, data) == decompress(*plain) == plain[1]


async def test_checkpoints_of_older_versions_are_read_and_cut_beside_new_ones(tmp_path):
    file = tmp_path / "checkpoints.db"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await put(saver, "old", [HumanMessage("of the Silver Heron")])
    async with open_checkpointer(file) as saver:
        await put(saver, "new", [HumanMessage("of the Silver Heron")])
        assert [kind for (kind,) in await saver.conn.execute_fetchall("SELECT type FROM checkpoints ORDER BY 1")] == [
            "msgpack",
            "msgpack+blobs+zlib",
        ]
        for thread in ("old", "new"):
            assert (await saver.aget(at(thread)))["channel_values"]["messages"][0].text == "of the Silver Heron"
        assert await Erasure(saver).cut(["old", "new"], Phrase("silver heron")) == 2
        await Erasure(saver).compact()
    assert b"Heron" not in b"".join(contents(tmp_path).values())


async def test_words_in_compressed_values_are_found_by_file(tmp_path):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        config = await put(saver, "one", [HumanMessage("of the Silver Heron " * 9)])
        await saver.aput_writes(config, [("messages", [HumanMessage("and the Golden Carp " * 9)])], "task")
    assert b"Heron" not in (tmp_path / "checkpoints.db").read_bytes()
    for words in ("silver heron", "golden carp"):
        assert files_with(tmp_path, Phrase(words)) == ["checkpoints.db"]
    assert files_with(tmp_path, Phrase("bronze pike")) == []


def test_letters_in_compressed_bytes_are_no_words(tmp_path):
    serde = compressing_serializer()
    with sqlite3.connect(tmp_path / "noise.db") as database:
        database.execute("CREATE TABLE noise (value)")
        for length in (1, 300, 600, 1_200, 2_500, 5_000, 10_000, 20_000, 40_000):
            _, data = serde.dumps_typed("x" * length)
            database.execute("INSERT INTO noise VALUES (?)", (data[:2] + b" among letters zqxwvk " * 9,))
    assert files_with(tmp_path, Phrase("zqxwvk")) == []


async def test_a_damaged_value_is_said_to_be_unreadable(tmp_path):
    file = tmp_path / "checkpoints.db"
    async with open_checkpointer(file) as saver:
        await put(saver, "one")
        with sqlite3.connect(file) as database:
            database.execute("UPDATE checkpoints SET checkpoint = ?", (b"x\x9crubbish",))
        with pytest.raises(UnreadableError, match="cannot be read: The value is damaged"):
            await read_saved_game(saver, "one")
        with pytest.raises(ForgettingError, match="A checkpoint cannot be read: The value is damaged"):
            await Erasure(saver).cut(["one"], Phrase("silver heron"))


async def test_what_another_cipher_wrote_needs_its_own_serializer(tmp_path):
    class Rot13:
        def encrypt(self, plaintext):
            return "rot", bytes((byte + 13) % 256 for byte in plaintext)

        def decrypt(self, ciphername, ciphertext):
            return bytes((byte - 13) % 256 for byte in ciphertext)

    kind, data = EncryptedSerializer(Rot13()).dumps_typed(SAID)
    assert decompress(kind, data) is None
    with pytest.raises(ValueError, match="'rot', which needs the serializer that wrote it"):
        compressing_serializer().loads_typed((kind, data))
