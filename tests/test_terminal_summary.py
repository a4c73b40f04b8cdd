"""The running summary in the terminal: what left the conversation, as it changes from question to question."""

from program import questbook


def test_the_summary_is_shown_as_it_changes_and_the_fidelity_with_it(tmp_path):
    words = "My boat is the Heron.\nMy dog is called Bo.\n/prompt summary\nMiso ate mice.\n/prompt summary\n/prompt\n"
    settings = {"QUESTBOOK_BUFFER": "summary", "QUESTBOOK_SUMMARY_OFFSET": "0"}
    run = questbook(tmp_path, "chat", words=words, **settings)
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.split("summary (")[1:3]
    first, second = (told.split("\n\n")[0] for told in (first, second))
    assert "Heron" in first
    assert "Bo" in first, "as it is now, not as the last prompt had it"
    assert "Miso" not in first
    assert "Miso" in second
    assert "Word for word: 0 of 2 earlier turns." in run.stdout
