// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/steer-dev/steer/bench/runtime/item"
)

// canned is a server in the process that costs next to nothing: its answers were
// encoded beforehand. It serves one collection, in pages and as WatchList, and
// one watch.
type canned struct {
	form   form
	size   int
	pages  [][]byte
	stream []byte      // what a WatchList begins with
	live   chan []byte // the frames of the watch that follows
}

const pageSize = 500

func newCanned(f form, objects int, small bool) (*canned, error) {
	c := &canned{form: f, size: objects, live: make(chan []byte, 1<<16)}
	for from := 0; from < objects; from += pageSize {
		page, err := c.page(from, min(from+pageSize, objects), small)
		if err != nil {
			return nil, err
		}
		c.pages = append(c.pages, page)
	}
	for i := range objects {
		frame, err := c.frame("ADDED", f.object(i, i+1, small))
		if err != nil {
			return nil, err
		}
		c.stream = append(c.stream, frame...)
	}
	end := f.object(0, revision, true)
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	frame, err := c.frame("BOOKMARK", end)
	c.stream = append(c.stream, frame...)
	return c, err
}

// revision of the list; changes come after it.
const revision = 1_000_000

func (c *canned) page(from, to int, small bool) ([]byte, error) {
	meta := metav1.ListMeta{ResourceVersion: fmt.Sprint(revision)}
	if to < c.size {
		meta.Continue = fmt.Sprint(to)
	}
	switch c.form {
	case builtin:
		list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: meta}
		for i := from; i < to; i++ {
			list.Items = append(list.Items, *c.form.object(i, i+1, small).(*corev1.Pod))
		}
		return c.encode(list)
	case metadata:
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: meta}
		for i := from; i < to; i++ {
			list.Items = append(list.Items, *c.form.object(i, i+1, small).(*metav1.PartialObjectMetadata))
		}
		return c.encode(list)
	default:
		list := &item.ItemList{TypeMeta: metav1.TypeMeta{APIVersion: "bench.example.com/v1", Kind: "ItemList"}, ListMeta: meta}
		for i := from; i < to; i++ {
			list.Items = append(list.Items, *c.form.object(i, i+1, small).(*item.Item))
		}
		return c.encode(list)
	}
}

func (c *canned) encode(obj runtime.Object) ([]byte, error) {
	if !c.form.protobuf() {
		return json.Marshal(obj)
	}
	var out bytes.Buffer
	scheme := runtime.NewScheme()
	err := protobuf.NewSerializer(scheme, scheme).Encode(obj, &out)
	return out.Bytes(), err
}

// frame is one watch event as it travels.
func (c *canned) frame(kind string, obj runtime.Object) ([]byte, error) {
	data, err := c.encode(obj)
	if err != nil {
		return nil, err
	}
	if !c.form.protobuf() {
		return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, data), nil
	}
	event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: data}}
	body, err := event.Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), err
}

// RoundTrip implements http.RoundTripper.
func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := "application/json"
	answer := func(body io.Reader) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Body: io.NopCloser(body), Request: r}, nil
	}
	query := r.URL.Query()
	switch path := r.URL.Path; {
	case path == "/api":
		return answer(strings.NewReader(`{"kind":"APIVersions","versions":["v1"]}`))
	case path == "/apis":
		return answer(strings.NewReader(`{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"bench.example.com","versions":[{"groupVersion":"bench.example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"bench.example.com/v1","version":"v1"}}]}`))
	case path == "/api/v1":
		return answer(strings.NewReader(`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","watch"]}]}`))
	case path == "/apis/bench.example.com/v1":
		return answer(strings.NewReader(`{"kind":"APIResourceList","groupVersion":"bench.example.com/v1","resources":[{"name":"items","kind":"Item","namespaced":true,"verbs":["list","watch"]}]}`))
	case path == "/version":
		return answer(strings.NewReader(`{"major":"1","minor":"36"}`))
	case !strings.HasSuffix(path, "/pods") && !strings.HasSuffix(path, "/items"):
		return nil, fmt.Errorf("nothing is canned for %s", r.URL)
	}
	if c.form.protobuf() {
		if kind = "application/vnd.kubernetes.protobuf"; !strings.Contains(r.Header.Get("Accept"), kind) {
			return nil, fmt.Errorf("asked for as %s", r.Header.Get("Accept"))
		}
	}
	if query.Get("watch") == "" {
		from, _ := strconv.Atoi(query.Get("continue")) // none is the first page
		if query.Get("limit") == "" {
			return nil, fmt.Errorf("a list without a limit: controller-runtime lists only where WatchList is refused")
		}
		return answer(bytes.NewReader(c.pages[from/pageSize]))
	}
	live := &frames{ctx: r.Context(), from: c.live}
	if c.form.protobuf() {
		kind += ";stream=watch"
	}
	if query.Get("sendInitialEvents") == "true" {
		return answer(io.MultiReader(bytes.NewReader(c.stream), live))
	}
	return answer(live)
}

// patched answers patches with an object, and all else as canned.
type patched struct {
	*canned
	object []byte
}

// RoundTrip implements http.RoundTripper.
func (p patched) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return p.canned.RoundTrip(r)
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}}, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(p.object)), Request: r}, nil
}

// frames reads one frame after the other until ctx ends.
type frames struct {
	ctx  context.Context
	from <-chan []byte
	rest []byte
}

// Read implements io.Reader.
func (f *frames) Read(into []byte) (int, error) {
	if len(f.rest) == 0 {
		select {
		case f.rest = <-f.from:
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
	n := copy(into, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}
