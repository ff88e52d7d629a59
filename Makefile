# Every target makes what it needs: the only thing assumed is Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Two test processes share two cores; a BLAS that starts threads of its own would only get in their way.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-fast test-thorough test-elsewhere test-versions style lint bench docs dist clean

help:
	@echo "make demo   in less than a minute: what pluri does, in words, figures and a page about topics"
	@echo "make test   lint, types, tests but for the second opinions"
	@echo "make test-fast       the quick part of the tests, for daily work"
	@echo "make test-thorough   long second opinions on what quicker tests guard, which make test leaves out"
	@echo "make test-elsewhere  the tests as other machines would see them: CPU settings, shifted seeds, shuffled order"
	@echo "make test-versions  a fast part of the tests with the lowest and the newest dependencies, on every Python found"
	@echo "make lint   ruff and mypy only"
	@echo "make bench  speed against peers, and the published experiments (set PLURI_DATA to the data folder);"
	@echo "            some of them: make bench BENCH='--only hmm topics --quick'"
	@echo "make docs   build the documentation into docs/_build/html"
	@echo "make dist   build the wheel and the source archive, and try them in an empty environment"

$(VENV)/ready:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pluri needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

# One stamp for each set of requirements, so that `make demo` does not wait for the test tools.
$(VENV)/installed-%: $(VENV)/ready pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	@touch $@

$(VENV)/installed-core: $(VENV)/ready pyproject.toml
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

demo: $(VENV)/installed-core
	$(BIN)/pluri demo

# Types are checked by one of the tests: mypy would leave the second core idle.
test: style
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not thorough'

test-fast: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m 'not slow and not thorough' $$($(BIN)/python tests/elsewhere/fast_part.py)

test-thorough: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m thorough

test-elsewhere: $(VENV)/installed-dev
	$(BIN)/python tests/elsewhere/machines.py

test-versions: $(VENV)/ready
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/python tests/elsewhere/versions.py

style: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/run.py $(BENCH)

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

dist: $(VENV)/installed-release
	$(BIN)/python tests/elsewhere/distribution.py

clean:
	rm -rf $(VENV) build dist docs/_build docs/api/generated docs/gallery demo
