// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/internal/transaction"
	"github.com/steer-dev/steer/scaffold/project"
)

// tree is the content of the files below a folder, without .git and the state of an
// interrupted command.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || name == filepath.Join(project.StateDir, transaction.UndoDir) {
				return filepath.SkipDir
			}
			if name != "." && name != project.StateDir {
				files[filepath.ToSlash(name)+"/"] = ""
			}
			return nil
		}
		text, err := os.ReadFile(p)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// newProject makes a project without a kind, and leaves its go.mod as it is.
func newProject(t *testing.T) string {
	t.Helper()
	return initialized(t, InitOptions{Offline: true})
}

// initialized makes a project without a kind.
func initialized(t *testing.T, o InitOptions) string {
	t.Helper()
	o.Dir, o.Domain, o.Checkout = filepath.Join(t.TempDir(), "guestbook"), "example.com", checkout(t)
	if err := os.Mkdir(o.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o.Dir
}

func guestbook(version string) project.GVK {
	return kindOf("webapp", version, "Guestbook")
}

func kindOf(group, version, kind string) project.GVK {
	return project.GVK{Group: group, Version: version, Kind: kind}
}

func create(t *testing.T, o APIOptions) *project.Report {
	t.Helper()
	report, err := CreateAPI(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func createWebhook(t *testing.T, o WebhookOptions) *project.Report {
	t.Helper()
	report, err := CreateWebhook(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// program runs a program in a project.
func program(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// runsProjects reports whether the go command runs in projects, as it does in .ci/run projects.
// What it reads and links costs more than all other tests here; TestProjectPassesItsOwnTests
// compiles one project anywhere.
func runsProjects() bool { return os.Getenv("STEER_PROJECTS") != "" }

// passes runs the tests of a project, if the go command runs in projects.
func passes(t *testing.T, dir, packages string) {
	t.Helper()
	if runsProjects() {
		program(t, dir, "go", "test", packages)
	}
}

// compiles checks that packages and their tests compile, and links nothing. Vetting is the
// business of the pages that .ci/run fresh plays.
func compiles(t *testing.T, dir, packages string) {
	t.Helper()
	program(t, dir, "go", "list", "-export", "-test", "-f", "{{.Name}}", packages)
}

// TestProjectPassesItsOwnTests is the way of a new user: everything that is made
// compiles, and its tests pass, without an edit; those run in .ci/run projects.
func TestProjectPassesItsOwnTests(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "guest book") // paths may have blanks
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(t.Context(), InitOptions{Dir: dir, Domain: "example.com", Checkout: checkout(t)}); err != nil {
		t.Fatal(err)
	}
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1")})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: guestbook("v1"), Defaulting: true, Validation: true})
	own, lines := 0, 0
	for name, text := range tree(t, dir) {
		generated := strings.Contains(name, "zz_generated") || strings.HasPrefix(name, "config/crd/") || strings.HasPrefix(name, "config/rbac/") || strings.HasPrefix(name, "config/webhook/")
		if !strings.HasSuffix(name, "/") && name != sumFile && !generated {
			own++
			lines += strings.Count(text, "\n")
		}
	}
	if t.Logf("%d files, %d lines", own, lines); own > 12 || lines > 400 {
		t.Errorf("an author owns %d files with %d lines, want at most 12 with 400", own, lines)
	}
	addFields(t, dir)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v2")})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: guestbook("v2"), Conversion: true})
	create(t, APIOptions{Dir: dir, GVK: kindOf("webapp", "v1", "Policy"), ClusterScoped: true, Plural: "rulebooks"})
	create(t, APIOptions{Dir: dir, GVK: kindOf("webapp", "v2", "Policy")})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: kindOf("webapp", "v2", "Policy"), Defaulting: true})
	create(t, APIOptions{Dir: dir, GVK: kindOf("apps", "v1", "Deployment"), NoResource: true})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: kindOf("core", "v1", "Pod"), Defaulting: true, Validation: true})
	if runsProjects() {
		program(t, dir, "go", "test", "./...")
		refusesASample(t, dir)
	} else {
		compiles(t, dir, "./...")
	}
	for _, command := range [][]string{{"go", "mod", "tidy", "-diff"}, {"gofmt", "-l", "."}} {
		if out := program(t, dir, command...); out != "" {
			t.Errorf("%v: %s", command, out)
		}
	}
}

// refusesASample checks that the test of a controller calls the webhooks.
func refusesASample(t *testing.T, dir string) {
	t.Helper()
	hook := "internal/webhook/v1/guestbook_webhook.go"
	write(t, dir, hook, strings.Replace(tree(t, dir)[hook], "return nil, nil", "return nil, errors.New(\"no guestbooks today\")", 1))
	test := exec.CommandContext(t.Context(), "go", "test", "./internal/controller", "-run", "TestGuestbook")
	test.Dir = dir
	if out, err := test.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("no guestbooks today")) {
		t.Errorf("a validator that denies the sample does not fail the test: %v\n%s", err, out)
	}
}

