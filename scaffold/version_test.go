// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/project"
)

// TestAFurtherVersionBeginsWithTheFieldsOfTheLast adds versions to a kind that was edited.
func TestAFurtherVersionBeginsWithTheFieldsOfTheLast(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), Plural: "books", ClusterScoped: true, NoGenerate: true})
	addFields(t, dir)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true})
	now := tree(t, dir)
	types := now["api/v2/guestbook_types.go"]
	for _, want := range []string{"package v2\n", "\tSize Size `json:\"size\"`\n", "\tUntil *metav1.Time ", "\ntype Size string\n", "\nconst Small Size = ", "+kubebuilder:resource:path=books,scope=Cluster\n"} {
		if strings.Count(types, want) != 1 {
			t.Errorf("v2 has not %q once:\n%s", want, types)
		}
	}
	const stored = "+kubebuilder:storageversion"
	if strings.Contains(types, stored) || strings.Count(now["api/v1/guestbook_types.go"], stored) != 1 {
		t.Errorf("v1 is not the version that is stored: v2 is\n%s", types)
	}
	if text := now["config/samples/v2_guestbook.yaml"]; text != strings.Replace(now["config/samples/v1_guestbook.yaml"], "/v1\n", "/v2\n", 1) {
		t.Errorf("the sample is not that of v1:\n%s", text)
	}
	p, err := project.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Resources[p.Find(guestbook("v2"))]; r.Plural != "books" || r.API.Namespaced {
		t.Errorf("PROJECT has %+v", r)
	}
	write(t, dir, "api/v2/guestbook_types.go", strings.Replace(types, "\tUntil *", "\tEnd *", 1))
	createWebhook(t, WebhookOptions{Dir: dir, GVK: guestbook("v1"), Conversion: true, NoGenerate: true})
	text := tree(t, dir)["api/v2/guestbook_conversion.go"]
	for _, want := range []string{
		"dst.Spec.Size = webappv1.Size(src.Spec.Size)", "dst.Spec.Size = Size(src.Spec.Size)", "dst.Spec.Foo = src.Spec.Foo",
		"// v1 has no Spec.End: convert it here", "// v2 has no Spec.Until: convert it here",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the conversion has no %q:\n%s", want, text)
		}
	}
	for want, o := range map[string]APIOptions{"--plural is \"tomes\"": {Plural: "tomes"}} {
		o.Dir, o.GVK, o.NoGenerate = dir, guestbook("v3"), true
		if _, err := CreateAPI(t.Context(), o); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a line with %q, got %v", want, err)
		}
	}
}

// TestAControllerOutlivesTheVersionThatItReconciles deletes the first of two versions, with a
// validator of its own, and the second one then.
func TestAControllerOutlivesTheVersionThatItReconciles(t *testing.T) {
	t.Parallel()
	dir := initialized(t, InitOptions{})
	const controller = "internal/controller/guestbook_controller.go"
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	write(t, dir, controller, strings.Replace(tree(t, dir)[controller], "\treturn controller.Done(), nil\n", "\t_ = webappv1.GuestbookSpec{} // mine\n\treturn controller.Done(), nil\n", 1))
	create(t, APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: guestbook("v1"), Conversion: true, Validation: true, NoGenerate: true})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: guestbook("v2"), Validation: true, NoGenerate: true})
	if _, err := DeleteWebhook(t.Context(), DeleteOptions{Dir: dir, GVK: guestbook("v1"), Force: true}); err != nil {
		t.Fatal(err)
	}
	report, err := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: guestbook("v1"), Force: true})
	if err != nil || len(report.Notes) != 1 || !strings.Contains(report.Notes[0], controller+" reconciles webapp/v2 Guestbook now") {
		t.Fatal(err, report)
	}
	p, err := project.Read(dir)
	if err != nil || len(p.Resources) != 1 || !p.Resources[0].Controller {
		t.Fatalf("PROJECT has %+v (%v)", p, err)
	}
	if text := tree(t, dir)[controller]; strings.Contains(text, "webappv1") || !strings.Contains(text, "_ = webappv2.GuestbookSpec{} // mine") {
		t.Errorf("the controller is\n%s", text)
	}
	if runsProjects() {
		program(t, dir, "go", "mod", "tidy")
		program(t, dir, "go", "test", "./...")
	}
	if _, err := DeleteWebhook(t.Context(), DeleteOptions{Dir: dir, GVK: guestbook("v2"), Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: guestbook("v2"), Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, there := tree(t, dir)[controller]; there {
		t.Error("the controller is left without a version")
	}
}

// TestConversionTakesFurtherVersionsOver adds a version to a conversion that was edited.
func TestConversionTakesFurtherVersionsOver(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	create(t, APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true})
	o := WebhookOptions{Dir: dir, GVK: guestbook("v2"), Conversion: true, NoGenerate: true}
	createWebhook(t, o)
	const spoke, edit = "api/v1/guestbook_conversion.go", "\t// mine\n\treturn nil\n"
	write(t, dir, spoke, strings.Replace(tree(t, dir)[spoke], "\treturn nil\n", edit, 1))

	create(t, APIOptions{Dir: dir, GVK: guestbook("v3"), NoGenerate: true})
	createWebhook(t, o)
	now := tree(t, dir)
	if !strings.Contains(now[spoke], edit) {
		t.Errorf("the edit is gone:\n%s", now[spoke])
	}
	if text := now["api/v3/guestbook_conversion.go"]; !strings.Contains(text, "dst.Spec.Foo = src.Spec.Foo") {
		t.Errorf("v3 is not converted:\n%s", text)
	}
	if text := now["api/v2/guestbook_conversion_test.go"]; !strings.Contains(text, "webappv2.AddToScheme, webappv1.AddToScheme, webappv3.AddToScheme") {
		t.Errorf("the test does not have all versions:\n%s", text)
	}
	if text := now["api/v2/guestbook_types.go"]; strings.Count(text, conversionMarker) != 1 {
		t.Errorf("the hub is not marked once:\n%s", text)
	}
	for want, change := range map[string]func(*WebhookOptions){
		"is converted to and from these versions already": func(*WebhookOptions) {},
		"convert to and from v2 already":                  func(o *WebhookOptions) { o.Version = "v3" },
	} {
		o := o
		change(&o)
		if _, err := CreateWebhook(t.Context(), o); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: guestbook("v1"), Force: true}); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), "steer delete webhook") {
		t.Errorf("a version that is converted is deleted: %v", err)
	}
}
