# Keisei. On a fresh machine `make train` sets up and trains, `make test` sets up and tests; `make help` lists the rest.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
CXX ?= g++
VENV ?= .venv
SOURCES := $(wildcard native/*.cpp native/*.h) CMakeLists.txt pyproject.toml constraints.txt
BUILD_NEEDS := scikit-build-core nanobind cmake ninja
ENGINE_NEEDS := numpy pydantic PyYAML pytest pytest-timeout hypothesis rsshogi
FUZZ_SECONDS ?= 180
FUZZ_SEED ?= 1
SOAK_SECONDS ?= 3600
PIP = CXX='$(CXX)' $(1)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
INSTALL = $(PIP) --no-build-isolation --no-deps --force-reinstall

# One stamp per Python, so that make test PYTHON=… never tests another Python.
VERSION := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
BUILT := $(VENV)/.built-$(VERSION)

.DEFAULT_GOAL := help
.PHONY: help build train test test-slow coverage lint bench test-engine referee chaos sanitize tsan fuzz soak tools clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

build: $(BUILT)  ## set up .venv and build the extension

train: $(BUILT)  ## train a player for 15 minutes with the default config; ARGS='training.games=128'
	$(VENV)/bin/keisei train training.max_minutes=15 $(ARGS)

test: $(BUILT)  ## all tests that a change must pass, at most 15 minutes
	$(VENV)/bin/pytest -n 2 --dist loadfile

test-slow: $(BUILT)  ## long comparisons with another engine
	$(VENV)/bin/pytest -m slow

coverage: $(BUILT)  ## branch coverage of parallel collection, in all its processes; at least 90 %
	rm -rf build/coverage
	mkdir -p build/coverage
	$(VENV)/bin/coverage run -m pytest tests/training/parallel
	$(VENV)/bin/coverage combine --quiet
	$(VENV)/bin/coverage report --fail-under=90

lint: $(BUILT)  ## ruff and mypy --strict
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(BUILT)  ## speed, compared with any peers that are installed
	$(VENV)/bin/python bench/rules.py
	$(VENV)/bin/python bench/env.py
	$(VENV)/bin/python bench/train.py

# One clear line if something is missing on this machine.
tools:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "keisei needs Python 3.11 or newer, but '$(PYTHON)' is not: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "keisei needs Python's venv and pip: install python3-venv, or use another PYTHON" >&2; exit 2; }
	@"$(PYTHON)" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || \
	  { echo "keisei needs Python's headers, but '$(PYTHON)' has none: install python3-dev, or use another PYTHON" >&2; exit 2; }
	@command -v $(firstword $(CXX)) >/dev/null || \
	  { echo "keisei needs a C++20 compiler, but '$(CXX)' was not found: install g++, or make CXX=clang++" >&2; exit 2; }

$(BUILT): $(SOURCES)
	@$(MAKE) --no-print-directory tools
	@echo "setting up $(VENV) with Python $(VERSION) and building the extension"
	@test -e $@ || rm -rf $(VENV)
	@"$(PYTHON)" -m venv $(VENV)
	@$(call PIP,$(VENV)) $(BUILD_NEEDS)
	@$(call PIP,$(VENV)) --no-build-isolation --editable '.[dev]'
	@touch $@

chaos: $(BUILT)  ## two minutes of training while worker processes hang and are killed
	$(VENV)/bin/pytest -m slow tests/training/test_parallel_chaos.py

# Another program as referee. It is under the GPL, so it has its own environment and is never imported.
REFEREE := $(CURDIR)/build/referee
referee: $(BUILT)  ## games refereed by cshogi, and against gpsusi; needs fairy-stockfish and gpsshogi
	"$(PYTHON)" -m venv $(REFEREE)
	$(call PIP,$(REFEREE)) cshogi==1.1.0
	KEISEI_REFEREE=$(REFEREE)/bin/python $(VENV)/bin/pytest -m '' tests/usi/test_referee.py \
	  tests/evaluation/test_usi_player.py -k 'without_a_fault or gpsusi'

# Only the engine, without the packages needed for training, on any Python: make test-engine PYTHON=python3.13
ENGINE_VENV := .venv-engine-$(VERSION)
test-engine: tools  ## tests of the rules without torch, on the Python given by PYTHON
	"$(PYTHON)" -m venv $(ENGINE_VENV)
	$(call PIP,$(ENGINE_VENV)) $(BUILD_NEEDS) $(ENGINE_NEEDS)
	$(call INSTALL,$(ENGINE_VENV)) .
	$(ENGINE_VENV)/bin/pytest tests/shogi tests/search tests/core/test_policy_output_mapper.py

# A build with AddressSanitizer and UndefinedBehaviorSanitizer, for sanitize and fuzz. Perft stays shallow there.
SANITIZED := .venv-sanitized
RUN_SANITIZED = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 KEISEI_TEST_NODES=25000000 PYTHONMALLOC=malloc
$(SANITIZED)/.built: $(SOURCES) $(shell find keisei -name '*.py')
	@$(MAKE) --no-print-directory tools
	@"$(PYTHON)" -m venv $(SANITIZED)
	@$(call PIP,$(SANITIZED)) $(BUILD_NEEDS) $(ENGINE_NEEDS)
	@$(call INSTALL,$(SANITIZED)) --config-settings=build-dir=build/sanitized \
	  --config-settings=cmake.define.KEISEI_SANITIZE=ON --config-settings=cmake.define.KEISEI_WERROR=ON .
	@touch $@

# Capture via sys, not file descriptors, which would swallow a sanitizer's report. ASan delays freeing memory and reserves
# terabytes of address space, so two tests cannot run.
sanitize: $(SANITIZED)/.built  ## tests of the rules under ASan and UBSan
	$(RUN_SANITIZED) $(SANITIZED)/bin/pytest --capture=sys -k 'not memory_does_not_grow and not system_does_not_give' tests/shogi tests/search \
	  tests/core/test_policy_output_mapper.py tests/evaluation/test_search_player.py

# Without Python, which is not built with ThreadSanitizer, and without address randomisation, which it cannot handle.
RULES := $(filter-out native/bindings%,$(wildcard native/*.cpp))
build/vector_threads: tests/native/vector_threads.cpp $(RULES) $(wildcard native/*.h)
	@mkdir -p build
	$(CXX) -std=c++20 -O1 -g -fsanitize=thread -pthread -Inative $< $(RULES) -o $@

tsan: build/vector_threads  ## the vector of games under ThreadSanitizer
	TSAN_OPTIONS=halt_on_error=1 setarch $$(uname -m) -R build/vector_threads

fuzz: $(SANITIZED)/.built  ## feed damaged input to the parsers under ASan and UBSan, for FUZZ_SECONDS
	$(RUN_SANITIZED) $(SANITIZED)/bin/python scripts/fuzz_readers.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

soak: $(BUILT)  ## training while worker processes hang and are killed, for SOAK_SECONDS
	$(VENV)/bin/python scripts/test_parallel_stability.py --duration $(SOAK_SECONDS) $(ARGS)

clean:  ## remove everything that make created
	rm -rf $(VENV) .venv-engine-* $(SANITIZED) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
