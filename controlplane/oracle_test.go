// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/shared"
	"github.com/steer-dev/steer/storage/storagetest/teststore"
)

const oracleData = "../oracle/testdata"

var (
	oracleMended = flag.Bool("oracle.mended", false, "take answers that are right by now off the list of pending ones")
	oracleOwn    = flag.Bool("oracle.own", false, "write the answers that differ on purpose into the conversations")
)

// TestOracle replays conversations that were recorded with kube-apiserver. See
// oracle/README.md.
func TestOracle(t *testing.T) {
	t.Parallel()
	scripts, err := wiretest.Load(oracleData)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := wiretest.LoadLedger(oracleData)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range ledger.Unknown(scripts) {
		t.Errorf("%s or %s lists %s, which no conversation has", wiretest.DifferencesFile, wiretest.PendingFile, key)
	}
	tally := &tally{counts: map[wiretest.Verdict]int{}, pending: ledger.Pending}
	t.Cleanup(func() { tally.finish(t) })
	for _, script := range scripts {
		t.Run(script.Name, func(t *testing.T) {
			t.Parallel()
			answers, err := steerTarget(t, script).Run(t.Context(), script)
			if err != nil {
				t.Fatal(err)
			}
			for _, answer := range answers {
				if teststore.Several() {
					answer.Text = withoutLeadership(answer.Text)
				}
				verdict, want := ledger.Judge(script, answer)
				tally.add(verdict, script.Name+"/"+answer.Step.Name)
				report(t, verdict, script.Name+"/"+answer.Step.Name, want, answer)
			}
			writeOwn(t, script, ledger)
		})
	}
}

// withoutLeadership takes out the health check that only one of several servers has.
func withoutLeadership(answer string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(answer, "\n"), func(line string) bool {
		return slices.Contains([]string{"- /readyz/leadership", "[+]leadership ok"}, strings.TrimSpace(line))
	})
	return strings.Join(lines, "")
}

func report(t *testing.T, verdict wiretest.Verdict, key, want string, answer wiretest.Answer) {
	t.Helper()
	switch {
	case *oracleMended && verdict == wiretest.Mended, *oracleOwn:
	case verdict == wiretest.Mended:
		t.Errorf("%s is answered as by kube-apiserver: take it off %s or %s", key, wiretest.PendingFile, wiretest.DifferencesFile)
	case verdict == wiretest.Differs:
		t.Errorf("%s (-real +steer):\n%s", key, cmp.Diff(want, answer.Text))
	case verdict == wiretest.Pending && testing.Verbose():
		t.Logf("pending: %s (-real +steer):\n%s", key, cmp.Diff(want, answer.Text))
	}
}

// steerTarget serves a plane of its own. kube-apiserver was recorded without
// kube-controller-manager, so its controllers are left out here as well.
func steerTarget(t *testing.T, script *wiretest.Script) *wiretest.Target {
	t.Helper()
	disable := slices.DeleteFunc(controlplane.Controllers(), func(name string) bool { return slices.Contains(script.Controllers, name) })
	if !slices.Contains(script.Admission, "ServiceAccount") {
		disable = append(disable, "ServiceAccount")
	}
	keys, err := controlplane.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	if len(script.Admission) > 0 { // kube-apiserver has such a key, which takes long to make
		if keys.Accounts.Signer, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
	}
	options := controlplane.Options{
		Disable: disable,
		Authentication: controlplane.Authentication{
			Keys: keys,
			Tokens: auth.Tokens{
				"admin":      {Name: "admin", UID: "admin", Groups: []string{"system:masters"}},
				"user-token": {Name: "user", UID: "user"},
			},
			Issuers:   []string{"https://127.0.0.1/"},
			KeySetURL: "https://127.0.0.1/openid/v1/jwks",
		},
	}
	var store storage.Store
	if teststore.Several() {
		db := shared.New(1)
		leads, follows := db.OpenServer(storage.MemoryOptions{}), db.OpenServer(storage.MemoryOptions{})
		t.Cleanup(func() { _, _ = leads.Close(), follows.Close() }) // closing such a store does not fail
		leader := options
		leader.Store, leader.Listen, store = leads, "127.0.0.1:0", follows
		startPlane(t, leader)
	} else {
		store = teststore.New(t)
	}
	options.Store = store
	plane := startPlane(t, options)
	server := httptest.NewUnstartedServer(plane.Handler())
	if len(script.Backends) > 0 { // which are told how clients are connected
		server.EnableHTTP2 = true
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return &wiretest.Target{
		Client: server.Client(), Base: server.URL, Token: "admin",
		Compact: func(ctx context.Context) error {
			view := store.Latest()
			return store.Compact(ctx, view.Revision())
		},
		Patience: time.Minute, StreamWait: time.Minute,
	}
}

// startPlane returns a plane that serves until the test ends.
func startPlane(t *testing.T, o controlplane.Options) *controlplane.Plane {
	t.Helper()
	plane, err := controlplane.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return plane
}

// tally counts verdicts and, when asked to, shortens the list of pending answers.
type tally struct {
	mu      sync.Mutex
	counts  map[wiretest.Verdict]int
	pending map[string]string
	mended  []string
}

func (c *tally) add(verdict wiretest.Verdict, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[verdict]++
	if _, listed := c.pending[key]; listed && verdict == wiretest.Mended {
		c.mended = append(c.mended, key)
	}
}

func (c *tally) finish(t *testing.T) {
	t.Logf("%d answers like kube-apiserver's, %d different on purpose, %d pending, %d wrong",
		c.counts[wiretest.Same]+c.counts[wiretest.Mended], c.counts[wiretest.Intended], c.counts[wiretest.Pending], c.counts[wiretest.Differs])
	if !*oracleMended || len(c.mended) == 0 {
		return
	}
	file := filepath.Join(oracleData, wiretest.PendingFile)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(data)) {
		if key, _, _ := strings.Cut(strings.TrimSpace(line), " "); !slices.Contains(c.mended, key) {
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(file, []byte(kept.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// writeOwn rewrites the sections of answers that differ on purpose.
func writeOwn(t *testing.T, script *wiretest.Script, ledger *wiretest.Ledger) {
	t.Helper()
	if !*oracleOwn {
		return
	}
	before := script.Format()
	answers, err := steerTarget(t, script).Run(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range answers {
		answer.Step.Own = ""
		if ledger.Intended[script.Name+"/"+answer.Step.Name] != "" {
			answer.Step.Own = answer.Text
		}
	}
	if after := script.Format(); !bytes.Equal(before, after) {
		if err := os.WriteFile(filepath.Join(oracleData, script.Name+".txtar"), after, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
