// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	texttemplate "text/template"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// newProject makes a project with a kind and webhooks.
func newProject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: gvk}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateWebhook(t.Context(), scaffold.WebhookOptions{Dir: dir, GVK: gvk, Validation: true}); err != nil {
		t.Fatal(err)
	}
	types := filepath.Join(dir, "api", "v1", "guestbook_types.go")
	text, err := os.ReadFile(types)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("// GuestbookSpec"), []byte("// GuestbookSpec is no {{ template }}, and no -----BEGIN CERTIFICATE-----\n//\n// GuestbookSpec"), 1)
	write(t, types, string(text))
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// render renders a chart with the functions of Helm that it uses; change changes the
// values first.
func render(t *testing.T, files map[string][]byte, namespace string, change func(values map[string]any)) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.Unmarshal(files["values.yaml"], &values); err != nil {
		t.Fatal(err)
	}
	change(values)
	functions := texttemplate.FuncMap{
		"quote": strconv.Quote,
		"toYaml": func(v any) (string, error) {
			text, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(text), "\n"), err
		},
		"nindent": func(n int, text string) string {
			indent := "\n" + strings.Repeat(" ", n)
			return indent + strings.ReplaceAll(text, "\n", indent)
		},
	}
	out := map[string]any{}
	for name, text := range files {
		if !strings.HasPrefix(name, "templates/") {
			continue
		}
		var rendered bytes.Buffer
		tmpl, err := texttemplate.New(name).Funcs(functions).Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := tmpl.Execute(&rendered, map[string]any{"Values": values, "Release": map[string]any{"Namespace": namespace}}); err != nil {
			t.Fatal(err)
		}
		documents(t, rendered.Bytes(), out)
	}
	return out
}

// documents adds the objects of a stream, by kind and name.
func documents(t *testing.T, text []byte, to map[string]any) {
	t.Helper()
	for document := range deploy.Documents(text) {
		var o map[string]any
		if err := yaml.Unmarshal(document, &o); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if o == nil {
			continue
		}
		name := o["kind"].(string) + " " + o["metadata"].(map[string]any)["name"].(string)
		if to[name] != nil {
			t.Errorf("%s is there twice", name)
		}
		to[name] = o
	}
}

// chart makes the chart and, as objects by kind and name, what steer package yaml writes.
func chart(t *testing.T, dir string, change func(*deploy.Settings)) (files map[string][]byte, objects map[string]any) {
	t.Helper()
	p, err := project.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := deploy.ReadSettings(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	change(&settings)
	if files, err = Files(t.Context(), Options{Dir: dir}, p, settings); err != nil {
		t.Fatal(err)
	}
	list, err := deploy.Objects(t.Context(), dir, p, settings)
	if err != nil {
		t.Fatal(err)
	}
	text, err := deploy.YAML(list)
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]any{}
	documents(t, text, objects)
	return files, objects
}

// ownManifests gives a project manifests of its own; the dashboard looks like a template.
func ownManifests(t *testing.T, dir string) {
	t.Helper()
	folder := filepath.Join(dir, filepath.FromSlash(project.ExtrasDir))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"dashboard.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop-dashboard}\ndata: {legend: '{{ instance }}'}\n",
		"policy.yaml":    "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: shop-policy}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChartRendersToWhatPackageYAMLWrites compares the objects, for several settings.
func TestChartRendersToWhatPackageYAMLWrites(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	if _, err := scaffold.CreateServer(t.Context(), scaffold.ServerOptions{Dir: dir, GVK: project.GVK{Group: "notes", Version: "v1", Kind: "Note"}}); err != nil {
		t.Fatal(err)
	}
	ownManifests(t, dir)
	for name, change := range map[string]func(*deploy.Settings){
		"defaults": func(*deploy.Settings) {},
		"all": func(s *deploy.Settings) {
			s.Image, s.Replicas, s.Namespace, s.ServiceMonitor = "registry.example.com:5000/a/b@sha256:0123", 3, "123", true
			s.Resources = deploy.Resources{Requests: map[string]string{"cpu": "1"}}
			s.With = deploy.Additions()
		},
	} {
		var namespace string
		files, want := chart(t, dir, func(s *deploy.Settings) { change(s); namespace = s.Namespace })
		got := render(t, files, namespace, func(map[string]any) {})
		delete(want, "Namespace "+namespace)
		const crd = "CustomResourceDefinition guestbooks.webapp.example.com"
		annotations := got[crd].(map[string]any)["metadata"].(map[string]any)["annotations"].(map[string]any)
		if annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("%s: the CRD is not kept", name)
		}
		without := render(t, files, namespace, func(values map[string]any) { values["crd"].(map[string]any)["keep"] = false })
		equal(t, name, without, want)
	}
}

