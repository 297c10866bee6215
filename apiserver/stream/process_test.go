// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
)

// process runs this test's own program, whose flags the client says.
func process(ctx context.Context, _ *resource.Request, o stream.Options, s *stream.Session) error {
	return s.Run(exec.CommandContext(ctx, os.Args[0], o.Command...)) // the test says them
}

// TestSessionEndsWithItsProcess leaves the input open, as the terminal of kubectl does.
func TestSessionEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	_, host, path := serve(t, stream.Command{Run: process}.Subresource("exec"))
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			for query, want := range map[string]string{
				"stdin=true&command=-test.run%3D%5E%24":  metav1.StatusSuccess,
				"stdin=true&command=-no-such-flag":       "exit code: 2",
				"stdin=false&command=-test.run%3D%5E%24": metav1.StatusSuccess,
			} {
				c := start(t, protocol, host, path+"exec?stdout=true&"+query)
				go func() { _, _ = io.Copy(io.Discard, c.stdout) }()
				var status metav1.Status
				if err := json.NewDecoder(c.status).Decode(&status); err != nil {
					t.Fatal(err)
				}
				if got := status.Status + " " + status.Message; !strings.Contains(got, want) {
					t.Errorf("%s: %s, want %s", query, got, want)
				}
				c.close()
			}
		})
	}
}

// child is a command that leaves a process of its own behind, which holds the output open.
type child struct {
	host, path string
	release    func()       // ends the process that is left behind
	exited     func()       // waits until the command's own process, which was started, has exited
	ended      <-chan error // what Run has returned
}

// newChild serves a command whose descriptor 3 is open until release is called. It has 4
// open until its own process exits.
func newChild(t *testing.T, script string) child {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh:", err)
	}
	held, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	left, leaves, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { _ = hold.Close() })
	ended := make(chan error, 1)
	_, host, path := serve(t, stream.Command{Run: func(ctx context.Context, _ *resource.Request, _ stream.Options, s *stream.Session) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", script)
		cmd.ExtraFiles, cmd.WaitDelay = []*os.File{held, leaves}, time.Millisecond
		err := s.Run(cmd)
		ended <- err
		return err
	}}.Subresource("exec"))
	exited := func() {
		_ = leaves.Close()
		_, _ = io.ReadAll(left)
	}
	t.Cleanup(func() {
		release()
		_, _, _ = held.Close(), left.Close(), leaves.Close()
	})
	return child{host, path + "exec?stdout=true&command=x", release, exited, ended}
}

func TestSessionEndsWithItsClientThoughAChildHoldsTheOutput(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols() {
		for name, script := range map[string]string{
			"while the process runs":      "echo started; cat <&3 | cat",
			"after the process has ended": "(exec 4>&-; cat <&3) & echo started",
		} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				t.Parallel()
				child := newChild(t, script)
				c := start(t, protocol, child.host, child.path)
				if _, err := io.ReadFull(c.stdout, make([]byte, len("started\n"))); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(name, "after") {
					child.exited()
				}
				c.close()
				select {
				case <-child.ended:
				case <-time.After(limit):
					t.Fatal("the command still runs")
				}
			})
		}
	}
}

func TestSessionSendsWhatAChildWritesAfterItsProcess(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			child := newChild(t, "(exec 4>&-; cat <&3; echo late) & echo started")
			c := start(t, protocol, child.host, child.path)
			defer c.close()
			if _, err := io.ReadFull(c.stdout, make([]byte, len("started\n"))); err != nil {
				t.Fatal(err)
			}
			child.exited()
			child.release()
			said := make([]byte, len("late\n"))
			if _, err := io.ReadFull(c.stdout, said); err != nil || string(said) != "late\n" {
				t.Errorf("%q: %v", said, err)
			}
			if err := <-child.ended; err != nil {
				t.Error(err)
			}
		})
	}
}
