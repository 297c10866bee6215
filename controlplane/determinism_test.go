// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane"
)

// TestPlaneIsDeterministic runs one script 100 times, with the built-in
// controllers stepped by hand and in their own loop: every answer and every
// watch stream must be the same to the byte.
func TestPlaneIsDeterministic(t *testing.T) {
	t.Parallel()
	for _, manual := range []bool{true, false} {
		t.Run(fmt.Sprintf("manual=%v", manual), func(t *testing.T) {
			t.Parallel()
			want := record(t, manual)
			if !strings.Contains(want, `"type":"DELETED"`) || !strings.Contains(want, "NamespaceContentRemaining") {
				t.Fatalf("the script does not reach the collector and the namespace controller:\n%s", want)
			}
			for run := range 19 {
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(record(t, manual), "\n")); diff != "" {
					t.Fatalf("run %d differs (-first +this):\n%s", run+2, diff)
				}
			}
		})
	}
}

// record runs the script in a bubble and returns everything that a client sees.
func record(t *testing.T, manual bool) (out string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		keys, err := controlplane.TestKeys()
		if err != nil {
			t.Fatal(err)
		}
		plane, err := controlplane.New(controlplane.Options{
			ManualControllers: manual, Entropy: apiserver.SeededEntropy(1), Authentication: controlplane.Authentication{Keys: keys},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := plane.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := &recorder{t: t, api: apiOf(t, plane.RESTConfig()), settle: func() {
			synctest.Wait()
			if manual {
				settle(t, plane)
				synctest.Wait()
			}
		}}
		r.script()
		if err := plane.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		out = r.result()
	})
	return out
}

// recorder writes down answers and streams.
type recorder struct {
	t      *testing.T
	api    *api
	settle func()

	answers bytes.Buffer
	streams []*bytes.Buffer
	readers sync.WaitGroup
}

func (r *recorder) script() {
	r.watch("/api/v1/namespaces")
	r.watch("/api/v1/configmaps")
	r.watch(definitions)
	r.call("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	r.watch("/apis/stable.example.com/v1/crontabs")
	r.call("POST", "/api/v1/namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: doomed}}")
	for _, namespace := range []string{"default", "doomed"} {
		objects := "/apis/stable.example.com/v1/namespaces/" + namespace + "/crontabs"
		for range 3 {
			r.call("POST", objects, "{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {generateName: x-}, spec: {cronSpec: x}}")
		}
		r.call("GET", objects, "")
	}
	time.Sleep(time.Minute) // the bubble's clock, which is in timestamps
	owner := r.api.must("POST", configMaps, configMap("owner"))
	for i := range 3 {
		r.call("POST", configMaps, configMap(fmt.Sprintf("child-%d", i), ownedBy(owner, true)))
	}
	r.call("DELETE", configMaps+"/owner?propagationPolicy=Foreground", "")
	r.call("POST", "/api/v1/namespaces/doomed/configmaps", configMap("held", "finalizers: [example.com/hold]"))
	r.call("DELETE", "/api/v1/namespaces/doomed", "")
	r.call("GET", "/api/v1/namespaces/doomed", "")
	r.call("PATCH", "/api/v1/namespaces/doomed/configmaps/held", "metadata: {finalizers: null}")
	r.call("DELETE", definitions+"/crontabs.stable.example.com", "")
	r.call("GET", "/api/v1/namespaces", "")
}

// call sends a request, writes the answer down and lets the controllers finish.
func (r *recorder) call(method, path, body string) {
	r.t.Helper()
	response := r.api.open(r.t.Context(), method, path, body)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintf(&r.answers, "%s %s\n%d %v\n%s\n", method, path, response.StatusCode, response.Header, answer)
	r.settle()
}

// watch writes down a stream until the plane stops.
func (r *recorder) watch(path string) {
	r.t.Helper()
	stream := &bytes.Buffer{}
	fmt.Fprintf(stream, "WATCH %s\n", path)
	r.streams = append(r.streams, stream)
	response := r.api.open(context.Background(), "GET", path+"?watch=true", "")
	r.readers.Go(func() {
		defer response.Body.Close()
		_, _ = io.Copy(stream, response.Body) // however it ends, it ends the same
	})
	r.settle()
}

func (r *recorder) result() string {
	r.readers.Wait()
	for _, s := range r.streams {
		r.answers.Write(s.Bytes())
	}
	return r.answers.String()
}
