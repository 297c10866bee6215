// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package parts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	library "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/crdvalidation"
)

var (
	mutants = flag.Int("mutants", 400, "how many broken definitions to compare")
	seed    = flag.Uint64("seed", 1, "of the first of them")
	corpus  = flag.String("corpus", "", "another directory with definitions, as YAML or JSON")
)

// folders of this repository that contain definitions.
var folders = []string{
	"../../crdvalidation/testdata", "../testdata", "../../examples", "../../generate/testdata", "../../bench/envtest", "../../controller/testdata",
	"../../cmd/steer/testdata",
}

// definitions returns every definition in the files of some folders: YAML documents,
// and sections of archives.
func definitions(tb testing.TB) []*v1.CustomResourceDefinition {
	tb.Helper()
	var out []*v1.CustomResourceDefinition
	dirs := folders
	if *corpus != "" {
		dirs = append(slices.Clone(folders), *corpus)
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json", ".txtar"}, filepath.Ext(p)) {
				return err
			}
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			for _, text := range texts(data) {
				crd := &v1.CustomResourceDefinition{}
				if yaml.Unmarshal(text, crd) == nil && crd.Kind == "CustomResourceDefinition" && crd.APIVersion == "apiextensions.k8s.io/v1" {
					out = append(out, crd)
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	const least = 50
	if len(out) < least {
		tb.Fatalf("found %d definitions, want at least %d: the corpus is lost", len(out), least)
	}
	return out
}

// texts splits a file into possible objects. A request of a conversation has its body
// after an empty line.
func texts(data []byte) (out [][]byte) {
	sections := [][]byte{data}
	for _, f := range txtar.Parse(data).Files {
		_, body, found := bytes.Cut(f.Data, []byte("\n\n"))
		if !found {
			body = f.Data
		}
		sections = append(sections, body)
	}
	for _, s := range sections {
		if bytes.Contains(s, []byte("CustomResourceDefinition")) {
			out = append(out, bytes.Split(s, []byte("\n---\n"))...)
		}
	}
	return out
}

// internal returns the internal form of a definition.
func internal(tb testing.TB, crd *v1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	tb.Helper()
	c := crd.DeepCopy()
	v1.SetObjectDefaults_CustomResourceDefinition(c)
	out := &apiextensions.CustomResourceDefinition{}
	if err := v1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(c, out, nil); err != nil {
		tb.Fatal(err)
	}
	return out
}

// checks is one implementation of the validation.
type checks struct {
	create func(context.Context, *apiextensions.CustomResourceDefinition) field.ErrorList
	update func(ctx context.Context, crd, old *apiextensions.CustomResourceDefinition) field.ErrorList
	status func(crd, old *apiextensions.CustomResourceDefinition) field.ErrorList
}

var (
	ours = checks{crdvalidation.Validate, crdvalidation.ValidateUpdate, func(crd, _ *apiextensions.CustomResourceDefinition) field.ErrorList {
		return crdvalidation.ValidateStatusUpdate(crd)
	}}
	theirs = checks{library.ValidateCustomResourceDefinition, library.ValidateCustomResourceDefinitionUpdate, libraryStatus}
)

// libraryStatus is the library's validation of a status, which takes a context since
// v0.37.
func libraryStatus(crd, old *apiextensions.CustomResourceDefinition) field.ErrorList {
	switch validate := any(library.ValidateUpdateCustomResourceDefinitionStatus).(type) {
	case func(crd, old *apiextensions.CustomResourceDefinition) field.ErrorList:
		return validate(crd, old)
	case func(ctx context.Context, crd, old *apiextensions.CustomResourceDefinition) field.ErrorList:
		return validate(context.Background(), crd, old)
	default:
		panic(fmt.Sprintf("the library validates a status by a %T", validate))
	}
}

// find returns all errors of a definition, as a creation and as an update of another.
func (c checks) find(crd, old *apiextensions.CustomResourceDefinition) (faults [3]field.ErrorList, panicked any) {
	defer func() { panicked = recover() }()
	ctx := context.Background()
	faults[0] = c.create(ctx, crd.DeepCopy())
	faults[1] = c.update(ctx, crd.DeepCopy(), old.DeepCopy())
	faults[2] = c.status(crd.DeepCopy(), old.DeepCopy())
	return faults, nil
}

var (
	// typeName has a number that varies between compilations.
	typeName = regexp.MustCompile(`selfType\d+`)
	// unordered are paths in fields that the library keeps in maps.
	unordered = regexp.MustCompile(`(properties|definitions|dependencies|storedVersions)\[`)
)

// comparableFaults removes errors that definitions do not validate, and values that
// vary between runs.
func comparableFaults(errs field.ErrorList) (out []field.Error) {
	for _, e := range errs {
		if strings.HasPrefix(e.Field, "metadata.") && !strings.HasPrefix(e.Field, "metadata.annotations[") && !strings.HasPrefix(e.Detail, "must be spec.names.plural") {
			continue
		}
		c := field.Error{Type: e.Type, Field: e.Field, BadValue: e.BadValue, Detail: e.Detail} // what a client sees
		c.Detail = typeName.ReplaceAllString(c.Detail, "selfType")
		if v := reflect.ValueOf(c.BadValue); v.Kind() == reflect.Pointer && !v.IsNil() {
			c.BadValue = v.Elem().Interface() // the value in the message
		}
		if strings.HasPrefix(c.Detail, "contributed to estimated rule cost total") {
			c.Field = "" // the library picks random fields among those with equal cost
		}
		out = append(out, c)
	}
	return out
}

// differ describes how two lists of errors differ, except for the order of fields that
// the library keeps in maps.
func differ(got, want field.ErrorList) string {
	a, b := comparableFaults(got), comparableFaults(want)
	ordered := func(list []field.Error) []field.Error {
		return slices.DeleteFunc(slices.Clone(list), func(e field.Error) bool { return unordered.MatchString(e.Field) })
	}
	same := func(a, b []field.Error) bool { return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b)) }
	byField := func(x, y field.Error) int { return strings.Compare(x.Field, y.Field) }
	inOrder := same(ordered(a), ordered(b))
	slices.SortStableFunc(a, byField)
	slices.SortStableFunc(b, byField)
	if inOrder && same(a, b) {
		return ""
	}
	var out strings.Builder
	for name, list := range map[string]field.ErrorList{"got": got, "want": want} {
		fmt.Fprintf(&out, "%s:\n", name)
		for _, e := range list {
			if text := e.Error(); len(text) > 600 {
				fmt.Fprintf(&out, "\t%s ... %s\n", text[:300], text[len(text)-200:])
			} else {
				fmt.Fprintf(&out, "\t%s\n", text)
			}
		}
	}
	return out.String()
}

