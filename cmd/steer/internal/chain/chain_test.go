// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/trace"
)

// kept are the versions that a server has of objects, from a revision on.
type kept struct {
	from    int64
	objects map[trace.Object][]map[string]any // nil contents: deleted, at the revision under "deleted"
}

func (v *kept) put(object trace.Object, revision int64, content map[string]any) {
	if v.objects == nil {
		v.objects = map[trace.Object][]map[string]any{}
	}
	content["metadata"] = map[string]any{"resourceVersion": strconv.FormatInt(revision, 10), "managedFields": content["managedFields"]}
	delete(content, "managedFields")
	v.objects[object] = append(v.objects[object], content)
}

func (v *kept) At(_ context.Context, object trace.Object, revision int64) (at map[string]any, err error) {
	if revision > 0 && revision < v.from {
		return nil, versions.ErrForgotten
	}
	for _, content := range v.objects[object] {
		made, _ := strconv.ParseInt(content["metadata"].(map[string]any)["resourceVersion"].(string), 10, 64)
		if revision == 0 || made <= revision {
			at = content
		}
	}
	if at != nil && at["gone"] != nil {
		return nil, nil
	}
	return at, nil
}

var (
	shop   = trace.Object{Group: "example.com", Kind: "Shop", Namespace: "default", Name: "bakery"}
	deploy = trace.Object{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "web"}
	secret = trace.Object{Kind: "Secret", Namespace: "default", Name: "login"}
	morn   = time.Date(2026, 1, 2, 10, 2, 0, 0, time.UTC)
	first  = trace.ID{Recorder: 1, Number: 1}
	second = trace.ID{Recorder: 2, Number: 7}
)

func plural(_, kind string) string { return strings.ToLower(kind) + "s" }

func note(revision int64, o trace.Object, user, manager, audit string) notes.Note {
	return notes.Note{
		Revision: storage.Revision(revision), Time: morn, Group: o.Group, Resource: plural(o.Group, o.Kind), Namespace: o.Namespace, Name: o.Name,
		User: user, FieldManager: manager, AuditID: audit,
	}
}

// records is a source of records as a reader of files is one.
func records(all ...trace.Record) func(trace.Object) []trace.Record {
	return func(o trace.Object) (found []trace.Record) {
		for _, r := range all {
			if r.Object == o || slices.ContainsFunc(r.Writes, func(a trace.Access) bool { return a.Object == o }) {
				found = append(found, r)
			}
		}
		return found
	}
}

// story is of two operators: a user changes the shop, its operator writes a deployment,
// and another operator scales that.
func story() *chain.Facts {
	v := &kept{from: 230}
	v.put(shop, 235, map[string]any{"spec": map[string]any{"size": "1"}})
	v.put(shop, 240, map[string]any{"spec": map[string]any{"size": "3"}})
	v.put(deploy, 236, map[string]any{"spec": map[string]any{"replicas": "1"}})
	v.put(deploy, 241, map[string]any{"spec": map[string]any{"replicas": "3"}})
	v.put(deploy, 243, map[string]any{"spec": map[string]any{"replicas": "3", "paused": true}})
	return &chain.Facts{
		Server: v, Plural: plural,
		Notes: []notes.Note{
			note(240, shop, "admin", "kubectl", "x"), note(241, deploy, "sa:shop", "shop", first.String()), note(243, deploy, "sa:scaler", "scaler", second.String()),
		},
		Records: records(
			trace.Record{ID: first, Controller: "shop", Object: shop, Began: morn,
				Causes: []trace.Cause{{Type: trace.Updated, Object: shop, Revision: "240", Changed: "spec.size"}},
				Writes: []trace.Access{{Verb: trace.Apply, Object: deploy, Revision: "241", Changed: "spec.replicas"}}},
			trace.Record{ID: second, Controller: "scaler", Object: deploy, Began: morn,
				Causes: []trace.Cause{{Type: trace.Updated, Object: deploy, Revision: "241", Changed: "spec.replicas"}, {Type: trace.Retried}},
				Writes: []trace.Access{{Verb: trace.Patch, Object: deploy, Revision: "243", Changed: "spec.paused"}}},
		),
	}
}

