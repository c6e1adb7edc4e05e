# Everything here needs Go alone. What needs more (buf comes from npm, promtool from Debian)
# says so and is left out where it is missing; .ci/run installs it.

GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)
GOVULNCHECK_VERSION := v1.8.0
GOVULNCHECK := .tools/govulncheck-$(GOVULNCHECK_VERSION)

ADDR      ?= 127.0.0.1:4433# what `make load` plays on
ADMIN     ?= 127.0.0.1:8080# where it reads the server's tick figures
ARGS      ?=# further flags of `make run`, `make load`, `make demo` and `make bench-floor`
TESTFLAGS ?=# further flags of `go test`
SEEDS     ?= 20000# how many seeds `make verify` plays; the tests by themselves play a few hundred
SOAK      ?= 10m# how long its load runs
FUZZTIME  ?= 30s# for each fuzz target
PACKAGES  ?= ./...# what `make fuzz` and `make bench` look at
MUTATE    ?=# flags and folders of `make mutate`: "-n 50 -seed 2 internal/loop"
FILE      ?=# the capture that `make cubes` encodes, plain or .xz; without one it simulates

# What `make check` runs, in this order.
CHECKS := proofs modules race lint generated systems smoke image

# The longest tests are those of one package: it is begun first, and all others run beside it.
LONGEST := ./internal/e2e

# The race detector needs a C compiler; go env says whether there is one. Only packages
# with goroutines pay for it, and their simulations, which have one goroutine, are cut short.
RACE := $(shell go env CGO_ENABLED)
RACE_PACKAGES := $(LONGEST) ./app/... ./client/... ./loadtest/... ./netlooptest/... ./examples/arena \
	./internal/admin ./internal/boundedio ./internal/certificate ./internal/clock ./internal/panicguard ./internal/directory ./internal/logging ./internal/metrics \
	./internal/netem ./internal/connlimit ./internal/room ./internal/token ./internal/transport/... ./internal/watchfile ./internal/web

# What tests of the TypeScript client need, where there is npm to install it: they are skipped elsewhere.
NODE_MODULES := $(if $(shell command -v npm),node_modules/.stamp)

.DEFAULT_GOAL := help
.PHONY: help build demo frames pictures play cards run load test plain check $(CHECKS) verify bench bench-floor cost cubes links feel lateness fuzz mutate metrics limits web browser generate clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## compile the server, the load client and the demo into bin/
	@mkdir -p bin
	go build -o bin/ ./cmd/server ./cmd/loadclient ./scripts/demo

demo: build ## serve the arena and its page, let 100 bots play it for 20 s and as long as you do, print the figures
	bin/demo $(ARGS)

frames: build $(NODE_MODULES) ## what a frame of the arena costs in Chromium, with 250 objects that move: a minute
	NETLOOP_BIN=bin node internal/browser/frames.mjs

pictures: build $(NODE_MODULES) ## the pictures of the README, of the arena with bots in Chromium
	NETLOOP_BIN=bin node internal/browser/pictures.mjs docs

play: build ## the arena with 100 bots and its page on http://127.0.0.1:8000, until interrupted
	bin/demo -web 127.0.0.1:8000 -duration 24h $(ARGS)

cards: ## Crazy Eights with bots, until interrupted: its page on http://127.0.0.1:8000, and bin/cards in another terminal
	@mkdir -p bin
	go build -o bin/cards-server ./examples/cards/server
	go build -o bin/cards ./examples/cards/term
	@echo; echo "play in a browser: http://127.0.0.1:8000   or in another terminal: bin/cards --name $${USER:-you}"; echo
	bin/cards-server run --web 127.0.0.1:8000 --cards.bots 7 $(ARGS)

run: build ## serve the arena, and its page, until interrupted
	bin/server run --web 127.0.0.1:8000 $(ARGS)

load: build ## play on a running server: ADDR=host:port ADMIN=host:port ARGS="--clients 50"
	bin/loadclient run --addr $(ADDR) --admin http://$(ADMIN) $(ARGS)

test: $(NODE_MODULES) ## vet, and every test with few seeds and short simulations: three and a half minutes on a fresh machine with two cores
	go test -short -vet=all -timeout 8m $(TESTFLAGS) $(LONGEST) ./...
	@$(MAKE) --no-print-directory browser

plain: $(NODE_MODULES) ## every test of make test with servers on the sockets that Go makes, without internal/net/udpbatch: two minutes
	NETLOOP_PLAIN_SOCKET=true go test -short -vet=off -timeout 8m $(TESTFLAGS) $(LONGEST) ./...

browser: $(NODE_MODULES) ## the arena in Chromium, over WebTransport and WebSocket, and the client in Node: a minute
	NETLOOP_BROWSER=1 go test -vet=off -count=1 -timeout 8m -v ./internal/browser

check: ## all that CI runs: test, proofs, race, lint and the rest of CHECKS
	@set -e; for part in $(CHECKS); do \
		echo "=== $$part"; began=$$(date +%s); \
		$(MAKE) --no-print-directory $$part; \
		echo "=== $$part: $$(($$(date +%s) - began)) s"; \
	done

modules: # What go.mod names is what was built before, and what is needed.
	go mod verify
	go mod tidy -diff

proofs: $(NODE_MODULES) ## make test with all seeds, and simulations at full length: four minutes
	go test -vet=all -timeout 8m $(TESTFLAGS) $(LONGEST) ./...
	@$(MAKE) --no-print-directory browser

race: ## the tests with goroutines under the race detector
ifeq ($(RACE),1)
	go test -race -short -vet=off -timeout 8m $(TESTFLAGS) $(RACE_PACKAGES)
