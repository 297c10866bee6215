// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookpaths

import (
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/generate/webhook"
	"github.com/steer-dev/steer/scaffold/project"
)

const code = `package v1

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/steer-dev/steer/webhook"

	webappv1 "example.com/guestbook/api/v1"
)

type GuestbookDefaulter struct{}

func (*GuestbookDefaulter) Default(ctx context.Context, obj *webappv1.Guestbook) error { return nil }

type DeploymentValidator struct{}

func (DeploymentValidator) ValidateCreate(ctx context.Context, obj *appsv1.Deployment) (webhook.Warnings, error) {
	return nil, nil
}

func setup(m webhook.Manager) {
	CALLS
}
`

func TestPathsThatOneSideLacksAreFound(t *testing.T) {
	t.Parallel()
	const (
		mutate, deployments = "/mutate-webapp-example-com-v1-guestbook", "/validate-apps-v1-deployment"
		calls               = "webhook.AddDefaulter(m, &GuestbookDefaulter{}); webhook.AddValidator(m, DeploymentValidator{})"
	)
	both := func() []webhook.Located { return []webhook.Located{at(7, mutate, true), at(9, deployments, false)} }
	for name, test := range map[string]struct {
		calls   string
		markers []webhook.Located
		config  string
		want    []string
	}{
		"both sides agree": {calls, both(), "", nil},
		"a call is missing": {"webhook.AddValidator(m, DeploymentValidator{})", both(), "", []string{
			"internal/webhook/v1/hooks.go:7: API servers call " + mutate + ", and nothing serves it, so they refuse what it is for; add webhook.AddDefaulter(m, &GuestbookDefaulter{}) to Setup, or correct the path; served is " + deployments,
		}},
		"a path that is misspelt": {calls, []webhook.Located{at(7, "/mutate-webapp-example-com-v1-guestboks", true), both()[1]}, "", []string{
			"internal/webhook/v1/hooks.go:7: API servers call /mutate-webapp-example-com-v1-guestboks, and nothing serves it, so they refuse what it is for; add webhook.AddDefaulter(m, &Defaulter{}) to Setup, or correct the path; served is " + mutate + ", " + deployments,
			"internal/webhook/v1/hooks.go:24: " + mutate + " is served, but nothing calls it; add a marker // +kubebuilder:webhook:path=" + mutate + ",... above its type, or correct the path of the one that is there",
		}},
		"a path of its own": {
			`webhook.AddDefaulter(m, &GuestbookDefaulter{}, webhook.Path("/own")); webhook.AddHandler(m, "/any", h); webhook.AddValidator[*appsv1.Deployment](m, v)`,
			[]webhook.Located{at(7, "/own", true), at(8, "/any", false), both()[1]}, "", nil,
		},
		"what the sources do not tell is not reported": {"webhook.AddDefaulter(m, made())", []webhook.Located{both()[0]}, "", nil},
		"a configuration that is written by hand": {calls, both(), "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: a\nwebhooks:\n- clientConfig:\n    service:\n      path: /validate-x\n", []string{
			"config/webhook/own.yaml:8: API servers call /validate-x, and nothing serves it, so they refuse what it is for; add webhook.AddValidator(m, &Validator{}) to Setup, or correct the path; served is " + mutate + ", " + deployments,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"internal/webhook/v1/hooks.go": strings.Replace(code, "CALLS", test.calls, 1), "config/webhook/own.yaml": test.config} {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for i := range test.markers {
				test.markers[i].Pos.Filename = filepath.Join(dir, "internal", "webhook", "v1", "hooks.go")
			}
			w, err := Read(dir, guestbook(), test.markers)
			if err != nil {
				t.Fatal(err)
			}
			got, err := w.Findings()
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func at(line int, path string, mutating bool) webhook.Located {
	return webhook.Located{Pos: token.Position{Line: line}, Path: path, Mutating: mutating}
}

func guestbook() *project.Project {
	return &project.Project{Repo: "example.com/guestbook", Resources: []project.Resource{
		{Domain: "example.com", Group: "webapp", Kind: "Guestbook", Version: "v1", Path: "example.com/guestbook/api/v1"},
	}}
}