func why(t *testing.T, f *chain.Facts, o trace.Object, field string) string {
	t.Helper()
	answer, err := f.Why(t.Context(), o, field)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(answer.String(), ", "+morn.Local().Format(time.TimeOnly), "")
}

func TestAChainLeadsOverOperatorsToTheFirstWriter(t *testing.T) {
	t.Parallel()
	want := `spec.paused of Deployment default/web is true, since revision 243
  updated at 243 (spec.paused) by reconcile ` + second.String() + ` of scaler, Deployment default/web, user sa:scaler
    because updated Deployment default/web@241 (spec.replicas)
      updated at 241 (spec.replicas) by reconcile ` + first.String() + ` of shop, Shop default/bakery, user sa:shop
        because updated Shop default/bakery@240 (spec.size)
          updated at 240 (spec.size) by kubectl, user admin
    because retried
`
	if diff := cmp.Diff(want, why(t, story(), deploy, "spec.paused")); diff != "" {
		t.Error(diff)
	}
}

func TestAFieldIsOfTheLastWriteThatChangedIt(t *testing.T) {
	t.Parallel()
	got := why(t, story(), deploy, "spec.replicas")
	if !strings.HasPrefix(got, "spec.replicas of Deployment default/web is \"3\", since revision 241\n") || strings.Contains(got, "scaler") {
		t.Error(got)
	}
	if got := why(t, story(), deploy, "spec.other"); !strings.Contains(got, "has no such field") {
		t.Error(got)
	}
}

// TestWhatIsMissingIsSaid source by source.
func TestWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change      func(*chain.Facts)
		field       string
		want, wants string
	}{
		"no records": {
			func(f *chain.Facts) { f.Records, f.NoRecords = records(), "pass --records" }, "spec.paused",
			"by scaler, user sa:scaler", "the record of reconcile " + second.String() + ", which the request said it is of: pass --records",
		},
		"no notes": {
			func(f *chain.Facts) { f.Notes, f.NoNotes = nil, "this server has none" }, "spec.paused",
			"by reconcile " + second.String(), "not known: the user: this server has none",
		},
		"neither": {
			func(f *chain.Facts) {
				f.Notes, f.NoNotes, f.Records, f.NoRecords = nil, "no notes here", records(), "no records here"
			}, "spec.paused", "updated at 243 (spec.paused)\n", "not known: the user: no notes here",
		},
		"forgotten values": {
			func(f *chain.Facts) { f.Server.(*kept).from = 242 }, "spec.replicas",
			"spec.replicas of Deployment default/web is \"3\"\n", "it did not change in the versions that the server still has (2)",
		},
		"a forgotten cause": {
			func(f *chain.Facts) { f.Server.(*kept).from = 242 }, "spec.paused",
			"written at 241 (spec.replicas) by reconcile " + first.String(), "not known: what was before: the server has forgotten it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := story()
			c.change(f)
			if got := why(t, f, deploy, c.field); !strings.Contains(got, c.want) || !strings.Contains(got, c.wants) {
				t.Errorf("%s\nwant %q and %q", got, c.want, c.wants)
			}
		})
	}
}

