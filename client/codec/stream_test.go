// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

func newPod() runtime.Object { return &corev1.Pod{} }

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func enveloped(t testing.TB, obj runtime.Object) []byte {
	t.Helper()
	data, err := Encode(Protobuf, obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// jsonStream and protoStream are watches as servers send them.
func jsonStream(t testing.TB, events ...watch.Event) []byte {
	var b bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&b, `{"type":%q,"object":%s}`+"\n", e.Type, marshal(t, e.Object))
	}
	return b.Bytes()
}

func protoStream(t testing.TB, events ...watch.Event) []byte {
	var b bytes.Buffer
	for _, e := range events {
		b.Write(protoFrame(t, string(e.Type), enveloped(t, e.Object)))
	}
	return b.Bytes()
}

// protoFrame is an event of an object that is encoded already.
func protoFrame(t testing.TB, eventType string, object []byte) []byte {
	t.Helper()
	frame, err := (&metav1.WatchEvent{Type: eventType, Object: runtime.RawExtension{Raw: object}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

func TestWatchStreamsGiveEventsInBothEncodings(t *testing.T) {
	t.Parallel()
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: 410, Message: "too old"}
	bookmark := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "77", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	sent := []watch.Event{
		{Type: watch.Added, Object: benchPod()}, {Type: watch.Bookmark, Object: bookmark},
		{Type: watch.Modified, Object: benchPod()}, {Type: watch.Deleted, Object: benchPod()}, {Type: watch.Error, Object: status},
	}
	for contentType, stream := range map[string][]byte{JSON: jsonStream(t, sent...), Protobuf + ";stream=watch": protoStream(t, sent...)} {
		for name, reader := range map[string]io.Reader{"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream))} {
			for _, lean := range []bool{false, true} {
				events := NewEvents(contentType, reader, podKind, newPod, Options{DropManagedFields: lean})
				if lean && name == "byte by byte" {
					events = NewEvents(contentType, iotest.OneByteReader(bytes.NewReader(stream)), podKind, newPod, Options{DropManagedFields: lean})
				} else if lean {
					events = NewEvents(contentType, bytes.NewReader(stream), podKind, newPod, Options{DropManagedFields: lean})
				}
				for i, want := range sent {
					got, err := events.Next()
					if err != nil {
						t.Fatalf("%s %s event %d: %v", contentType, name, i, err)
					}
					wantObject := want.Object.DeepCopyObject()
					if pod, ok := wantObject.(*corev1.Pod); ok && lean {
						pod.ManagedFields = nil
					}
					if s, ok := got.Object.(*metav1.Status); ok {
						s.TypeMeta = status.TypeMeta // protobuf does not carry it inside
					}
					if diff := cmp.Diff(watch.Event{Type: want.Type, Object: wantObject}, got); diff != "" {
						t.Fatalf("%s %s event %d: (-want +got)\n%s", contentType, name, i, diff)
					}
				}
				if _, err := events.Next(); !errors.Is(err, io.EOF) {
					t.Fatalf("%s: at the end: %v", contentType, err)
				}
			}
		}
	}
}

func TestTruncatedWatchIsNotTheEndOfIt(t *testing.T) {
	t.Parallel()
	one := []watch.Event{{Type: watch.Added, Object: benchPod()}}
	for contentType, stream := range map[string][]byte{JSON: bytes.TrimSpace(jsonStream(t, one...)), Protobuf: protoStream(t, one...)} {
		for cut := 1; cut < len(stream); cut += 97 {
			_, err := NewEvents(contentType, bytes.NewReader(stream[:cut]), podKind, newPod, Options{}).Next()
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s cut at %d: %v, want unexpected EOF", contentType, cut, err)
			}
		}
	}
}

func TestListsAreReadItemByItem(t *testing.T) {
	t.Parallel()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "more"}}
	for i := range 5 {
		pod := benchPod()
		pod.Name = fmt.Sprint("pod-", i)
		list.Items = append(list.Items, *pod)
	}
	itemsFirst := []byte(fmt.Sprintf(`{"items":%s,"extra":{"a":[1]},"metadata":{"resourceVersion":"42","continue":"more"},"kind":"PodList"}`, marshal(t, list.Items)))
	for name, body := range map[string][]byte{JSON: marshal(t, list), Protobuf: enveloped(t, list), JSON + " ": itemsFirst} {
		items, err := NewItems(name, bytes.NewReader(body), podKind, newPod, Options{DropManagedFields: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			got, err := items.Next()
			if err != nil {
				t.Fatalf("%s item %d: %v", name, i, err)
			}
			want := list.Items[i].DeepCopy()
			want.ManagedFields = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s item %d: (-want +got)\n%s", name, i, diff)
			}
		}
		if _, err := items.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("%s: at the end: %v", name, err)
		}
		if diff := cmp.Diff(list.ListMeta, items.Meta()); diff != "" {
			t.Fatalf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestTruncatedListsAreErrors(t *testing.T) {
	t.Parallel()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "42"}, Items: []corev1.Pod{*benchPod()}}
	for mediaType, body := range map[string][]byte{JSON: marshal(t, list), Protobuf: enveloped(t, list)} {
		last := 3
		if mediaType == Protobuf {
			last = 1 + len(body) - bytes.LastIndex(body, []byte("Burstable")) // the rest is empty fields of the envelope
		}
		for _, size := range []int{0, 3, 4, 5, 20, len(body) / 2, len(body) - last} {
			items, err := NewItems(mediaType, bytes.NewReader(body[:size]), podKind, newPod, Options{Interner: &Interner{}})
			for err == nil {
				_, err = items.Next()
			}
			if errors.Is(err, io.EOF) {
				t.Errorf("%s, %d of %d bytes: %v, want another error", mediaType, size, len(body), err)
			}
		}
	}
}

