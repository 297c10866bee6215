// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/trace"
)

// TestAskerAnswersAsTheCommands without a directory of records, and by those at hand.
func TestAskerAnswersAsTheCommands(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: mapsScheme(t)})
	page := mapOf("page", "a", "first")
	if err := env.Client.Create(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	page.Data["value"] = "second"
	if err := env.Client.Update(t.Context(), page); err != nil {
		t.Fatal(err)
	}
	object := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: page.Name}
	at := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	recent := []trace.Record{
		{ID: trace.ID{Recorder: 1, Number: 1}, Began: at, Controller: "pages", Object: object, Writes: []trace.Access{{Verb: trace.Update, Object: object, Revision: page.ResourceVersion}}},
		{ID: trace.ID{Recorder: 1, Number: 2}, Began: at.Add(10 * time.Second), Controller: "pages", Object: object},
	}
	dir := filepath.Join(t.TempDir(), "records")
	a := &Asker{Config: env.Config, Records: dir, Recent: func() []trace.Record { return slices.Concat(recent, recent[1:]) }}
	for q, want := range map[Question]string{
		History: `data.value: "first" -> "second"`,
		Why:     "updated at " + page.ResourceVersion + " (data.value) by reconcile 0000000000000001-1 of pages",
		Tree:    "ConfigMap default/page-a",
	} {
		if got, err := a.Ask(t.Context(), q, object); err != nil || !strings.Contains(got, want) {
			t.Errorf("question %d: %s %v, want %q", q, got, err, want)
		}
	}
	// What two sources have is counted once.
	if got, err := a.Ask(t.Context(), Why, object); err != nil || !strings.Contains(got, "reconciled by pages: 2 in 10s") {
		t.Errorf("%s %v", got, err)
	}
	a.Recent = nil
	if got, err := a.Ask(t.Context(), Why, object); err != nil || strings.Contains(got, "pages:") {
		t.Errorf("without records: %s %v", got, err)
	}
	if _, err := a.Ask(t.Context(), Tree, trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "none"}); err == nil || !strings.Contains(err.Error(), "is not there") {
		t.Error(err)
	}
	powerless := *a
	powerless.Config = rest.CopyConfig(env.Config)
	powerless.Config.Impersonate = rest.ImpersonationConfig{UserName: "powerless", Groups: []string{"system:authenticated"}}
	if _, err := powerless.Ask(t.Context(), History, object); err == nil || !strings.Contains(err.Error(), "a rule with the verb list on configmaps") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Ask(ended, Why, object); err == nil {
		t.Error("it answered after its context ended")
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Ask(t.Context(), Why, object); err == nil || !strings.Contains(err.Error(), "no directory") {
		t.Error(err)
	}
}
