// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The lines of a page between which tables stand.
const (
	begin = "<!-- measured: written by `cd bench && go run ./cmd/sidebyside -publish` from docs/measured.json -->"
	end   = "<!-- end of measured -->"
)

// The files, below the main module, that publish figures.
const (
	keptFile   = "docs/measured.json"
	tablesPage = "docs/measured.md"
	frontPage  = "README.md"
	picture    = "docs/growth.svg"
)

// table is one of docs/measured.md.
type table struct {
	group, upstream string
	rows            []row
}

// row shows some metrics of a group side by side. In their names a star stands for
// anything: it is where a run's size stands.
type row struct {
	label   string
	metrics []string
}

// upstreamServer is what module oracle builds.
const upstreamServer = "kube-apiserver 1.37.2 + etcd 3.7"

// tables are what docs/measured.md shows: the goals of each group, met or not.
func tables() []table {
	return []table{
		{"server", upstreamServer, []row{
			{"start to `/readyz`", []string{"start to /readyz"}},
			{"at rest: anonymous memory", []string{"idle memory, anonymous"}},
			{"CRD to the first object of it", []string{"CRD to first object"}},
			{"create, 16 clients, durable; server CPU of one", []string{"create, 16 clients", "create, 16 clients, server CPU per request"}},
			{"get, 16 clients; server CPU of one", []string{"get, 16 clients", "get, 16 clients, server CPU per request"}},
			{"patch; apply, 16 clients, server CPU of one", []string{"patch, 16 clients, server CPU per request", "apply, 16 clients, server CPU per request"}},
			{"consistent list of all, 16 clients", []string{"consistent list of *, 16 clients, median"}},
			{"200 watchers: lag p99; server CPU of an event", []string{"200 watchers: lag p99", "200 watchers: server CPU per event"}},
		}},
		{"pods", upstreamServer, []row{
			{"list of all by 16 clients, JSON; protobuf: median", []string{"list of *, JSON, 16 clients, median", "list of *, protobuf, 16 clients, median"}},
			{"its server CPU", []string{"list of *, JSON, 16 clients, server CPU", "list of *, protobuf, 16 clients, server CPU"}},
			{"20 watchers: server CPU of an event, JSON; protobuf", []string{"20 watchers, JSON: server CPU per event", "20 watchers, protobuf: server CPU per event"}},
			{"its lag p99", []string{"20 watchers, JSON: lag p99", "20 watchers, protobuf: lag p99"}},
			{"resident memory for each byte of JSON", []string{"* Pods: resident memory per byte of JSON"}},
		}},
		{"envtest", upstreamServer, []row{
			{"a test of 50, one after the other; four at once", []string{"one after the other: wall per test", "four at once: wall per test"}},
			{"its CPU: the programs; the suite", []string{"one after the other: CPU of the programs per test", "one after the other: CPU of the suite per test"}},
		}},
		{"runtime", "controller-runtime v0.25.2", []row{
			{"initial sync of objects of 8 KB: CPU, JSON; protobuf", []string{"initial sync, objects of 8 KB, JSON: CPU", "initial sync, protobuf: CPU"}},
			{"its live heap, JSON; protobuf", []string{"live heap after it, JSON", "live heap after it, protobuf"}},
			{"watch event to handler, JSON; protobuf: CPU", []string{"watch event to handler, JSON: CPU", "watch event to handler, protobuf: CPU"}},
			{"change to reconcile: p50; p99", []string{"change to reconcile, p50", "change to reconcile, p99"}},
			{"queue: add, get, done", []string{"queue add, get, done: CPU"}},
			{"empty reconcile", []string{"empty reconcile: CPU"}},
			{"manager at rest: anonymous memory", []string{"manager at rest, one controller: anonymous memory"}},
			{"cached get; list of 100: allocations", []string{"cached get, a copy: allocations", "cached list, copies: allocations"}},
		}},
		{"weight", "the same operator on controller-runtime", []row{
			{"third-party packages; binary", []string{"third-party packages", "binary"}},
			{"compile from nothing, CPU", []string{"compile from nothing, CPU"}},
		}},
		{"generate", "controller-gen v0.23.0, code-generator v0.37.2", []row{
			{"CRDs, deepcopy, RBAC, webhooks of cluster-api: CPU", []string{"crd, object, rbac, webhook of cluster-api"}},
			{"the same of gateway-api; of prometheus-operator", []string{"crd, object, rbac, webhook of gateway-api", "crd, object, rbac, webhook of prometheus-operator"}},
			{"the same again, nothing changed: CPU", []string{"the same again, nothing changed: cluster-api"}},
			{"clients, listers, informers of gateway-api: CPU", []string{"client, lister, informer, register of gateway-api"}},
		}},
		{"webhooks", upstreamServer, []row{
			{"list of 10,000 through a conversion webhook: first; again", []string{"first list of * through a conversion webhook: wall", "another list of * through a conversion webhook: wall"}},
			{"its server CPU", []string{"first list of * through a conversion webhook: server CPU", "another list of * through a conversion webhook: server CPU"}},
			{"what a webhook that does nothing adds: validating; mutating, p50", []string{"a validating webhook that does nothing: p50", "a mutating webhook that does nothing: p50"}},
			{"what 50 policies that match add: p50; server CPU", []string{"50 policies that match: p50", "50 policies that match: server CPU"}},
		}},
		{"scale", "kube-apiserver, controller-runtime", []row{
			{"server memory with 1,000; 10,000; 100,000 objects of 2 KB", []string{"server memory, resident, 1,000 objects", "server memory, resident, 10,000 objects", "server memory, resident, 100,000 objects"}},
			{"get among 10,000; 100,000 objects: server CPU", []string{"get, server CPU, 10,000 objects", "get, server CPU, 100,000 objects"}},
			{"patch among 10,000; 100,000 objects: server CPU", []string{"patch, server CPU, 10,000 objects", "patch, server CPU, 100,000 objects"}},
			{"event to 1; 200 watchers: server CPU of each", []string{"event, server CPU, 1 watchers", "event, server CPU, 200 watchers"}},
			{"reconcile of an event with 1; 50 controllers: CPU of each", []string{"reconcile of one event, CPU, 1 controllers", "reconcile of one event, CPU, 50 controllers"}},
		}},
	}
}