// addFields gives v1 a field that objects must have, and a type of its own in another file,
// as the author would.
func addFields(t *testing.T, dir string) {
	t.Helper()
	for file, edit := range map[string][2]string{
		"api/v1/guestbook_types.go": {
			"type GuestbookSpec struct {\n",
			"type GuestbookSpec struct {\n\t// Size of the book.\n\tSize Size `json:\"size\"`\n\t// Until when it is open.\n\t// +optional\n\tUntil *metav1.Time `json:\"until,omitempty\"`\n",
		},
		"config/samples/v1_guestbook.yaml": {"spec:\n", "spec:\n  size: Small\n"},
	} {
		text := tree(t, dir)[file]
		if !strings.Contains(text, edit[0]) {
			t.Fatalf("%s has no %q:\n%s", file, edit[0], text)
		}
		write(t, dir, file, strings.Replace(text, edit[0], edit[1], 1))
	}
	write(t, dir, "api/v1/size.go", "package v1\n\n// Size of a book.\n// +kubebuilder:validation:Enum=Small;Large\ntype Size string\n\n// Small is the default.\nconst Small Size = \"Small\"\n")
}

// TestDeletionsLeaveWhatWasThere adds kinds of all sorts and deletes them again.
func TestDeletionsLeaveWhatWasThere(t *testing.T) {
	t.Parallel()
	for name, multi := range map[string]bool{"one group": false, "several groups, layout of kubebuilder": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := ""
			if multi {
				layout = "kubebuilder"
			}
			dir := initialized(t, InitOptions{MultiGroup: multi, Layout: layout, License: "apache2"})
			remove := func(gvk project.GVK) {
				t.Helper()
				if report, err := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: gvk, Force: true}); err != nil || len(report.Notes) > 0 {
					t.Fatal(err, report)
				}
			}
			kinds := []APIOptions{
				{GVK: guestbook("v1alpha1")}, {GVK: guestbook("v1")}, {GVK: kindOf("webapp", "v1", "Policy")},
				{GVK: kindOf("core", "v1", "Namespace"), NoResource: true},
			}
			if multi {
				kinds = append(kinds, APIOptions{GVK: kindOf("ship-yard", "v1", "Frigate")}, APIOptions{GVK: kindOf("", "v1", "Bare")})
			}
			before := []map[string]string{}
			for _, o := range kinds {
				o.Dir = dir
				before = append(before, tree(t, dir))
				if report := create(t, o); len(report.Notes) > 0 {
					t.Errorf("%s: %q", o.GVK, report.Notes)
				}
			}
			hook := WebhookOptions{Dir: dir, GVK: guestbook("v1"), Defaulting: true, Conversion: true}
			last := tree(t, dir)
			createWebhook(t, hook)
			pod := kindOf("core", "v1", "Pod")
			createWebhook(t, WebhookOptions{Dir: dir, GVK: pod, Validation: true})
			for _, gvk := range []project.GVK{pod, hook.GVK} {
				report, err := DeleteWebhook(t.Context(), DeleteOptions{Dir: dir, GVK: gvk, Force: true})
				if err != nil || len(report.Notes) > 0 {
					t.Fatal(err, report)
				}
			}
			now := tree(t, dir)
			now[modFile], now[sumFile] = last[modFile], last[sumFile]
			if !maps.Equal(now, last) {
				t.Errorf("after the webhooks were deleted: %s", differences(last, now))
			}
			for i, o := range slices.Backward(kinds) {
				remove(o.GVK)
				now := tree(t, dir)
				for _, file := range []string{modFile, sumFile} { // a requirement too many harms nothing
					now[file] = before[i][file]
				}
				// The first version stays marked as the stored one.
				for _, files := range []map[string]string{now, before[i]} {
					for file, text := range files {
						files[file] = strings.Replace(text, "// +kubebuilder:storageversion\n", "", 1)
					}
				}
				if !maps.Equal(now, before[i]) {
					t.Errorf("after %s was deleted: %s", o.GVK, differences(before[i], now))
				}
			}
		})
	}
}

