"""What an assistant of `questbook chat` put away: looked through and changed by hand, and forgotten."""

import re

import pytest
from program import questbook
from stored_bytes import files_saying


@pytest.mark.slow
def test_the_archive_of_an_assistant_is_listed_searched_edited_and_deleted(tmp_path):
    archived = "Archive that: the cabin key hangs under the stairs.\nArchive this: Kari takes the early ferry.\n"
    questbook(tmp_path, "chat", "--assistant", "work", words=archived)
    place = ("--assistant", "work")
    listed = questbook(tmp_path, "memories", "list", *place).stdout.splitlines()
    assert [line.partition("archive: ")[2] for line in listed] == [
        "Kari takes the early ferry.",
        "the cabin key hangs under the stairs.",
    ]
    best = questbook(tmp_path, "memories", "search", "the key of the cabin", *place).stdout.splitlines()[0]
    assert re.search(r"archive \(distance 0\.\d\d\): the cabin key", best)
    key = best.split()[0]
    assert questbook(tmp_path, "memories", "edit", key, "the cabin key is lost", *place).returncode == 0
    assert "is lost" in questbook(tmp_path, "memories", "search", "the key of the cabin", *place).stdout
    assert "deleted: " in questbook(tmp_path, "memories", "delete", key, *place).stdout
    assert len(questbook(tmp_path, "memories", "list", *place).stdout.splitlines()) == 1
    assert "Nothing is remembered" in questbook(tmp_path, "memories", "list", "--assistant", "companion").stdout
    everything = questbook(tmp_path, "memories", "delete", "--all", *place)
    assert (everything.returncode, "questbook forget" in everything.stderr) == (2, True)


def test_words_are_forgotten_from_a_talk_on_all_lines_after_asking(tmp_path):
    words = "My name is Ann\nI like absinthe\nArchive that: absinthe is green\n/undo\nI like tea\n"
    questbook(tmp_path, "chat", words=words)
    assert files_saying(tmp_path, "absinthe")
    kept = questbook(tmp_path, "chat", words="/forget absinthe\nno\n/core human\n")
    assert "core.sections.human.value" in kept.stdout
    assert "absinthe" in kept.stdout.rpartition("Core memory")[2]
    run = questbook(tmp_path, "chat", words="/forget absinthe\ny\ny\n/core human\nWhat do I like?\n")
    assert "Forgotten: 4 memories" in run.stderr, "two exchanges, the entry and the fact"
    assert "absinthe" not in run.stdout.rpartition("Core memory")[2]
    assert files_saying(tmp_path, "absinthe") == []


@pytest.mark.slow
def test_facts_go_back_with_the_turn_and_are_shown_listed_deleted_and_forgotten(tmp_path):
    words = "My sister Anna lives in Bergen\nI live in Oslo\nI don't live in Oslo any more\nWhere do I live?\n"
    back = "/undo\n/undo\nWhere do I live?\n/why\n/why Oslo\n"
    told = questbook(tmp_path, "chat", words=f"{words}/why Oslo\n{back}").stdout
    before, _, after = told.partition("Back at the end of turn")
    assert "I do not know." in before
    assert "The user lives in Oslo. (no longer)" in before
    assert "You live in Oslo." in after
    assert "(no longer)" not in after
    assert "My sister Anna lives in Bergen" in after.partition("What it learnt")[2], "what was said that taught it"
    listed = questbook(tmp_path, "memories", "list", "--assistant", "companion").stdout
    assert "Facts: 3" in listed
    assert "On other branches: 1" in listed
    assert "Anna lives" in questbook(tmp_path, "memories", "search", "Bergen", "--assistant", "companion").stdout
    key = next(line.split()[0] for line in listed.splitlines() if line.endswith("The user lives in Oslo."))
    assert "deleted: " in questbook(tmp_path, "memories", "delete", key, "--assistant", "companion").stdout
    run = questbook(tmp_path, "chat", words="/forget Bergen\ny\ny\nWhere does Anna live?\n")
    assert "Forgotten" in run.stderr
    assert "Anna lives in [forgotten]." not in run.stdout, "what was forgotten is no answer"
    assert files_saying(tmp_path, "Bergen") == []
