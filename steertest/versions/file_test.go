// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/trace"
)

var page = trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "page"}

func example() *File {
	return &File{
		resources: resources{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, ShortNames: []string{"cm"}, Namespaced: true}},
		From:      3, Missing: []string{"something"},
		notes:   []notes.Note{{Revision: 5, Resource: "configmaps", Namespace: "default", Name: "page", User: "ann"}},
		Records: []trace.Record{{ID: trace.ID{Recorder: 1, Number: 2}, Object: page, Outcome: trace.Done}},
		versions: map[trace.Object][]version{page: {
			{page, 2, json.RawMessage(`{"metadata":{"resourceVersion":"2"}}`)}, {page, 5, json.RawMessage(`{"metadata":{"resourceVersion":"5"}}`)}, {page, 7, nil},
		}},
	}
}

func written(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := example().Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAFileIsASourceOfVersions(t *testing.T) {
	t.Parallel()
	f, err := Read(bytes.NewReader(written(t)))
	if err != nil {
		t.Fatal(err)
	}
	for revision, want := range map[int64]int64{3: 2, 4: 2, 5: 5, 6: 5, 7: 0, 9: 0, 0: 0} {
		if got, err := f.At(t.Context(), page, revision); err != nil || revisionOf(got) != want {
			t.Errorf("at %d: %v %v, want that of %d", revision, got, err, want)
		}
	}
	if _, err := f.At(t.Context(), page, 2); !errors.Is(err, ErrForgotten) {
		t.Errorf("what others were at 2 is not in the file: %v", err)
	}
	if r, err := f.Resource("cm"); err != nil || f.Plural("", r.GVK.Kind) != "configmaps" {
		t.Error(r, err)
	}
	if all, missing := f.All(t.Context(), "default"); len(all) != 0 || len(missing) != 1 { // it was deleted
		t.Error(all, missing)
	}
	if items, why := f.Notes(t.Context()); len(items) != 1 || items[0].User != "ann" || why != "" {
		t.Error(items, why)
	}
	if len(f.Records) != 1 || f.Records[0].Object != page {
		t.Error(f.Records)
	}
}

func TestAFileThatIsNotWholeIsRefused(t *testing.T) {
	t.Parallel()
	whole := string(written(t))
	cut := whole[:strings.LastIndex(strings.TrimSuffix(whole, "\n"), "\n")]
	for name, c := range map[string]struct{ text, want string }{
		"empty":           {"", "it was cut"},
		"without its end": {cut, "it was cut"},
		"within a line":   {whole[:len(whole)/2], "line "},
		"records":         {`{"id":"0000000000000001-2"}`, "--records"},
		"no JSON":         {"\x00\x01", "--records"},
		"another version": {strings.Replace(whole, `"version":1`, `"version":99`, 1), "version 99"},
		"two in one":      {whole + whole, "behind the end"},
		"a long line":     {whole + strings.Repeat("x", maxLine+1), "too long"},
	} {
		if _, err := Read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRead reads files of attackers: none ends the program.
func FuzzRead(f *testing.F) {
	f.Add(written(f))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		_, _ = file.All(t.Context(), "")
		_, _ = file.At(t.Context(), page, 4)
		_, _ = file.Resource("cm")
	})
}