// differences names the files in which two trees differ.
func differences(a, b map[string]string) string {
	var out []string
	for name, text := range a {
		if now, ok := b[name]; !ok {
			out = append(out, name+" is missing")
		} else if now != text {
			out = append(out, name+" was:\n"+text+"\nand is:\n"+now)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, name+" is left")
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// TestCommandsAtOnceAreRefused runs a command while another one is under way, and
// again when that one has ended.
func TestCommandsAtOnceAreRefused(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	before := tree(t, dir)
	second := APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true}
	_, err := transaction.Run(dir, nil, func(*transaction.Transaction) error {
		_, err := CreateAPI(t.Context(), second)
		return err
	})
	if !errors.Is(err, transaction.ErrBusy) {
		t.Errorf("got %v", err)
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
	create(t, second)
}

// TestEditsAfterAKillAreNotUndone: what the author wrote into a half-made file is
// work, too.
func TestEditsAfterAKillAreNotUndone(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	var edited string
	for n := 20; edited == ""; n++ {
		killed, err := killedAt(n, func(step func()) error {
			_, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true, step: step})
			return err
		})
		if !killed || err != nil {
			t.Fatal(killed, err)
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "api/v1/*_types.go")); len(found) > 0 {
			edited = found[0]
		}
	}
	if err := os.WriteFile(edited, []byte("package v1 // edited\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	_, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: guestbook("v1")})
	if err == nil || !strings.Contains(err.Error(), "api/v1/guestbook_types.go was changed since") {
		t.Errorf("got %v", err)
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
	// The way out that the error names.
	if err := os.RemoveAll(filepath.Join(dir, project.StateDir, transaction.UndoDir)); err != nil {
		t.Fatal(err)
	}
	var exist *ExistError
	if _, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: guestbook("v1")}); !errors.As(err, &exist) || !slices.Contains(exist.Paths, "api/v1/guestbook_types.go") {
		t.Errorf("got %v", err)
	}
}

// TestFilesOfOtherProgramsOutliveAKill: a folder that a command made is left with what
// another program, such as steer dev, has written to it.
func TestFilesOfOtherProgramsOutliveAKill(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	const other = "api/v1/zz_generated.deepcopy.go"
	for n := 20; ; n++ {
		killed, err := killedAt(n, func(step func()) error {
			_, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true, step: step})
			return err
		})
		if !killed || err != nil {
			t.Fatal(killed, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "api", "v1")); err == nil {
			break
		}
	}
	write(t, dir, other, "package v1\n")
	report := create(t, APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true})
	if now := tree(t, dir); report.Restored == 0 || now[other] == "" || now["api/v1/guestbook_types.go"] != "" {
		t.Errorf("%d files restored, and there are now %v", report.Restored, slices.Sorted(maps.Keys(now)))
	}
	if Interrupted(dir) {
		t.Error("the journal is left")
	}
}

// TestCommandsThatFailLeaveTheTreeAsItWas fails where files are half-written already.
func TestCommandsThatFailLeaveTheTreeAsItWas(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	write(t, dir, "api/v1/broken.go", "package v1\n\n// +kubebuilder:object:rot=true\ntype Broken struct{}\n")
	before := tree(t, dir)
	if _, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: guestbook("v1")}); err == nil {
		t.Fatal("a marker that does not exist is accepted")
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
	if os.Getuid() == 0 {
		return // may write everywhere
	}
	if err := os.Chmod(filepath.Join(dir, "cmd"), 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true}); err == nil {
		t.Fatal("a folder that cannot be written to is no failure")
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
}