func equal(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		a, _ := yaml.Marshal(got[name])
		b, _ := yaml.Marshal(want[name])
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s is\n%s\nwant\n%s", what, name, a, b)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: the objects are %v, want %v", what, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// TestValuesLeavePartsOut turns everything off that can be.
func TestValuesLeavePartsOut(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	ownManifests(t, dir)
	files, _ := chart(t, dir, func(s *deploy.Settings) { s.With = deploy.Additions() })
	got := render(t, files, "shop", func(values map[string]any) {
		for _, name := range []string{"crd", "metrics", "networkPolicy", "webhook", "rbacHelpers", "extras", "records"} {
			values[name].(map[string]any)["enable"] = false
		}
		for _, name := range []string{"prometheus", "grafana", "alerts"} { // nothing without metrics
			values[name].(map[string]any)["enable"] = true
		}
		values["manager"].(map[string]any)["resources"] = nil
	})
	want := []string{
		"ClusterRole guestbook-manager-role", "ClusterRoleBinding guestbook-manager-rolebinding", "Deployment guestbook-controller-manager",
		"PodDisruptionBudget guestbook-controller-manager", "Role guestbook-manager-role-leader-election",
		"RoleBinding guestbook-manager-role-leader-election", "ServiceAccount guestbook-controller-manager",
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	text, err := yaml.Marshal(got["Deployment guestbook-controller-manager"])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"- --metrics-bind-address=0\n", "- name: ENABLE_WEBHOOKS\n          value: \"false\"\n", "namespace: shop\n"} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("the Deployment has no %q:\n%s", part, text)
		}
	}
	for _, part := range []string{"resources:", "record", "pprof", "olume"} {
		if bytes.Contains(text, []byte(part)) {
			t.Errorf("the Deployment has %q:\n%s", part, text)
		}
	}
}

