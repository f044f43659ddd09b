# Each target works by itself in a fresh clone: it makes .venv from the pinned constraints, or reuses it, and then does its job.
PYTHON ?= python3
ARGS   ?=
VENV   := .venv
BIN    := $(VENV)/bin
# A stamp says that a set of extras is wholly installed, in this folder and for this content of the two files.
PINS   := $(shell { cat constraints.txt pyproject.toml; pwd -P; } | cksum | cut -d ' ' -f 1)
BASE   := $(VENV)/.report-$(PINS)
DEV    := $(VENV)/.agent,dev,report,web-$(PINS)
WEB    := $(VENV)/.report,web-$(PINS)
LAB    := $(VENV)/.agent,lab-$(PINS)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test slow lint lab serve screenshots clean

help: ## show this list
	@echo "make TARGET, where TARGET is one of"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1	\2/p' Makefile
	@echo "PYTHON=python3.12 chooses the interpreter of a new .venv; ARGS=... is passed to pytest, optimize.py, jupyter or the service."

demo: $(BASE) ## optimize three real networks: one runs faster here, one cannot, and one where search beats greed (written to runs/demo)
	@mkdir -p runs/demo
	$(BIN)/python scripts/optimize.py model=repvgg_a0 'rules.include=[fold,sum]' cost=measured cost.seconds=15 seconds=15 gate_seconds=10 ledger_seconds=8 output=runs/demo/repvgg_a0.onnx $(ARGS)
	$(BIN)/python scripts/optimize.py model=resnet18 cost=measured cost.seconds=8 seconds=8 gate_seconds=8 output=runs/demo/resnet18.onnx $(ARGS)
	$(BIN)/python scripts/optimize.py model=squeezenet1_1 zoo.image=128 device=v100 search=backtracking versus=greedy output=runs/demo/squeezenet1_1.onnx $(ARGS)

test: $(DEV) ## run the test suite, without the slow tests
	$(BIN)/python -m pytest -n 2 -m 'not slow' $(ARGS)

slow: $(DEV) ## run the slow tests
	$(BIN)/python -m pytest -n 2 -m slow $(ARGS)

lint: $(DEV) ## check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict cgorl
	$(BIN)/lint-imports

lab: $(LAB) ## open JupyterLab, on the notebook that says what there is
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/notebooks/00_start.ipynb $(if $(filter 0,$(shell id -u)),--allow-root) $(ARGS)

serve: $(WEB) ## run the service, at http://127.0.0.1:8000 (files in runs/service; ARGS='--port=9000 --workers=2')
	@$(BIN)/python -m cgorl.web serve $(ARGS)

screenshots: $(DEV) ## take pictures of the widgets and of the service, light and dark (written to runs/screenshots; needs chromium)
	$(BIN)/python -m tests.widgets.screenshots runs/screenshots
	$(BIN)/python -m tests.web.screenshots runs/screenshots/service

clean: ## remove .venv and all caches (runs/ stays)
	rm -rf $(VENV) build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stem is the list of extras. The stamp is written last, and an install that was interrupted, or a .venv that was
# copied from another folder or whose interpreter is gone, is not repaired but made anew.
$(VENV)/.%-$(PINS):
	@if test -e $(VENV)/.unfinished || ! grep -qsF '$(CURDIR)/$(VENV)' $(BIN)/activate || ! $(BIN)/python -c '' 2> /dev/null; then rm -rf $(VENV); fi
	@if ! test -e $(VENV); then \
	  command -v $(PYTHON) > /dev/null || { echo "cgorl needs Python 3.11 or newer: there is no $(PYTHON) here (make PYTHON=... names another)"; exit 1; }; \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "cgorl needs Python 3.11 or newer: $(PYTHON) is" `$(PYTHON) -V 2>&1` "(make PYTHON=... names another)"; exit 1; }; \
	  $(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install python3-venv)"; exit 1; }; \
	  echo "making $(VENV)"; mkdir $(VENV); touch $(VENV)/.unfinished; $(PYTHON) -m venv $(VENV) || exit 1; \
	fi
	@echo "installing cgorl ($*) from the pinned constraints: a minute or two the first time"
	@touch $(VENV)/.unfinished
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[$*]'
	@rm -f $(VENV)/.unfinished $(VENV)/.$*-*
	@touch $@
