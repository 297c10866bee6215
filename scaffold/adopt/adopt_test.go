// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/steer-dev/steer/scaffold/project"
)

var update = flag.Bool("update", false, "rewrite the reports in testdata")

// sample writes a project of testdata to a folder.
func sample(t *testing.T, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, file := range archive.Files {
		write(t, filepath.Join(dir, filepath.FromSlash(file.Name)), string(file.Data))
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tree is the content of all files, and the targets of links.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if target, err := os.Readlink(path); err == nil {
			out[path] = "-> " + target
			return nil
		}
		text, err := os.ReadFile(path)
		out[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const version = "v1.2.3"

// TestAdoptIsUndone adopts projects of several ages, edits them, and restores them.
func TestAdoptIsUndone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v3-script", "v3", "v4", "v4-quoted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := sample(t, name)
			before := tree(t, dir)
			o := Options{Dir: dir, Steer: version}
			result, err := Adopt(o)
			if err != nil || !result.Changed || len(result.Replaced) != 2+strings.Count(name, "script") || len(result.Left) != 0 {
				t.Fatalf("%+v, %v", result, err)
			}
			file := filepath.Join(dir, makefileName)
			adopted := read(t, file)
			if again, err := Adopt(o); err != nil || again.Changed {
				t.Errorf("adopted twice: %+v, %v", again, err)
			}
			o.Steer = "v1.3.0"
			if _, err := Adopt(o); err != nil || read(t, file) != strings.ReplaceAll(adopted, version, "v1.3.0") {
				t.Errorf("another version: %v\n%s", err, read(t, file))
			}
			write(t, file, read(t, file)+"own:\n\techo own\n")
			if _, err := Undo(dir); err != nil {
				t.Fatal(err)
			}
			before[file] += "own:\n\techo own\n"
			if now := tree(t, dir); !maps.Equal(now, before) {
				t.Errorf("not as it was:\n%s", now[file])
			}
			if _, err := Undo(dir); !errors.Is(err, project.ErrUsage) {
				t.Errorf("undone twice: %v", err)
			}
		})
	}
}

// TestMakefilesAreRestoredByteByByte: ends of lines and of the file are part of it.
func TestMakefilesAreRestoredByteByByte(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no newline at the end": "$(CONTROLLER_GEN): bin\n\tgo install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.18.0",
		"CRLF":                  "a: b\r\n$(ENVTEST):\r\n\tGOBIN=bin go install sigs.k8s.io/controller-runtime/tools/setup-envtest@latest\r\nc:\r\n\tx\r\n",
		"lines that go on":      "$(CONTROLLER_GEN):\n\ttest -s bin/controller-gen || \\\n\tgo install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.11.3\n\nnext:\n",
	} {
		m, err := adoptMakefile(text, version, "true")
		if err != nil || len(m.replaced) != 1 {
			t.Errorf("%s: %+v, %v", name, m, err)
			continue
		}
		if back, err := restoreMakefile(m.text); err != nil || back != text {
			t.Errorf("%s: %v\n%q\n%q", name, err, back, text)
		}
	}
}

func FuzzMakefilesAreRestored(f *testing.F) {
	f.Add("$(CONTROLLER_GEN): bin\n\tgo install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.18.0")
	f.Add("controller-gen:\n\t$(call get,$(X),sigs.k8s.io/controller-tools/cmd/controller-gen,v)\n\n\n")
	f.Add("t:\n\ttest -f D/setup-envtest.sh || curl -sSLo D/setup-envtest.sh https://x/setup-envtest.sh\n\tsource D/setup-envtest.sh; fetch_envtest_tools D; setup_envtest_env D; go test ./...")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "steer") {
			t.Skip("it may have been adopted")
		}
		m, err := adoptMakefile(text, version, "true")
		if err != nil {
			t.Fatal(err)
		}
		if len(m.replaced) == 0 {
			return
		}
		if back, err := restoreMakefile(m.text); err != nil || back != text {
			t.Errorf("%v\n%q\n%q", err, back, text)
		}
	})
}

