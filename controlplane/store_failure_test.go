// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

// failingJournal fails as it is told.
type failingJournal struct{ err atomic.Pointer[error] }

func (j *failingJournal) Append([]storage.Change) error {
	if err := j.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (j *failingJournal) Close() error { return nil }

// A refused write is answered with the reason, /readyz fails, and reads go on.
func TestReadyzFailsWhileTheStoreCannotWrite(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err   error
		says  string
		heals bool
	}{
		"full":   {fmt.Errorf("%w: %w", storage.ErrFull, syscall.ENOSPC), "no space left for the log; free some and write again", true},
		"failed": {syscall.EIO, "the log has failed; restart to recover what was acknowledged", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &failingJournal{}
			store, err := storage.NewJournaled(journal, func(func(storage.Change, error) bool) {}, storage.MemoryOptions{})
			if err != nil {
				t.Fatal(err)
			}
			plane, err := controlplane.New(controlplane.Options{Store: store})
			if err != nil {
				t.Fatal(err)
			}
			api := apiOf(t, plane.RESTConfig())
			object := func(name string) string {
				return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`
			}
			ready := func(want int) {
				t.Helper()
				for _, path := range []string{"/readyz", "/readyz?verbose"} {
					if code, answer := api.do("GET", path, ""); code != want || want == 500 && !strings.Contains(string(answer), "failed") {
						t.Errorf("%s: %d, want %d: %s", path, code, want, answer)
					}
				}
			}
			api.must("POST", configMaps, object("before"))
			ready(200)
			journal.err.Store(&tt.err)
			code, answer := api.do("POST", configMaps, object("refused"))
			if code != 500 || !strings.Contains(string(answer), tt.says) {
				t.Errorf("a write: %d: %s", code, answer)
			}
			ready(500)
			api.must("GET", configMaps+"/before", "")
			if code, answer := api.do("GET", configMaps+"/refused", ""); code != 404 {
				t.Errorf("what was refused: %d: %s", code, answer)
			}
			journal.err.Store(nil)
			if code, answer := api.do("POST", configMaps, object("after")); (code == 201) != tt.heals {
				t.Errorf("a write when the journal works again: %d: %s", code, answer)
			}
			if tt.heals {
				ready(200)
			} else {
				ready(500)
			}
		})
	}
}
