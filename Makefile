# The Bottlerocket update operator. `make` lists the targets.

SHELL := /bin/sh
.DEFAULT_GOAL := help

MODULE    := github.com/bottlerocket-os/bottlerocket-update-operator
COMMANDS  := bottlerocket-update-operator bottlerocket-update-agent
# The plugin runs on users' machines, and the image doesn't hold it.
PLUGIN    := kubectl-bottlerocket
WORKLOADS := deployment/update-operator-controller deployment/update-operator-proxy daemonset/update-operator-agent
NAMESPACE := bottlerocket

# What the build calls itself: the git tag, the commit, and when that was committed.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
DATE    ?= $(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
# The image that image and container make, kind-load loads and deploy-dev runs.
IMAGE   ?= bottlerocket-update-operator:dev
# How many nodes the demo and the local cluster have.
NODES   ?= 6
# The local cluster: API_PORT is its API server's; OS, a version to release; ON, a node or version, and HOW it is to fail.
# Chaos: SEED is the first seed, the time if it isn't given; RUNS how many seeds, or MINUTES for how long;
# TIMES how often each fault strikes in a run; KEEP where the logs go if something was broken.
RUNS    ?= 1
TIMES   ?= 3
KEEP    ?= $(or $(TMPDIR),/tmp)/bottlerocket-chaos
# Model: MINUTES is how long each of its searches takes, MEMORY how much memory, in MiB.
MEMORY  ?= 6000
# Mutants: N is how many, SEED draws them, IN are files or folders: all pure packages if none is given.
# Sim: SEEDS is how many seeds, SEED the first of them.
SEEDS   ?= 10000
KIND_CLUSTER ?= bottlerocket-update-operator

KUBECTL ?= kubectl
DOCKER  ?= docker

LDFLAGS := -X $(MODULE)/pkg/telemetry.Version=$(VERSION) -X $(MODULE)/pkg/telemetry.Commit=$(COMMIT) -X $(MODULE)/pkg/telemetry.Date=$(DATE)

TEST_TIMEOUT  ?= 45m
# Packages with goroutines that matter, which are tested with the race detector.
RACED := $(addprefix $(MODULE)/pkg/,agent alert authorizer authorizer/certificate channel connlimit controller drain kube post runner telemetry)
# How long make fuzz works on each target.
FUZZTIME ?= 30s
# The race detector needs a C compiler; Go switches CGO_ENABLED off where there is none.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# $(call need,PROGRAM) ends the target with one line where PROGRAM is missing.
need = @command -v $(1) >/dev/null 2>&1 || { echo "make $@: $(1) is needed and is not installed" >&2; exit 1; }
# Docker is there only if its engine answers.
need-docker = @command -v $(DOCKER) >/dev/null 2>&1 && $(DOCKER) version >/dev/null 2>&1 || { echo "make $@: a container engine is needed and $(DOCKER) is not installed or does not answer" >&2; exit 1; }

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z0-9-]*:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build both commands and the kubectl plugin for this machine into bin/
	go build -trimpath -ldflags "$(LDFLAGS)" -o bin/ $(addprefix ./cmd/,$(COMMANDS) $(PLUGIN))

.PHONY: test
test: ## Run what each change must pass, in 10 minutes; the first run builds a Kubernetes control plane and Prometheus into the cache
	go run ./dev/controlplane/cmd control-plane prometheus
	@# One package at a time in each of three lanes: a control plane that is short of CPU answers late, and most tests of
	@# the last lane wait for theirs.
	@status=0; set -x; \
	go test $(RACE) -p 1 -timeout $(TEST_TIMEOUT) $(RACED) & raced=$$!; \
	{ go test -p 1 -timeout $(TEST_TIMEOUT) ./dev/manifest ./dev/prometheus && go test -C dev/release -p 1 -timeout $(TEST_TIMEOUT) ./...; } & forms=$$!; \
	go test -p 1 -timeout $(TEST_TIMEOUT) $$(go list ./... | grep -vxF -e $(MODULE)/dev/e2e -e $(MODULE)/dev/manifest -e $(MODULE)/dev/prometheus $(addprefix -e ,$(RACED))) || status=1; \
	wait $$raced || status=1; \
	wait $$forms || status=1; \
	exit $$status

.PHONY: evidence
evidence: ## Run everything, for hours, and print a page with a verdict on each part; ONLY="sim chaos" are parts, SHORT=1: a try
	@sh dev/evidence.sh

