# GNU make 3.81 or newer. On Windows: py -m venv .venv; .venv\Scripts\pip install -e .[dev]; .venv\Scripts\glassformer demo
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test quick check bench clean

demo: $(VENV)/.run
	$(BIN)/glassformer demo

test: $(VENV)/.dev
	$(BIN)/pytest -q

quick: $(VENV)/.dev
	$(BIN)/pytest -q -m "not slow"

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "glassformer needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "No venv module: on Debian and Ubuntu, apt install python3-venv"; exit 1; }

$(VENV)/.run: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q -e . && touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q -e '.[dev]' && touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q -e '.[dev,fast]' && touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build dist
