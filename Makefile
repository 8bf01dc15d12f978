# What a contributor runs. A target's `##` is its line in `make help`.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO ?= cargo
# Tracked or new, whatever begins with a shell's #! line.
scripts = git ls-files -z --cached --others --exclude-standard | \
	while IFS= read -r -d '' file; do \
		if [[ -f $$file ]] && head -c 64 -- "$$file" | head -n 1 | grep -qaE '^\#!.*[/ ](ba|da)?sh$$'; then printf '%s\0' "$$file"; fi; \
	done

.PHONY: help
help: ## Lists these targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  \1\t\2/p' Makefile | expand -t 14

.PHONY: setup
setup: ## Installs what is missing to build, test and lint (Debian and its kin)
	.ci/setup

.PHONY: test
test: ## Runs the unit, property and end-to-end tests
	@if [[ -x e2e/tools/build.sh ]]; then e2e/tools/build.sh >/dev/null; fi
	$(CARGO) test --workspace --locked

.PHONY: lint
lint: ## Runs rustfmt, clippy and shellcheck: no warning is left standing
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@$(scripts) | xargs -0 --no-run-if-empty shellcheck

.PHONY: demo
demo: ## Shows on a real API server what Tenure does, in two minutes; KEEP=1 leaves it up, CONTEXT=name uses your cluster
	@KEEP="$(KEEP)" CONTEXT="$(CONTEXT)" demo/run.sh

.PHONY: bench
bench: ## Measures the engine and a real control plane into target/bench.json; QUICK=1 takes under two minutes
	@e2e/tools/build.sh >/dev/null
	$(CARGO) build --release --locked --bin tenure
	QUICK=$(QUICK) $(CARGO) run --release --locked --quiet --package e2e --bin bench

.PHONY: rules
rules: ## Lists each rule of docs/rules.md with the tests that prove it
	docs/list-rules.sh

.PHONY: generate
generate: ## Writes crds/ anew from the types in src/api
	$(CARGO) run --locked --quiet -- crds --output-dir crds
