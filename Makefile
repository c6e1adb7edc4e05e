# All targets need only Go, unless their text names another tool. A missing tool (buf is from npm,
# promtool from Debian) is reported, and its step is skipped; .ci/run installs the tools.

GOLANGCI_VERSION := v2.15.0
GOLANGCI := .tools/golangci-lint-$(GOLANGCI_VERSION)
GOVULNCHECK_VERSION := v1.8.0
GOVULNCHECK := .tools/govulncheck-$(GOVULNCHECK_VERSION)
KUBECONFORM_VERSION := v0.8.0
KUBECONFORM := .tools/kubeconform-$(KUBECONFORM_VERSION)

ADDR      ?= 127.0.0.1:4433# the server for `make load`
ADMIN     ?= 127.0.0.1:8080# its admin listener, which has the tick figures
ARGS      ?=# further flags of `make run`, `make load`, `make demo`, `make fleet`, `make watch`, `make bench-floor` and `make peers`
TESTFLAGS ?=# further flags of `go test`
SEEDS     ?= 20000# seeds of `make verify` and `make simulate`; `make test` uses a few hundred
FROM      ?= 1# the first seed of `make simulate`
REAL      ?=# 1 plays the stories of `make simulate` over real carriers, in real time
CLUSTER   ?=# 1 plays the stories of several servers of a cluster in `make simulate`
SOAK      ?= 10m# duration of its load
FUZZTIME  ?= 30s# for each fuzz target
PACKAGES  ?= ./...# packages of `make fuzz` and `make bench`
MUTATE    ?=# flags and folders of `make mutate`: "-n 50 -seed 2 internal/loop"
FILE      ?=# the capture for `make cubes`, plain or .xz; empty for that of the repository

# The parts of `make check`, in order.
CHECKS := modules generated proofs race pages smoke image

# Modules of development tools, and of tests with drivers of their own. bench/peers is none of them: it contains the
# other servers, and compiling those takes 40 s of processor time more than bench, before vet and lint.
TOOLS := bench deploy/grafana scripts/mutate scripts/typecheck persist/sqlstore/pgtest

# The arena in a window, a module too. Its library needs cgo and the headers of X11 and ALSA on Linux, and on Windows only Go.
DESKTOP := examples/arena/desktop

# The package with the longest tests starts first; the others run beside it. With -p 3 three packages
# run at once on two cores, because tests over sockets mostly wait.
LONGEST := ./internal/e2e

# The race detector needs a C compiler; CGO_ENABLED tells. Only packages with goroutines run under
# it, with short simulations, because those have one goroutine.
RACE := $(shell go env CGO_ENABLED)
RACE_PACKAGES := ./internal/e2e ./app/... ./client/... ./netlooptest/... ./examples/arena \
	./internal/admin ./internal/inspect/... ./internal/boundedio ./internal/certificate ./internal/clock ./internal/panicguard ./internal/directory ./internal/logging ./internal/metrics \
	./internal/netem ./internal/connlimit ./internal/room/... ./internal/token ./internal/transport/... ./internal/watchfile ./internal/web

# Packages of `proofs`: a package that `race` tests is tested once, but for transport, whose models need their seeds, and
# history, whose replays of one goroutine `race` skips.
PROOFS := $(if $(filter 1,$(RACE)),./internal/transport/... ./internal/inspect/history $$(go list ./... | grep -vxF "$$(go list $(RACE_PACKAGES))"),$(LONGEST) ./...)

# Without a debugger's tables the tests' programs are linked sooner.
LINK := -ldflags=-w

# Modules for tests of the TypeScript client. Without npm these tests are skipped.
NODE_MODULES := $(if $(shell command -v npm),node_modules/.stamp)

.DEFAULT_GOAL := help
.PHONY: help help-all build demo fleet frames pictures play desktop watch cards run load test plain check $(CHECKS) browser static verify simulate bench bench-floor peers check-peers capacity cost cubes links feel paths lateness fuzz mutate api metrics limits dashboard web generate clean

# The targets that people use, in the order of make help.
USED := demo play test run load check bench help-all