.PHONY: planted
planted: ## Plant the bugs BUGS, which the searches must find: all, touched in the last commits, or names with commas
	go test -count=1 -timeout 0 ./dev/sim/planted -v -run 'Found$$' -bugs $(or $(BUGS),all)

.PHONY: fuzz
fuzz: ## Fuzz everything that decodes outside data, FUZZTIME for each target
	@sh dev/fuzz.sh $(FUZZTIME)

.PHONY: sim
sim: ## Search SEEDS simulated rollouts, from SEED on, for one that breaks a promise
	@go run ./dev/sim/cmd -seeds $(SEEDS) -seed $(or $(SEED),1)

.PHONY: digest
digest: ## Print the digest of what SEEDS simulated rollouts do, from SEED on, which a change of the code's shape must keep
	@go run ./dev/sim/cmd -digest -seeds $(SEEDS) -seed $(or $(SEED),1)

.PHONY: model
model: ## Explore 3 nodes, 2 controllers and up to 2 faults, MINUTES for each of four searches, MEMORY MiB at most
	@set -e; \
	go test -c -o bin/model.test ./dev/sim/model; \
	for budget in 1 2; do for faults in 1 2; do \
	  bin/model.test -test.run '^TestSearch$$' -test.timeout 0 -nodes 3 -controllers 2 -budget $$budget -faults $$faults \
	    -within $(or $(MINUTES),10)m -memory $(MEMORY); \
	done; done

.PHONY: mutants
mutants: ## Mutate the pure packages, or what IN names, N times, drawn by SEED, and report what their unit tests don't notice
	@nice -n 10 go run ./dev/mutants/cmd -n $(or $(N),300) $(if $(SEED),-seed $(SEED)) $(IN)

.PHONY: bench
bench: ## Run the benchmarks, which print figures, in about eleven minutes
	go test -run '^$$' -bench . -timeout 30m ./dev/bench

.PHONY: chaos
chaos: ## Update a fleet while everything fails in turn, drawn from SEED, for RUNS seeds or MINUTES, and judge by the audit log
	@echo "compiling the chaos run"
	@go run ./dev/chaos/cmd $(if $(SEED),-seed $(SEED)) -runs $(RUNS) $(if $(MINUTES),-minutes $(MINUTES)) -times $(TIMES) -keep $(KEEP)

.PHONY: e2e
e2e: ## Test the whole product on a cluster of real nodes, as root on Linux; SHORT=1: a rollout, a power cut and a plan
	@go run ./dev/realcluster/cmd
	go run ./dev/controlplane/cmd control-plane node
	go test -count=1 -v -timeout $(TEST_TIMEOUT) $(if $(SHORT),-run '^(TestRollout|TestPowerCutOfTheController|TestPlanOfFiles)$$') ./dev/e2e

.PHONY: demo
demo: ## Update a fleet of NODES simulated hosts, PLANS of them of another system, on a real control plane, and check it
	@echo "compiling the demo"
	@go run ./dev/demo -nodes $(NODES) -plans $(or $(PLANS),0)

.PHONY: cluster-up
cluster-up: ## Start a local cluster to play with, of NODES machines, and print how to use it; or say so again, and resize it
	@echo "compiling"
	@go run ./dev/simcluster/cmd up $(if $(filter file,$(origin NODES)),,-nodes $(NODES)) $(if $(API_PORT),-port $(API_PORT))

.PHONY: cluster-release
cluster-release: ## Offer the version OS of Bottlerocket to the machines of that cluster
	@go run ./dev/simcluster/cmd release $(OS)

.PHONY: cluster-fail
cluster-fail: ## Let ON, a node or a version, fail there; HOW is roll-back, hang or never-return
	@go run ./dev/simcluster/cmd fail $(ON) $(HOW)

.PHONY: cluster-heal
cluster-heal: ## Let ON be well again, or all that was told to fail
	@go run ./dev/simcluster/cmd heal $(ON)

.PHONY: cluster-down
cluster-down: ## Stop that cluster
	@go run ./dev/simcluster/cmd down

