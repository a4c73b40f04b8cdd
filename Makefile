# make play      the game, in the terminal; ARGS="--campaign isle" passes flags on
# make web       the game on a page in the browser; ARGS="--port 8001" passes flags on
# make install   what `make play` needs, and nothing started
# make test      the tests, three files at a time, without the slow ones; SLOW=1 runs all
# make slow      the slow ones: kills, a million rows, long games
# make test-postgres  the tests of the doors, with games in a PostgreSQL database
# make slow-postgres  the slow ones of some doors, with games in a database; DOORS_SLOW="web_tabs" names others
# make lint      format, lint, types
# make check     lint and test; CI runs that and the slow tests
# make studio    langgraph dev, with LangGraph Studio
# make dist      the wheel and the source archive in dist/, built and checked
# make docs      the recorded games, the picture of the machine and the terminal recording, made again
# make site      the documentation as a site, in site/
# make clean     removes .venv and caches; games are kept elsewhere and stay
#
# Python: the first of these that runs, is 3.11 or later and can make a virtual environment. PYTHON=… overrides.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
	if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo "$$python"; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Stamps: the second `make play` does no pip work.
INSTALLED := $(VENV)/.installed
TOOLS := $(VENV)/.tools
SITE := $(VENV)/.site
# A .env beside this file sets keys and QUESTBOOK_ variables.
ENV := set -a; if [ -f .env ]; then . ./.env; fi; set +a;
MARKS := $(if $(SLOW),,-m "not slow")

.PHONY: play web install test slow test-postgres slow-postgres lint check studio dist docs site clean

play: $(INSTALLED)
	@$(ENV) exec $(BIN)/questbook play $(ARGS)

web: $(VENV)/.web
	@$(ENV) exec $(BIN)/questbook web $(ARGS)

install: $(INSTALLED)

test: $(TOOLS)
	@$(BIN)/python -m pytest -n 3 --dist loadfile -rs $(MARKS) $(ARGS)

# The files that take longest begin first, so that none is waited for at the end.
LONGEST := deploy monitoring_drain kills web_kept trials load_benchmark web_access patterns web_safety web_sign_in \
	web_page monitoring forty_turns web_tabs web_controls studio_forks homes scopes_databases studio docs store_model

slow: $(TOOLS)
	@$(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder -rs -m slow $(ARGS) \
		$(LONGEST:%=tests/test_%.py) tests

DOORS := terminal_pipe terminal_travel campaign_file history_moves web_owner web_shares web_tabs web_endpoints

test-postgres: $(TOOLS)
	@TESTS_IN_DATABASE=1 $(BIN)/python -m pytest -n 2 --dist loadfile -rs -m "not slow" $(ARGS) $(DOORS:%=tests/test_%.py)

# What says most of a database. Left out is what takes minutes: browsers with many tabs, fifty mutants of a file.
DOORS_SLOW := terminal_travel history_moves web_guests web_shares

slow-postgres: $(TOOLS)
	@TESTS_IN_DATABASE=1 $(BIN)/python -m pytest -n 2 --dist loadfile -rs -m slow -k "not fifty_mutated" $(ARGS) \
		$(DOORS_SLOW:%=tests/test_%.py)

lint: $(TOOLS)
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy --strict -p questbook
	@$(BIN)/python docs/snippets.py

check: lint test

studio: $(VENV)/.studio $(VENV)/.web
	@$(ENV) exec $(BIN)/langgraph dev $(ARGS)

dist: $(TOOLS)
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist .
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/check-wheel-contents dist/*.whl

docs: $(SITE)
	@$(BIN)/python docs/refresh.py
	@$(BIN)/python docs/recording.py
	@$(BIN)/python docs/pictures.py

site: $(SITE)
	@$(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

clean:
	rm -rf $(VENV) dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis .langgraph_api *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Questbook needs Python 3.11 or later with venv (Debian, Ubuntu: apt install python3-venv). Say which with make PYTHON=/path/to/python."; exit 1; }
	@echo "Making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(INSTALLED): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Questbook (once; a minute or two)"
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.web $(VENV)/.studio: $(VENV)/.%: $(INSTALLED)
	@echo "Installing the extra $* (once)"
	@$(PIP) install -c constraints.txt -e ".[$*]"
	@touch $@

# Dependency groups need pip 25.1; a new environment may come with an older one.
$(TOOLS): $(INSTALLED)
	@echo "Installing the tools for tests (once)"
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install -c constraints.txt -e . --group dev
	@touch $@

$(SITE): $(TOOLS)
	@echo "Installing what makes the documentation (once)"
	@$(PIP) install -c constraints.txt --group site
	@touch $@