// TestVersionsAreConvertedWithoutAdmissionWebhooks: objects of a version that is not stored
// can only be read with the operator that converts them.
func TestVersionsAreConvertedWithoutAdmissionWebhooks(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	second := gvk
	second.Version = "v2"
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: second}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateWebhook(t.Context(), scaffold.WebhookOptions{Dir: dir, GVK: gvk, Conversion: true}); err != nil {
		t.Fatal(err)
	}
	files, whole := chart(t, dir, func(*deploy.Settings) {})
	want := maps.Clone(whole)
	delete(want, "Namespace guestbook-system")
	delete(want, "ValidatingWebhookConfiguration guestbook-validating-webhook-configuration")
	got := render(t, files, "guestbook-system", func(values map[string]any) {
		values["webhook"].(map[string]any)["enable"] = false
		values["crd"].(map[string]any)["keep"] = false
	})
	equal(t, "without webhooks", got, want)

	if _, err := scaffold.DeleteWebhook(t.Context(), scaffold.DeleteOptions{Dir: dir, GVK: gvk, Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateWebhook(t.Context(), scaffold.WebhookOptions{Dir: dir, GVK: gvk, Conversion: true}); err != nil {
		t.Fatal(err)
	}
	files, _ = chart(t, dir, func(*deploy.Settings) {})
	if values := string(files["values.yaml"]); strings.Contains(values, "\nwebhook:\n") {
		t.Errorf("a value turns nothing off:\n%s", values)
	}
}

// TestEditsOfAChartAreKept edits, adds and removes files, and generates again.
func TestEditsOfAChartAreKept(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	again := func(o Options) *project.Report {
		t.Helper()
		o.Dir = dir
		report, err := Write(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	at := func(name string) string { return filepath.Join(dir, "dist", "chart", filepath.FromSlash(name)) }
	read := func(name string) string {
		text, err := os.ReadFile(at(name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if report := again(Options{}); len(report.Created) < 15 || len(report.Notes) != 0 {
		t.Fatalf("%+v", report)
	}
	if report := again(Options{}); len(report.Created)+len(report.Changed)+len(report.Notes) != 0 {
		t.Errorf("again without a change: %+v", report)
	}
	const deployment, budget = "templates/manager/controller-manager-deployment.yaml", "templates/manager/controller-manager-poddisruptionbudget.yaml"
	write(t, at("templates/own.yaml"), "own")
	write(t, at(deployment), read(deployment)+"# own\n")
	write(t, at("values.yaml"), "manager: {replicas: 7, image: {repository: x, tag: y}}\nown: true\n")
	if err := os.Remove(at(budget)); err != nil {
		t.Fatal(err)
	}
	report := again(Options{Image: "guestbook:v2"})
	if want := []string{"dist/chart/Chart.yaml", "dist/chart/values.yaml"}; !slices.Equal(report.Changed, want) || len(report.Created) != 0 || len(report.Notes) != 0 {
		t.Errorf("after edits: %+v", report)
	}
	values := read("values.yaml")
	if !strings.HasPrefix(values, "manager: {replicas: 7, image: {repository: \"guestbook\", tag: \"v2\"}}\nown: true\n# CRDs") || !strings.HasSuffix(values, "\nwebhook:\n  enable: true\n") {
		t.Errorf("values.yaml is\n%s", values)
	}
	if again(Options{}); read("values.yaml") != values || read("templates/own.yaml") != "own" {
		t.Error("edits are lost")
	}
	// The webhook goes: what was generated for it goes, and the edited Deployment is named.
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	if _, err := scaffold.DeleteWebhook(t.Context(), scaffold.DeleteOptions{Dir: dir, GVK: gvk, Force: true}); err != nil {
		t.Fatal(err)
	}
	report = again(Options{})
	if len(report.Removed) < 6 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], deployment+" was edited here, and is left") || !strings.HasSuffix(read(deployment), "# own\n") {
		t.Errorf("without the webhook: %+v", report)
	}
	report = again(Options{Force: true})
	if !slices.Contains(report.Created, "dist/chart/"+budget) || strings.HasSuffix(read(deployment), "# own\n") || read("templates/own.yaml") != "own" {
		t.Errorf("by force: %+v", report)
	}
}

// TestWhatIsAskedForIsInEditedFiles sets the image and the version of a chart whose files
// were edited, and leaves all else in them.
func TestWhatIsAskedForIsInEditedFiles(t *testing.T) {
	t.Parallel()
	o := Options{Image: "registry.example.com/a:v2", Version: "0.2.0"}
	merges := o.merges("dist/chart")
	const generated = "# The Deployment.\nmanager:\n  image:\n    repository: registry.example.com/a\n    tag: v2\n"
	for name, c := range map[string]struct{ file, edited, want string }{
		"in blocks, with comments": {
			"values.yaml",
			"manager:\n  # ours\n  image:\n    repository: mirror.example.com/a # mirrored\n    tag: 1.10\n    digest: 'sha256:01'\n",
			"manager:\n  # ours\n  image:\n    repository: \"registry.example.com/a\" # mirrored\n    tag: \"v2\"\n    digest: \"\"\n",
		},
		"in one line":  {"values.yaml", "ä: {manager: 1}\nmanager: {image: {tag: \"v1\", repository: x}}\n", "ä: {manager: 1}\nmanager: {image: {tag: \"v2\", repository: \"registry.example.com/a\"}}\n"},
		"not there":    {"values.yaml", "own: true\n", "own: true\n" + generated},
		"the chart":    {"Chart.yaml", "name: ours\nversion: 0.1.7 # ours\nappVersion: \"v1\"\n", "name: ours\nversion: \"0.2.0\" # ours\nappVersion: \"v2\"\n"},
		"without tag":  {"values.yaml", "manager:\n  image: {repository: x}\n", "values.yaml:2: cannot make manager.image.tag \"v2\" here"},
		"in two words": {"values.yaml", "manager:\n  image:\n    repository: x y\n", "values.yaml:3: cannot make manager.image.repository"},
		"by anchor":    {"values.yaml", "x: &x a\nmanager:\n  image:\n    repository: *x\n", "values.yaml:4: cannot make manager.image.repository"},
		"no YAML":      {"values.yaml", "manager:\n  image: {\n", "values.yaml:2: did not find expected node content"},
	} {
		got, err := merges[c.file]([]byte(c.edited), []byte(generated))
		if err != nil {
			got = []byte(filepath.ToSlash(err.Error()))
			c.want = "dist/chart/" + c.want
		}
		if errors.Is(err, project.ErrUsage) != (err != nil) || !strings.HasPrefix(string(got), c.want) || err == nil && string(got) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	for _, wrong := range []Options{{Version: "v1"}, {Version: "1"}, {Image: "a b"}} {
		wrong.Dir = newProject(t)
		if _, err := Write(t.Context(), wrong); !errors.Is(err, project.ErrUsage) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

func TestImagesAreDivided(t *testing.T) {
	t.Parallel()
	for image, want := range map[string][3]string{
		"a":                       {"a", "latest", ""},
		"r.io:5000/a":             {"r.io:5000/a", "latest", ""},
		"r.io:5000/a:v1":          {"r.io:5000/a", "v1", ""},
		"r.io/a:v1@sha256:0":      {"r.io/a", "v1", "sha256:0"},
		"r.io:5000/a/b@sha256:01": {"r.io:5000/a/b", "latest", "sha256:01"},
	} {
		repository, tag, digest := splitImage(image)
		if got := [3]string{repository, tag, digest}; got != want {
			t.Errorf("%s: %q", image, got)
		}
	}
}
