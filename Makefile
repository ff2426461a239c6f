# softrnic. `make help` lists the targets. `make run` and `make test` need Go and make only.

GO         ?= go
GOTESTFLAGS ?=
BENCHFLAGS ?=
FUZZTIME   ?= 10m
SOAKSECONDS ?= 180
SIEGESECONDS ?= 5
CROWDSECONDS ?= 60
CHAOSSECONDS ?= 600
INTEROPFLAGS ?=
CTESTFLAGS ?=
CONTAINERFLAGS ?=
CSOAKSECONDS ?= 600
CBENCHROUNDS ?= 5
MUTANTFLAGS ?=
# A third of the program is for debuggers; what a crash or a profile prints needs none of it.
LDFLAGS    ?= -s -w

# Development tools are pinned in a module of their own, which is not one of go.work: their versions are not the program's.
LINTER := GOWORK=off $(GO) tool -modfile=tools/go.mod -n golangci-lint

# The packages of all modules of go.work, by their folders: the go command knows them as `work`, the linter does not.
FOLDERS = $(shell $(GO) list -m -f '{{.Dir}}/...')

# What `make paths` sets, when it links: see qp/tuning.go.
PATHS := -ldflags=-X=github.com/softrnic/softrnic/qp.paths

.DEFAULT_GOAL := help
.PHONY: help build man c bundled c-unit fabric-test run test test32 race lockcheck paths soak crowd mutants conform-mutants fuzz lint bench siege testers published tshark chaos interop verify clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/rnic, without the tables of a debugger (LDFLAGS= keeps them), for systems with any libc
	CGO_ENABLED=0 $(GO) build -ldflags='$(LDFLAGS)' -o bin/ ./cmd/rnic

c: build ## build the two libraries beside bin/rnic with which `rnic run` runs C programs (Linux; needs gcc)
	GO=$(GO) rdmacore/build bin

bundled: ## build bin/bundled/rnic, which has the two libraries in itself and runs C programs wherever it is copied to (Linux; needs gcc)
	GO=$(GO) tools/bundle.sh bin/bundled

c-unit: ## test the preload library, under sanitizers too (needs gcc with libasan and libubsan)
	@out=$$(mktemp -d) && trap 'rm -rf "$$out"' EXIT && rdmacore/preload/test/run "$$out"

man: build ## write the manual pages of bin/rnic to bin/man/man1, for `man -M bin/man rnic`
	bin/rnic man bin/man/man1

run: build ## build, then move and verify data between two processes on this machine
	bin/rnic demo

test: ## run the tests, in random order
	$(GO) test -shuffle=on $(GOTESTFLAGS) work

test32: ## run the tests as a 32-bit program, which an amd64 Linux runs as it is
	GOARCH=386 CGO_ENABLED=0 $(GO) test -shuffle=on $(GOTESTFLAGS) work

# Each program under the race detector sleeps for a second before it exits, unless it is told not to: tests start hundreds.
race: ## run the tests under the race detector (needs a C compiler)
	GORACE="atexit_sleep_ms=20 $$GORACE" $(GO) test -race -shuffle=on $(GOTESTFLAGS) work

# Without -race: the checker has a mutex of its own, which each of the locks goes through. The race detector would take that for
# an order between goroutines, and miss races.
LOCKED := ./internal/lockorder ./verbs ./qp ./stag ./srq ./internal/cq ./internal/netpoll ./internal/vitcp/... ./vipl ./nd2 ./cm

lockcheck: ## hold each goroutine to the order of locks, in the tests of the engine and in the conformance suite
	$(GO) vet -tags lockcheck ./internal/lockorder
	$(GO) test -tags lockcheck -shuffle=on $(GOTESTFLAGS) $(LOCKED)
	$(GO) run -tags lockcheck ./cmd/rnic conform run --strict

paths: ## run the tests with the fast paths of the data path never taken, and taken wherever they can be
	$(GO) test -shuffle=on $(PATHS)=slow $(GOTESTFLAGS) work
	$(GO) test -shuffle=on $(PATHS)=fast $(GOTESTFLAGS) work

soak: ## under the race detector for SOAKSECONDS (180) each: memory taken away under traffic, random verbs against the models
	SOFTRNIC_RACE_SECONDS=$(SOAKSECONDS) $(GO) test -race -count=1 -v -timeout=1h -run TestRevokeUnderTraffic ./verbs
	SOFTRNIC_MODEL_ROUNDS=$(SOAKSECONDS) $(GO) test -race -count=1 -timeout=1h -run Model ./stag ./srq ./internal/cq ./qp ./verbs

fabric-test: c ## 64 hosts with 128 NICs, a pair of rping each, within 8 GiB and 60 s; MPICH and Open MPI on 8 hosts with two rails (Linux; rdmacm-utils, libmpich-dev, libopenmpi-dev)
	$(GO) test -count=1 -v -tags fabric -timeout=10m -run "TestCrowd|TestRails|TestOpenMPI" ./cmd/rnic/internal/fabric