// TestExistingFilesAreKept: only Force overwrites, after the list was shown.
func TestExistingFilesAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, makeFile, "mine\n")
	write(t, dir, mainFile, "package main\n")
	write(t, dir, gitIgnore, "mine\n")
	write(t, dir, modFile, "module example.org/mine\n\ngo 1.26.0\n\nrequire example.org/other v1.0.0\n")
	before := tree(t, dir)
	o := InitOptions{Dir: dir, Domain: "example.com", Name: "mine", Checkout: checkout(t), Offline: true}
	_, err := Init(t.Context(), o)
	var exist *ExistError
	if !errors.As(err, &exist) || !slices.Equal(exist.Paths, []string{makeFile, mainFile}) {
		t.Fatalf("got %v", err)
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
	o.Force = true
	report, err := Init(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(report.Changed, []string{makeFile, mainFile, modFile}) || !slices.Equal(report.Created, []string{project.File, settingsFile}) {
		t.Errorf("got %+v", report)
	}
	now := tree(t, dir)
	if now[gitIgnore] != "mine\n" || !strings.Contains(now[modFile], "example.org/other") || !strings.Contains(now[project.File], "repo: example.org/mine") {
		t.Errorf("go.mod and .gitignore are not kept: %v", now)
	}
}

// TestTargetsDeployTheImageThatTheyAreGiven runs make without doing what it says.
func TestTargetsDeployTheImageThatTheyAreGiven(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	for layout, want := range map[string]string{"lean": "package yaml --image example.com/x:v2", "kubebuilder": "package kustomize --image example.com/x:v2"} {
		dir := t.TempDir()
		o := InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Layout: layout, With: []string{"dockerfile"}, Checkout: checkout(t), Offline: true}
		if _, err := Init(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		out := program(t, dir, "make", "-n", "docker-build", "docker-push", "build-installer", "deploy", "IMG=example.com/x:v2")
		for _, want := range []string{"docker build -t example.com/x:v2 .", "docker push example.com/x:v2", "package yaml --image example.com/x:v2", want} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q:\n%s", layout, want, out)
			}
		}
		if out := program(t, dir, "make", "-n", "deploy"); strings.Contains(out, "--image") {
			t.Errorf("%s: without IMG:\n%s", layout, out)
		}
	}
}

// TestASecondWebhookKeepsTheFirst adds the validator to a file that was edited.
func TestASecondWebhookKeepsTheFirst(t *testing.T) {
	t.Parallel()
	const file, edit = "internal/webhook/v1/guestbook_webhook.go", "obj.Spec.Foo = \"edited\" // mine\n"
	dir := newProject(t)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	o := WebhookOptions{Dir: dir, GVK: guestbook("v1"), Defaulting: true, NoGenerate: true}
	createWebhook(t, o)
	write(t, dir, file, strings.Replace(tree(t, dir)[file], "return nil\n", edit+"\treturn nil\n", 1))
	o.Defaulting, o.Validation = false, true
	createWebhook(t, o)
	now := tree(t, dir)
	for _, want := range []string{edit, "webhook.AddDefaulter(m, &GuestbookDefaulter{})", "webhook.AddValidator(m, &GuestbookValidator{})"} {
		if strings.Count(now[file], want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, now[file])
		}
	}
	for _, operator := range []string{now[mainFile], now["internal/controller/guestbook_controller_test.go"]} {
		if strings.Count(operator, "SetupGuestbookWebhookWithManager(m)") != 1 {
			t.Errorf("the webhooks are not set up once:\n%s", operator)
		}
	}
	if test := now["internal/controller/guestbook_controller_test.go"]; strings.Count(test, installed) != 1 {
		t.Errorf("the test does not install the webhooks:\n%s", test)
	}
	// A file that no command made is not written to.
	write(t, dir, "internal/webhook/v2/guestbook_webhook.go", "package v2\n")
	create(t, APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true})
	var exist *ExistError
	if _, err := CreateWebhook(t.Context(), WebhookOptions{Dir: dir, GVK: guestbook("v2"), Defaulting: true}); !errors.As(err, &exist) {
		t.Errorf("got %v", err)
	}
	// Force makes the one that is named anew, and the other one of its file.
	o.Force = true
	createWebhook(t, o)
	if text := tree(t, dir)[file]; strings.Contains(text, edit) || !strings.Contains(text, "GuestbookDefaulter") || !strings.Contains(text, "GuestbookValidator") {
		t.Errorf("got:\n%s", text)
	}
}

