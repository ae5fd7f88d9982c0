# The two commands: `make run` trains and evaluates, `make test` checks. Both make .venv on their first call.
# A fresh machine needs Python >= 3.10, make and a C compiler; nothing here calls a system package manager.

PYTHON ?= python3
VENV ?= .venv
# Options for bpo_train, for example: make run ARGS="--seed 1"
ARGS ?=
# Test processes, and more options for pytest, for example: make test PYTEST_ARGS="-k webshop"
WORKERS ?= 2
PYTEST_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet
STAMP := $(VENV)/.stamp
CONSTRAINTS := $(VENV)/constraints.txt

# Without a GPU torch comes as its CPU build, in the tested version: from what pip is configured to use, else from
# PyTorch's index of CPU builds, else the ordinary one. With a GPU the range of pyproject.toml decides.
GPU := $(or $(wildcard /dev/nvidia0),$(shell command -v nvidia-smi))
TORCH := $(shell sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)
CPU_INDEX := https://download.pytorch.org/whl/cpu

.PHONY: help run test test-full sums clean

help:
	@echo "make run        train the small policy on bpo/WebShop-v0 and evaluate it (about 10 minutes on 2 cores)"
	@echo "make test       install everything, run the fast tests"
	@echo "make test-full  run the slow tests"
	@echo "make sums       renew assets/SHA256SUMS after a change of the assets"
	@echo "make clean      remove .venv and what tools leave behind"

run: $(STAMP)-train
	$(BIN)/python -m bpo_train $(ARGS)

test: $(STAMP)-dev
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

test-full: $(STAMP)-dev
	$(BIN)/python -m pytest -n $(WORKERS) --full $(PYTEST_ARGS)

$(STAMP)-train: $(STAMP)-torch
	@echo "installing what training needs"
	@$(PIP) -c $(CONSTRAINTS) -e '.[train]'
	@touch $@

$(STAMP)-dev: $(STAMP)-torch
	@echo "installing everything, tests included"
	@$(PIP) -c $(CONSTRAINTS) -e '.[all,dev]'
	@touch $(STAMP)-train $@

$(STAMP)-torch: pyproject.toml setup.py constraints.txt Makefile
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
ifeq ($(GPU),)
	@cp constraints.txt $(CONSTRAINTS)
	@echo "no GPU found: installing the CPU build of $(TORCH)"
	@$(PIP) -c $(CONSTRAINTS) '$(TORCH)+cpu' 2>/dev/null \
	  || $(PIP) -c $(CONSTRAINTS) --retries 1 --timeout 15 --extra-index-url $(CPU_INDEX) '$(TORCH)+cpu' 2>/dev/null \
	  || { echo "no CPU build within reach: installing the ordinary one"; $(PIP) -c $(CONSTRAINTS) '$(TORCH)'; }
else
	@grep -v '^torch==' constraints.txt > $(CONSTRAINTS)
endif
	@touch $@

sums:
	cd assets && find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
