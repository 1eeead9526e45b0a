# make demo   sample Delta tables, anonymized, with a report      make test   everything that must hold
# make check  the part of it that takes a minute. All set up what they need the first time (network needed once) and start at once afterwards.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.anon-spark-ready
PYTEST_ARGS ?=
SPARKS ?= 4.0 4.1 4.2
PYTHONS ?= python3.11 python3.12 python3.13
# two processes, each with one Spark session; a file's tests stay together and share its fixtures
PARALLEL ?= -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo check units test lint pytest long matrix setup clean

demo: $(READY)
	@$(BIN)/anon-spark demo

# in a minute or so: style, types, layers, and the tests that need no Spark and no compiled kernel
check: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint units

units: $(READY)
	$(BIN)/python -m pytest -m "not spark and not compiles and not long and not e2e" $(PARALLEL) $(PYTEST_ARGS)

# side by side: types are checked by one process, and no line of a test's progress is held back
test: $(READY)
	@$(MAKE) --no-print-directory --jobs 2 lint pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

pytest: $(READY)
	$(BIN)/python -m pytest -m "not long" $(PARALLEL) $(PYTEST_ARGS)

# what takes minutes: all families on a cluster and on Spark Connect, a metastore, lost executors; every planted fault
long: $(READY)
	$(BIN)/python -m pytest -m "long and e2e" $(PYTEST_ARGS)
	$(BIN)/python -m pytest -m "long and not e2e" $(PARALLEL) $(PYTEST_ARGS)

# the Spark part of the suite on other versions: make matrix SPARKS="4.0 4.2" PYTHONS="python3.11 python3.13"
matrix:
	$(PYTHON) -m jobs.matrix --sparks "$(SPARKS)" --pythons "$(PYTHONS)"

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "anon-spark needs Python 3.11 or later, and '$(PYTHON)' is not. Name one: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; \
	  exit 2; }
	@test -x $(BIN)/python || { echo "Creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "Installing anon-spark and what it needs into $(VENV), once"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[local,dev]'
	@$(BIN)/python -m anon_spark.machine.setup
	@touch $@

clean:
	rm -rf $(VENV) .matrix build dist demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