// TestRecipesOfOtherFormsAreLeft: what does more than to install a tool stays.
func TestRecipesOfOtherFormsAreLeft(t *testing.T) {
	t.Parallel()
	for name, recipe := range map[string]string{
		"a file with a fixed name": "tool:\n\tGOBIN=bin go install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.18.0\n",
		"two tools":                "$(CONTROLLER_GEN):\n\tgo install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.18.0\n\tgo install example.com/other@v1\n",
		"something else, too":      "$(CONTROLLER_GEN):\n\tgo install sigs.k8s.io/controller-tools/cmd/controller-gen@v0.18.0\n\techo done\n",
		"a script, and its use":    "test:\n\ttest -f x/setup-envtest.sh || curl -o x/setup-envtest.sh https://example.com/setup-envtest.sh\n\tx/setup-envtest.sh && go test ./...\n",
	} {
		m, err := adoptMakefile(recipe, version, "true")
		if err != nil || m.text != recipe || len(m.left) != 1 || len(m.replaced) != 0 {
			t.Errorf("%s: %v, left %v\n%s", name, err, m.left, m.text)
		}
	}
	dir := sample(t, "v4")
	write(t, filepath.Join(dir, makefileName), "all:\n\tgo build ./...\n")
	if _, err := Adopt(Options{Dir: dir, Steer: version}); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), "nothing to replace") {
		t.Errorf("got %v", err)
	}
	if report, err := Examine(t.Context(), Options{Dir: dir, Steer: version}); err != nil || !strings.Contains(report.Text(), "steer adopt replaces:\n  nothing\n") {
		t.Errorf("the report of such a project: %v, %v", report, err)
	}
}

// TestMakeInstallsSteer runs make with a program in the place of Steer.
func TestMakeInstallsSteer(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	for _, name := range []string{"v3-script", "v3", "v4", "v4-quoted"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := sample(t, name)
			before := tree(t, dir)
			install := `printf '#!/bin/sh\necho "$$0 $$@"\n' >"$(abspath $(dir $(1)))/steer" && chmod +x "$(dir $(1))steer"`
			file := filepath.Join(dir, makefileName)
			m, err := adoptMakefile(read(t, file), version, install)
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, m.text)
			write(t, filepath.Join(dir, "bin", "controller-gen"), "another program, newer than the folder")
			for range 2 {
				cmd := exec.CommandContext(t.Context(), "make", "-C", dir, "manifests", "test", "GO=echo go")
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "bin/controller-gen rbac") || !strings.Contains(string(out), "setup-envtest use") {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			if target, err := os.Readlink(filepath.Join(dir, "bin", "controller-gen")); err != nil || target != "steer-"+version {
				t.Errorf("bin/controller-gen is %s, %v", target, err)
			}
			if _, err := Undo(dir); err != nil {
				t.Fatal(err)
			}
			if now := tree(t, dir); !maps.Equal(now, before) {
				t.Errorf("after undo: %v", slices.Sorted(maps.Keys(now)))
			}
		})
	}
}

// kill is what a process is killed with.
type kill struct{}

// TestCommandsThatAreKilledLeaveTheMakefileWhole kills adopt and undo at each of their
// changes of the disk.
func TestCommandsThatAreKilledLeaveTheMakefileWhole(t *testing.T) {
	t.Parallel()
	dir := sample(t, "v4")
	file := filepath.Join(dir, makefileName)
	before := read(t, file)
	m, err := (&Options{Steer: version}).makefile(dir, before)
	if err != nil {
		t.Fatal(err)
	}
	killed := func(n int, run func(step func()) error) (killed bool, err error) {
		defer func() {
			if r := recover(); r != nil {
				if _, killed = r.(kill); !killed {
					panic(r)
				}
			}
		}()
		return false, run(func() {
			if n--; n < 0 {
				panic(kill{})
			}
		})
	}
	for name, test := range map[string]struct {
		start, end string
		run        func(step func()) error
	}{
		"adopt": {before, m.text, func(step func()) error { _, err := Adopt(Options{Dir: dir, Steer: version, step: step}); return err }},
		"undo":  {m.text, before, func(step func()) error { _, err := undo(dir, step); return err }},
	} {
		for n, again := 0, true; again; n++ {
			write(t, file, test.start)
			var err error
			if again, err = killed(n, test.run); err != nil {
				t.Fatalf("%s, killed at %d: %v", name, n, err)
			}
			if now := read(t, file); now != test.start && now != test.end {
				t.Fatalf("%s, killed at %d: half a file", name, n)
			}
			if err := test.run(nil); err != nil && !(errors.Is(err, project.ErrUsage) && name == "undo") {
				t.Fatalf("%s after a kill at %d: %v", name, n, err)
			}
			if now := read(t, file); now != test.end {
				t.Fatalf("%s after a kill at %d:\n%s", name, n, now)
			}
			if !again && n < 10 {
				t.Errorf("%s has %d changes only", name, n)
			}
		}
	}
}