.PHONY: check
check: ## Check format, go.mod, the manifest and the shape of the code, and find bugs without running it, in a minute
	@unformatted=$$(gofmt -l cmd pkg dev); \
	[ -z "$$unformatted" ] || { echo "not formatted:"; echo "$$unformatted"; exit 1; }
	go mod tidy -diff
	go -C dev/release mod tidy -diff
	go vet ./...
	go vet -C dev/release ./...
	go build -C dev/lint -o $(CURDIR)/bin/ . honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck ./...
	cd dev/release && $(CURDIR)/bin/staticcheck ./...
	go vet -vettool=$(CURDIR)/bin/lint ./...
	go vet -C dev/release -vettool=$(CURDIR)/bin/lint ./...
	go test -count=1 -short ./dev/architecture ./dev/manifest ./dev/image
	go test -C dev/release -count=1 -short ./...
	go test -count=1 -short -run 'TestDocs|TestEveryFieldIsDocumented' ./pkg/plugin ./pkg/policy/file

.PHONY: manifest
manifest: ## Write update-operator.yaml, the components, and the chart's schema and README, from the chart
	go test -C dev/release ./chart -run TestGenerated -args -update

bin/python: dev/site/requirements.txt
	$(call need,python3)
	rm -rf $@
	python3 -m venv $@
	$@/bin/pip install --quiet --disable-pip-version-check -r $< || { rm -rf $@; exit 1; }

.PHONY: site
site: bin/python ## Build the pages of docs as a site into bin/site, by mkdocs in an environment of its own, and check all links
	NO_MKDOCS_2_WARNING=1 bin/python/bin/mkdocs build -f dev/site/mkdocs.yml

.PHONY: image
image: ## Build the image IMAGE without a container engine, for amd64 and arm64, into bin/image.tar, an OCI archive
	@echo "compiling"
	@go run ./dev/image/cmd -version "$(VERSION)" -commit "$(COMMIT)" -date "$(DATE)" -name $(IMAGE) -out bin/image.tar

.PHONY: container
container: ## Build the image IMAGE with docker
	$(need-docker)
	$(DOCKER) build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg DATE=$(DATE) -t $(IMAGE) .

.PHONY: container-test
container-test: container ## Build the image, try both commands in it, and run the unit tests where it is built
	$(DOCKER) build --target test .
	@set -e; \
	for command in $(COMMANDS); do \
	  said=$$($(DOCKER) run --rm --read-only --cap-drop ALL --network none --entrypoint /$$command $(IMAGE) -version); \
	  [ "$$said" = "$$command $(VERSION)$(if $(COMMIT), (commit $(COMMIT)$(if $(DATE),$(strip ,) $(DATE))))" ] || { echo "/$$command -version says: $$said" >&2; exit 1; }; \
	done; \
	user=$$($(DOCKER) image inspect --format '{{.Config.User}}' $(IMAGE)); \
	[ "$$user" = 65532:65532 ] || { echo "the image runs as $$user" >&2; exit 1; }; \
	echo "$(IMAGE) is well"

.PHONY: dist
# A newer Go would make other bytes.
dist: export GOTOOLCHAIN := go$(shell sed -n 's/^go //p' go.mod)
dist: ## Build what a release holds into dist/
	rm -rf dist
	@echo "compiling"
	@go run -C dev/release ./dist/cmd -version "$(VERSION)" -commit "$(COMMIT)" -date "$(DATE)" -out $(CURDIR)/dist

.PHONY: dist-test
dist-test: ## Make the release of the last commit twice, in two clones, compare all bytes and look what is in it; SHORT=1: compile once
	go test -C dev/release -count=1 $(if $(SHORT),-short) -v -timeout 0 ./dist -run '^TestDist$$' -args -full

# cosign reaches nothing but the key and the registry: it asks for no certificate and writes to no public log.
NO_LOG := --yes --use-signing-config=false --tlog-upload=false
# The release that is signed.
DIST ?= dist

.PHONY: cosign
cosign:
	@echo "compiling cosign, for some minutes the first time"
	@CGO_ENABLED=0 go build -C dev/cosign -o $(CURDIR)/bin/ github.com/sigstore/cosign/v3/cmd/cosign

.PHONY: sign-key
sign-key: cosign ## Make a key pair to sign releases with, cosign.key and cosign.pub
	bin/cosign generate-key-pair

.PHONY: sign
sign: ## Sign the checksums in DIST with KEY, and with IMAGE, a repository without a tag, the same image there
	@[ -n "$(KEY)" ] || { echo "make sign: say KEY=, the private key: make sign-key makes one" >&2; exit 1; }
	@$(MAKE) --no-print-directory cosign
	bin/cosign sign-blob --key $(KEY) $(NO_LOG) --bundle $(DIST)/SHA256SUMS.sigstore.json $(DIST)/SHA256SUMS
