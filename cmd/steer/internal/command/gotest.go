// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package command

// TakesValue reports whether a flag of go test, its own, one of go build or of package sim,
// has a value, which may be the argument behind it.
func TakesValue(name string) bool {
	switch name {
	case "C", "asmflags", "buildmode", "compiler", "covermode", "coverpkg", "exec", "gccgoflags", "gcflags", "installsuffix", "ldflags",
		"mod", "modfile", "o", "overlay", "p", "pgo", "pkgdir", "tags", "toolexec",
		"bench", "benchtime", "blockprofile", "blockprofilerate", "count", "coverprofile", "cpu", "cpuprofile", "fuzz", "fuzzminimizetime",
		"fuzztime", "list", "memprofile", "memprofilerate", "mutexprofile", "mutexprofilefraction", "outputdir", "parallel", "run",
		"shuffle", "skip", "timeout", "trace", "vet",
		"sim.for":
		return true
	}
	return false
}
