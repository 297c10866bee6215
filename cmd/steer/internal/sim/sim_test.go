// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/internal/journal"
)

// TestArgumentsAreThoseOfGoTest tells packages from the values of flags.
func TestArgumentsAreThoseOfGoTest(t *testing.T) {
	t.Parallel()
	words := func(s string) []string { return strings.Fields(s) }
	for _, test := range []struct{ args, flags, listing, packages, rest string }{
		{"", "", "", "./...", ""},
		{"./a ./b/...", "", "", "./a ./b/...", ""},
		{"-run TestShop/^crash ./a", "-run TestShop/^crash", "", "./a", ""},
		{"-race -sim.for 20s", "-race -sim.for 20s", "", "./...", ""},
		{"-sim.for=20s -sim.update ./a", "-sim.for=20s -sim.update", "", "./a", ""},
		{"-C dir -tags e2e -v", "-C dir -tags e2e -v", "-C dir -tags e2e", "./...", ""},
		{"./a -args -run ./b", "", "", "./a", "-args -run ./b"},
	} {
		a := split(words(test.args))
		for _, part := range []struct {
			what string
			got  []string
			want string
		}{{"flags", a.flags, test.flags}, {"those of go list", a.listing, test.listing}, {"packages", a.packages, test.packages}, {"the rest", a.rest, test.rest}} {
			if !slices.Equal(part.got, words(part.want)) {
				t.Errorf("%q: %s are %q, want %q", test.args, part.what, part.got, part.want)
			}
		}
	}
}

func TestPackagesAreThoseWhoseTestsUseSim(t *testing.T) {
	t.Parallel()
	got := using("example.com/a fmt\nexample.com/a.test fmt testing " + module + "\nexample.com/b.test fmt testing\n" +
		"example.com/c " + module + "\nexample.com/d.test " + module + "/internal/plan\n\n")
	if want := []string{"example.com/a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAFollowerSaysHowFarSimulationsAre has one that ends, and one that is cut off.
func TestAFollowerSaysHowFarSimulationsAre(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := &follower{dir: t.TempDir(), out: &out, line: &progress.Line{}, ended: map[string]bool{}}
	begin := func(test string) *journal.Journal {
		j, err := journal.Create(f.dir, journal.Head{Folder: "/src", Test: test})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	looks := func(want ...string) {
		t.Helper()
		if going := f.look(); !slices.Equal(going, want) {
			t.Errorf("going on: %q, want %q", going, want)
		}
	}
	shop, road := begin("TestShop"), begin("TestRoad")
	looks("sim: TestRoad: without faults", "sim: TestShop: without faults")
	for _, j := range []*journal.Journal{shop, road} {
		j.Begins("reference", "")
		j.Over("reference")
		j.Plans(120)
		j.Begins("order_1", "")
	}
	shop.Over("order_1")
	shop.Found("order_1")
	looks("sim: TestRoad: 0 of 120 plans, 0 findings", "sim: TestShop: 1 of 120 plans, 1 finding")
	if err := shop.End("4 runs; 119 plans left out"); err != nil {
		t.Fatal(err)
	}
	looks("sim: TestRoad: 0 of 120 plans, 0 findings")
	f.close()
	want := "sim: TestShop: 1 of 120 plans, 1 finding: 4 runs; 119 plans left out\n" +
		"sim: TestRoad: 0 of 120 plans, 0 findings: cut off\n  cut off: order_1\n"
	if out.String() != want {
		t.Errorf("it says\n%s\nwant\n%s", out.String(), want)
	}
}
