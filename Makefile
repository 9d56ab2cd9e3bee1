# make demo   set up, then compile, draw, run and check the first kernel
# make test   set up, then everything that runs without a GPU, with reduced draw counts
# make check  the same with full draw counts
# make lab    JupyterLab on notebooks/
# make notebooks  run the notebooks and store what they show now
# make judge  grade the shipped solutions (EX=01_shared_memory_budget for one exercise)
# make clean  remove what builds and tests leave; make distclean removes .venv too
#
# PYTHON=... chooses the interpreter, VENV=... the environment.

SHELL  := /bin/bash
VENV   ?= .venv
PYTHON ?=
EX     ?= all
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.tilelab-installed

.DEFAULT_GOAL := help
.PHONY: help demo test check lab notebooks judge setup clean distclean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed '/^$$/,$$d'

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@VENV="$(VENV)" PYTHON="$(PYTHON)" .ci/setup
	@touch $@

demo: $(STAMP)
	@$(VENV)/bin/tilelab demo

test: $(STAMP)
	@VENV="$(VENV)" .ci/steps

check: $(STAMP)
	@VENV="$(VENV)" TILELAB_FULL=1 .ci/steps

lab: $(STAMP)
	@$(VENV)/bin/jupyter lab --notebook-dir notebooks $$([ "$$(id -u)" = 0 ] && echo --allow-root)

notebooks: $(STAMP)
	@$(PY) -m tests.notebook.remake

judge: $(STAMP)
	@$(PY) judge/judge.py $(EX)

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .tilelab demo.html
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
