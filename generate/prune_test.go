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

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/generate"
)

func TestFilesOfKindsThatAreGoneAreStale(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	changes, err := run(t, dir).Changes()
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
	stale, err := run(t, dir).Stale()
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

func TestTheRoleOfLeaderElectionIsMadeOnRequest(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	role := func(args ...string) string {
		t.Helper()
		changes, err := run(t, dir, args...).Changes()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if strings.HasSuffix(c.Path, "role.yaml") {
				return string(c.After)
			}
		}
		t.Fatalf("%v makes no role.yaml", args)
		return ""
	}
	plain := role("rbac:roleName=thing", "paths=./...")
	want := plain + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: thing-leader-election
rules:
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - create
  - get
  - list
  - update
  - watch
- apiGroups:
  - events.k8s.io
  resources:
  - events
  verbs:
  - create
  - patch
`
	if diff := cmp.Diff(want, role("rbac:roleName=thing,leaderElection=true", "paths=./...")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// The operator of a project elects a leader; without arguments the role is there, unless
	// a file has it.
	const leader = "name: manager-role-leader-election"
	if text := role(); strings.Contains(text, leader) {
		t.Errorf("a module that is no project:\n%s", text)
	}
	edit(t, filepath.Join(dir, "PROJECT"), "layout:\n- lean.steer.dev/v1\nversion: \"3\"\n")
	if text := role(); !strings.Contains(text, leader) {
		t.Errorf("a project:\n%s", text)
	}
	edit(t, filepath.Join(dir, "config/rbac/leader_election_role.yaml"), "kind: Role\n")
	if text := role(); strings.Contains(text, leader) {
		t.Errorf("a project with a file for it:\n%s", text)
	}
}

func TestRolesAndWebhooksWithoutMarkersAreStale(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	hooks := filepath.Join(dir, "api/v1/hooks.go")
	edit(t, hooks, "package v1\n\n// +kubebuilder:webhook:path=/a,mutating=true,failurePolicy=fail,sideEffects=None,groups=g,resources=r,verbs=create,versions=v1,name=a.example.com,admissionReviewVersions=v1\n")
	changes, err := run(t, dir).Changes()
	if err != nil {
		t.Fatal(err)
	}
	if err := generate.Apply(changes); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(dir, "config/rbac/leader_election_role.yaml"), "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: manager-role\nrules: []\n")
	stale := func(args ...string) (names []string) {
		t.Helper()
		found, err := run(t, dir, args...).Stale()
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range found {
			names = append(names, filepath.Base(change.Path))
		}
		return names
	}
	if got := stale(); got != nil {
		t.Errorf("stale before anything changed: %v", got)
	}
	doc := filepath.Join(dir, "api/v1/doc.go")
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	without := strings.ReplaceAll(string(text), "+kubebuilder:rbac", "no rbac")
	if err := errors.Join(os.WriteFile(doc, []byte(without), 0o644), os.Remove(hooks)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(stale(), " "); got != "role.yaml manifests.yaml" {
		t.Errorf("stale: %s", got)
	}
	if got := stale("crd"); got != nil {
		t.Errorf("stale though their generators did not run: %v", got)
	}
	if got := stale("rbac:roleName=another"); got != nil {
		t.Errorf("stale though of another name: %v", got)
	}
	edit(t, filepath.Join(dir, "config/rbac/role.yaml"), "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: x\n")
	if got := strings.Join(stale(), " "); got != "manifests.yaml" {
		t.Errorf("stale though written by hand: %s", got)
	}
}

func TestWaitEndsWhenASourceChanges(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	result := run(t, dir)
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

func TestAModuleThatDoesNotResolveIsSaidToBeSoAndNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/fresh\n\ngo 1.26\n",
		"types.go": "// +groupName=example.com\npackage fresh\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n" +
			"// +kubebuilder:object:root=true\ntype Foo struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata\"`\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := generate.Run(t.Context(), request(t, dir, generate.Steer))
	var wrong *generate.SourceError
	if !errors.As(err, &wrong) {
		t.Fatalf("error %v", err)
	}
	if len(wrong.Problems) != 1 || !strings.Contains(err.Error(), "go get k8s.io/apimachinery/pkg/apis/meta/v1") {
		t.Errorf("%d problems: %v: %v", len(wrong.Problems), wrong.Problems, err)
	}
}

func TestExplainOfWebhooksSaysWhatMarkersCouldDo(t *testing.T) {
	t.Parallel()
	for dir, wants := range map[string][]string{
		"../cmd/steer/testdata/website": {"WebsiteCustomDefaulter.Default of Website", "needs code", "+kubebuilder:validation:XValidation:rule=", "as ValidateCreate"},
		"../examples/hello":             {"there is no method Default"},
	} {
		dir, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := request(t, dir, generate.Steer, "paths=./...").Explain(context.Background(), "webhooks")
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", dir, want, text)
			}
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
		"Widget.spec.name": {"WidgetSpec.Name", "required, because its json tag", "minLength: 1"},
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
	for what, want := range map[string]string{"Nowhere": "no type Nowhere", "Condition.nope": "has no field nope", "Widget.spec.nope": "WidgetSpec has no field nope", "Condition.level.deep": "has no field deep"} {
		r := request(t, dir, generate.Steer, "paths=./generate/testdata/api/...")
		if _, err := r.Explain(context.Background(), what); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
	}
}