help: # list the targets of USED
	@awk -F ':.*## ' -v used='$(USED)' '/^[a-z-]+:.*## / {text[$$1] = $$2} \
		END {n = split(used, name, " "); for (i = 1; i <= n; i++) printf "  make %-11s %s\n", name[i], text[name[i]]}' $(MAKEFILE_LIST)

help-all: ## list all targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## compile the server, with NATS inside, the load client and the demo into bin/
	@mkdir -p bin
	go build -tags embednats -o bin/ ./cmd/server ./cmd/loadclient ./scripts/demo

demo: build ## serve the arena and its page to 100 bots for 20 s, longer while you play, and print the figures
	bin/demo $(ARGS)

fleet: ## three servers as a cluster, with 150 bots that wander between them while one is killed and one is updated; ARGS=-faults: four servers and three of NATS with all their faults
	go build -o bin/fleet ./scripts/fleet
	bin/fleet $(ARGS)

frames: build $(NODE_MODULES) ## the time of a frame of the arena in Chromium, with 250 moving objects: a minute
	NETLOOP_BIN=bin node internal/browser/frames.mjs

pictures: build $(NODE_MODULES) ## the pictures of the arena, of the inspector, of a load test and of the tutorial, in Chromium
	go build -o bin/ ./scripts/faults
	NETLOOP_BIN=bin node internal/browser/pictures.mjs docs
	NETLOOP_BIN=bin node --experimental-websocket internal/browser/inspectpictures.mjs docs
	NETLOOP_BIN=bin node internal/browser/reportpicture.mjs docs
	go build -o bin/tutorial ./examples/tutorial && go build -o bin/tutorial-bots ./examples/tutorial/5-bots
	NETLOOP_BIN=bin node internal/browser/tutorialpictures.mjs docs
	NETLOOP_BIN=bin node internal/browser/termpicture.mjs docs/load-term.png

play: build ## serve the arena with 100 bots until interrupted; its page is http://127.0.0.1:8000
	bin/demo -web 127.0.0.1:8000 -duration 24h $(ARGS)

desktop: ## play the arena of make run or of ADDR=host:port in a window; on Linux it needs cgo and the headers of X11 and ALSA
	go run -C $(DESKTOP) . -addr $(ADDR) $(ARGS)

watch: build ## serve the arena with bots, its inspector and metrics, and Prometheus if it is installed, until interrupted
	bin/demo -watch -clients 20 -web 127.0.0.1:8000 -admin $(ADMIN) $(ARGS)

cards: ## serve Crazy Eights with bots until interrupted; play on http://127.0.0.1:8000, or with bin/cards in another terminal
	@mkdir -p bin
	go build -o bin/cards-server ./examples/cards/server
	go build -o bin/cards ./examples/cards/term
	@echo; echo "play in a browser: http://127.0.0.1:8000   or in another terminal: bin/cards --name $${USER:-you}"; echo
	bin/cards-server run --web 127.0.0.1:8000 --cards.bots 7 $(ARGS)

run: build ## serve the arena and its page, without bots, until interrupted
	bin/server run --web 127.0.0.1:8000 $(ARGS)

load: build ## let bots play on a running server: ADDR=host:port ADMIN=host:port ARGS="--clients 50"
	bin/loadclient run --addr $(ADDR) --admin http://$(ADMIN) $(ARGS)

test: $(NODE_MODULES) ## vet, and all tests with few seeds and short simulations: a quarter of an hour on a fresh machine with two cores
	go test -short -vet=all -timeout 8m $(TESTFLAGS) $(LONGEST) ./...
	@set -e; for dir in $(TOOLS); do go test -C $$dir -short -vet=all $(TESTFLAGS) ./...; done
	@$(MAKE) --no-print-directory browser

plain: $(NODE_MODULES) ## the tests of make test with servers on plain Go sockets, without internal/net/udpbatch: two minutes
	NETLOOP_PLAIN_SOCKET=true go test -short -vet=off -timeout 8m $(TESTFLAGS) $(LONGEST) ./...
	NETLOOP_PLAIN_SOCKET=true go test -C bench -short -vet=off $(TESTFLAGS) ./...

