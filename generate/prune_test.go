// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/generate"
)

func TestFilesOfKindsThatAreGoneAreStale(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	changes, err := run(t, dir, generate.Steer).Changes()
	if err != nil {
		t.Fatal(err)
	}
	if err := generate.Apply(changes); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "config/crd/bases/kustomization.yaml"), "resources: []\n")
	types := filepath.Join(dir, "api/v1/types.go")
	text, err := os.ReadFile(types)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(types, []byte(strings.ReplaceAll(string(text), "Thing ", "Gadget ")), 0o644); err != nil {
		t.Fatal(err)
	}
	stale, err := run(t, dir, generate.Steer).Stale()
	if err != nil {
		t.Fatal(err)
	}
	if len(stale) != 1 || filepath.Base(stale[0].Path) != "example.com_things.yaml" {
		t.Fatalf("stale: %v", stale)
	}
	if err := generate.Apply(stale); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale[0].Path); !os.IsNotExist(err) {
		t.Error("the stale file is still there")
	}
}

func TestWaitEndsWhenASourceChanges(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	result := run(t, dir, generate.Steer)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- result.Wait(ctx, time.Millisecond) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	go func() { done <- result.Wait(context.Background(), time.Millisecond) }()
	for changed := false; !changed; {
		edit(t, filepath.Join(dir, "api/v1/types.go"), "// again\n")
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			changed = true
		default:
		}
	}
}

func TestExplainNamesEveryReason(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for what, wants := range map[string][]string{
		"Condition.level":  {"optional, because of +optional", "type github.com/steer-dev/steer/generate/testdata/api/shared.Level", "Enum [Debug Info Error]", "default: Info"},
		"WidgetSpec.Name":  {"required, because its json tag", "+kubebuilder:validation:MinLength 1", "minLength: 1"},
		"WidgetSpec.ratio": {"has a schema of its own"},
		"Phase":            {"+k8s:enum", "- \"Off\""},
	} {
		r := request(t, dir, generate.Steer, "paths=./generate/testdata/api/...")
		text, err := r.Explain(context.Background(), what)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", what, want, text)
			}
		}
	}
	for what, want := range map[string]string{"Nowhere": "no type Nowhere", "Condition.nope": "has no field nope"} {
		r := request(t, dir, generate.Steer, "paths=./generate/testdata/api/...")
		if _, err := r.Explain(context.Background(), what); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
	}
}