crowd: build ## ten thousand busy queue pairs for CROWDSECONDS (60) twice, 2,000 for 10 s, a hot one beside 2,000; ends under the race detector
	bin/rnic perf many --qps 10000 --rounds 1 --duration $(CROWDSECONDS)s
	bin/rnic perf many --qps 10000 --rounds 1 --duration $(CROWDSECONDS)s --poll
	bin/rnic perf many --qps 2000 --rounds 1 --duration 10s
	bin/rnic perf many --qps 2000 --rounds 1 --duration 10s --poll
	SOFTRNIC_CROWD=2000 $(GO) test -count=1 -v -timeout=1h -run TestHotBesideSlow ./verbs
	SOFTRNIC_RACE_SECONDS=$(CROWDSECONDS) $(GO) test -race -count=1 -v -timeout=1h -run TestCrowdChurn ./verbs

mutants: ## change every cell of the state table and the fault table, and see the cell's own test fail
	$(GO) test -count=1 -v -tags mutants -timeout=30m -run TestTableMutants ./qp

conform-mutants: ## put each known fault into the product, and see the conformance cases, or tests, that it names fail
	$(GO) run ./conformance/mutants $(MUTANTFLAGS)

fuzz: ## run every fuzz target for FUZZTIME (10m), one after the other
	FUZZTIME=$(FUZZTIME) GO=$(GO) tools/fuzz.sh

lint: ## vet for Linux (386 and arm64 too), Windows and macOS, run golangci-lint and actionlint, check the scripts
	$(GO) vet work
	$(GO) vet -race work
	GOWORK=off $(GO) vet -C interop/ulps/testdata/grpc ./...
	GOWORK=off $(GO) vet -C tools/site -tags chromium ./...
	$(SITE) . -root ../.. -check
	GOARCH=386 CGO_ENABLED=0 $(GO) vet work
	GOARCH=arm64 CGO_ENABLED=0 $(GO) vet work
	GOOS=windows $(GO) vet work
	GOOS=darwin $(GO) vet work
	$$($(LINTER)) run $(FOLDERS)
	GOWORK=off env -C tools/site $$($(LINTER)) run --build-tags chromium ./...
	GOWORK=off env -C tools/workflows $$($(LINTER)) run ./...
	GOWORK=off $(GO) test -C tools/workflows $(GOTESTFLAGS) .
	tools/lint-scripts.sh

bench: ## run the benchmarks; compare two outputs with `GOWORK=off go tool -modfile=tools/go.mod benchstat`
	$(GO) test -run '^$$' -bench . -benchmem $(BENCHFLAGS) work

siege: ## attack the listeners with silent peers, twice SIEGESECONDS (5) a row, with resets, and with the worst of 2,000 connections; honest clients' connect times and memory against the bars; writes the tables of docs/security.md
	SOFTRNIC_SIEGE_SECONDS=$(SIEGESECONDS) $(GO) test -count=1 -v -timeout=1h -run 'TestSiege|TestResets|TestWorst' ./internal/test/stress

testers: ## run conformance cases against the upper testers in C and Python (needs gcc, python3)
	$(GO) test -count=1 -tags testers -run TestSkeletons $(GOTESTFLAGS) ./cmd/rnic/internal/conform

published: ## have `go install` of the program, and `go get` of the collector, work from a module proxy that this tree is published to
	$(GO) test -count=1 -tags published $(GOTESTFLAGS) ./internal/test/modproxy

tshark: ## have tshark decode a capture of the tap, under TLS (Debian: apt-get install tshark)
	$(GO) test -count=1 -tags tshark -run TestWireshark ./lab/tap

chaos: ## random fault plans, and random commands of rnic nic, against the model for CHAOSSECONDS (600), with the race detector
	SOFTRNIC_CHAOS_SECONDS=$(CHAOSSECONDS) $(GO) test -race -count=1 -v -timeout=2h -run TestChaos ./lab/rnictest ./rdmacore/internal/uverbs

interop: ## run the matrix and the conformance cases against Linux Soft-iWARP in a QEMU guest, and update docs/interop.md
	interop/run $(INTEROPFLAGS)

.PHONY: c-test c-soak c-bench
c-test: c ## run C programs of Debian's packages under `rnic run`, each pair in a network of its own, and update docs/c-programs.md, lab.md and nic.md
	interop/cprograms/packages
	$(GO) test -count=1 -tags cprograms ./interop/cprograms
	$(GO) run ./interop/cprograms $(CTESTFLAGS)

c-soak: c ## C programs that start, connect, move data, are killed at random and start again, for CSOAKSECONDS (600); looks for leaks
	interop/cprograms/packages
	$(GO) run ./interop/cprograms -soak $(CSOAKSECONDS)s

c-bench: c ## measure C programs under `rnic run` beside `rnic perf`, in CBENCHROUNDS rounds (5), and update docs/c-programs.md
	interop/cprograms/packages
	$(GO) run ./interop/cprograms -bench $(CBENCHROUNDS)

