// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/wiretest"
)

const conversation = `What a server says, made comparable.
-- create --
POST /things?x=1
@capture rv = metadata.resourceVersion

kind: Thing
metadata: {generateName: a-}
-- again --
PUT /things/${rv}

kind: Thing
-- list --
GET /things
@keep metadata items.metadata.name
@where items kind=Thing
-- watch --
GET /things?watch=1
@events 2
`

// fakeServer answers like a server with a clock, random names and history.
func fakeServer(seed int) http.Handler {
	uid := fmt.Sprintf("11111111-2222-3333-4444-%012d", seed)
	thing := func(rv int) string {
		return fmt.Sprintf(`{"kind":"Thing","metadata":{"name":"a-bcd%02d","generateName":"a-","uid":%q,"creationTimestamp":%q,"resourceVersion":"%d"}}`,
			seed, uid, time.Now().UTC().Format(time.RFC3339), rv)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, thing(seed))
		case r.Method == http.MethodPut && r.URL.Path == fmt.Sprintf("/things/%d", seed):
			fmt.Fprint(w, thing(seed+7))
		case r.URL.Query().Has("watch"):
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n"+`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}`, thing(seed+7), seed+9)
		default:
			fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":[%s,{"kind":"Other","metadata":{"name":"b"}}]}`, seed+8, thing(seed+7))
		}
	})
}

func replay(t *testing.T, handler http.Handler) string {
	t.Helper()
	return replayScript(t, conversation, handler)
}

func replayScript(t *testing.T, text string, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	script, err := wiretest.Parse("things", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	target := wiretest.Target{Client: server.Client(), Base: server.URL}
	answers, err := target.Run(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	for _, answer := range answers {
		answer.Step.Answer = answer.Text
	}
	return string(script.Format())
}

func TestAnswersOfTwoServersThatBehaveAlikeAreEqual(t *testing.T) {
	t.Parallel()
	first, second := replay(t, fakeServer(11)), replay(t, fakeServer(57))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"name: a-<generated 1>", "uid: <uid a-<generated 1>>", "resourceVersion: <rv 2>", "creationTimestamp: <time>", "type: BOOKMARK"} {
		if !strings.Contains(first, want) {
			t.Errorf("the answers lack %q:\n%s", want, first)
		}
	}
	if strings.Contains(first, "Other") || strings.Contains(first, "name: b") {
		t.Errorf("@where and @keep left too much:\n%s", first)
	}
}

func TestAListOlderThanItsItemsIsMarked(t *testing.T) {
	t.Parallel()
	got := replay(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"metadata":{"resourceVersion":"4"},"items":[{"kind":"Thing","metadata":{"name":"x","resourceVersion":"5"}}]}`)
	}))
	if !strings.Contains(got, "older than an item") {
		t.Error(got)
	}
}

// TestFieldsThatAreKeptAreNormalisedByThoseThatAreNot: a version by the uid beside it, and a list
// by its items; elements are picked by fields that vary.
func TestFieldsThatAreKeptAreNormalisedByThoseThatAreNot(t *testing.T) {
	t.Parallel()
	const (
		uid  = "11111111-2222-3333-4444-555555555555"
		item = `{"kind":"Thing","metadata":{"name":"x","uid":"` + uid + `","creationTimestamp":"2020-01-01T00:00:00Z","resourceVersion":"5"},"at":"127.0.0.1:80"}`
	)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/x" {
			fmt.Fprint(w, item)
			return
		}
		fmt.Fprint(w, `{"metadata":{"resourceVersion":"4"},"items":[`+item+`,{"at":"127.0.0.1:81","port":"127.0.0.1:82"},{"at":"other"}]}`)
	})
	for request, want := range map[string]string{
		"GET /x\n@keep metadata.resourceVersion\n":                                  "metadata:\n  resourceVersion: <rv 1>\n",
		"GET /xs\n@keep metadata\n":                                                 "metadata:\n  resourceVersion: <rv> (older than an item)\n",
		"GET /xs\n@keep items[at=<host>].port\n":                                    "items:\n- {}\n- port: <host>\n",
		"GET /xs\n@where items at=<host>\n@keep items.metadata.uid items.at.none\n": "items:\n- at: <host>\n  metadata:\n    uid: <uid x>\n- at: <host>\n",
		"GET /xs\n@setup\n@keep items\n":                                            "(done)\n",
	} {
		if got := replayScript(t, "-- a --\n"+request+"\n", answer); !strings.HasSuffix(got, want) {
			t.Errorf("%q is answered with\n%s\nwant\n%s", request, got, want)
		}
	}
}

// openWatch answers in memory: with an event, and then nothing until the request ends.
type openWatch struct{}

func (openWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	body, stream := io.Pipe()
	go func() {
		_, _ = io.WriteString(stream, `{"type":"ADDED"}`)
		<-r.Context().Done()
		stream.CloseWithError(r.Context().Err())
	}()
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

func TestAWatchThatStaysOpenIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		script, err := wiretest.Parse("s", []byte("-- w --\nGET /x?watch=true\n"))
		if err != nil {
			t.Fatal(err)
		}
		target := wiretest.Target{Client: &http.Client{Transport: openWatch{}}, Base: "http://steer", StreamWait: time.Minute}
		began := time.Now()
		answers, err := target.Run(t.Context(), script)
		if err != nil {
			t.Fatal(err)
		}
		if want := "type: ADDED\n---\n(still open)\n"; !strings.HasSuffix(answers[0].Text, want) {
			t.Errorf("got %q, want suffix %q", answers[0].Text, want)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it was given up after %v, want %v", took, time.Minute)
		}
	})
}

func TestTheLedgerOnlyShrinks(t *testing.T) {
	t.Parallel()
	script := &wiretest.Script{Name: "s"}
	ledger := &wiretest.Ledger{
		Intended: map[string]string{"s/own": "because"},
		Pending:  map[string]string{"s/late": "soon"},
	}
	for _, test := range []struct {
		name, got string
		want      wiretest.Verdict
	}{
		{"plain", "real", wiretest.Same},
		{"plain", "other", wiretest.Differs},
		{"late", "other", wiretest.Pending},
		{"late", "real", wiretest.Mended},
		{"own", "ours", wiretest.Intended},
		{"own", "other", wiretest.Differs},
		{"own", "real", wiretest.Mended},
	} {
		step := &wiretest.Step{Name: test.name, Answer: "real", Own: "ours"}
		if got, _ := ledger.Judge(script, wiretest.Answer{Step: step, Text: test.got}); got != test.want {
			t.Errorf("%s answered %q: verdict %d, want %d", test.name, test.got, got, test.want)
		}
	}
	if got := ledger.Unknown([]*wiretest.Script{script}); len(got) != 2 {
		t.Errorf("unknown entries: %v, want both", got)
	}
}
