# `make app` opens the workbench; `make test` checks it, `make check` in a minute, `make test-all` with every case. Both install what they need into .venv first.
PY   ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN  := $(VENV)/bin
PORT ?= 8501
PIP  := $(BIN)/python -m pip --disable-pip-version-check install --prefer-binary -c constraints.txt
# Large tensors are freed and taken again at every step: keep glibc from giving the pages back (a fifth of the time).
export MALLOC_MMAP_THRESHOLD_ ?= 4294967296
export MALLOC_TRIM_THRESHOLD_ ?= 4294967296
export MALLOC_TOP_PAD_ ?= 268435456
# Tests start hundreds of processes, which read the compiled modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: app demo exhibits check test test-all lint screenshots lock clean
$(VENV)/pyvenv.cfg:
	$(PY) -m venv $(VENV)
$(VENV)/.app: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "Installing into $(VENV): the first time takes minutes, most of them PyTorch."
	$(PIP) -q -e .
	@touch $@
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/pyvenv.cfg
	@echo "Installing into $(VENV), with the tools for tests: the first time takes minutes."
	$(PIP) -q -e '.[dev]'
	@touch $@ $(VENV)/.app
app: $(VENV)/.app
	$(BIN)/workbench app --port $(PORT)
demo: $(VENV)/.app
	$(BIN)/workbench demo
exhibits: $(VENV)/.app  # trains them again, for hours
	$(BIN)/workbench experiment run data/experiments/exhibits.yaml
	$(BIN)/workbench experiment run data/experiments/exhibits-documents.yaml
	$(BIN)/workbench experiment exhibits --out data/exhibits
check: lint  # about a minute
	$(BIN)/python -m pytest -q -n auto --dist worksteal --fast -m "not exhaustive and not slow and not timing and not long"
test: lint  # without slow tests, and of the laws with thousands of cases a sample
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not exhaustive and not slow"
test-all: test  # and the others, with a kill at every kind of operation on files; these take longest and begin
	WORKBENCH_KILLS=distinct $(BIN)/python -m pytest -q -n auto --dist worksteal -m "exhaustive or slow" tests/workbench/test_kills.py tests
lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check -q .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
screenshots: $(VENV)/.dev
	$(BIN)/python docs/screenshots.py
lock: $(VENV)/.dev
	$(BIN)/python -m pip freeze --exclude-editable | sed -E 's/\+[a-z0-9.]+$$//' > constraints.txt
clean:
	rm -rf $(VENV) .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
