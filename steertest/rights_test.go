// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/steertest/internal/host"
	"github.com/steer-dev/steer/steertest/internal/permissions"
)

func TestEnvNotesTheRightsThatItsOperatorUses(t *testing.T) {
	t.Parallel()
	var r permissions.Rights
	sent := &host.Noted{RoundTripper: answering(http.StatusCreated), To: &host.Requests{}, Rights: &r}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/api/v1/namespaces/default/pods", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sent.RoundTrip(request); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := r.Write(dir, "TestName"); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.rights"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if want := `groups="",resources=pods,verbs=create`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

// answering answers every request with a status.
type answering int

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}