browser: $(NODE_MODULES) ## the arena in Chromium, over WebTransport and WebSocket, and the client in Node: four minutes
	NETLOOP_BROWSER=1 go test -vet=off -count=1 -timeout 8m -v ./internal/browser

check: ## all that CI runs: full tests, race detector, linters, generated code, other systems, a demo, the image
	@set -e; for part in $(CHECKS); do \
		echo "=== $$part"; began=$$(date +%s); \
		$(MAKE) --no-print-directory $$part; \
		echo "=== $$part: $$(($$(date +%s) - began)) s"; \
	done

# Beside linters and compilers a page's frames are too late for its tests.
pages: # the browser's tests, and then linters and compilers
	@$(MAKE) --no-print-directory browser
	@$(MAKE) --no-print-directory static

static: # lint, and then systems
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory systems

modules: # go.mod lists the needed modules, and their checksums are unchanged.
	@set -e; for dir in . $(TOOLS) $(DESKTOP); do go mod -C $$dir verify; go mod -C $$dir tidy -diff; done

proofs: $(NODE_MODULES) ## the tests that race leaves out, with all seeds and at full length, without vet, which is part of lint: eight minutes
	go test -p 3 -vet=off -timeout 12m $(LINK) $(TESTFLAGS) ./internal/simulation ./cmd/netloop $(PROOFS)
	@set -e; for dir in $(TOOLS); do go test -C $$dir -vet=off $(LINK) $(TESTFLAGS) ./...; done
	go test -C $(DESKTOP) -vet=off $(TESTFLAGS) ./play

race: ## the tests with goroutines under the race detector
ifeq ($(RACE),1)
	go test -p 3 -race -short -vet=off -timeout 8m $(LINK) $(TESTFLAGS) $(RACE_PACKAGES)
else
	@echo "race detector: left out, it needs a C compiler"
endif

# It compares files of the working tree, so that uncommitted changes count too.
generated: # make generate changes no file.
	@if command -v npm >/dev/null; then \
		sum() { find proto examples docs clients deploy/grafana internal/inspect/page loadtest/page -name '*.pb.go' -o -path 'docs/*.md' -o -name netloop.json -o -path 'clients/ts/dist/*' -type f -o -path '*/page/inspect.js' -o -path '*/page/report.html' -o -path 'examples/*/web/*.?s' -type f -o -path 'examples/phaser/src/schema.ts' | sort | xargs cksum; }; \
		before=$$(sum); $(MAKE) --no-print-directory generate; \
		[ "$$before" = "$$(sum)" ] || { echo "make generate has changed files: commit them" >&2; exit 1; }; \
	else echo "generated code: left out, buf needs npm"; fi

# Packages whose encoding is the same with an int of 32 bits.
ENCODING := ./internal/wire ./internal/codec

systems: # All packages and tests have correct types on Windows and macOS.
	go build -C scripts/typecheck -o $(CURDIR)/bin/typecheck
	bin/typecheck windows ./...
	bin/typecheck darwin ./...
	bin/typecheck -C bench windows ./...
	bin/typecheck -C $(DESKTOP) windows ./...
	@if pkg-config --exists x11 xrandr xcursor xinerama xi xxf86vm gl alsa 2>/dev/null; then set -x; go build -C $(DESKTOP) -o /dev/null .; \
	else echo "$(DESKTOP): not built for Linux, it needs the headers of X11, OpenGL and ALSA"; fi
	GOARCH=386 CGO_ENABLED=0 go vet $(ENCODING)
	@if GOARCH=386 CGO_ENABLED=0 go test -vet=off -run '^$$' $(ENCODING) >/dev/null 2>&1; then set -x; GOARCH=386 CGO_ENABLED=0 go test -vet=off $(ENCODING); \
	else echo "tests with an int of 32 bits: left out, this kernel runs no such programs"; fi

smoke: # The binaries start, play and exit.
	$(MAKE) --no-print-directory demo ARGS="-clients 20 -duration 5s -- --verify 20"

