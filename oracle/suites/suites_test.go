// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestVerdictsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	oracle, suite := t.TempDir(), Suite{Name: "x"}
	if err := os.MkdirAll(filepath.Join(oracle, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	want := Recorded{"TestA": {Pass, ""}, "TestB": {Fail, "a cause"}, "TestC": {NotApplicable, "an alpha gate"}}
	if err := suite.Write(oracle, want); err != nil {
		t.Fatal(err)
	}
	got, err := suite.Read(oracle)
	if err != nil || len(got) != len(want) {
		t.Fatalf("read %v (%v), want %v", got, err, want)
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: read %v, want %v", name, got[name], want[name])
		}
	}
	for _, line := range []string{"pass", "fail TestB", "pass TestA but slowly", "good TestA"} {
		if err := os.WriteFile(suite.file(oracle), []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := suite.Read(oracle); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("the line %q: %v", line, err)
		}
	}
}

func TestComparisonNamesWhatChangedAndMergeKeepsReasons(t *testing.T) {
	t.Parallel()
	was := Recorded{"TestA": {Pass, ""}, "TestB": {Fail, "a cause"}, "TestC": {Fail, "another"}, "TestOther": {Pass, ""}, "TestRace": {Either, "a race"}}
	did := Recorded{"TestA": {Fail, "not explained yet"}, "TestB": {Fail, "not explained yet"}, "TestC": {Pass, ""}, "TestNew": {Pass, ""}, "TestRace": {Pass, ""}}
	want := []string{"TestA: fail, it was: pass", "TestC: pass, it was: fail", "TestNew is not recorded (pass)"}
	if got := was.Compare(did); !slices.Equal(got, want) {
		t.Errorf("differences %q, want %q", got, want)
	}
	merged := was.Merge(did)
	for name, line := range map[string]Line{"TestA": did["TestA"], "TestB": was["TestB"], "TestC": {Pass, ""}, "TestOther": {Pass, ""}, "TestNew": {Pass, ""}, "TestRace": was["TestRace"]} {
		if merged[name] != line {
			t.Errorf("%s: merged to %v, want %v", name, merged[name], line)
		}
	}
}

// TestEveryFileOfOursReplacesOne builds the overlay of a module that lacks a file.
func TestEveryFileOfOursReplacesOne(t *testing.T) {
	t.Parallel()
	oracle, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	b := Builder{Oracle: oracle, Work: t.TempDir()}
	suite := All()[0]
	if _, err := b.overlay(suite, t.TempDir()); err == nil || !strings.Contains(err.Error(), "replaces nothing") {
		t.Errorf("an overlay of a module without the files: %v", err)
	}
	source := t.TempDir()
	file := filepath.Join(source, "pkg/cmd/server/testing/testserver.go")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	name, err := b.overlay(suite, source)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), file) {
		t.Errorf("the overlay is %s (%v), want a file in the place of %s", text, err, file)
	}
}

// TestRecordsNameTheirSuites: a file without a suite is a leftover, and no failure is without a cause.
func TestRecordsNameTheirSuites(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../" + folder + "/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no verdicts: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		i := slices.IndexFunc(All(), func(s Suite) bool { return s.Name == name })
		if i < 0 {
			t.Errorf("%s belongs to no suite", file)
			continue
		}
		recorded, err := All()[i].Read("..")
		if err != nil {
			t.Error(err)
		}
		for test, line := range recorded {
			if strings.HasPrefix(line.Reason, "not explained yet") {
				t.Errorf("%s: %s %s: give the cause", file, line.Verdict, test)
			}
		}
	}
}

func TestScriptsCanBeRunUnlessTheySayThatTheyCannot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for file, want := range map[string]os.FileMode{"a.sh": 0o755, "a-not-executable.sh": 0o644, "a.txt": 0o644} {
		name := filepath.Join(dir, file)
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := executable(dir); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has the mode %v (%v), want %v", file, info.Mode(), err, want)
		}
	}
}
