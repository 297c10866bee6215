// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/dev"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

// healthy makes a project without faults, and without its modules.
func healthy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	_, checkout := command.Origin()
	_, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout})
	if err == nil {
		_, err = scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDoctorFindsWhatIsWrongInAProject(t *testing.T) {
	t.Parallel()
	dir := healthy(t)
	for _, test := range []struct {
		name, file, text string // the text is put behind what the file has
		check            func() finding
		before, after    string
		want             string
	}{
		{"a later PROJECT", "PROJECT", "version: \"4\"\n", func() finding { f, _ := checkProject(dir); return f }, fine, failure, "PROJECT"},
		{"an interrupted command", ".steer/undo/journal.json", "{}", func() finding { f, _ := checkProject(dir); return f }, fine, warning, "was interrupted"},
		{"a replacement that is gone", "go.mod", "replace github.com/steer-dev/steer => ./nowhere\n", func() finding { return checkModule(dir) }, fine, failure, "./nowhere"},
		{"a field", "api/v1/more.go", "package v1\n\n// +kubebuilder:object:root=true\ntype More struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\tmetav1.ObjectMeta `json:\"metadata\"`\n}\n", func() finding { return checkGenerated(t.Context(), dir) }, fine, failure, "problem"},
		{"an edited role", "config/rbac/role.yaml", "# mine\n", func() finding { return checkGenerated(t.Context(), dir) }, fine, failure, "1 file not up to date"},
	} {
		if f := test.check(); f.Status != test.before {
			t.Errorf("before %s: %+v", test.name, f)
		}
		file := filepath.Join(dir, filepath.FromSlash(test.file))
		old, err := os.ReadFile(file)
		put(t, file, string(old)+test.text)
		if strings.HasPrefix(test.text, "replace") {
			put(t, file, strings.Replace(string(old), "replace ", "// ", 1)+test.text)
		}
		if f := test.check(); f.Status != test.after || !strings.Contains(f.Text, test.want) {
			t.Errorf("after %s: %+v", test.name, f)
		}
		if err != nil {
			os.Remove(file)
		} else {
			put(t, file, string(old))
		}
	}
}

func TestDoctorTakesProjectsOfKubebuilderAsTheyAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "PROJECT"), "layout:\n- go.kubebuilder.io/v4\nprojectName: guestbook\nrepo: example.com/guestbook\nversion: \"3\"\n")
	f, own := checkProject(dir)
	if own || f.Status != fine || f.Text != "guestbook with 0 kinds, of layout go.kubebuilder.io/v4" {
		t.Errorf("got %+v, own %v", f, own)
	}
	for _, check := range examine(t.Context(), dir, filepath.Join(dir, "nowhere")) {
		if check.Check == "go.mod" || check.Check == "generated" {
			t.Errorf("the files of another tool are checked: %+v", check)
		}
	}
}

func TestDoctorComparesTheCRDsOfTheServer(t *testing.T) {
	t.Parallel()
	dir := healthy(t)
	plane, stop, err := dev.StartPlane(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	config := plane.RESTConfig()
	check := func(status, want string) {
		t.Helper()
		if f := checkDefinitions(t.Context(), dir, config); f.Status != status || !strings.Contains(f.Text, want) {
			t.Errorf("got %+v, want %s: %s", f, status, want)
		}
	}
	check(warning, "guestbooks.webapp.example.com is not on the server")
	objects, err := manifest.Read(filepath.Join(dir, "config/crd/bases"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{FieldOwner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Apply(t.Context(), c, "", objects); err != nil {
		t.Fatal(err)
	}
	check(fine, "1 CRD on the server as generated")
	file := filepath.Join(dir, "config/crd/bases/webapp.example.com_guestbooks.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, strings.Replace(string(text), "singular: guestbook\n", "shortNames: [gb]\n    singular: guestbook\n", 1))
	check(warning, "differs from the one that is generated")
}

func TestVersionSaysWhetherTheServerIsSupported(t *testing.T) {
	t.Parallel()
	for minor, supported := range map[string]bool{"33": false, "34": true, "37+": true, "38": false} {
		var gone atomic.Bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if gone.Load() {
				panic(http.ErrAbortHandler) // the connection ends without an answer
			}
			fmt.Fprintf(w, `{"major":"1","minor":%q,"gitVersion":"v1.%s.0"}`, minor, strings.TrimSuffix(minor, "+"))
		}))
		t.Cleanup(server.Close)
		file := filepath.Join(t.TempDir(), "kubeconfig")
		put(t, file, `{"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x"}}], "clusters": [{"name": "x", "cluster": {"server": "`+server.URL+`"}}]}`)
		s := askServer(t.Context(), file)
		if s == nil || s.Error != "" || s.Supported != supported || s.Address != server.URL {
			t.Errorf("minor %s: %+v", minor, s)
		}
		if _, f := checkServer(t.Context(), file); (f.Status == fine) != supported {
			t.Errorf("minor %s: %+v", minor, f)
		}
		gone.Store(true)
		if s := askServer(t.Context(), file); s == nil || !strings.Contains(s.text(), "cannot be asked") {
			t.Errorf("a server that does not answer: %+v", s)
		}
	}
}

func TestDoctorSaysWhichPortsAreInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if f := checkPort(l.Addr().String(), "another one"); f.Status != warning || !strings.Contains(f.Text, "another one") {
		t.Errorf("got %+v", f)
	}
	found := examine(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "none"))
	names := []string{}
	for _, f := range found {
		names = append(names, f.Check)
	}
	if want := []string{"go", "port 6443", "port 8081", "port 9443", "disk", "server"}; !slices.Equal(names, want) {
		t.Errorf("outside of a project it checks %v, want %v", names, want)
	}
	if found[5].Status != failure {
		t.Errorf("a kubeconfig that is not there: %+v", found[5])
	}
}

func TestGoIsAtLeastThatOfSteer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.ParseLax("go.mod", text, nil)
	if err != nil || "go"+mod.Go.Version != minimalGo {
		t.Errorf("Steer is built with Go %s, and %s is asked for (%v)", mod.Go.Version, minimalGo, err)
	}
	for version, want := range map[string]string{
		"go1.25.9": failure, "devel go1.25-1a2b3c Mon Jan 2": failure, "": failure,
		minimalGo: fine, "go1.26.1 X:jsonv2": fine, "devel go1.27-1a2b3c Mon Jan 2 15:04:05": fine,
	} {
		if got := checkGoVersion(version); got.Status != want {
			t.Errorf("%q: %+v, want %s", version, got, want)
		}
	}
}
