# Everything a developer does here, by name. `make` alone lists the commands.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first one that is new enough; `make PYTHON=…` names another.
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && break; done)
VENV := .venv
BIN := $(VENV)/bin
# The stamps say which lock the environment was made from; a changed lock makes it anew.
RUN_STAMP := $(VENV)/.run-stamp
DEV_STAMP := $(VENV)/.dev-stamp
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help setup run test chaos check fix bench docs lock audit clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Jobwheel needs Python 3.11 or later, and none was found; name one: make $(MAKECMDGOALS) PYTHON=…"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): requirements/run.txt pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --require-hashes -r requirements/run.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV_STAMP): requirements/dev.txt $(RUN_STAMP)
	$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

setup: $(DEV_STAMP) ## make the environment for development (.venv)

run: $(RUN_STAMP) ## start an admin, an example executor and sample jobs; watch them run (Ctrl-C stops)
	@$(BIN)/jobwheel demo --data-dir .jobwheel $(ARGS)

# Two tests run at once; WORKERS=0 does without. Those that kill processes and count what became of each run have the
# machine for themselves. Each test has more time than when it is run by name: two share two cores, and what waits for
# an event does so for 20 seconds before it says for which. A time-out that comes while a failure is told would end the
# run. With two, tracebacks are the interpreter's own: Python 3.11.7 cannot always parse a source in a worker.
WORKERS ?= 2
TIME_LIMIT := --timeout 30
TWO_AT_ONCE := -n $(WORKERS) --dist worksteal $(TIME_LIMIT) -rfE --tb native

test: $(DEV_STAMP) ## run all tests
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	@status=0; \
	$(BIN)/python -m pytest $(TWO_AT_ONCE) --ignore=tests/acceptance --ignore=tests/interop || status=$$?; \
	$(BIN)/python -m pytest $(TWO_AT_ONCE) -rs tests/interop || status=$$?; \
	$(BIN)/python -m pytest $(TIME_LIMIT) tests/acceptance || status=$$?; \
	exit $$status
endif

# Rounds of each fault; those that last a minute have a quarter of them.
ROUNDS ?= 20
VERDICTS := build/verdicts.jsonl

CHAOS_TESTS := tests/acceptance/test_chaos.py $(addprefix tests/acceptance/test_,kill.py chain_kill.py retry_kill.py executor_faults.py late_answers.py \
	admin_faults.py stop_races.py schedule_faults.py) tests/integration/engine/test_clock_steps.py

chaos: $(DEV_STAMP) ## prove that faults lose and double nothing, many rounds of each (an hour), and write the table anew
	@mkdir -p $(dir $(VERDICTS)) && rm -f $(VERDICTS)
	@status=0; \
	JOBWHEEL_CHAOS_ROUNDS=$(ROUNDS) JOBWHEEL_CHAOS_REPORT=$(VERDICTS) \
		$(BIN)/python -m pytest -s -p no:randomly $(CHAOS_TESTS) $(ARGS) || status=$$?; \
	$(BIN)/python -m tests.support.report $(VERDICTS) docs/explanation/proof.md && exit $$status

check: $(DEV_STAMP) ## format, lint, types and layers: what CI runs first
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/check_repository.py

fix: $(DEV_STAMP) ## format, and fix what can be fixed by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEV_STAMP) ## measure, and compare with the stored figures
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(DEV_STAMP) ## write the generated reference pages anew
	$(BIN)/python scripts/generate_docs.py

lock: $(DEV_STAMP) ## pin the dependencies anew, with hashes and without a registry's name
	$(BIN)/uv pip compile pyproject.toml requirements/build.in --extra admin --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --quiet --upgrade --output-file requirements/run.txt
	$(BIN)/uv pip compile pyproject.toml --extra admin --group dev --constraint requirements/run.txt --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade \
		--output-file requirements/dev.txt

audit: $(DEV_STAMP) ## look the pinned dependencies up among known vulnerabilities
	$(BIN)/python scripts/audit.py

clean: ## remove the environment and caches (data in .jobwheel stays)
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
