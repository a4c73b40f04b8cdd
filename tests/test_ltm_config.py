"""`ltm_config.json`: the extension's own file is read as it is; everything wrong is named with what is allowed."""

import json

import pytest
from timing import cpu_seconds

from questbook.memory.errors import LtmConfigError, StoreConfigError
from questbook.memory.ltm.config import LtmConfig

EXTENSIONS = {
    "ltm_context": {
        "injection_location": "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES",
        "memory_context_template": "{name2} remembers:\n{all_memories}\n({name1} asked.)",
        "memory_template": '{time_difference}, {memory_name} said:\n"{memory_message}"',
    },
    "ltm_writes": {"min_message_length": 50},
    "ltm_reads": {"max_cosine_distance": 0.7, "num_memories_to_fetch": 4, "memory_length_cutoff_in_chars": 500},
}


def test_the_extensions_file_is_read_under_its_own_names(tmp_path):
    path = tmp_path / "ltm_config.json"
    path.write_text("\ufeff" + json.dumps(EXTENSIONS), "utf-8")
    config = LtmConfig.read(path)
    told = config.model_dump()
    assert told.pop("ltm_reads") == EXTENSIONS["ltm_reads"] | {"visible": "now"}
    assert told.pop("ltm_writes") == EXTENSIONS["ltm_writes"] | {"condense_longer_than": 0}
    assert told == {"ltm_context": EXTENSIONS["ltm_context"]}


def test_the_defaults_are_the_extensions_and_the_example_can_be_written(tmp_path):
    config = LtmConfig()
    assert config.ltm_context.injection_location == "BEFORE_NORMAL_CONTEXT"
    assert config.ltm_writes.min_message_length == 100
    assert config.ltm_reads.model_dump() == {
        "max_cosine_distance": 0.60,
        "num_memories_to_fetch": 2,
        "memory_length_cutoff_in_chars": 1000,
        "visible": "now",
    }
    config.write(tmp_path / "ltm_config.json")
    assert LtmConfig.read(tmp_path / "ltm_config.json") == config


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ltm_context": {"injection_location": "HERE"}}, "'HERE': .*'BEFORE_NORMAL_CONTEXT' or 'AFTER_NORMAL"),
        (
            {"ltm_context": {"memory_template": "{message}"}},
            r"no field \{message\}; its fields are \{time_difference\}",
        ),
        ({"ltm_context": {"memory_context_template": "{name1.__class__}"}}, r"no field \{name1.__class__\}"),
        ({"ltm_context": {"memory_context_template": "{0}"}}, r"no field \{0\}"),
        ({"ltm_context": {"memory_template": "{"}}, "written twice"),
        ({"ltm_context": {"memory_template": "{memory_name:999999999999}"}}, "without a format"),
        ({"ltm_reads": {"num_memories_to_fetch": -1}}, "num_memories_to_fetch is -1: .*greater than or equal to 0"),
        ({"ltm_reads": {"max_cosine_distance": "near"}}, "max_cosine_distance is 'near': .*number"),
        ({"ltm_reads": {"max_cosine_distance": 2.1}}, "less than or equal to 2"),
        ({"ltm_reads": {"max_cosine_distance": float("nan")}}, "max_cosine_distance is nan"),
        ({"ltm_reads": {"num_memories_to_fetch": True}}, "num_memories_to_fetch is True: .*integer"),
        ({"ltm_reads": {"memory_length_cutoff_in_chars": 0}}, "greater than or equal to 1"),
        ({"ltm_reads": {"visible": "later"}}, "'now' or 'next_session'"),
        ({"ltm_writes": {"min_length": 3}}, "no ltm_writes.min_length; there are min_message_length"),
        ({"reads": {}}, "no reads; there are ltm_context, ltm_writes, ltm_reads"),
        ({"ltm_reads": 5}, "ltm_reads is 5"),
        ([], r"got \[\]; expected an object"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(given, said):
    with pytest.raises(LtmConfigError, match=said):
        LtmConfig.of(given)


def test_all_that_is_wrong_is_said_at_once_and_in_which_file(tmp_path):
    path = tmp_path / "ltm_config.json"
    path.write_text(json.dumps({"ltm_reads": {"num_memories_to_fetch": -1, "k": 2}, "other": 1}))
    with pytest.raises(LtmConfigError) as raised:
        LtmConfig.read(path)
    assert all(word in str(raised.value) for word in (str(path), "num_memories_to_fetch", "ltm_reads.k", "other"))
    assert isinstance(raised.value, StoreConfigError)


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "no JSON"), ("", "no JSON"), ('{"a": 1, "a": 2}', "'a' stands there twice"), ("[" * 100_000, "no JSON")],
)
def test_a_file_that_is_no_json_is_said(tmp_path, text, said):
    path = tmp_path / "ltm_config.json"
    path.write_text(text)
    with pytest.raises(LtmConfigError, match=said):
        LtmConfig.read(path)
    with pytest.raises(LtmConfigError, match="cannot be read"):
        LtmConfig.read(tmp_path / "nowhere.json")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LtmConfigError, match="UTF-8"):
        LtmConfig.read(path)


@pytest.mark.slow
def test_a_file_of_many_names_and_a_number_of_many_digits_are_refused_at_once(tmp_path):
    file = tmp_path / "ltm_config.json"
    file.write_text(json.dumps({f"name{number}": 1 for number in range(100_000)}))

    def refused():
        with pytest.raises(LtmConfigError):
            LtmConfig.read(file)

    assert cpu_seconds(refused, 5) < 5
    file.write_text('{"ltm_reads": {"num_memories_to_fetch": ' + "9" * 5000 + "}}")
    with pytest.raises(LtmConfigError, match="JSON"):
        LtmConfig.read(file)
