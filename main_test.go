// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/manager"
)

// asOperator makes the test binary an operator whose one part ignores that it is
// to stop.
const asOperator = "STEER_TEST_AS_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		Main(Operator{
			Name:   "stubborn",
			Config: &rest.Config{Host: "http://127.0.0.1:1"},
			Setup: func(_ context.Context, m *manager.Manager) error {
				return m.Add(manager.RunnableFunc(func(context.Context) error {
					fmt.Fprintln(os.Stderr, "running")
					select {}
				}))
			},
		})
	}
	os.Exit(m.Run())
}

func TestASecondSignalEndsTheProcessAtOnceAndSaysWhatThatMeans(t *testing.T) {
	t.Parallel()
	operator := exec.CommandContext(t.Context(), os.Args[0], "--health-probe-bind-address=0")
	operator.Env = append(os.Environ(), asOperator+"=1")
	stderr, err := operator.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	until := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the process ended without saying %q", what)
	}
	signal := func() {
		t.Helper()
		if err := operator.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	until("running")
	signal()
	until("a second signal ends the process at once")
	signal()
	until("the next leader waits until the lease expires")
	var exit *exec.ExitError
	if err := operator.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit status 1", err)
	}
}
