// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/project"
)

const code = `package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/steer-dev/steer/controller"

	webappv1 "example.com/guestbook/api/v1"
)

type GuestbookReconciler struct{}

// +kubebuilder:rbac:groups=webapp.example.com,resources=guestbooks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=webapp.example.com,resources=guestbooks/status,verbs=patch
MARKER

// Reconcile reconciles.
func (r *GuestbookReconciler) Reconcile(ctx context.Context, obj *webappv1.Guestbook) (controller.Result, error) {
	return controller.Done(), nil
}

var _ = controller.Owns[*appsv1.Deployment]
`

// read reads a project whose reconciler has one more marker.
func read(t *testing.T, marker string) *Sources {
	t.Helper()
	return readFiles(t, map[string]string{"internal/controller/guestbook_controller.go": strings.Replace(code, "MARKER", marker, 1)})
}

// readFiles reads a project with these files.
func readFiles(t *testing.T, files map[string]string) *Sources {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/guestbook\n\ngo 1.26.0\n"
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Read(t.Context(), dir, &project.Project{Repo: "example.com/guestbook", Resources: []project.Resource{
		{Domain: "example.com", Group: "webapp", Kind: "Guestbook", Version: "v1", Path: "example.com/guestbook/api/v1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lines(findings []Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, strings.TrimPrefix(f.String(), "internal/controller/"))
	}
	return strings.Join(all, "\n")
}

func TestFindingsNameWhatMarkersLackAndWhatNothingNeeds(t *testing.T) {
	t.Parallel()
	const deployments = "// +kubebuilder:rbac:groups=apps,resources=deployments,verbs="
	for name, test := range map[string]struct {
		marker string
		used   Used
		want   string
	}{
		"what is declared is there":              {deployments + "get;list;watch", nil, ""},
		"one of get, list, watch stands for all": {deployments + "get;list;watch", Used{{"apps", "deployments", "list"}: {"TestA"}}, ""},
		"a declared kind without its marker": {
			"// nothing", nil, "guestbook_controller.go:24: the code declares to need list;watch deployments (apps); add // +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch",
		},
		"a right that only a test shows": {
			deployments + "get;list;watch", Used{{"", "services", "create"}: {"TestA", "TestB"}},
			`guestbook_controller.go:18: TestA used create services; add // +kubebuilder:rbac:groups="",resources=services,verbs=create`,
		},
		"verbs that no test used": {
			deployments + "get;list;watch;update;delete", Used{{"apps", "deployments", "delete"}: {"TestA"}},
			"guestbook_controller.go:17: no test used update deployments (apps), and the code does not declare it; remove it, or test what needs it",
		},
		"verbs that no request has":                 {deployments + "get;list;watch;bind;escalate;impersonate;use", Used{{"apps", "deployments", "list"}: {"TestA"}}, ""},
		"verbs without a record of tests":           {deployments + "get;list;watch;update", nil, ""},
		"a wildcard":                                {deployments + "*", nil, "guestbook_controller.go:17: verbs=* gives rights that nothing needs; name those that the operator needs"},
		"leases are in the role of leader election": {deployments + "get;list;watch", Used{{"coordination.k8s.io", "leases", "create"}: {"TestA"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lines(read(t, test.marker).Findings(test.used)); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

// TestCodeDeclaresWhatItNeeds in each form that the functions of the package controller
// are called in; the function of a handler may be in another file or package.
func TestCodeDeclaresWhatItNeeds(t *testing.T) {
	t.Parallel()
	const setup = `package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controller"

	"example.com/guestbook/internal/maps"
)

`
	const inferred = `package controller

import (
	"context"

	core "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controller"
)

func (r *GuestbookReconciler) all(_ context.Context, _ *core.Node) []controller.Request { return nil }

func services(_ context.Context, _ *core.Service) []controller.Request { return nil }

func (r *GuestbookReconciler) Cleanup(_ context.Context, _ *core.Secret) (controller.FinalizerResult, error) {
	return controller.Finalized(), nil
}
`
	const maps = `package maps

import (
	"context"

	core "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controller"
)

func Nodes(_ context.Context, _ *core.Node) []controller.Request { return nil }

func (m Mapper) Pods(_ context.Context, _ *core.Pod) []controller.Request { return nil }

// all is in another package than the one that is asked for.
func (m Mapper) all(_ context.Context, _ *core.Pod) []controller.Request { return nil }
`
	for code, want := range map[string]string{
		"var _ = controller.Owns[*appsv1.Deployment]()":                                                              "list;watch deployments (apps)",
		"var _ = controller.References[*corev1.Secret](names)":                                                       "list;watch secrets",
		"var _ = controller.References[*corev1.Secret, *appsv1.Deployment](names)":                                   "list;watch secrets",
		"type r struct{ pods controller.Children[*corev1.Pod] }":                                                     "create;delete;get;patch pods",
		"var _ = controller.Watches(controller.Map(r.all))":                                                          "list;watch nodes",
		"var _ = controller.Watches(controller.Map(services))":                                                       "list;watch services",
		"var _ = controller.Watches(controller.Map(maps.Nodes))":                                                     "list;watch nodes",
		"var _ = controller.Watches(controller.Map(mapper.Pods))":                                                    "list;watch pods",
		"var _ = controller.Watches(controller.Map(func(context.Context, *corev1.Pod) []string { return nil }))":     "list;watch pods",
		"var _ = controller.Watches(controller.Map(func(_ context.Context, p *corev1.Pod) []string { return nil }))": "list;watch pods",
		"var _ = controller.Watches(controller.Map[*corev1.Pod](anything))":                                          "list;watch pods",
		"var _ = controller.Watches(controller.Map[*corev1.Pod, string](anything))":                                  "list;watch pods",
		"var _ = controller.Watches[*corev1.Node](anything)":                                                         "list;watch nodes",
		"var _ = controller.Watches(controller.Self[*corev1.Pod]())":                                                 "list;watch pods",
		"var _ = controller.Finalizer(\"a\", r.Cleanup)":                                                             "patch secrets",
		"var _ = controller.Finalizer[*corev1.Pod](\"a\", anything)":                                                 "patch pods",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := readFiles(t, map[string]string{"internal/controller/setup.go": setup + code, "internal/controller/more.go": inferred, "internal/maps/maps.go": maps})
			got := lines(s.Findings(nil))
			if !strings.HasPrefix(got, "setup.go:12: the code declares to need "+want+"; add") || strings.Contains(got, "\n") {
				t.Errorf("got:\n%s\nwant: %s", got, want)
			}
			if len(s.open) > 0 {
				t.Errorf("the kind is not known, and %v may be used on any", s.open)
			}
		})
	}
}

// TestWhatChildrenNeedIsNeverToBeRemoved although no test used it.
func TestWhatChildrenNeedIsNeverToBeRemoved(t *testing.T) {
	t.Parallel()
	const reconciler = `package controller

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/other/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;update;delete

type Reconciler struct {
	`
	const update = "more.go:12: no test used update pods, and the code does not declare it; remove it, or test what needs it"
	for name, test := range map[string]struct{ code, want string }{
		"of one kind":              {"controller.Children[*corev1.Pod]", update},
		"a mixed set":              {"controller.Children[client.Object]", update},
		"of a kind of others":      {"controller.Children[*v1.Other]", update},
		"a watch that is not read": {"_ [len(controller.Watches(handler))]int", "more.go:12: no test used create;patch;update;delete pods, and the code does not declare it; remove it, or test what needs it"},
		"without children":         {"int", "more.go:12: no test used get;list;watch;create;patch;update;delete pods, and the code does not declare it; remove it, or test what needs it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := readFiles(t, map[string]string{"internal/controller/more.go": reconciler + test.code + "\n}\n"})
			if got := lines(s.Findings(Used{})); got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func TestChildrenThatNoControllerWatchesAreFound(t *testing.T) {
	t.Parallel()
	sets := strings.NewReplacer("MARKER", "", "var _ = controller.Owns[*appsv1.Deployment]", "type sets struct {\n\ta controller.Children[*appsv1.Deployment]\n\tb controller.Children[*webappv1.Guestbook]\n\tc controller.Children[client.Object]\n}\n\nMORE").Replace(code)
	const want = `guestbook_controller.go:25: no controller watches these children, so they are neither found nor followed; add controller.Owns[*appsv1.Deployment]() to controller.Add
guestbook_controller.go:26: no controller watches these children, so they are neither found nor followed; add controller.Owns[*webappv1.Guestbook]() to controller.Add`
	for more, want := range map[string]string{
		"": want,
		"var _ = controller.Owns[*webappv1.Guestbook]()":    strings.Split(want, "\n")[0],
		"var _ = controller.Watches[*appsv1.Deployment](h)": strings.Split(want, "\n")[1],
		"var _ = controller.OwnsKind(gvk)":                  "",
	} {
		s := readFiles(t, map[string]string{"internal/controller/guestbook_controller.go": strings.Replace(sets, "MORE", more, 1)})
		if got := lines(s.Unwatched()); got != want {
			t.Errorf("with %q: got\n%s\nwant\n%s", more, got, want)
		}
	}
}

func TestPlaceIsBelowTheLastMarkerOfTheReconciler(t *testing.T) {
	t.Parallel()
	s := read(t, "// nothing")
	for _, kind := range []string{"Guestbook", "Other"} {
		if got := s.Place(kind); got != "internal/controller/guestbook_controller.go:17" {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

func TestCoverageCountsRightsOfMarkers(t *testing.T) {
	t.Parallel()
	seen, all := read(t, "// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get").Coverage(Used{
		{"apps", "deployments", "get"}: {"TestA"}, {"webapp.example.com", "guestbooks/status", "patch"}: {"TestA"}, {"", "services", "get"}: {"TestA"},
	})
	if seen != 2 || all != 6 {
		t.Errorf("got %d of %d, want 2 of 6", seen, all)
	}
}

func TestReadUsedMergesTheFilesOfTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"1.rights": "TestA\ngroups=\"\",resources=pods,verbs=get\n",
		"2.rights": "TestB\ngroups=\"\",resources=pods,verbs=get\ngroups=apps,resources=deployments/status,verbs=patch\n",
		"other":    "not read",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	used, err := ReadUsed(dir)
	if err != nil || len(used) != 2 || len(used[Right{"", "pods", "get"}]) != 2 || len(used[Right{"apps", "deployments/status", "patch"}]) != 1 {
		t.Errorf("got %v, %v", used, err)
	}
	if used, err := ReadUsed(filepath.Join(dir, "missing")); err != nil || len(used) != 0 {
		t.Errorf("a folder that does not exist: %v, %v", used, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "3.rights"), []byte("TestC\nnonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadUsed(dir); err == nil || !strings.Contains(err.Error(), `"nonsense" is not the right of a marker`) {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestRefusedReadsMessagesOfAPIServers(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`services is forbidden: User "system:serviceaccount:a:b" cannot create resource "services" in API group "" in the namespace "default"`: "create services",
		`error="deployments.apps is forbidden: User \"a\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope"`:    "list deployments (apps)",
	} {
		if right, ok := Refused(message); !ok || right.String() != want {
			t.Errorf("%s: got %v", message, right)
		}
	}
	if right, ok := Refused(`admission webhook "x" denied the request`); ok {
		t.Errorf("got %v of a webhook", right)
	}
}
