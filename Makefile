# Copyright The Steer Authors.
# SPDX-License-Identifier: Apache-2.0

.DEFAULT_GOAL := help
.PHONY: help demo test race flakes lint ci fuzz soak clients crash kills restarts ha faults disks bench oracle suites etcdcluster helm olm deploy real kubernetes release

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: ## see a control plane and an operator at work
	go run ./cmd/steer demo

test: ## what the README says
	go test ./...

race: ## the same with the race detector
	go test -race ./...

flakes: ## look for tests that fail sometimes, for hours; FLAKES="-rounds 20 ./queue" for less; goes on where it ended
	go run ./internal/flakes $(FLAKES)

lint: ## vet and golangci-lint
	.ci/run vet lint

ci: ## all that a change must pass
	.ci/run

fuzz: ## every fuzz target for ten minutes each (hours)
	STEER_FUZZ_TIME=10m .ci/run fuzz

soak: ## half an hour of watchers, writers, operators that are killed, compactions and a full disk
	STEER_SOAK=30m .ci/run soak

clients: ## curl, the Python client and the Node client against steer up
	cmd/steer/testdata/clients/run.sh

crash: ## the long crash and kill suites of the store
	STEER_CRASH_ROUNDS=10000 STEER_KILLS=300 go test -timeout 30m ./storage/...

kills: ## a thousand processes of steer up, killed under load (ten minutes)
	STEER_KILLS=1000 .ci/run kills

restarts: ## fifty rolling restarts of an operator with webhooks under load, also on kube-apiserver if it is built
	.ci/run restarts

ha: ## three etcd members and three servers of steer up, all restarted in turn under load
	.ci/run ha

faults: ## three hundred faults of such a cluster: processes, network and data (an hour)
	STEER_FAULTS=300 STEER_FAULTS_WITHIN=3h .ci/run etcd

disks: ## the suites of the store on tmpfs, ext4, overlayfs and what else can be mounted
	.ci/run disks

bench: ## side by side with upstream (builds it once; up to ten minutes for each of seven groups)
	cd oracle && go build -o bin/ ./cmd/...
	cd bench && go run ./cmd/sidebyside -upstream ../oracle/bin

etcdcluster: ## the operator of examples/etcdcluster with real etcd members
	.ci/run etcdcluster

real: ## the suites on kube-apiservers of the minor that is served and an older one (builds them once)
	cd oracle && go build -o bin/ ./cmd/...
	cd oracle/older && go build -o bin/ ./...
	.ci/run real

kubernetes: ## move to VERSION=1.38 of Kubernetes if it is released, and say what it changes; BINARIES=FOLDER has its server (docs/kubernetes.md)
	go run ./internal/kubernetes -to "$(VERSION)" -move -binaries "$(BINARIES)"

release: ## the files of VERSION=v1.2.0 in dist, signed with KEY=FILE, and tagged with TAG=yes
	cd release && go run . build -version "$(VERSION)" -key "$(KEY)" $(if $(TAG),-tag)

helm: ## Helm, built from its module, against steer up --workloads (minutes, once)
	cd oracle/helm && go test -v -timeout 20m ./...

olm: ## bundles of steer package olm, with the validators of the Operator Framework
	cd oracle/olm && go test -v -timeout 20m ./...

deploy: ## chart, manifests and bundle of a project on kube-apiserver (builds it once)
	cd oracle && go build -o bin/ ./cmd/...
	.ci/run deploy

suites: ## Kubernetes' own integration tests against Steer (minutes to build each; SUITES="-suite apiserver-apply" runs some)
	cd oracle && go build -o bin/ ./cmd/etcd
	cd oracle && go run ./cmd/suites $(SUITES)

oracle: ## record the answers of kube-apiserver again
	cd oracle && go build -o bin/ ./cmd/...
	cd oracle && STEER_UPSTREAM_BIN=bin go run ./cmd/record
