"""The data directory: where it is, that it is private, and what is said if it cannot be used."""

import stat

import pytest

from questbook.graphs.local.home import Home, HomeError


def test_the_environment_names_the_home_and_it_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path / "a" / "b"))
    home = Home.find()
    assert home.path == tmp_path / "a" / "b"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home.path, home.locks)] == [0o700, 0o700]
    names = {home.checkpoints.name, home.memory.name, home.prompt_history.name}
    assert names == {"checkpoints.db", "memory.db", "history"}


@pytest.mark.parametrize(("named", "found"), [("", "questbook"), ("~/games", "games")])
def test_without_it_or_with_a_tilde_it_is_in_the_users_directory(tmp_path, monkeypatch, named, found):
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("QUESTBOOK_HOME", named)
    home = Home.find()
    assert home.path.name == found
    assert tmp_path in home.path.parents


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("file/games", r"file/games.*QUESTBOOK_HOME"),
        (".", "no permission to write"),
        ("~nobody-of-this-name/games", "nobody-of-this-name"),
    ],
)
def test_a_home_that_cannot_be_used_is_refused_with_its_name_and_what_to_do(tmp_path, monkeypatch, named, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("QUESTBOOK_HOME", named)
    monkeypatch.setattr("questbook.graphs.local.home.os.access", lambda *_: False)  # root may do anything
    with pytest.raises(HomeError, match=reason):
        Home.find()
    assert (tmp_path / "file").read_text() == "mine"
