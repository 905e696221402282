# Outlast: batch jobs that outlast their machines. `make help` lists the targets.

SHELL   := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/outlast-dev/outlast/internal/version.version=$(VERSION)
LINT    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GO      := CGO_ENABLED=0 go
BIN     := bin

.PHONY: help build demo test chaos chaos-planted man docs lint bench bench-scale clean redis valkey browser screens

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1m%-13s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/enqueue and bin/worker
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./enqueue ./worker

demo: build redis ## a job loses its machine in the middle, moves to another one and succeeds
	@BIN=$(BIN) bash examples/demo.sh

# Packages that run whole deployments: one at a time, since each of their tests does so many things at once.
WHOLE := ./tasks ./worker ./internal/web/browsertest

test: redis valkey browser ## all tests, with the race detector
	go test -race -parallel 8 -timeout 14m $$(go list ./... | grep -vE '/(tasks|worker|browsertest)$$')
	go test -race -p 1 -parallel 8 -timeout 14m $(WHOLE)

# SEED=n runs the same again, CHAOS=long takes half an hour, FOR=90s as long as that.
chaos: redis ## the fault suite: everything that can break breaks at random while jobs run, and a judge looks at all of it
	go run ./chaos -seed $(or $(SEED),0) $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(filter long,$(CHAOS)),-size long -for $(or $(FOR),30m) -race,-size ci -for $(or $(FOR),3m))

chaos-planted: redis ## show that the fault suite finds a bug in each guarantee: BUG=G3 for one
	OUTLAST_PLANT=G2 go test -tags planted -count 1 -v -run TestG2_PlantedBugIsFound ./chaos/linear
	go test -tags planted -count 1 -timeout 30m -v -run 'TestPlantedBugsAreFound/^($(or $(BUG),.*))$$' ./chaos

man: build ## write the man pages to bin/man
	$(BIN)/enqueue man $(BIN)/man

docs: ## write the parts of docs/ that are made from the code
	go generate ./enqueue ./internal/spec

screens: redis browser ## renew the pictures of the page in docs/screens
	OUTLAST_SCREENS=$(CURDIR)/docs/screens go test -timeout 10m -count 1 -run TestScreens ./internal/web/browsertest

lint: ## formatting, vet and the linters, with the rules of the rooms
	@bad=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$bad" ]; then echo "not gofmt'ed: $$bad"; exit 1; fi
	go vet ./...
	go run $(LINT) run ./...

bench: build redis ## measure what docs/performance.md tells, on this machine
	go run ./bench $(BENCH)

bench-scale: build redis ## measure how large a fleet holds, and what storms do to it
	go run ./bench/scale $(SCALE)

clean: ## remove what was built
	rm -rf $(BIN)

redis: # tests and demo run a real redis-server
	@bash deploy/need.sh redis-server

valkey: # a whole deployment runs on a real valkey-server, too
	@bash deploy/need.sh valkey-server

browser: # the tests of the page run a real Chromium, unless OUTLAST_NO_BROWSER is set
	@[ -n "$$OUTLAST_NO_BROWSER" ] || command -v chromium-browser google-chrome google-chrome-stable headless-shell >/dev/null || bash deploy/need.sh chromium
