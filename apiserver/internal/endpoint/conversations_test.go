// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/internal/testserver"
	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/storage/storagetest/teststore"
)

var update = flag.Bool("update", false, "write the answers into testdata")

// TestHandlerAnswers replays the conversations in testdata, each with a server of its own.
// They show what the verbs do with objects of plain kinds, stored and computed; that kube-apiserver does
// the same with real ones is in the conversations of the oracle.
func TestHandlerAnswers(t *testing.T) {
	t.Parallel()
	scripts, err := wiretest.Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			store := teststore.New(t)
			server := testserver.New(t, func(o *apiserver.Options) {
				o.Store = store
				o.Limits.BodyBytes = 4 << 10
				o.Limits.PatchOperations = 3
			})
			if err := server.Install(notes(), cards()); err != nil {
				t.Fatal(err)
			}
			target := &wiretest.Target{
				Client: &http.Client{Transport: server.RoundTripper(testserver.Admin())}, Base: "https://steer.invalid",
				Compact: func(ctx context.Context) error {
					view := store.Latest()
					return store.Compact(ctx, view.Revision())
				},
			}
			answers, err := target.Run(t.Context(), script)
			if err != nil {
				t.Fatal(err)
			}
			for _, answer := range answers {
				if *update {
					answer.Step.Answer = answer.Text
				}
				if diff := cmp.Diff(answer.Step.Answer, answer.Text); diff != "" {
					t.Errorf("%s (-want +got):\n%s", answer.Step.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", script.Name+".txtar"), script.Format(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
