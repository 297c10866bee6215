// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/steer-dev/steer/sim"
	"github.com/steer-dev/steer/sim/internal/bugs"
)

// subject is the environment variable that lets TestSubject run, which fails.
const subject = "STEER_SIM_TEST_SUBJECT"

func operatedBy(mended bool) func(t *testing.T) {
	return bugs.Operated(func() bugs.Do { return bugs.Pair(mended) })
}

func TestAnOperatorThatSurvivesPasses(t *testing.T) {
	t.Parallel()
	sim.Test(t, operatedBy(true))
}

// TestSubject is run by TestAFailureIsASubtestThatIsRepeatedByItsName, in another process.
func TestSubject(t *testing.T) {
	switch os.Getenv(subject) {
	case "":
		t.Skip("it fails on purpose: TestAFailureIsASubtestThatIsRepeatedByItsName runs it")
	case "with the bug":
		sim.Test(t, operatedBy(false))
	case "accepted":
		sim.Test(t, operatedBy(false), sim.Accept("Secret default/db-ssl is missing", "it is not used"), sim.Accept("nothing", "of the kind"))
	case "mended":
		sim.Test(t, operatedBy(true))
	case "kills":
		sim.Test(t, func(t *testing.T) { bugs.Operated(killsAfterItsRestart())(t) })
	}
}

// killsAfterItsRestart kills the process of the test when the operator is started again, which
// the process of the run outlives.
func killsAfterItsRestart() func() bugs.Do {
	starts := 0
	return func() bugs.Do {
		if starts++; starts > 1 {
			if p, err := os.FindProcess(os.Getppid()); err == nil {
				_ = p.Kill()
			}
			var over sync.Mutex
			over.Lock()
			over.Lock() // until this process ends, since that one has gone: no bubble sees it
		}
		return bugs.Pair(true)
	}
}

// goTest runs TestSubject in a folder, and returns what it says.
func goTest(t *testing.T, folder, what string, args ...string) (output string, passed bool) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"-test.v", "-test.short"}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), subject+"="+what, "XDG_CACHE_HOME="+filepath.Join(folder, "cache"), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestAFailureIsASubtestThatIsRepeatedByItsName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "testdata", "sim", "TestSubject", "crash_after_create_Secret_db.plan")
	contains := func(output string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(output, w) {
				t.Errorf("nothing says %q:\n%s", w, output)
			}
		}
	}
	all := "-test.run=^TestSubject$"
	output, passed := goTest(t, folder, "with the bug", all)
	contains(output, "--- FAIL: TestSubject/crash_after_create_Secret_db", "Secret default/db-ssl is missing", "testdata/sim/TestSubject/crash_after_create_Secret_db.plan")
	if _, err := os.Stat(file); passed || err != nil {
		t.Errorf("passed: %t, the file of the plan: %v", passed, err)
	}

	// By its name it is run alone, whether it fails or not.
	again := "-test.run=^TestSubject$/^crash_after_create_Secret_db$"
	if output, passed = goTest(t, folder, "with the bug", again); passed {
		t.Error("it passes when it is repeated")
	}
	contains(output, "--- FAIL: TestSubject/crash_after_create_Secret_db")
	if output, passed = goTest(t, folder, "mended", again); !passed {
		t.Errorf("mended, it fails:\n%s", output)
	}
	contains(output, "--- PASS: TestSubject/crash_after_create_Secret_db")

	output, passed = goTest(t, folder, "mended", "-test.run=^TestSubject$/^crash_after_nothing$")
	if passed {
		t.Error("a name that no plan has passes")
	}
	contains(output, "no plan has the name that -run asks for")

	// What is accepted is no failure, but an exception for nothing is.
	output, passed = goTest(t, folder, "accepted", all)
	if passed {
		t.Error("an exception that accepts nothing passes")
	}
	contains(output, "accepted: Secret default/db-ssl is missing: it is not used", `Accept("nothing") accepts nothing`)

	// The plan of a write that is no longer there is removed when that is asked for.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(filepath.Dir(file), "crash_after_create_Secret_other.plan")
	if err := os.WriteFile(other, []byte(strings.ReplaceAll(string(text), "name=db", "name=other")), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := "-test.run=^TestSubject$/^crash_after_create_Secret_other$"
	output, _ = goTest(t, folder, "mended", gone)
	contains(output, "crash_after_create_Secret_other.plan is about a write that the operator does not make")
	goTest(t, folder, "mended", gone, "-sim.update")
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Errorf("the plan is still there: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the other plan: %v", err)
	}
}

// TestThePlanOfATestThatIsKilledRunsFirst kills the test in the middle of a plan.
func TestThePlanOfATestThatIsKilledRunsFirst(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the cache folder of the user is not that of XDG_CACHE_HOME")
	}
	folder := t.TempDir()
	if output, passed := goTest(t, folder, "kills", "-test.run=^TestSubject$/^crash_after_create_Secret_db$"); passed {
		t.Errorf("it passes:\n%s", output)
	}
	output, passed := goTest(t, folder, "mended", "-test.run=^TestSubject$/^crash_")
	if want := "crash_after_create_Secret_db went on when the test was killed the last time"; !passed || !strings.Contains(output, want) {
		t.Errorf("passed: %t, nothing says %q:\n%s", passed, want, output)
	}
	left, err := filepath.Glob(filepath.Join(folder, "cache", "steer", "sim", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}