// TestInternersReadTheSame covers what an Interner leaves to Unmarshal as well.
func TestInternersReadTheSame(t *testing.T) {
	t.Parallel()
	twice := benchPod()
	raw, err := twice.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unusual, err := (&runtime.Unknown{Raw: slices.Concat(raw, raw)}).Marshal() // every field twice: lists grow
	if err != nil {
		t.Fatal(err)
	}
	stream := slices.Concat(
		protoStream(t, watch.Event{Type: watch.Added, Object: benchPod()}),
		protoFrame(t, "MODIFIED", append([]byte(protoMagic), unusual...)),
		protoStream(t, watch.Event{Type: watch.Modified, Object: benchPod()}),
	)
	for _, lean := range []bool{false, true} {
		plain := NewEvents(Protobuf, bytes.NewReader(stream), podKind, newPod, Options{DropManagedFields: lean})
		interner := &Interner{Parts: true}
		interned := NewEvents(Protobuf, bytes.NewReader(stream), podKind, newPod, Options{DropManagedFields: lean, Interner: interner})
		for range 3 {
			want, err := plain.Next()
			if err != nil {
				t.Fatal(err)
			}
			got, err := interned.Next()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("(-plain +interned)\n%s", diff)
			}
		}
	}
}

func TestUnstructuredStreamsKeepEverything(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":[{}]},"n":9007199254740993,"f":1.5,"l":[{"x":null}],"e":{}}}`)
	newItem := func() runtime.Object { return &unstructured.Unstructured{} }
	e, err := NewEvents(JSON, bytes.NewReader(body), podKind, newItem, Options{DropManagedFields: true}).Next()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
		"n": int64(9007199254740993), "f": 1.5, "l": []any{map[string]any{"x": nil}}, "e": map[string]any{},
	}
	if diff := cmp.Diff(want, e.Object.(*unstructured.Unstructured).Object); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

func TestObjectThatDoesNotFitItsTypeSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := NewEvents(JSON, bytes.NewReader([]byte(`{"type":"ADDED","object":{"spec":{"nodeName":5}}}`)), podKind, newPod, Options{}).Next()
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("regenerate the types")) {
		t.Fatalf("error %v, want advice", err)
	}
}

func BenchmarkWatchDecode(b *testing.B) {
	event := watch.Event{Type: watch.Modified, Object: benchPod()}
	for name, item := range map[string]func() runtime.Object{"typed": newPod, "unstructured": func() runtime.Object { return &unstructured.Unstructured{} }} {
		data := jsonStream(b, event)
		b.Run("json/"+name, func(b *testing.B) { benchmarkEvents(b, JSON, data, item) })
	}
	b.Run("protobuf/typed", func(b *testing.B) { benchmarkEvents(b, Protobuf, protoStream(b, event), newPod) })
}

// BenchmarkCacheDecode reads Pods of one owner as caches do; each differs from the
// ones before in what is a Pod's own.
func BenchmarkCacheDecode(b *testing.B) {
	const own = "########"
	pod := benchPod()
	pod.Name, pod.UID, pod.ResourceVersion = pod.GenerateName+own, types.UID("0b7f3a52-"+own), own
	pod.Spec.Volumes[1].Name = "tmp-" + own
	pod.Status.PodIP, pod.Status.PodIPs[0].IP = own, own
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].VolumeMounts[1].Name = pod.Spec.Volumes[1].Name
		pod.Status.ContainerStatuses[i].ContainerID += own
	}
	data := protoStream(b, watch.Event{Type: watch.Modified, Object: pod})
	for name, interner := range map[string]Interner{"plain": {}, "strings": {}, "parts": {Parts: true}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			opts := Options{DropManagedFields: true, Interner: &interner}
			if name == "plain" {
				opts.Interner = nil
			}
			stream := &stamped{endless: endless{data: bytes.Clone(data)}}
			for at := range data {
				if bytes.HasPrefix(data[at:], []byte(own)) {
					stream.places = append(stream.places, at)
				}
			}
			events := NewEvents(Protobuf, stream, podKind, newPod, opts)
			for b.Loop() {
				if _, err := events.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// stamped repeats data with another number of eight digits in its places each time.
type stamped struct {
	endless
	places []int
	number uint32
}

func (s *stamped) Read(p []byte) (int, error) {
	if s.at == 0 {
		s.number++
		for _, place := range s.places {
			for n, digit := s.number, 7; digit >= 0; n, digit = n/10, digit-1 {
				s.data[place+digit] = '0' + byte(n%10)
			}
		}
	}
	return s.endless.Read(p)
}

func benchmarkEvents(b *testing.B, contentType string, event []byte, item func() runtime.Object) {
	b.ReportAllocs()
	b.SetBytes(int64(len(event)))
	events := NewEvents(contentType, &endless{data: event}, podKind, item, Options{DropManagedFields: true})
	for b.Loop() {
		if _, err := events.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

// endless repeats data.
type endless struct {
	data []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.data[e.at:])
	e.at = (e.at + n) % len(e.data)
	return n, nil
}
