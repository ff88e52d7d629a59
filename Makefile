# Every target makes what it needs: the only thing assumed is Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Two test processes share two cores; a BLAS that starts threads of its own would only get in their way.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-fast test-thorough test-elsewhere test-versions lint bench docs clean

help:
	@echo "make demo   fit an HMM and a diversified HMM on the toy problem, print the table, draw the figure"
	@echo "make test   lint, types, tests but for the second opinions"
	@echo "make test-fast       the quick part of the tests, for daily work"
	@echo "make test-thorough   long second opinions on what quicker tests guard, which make test leaves out"
	@echo "make test-elsewhere  the tests as other machines would see them: CPU settings, shifted seeds, shuffled order"
	@echo "make test-versions  a fast part of the tests with the lowest and the newest dependencies, on every Python found"
	@echo "make lint   ruff and mypy only"
	@echo "make bench  speed against peers, and the published experiments (set PLURI_DATA to the data folder)"
	@echo "make docs   build the documentation into docs/_build/html"

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

test: lint $(VENV)/installed-dev
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

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/peers/hmm.py
	$(BIN)/python benchmarks/peers/mcmc.py
	$(BIN)/python benchmarks/peers/smc.py
	$(BIN)/python benchmarks/peers/dpp.py
	$(BIN)/python benchmarks/peers/mixtures.py
	$(BIN)/python benchmarks/peers/topics_gibbs.py
	$(BIN)/python benchmarks/peers/topics_variational.py
	$(BIN)/python benchmarks/peers/topics_hdp.py
	$(BIN)/python benchmarks/peers/topics_hierarchical.py
	$(BIN)/python benchmarks/peers/topics_supervised.py
	$(BIN)/python benchmarks/reproduce/dhmm_toy.py
	$(BIN)/python benchmarks/reproduce/dhmm_toy_variance.py
	$(BIN)/python benchmarks/reproduce/dhmm_ocr.py
	$(BIN)/python benchmarks/reproduce/dhmm_pos.py
	$(BIN)/python benchmarks/reproduce/posteriordb.py
	$(BIN)/python benchmarks/reproduce/ais_known_answers.py
	$(BIN)/python benchmarks/reproduce/flows_four_densities.py
	$(BIN)/python benchmarks/reproduce/gp_hyperparameters.py
	$(BIN)/python benchmarks/reproduce/ibp_images.py
	$(BIN)/python benchmarks/reproduce/ising_denoising.py
	$(BIN)/python benchmarks/reproduce/tvdpp_news.py
	$(BIN)/python benchmarks/reproduce/tvdpp_enron.py
	$(BIN)/python benchmarks/reproduce/riemannian_mixtures.py
	$(BIN)/python benchmarks/reproduce/exponential_family_pca.py
	$(BIN)/python benchmarks/reproduce/dp_documents.py
	$(BIN)/python benchmarks/reproduce/lidar_experts.py
	$(BIN)/python benchmarks/reproduce/cochange_histories.py
	$(BIN)/python benchmarks/reproduce/lda_newsgroups.py
	$(BIN)/python benchmarks/reproduce/topic_diversity.py
	$(BIN)/python benchmarks/reproduce/hdp_newsgroups.py
	$(BIN)/python benchmarks/reproduce/supervised_topics.py
	$(BIN)/python benchmarks/reproduce/concept_graph_simulated.py
	$(BIN)/python benchmarks/reproduce/concept_graph_text.py
	$(BIN)/python benchmarks/reproduce/topic_hierarchies.py --quick

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build docs/api/generated docs/gallery demo
