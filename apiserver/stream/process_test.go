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
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
)

// process runs this test's own program, whose flags the client says.
func process(ctx context.Context, _ *resource.Request, o stream.Options, s *stream.Session) error {
	return s.Run(exec.CommandContext(ctx, os.Args[0], o.Command...)) //nolint:gosec // the test says them
}

// TestSessionEndsWithItsProcess leaves the input open, as the terminal of kubectl does.
func TestSessionEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	_, host, path := serve(t, map[string]any{"exec": stream.Command{Run: process}})
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
