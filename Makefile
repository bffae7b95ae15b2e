# SPDX-License-Identifier: Apache-2.0
#
# Front door. `make help` lists the targets. Paths are relative on purpose: the clone may lie in a folder with a space.
# Variables: PREFIX (install), SCENARIO and QUICK (bench), SHW_JOBS (compile jobs), STAGES (test: names of stages).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory

PREFIX ?= /usr/local
SCENARIO ?=
QUICK ?=
STAGES ?=
export PATH := $(CURDIR)/.venv/bin:$(PATH):$(HOME)/.cargo/bin

.PHONY: help bootstrap build test demo bench soak lint format docs install clean

help:  ## List the targets.
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## */\t/' | column -t -s "$$(printf '\t')"

bootstrap:  ## Install what is missing: Debian packages, Rust, the Python environment.
	@tools/bootstrap.sh base

build: bootstrap  ## Build the library, bindings, command line and examples into build/.
	@tools/build.sh dev shw_products

test: bootstrap  ## Run every check and test; the last line is the count.
	@tools/bootstrap.sh torch-start
	@tools/bootstrap.sh mindspore-start
	@tools/bootstrap.sh cuda-start
	@tools/bootstrap.sh browser
	@python3 tools/run_tests.py $(STAGES)

demo: bootstrap  ## Train, save, kill, reshard and read back in four languages.
	@tools/bootstrap.sh torch-start
	@tools/build.sh dev shw_products
	@tools/bootstrap.sh torch-wait
	@tools/build.sh dev shw_products
	@python3 examples/real_model/demo.py --build build

bench: bootstrap  ## Measure; SCENARIO=name runs one, QUICK=1 fewer rounds. JSON lines on stdout.
	@tools/bootstrap.sh torch-start
	@tools/build.sh dev shw_products shw_benchmarks
	@tools/bootstrap.sh torch-wait
	@tools/build.sh dev shw_products
	@$(if $(SCENARIO)$(QUICK),true,build/bin/plan_costs 1>&2)
	@$(if $(QUICK),QUICK=1) python3 benchmarks/run.py --build build $(if $(SCENARIO),--scenario "$(SCENARIO)")

soak: bootstrap  ## Long forms of the tests, and coverage.
	@tools/bootstrap.sh torch-start
	@tools/bootstrap.sh mindspore-start
	@tools/bootstrap.sh cuda-start
	@tools/bootstrap.sh browser
	@python3 tools/run_tests.py --soak $(STAGES)

lint: bootstrap  ## Formatting, clang-tidy on changed files, sizes, includes, documents.
	@python3 tools/run_tests.py lint

format: bootstrap  ## Rewrite sources with the pinned clang-format.
	@python3 tests/tidy/tidy.py --fix-format

docs: bootstrap  ## Regenerate the documents that are made from code.
	@tools/make_docs.sh

install: build  ## Copy headers, library, command line and package files below PREFIX.
	@cmake --install build --prefix "$(PREFIX)" 1>&2

clean:  ## Remove the build tree; the Python environment stays.
	@rm -rf build build-wheel