image: build ## build the container image with Debian's buildah, run it, and let bots play: needs root
	deploy/image.sh bin

verify: build ## the long tests: SEEDS=20000 seeds of each simulation, then a load of SOAK=10m
	NETLOOP_VERIFY=1 NETLOOP_SEEDS=$(SEEDS) go test -count=1 -timeout 3h $(TESTFLAGS) ./...
	bin/demo -duration $(SOAK) -- --verify 100

simulate: ## play SEEDS=20000 whole servers from seed FROM=1 on; a failing story is printed and shortened
	go test -count=1 -timeout 24h $(TESTFLAGS) ./internal/simulation -run '$(if $(CLUSTER),TestClusterStories,$(if $(REAL),TestRealStories,TestStories))$$' -args -seeds $(SEEDS) -from $(FROM)

# The manifests of Kubernetes; the values of NATS' chart are none.
MANIFESTS := $(filter-out %/nats-values.yaml,$(wildcard deploy/kubernetes/*.yaml))

lint: $(GOLANGCI) $(KUBECONFORM) ## golangci-lint with gosec; kubeconform; govulncheck if its database is reachable; buf lint if npm is installed
	$(KUBECONFORM) -strict -summary -schema-location 'deploy/kubernetes/schemas/{{ .ResourceKind }}.json' $(MANIFESTS)
	@set -e; for dir in . $(TOOLS); do (cd $$dir && $(CURDIR)/$(GOLANGCI) run ./...); done
	@if curl -fsS -m 10 -o /dev/null https://vuln.go.dev/index/db.json 2>/dev/null; then \
		$(MAKE) --no-print-directory $(GOVULNCHECK) && $(GOVULNCHECK) ./...; \
	else echo "govulncheck: left out, its database cannot be reached"; fi
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory node_modules/.stamp && set -x && npx --no-install buf lint; \
	else echo "buf lint: left out, it needs npm"; fi

bench: ## all benchmarks with their allocations
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) $(PACKAGES)

bench-floor: ## the cost of a client beside bare quic-go with the same datagrams: two cores, five minutes
	go build -C bench -o $(CURDIR)/bin/bench
	bin/bench $(ARGS)

capacity: build ## how many players of the arena and of the card game this machine holds at 20, 30 and 60 Hz: two hours; the results in capacity.json and docs/capacity.svg
	go build -o bin/cards-server ./examples/cards/server
	go build -o bin/cards-load ./examples/cards/loadclient
	bin/demo -capacity capacity.json -clients 2000 -duration 6s $(ARGS)
	go build -C bench/peers -o $(CURDIR)/bin/peers
	bin/peers capacity capacity.json docs/capacity.svg

cost: ## measure the figures of docs/PERFORMANCE.md again: two quiet cores, twenty minutes
	go build -C bench -o $(CURDIR)/bin/bench
	bin/bench -cost docs/PERFORMANCE.md

peers: ## the same world in netloop and in other game servers, written to docs/PEERS.md: Linux, root, two quiet cores, an hour; ARGS=-quick takes fifteen minutes
	go build -C bench/peers -o $(CURDIR)/bin/peers
	bin/peers $(ARGS)

check-peers: $(GOLANGCI) ## the checks of bench/peers, which CI leaves out
	go mod -C bench/peers tidy -diff
	go vet -C bench/peers ./...
	go test -C bench/peers $(TESTFLAGS) ./...
	cd bench/peers && $(CURDIR)/$(GOLANGCI) run ./...

cubes: ## bytes of state on the wire: FILE=capture of moving cubes, plain or .xz, else that of the repository
	@go run ./internal/testing/cubes/cmd -file "$(FILE)"

links: ## bots over a table of bad links: loss, jitter, holes, slow routers; four minutes
	NETLOOP_VERIFY=1 go test -count=1 -run TestBotsPlayOnEveryBadLink -v $(TESTFLAGS) ./cmd/loadclient

feel: ## the figures of docs/NETCODE.md over four networks, in memory and over real sockets, and over changing paths, then make paths: 14 minutes
	NETLOOP_VERIFY=1 go test -count=1 -run 'TestFeel$$|TestFeelOfAChangingPath' -v $(TESTFLAGS) ./loadtest
	@if [ "$$(uname)" = Linux ] && [ "$$(id -u)" = 0 ]; then $(MAKE) --no-print-directory paths; \
	else echo "paths: left out, they need Linux and root"; fi

paths: ## rate and gaps of snapshots over emulated paths of whole IP packets, and shares of a link: Linux, root, ten minutes
	go build -C bench -o $(CURDIR)/bin/bench
	bin/bench path $(ARGS)

lateness: ## the lateness of ticks beside cyclictest (Debian's rt-tests), idle and busy: two minutes
	NETLOOP_VERIFY=1 go test -count=1 -run TestWakeUpBesideCyclictest -v $(TESTFLAGS) ./internal/clock

fuzz: ## each fuzz target for FUZZTIME=30s
	@set -e; for pkg in $$(go list $(PACKAGES)); do \
		listed=$$(go test -list '^Fuzz' $$pkg); \
		for target in $$(echo "$$listed" | grep '^Fuzz' || true); do \
			echo "== $$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

mutate: ## change 300 lines of all packages, one at a time, and list changes that no test notices: two hours
	go build -C scripts/mutate -o $(CURDIR)/bin/mutate
	bin/mutate $(MUTATE)

api: ## write docs/INSPECT-API.md from the comments of the answers' types
	go test -count 1 -run '^TestTheCommentsAreThoseOfTheSources$$' ./internal/apidoc -rewrite
	go test -count 1 -run '^TestTheAPIIsDocumented$$' ./docs -rewrite

metrics: ## write the table of docs/METRICS.md from internal/metrics/table.go
	go generate ./internal/metrics

limits: ## write the bounds in docs/LIMITS.md and docs/WIRE.md from the code's constants
	go test -count 1 -run '^TestEveryLimitIsDocumented$$' ./docs -rewrite
	go test -count 1 -run '^TestTheLimitsMatchThePage$$' ./internal/transport -rewrite

web: node_modules/.stamp ## build the browser client in clients/ts/dist, the inspector, the report of load tests and the examples' pages, with npm
	npm run --silent --workspace clients/ts build
	go run ./examples/arena/tournament schema --ts > node_modules/schema.ts
	mv node_modules/schema.ts examples/arena/web/schema.ts
	npm run --silent --workspace examples/arena/web build
	npm run --silent --workspace internal/inspect/page build
	node loadtest/page/build.mjs
	go run ./examples/cards/server schema --ts > node_modules/schema.ts
	mv node_modules/schema.ts examples/cards/web/schema.ts
	node examples/page.mjs cards
	go run ./examples/dots schema --ts > node_modules/schema.ts
	mv node_modules/schema.ts examples/phaser/src/schema.ts

dashboard: ## write the Grafana dashboard deploy/grafana/netloop.json
	go run -C deploy/grafana . > deploy/grafana/netloop.json.new
	mv deploy/grafana/netloop.json.new deploy/grafana/netloop.json

generate: metrics limits dashboard web ## metrics, limits, dashboard, web, and the Go code of proto/ with buf from npm
	npx --no-install buf generate

clean: ## remove built files
	rm -rf bin .tools node_modules coverage.out

# The version is part of the file's name, so that a new version is built.
$(GOLANGCI):
	GOBIN=$(CURDIR)/.tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .tools/golangci-lint $@

$(KUBECONFORM):
	GOBIN=$(CURDIR)/.tools go install github.com/yannh/kubeconform/cmd/kubeconform@$(KUBECONFORM_VERSION)
	mv .tools/kubeconform $@

$(GOVULNCHECK):
	GOBIN=$(CURDIR)/.tools go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv .tools/govulncheck $@

# npm ci would demand the packages of every platform; those of this one suffice. The lock file still
# decides versions and checksums.
node_modules/.stamp: package-lock.json clients/ts/package.json examples/arena/web/package.json examples/phaser/package.json internal/inspect/page/package.json
	npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@
