# Keisei. On a fresh machine `make train` sets up and trains, `make test` sets up and tests; `make help` lists the rest.

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
CXX ?= g++
VENV ?= .venv
SOURCES := $(wildcard native/*.cpp native/*.h) CMakeLists.txt pyproject.toml constraints.txt
BUILD_NEEDS := scikit-build-core nanobind cmake ninja
ENGINE_TEST_NEEDS := pytest pytest-timeout pytest-xdist hypothesis rsshogi
ENGINE_NEEDS := numpy pydantic PyYAML safetensors $(ENGINE_TEST_NEEDS)
ENGINE_TESTS := tests/shogi tests/search tests/core/test_policy_output_mapper.py tests/core/test_native_tower_alone.py tests/core/test_native_gradients_alone.py
FUZZ_SECONDS ?= 180
FUZZ_SEED ?= 1
SOAK_SECONDS ?= 3600
PIP = CXX='$(CXX)' $(1)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
INSTALL = $(PIP) --no-build-isolation --no-deps --force-reinstall

# One stamp per Python, so that make test PYTHON=… never tests another Python.
VERSION := $(shell "$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
BUILT := $(VENV)/.built-$(VERSION)

.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE "s/^([a-z-]+):.*/\1/p" $(firstword $(MAKEFILE_LIST)))

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

build: $(BUILT)  ## set up .venv and build the extension

train: $(BUILT)  ## train a player for 15 minutes with the default config; ARGS='run.seed=2'
	$(VENV)/bin/keisei train training.max_minutes=15 $(ARGS)

# One process with one thread: the same network to the bit on every CPU with the same kernels.
network: $(BUILT)  ## train the network that comes with the package anew, about an hour on one core, to build/shipped-network
	$(VENV)/bin/keisei train run.name=shipped run.directory=build run.seed=301 training.total_timesteps=7755468 \
	  run.threads=1 training.parallel.enabled=false evaluation.every=0 evaluation.final_games=0 $(ARGS)
	rm -rf build/shipped-network
	$(VENV)/bin/python scripts/keep_network.py build/shipped@latest --out build/shipped-network

PYTEST := pytest -n 2 --dist loadfile
test: $(BUILT)  ## all tests that a change must pass, at most 15 minutes; COVERAGE=yes measures coverage too
ifdef COVERAGE
	rm -rf build/coverage
	mkdir -p build/coverage
	COVERAGE_FILE=$(CURDIR)/build/coverage/data $(VENV)/bin/coverage run -m $(PYTEST)
	$(VENV)/bin/python scripts/check_coverage.py $(ARGS)
else
	$(VENV)/bin/$(PYTEST)
endif

test-slow: $(BUILT)  ## long comparisons with another engine
	$(VENV)/bin/pytest -m slow

coverage:  ## the same tests, with floors for statements and branches; ARGS=--html for a report with sources
	@$(MAKE) --no-print-directory test COVERAGE=yes

mutants: $(BUILT)  ## small changes of FILES that TESTS do not notice; ARGS='--max 50 --floor 90'
	$(VENV)/bin/python scripts/mutate.py $(FILES) --tests $(TESTS) $(ARGS)

lint: $(BUILT)  ## ruff and mypy --strict
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The variable silences a notice about the theme's future, which mkdocs.yml repeats.
docs: $(BUILT)  ## the documentation as a site with search, in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

docs-serve: $(BUILT)  ## the same on http://127.0.0.1:8000, built anew when a page changes
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs serve --dev-addr 127.0.0.1:8000

bench: $(BUILT)  ## speed, compared with any peers that are installed, to build/bench; ARGS='--quick --only env,rules'
	$(VENV)/bin/python bench/run.py $(ARGS)

bench-compare: $(BUILT)  ## fail if NEW (default the last make bench) is slower than OLD=old.json beyond noise
	$(VENV)/bin/python bench/compare.py $(OLD) $(NEW)

bench-docs: $(BUILT)  ## three runs of the benchmark, then their tables and plot into docs/performance.md
	for run in 1 2 3; do $(VENV)/bin/python bench/run.py --out build/bench/run-$$run $(ARGS) || exit 1; done
	$(VENV)/bin/python bench/performance_page.py build/bench/run-1 build/bench/run-2 build/bench/run-3

profile: $(BUILT)  ## where the time of a training goes, serially and with 2 workers; reports in build/profile
	rm -rf build/profile
	$(VENV)/bin/python scripts/profile_training.py --mode serial --out build/profile/serial $(ARGS)
	$(VENV)/bin/python scripts/profile_training.py --mode parallel --workers 2 --out build/profile/parallel $(ARGS)

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

cluster-faults: $(BUILT)  ## minutes of training on a Ray cluster on this machine while parts of it are killed
	$(VENV)/bin/pytest -m slow tests/training/cluster

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
	$(ENGINE_VENV)/bin/pytest -n 2 --dist loadfile $(ENGINE_TESTS)

# Tests of native code that need no torch, besides tests/shogi and tests/search.
OTHER_NATIVE_TESTS := tests/core/test_policy_output_mapper.py tests/core/test_native_tower_alone.py tests/core/test_native_gradients_alone.py \
  tests/evaluation/test_search_player.py

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
sanitize: $(SANITIZED)/.built  ## tests of the rules and the network under ASan and UBSan
	$(RUN_SANITIZED) $(SANITIZED)/bin/pytest --capture=sys -k 'not memory_does_not_grow and not system_does_not_give' tests/shogi tests/search \
	  $(OTHER_NATIVE_TESTS)

# A build that counts which lines run; needs g++ and its gcov. A line of a template counts once. Branches are shown, not
# enforced: even without those of exceptions, many belong to destructors and temporaries that no source line shows.
COVERED := .venv-coverage
$(COVERED)/.built: $(SOURCES) $(shell find keisei -name '*.py')
	@$(MAKE) --no-print-directory tools
	@"$(PYTHON)" -m venv $(COVERED)
	@$(call PIP,$(COVERED)) $(BUILD_NEEDS) $(ENGINE_NEEDS) gcovr==8.7
	@$(call INSTALL,$(COVERED)) --config-settings=build-dir=build/native-coverage --config-settings=cmake.define.KEISEI_COVERAGE=ON .
	@touch $@

GCOVR = $(COVERED)/bin/gcovr --root . --merge-lines --exclude-throw-branches --gcov-suspicious-hits-threshold 0 \
  --fail-under-line 95 build/native-coverage
coverage-native: $(COVERED)/.built  ## lines of C++ that tests run; at least 95 %
	find build/native-coverage -name '*.gcda' -delete
	KEISEI_TEST_NODES=25000000 $(COVERED)/bin/$(PYTEST) tests/shogi tests/search \
	  $(OTHER_NATIVE_TESTS)
	$(GCOVR) --txt-metric branch --filter native/
	$(GCOVR) --filter native/bindings
	$(GCOVR) --filter native/

# Without Python, which is not built with ThreadSanitizer, and without address randomisation, which it cannot handle.
PORTABLE := $(filter-out native/bindings% native/tower_avx%,$(wildcard native/*.cpp))
THREADED := build/vector_threads build/tower_threads
$(THREADED): build/%: tests/native/%.cpp $(PORTABLE) $(wildcard native/*.h)
	@mkdir -p build
	$(CXX) -std=c++20 -O1 -g -fsanitize=thread -pthread -Inative $< $(PORTABLE) -o $@

tsan: $(THREADED)  ## the vector of games and the network under ThreadSanitizer
	for program in $(THREADED); do TSAN_OPTIONS=halt_on_error=1 setarch $$(uname -m) -R $$program || exit 1; done

fuzz: $(SANITIZED)/.built  ## feed damaged input to the parsers under ASan and UBSan, for FUZZ_SECONDS
	$(RUN_SANITIZED) $(SANITIZED)/bin/python scripts/fuzz_readers.py --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

soak: $(BUILT)  ## training while worker processes hang and are killed, for SOAK_SECONDS
	$(VENV)/bin/python scripts/test_parallel_stability.py --duration $(SOAK_SECONDS) $(ARGS)

audit: $(BUILT)  ## bandit over the package, zizmor over the workflows
	$(VENV)/bin/bandit --quiet --configfile pyproject.toml --recursive keisei
	$(VENV)/bin/zizmor --quiet --offline --strict-collection .github

# pip-audit brings more packages than all other tools together, so it has its own environment.
AUDIT := build/audit
audit-dependencies:  ## known vulnerabilities of the versions in requirements.lock; asks a service on the network
	"$(PYTHON)" -m venv $(AUDIT)
	$(call PIP,$(AUDIT)) pip-audit==2.10.1
	$(AUDIT)/bin/python scripts/audit_dependencies.py requirements.lock

licences: $(BUILT)  ## check that all installed packages have an allowed licence and docs/licences.md lists them
	$(VENV)/bin/python scripts/check_licences.py $(ARGS)

lock: $(BUILT)  ## write requirements.lock: every version in constraints.txt with its hash, for Linux x86-64 and Python 3.11
	$(VENV)/bin/python scripts/lock_requirements.py

# The wheel is built from the sdist, so both are tested. Installing it must not need a compiler.
PACKAGE := $(CURDIR)/build/package
package: $(BUILT)  ## build sdist and wheel, install the wheel without a compiler, test the engine there
	rm -rf dist $(PACKAGE)
	CXX='$(CXX)' $(VENV)/bin/python -m build --no-isolation --outdir dist
	"$(PYTHON)" -m venv $(PACKAGE)
	CC=/bin/false CXX=/bin/false $(PACKAGE)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --only-binary :all: dist/*.whl
	KEISEI_PACKAGE=$(PACKAGE)/bin $(VENV)/bin/pytest tests/test_packaging.py
	$(call PIP,$(PACKAGE)) $(ENGINE_TEST_NEEDS)
	$(PACKAGE)/bin/pytest -n 2 --dist loadfile $(ENGINE_TESTS)

# Containers on Linux; pyproject.toml says which wheels, and what is tested in each.
WHEELS := build/wheels-venv
wheels: tools  ## wheels of this platform for all supported Pythons, by cibuildwheel; needs docker on Linux
	"$(PYTHON)" -m venv $(WHEELS)
	$(call PIP,$(WHEELS)) cibuildwheel==4.3.3
	$(WHEELS)/bin/cibuildwheel --output-dir dist

opponents:  ## install other people's engines, Debian's fairy-stockfish and gpsshogi; asks for root
	@test -x /usr/games/fairy-stockfish -a -x /usr/games/gpsusi || \
	  { SUDO=$$(test "$$(id -u)" = 0 || echo sudo); $$SUDO apt-get update -qq; $$SUDO apt-get install -y -qq fairy-stockfish gpsshogi; }

CHROMIUM := $(or $(KEISEI_CHROMIUM),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))
chromium:  ## install Debian's Chromium if there is none; asks for root
	@test -n '$(CHROMIUM)' || \
	  { SUDO=$$(test "$$(id -u)" = 0 || echo sudo); $$SUDO apt-get update -qq; $$SUDO apt-get install -y -qq chromium; }

# Playwright is no part of `dev`: it takes 165 MB, which nothing else needs.
browser: chromium $(BUILT)  ## the web pages in a real browser; installs Playwright, and Chromium if there is none
	$(call PIP,$(VENV)) playwright==1.65.2
	$(VENV)/bin/pytest -m browser tests/web/browser $(ARGS)

# make release-notes TAG=v0.2.0
release-notes:  ## print the changelog's section for TAG, which must be pyproject's version
	@"$(PYTHON)" scripts/release_notes.py '$(TAG)'

github-release:  ## publish dist/ as the release TAG with its notes; the release workflow runs this
	mkdir -p build
	"$(PYTHON)" scripts/release_notes.py '$(TAG)' > build/release_notes.md
	gh release create '$(TAG)' --verify-tag --title '$(TAG)' --notes-file build/release_notes.md dist/*

clean:  ## remove everything that make created
	rm -rf $(VENV) .venv-3* .venv-engine-* $(SANITIZED) $(COVERED) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
