# make bench   install what is needed and measure this machine: a table, and a report in report.html
# make test    run the tests            make check   formatting, lint, types, import rules
# make thorough  the tests, and those that show more of the same for minutes
# make dev     an environment for both  make clean   remove environment and caches; stores and reports stay

VENV ?= .venv
STORE ?= roofbench.db
REPORT ?= report.html
WAIT_S ?= 0
BIN := $(VENV)/bin
SOURCES := pyproject.toml constraints.txt .ci/install

.PHONY: bench test thorough check dev clean

bench: $(VENV)/.bench
	$(BIN)/roofbench run experiment=quick store.url=$(STORE) wait_s=$(WAIT_S) || test $$? -eq 3
	$(BIN)/roofbench report latest --store $(STORE) --output $(REPORT) --force

# Products in tests are so small that threads would wait for each other longer than they compute; numpy may be loaded by a
# plugin, before tests/conftest.py can say so.
test thorough: export OPENBLAS_NUM_THREADS ?= 1

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(TESTS)

thorough: $(VENV)/.dev
	$(BIN)/python -m pytest -m "thorough or not thorough" $(TESTS)

check: $(VENV)/.dev
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/python -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

dev: $(VENV)/.dev

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.bench: $(SOURCES)
	.ci/install $(VENV)
	touch $@

$(VENV)/.dev: $(SOURCES)
	.ci/install $(VENV) dev
	touch $(VENV)/.bench $@
