# `make run`   set everything up, then compare sharpened with plain training on a graph that ships with scikit-learn
# `make test`  set everything up, then lint, type-check and test
# `make docs`  make these documents into a site, with the reference: site/index.html
# `make results` make every table, figure and number of results/, docs/findings.md, docs/evidence.md and docs/guide/few-labels.md anew from records
# `make field` train every method of the field on one set of splits, on a GPU, into results/store; it resumes
# `make clean` forget the virtual environment and all outputs

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: run test lint docs results field setup browser clean
.DEFAULT_GOAL := run

run: $(READY)
	$(BIN)/sharpen compare digits

test: lint browser
	$(BIN)/python -m pytest -q

# Pages are tested in Chromium: installed where it is missing and may be, else those tests are skipped by name.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1 \
		|| { apt-get update -q >/dev/null 2>&1 && apt-get install -y -q --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1; }; \
	fi || echo "no Chromium could be installed: tests of pages in a browser are skipped"

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "open site/index.html"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Benchmark graphs beside the clone say which cells lack data and which were only not run.
results: $(READY)
	SHARPEN_DATA=$${SHARPEN_DATA:-$(wildcard ../shared/data)} $(BIN)/sharpen study report --store results/store --out results --figures
	SHARPEN_DATA=$${SHARPEN_DATA:-$(wildcard ../shared/data)} $(BIN)/python results/findings.py docs/findings.md docs/evidence.md --results results
	$(BIN)/python results/field.py report docs/field.md
	SHARPEN_DATA=$${SHARPEN_DATA:-$(wildcard ../shared/data)} $(BIN)/sharpen study report field field-tuning --store results/store --out results/field
	SHARPEN_DATA=$${SHARPEN_DATA:-$(wildcard ../shared/data)} $(BIN)/sharpen study report label-rates --protocol all --store results/store --out results/label-rates --figures
	SHARPEN_DATA=$${SHARPEN_DATA:-$(wildcard ../shared/data)} $(BIN)/sharpen study report label-rates-small label-rates-layer-norm --protocol all --store results/few-labels/store --out results/few-labels --figures
	$(BIN)/python results/label_rates.py docs/guide/few-labels.md --figures docs/images

# Every method of the field on one set of splits: tune all alike, choose, train, report. It resumes; on a GPU it takes hours.
# OPTIONS go to both runs: make field OPTIONS="--precision tf32 --datasets cora,citeseer"; docs/studies.md says how to do it in slices.
field: $(READY)
	$(BIN)/sharpen study run field-tuning --protocol tuning --store results/store $(OPTIONS)
	$(BIN)/python results/field.py choose src/sharpen/studies/own/field-chosen.csv
	$(BIN)/sharpen study run field --protocol paired --store results/store $(OPTIONS)
	$(BIN)/python results/field.py report docs/field.md

setup: $(READY)

# torch first and pinned: asked for without its version, pip may choose a build that brings gigabytes of GPU libraries.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'sharpen needs Python 3.11 or newer: make PYTHON=/path/to/python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) sharpen-out site .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
