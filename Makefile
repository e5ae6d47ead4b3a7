# `make run`   set everything up, then compare sharpened with plain training on a graph that ships with scikit-learn
# `make test`  set everything up, then lint, type-check and test
# `make results` make every table, figure and number of results/ and docs/findings.md anew from results/store
# `make clean` forget the virtual environment and all outputs

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: run test lint results setup clean
.DEFAULT_GOAL := run

run: $(READY)
	$(BIN)/sharpen compare digits

test: lint
	$(BIN)/python -m pytest -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Benchmark graphs beside the clone say which cells lack data and which were only not run.
results: $(READY)
	SHARPEN_DATA=$${SHARPEN_DATA:-$(wildcard ../shared/data)} $(BIN)/sharpen study report --store results/store --out results --figures \
		--findings docs/findings.md

setup: $(READY)

# torch first and pinned: asked for without its version, pip may choose a build that brings gigabytes of GPU libraries.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'sharpen needs Python 3.11 or newer: make PYTHON=/path/to/python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) sharpen-out .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