// TestDeletionNeedsACopyInGit keeps work that is nowhere else.
func TestDeletionNeedsACopyInGit(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	del := DeleteOptions{Dir: dir, GVK: guestbook("v1")}
	refused := func(want ...string) {
		t.Helper()
		_, err := DeleteAPI(t.Context(), del)
		var exist *ExistError
		if !errors.As(err, &exist) || !slices.Equal(exist.Paths, want) {
			t.Errorf("got %v, want a refusal because of %v", err, want)
		}
	}
	types, controller, sample := "api/v1/guestbook_types.go", "internal/controller/guestbook_controller.go", "config/samples/v1_guestbook.yaml"
	all := []string{"api/v1/groupversion_info.go", types, sample, controller, "internal/controller/guestbook_controller_test.go"}
	refused(all...)
	program(t, dir, "git", "init", "-q")
	refused(all...)
	program(t, dir, "git", "add", ".")
	program(t, dir, "git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x")
	write(t, dir, controller, "package controller // edited\n")
	refused(controller)
	program(t, dir, "git", "checkout", "-q", controller)
	del.DryRun = true
	before := tree(t, dir)
	report, err := DeleteAPI(t.Context(), del)
	if err != nil || !slices.Contains(report.Removed, types) {
		t.Errorf("a dry run says %v, %v", report, err)
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
	del.DryRun = false
	if _, err := DeleteAPI(t.Context(), del); err != nil {
		t.Error(err)
	}
}

// TestBadInputIsOneLine has every mistake that a command line can hold.
func TestBadInputIsOneLine(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	createWebhook(t, WebhookOptions{Dir: dir, GVK: guestbook("v1"), Validation: true, NoGenerate: true})
	create(t, APIOptions{Dir: dir, GVK: kindOf("webapp", "v1", "Policy"), NoController: true, NoGenerate: true})
	before := tree(t, dir)
	initialize := func(change func(*InitOptions)) error {
		o := InitOptions{Dir: t.TempDir(), Domain: "example.com", Name: "guestbook", Checkout: checkout(t), Offline: true}
		change(&o)
		_, err := Init(t.Context(), o)
		return err
	}
	api := func(change func(*APIOptions)) error {
		o := APIOptions{Dir: dir, GVK: guestbook("v2"), NoGenerate: true}
		change(&o)
		_, err := CreateAPI(t.Context(), o)
		return err
	}
	hook := func(change func(*WebhookOptions)) error {
		o := WebhookOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true, Defaulting: true}
		change(&o)
		_, err := CreateWebhook(t.Context(), o)
		return err
	}
	_, bare := DeleteWebhook(t.Context(), DeleteOptions{Dir: dir, GVK: kindOf("webapp", "v1", "Ghost")})
	_, held := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: guestbook("v1")})
	_, missing := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: kindOf("webapp", "v1", "Ghost")})
	for want, err := range map[string]error{
		"--domain \"Example\"":                      initialize(func(o *InitOptions) { o.Domain = "Example" }),
		"--domain \"\"":                             initialize(func(o *InitOptions) { o.Domain = "" }),
		"project name \"Guest Book\"":               initialize(func(o *InitOptions) { o.Name = "Guest Book" }),
		`--repo "C:\\guestbook"`:                    initialize(func(o *InitOptions) { o.Repo = `C:\guestbook` }),
		"--license \"mit\"":                         initialize(func(o *InitOptions) { o.License = "mit" }),
		"is no checkout of Steer":                   initialize(func(o *InitOptions) { o.Checkout = dir }),
		"--replace":                                 initialize(func(o *InitOptions) { o.Checkout = "" }),
		"has a file PROJECT already":                initialize(func(o *InitOptions) { o.Dir = dir }),
		"go.mod:1: unknown directive":               initialize(func(o *InitOptions) { write(t, o.Dir, modFile, "modul x\n") }),
		"go.mod says module example.org/mine":       initialize(func(o *InitOptions) { o.Repo = "example.org/x"; write(t, o.Dir, modFile, "module example.org/mine\n") }),
		"there is no file PROJECT":                  api(func(o *APIOptions) { o.Dir = t.TempDir() }),
		"--version is missing":                      api(func(o *APIOptions) { o.Version = "" }),
		"--version \"2\"":                           api(func(o *APIOptions) { o.Version = "2" }),
		"--kind is missing":                         api(func(o *APIOptions) { o.Kind = "" }),
		"--kind \"guestbook\"":                      api(func(o *APIOptions) { o.Kind = "guestbook" }),
		"--kind \"Guest/Book\"":                     api(func(o *APIOptions) { o.Kind = "Guest/Book" }),
		"--group \"Web\"":                           api(func(o *APIOptions) { o.Group = "Web" }),
		"--group \"../web\"":                        api(func(o *APIOptions) { o.Group = "../web" }),
		"--plural \"Books\"":                        api(func(o *APIOptions) { o.Plural = "Books" }),
		"steer edit --multigroup":                   api(func(o *APIOptions) { o.Group = "ship" }),
		"PROJECT has webapp/v1 Guestbook":           api(func(o *APIOptions) { o.Version = "v1" }),
		"give --resource=false to add a controller": api(func(o *APIOptions) { o.GVK = kindOf("webapp", "v1", "Policy") }),
		"webapp/v1 Guestbook has a controller": api(func(o *APIOptions) {
			o.Version, o.NoResource = "v1", true
		}),
		"has no group \"webapp\"":        api(func(o *APIOptions) { o.NoResource = true }),
		"give --resource=false with it":  api(func(o *APIOptions) { o.External.Path = "example.org/certs/v1" }),
		"--external-api-path is missing": api(func(o *APIOptions) { o.NoResource, o.External.Domain = true, "io" }),
		"is no Go package":               api(func(o *APIOptions) { o.NoResource, o.External.Path = true, "a b" }),
		"--external-api-domain \"I\"": api(func(o *APIOptions) {
			o.NoResource, o.External = true, project.External{Path: "example.org/certs/v1", Domain: "I"}
		}),
		"is no module: give one": api(func(o *APIOptions) {
			o.NoResource, o.External = true, project.External{Path: "example.org/certs/v1", Module: "example.org/certs@1"}
		}),
		"give --defaulting with it":              hook(func(o *WebhookOptions) { o.Defaulting, o.DefaultingPath = false, "/x"; o.Validation = true }),
		"give --programmatic-validation with it": hook(func(o *WebhookOptions) { o.ValidationPath = "/x" }),
		"--defaulting-path \"x\" is no path":     hook(func(o *WebhookOptions) { o.DefaultingPath = "x" }),
		"--license-file: ":                       initialize(func(o *InitOptions) { o.LicenseFile = "nowhere" }),
		"go.mod is no comment of Go":             initialize(func(o *InitOptions) { o.LicenseFile = "../go.mod" }),
		"neither types nor a controller":         api(func(o *APIOptions) { o.NoResource, o.NoController = true, true }),
		"it has webapp/v1 Guestbook":             missing,
		"no webhook is to be made":               hook(func(o *WebhookOptions) { o.Defaulting = false }),
		"give --conversion with it":              hook(func(o *WebhookOptions) { o.Spokes = []string{"v2"} }),
		"has one version":                        hook(func(o *WebhookOptions) { o.Defaulting, o.Conversion = false, true }),
		"--spoke v3 is no other version":         hook(func(o *WebhookOptions) { o.Conversion, o.Spokes = true, []string{"v3"} }),
		"are to be converted: it has":            hook(func(o *WebhookOptions) { o.Kind, o.Conversion = "Ghost", true }),
		"has a validating webhook":               hook(func(o *WebhookOptions) { o.Validation = true }),
		"no types of webapp/v1 Ghost":            hook(func(o *WebhookOptions) { o.Kind = "Ghost" }),
		"has no webhooks of":                     bare,
		"steer delete webhook --group":           held,
	} {
		if !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want a line with %q, got %v", want, err)
		}
	}
	if now := tree(t, dir); !maps.Equal(now, before) {
		t.Error(differences(before, now))
	}
}

// TestGoVersionIsThatOfSteer keeps new projects on the language version of Steer.
func TestGoVersionIsThatOfSteer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../go.mod")
	if err != nil || !bytes.Contains(text, []byte("\ngo "+goVersion+"\n")) {
		t.Errorf("go.mod does not say go %s: change goVersion (%v)", goVersion, err)
	}
}

// TestEditsOfUnknownFormsAreLeftToTheAuthor: what is not found is not guessed.
func TestEditsOfUnknownFormsAreLeftToTheAuthor(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	write(t, dir, mainFile, "package main\n\nfunc main() {}\n")
	report := create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	notes := strings.Join(report.Notes, "\n")
	for _, want := range []string{
		"cmd/main.go: add webappv1.AddToScheme of example.com/guestbook/api/v1 to the scheme of the operator",
		"cmd/main.go: call SetupWithManager of GuestbookReconciler in the setup of the operator",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q:\n%s", want, notes)
		}
	}
	if now := tree(t, dir)[mainFile]; now != "package main\n\nfunc main() {}\n" {
		t.Errorf("main is changed:\n%s", now)
	}
}