else
	@echo "race detector: left out, it needs a C compiler"
endif

# Its files are those that are there: also for somebody who has not committed yet.
generated: # What make generate writes is there already.
	@if command -v npm >/dev/null; then \
		sum() { find proto examples docs clients -name '*.pb.go' -o -path 'docs/*.md' -o -path 'clients/ts/dist/*' -type f -o -path 'examples/*/web/*.?s' -type f | sort | xargs cksum; }; \
		before=$$(sum); $(MAKE) --no-print-directory generate; \
		[ "$$before" = "$$(sum)" ] || { echo "make generate has changed files: commit them" >&2; exit 1; }; \
	else echo "generated code: left out, buf needs npm"; fi

# A database is somebody else's, and takes longer to compile than everything else.
PORTABLE = $$(go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' ./... | grep -v /examples/cards)

systems: # Bytes mean the same where an int has 32 bits, and what waits has files of its own elsewhere.
	GOOS=windows go build $(PORTABLE)
	GOOS=windows go vet ./internal/clock
	GOOS=darwin go build $(PORTABLE)
	GOOS=darwin go vet ./internal/clock
	GOARCH=386 CGO_ENABLED=0 go test ./internal/wire ./internal/codec

smoke: # The binaries start, play and end.
	$(MAKE) --no-print-directory demo ARGS="-clients 20 -duration 5s -- --verify 20"

image: build ## build the container image with Debian's buildah, run it, and let bots play on it: needs root
	deploy/image.sh bin

verify: build ## the long proofs: SEEDS=20000 seeds of every simulation, then a load of SOAK=10m
	NETLOOP_VERIFY=1 NETLOOP_SEEDS=$(SEEDS) go test -count=1 -timeout 3h $(TESTFLAGS) ./...
	bin/demo -duration $(SOAK) -- --verify 100

lint: $(GOLANGCI) ## golangci-lint with gosec, govulncheck where its database is reached, buf lint where npm is there
	$(GOLANGCI) run ./...
	@if curl -fsS -m 10 -o /dev/null https://vuln.go.dev/index/db.json 2>/dev/null; then \
		$(MAKE) --no-print-directory $(GOVULNCHECK) && $(GOVULNCHECK) ./...; \
	else echo "govulncheck: left out, its database cannot be reached"; fi
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory node_modules/.stamp && set -x && npx --no-install buf lint; \
	else echo "buf lint: left out, it needs npm"; fi

bench: ## all benchmarks with their allocations
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) $(PACKAGES)

bench-floor: ## what a client costs, beside bare quic-go of the same datagrams: two cores, five minutes
	go run ./scripts/floor $(ARGS)

cost: ## the figures of docs/PERFORMANCE.md, measured anew: two quiet cores, twenty minutes
	go run ./scripts/floor -cost docs/PERFORMANCE.md

cubes: ## what state takes on the wire: FILE=capture of moving cubes, plain or .xz; else it simulates
	@go run ./internal/testing/cubes/cmd -file "$(FILE)"

links: ## bots play over a table of bad links: loss, jitter, holes, slow routers; four minutes
	NETLOOP_VERIFY=1 go test -count=1 -run TestBotsPlayOnEveryBadLink -v $(TESTFLAGS) ./cmd/loadclient

feel: ## what players feel over four networks, in memory and over real sockets, and over paths that change: four minutes
	NETLOOP_VERIFY=1 go test -count=1 -run 'TestFeel$$|TestFeelOfAPathThatChanges' -v $(TESTFLAGS) ./loadtest

lateness: ## how late ticks begin beside cyclictest (Debian's rt-tests), idle and busy: two minutes
	NETLOOP_VERIFY=1 go test -count=1 -run TestWakeUpBesideCyclictest -v $(TESTFLAGS) ./internal/clock

fuzz: ## every fuzz target for FUZZTIME=30s
	@set -e; for pkg in $$(go list $(PACKAGES)); do \
		listed=$$(go test -list '^Fuzz' $$pkg); \
		for target in $$(echo "$$listed" | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

mutate: ## change 300 lines of all packages, one at a time, and list the changes that no test notices: two hours
	go run ./scripts/mutate $(MUTATE)

metrics: ## the table of docs/METRICS.md, made of internal/metrics/table.go
	go generate ./internal/metrics

limits: ## docs/LIMITS.md and the bounds in the tables of docs/WIRE.md, from the constants of the code
	go generate ./internal/limits
	go test -count 1 -run '^TestTheLimitsAreThoseOfThePage$$' ./internal/transport -rewrite

web: node_modules/.stamp ## what browsers run, with npm: the client in clients/ts/dist, and the examples' pages
	npm run --silent --workspace clients/ts build
	go run ./cmd/server schema --ts > node_modules/schema.ts
	mv node_modules/schema.ts examples/arena/web/schema.ts
	npm run --silent --workspace examples/arena/web build
	go run ./examples/cards/server schema --ts > node_modules/schema.ts
	mv node_modules/schema.ts examples/cards/web/schema.ts
	node examples/page.mjs cards

generate: metrics limits web ## that, and the Go code of proto/ with buf from npm
	npx --no-install buf generate

clean: ## remove what was built here
	rm -rf bin .tools node_modules coverage.out

# The version is part of the name, so that a new one is built.
$(GOLANGCI):
	GOBIN=$(CURDIR)/.tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/golangci-lint $@

$(GOVULNCHECK):
	GOBIN=$(CURDIR)/.tools go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv .tools/govulncheck $@

# Not npm ci: it demands the packages of every platform, and those of this one are enough. The
# lock file still decides versions and checksums.
node_modules/.stamp: package-lock.json clients/ts/package.json examples/arena/web/package.json
	npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@
