import stat

import pytest

from questbook.graphs.embedded.home import Home, HomeError


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_environment_names_the_home_and_it_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path / "a" / "b"))
    home = Home.find()
    assert home.path == tmp_path / "a" / "b"
    assert (mode(home.path), mode(home.locks)) == (0o700, 0o700)
    assert {home.checkpoints.name, home.memory.name, home.prompt_history.name} == {
        "checkpoints.db",
        "memory.db",
        "history",
    }


def test_without_it_the_users_data_directory_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("QUESTBOOK_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    home = Home.find()
    assert home.path.name == "questbook"
    assert tmp_path in home.path.parents


def test_tilde_is_the_users_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUESTBOOK_HOME", "~/games")
    assert Home.find().path == tmp_path / "games"


def test_a_home_below_a_file_is_refused_with_its_name_and_what_to_do(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path / "file" / "games"))
    with pytest.raises(HomeError, match=r"file/games.*QUESTBOOK_HOME"):
        Home.find()
    assert (tmp_path / "file").read_text() == "mine"


def test_a_home_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    monkeypatch.setattr(
        "questbook.graphs.embedded.home.os.access", lambda *_: False
    )  # the tests may run as root, who may do anything
    with pytest.raises(HomeError, match="no permission to write"):
        Home.find()


def test_a_home_of_nobody_is_refused(monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", "~nobody-of-this-name/games")
    with pytest.raises(HomeError, match="nobody-of-this-name"):
        Home.find()
