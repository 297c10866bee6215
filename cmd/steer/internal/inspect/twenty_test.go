// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what is printed to testdata/mistakes")

// edit is a change of a file.
type edit struct{ file, old, now string }

const (
	guestbookTypes      = "api/v1/guestbook_types.go"
	guestbookController = "internal/controller/guestbook_controller.go"
	aboveType           = "// +kubebuilder:subresource:status\n"
)

// TestWhatLintPrintsForEachMistake makes those mistakes of the twenty that are made when
// typing an operator, and that are found before anything runs; the others are in
// steertest. One project has them one after the other.
func TestWhatLintPrintsForEachMistake(t *testing.T) {
	t.Parallel()
	dir := guestbook(t)
	for _, mistake := range []struct {
		name  string
		edits []edit
	}{
		{"wrong-marker", []edit{{guestbookTypes, aboveType, aboveType + "// +kubebuilder:resorce:scope=Cluster\n"}}},
		{"wrong-printer-column", []edit{{guestbookTypes, aboveType, aboveType + "// +kubebuilder:printcolumn:name=\"Foo\",type=string,JSONPath=`.spec.fo`\n"}}},
		{"invalid-cel", []edit{{guestbookTypes, "\tFoo string", "\t// +kubebuilder:validation:XValidation:rule=\"self.size() > 'a'\"\n\tFoo string"}}},
		{"status-without-subresource", []edit{{guestbookTypes, aboveType, ""}}},
		{"forgotten-owns", []edit{{guestbookController, "\tClient client.Client\n", "\tClient client.Client\n\tpages controller.Children[*webappv1.Guestbook]\n"}}},
		{"missing-right", []edit{{guestbookController, "verbs=get;list;watch;patch", "verbs=get;list;patch"}}},
		{"wrong-webhook-path", []edit{
			{guestbookTypes, "// Guestbook is the schema", "// +kubebuilder:webhook:path=/mutate-webapp-example-com-v1-guestbok,mutating=true,failurePolicy=fail,sideEffects=None,groups=webapp.example.com,resources=guestbooks,verbs=create,versions=v1,name=a.example.com,admissionReviewVersions=v1\n\n// Guestbook is the schema"},
			{guestbookController, "\tr.Client = m.Client()\n", "\tr.Client = m.Client()\n\tif err := webhook.AddDefaulter[*webappv1.Guestbook](m, nil); err != nil {\n\t\treturn err\n\t}\n"},
			{guestbookController, "import (\n", "import (\n\t\"github.com/steer-dev/steer/webhook\"\n"},
		}},
		{"conversion-forgotten", []edit{
			{guestbookTypes, aboveType, aboveType + "// +kubebuilder:storageversion\n"},
			{"api/v2/guestbook_types.go", "", "// +groupName=webapp.example.com\npackage v2\n\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\n// Guestbook is one.\n// +kubebuilder:object:root=true\ntype Guestbook struct {\n\tmetav1.TypeMeta   `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\n\t// Size of it.\n\t// +optional\n\tSize int32 `json:\"size,omitempty\"`\n}\n"},
		}},
	} {
		before := map[string][]byte{}
		for _, e := range mistake.edits {
			file := filepath.Join(dir, e.file)
			text, err := os.ReadFile(file)
			if _, seen := before[file]; !seen {
				before[file] = text // nil: it is new
			}
			if os.IsNotExist(err) {
				err = os.MkdirAll(filepath.Dir(file), 0o755)
			}
			if err != nil || !strings.Contains(string(text), e.old) {
				t.Fatalf("%s: %s lacks %q: %v", mistake.name, e.file, e.old, err)
			}
			if err := os.WriteFile(file, []byte(strings.Replace(string(text), e.old, e.now, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var out, errs strings.Builder
		if err := (&linter{dir: dir, out: &out, errs: &errs}).run(t.Context()); err == nil {
			t.Errorf("%s is not found: %s%s", mistake.name, out.String(), errs.String())
		}
		for file, text := range before {
			err := os.Remove(file)
			if text != nil {
				err = os.WriteFile(file, text, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		record(t, mistake.name, strings.ReplaceAll(errs.String()+out.String(), dir+"/", ""))
	}
}

// record compares what was printed with its record.
func record(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "mistakes", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is another one; if it is better, run go test -update (-want +got):\n%s", file, diff)
	}
}