func TestHistoryGoesOnWithRecordsWhereTheServerHasForgotten(t *testing.T) {
	t.Parallel()
	f := story()
	f.Server.(*kept).from = 242
	h, err := f.History(t.Context(), deploy, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range h.Versions {
		line := v.Revision + " " + v.Change
		for _, field := range v.Fields {
			line += fmt.Sprintf(" %s:%v>%v", field.Path, field.Old, field.New)
		}
		got = append(got, line)
	}
	if diff := cmp.Diff([]string{"241  spec.replicas:<nil>><nil>", "243 updated spec.paused:<nil>>true"}, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(h.End, "forgotten what was before 241") {
		t.Error(h.End)
	}
	if h, err := story().History(t.Context(), deploy, 2); err != nil || len(h.Versions) != 2 || !strings.Contains(h.End, "limit") {
		t.Errorf("%v %v", h, err)
	}
	if h, err := story().History(t.Context(), deploy, 10); err != nil || len(h.Versions) != 3 || h.Versions[0].Change != "created" {
		t.Errorf("%v %v", h, err)
	}
}

func TestADeletedObjectHasAHistory(t *testing.T) {
	t.Parallel()
	f := story()
	f.Server.(*kept).put(deploy, 250, map[string]any{"gone": true})
	f.Notes = append(f.Notes, note(250, deploy, "eve", "kubectl", ""))
	h, err := f.History(t.Context(), deploy, 10)
	if err != nil || len(h.Versions) != 4 {
		t.Fatal(h, err)
	}
	if last := h.Versions[3]; last.Change != "deleted" || last.User != "eve" || last.Revision != "250" {
		t.Errorf("%+v", last)
	}
}

// TestManagersOfManagedFieldsAreNotGuessed without notes: where two may have written, or
// the time is that of an earlier write, none is named.
func TestManagersOfManagedFieldsAreNotGuessed(t *testing.T) {
	t.Parallel()
	entry := func(manager, at, fields string) any {
		return map[string]any{"manager": manager, "operation": "Update", "time": at, "fieldsV1": fields}
	}
	v := &kept{}
	v.put(shop, 1, map[string]any{"managedFields": []any{entry("a", "2026-01-02T10:00:00Z", "x")}})
	v.put(shop, 2, map[string]any{"s": "1", "managedFields": []any{entry("a", "2026-01-02T10:00:00Z", "x"), entry("b", "2026-01-02T10:00:01Z", "s")}})
	v.put(shop, 3, map[string]any{"managedFields": []any{entry("a", "2026-01-02T10:00:00Z", "x")}}) // what b had was removed
	v.put(shop, 4, map[string]any{"s": "2", "managedFields": []any{entry("c", "2026-01-02T10:00:03Z", "s"), entry("d", "2026-01-02T10:00:03Z", "t")}})
	f := &chain.Facts{Server: v, Plural: plural, Records: records(), NoNotes: "none"}
	h, err := f.History(t.Context(), shop, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range h.Versions {
		got = append(got, v.Manager)
	}
	if diff := cmp.Diff([]string{"a", "b", "", ""}, got); diff != "" {
		t.Error(diff)
	}
}

// TestTheOnlyOwnerOfWhatChangedWroteIt also where the times are of one second.
func TestTheOnlyOwnerOfWhatChangedWroteIt(t *testing.T) {
	t.Parallel()
	const at = "2026-01-02T10:00:00Z"
	entry := func(manager, time string, fields ...string) any {
		owned := map[string]any{}
		for _, f := range fields {
			owned["f:"+f] = map[string]any{}
		}
		return map[string]any{"manager": manager, "operation": "Apply", "time": time, "fieldsV1": map[string]any{"f:data": owned}}
	}
	for name, c := range map[string]struct {
		data    map[string]any
		entries []any
		want    string
	}{
		"one owner":                   {map[string]any{"x": "2", "y": "1"}, []any{entry("a", at, "x"), entry("b", at, "y")}, "a"},
		"two owners of one":           {map[string]any{"x": "2", "y": "1"}, []any{entry("a", at, "x"), entry("b", at, "x", "y")}, ""},
		"owners of two":               {map[string]any{"x": "2", "y": "2"}, []any{entry("a", at, "x"), entry("b", at, "y")}, ""},
		"one shared, one its own":     {map[string]any{"x": "2", "y": "2"}, []any{entry("a", at, "x", "y"), entry("b", at, "y")}, "a"},
		"the time is of another":      {map[string]any{"x": "2", "y": "1"}, []any{entry("a", at, "x"), entry("b", "2026-01-02T10:00:09Z", "y")}, ""},
		"what was removed is of none": {map[string]any{"y": "1"}, []any{entry("a", at), entry("b", at, "y")}, ""},
	} {
		v := &kept{}
		v.put(shop, 1, map[string]any{"data": map[string]any{"x": "1", "y": "1"}, "managedFields": []any{entry("a", at, "x"), entry("b", at, "y")}})
		v.put(shop, 2, map[string]any{"data": c.data, "managedFields": c.entries})
		h, err := (&chain.Facts{Server: v, Plural: plural, Records: records(), NoNotes: "none"}).History(t.Context(), shop, 1)
		if err != nil || h.Versions[0].Manager != c.want {
			t.Errorf("%s: %q %v, want %q", name, h.Versions[0].Manager, err, c.want)
		}
	}
}

func TestValuesOfSecretsAndControlCharactersStayOut(t *testing.T) {
	t.Parallel()
	v := &kept{}
	v.put(secret, 1, map[string]any{"data": map[string]any{"key": "hunter2"}})
	v.put(secret, 2, map[string]any{"data": map[string]any{"key": "hunter3"}})
	f := &chain.Facts{Server: v, Plural: plural, Records: records(), Notes: []notes.Note{note(2, secret, "\x1b[31mroot\n"+strings.Repeat("x", 1<<20), "m", "")}}
	h, err := f.History(t.Context(), secret, 10)
	if err != nil {
		t.Fatal(err)
	}
	text := h.Text(true, true) + why(t, f, secret, "data.key")
	if strings.Contains(text, "hunter") || !strings.Contains(text, "data.key") {
		t.Error(text)
	}
	if strings.ContainsAny(text, "\x1b\r") || len(text) > 20000 {
		t.Errorf("%d bytes: %.300q", len(text), text)
	}
}

// TestALoopOfCausesEnds however long it is.
func TestALoopOfCausesEnds(t *testing.T) {
	t.Parallel()
	v := &kept{}
	var all []trace.Record
	for i := int64(1); i <= 500; i++ {
		v.put(shop, i, map[string]any{"n": fmt.Sprint(i)})
		all = append(all, trace.Record{ID: trace.ID{Recorder: 1, Number: uint64(i)}, Controller: "c", Object: shop,
			Causes: []trace.Cause{{Type: trace.Updated, Object: shop, Revision: fmt.Sprint(i - 1)}},
			Writes: []trace.Access{{Verb: trace.Update, Object: shop, Revision: fmt.Sprint(i)}}})
	}
	f := &chain.Facts{Server: v, Plural: plural, Records: records(all...)}
	if got := why(t, f, shop, "n"); strings.Count(got, "\n") > 200 || !strings.Contains(got, "the rest is left out: ask why of") {
		t.Error(got)
	}
}

// TestClocksThatDifferChangeNoChain since revisions alone join and order.
func TestClocksThatDifferChangeNoChain(t *testing.T) {
	t.Parallel()
	f := story()
	all := slices.Concat(f.Records(deploy), f.Records(shop))
	for i := range all {
		all[i].Began = morn.Add(time.Duration(1-2*(i%2)) * 1000 * time.Hour)
	}
	f.Records = records(all[:2]...)
	if diff := cmp.Diff(why(t, story(), deploy, "spec.paused"), why(t, f, deploy, "spec.paused")); diff != "" {
		t.Error(diff)
	}
}

func TestAWideHistoryHasMoreColumns(t *testing.T) {
	t.Parallel()
	f := story()
	f.Notes[1].UserAgent = "shop/v1"
	h, err := f.History(t.Context(), deploy, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"REVISION", "TIME", "CHANGE", "MANAGER", "USER", "RECONCILE", "OBJECT", "AUDIT", "ID", "USER", "AGENT", "FIELDS"}
	lines := strings.Split(h.Text(false, true), "\n")
	if got := strings.Fields(lines[0]); !slices.Equal(got, want) {
		t.Error(got)
	}
	at := morn.Local().Format(time.RFC3339)
	want = []string{"241", at, "updated", "shop", "sa:shop", first.String(), "shop", "Shop", "default/bakery", first.String(), "shop/v1", "spec.replicas"}
	if got := strings.Fields(lines[2]); !slices.Equal(got, want) {
		t.Error(got)
	}
	if narrow := h.Text(false, false); strings.Contains(narrow, "shop/v1") || strings.Contains(narrow, "AUDIT") {
		t.Error(narrow)
	}
}
