# Everything a person or CI runs. Each target sets up what it needs; only Python >= 3.11 and make must be there.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN = $(VENV)/bin
# Three processes, as many tests wait for programs that they start; one BLAS thread each, as on a busy machine
# more of them wait for each other.
ONE_THREAD = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# The seed orders the tests and draws the cases of Hypothesis; make test SEED=... repeats a run.
ifndef SEED
SEED := $(shell date +%s)
endif
SEEDS = --randomly-seed=$(SEED) --hypothesis-seed=$(SEED)
PYTEST = $(ONE_THREAD) $(BIN)/python -m pytest -n 3 $(SEEDS)
AS_ROOT = $(if $(filter 0,$(shell id -u)),,sudo)

.PHONY: help demo test test-repeat check format coverage test-oldest dist release test-browser chromium bench experiments docs figures screenshots clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/installed  ## Train, compare and write a report page, on generated data
	$(BIN)/rankwise demo

test: $(VENV)/installed-test  ## Run all tests and doctests in random order; SEED=... repeats a run
	$(PYTEST)

test-repeat: $(VENV)/installed-test  ## Run all tests N times (20), each in another order; a line per run in test-repeat.log
	$(ONE_THREAD) $(BIN)/python tests/repeat.py --runs $(or $(N),20)

check: $(VENV)/installed-lint  ## Formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/installed-lint  ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

COVERAGE_FLOOR = 97
coverage: $(VENV)/installed-coverage  ## Branch coverage of the core packages, by all tests
	$(PYTEST) --cov=rankwise --cov-branch --cov-config=pyproject.toml --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE_FLOOR) tests

test-oldest: $(VENV)-oldest/installed  ## The tests on the oldest versions that pyproject.toml allows
	$(ONE_THREAD) $(VENV)-oldest/bin/python -m pytest -n 2 $(SEEDS) tests

# The wheel is built from the sdist, so the sdist is not compiled once more. The dependencies are installed
# once; the sdist and the pure wheel then take the place of the compiled wheel.
TRY = $(VENV)-try/bin/python -m pip uninstall --quiet --yes rankwise && $(VENV)-try/bin/python -m pip install --quiet --no-deps
TRY_DEMO = cd $(VENV)-try && bin/rankwise demo && bin/python -c "import rankwise._compiled as c; assert c.IS_COMPILED is
dist: $(VENV)-dist/installed  ## Build sdist and wheels, check them, install each into an environment without rankwise, run the demo
	rm -rf dist build && $(VENV)-dist/bin/python -m build --quiet
	RANKWISE_PURE=1 $(VENV)-dist/bin/python -m build --quiet --wheel --outdir dist/pure
	$(VENV)-dist/bin/twine check --strict dist/*.whl dist/*.tar.gz dist/pure/*.whl
	rm -rf $(VENV)-try && $(PYTHON) -m venv $(VENV)-try
	$(VENV)-try/bin/python -m pip install --quiet "$$(echo dist/*.whl)[cli]"
	$(TRY_DEMO) True"
	export RANKWISE_PURE=1 && $(TRY) dist/*.tar.gz && $(TRY_DEMO) False"
	$(TRY) dist/pure/*.whl && $(TRY_DEMO) False"

# Nothing is uploaded: pushing the tag makes .github/workflows/wheels.yml build and publish.
release: check dist test test-browser docs  ## Build and check everything, then tag the version of src/rankwise/__init__.py
	@test -z "$$(git status --porcelain)" || { echo "Commit or remove these files first:"; git status --short; exit 1; }
	@$(BIN)/python -m experiments --stale || { echo "These results are of older code: record them with make experiments, then make figures."; exit 1; }
	@version=$$($(BIN)/python -c "import rankwise; print(rankwise.__version__)") && \
	  git tag --annotate "v$$version" --message "rankwise $$version" && \
	  echo "Tagged v$$version. Push it to publish: git push origin v$$version"

test-browser: $(VENV)/installed-test  ## The pages in a real Chromium, installed by apt-get if need be
	@command -v chromedriver >/dev/null || $(MAKE) --no-print-directory chromium
	RANKWISE_BROWSER=required $(ONE_THREAD) $(BIN)/python -m pytest $(SEEDS) tests/*/test_*_browser.py

chromium:
	@command -v apt-get >/dev/null || { echo "There is no apt-get here: install Chromium and chromedriver by hand, then make test-browser again."; exit 1; }
	@test "$$(id -u)" = 0 || command -v sudo >/dev/null || { echo "Neither root nor sudo: ask somebody who is to apt-get install chromium chromium-driver, then make test-browser again."; exit 1; }
	$(AS_ROOT) apt-get update --quiet
	$(AS_ROOT) apt-get install --quiet --yes --no-install-recommends chromium chromium-driver || \
	  { echo "apt-get could not install chromium and chromium-driver: see its message above."; exit 1; }

bench: $(VENV)/installed-bench  ## Measure everything beside limits and other libraries; SIZE=short or full; DATA=folder of the data sets
	$(if $(DATA),RANKWISE_DATA=$(DATA)) $(BIN)/python -m benchmarks --size $(or $(SIZE),full) $(if $(filter short,$(SIZE)),--patience 0,--write)

experiments: $(VENV)/installed-bench  ## Reproduce all tables; DATA=directory of the data sets, or RANKWISE_DATA; ONLY=folders
	$(ONE_THREAD) $(BIN)/python -m experiments $(if $(DATA),--data $(DATA)) $(ONLY)

docs: $(VENV)/installed-docs  ## Build the documentation site; a warning is an error
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "Open file://$(CURDIR)/docs/_build/html/index.html"

figures: $(VENV)/installed  ## Fill the measured figures of README and docs from recorded results
	$(BIN)/python docs/figures.py

screenshots: $(VENV)/installed-test  ## Take the pictures of the site and of README anew, light and dark
	$(ONE_THREAD) $(BIN)/python docs/screenshots.py

clean:  ## Remove environments and caches
	rm -rf $(VENV) $(VENV)-oldest $(VENV)-dist $(VENV)-try dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  docs/_build docs/auto_examples docs/generated docs/sg_execution_times.rst

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; name it with make PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[cli]"
	touch $@

$(VENV)/installed-test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

$(VENV)/installed-lint: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --group lint
	touch $@

$(VENV)/installed-coverage: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet "pytest-cov>=6"
	touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@

$(VENV)-dist/installed:
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet "build>=1.2" "twine>=6"
	touch $@

$(VENV)-oldest/installed: pyproject.toml tests/oldest_versions.py
	$(PYTHON) -m venv $(VENV)-oldest
	$(PYTHON) tests/oldest_versions.py > $(VENV)-oldest/constraints.txt
	$(VENV)-oldest/bin/python -m pip install --quiet --editable ".[test]" --constraint $(VENV)-oldest/constraints.txt
	touch $@
