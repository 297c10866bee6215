// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/storage"
)

// TestWatchesGatherEventsWhileThereAreMany: a watch is sent an event at once while few
// are sent, or when it comes alone; under load events are batched, with a bounded delay
// and in order.
func TestWatchesGatherEventsWhileThereAreMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const watches, writes = 40, 400
		s := newServer(t, func(o *apiserver.Options) { o.Store = storage.NewMemory(storage.MemoryOptions{}) }) // revisions have no gaps
		fill(t, s, 1)
		rt := s.RoundTripper(admin)
		type seen struct {
			revision string
			at       time.Time
		}
		got := make([][]seen, watches)
		for i := range watches {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://steer.invalid"+widgetsPath+"?watch=true&resourceVersion=1", nil)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stream.Body.Close() }()
			go func() {
				lines := bufio.NewScanner(stream.Body)
				for lines.Scan() {
					var event struct {
						Object struct {
							Metadata struct{ ResourceVersion string }
						}
					}
					if json.Unmarshal(lines.Bytes(), &event) == nil {
						got[i] = append(got[i], seen{event.Object.Metadata.ResourceVersion, time.Now()})
					}
				}
			}()
		}
		synctest.Wait()
		written := make([]time.Time, writes)
		alone := func(i int) bool { return i < 20 || i == writes-1 }
		for i := range writes {
			if alone(i) {
				time.Sleep(time.Second)
			} else {
				time.Sleep(3 * time.Millisecond)
			}
			written[i] = time.Now()
			raw(t, rt, http.MethodPatch, widgetsPath+"/w-00000", fmt.Appendf(nil, `{"spec":{"n":%d}}`, i), "Content-Type", "application/merge-patch+json")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		together := 0
		for i, events := range got {
			if len(events) != writes {
				t.Fatalf("watch %d got %d events, want %d", i, len(events), writes)
			}
			for j, e := range events {
				late := e.at.Sub(written[j])
				if want := fmt.Sprint(j + 2); e.revision != want || late > 30*time.Millisecond || alone(j) && late != 0 {
					t.Errorf("watch %d: event %d is revision %s after %v, want %s soon", i, j, e.revision, late, want)
				}
				if j > 0 && e.at.Equal(events[j-1].at) {
					together++
				}
			}
		}
		if together < watches*writes/2 {
			t.Errorf("only %d of %d events came with the one before", together, watches*writes)
		}
	})
}

// TestWatchesThatWakeTogetherAreSentWhatOneAloneIs: watches in all representations that wake together
// are each sent the same as a watch on its own.
func TestWatchesThatWakeTogetherAreSentWhatOneAloneIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const writes, watches = 150, 4
		s := newServer(t)
		fill(t, s, 1)
		rt := s.RoundTripper(admin)
		watch := func(path, accept string, to io.Writer) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://steer.invalid"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Accept", accept)
			stream, err := rt.RoundTrip(r)
			if err != nil || stream.StatusCode != http.StatusOK {
				t.Fatal(stream, err)
			}
			t.Cleanup(func() { _ = stream.Body.Close() })
			go func() { _, _ = io.Copy(to, stream.Body) }()
		}
		all := widgetsPath + "?watch=true&resourceVersion=1"
		forms := []struct{ path, accept string }{
			{all, "application/json"},
			{strings.Replace(all, "/v1/", "/v2/", 1), "application/json"},
			{all, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
			{all, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
			{all + "&fieldSelector=spec.colour%3Dblue", "application/json"},
		}
		got := make([][watches + 1]bytes.Buffer, len(forms))
		for range 40 {
			watch(all, "application/json", io.Discard)
		}
		for i, f := range forms {
			for j := range watches {
				watch(f.path, f.accept, &got[i][j])
			}
		}
		synctest.Wait()
		for i := range writes {
			time.Sleep(3 * time.Millisecond)
			colour, note := "blue", ""
			if i%4 == 0 {
				colour = "red" // it leaves the selection
			}
			if i%20 > 12 {
				note = strings.Repeat("x", 12<<10) // more than one chunk holds
			}
			raw(t, rt, http.MethodPatch, widgetsPath+"/w-00000", fmt.Appendf(nil, `{"spec":{"n":%d,"colour":%q,"note":%q}}`, i, colour, note), "Content-Type", "application/merge-patch+json")
		}
		time.Sleep(time.Second)
		for i, f := range forms {
			watch(f.path, f.accept, &got[i][watches])
		}
		synctest.Wait()
		for i, f := range forms {
			alone := got[i][watches].Bytes()
			for j := range watches {
				if crowd := got[i][j].Bytes(); len(crowd) == 0 || !bytes.Equal(crowd, alone) {
					t.Errorf("%s as %s: watch %d was sent %d bytes, one alone %d, or others", f.path, f.accept, j, len(crowd), len(alone))
				}
			}
		}
	})
}