ifneq ($(origin IMAGE),file)
	bin/cosign sign --key $(KEY) $(NO_LOG) $(IMAGE)@$$(sed -n 's/^ *image: .*@//p' $(DIST)/update-operator.yaml | sort -u)
endif

.PHONY: sign-test
sign-test: ## Sign and verify with a key made for it, with a registry on this machine
	go test -C dev/release -count=1 -v -timeout 0 ./dist -run '^TestSign$$' -args -full

.PHONY: clean
clean: ## Remove what build, image and dist made
	rm -rf bin dist

.PHONY: deploy-dev
deploy-dev: ## Apply the manifest with IMAGE and the changes in dev/deployment.yaml, and dev/policy.yaml if there is no policy
	$(call need,$(KUBECTL))
	@mkdir -p bin/deploy
	@cp update-operator.yaml bin/deploy
	@sed 's|@containerRef@|$(IMAGE)|' dev/deployment.yaml > bin/deploy/deployment.yaml
	@printf 'namespace: $(NAMESPACE)\nresources: [update-operator.yaml]\npatches: [{path: deployment.yaml}]\n' > bin/deploy/kustomization.yaml
	@$(KUBECTL) apply -k bin/deploy
	@$(KUBECTL) -n $(NAMESPACE) get configmap update-policy >/dev/null 2>&1 || \
	sed 's/^  namespace: .*/  namespace: $(NAMESPACE)/' dev/policy.yaml | $(KUBECTL) create -f -

.PHONY: undeploy
undeploy: ## Let the controller uncordon every node, and then delete what the manifest made, or do REMOVE="helm uninstall ..."
	$(call need,$(KUBECTL))
	@KUBECTL=$(KUBECTL) NAMESPACE=$(NAMESPACE) sh dev/undeploy.sh

.PHONY: dashboard
dashboard: ## Put a Prometheus and a Grafana with the dashboards into the current cluster, not for production
	$(call need,$(KUBECTL))
	@KUBECTL=$(KUBECTL) sh dev/dashboard.sh

.PHONY: prometheus
prometheus: ## Put a sample Prometheus alone there, and print what to type on its port 9090
	$(call need,$(KUBECTL))
	@KUBECTL=$(KUBECTL) sh dev/dashboard.sh prometheus

.PHONY: rollout
rollout: deploy-dev ## Do deploy-dev, restart all of the operator's pods and wait for them
	$(KUBECTL) -n $(NAMESPACE) rollout restart $(WORKLOADS)
	@set -e; for w in $(WORKLOADS); do $(KUBECTL) -n $(NAMESPACE) rollout status --timeout 5m $$w; done

.PHONY: kind-cluster
kind-cluster: ## Create a kind cluster
	$(call need,kind)
	$(need-docker)
	kind create cluster --name $(KIND_CLUSTER) --config dev/kind-cluster.yml

.PHONY: kind-load
kind-load: ## Build the image and load it into the kind cluster
	$(call need,kind)
	@$(MAKE) --no-print-directory container
	kind load docker-image --name $(KIND_CLUSTER) $(IMAGE)

.PHONY: kind-rollout
kind-rollout: ## Build, load and deploy to the kind cluster, and restart the pods
	@$(MAKE) --no-print-directory kind-load
	@$(MAKE) --no-print-directory rollout

.PHONY: minikube-cluster
minikube-cluster: ## Create a cluster of minikube
	$(call need,minikube)
	minikube start -p $(KIND_CLUSTER) --nodes 4

.PHONY: minikube-load
minikube-load: ## Build the image and load it into that cluster
	$(call need,minikube)
	@$(MAKE) --no-print-directory container
	minikube -p $(KIND_CLUSTER) image load $(IMAGE)

.PHONY: minikube-rollout
minikube-rollout: ## Build, load and deploy to that cluster, and restart the pods
	@$(MAKE) --no-print-directory minikube-load
	@$(MAKE) --no-print-directory rollout

.PHONY: get-nodes-status
get-nodes-status: ## Print what the annotations of labelled nodes say, with colours on a terminal or with COLOR=always
	$(call need,$(KUBECTL))
	$(call need,jq)
	@nodes=$$($(KUBECTL) get nodes -o json) && printf '%s\n' "$$nodes" | jq -r -f dev/nodes-status.jq | \
	awk -v color="$${COLOR:-$$([ -t 1 ] && [ -z "$$NO_COLOR" ] && echo always)}" -f dev/nodes-status.awk
