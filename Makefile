# Two commands do everything on a fresh machine: `make demo` and `make test`. `make browser` first lets the latter test
# the page as well.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint tools/tested.txt

.PHONY: demo test test-gpu wheel-test extras-test docs lint audit browser bench-data clean

demo: $(VENV)/.installed
	$(BIN)/hardtail demo

test: lint
	CUDA_VISIBLE_DEVICES= $(BIN)/python -m pytest -n 2 --dist loadgroup

# What only a GPU can show. `make test` hides the GPU, as all else is promised of a CPU: the same bytes, in seconds.
test-gpu: $(VENV)/.ready
	$(BIN)/python -m pytest tests/test_gpu.py tests/test_attention.py tests/test_fused.py tests/test_gradient.py tests/test_decode.py \
		tests/test_decode_predicted.py

# A wheel in a clean environment: the README's first commands, and each light extra alone.
wheel-test: $(VENV)/.ready
	$(BIN)/python tools/check_wheel.py

# Every extra alone in an environment of its own, doing what it is for: a quarter of an hour, so CI does not.
extras-test: $(VENV)/.ready
	$(BIN)/python tools/check_wheel.py --extras all --extras-only

# The site in build/site; a broken link, anchor or reference is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

lint: $(VENV)/.ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Known vulnerabilities in what a user gets, looked up on the network; before a release.
audit:
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/pip install --quiet --disable-pip-version-check . pip-audit
	$(VENV)-audit/bin/pip-audit --strict --skip-editable
	rm -rf $(VENV)-audit

# Debian's Chromium; as root, or else through sudo.
browser:
	command -v chromium || { \
		SUDO=$$(test "$$(id -u)" = 0 || echo sudo); export DEBIAN_FRONTEND=noninteractive; \
		$$SUDO apt-get update -q && $$SUDO apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core; }

bench-data: $(VENV)/.bench
	$(BIN)/python benchmarks/data.py

# What the demo needs; the tools of `make test` come on top.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hardtail needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	touch $@

$(VENV)/.ready: $(VENV)/.installed
	$(PIP) --editable '.[dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(PIP) --editable '.[docs]'
	touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(PIP) --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-audit .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -prune -exec rm -rf {} +
