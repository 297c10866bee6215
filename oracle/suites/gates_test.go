// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestFeatureGatesAreThoseOfKubernetes compares the gates that the command line knows with the
// list in the module of Kubernetes that is required here.
func TestFeatureGatesAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, dir, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	text, err := os.ReadFile(filepath.Join(dir, "test/compatibility_lifecycle/reference/versioned_feature_list.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var features []struct {
		Name           string
		VersionedSpecs []struct {
			Default, LockToDefault bool
			Version                string
		}
	}
	if err := yaml.Unmarshal(text, &features); err != nil {
		t.Fatal(err)
	}
	minor := func(version string) int {
		n, err := strconv.Atoi(strings.Split(version, ".")[1])
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		return n
	}
	var want []string
	for _, f := range features {
		line, last := "", -1
		for _, spec := range f.VersionedSpecs {
			if at := minor(spec.Version); at <= minor(version) && at > last {
				last, line = at, fmt.Sprintf("%s %t", f.Name, spec.Default)
				if spec.LockToDefault {
					line += " locked"
				}
			}
		}
		if line != "" {
			want = append(want, line)
		}
	}
	known, err := os.ReadFile("../../cmd/steer/internal/envtest/flags/feature-gates.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(known)), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	slices.Sort(got)
	slices.Sort(want)
	for _, line := range want {
		if _, there := slices.BinarySearch(got, line); !there {
			t.Errorf("the command line does not know %q", line)
		}
	}
	for _, line := range got {
		if _, there := slices.BinarySearch(want, line); !there {
			t.Errorf("Kubernetes %s has not %q", version, line)
		}
	}
}