func TestProjectsThatCannotBeAdoptedAreRefused(t *testing.T) {
	t.Parallel()
	good := Options{Steer: version}
	for want, change := range map[string]func(dir string) Options{
		"there is no": func(dir string) Options { _ = os.Remove(filepath.Join(dir, "PROJECT")); return good },
		`version "4"`: func(dir string) Options { write(t, filepath.Join(dir, "PROJECT"), "version: \"4\"\n"); return good },
		"has the layout helm": func(dir string) Options {
			write(t, filepath.Join(dir, "PROJECT"), "version: \"3\"\nlayout: [helm.sdk.operatorframework.io/v1]\n")
			return good
		},
		"has the layout ansible": func(dir string) Options {
			write(t, filepath.Join(dir, "PROJECT"), "version: \"3\"\nlayout: ansible\n")
			return good
		},
		"PROJECT:1: ":       func(dir string) Options { write(t, filepath.Join(dir, "PROJECT"), "version: [\n"); return good },
		"name a checkout":   func(string) Options { return Options{} },
		"there is no " + "": func(dir string) Options { _ = os.Remove(filepath.Join(dir, makefileName)); return good },
		"line \"# steer adopt": func(dir string) Options {
			write(t, filepath.Join(dir, makefileName), "a:\n\n"+beginning+"\nx\n")
			return good
		},
	} {
		dir := sample(t, "v4")
		o := change(dir)
		before := tree(t, dir)
		o.Dir = dir
		_, err := Adopt(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want a line with %q, got %v", want, err)
		}
		if now := tree(t, dir); !maps.Equal(now, before) {
			t.Errorf("%s: files changed", want)
		}
	}
}

func TestAssetsReplaceProgramsOfKubernetes(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	program := filepath.Join(bin, "steer-"+version)
	write(t, program, "program")
	kubernetes := filepath.Join(bin, "k8s", "1.31.0-"+runtime.GOOS+"-"+runtime.GOARCH)
	write(t, filepath.Join(kubernetes, executable("etcd")), "etcd")
	for version, folder := range map[string]string{"1.31.0": "1.31.0", "1.31": "1.31.0", "v1.31.x": "1.31.0", "1.31.x!": "1.31.0", "1.33": "1.33.0"} {
		dir, err := Assets(bin, version, program)
		if err != nil || filepath.Base(dir) != folder+"-"+runtime.GOOS+"-"+runtime.GOARCH {
			t.Fatalf("%s: %s, %v", version, dir, err)
		}
		for _, name := range []string{"etcd", "kube-apiserver"} {
			if text := read(t, filepath.Join(dir, executable(name))); text != "program" {
				t.Errorf("%s is %q", name, text)
			}
		}
	}
	if text := read(t, filepath.Join(bin, asideDir, filepath.Base(kubernetes), executable("etcd"))); text != "etcd" {
		t.Errorf("what was there is %q", text)
	}
	tool := filepath.Join(bin, "setup-envtest")
	if err := os.Symlink(filepath.Base(program), tool); err != nil {
		t.Fatal(err)
	}
	if err := removeInstalled([]string{tool}); err != nil {
		t.Fatal(err)
	}
	if now := tree(t, bin); len(now) != 1 || now[filepath.Join(kubernetes, executable("etcd"))] != "etcd" {
		t.Errorf("after undo: %v", now)
	}
	for _, version := range []string{"", "new", "1.x.x", "../1.2.3"} {
		if _, err := Assets(bin, version, program); !errors.Is(err, project.ErrUsage) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestReportNamesWhatAMoveNeeds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v3", "v4", "v4-quoted"} {
		dir := sample(t, name)
		before := tree(t, dir)
		report, err := Examine(t.Context(), Options{Dir: dir, Steer: version})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".report")
		if *update {
			write(t, file, report.Text())
		}
		want := read(t, file)
		if got := report.Text(); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		if now := tree(t, dir); !maps.Equal(now, before) {
			t.Errorf("%s: files changed", name)
		}
	}
}

// TestStandardFlagsAreThoseOfMain holds the list to the flags that the root package has.
func TestStandardFlagsAreThoseOfMain(t *testing.T) {
	t.Parallel()
	var want []string
	for _, match := range regexp.MustCompile(`set\.\w+Var\(&[\w.]+, "([^"]+)"`).FindAllStringSubmatch(read(t, filepath.Join("..", "..", "flags.go")), -1) {
		want = append(want, match[1])
	}
	if got := standardFlags(); len(want) < 20 || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("got %v, want %v", got, want)
	}
}
