# The two commands of the README: `make demo` and `make test`. Each makes .venv from a fresh clone first.
#
#   PYTHON=python3.12 make test       another interpreter (3.11 or later)
#   PIP_FLAGS="--extra-index-url https://download.pytorch.org/whl/cpu" make demo
#                                     the small CPU build of torch where the default index serves the CUDA build

PYTHON ?= python3
PIP_FLAGS ?=
VENV ?= .venv
# Of pytest: on two cores a third one works while the other two wait for processes that they started.
WORKERS ?= 3

PY := $(VENV)/bin/python
# torch is named in the pip call itself, so that a local CPU build of exactly this release is preferred.
TORCH := $(shell grep -E '^torch==' constraints.txt)
# The build backend is of constraints.txt too: pip before 25.3 reads the first variable for it, later ones the second.
PINNED := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt
SOURCES := geonode runtime kernels tests $(wildcard benchmarks examples tools docs)

RELEASE := .venv-release
TESTS ?= -m smoke
# What must hold of every module and setting, whatever it does.
LAWS := tests/test_package.py tests/test_registry.py tests/test_config.py tests/docs/test_docstrings.py

# Where an environment forbids bytecode, every process would compile the library anew, and each worker of pytest rewrite
# every assertion: eight seconds of a processor a worker, and two of every process that a test starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test docs lint format clean help dist test-wheel test-oldest test-newest licences
.DEFAULT_GOAL := help

help:
	@echo "make demo    simulated assay: figures, table and spectra in demo/"
	@echo "make test    ruff, ruff format, pyright, pytest"
	@echo "make check   the fast lane, two minutes at most: ruff, ruff format, the laws of the house, a few tests of every part"
	@echo "make lint    the first three alone"
	@echo "make docs    the documentation in site/, strictly; no network needed"
	@echo "make format  rewrite the sources as ruff wants them"
	@echo "make clean   remove .venv and everything generated"
	@echo
	@echo "make dist         sdist, and the wheel built from it, in dist/"
	@echo "make test-wheel   dist, installed in a fresh environment away from the checkout: demo and smoke tests"
	@echo "make test-oldest  the oldest dependencies that pyproject.toml admits; TESTS='-m \"not gpu\"' for all tests"
	@echo "make test-newest  the newest ones"
	@echo "make licences     THIRD_PARTY.md and dist/sbom.cdx.json from what is installed"

demo: $(VENV)/.core-installed
	$(VENV)/bin/geonode demo

test: lint
	OMP_NUM_THREADS=1 $(PY) -m pytest -n $(WORKERS) --durations=60 -m "not gpu"

# While working; before a push, make test.
check: $(VENV)/.test-installed
	$(PY) -m ruff check $(SOURCES)
	$(PY) -m ruff format --check $(SOURCES)
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n $(WORKERS) -m "not gpu and not slow" $(LAWS)
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n $(WORKERS) -m smoke tests

# The tutorial runs while the site is built: about a minute.
docs: $(VENV)/.test-installed
	OMP_NUM_THREADS=1 NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

lint: $(VENV)/.test-installed
	$(PY) -m ruff check $(SOURCES)
	$(PY) -m ruff format --check $(SOURCES)
	$(VENV)/bin/basedpyright --pythonpath $(PY) --threads $(WORKERS)

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
	$(PINNED) $(PY) -m pip install --quiet $(PIP_FLAGS) $(TORCH) --editable .
	@touch $@

$(VENV)/.test-installed: pyproject.toml constraints.txt | $(PY)
	$(PY) -m pip install --quiet --upgrade "pip>=24"
	$(PINNED) $(PY) -m pip install --quiet $(PIP_FLAGS) $(TORCH) --editable '.[test,readers,simulate,export,cluster,accelerate,docs]'
	@touch $@ $(VENV)/.core-installed

# Release: tools in an environment of their own (tools/requirements.txt).
dist: $(RELEASE)/.installed
	rm -rf dist
	$(PINNED) $(RELEASE)/bin/python -m build --outdir dist .

test-wheel: dist
	PIP_FLAGS="$(PIP_FLAGS)" tools/test_wheel.sh $(PYTHON)

test-oldest test-newest: test-%: $(RELEASE)/.installed
	tools/test_versions.sh $* $(TESTS)

licences: $(RELEASE)/.installed $(VENV)/.test-installed
	$(RELEASE)/bin/python tools/third_party.py $(PY) > THIRD_PARTY.md.part
	mv THIRD_PARTY.md.part THIRD_PARTY.md
	mkdir -p dist
	$(RELEASE)/bin/cyclonedx-py environment $(PY) --pyproject pyproject.toml --output-reproducible --of JSON -o dist/sbom.cdx.json

$(RELEASE)/.installed: tools/requirements.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --requirement tools/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) $(RELEASE) dist demo lightning_logs .pytest_cache .ruff_cache .hypothesis
	find geonode kernels tests -name __pycache__ -type d -prune -exec rm -rf {} +
