// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"slices"
	"strings"
)

// Text is the report for people.
func (r *Report) Text() string {
	var out strings.Builder
	section := func(title, none string, lines []string) {
		fmt.Fprintf(&out, "%s:\n", title)
		if len(lines) == 0 {
			lines = []string{none}
		}
		for _, line := range lines {
			fmt.Fprintf(&out, "  %s\n", line)
		}
	}
	fmt.Fprintf(&out, "%s, layout %s\n", r.project.Name, strings.Join(r.project.Layout, ","))
	section("steer adopt replaces", "nothing", places(r.makefile.replaced))
	if len(r.makefile.left) > 0 {
		section("It leaves, since their form is not known", "", places(r.makefile.left))
	}
	section("Generated files then", "the Makefile runs no generator in a known form", r.generated)
	out.WriteString("\nA move to Steer's runtime would need:\n")
	s := r.sources
	section("lease names (keep them with --leader-election-id, or two versions lead at once)", "none: the lease gets the name of the operator", uses(s.leases))
	section("field managers (keep them with client.Options.FieldOwner, or applied fields get a second owner)", "none is named: client-go uses the name of the program", uses(s.managers))
	section("finalizers (keep them with controller.Finalizer)", "none", uses(s.finalizers))
	section("recorders of events", "none", uses(s.recorders))
	own, standard := []string{}, 0
	for _, flag := range s.flags {
		if slices.Contains(standardFlags(), flag.Name) {
			standard++
		} else {
			own = append(own, "--"+flag.Name+" at "+flag.Place)
		}
	}
	section(fmt.Sprintf("flags for steer.Operator.Flags (%d others are those of steer.Main)", standard), "none", own)
	section("controllers", "none found", uses(s.reconciled))
	var owned []use
	for _, u := range s.owned {
		owned = append(owned, u.use)
	}
	section("owned kinds (controller.Children applies and deletes them)", "none", uses(owned))
	section("writes of the status that the runtime does itself", "none", uses(s.statusUpdates))
	section("rights that are missing", "none", r.missing)
	out.WriteString("\nWhat could be deleted then:\n")
	for _, d := range r.deletions {
		if d.files == 0 {
			continue
		}
		fmt.Fprintf(&out, "  %s: %d files, %d lines\n", d.step, d.files, d.lines)
		fmt.Fprintf(&out, "    %s\n", strings.Join(d.examples, "\n    "))
	}
	return out.String()
}

func uses(list []use) []string {
	var out []string
	for _, u := range list {
		out = append(out, u.Name+" at "+u.Place)
	}
	return out
}