// figures are the six of README.md.
func figures() []struct {
	group string
	row   row
} {
	return []struct {
		group string
		row   row
	}{
		{"server", row{"API server: start to `/readyz`", []string{"start to /readyz"}}},
		{"server", row{"create of a custom object, 16 clients, durable", []string{"create, 16 clients"}}},
		{"scale", row{"API server with 10,000 objects of 2 KB: resident memory", []string{"server memory, resident, 10,000 objects"}}},
		{"envtest", row{"a test with a control plane of its own, one after the other", []string{"one after the other: wall per test"}}},
		{"weight", row{"an operator: third-party packages; size of its binary", []string{"third-party packages", "binary"}}},
		{"generate", row{"CRDs, deepcopy, RBAC, webhooks of cluster-api: CPU", []string{"crd, object, rbac, webhook of cluster-api"}}},
	}
}

// Figures renders the table of README.md.
func (k Kept) Figures() string {
	var out strings.Builder
	out.WriteString(begin + "\n\n| | Steer | upstream | ratio |\n|---|---|---|---|\n")
	for _, f := range figures() {
		if r := k[f.group]; r != nil {
			if cells, ok := r.cells(f.row); ok {
				fmt.Fprintf(&out, "| %s | %s |\n", f.row.label, strings.Join(cells, " | "))
			}
		}
	}
	out.WriteString(end + "\n")
	return out.String()
}

// Tables renders those of docs/measured.md.
func (k Kept) Tables() string {
	var out strings.Builder
	out.WriteString(begin + "\n")
	for _, t := range tables() {
		r := k[t.group]
		if r == nil {
			continue
		}
		fmt.Fprintf(&out, "\n| `%s` | Steer | %s | ratio |\n|---|---|---|---|\n", r.Command, t.upstream)
		for _, row := range t.rows {
			if cells, ok := r.cells(row); ok {
				fmt.Fprintf(&out, "| %s | %s |\n", row.label, strings.Join(cells, " | "))
			}
		}
	}
	out.WriteString("\n" + end + "\n")
	return out.String()
}

// cells of a row; not ok if none of its metrics was measured.
func (r *Report) cells(row row) (cells []string, ok bool) {
	var ours, theirs, ratios []string
	for _, name := range row.metrics {
		m := r.find(name)
		if m == nil {
			continue
		}
		ours, theirs = append(ours, human(m.Steer, m.Unit)), append(theirs, human(m.Upstream, m.Unit))
		ratio := "-"
		if m.Ratio > 0 {
			ratio = format(m.Ratio) + "x"
		}
		ratios = append(ratios, ratio)
	}
	return []string{strings.Join(ours, "; "), strings.Join(theirs, "; "), strings.Join(ratios, "; ")}, len(ours) > 0
}

// find returns the first metric of a name; a star in it stands for anything.
func (r *Report) find(name string) *Metric {
	head, tail, starred := strings.Cut(name, "*")
	for _, m := range r.Metrics {
		if m.Name == name || starred && strings.HasPrefix(m.Name, head) && strings.HasSuffix(m.Name, tail) {
			return m
		}
	}
	return nil
}

// human shows a median in the unit that reads best.
func human(values []float64, unit string) string {
	if len(values) == 0 {
		return "-"
	}
	v := Median(values)
	switch {
	case unit == "ops/s":
		return count(v) + "/s"
	case unit == "" && (v >= 10 || v == math.Trunc(v)):
		return count(v)
	case unit == "":
		return format(v)
	case unit == "ms" && v >= 1000:
		v, unit = v/1000, "s"
	case unit == "MB" && v >= 1000:
		v, unit = v/1000, "GB"
	case unit == "ms" && v < 1, unit == "µs" && v < 1000:
		if unit == "ms" {
			v *= 1000
		}
		unit = "µs"
	case unit == "µs":
		v, unit = v/1000, "ms"
	}
	return format(v) + " " + unit
}

// Publish keeps the figures in the main module, whose folder is root, and rewrites the pages
// and the picture that show them.
func (k Kept) Publish(root string) error {
	return errors.Join(
		k.Write(filepath.Join(root, keptFile)),
		rewrite(filepath.Join(root, tablesPage), k.Tables()),
		rewrite(filepath.Join(root, frontPage), k.Figures()),
		os.WriteFile(filepath.Join(root, picture), k.Picture(), 0o644),
	)
}

// rewrite puts a table, which begins and ends with those lines, in the place of the one
// that a page has.
func rewrite(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin+"\n")
	_, after, closed := strings.Cut(rest, end+"\n")
	if !ok || !closed {
		return fmt.Errorf("%s: the lines %q and %q are not both there", page, begin, end)
	}
	return os.WriteFile(page, []byte(before+table+after), 0o644)
}