.PHONY: container-test images
container-test: c ## RDMA programs of Debian in containers, by podman, each way; installs podman and makes an image (root, Debian); update docs/containers.md
	interop/containers/packages
	$(GO) run ./interop/containers $(CONTAINERFLAGS)

images: c ## build two OCI images with podman, for this processor or for ARCHES: rnic alone, and Debian with programs to try (root, Debian)
	interop/containers/packages
	packaging/images

.PHONY: ulps ulps-rsocket ulps-siw ulps-nvme
ulps: ulps-rsocket ulps-siw ulps-nvme ## upper layers against other people's programs: all of these

ulps-rsocket: c ## ulp/rsocket with Debian's rstream, riostream and rcopy, and with gRPC-Go's interop cases; figures; update docs/ulps.md
	$(GO) run ./interop/ulps $(ULPSFLAGS)

ulps-siw: build ## ulp/rsocket with Debian's rstream, riostream and rcopy over Linux siw in a QEMU guest (root, Debian on amd64); update docs/ulps.md
	$(GO) run ./interop/ulps $(ULPSFLAGS) siw

ulps-nvme: build ## the NVMe over Fabrics target: hosts that do what kernels never do, then Linux's own in a QEMU guest, and update docs/nvme.md
	$(GO) test -race -count=1 ./ulp/nvmeof
	$(GO) run ./interop/nvme

.PHONY: k8s-test k8s-lint k8s-image k8s-node
K8SIMAGE ?= softrnic-device-plugin:$(shell sed -n 's/^appVersion: *//p' kubernetes/chart/Chart.yaml)
K8SUSERIMAGE ?= softrnic-try
k8s-test: ## the device plug-in against the kubelet's end of its API, and the manifests against Kubernetes' types and rules
	GOWORK=off $(GO) test -C kubernetes -race -shuffle=on $(GOTESTFLAGS) ./internal/...
	GOWORK=off $(GO) test -C kubernetes -shuffle=on $(GOTESTFLAGS) .

k8s-lint: ## vet and lint the module in kubernetes
	GOWORK=off $(GO) vet -C kubernetes -tags node ./...
	cd kubernetes && GOWORK=off $(GO) tool -modfile=../tools/go.mod golangci-lint run --build-tags node

k8s-image: ## build the image of the device plug-in for this machine's processor (needs gcc, and podman or buildah)
	GO=$(GO) kubernetes/image $(K8SIMAGE)

k8s-node: k8s-image ## the image on this machine, by podman: containers of K8SUSERIMAGE with devices that it allocates
	GOWORK=off SOFTRNIC_TEST_PLUGIN=$(K8SIMAGE) SOFTRNIC_TEST_IMAGE=$(K8SUSERIMAGE) $(GO) test -C kubernetes -count=1 -v -tags node -run TestNode .

# The site has a module of its own, outside of any workspace: nobody else needs what it needs.
SITE := GOWORK=off $(GO) run -C tools/site
.PHONY: site site-unit site-test bench-record bench-page
site: build ## build the documentation site, with live examples of bin/rnic, into bin/site
	$(SITE) . -root ../.. -out ../../bin/site

site-unit: ## test what builds the site
	GOWORK=off $(GO) test -C tools/site -shuffle=on $(GOTESTFLAGS) ./...

site-test: site site-unit ## build the site, and look at every page with Chromium: links, search, narrow windows, light and dark (Debian: chromium)
	SOFTRNIC_TEST_SITE=$(CURDIR)/bin/site GOWORK=off $(GO) test -C tools/site -count=1 -timeout=1h -tags chromium -run 'TestPages|TestTheme|TestSearch|TestShots' .

bench-record: build ## add ten runs beside a net.Conn to docs/bench/turns.json, and update docs/benchmarks.md (Linux, a quiet machine)
	$(SITE) ./bench -root ../.. -record 10

bench-page: ## make docs/benchmarks.md from what is recorded
	$(SITE) ./bench -root ../..

.PHONY: release install-test action-test arm64-test
DIST ?= dist
release: ## build a release of the last commit into dist, twice, and compare and test it (root, Debian on amd64; docs/release.md)
	GO=$(GO) packaging/release $(DIST)

install-test: ## install what `make release` has built in bare Debian systems, move data there, and remove it (root, Debian)
	packaging/install-test $(DIST)

action-test: ## the recipes of examples/ci, with the steps of action.yml and GitLab's, in bare Debian systems (root, Debian)
	GO=$(GO) packaging/action-test $(DIST)

arm64-test: ## what `make release` has built for arm64, and tests, in an emulator (root, Debian)
	GO=$(GO) packaging/arm64-test $(DIST)

verify: ## clone the last commit to an empty place and run what README.md promises
	GO=$(GO) tools/verify.sh

clean: ## remove what was built
	rm -rf bin dist
