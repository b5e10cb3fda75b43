# The two commands of the README: `make demo` and `make test`. Each makes .venv from a fresh clone first.
#
#   PYTHON=python3.12 make test       another interpreter (3.11 or later)
#   PIP_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu" make demo
#                                     the small CPU build of torch where the default index serves the CUDA build

PYTHON ?= python3
PIP_FLAGS ?=
VENV ?= .venv
WORKERS ?= 2

PY := $(VENV)/bin/python
# torch is named in the pip call itself, so that a local CPU build of exactly this release is preferred.
TORCH := $(shell grep -E '^torch==' constraints.txt)
SOURCES := geonode kernels tests $(wildcard benchmarks examples)

.PHONY: demo test lint format clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    simulated assay: figures, table and spectra in demo/"
	@echo "make test    ruff, ruff format, pyright, pytest"
	@echo "make lint    the first three alone"
	@echo "make format  rewrite the sources as ruff wants them"
	@echo "make clean   remove .venv and everything generated"

demo: $(VENV)/.core-installed
	$(VENV)/bin/geonode demo

test: lint
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) -m "not gpu"

lint: $(VENV)/.test-installed
	$(PY) -m ruff check $(SOURCES)
	$(PY) -m ruff format --check $(SOURCES)
	$(VENV)/bin/basedpyright --pythonpath $(PY)

format: $(VENV)/.test-installed
	$(PY) -m ruff check --fix $(SOURCES)
	$(PY) -m ruff format $(SOURCES)

# Interpreter too old or without venv: say so here rather than three errors later.
$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "geonode needs Python 3.11 or later; name one: PYTHON=python3.12 make ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip

$(VENV)/.core-installed: pyproject.toml constraints.txt | $(PY)
	$(PY) -m pip install --quiet --upgrade "pip>=24"
	$(PY) -m pip install --quiet $(PIP_FLAGS) --constraint constraints.txt $(TORCH) --editable .
	@touch $@

$(VENV)/.test-installed: pyproject.toml constraints.txt | $(PY)
	$(PY) -m pip install --quiet --upgrade "pip>=24"
	$(PY) -m pip install --quiet $(PIP_FLAGS) --constraint constraints.txt $(TORCH) --editable '.[test,readers,simulate,export,cluster,accelerate,docs]'
	@touch $@ $(VENV)/.core-installed

clean:
	rm -rf $(VENV) build dist demo lightning_logs .pytest_cache .ruff_cache .hypothesis *.egg-info
	find geonode kernels tests -name __pycache__ -type d -prune -exec rm -rf {} +
