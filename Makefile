# Tirada. `make demo` shows it working on this machine, `make test` tests it, `make help` lists the rest.

LOCAL   := python3 -m local
# The demonstration's size: make demo BUYERS=5000 NUMBERS=100000
OPENING := $(foreach option,BUYERS NUMBERS,$(if $($(option)),--$(shell echo $(option) | tr A-Z a-z)=$($(option))))

.PHONY: help demo up down status test test-all release-check storm bench lint audit sbom package sam-local

help: ## this list
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*##/\t/' | expand -t 16

demo: up ## the local cloud and an opening with many buyers at once (BUYERS=, NUMBERS=)
	@$(LOCAL) run opening $(OPENING)

up: ## start, build, deploy and seed the local cloud; again: deploy what changed
	@$(LOCAL) up

down: ## stop everything that was started here and remove its data
	@$(LOCAL) down

status: ## what runs, and where
	@$(LOCAL) status

test: ## every fast test and two short storms of each kind, on a throw-away Postgres
	@$(LOCAL) test

test-all: test ## also the oracles, scenarios, more storms, the local cloud (left up) and its contract, sam local
	@$(LOCAL) oracles
	@$(LOCAL) simulate
	@$(LOCAL) panics
	@$(LOCAL) slow
	@$(LOCAL) sam-local

release-check: lint test-all ## before a release, for hours: also, on release bootstraps, scenarios, storms, the local cloud, benchmarks
	@$(LOCAL) release-check

storm: ## thousands of orders under faults of every kind, then the audit (SEEDS=n: so many times)
	@$(LOCAL) storm $(or $(SEEDS),1)

bench: ## the benchmarks against their floors; report and charts in target/bench (ROUNDS=, ONLY=)
	@$(LOCAL) bench $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only $(ONLY))

lint: ## formatting, clippy, templates, what an account would refuse, dependencies, Python
	@$(LOCAL) lint

audit: ## whether anything is known against our dependencies; needs the internet
	@$(LOCAL) audit

sbom: ## a list of what is delivered, CycloneDX, in target/sbom.cdx.json
	@$(LOCAL) sbom

package: ## build the functions for AWS into target/lambda, ready for `sam deploy` (arm64, or ARCH=x86_64)
	@$(LOCAL) package $(ARCH)

sam-local: ## `sam local` in containers: a function of each kind, and an order over HTTP (IMAGE=aws: in AWS's own image)
	@$(LOCAL) sam-local $(if $(IMAGE),--image $(IMAGE))