func compare(t *testing.T, what string, crd, old *v1.CustomResourceDefinition) (faults int, panicked bool) {
	t.Helper()
	a, b := internal(t, crd), internal(t, old)
	want, broken := theirs.find(a, b)
	got, panics := ours.find(a, b)
	if panics != nil {
		t.Errorf("%s: panic: %v\n%s", what, panics, text(crd))
		return 0, true
	}
	if broken != nil {
		return 0, true // the library panics on this one
	}
	for i, request := range []string{"create", "update", "update of the status"} {
		if d := differ(got[i], want[i]); d != "" {
			t.Errorf("%s: %s:\n%s\nnow:\n%s\nbefore:\n%s", what, request, d, text(crd), text(old))
		}
		faults += len(comparableFaults(want[i]))
	}
	return faults, false
}

func text(crd *v1.CustomResourceDefinition) []byte {
	data, _ := json.Marshal(crd)
	return data
}

func TestErrorsAgreeWithTheLibrary(t *testing.T) {
	t.Parallel()
	for i, crd := range definitions(t) {
		compare(t, fmt.Sprintf("definition %d, %s", i, crd.Name), crd, crd)
		established := crd.DeepCopy()
		settle(established, 0)
		faults, _ := compare(t, fmt.Sprintf("definition %d, %s, established", i, crd.Name), established, established)
		if i == 0 && faults > 0 {
			t.Errorf("the definition with everything is wrong itself: %v", crdvalidation.Validate(t.Context(), internal(t, established)))
		}
	}
}

func TestErrorsOfBrokenDefinitionsAgreeWithTheLibrary(t *testing.T) {
	t.Parallel()
	all := definitions(t)
	wrong, lost := 0, 0
	for i := range *mutants {
		random := rand.New(rand.NewPCG(*seed+uint64(i), 0))
		m := mutator{random}
		from := all[0] // the largest definition
		if random.IntN(2) == 0 {
			from = all[random.IntN(len(all))]
		}
		// One error hides others, and most errors hide those of rules: a few changes at
		// a time find more than many.
		old := m.mutate(from, random.IntN(3))
		now := m.mutate(old, 1+random.IntN(3))
		settle(old, random.IntN(8))
		settle(now, random.IntN(8))
		faults, panicked := compare(t, fmt.Sprintf("seed %d", *seed+uint64(i)), now, old)
		if faults > 0 {
			wrong++
		}
		if panicked {
			lost++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d definitions, %d of them wrong, %d that the library cannot read", *mutants, wrong, lost)
	if wrong < *mutants/2 || wrong > *mutants*19/20 || lost > *mutants/20 {
		t.Errorf("of %d broken definitions %d are wrong and %d lost: too little is compared", *mutants, wrong, lost)
	}
}

// settle sets a status that the definition may have, or one that it may not.
func settle(crd *v1.CustomResourceDefinition, variant int) {
	crd.ResourceVersion = "1"
	established := v1.ConditionTrue
	if variant&1 != 0 {
		established = v1.ConditionFalse
	}
	crd.Status = v1.CustomResourceDefinitionStatus{
		Conditions: []v1.CustomResourceDefinitionCondition{{Type: v1.Established, Status: established}},
	}
	if variant&6 != 6 {
		crd.Status.AcceptedNames = crd.Spec.Names
	}
	for i := range crd.Spec.Versions {
		if v := &crd.Spec.Versions[i]; v.Storage || variant&2 != 0 {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
	if variant&4 != 0 {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, "v0", "v0", "v00")
	}
}
