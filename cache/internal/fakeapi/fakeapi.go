// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakeapi is an API server of ConfigMaps and Widgets for tests of
// caches: an http.RoundTripper without sockets or goroutines, whose watches can
// be held back, cut and expired at will.
package fakeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

type object = map[string]any

// event is one entry of the history.
type event struct {
	rev      uint64
	resource string
	kind     string // ADDED, MODIFIED, DELETED
	obj      object
}

// Server is safe for concurrent use.
type Server struct {
	// Fail, when not nil, may answer a request in the server's place. Set it
	// with SetFail while the server is in use.
	fail func(*http.Request) *http.Response

	mu        sync.Mutex
	rev       uint64
	uids      int
	objects   map[string]object // resource/namespace/name
	history   []event
	floor     uint64 // watches from before it are refused
	held      bool
	watches   map[*watchBody]struct{}
	crd       bool // Widgets are served
	lossy     bool
	terse     bool
	watchList bool
	minor     string
	requests  []string
	snapshots map[uint64]map[string]object // of lists read in pages
	changed   chan struct{}                // closed and replaced at every change
}

// New makes an empty server that serves ConfigMaps.
func New() *Server {
	return &Server{objects: map[string]object{}, watches: map[*watchBody]struct{}{}, minor: "36", snapshots: map[uint64]map[string]object{}, changed: make(chan struct{}), rev: 100}
}

// Config is a config whose transport is the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://fake.invalid", Transport: s}
}

// SetFail lets fn answer requests: nil means that the server does.
func (s *Server) SetFail(fn func(*http.Request) *http.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fn
}

// ServeWidgets installs, or removes, the custom kind Widget.
func (s *Server) ServeWidgets(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.crd = on
	if !on {
		maps.DeleteFunc(s.objects, func(k string, _ object) bool { return strings.HasPrefix(k, "widgets/") })
		for w := range s.watches {
			if w.resource == "widgets" {
				w.cut = io.EOF
			}
		}
	}
	s.wake()
}

// ServeWatchList turns sendInitialEvents on and names the minor version.
func (s *Server) ServeWatchList(minor string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchList, s.minor = true, minor
}

// Hold keeps watches from delivering; false lets them go on.
func (s *Server) Hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = on
	s.wake()
}

// Cut ends every open watch with err: io.EOF is an orderly end.
func (s *Server) Cut(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.cut = err
	}
	s.wake()
}

// Send puts raw bytes into every open watch.
func (s *Server) Send(raw string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.pending = append(w.pending, raw...)
	}
	s.wake()
}

// Bookmark sends a bookmark of the current revision to every open watch.
func (s *Server) Bookmark() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.bookmark = true
	}
	s.wake()
}

// Compact forgets the history: watches from before now get 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.floor = nil, s.rev
}

// Watches is the number of open watches.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches)
}

// Requests is what has been asked so far, as "METHOD path?query".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Revision is the newest revision.
func (s *Server) Revision() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rev
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Put creates or changes an object behind the client's back and returns its
// revision.
func (s *Server) Put(resource, namespace, name string, data map[string]string, labels map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj := object{"metadata": object{"name": name, "namespace": namespace, "labels": labels}, "data": data}
	key := resource + "/" + namespace + "/" + name
	s.store(key, obj, s.objects[key])
	return strconv.FormatUint(s.rev, 10)
}

// Delete removes an object behind the client's back.
func (s *Server) Delete(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(resource + "/" + namespace + "/" + name)
}

func (s *Server) store(key string, obj, was object) object {
	s.rev++
	resource, rest, _ := strings.Cut(key, "/")
	namespace, name, _ := strings.Cut(rest, "/")
	meta := metaOf(obj)
	meta["name"], meta["namespace"] = name, namespace
	meta["resourceVersion"] = strconv.FormatUint(s.rev, 10)
	meta["managedFields"] = []any{object{"manager": "fake", "operation": "Update"}}
	obj["apiVersion"], obj["kind"] = kindOf(resource)
	kind := "ADDED"
	if was != nil {
		kind = "MODIFIED"
		meta["uid"] = metaOf(was)["uid"]
		if ts, ok := metaOf(was)["deletionTimestamp"]; ok {
			meta["deletionTimestamp"] = ts
		}
	} else {
		s.uids++
		meta["uid"] = fmt.Sprint("uid-", s.uids)
	}
	if meta["deletionTimestamp"] != nil && !hasFinalizers(obj) {
		delete(s.objects, key)
		kind = "DELETED"
	} else {
		s.objects[key] = obj
	}
	s.history = append(s.history, event{s.rev, resource, kind, obj})
	s.wake()
	return obj
}

func (s *Server) remove(key string) object {
	was := s.objects[key]
	if was == nil {
		return nil
	}
	s.rev++
	last := clone(was)
	metaOf(last)["resourceVersion"] = strconv.FormatUint(s.rev, 10)
	delete(s.objects, key)
	resource, _, _ := strings.Cut(key, "/")
	s.history = append(s.history, event{s.rev, resource, "DELETED", last})
	s.wake()
	return was
}

func metaOf(obj object) object {
	m, _ := obj["metadata"].(object)
	if m == nil {
		m = object{}
		obj["metadata"] = m
	}
	return m
}

func hasFinalizers(obj object) bool {
	f, _ := metaOf(obj)["finalizers"].([]any)
	return len(f) > 0
}

func clone(obj object) object {
	data, _ := json.Marshal(obj)
	var out object
	_ = json.Unmarshal(data, &out)
	return out
}

func kindOf(resource string) (apiVersion, kind string) {
	if resource == "widgets" {
		return "example.com/v1", "Widget"
	}
	return "v1", "ConfigMap"
}

// RoundTrip implements http.RoundTripper.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	if s.fail != nil {
		if resp := s.fail(r); resp != nil {
			if resp.StatusCode == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return resp, nil
		}
	}
	resp := s.answer(r)
	if s.lossy && r.Method != http.MethodGet {
		return nil, io.ErrUnexpectedEOF
	}
	return resp, nil
}

// LoseAnswers lets writes happen without telling the client.
func (s *Server) LoseAnswers(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lossy = on
}

// AnswerTersely lets a deletion of a collection be answered by a Status alone.
func (s *Server) AnswerTersely(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terse = on
}

// Broken, as the answer of a Fail, is a connection that breaks.
func Broken() *http.Response { return &http.Response{} }

// Refuse is an answer with a Status.
func Refuse(code int, reason metav1.StatusReason, message string) *http.Response {
	return JSON(code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, Details: &metav1.StatusDetails{Kind: "x", Name: "x"},
	})
}

// JSON is an answer.
func JSON(code int, v any) *http.Response {
	data, _ := json.Marshal(v)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(data)), Body: io.NopCloser(bytes.NewReader(data)),
	}
}

func notFound() *http.Response {
	return Refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
}

func (s *Server) answer(r *http.Request) *http.Response {
	switch r.URL.Path {
	case "/version":
		return JSON(200, object{"major": "1", "minor": s.minor})
	case "/api":
		return JSON(200, object{"kind": "APIVersions", "versions": []string{"v1"}})
	case "/api/v1":
		return JSON(200, resourceList("v1", "configmaps", "ConfigMap"))
	case "/apis":
		groups := []any{}
		if s.crd {
			v := object{"groupVersion": "example.com/v1", "version": "v1"}
			groups = append(groups, object{"name": "example.com", "versions": []any{v}, "preferredVersion": v})
		}
		return JSON(200, object{"kind": "APIGroupList", "groups": groups})
	case "/apis/example.com/v1":
		return JSON(200, resourceList("example.com/v1", "widgets", "Widget"))
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	parts = parts[2:] // api/v1
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		if !s.crd {
			return JSON(404, object{"kind": "Status", "code": 404, "reason": "NotFound", "status": "Failure", "message": "the server could not find the requested resource"})
		}
		parts = parts[1:]
	}
	namespace := ""
	if parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 1 {
		return s.collection(r, parts[0], namespace)
	}
	return s.one(r, parts[0]+"/"+namespace+"/"+parts[1])
}

func resourceList(gv, name, kind string) object {
	return object{"kind": "APIResourceList", "groupVersion": gv, "resources": []any{object{
		"name": name, "kind": kind, "namespaced": true, "verbs": []string{"get", "list", "watch", "create", "update", "delete"},
	}}}
}

func (s *Server) one(r *http.Request, key string) *http.Response {
	was := s.objects[key]
	if was == nil {
		return notFound()
	}
	switch r.Method {
	case http.MethodGet:
		return JSON(200, was)
	case http.MethodPut:
		obj := body(r)
		if rv, _ := metaOf(obj)["resourceVersion"].(string); rv != "" && rv != metaOf(was)["resourceVersion"] {
			return Refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		}
		return JSON(200, s.store(key, obj, was))
	case http.MethodDelete:
		if obj := s.removeOne(key); obj != nil {
			return JSON(200, obj)
		}
		return JSON(200, object{"kind": "Status", "apiVersion": "v1", "status": "Success", "details": object{"uid": metaOf(was)["uid"]}})
	}
	return JSON(405, object{})
}

func body(r *http.Request) object {
	var obj object
	_ = json.NewDecoder(r.Body).Decode(&obj)
	return obj
}

func (s *Server) collection(r *http.Request, resource, namespace string) *http.Response {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost:
		obj := body(r)
		key := fmt.Sprint(resource, "/", namespace, "/", metaOf(obj)["name"])
		if s.objects[key] != nil {
			return Refuse(http.StatusConflict, metav1.StatusReasonAlreadyExists, "already exists")
		}
		return JSON(201, s.store(key, obj, nil))
	case q.Get("watch") != "":
		return s.watch(r, resource, namespace)
	case r.Method == http.MethodDelete:
		return s.removeAll(resource, namespace)
	}
	matches, err := selectFields(q.Get("fieldSelector"))
	if err != nil {
		return Refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	prefix := prefixOf(resource, namespace)
	var keys []string
	objects, rev := s.objects, s.rev
	after, snapshot, paged := strings.Cut(q.Get("continue"), "@")
	if paged {
		rev, _ = strconv.ParseUint(snapshot, 10, 64)
		objects = s.snapshots[rev]
		if rev < s.floor {
			return Refuse(http.StatusGone, metav1.StatusReasonExpired, "the continue token is too old")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(objects)) {
		if strings.HasPrefix(k, prefix) && k > after && matches(objects[k]) {
			keys = append(keys, k)
		}
	}
	meta := object{"resourceVersion": strconv.FormatUint(rev, 10)}
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && len(keys) > limit {
		keys = keys[:limit]
		meta["continue"] = fmt.Sprintf("%s@%d", keys[limit-1], rev)
		if !paged {
			s.snapshots[rev] = maps.Clone(objects)
		}
	}
	items := []any{}
	for _, k := range keys {
		items = append(items, objects[k])
	}
	apiVersion, kind := kindOf(resource)
	return JSON(200, object{"apiVersion": apiVersion, "kind": kind + "List", "metadata": meta, "items": items})
}

// selectFields knows metadata.name, and v of the data.
func selectFields(selector string) (func(object) bool, error) {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return nil, err
	}
	for _, r := range parsed.Requirements() {
		if r.Field != "metadata.name" && r.Field != "data.v" {
			return nil, fmt.Errorf("field label not supported: %s", r.Field)
		}
	}
	return func(obj object) bool {
		name, _ := metaOf(obj)["name"].(string)
		set := fields.Set{"metadata.name": name}
		switch data := obj["data"].(type) {
		case object:
			set["data.v"] = fmt.Sprint(data["v"])
		case map[string]string:
			set["data.v"] = data["v"]
		}
		return parsed.Matches(set)
	}, nil
}

// removeAll deletes a collection and answers with what it was.
func (s *Server) removeAll(resource, namespace string) *http.Response {
	items := []any{}
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(k, prefixOf(resource, namespace)) {
			continue
		}
		items = append(items, s.objects[k])
		s.removeOne(k)
	}
	if s.terse {
		return JSON(200, object{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	}
	apiVersion, kind := kindOf(resource)
	return JSON(200, object{"apiVersion": apiVersion, "kind": kind + "List", "metadata": object{"resourceVersion": strconv.FormatUint(s.rev, 10)}, "items": items})
}

// removeOne deletes what is at key, or marks it when it has finalizers: then it
// returns the object.
func (s *Server) removeOne(key string) object {
	was := s.objects[key]
	if hasFinalizers(was) {
		obj := clone(was)
		metaOf(obj)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		return s.store(key, obj, was)
	}
	s.remove(key)
	return nil
}

func prefixOf(resource, namespace string) string {
	if namespace == "" {
		return resource + "/"
	}
	return resource + "/" + namespace + "/"
}

func (s *Server) watch(r *http.Request, resource, namespace string) *http.Response {
	q := r.URL.Query()
	w := &watchBody{s: s, ctx: r.Context(), resource: resource, namespace: namespace}
	if q.Get("sendInitialEvents") == "true" {
		if !s.watchList {
			return Refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")
		}
		for _, k := range slices.Sorted(maps.Keys(s.objects)) {
			if strings.HasPrefix(k, prefixOf(resource, namespace)) {
				w.write("ADDED", s.objects[k])
			}
		}
		w.cursor = s.rev
		w.writeBookmark(object{metav1.InitialEventsAnnotationKey: "true"})
	} else {
		w.cursor, _ = strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
		if w.cursor < s.floor {
			return Refuse(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
		}
	}
	s.watches[w] = struct{}{}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json;stream=watch"}}, ContentLength: -1, Body: w}
}

// watchBody makes the bytes of a watch when they are read.
type watchBody struct {
	s         *Server
	ctx       context.Context
	resource  string
	namespace string
	cursor    uint64
	pending   []byte
	bookmark  bool
	cut       error
}

func (w *watchBody) write(kind string, obj object) {
	data, _ := json.Marshal(object{"type": kind, "object": obj})
	w.pending = append(append(w.pending, data...), '\n')
}

func (w *watchBody) writeBookmark(annotations object) {
	apiVersion, kind := kindOf(w.resource)
	w.write("BOOKMARK", object{"apiVersion": apiVersion, "kind": kind, "metadata": object{
		"resourceVersion": strconv.FormatUint(w.cursor, 10), "annotations": annotations,
	}})
}

func (w *watchBody) Read(p []byte) (int, error) {
	for {
		w.s.mu.Lock()
		w.fill()
		if len(w.pending) > 0 {
			n := copy(p, w.pending)
			w.pending = w.pending[n:]
			w.s.mu.Unlock()
			return n, nil
		}
		cut, changed := w.cut, w.s.changed
		if cut != nil {
			delete(w.s.watches, w)
		}
		w.s.mu.Unlock()
		if cut != nil {
			return 0, cut
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
}

// fill turns history into bytes.
func (w *watchBody) fill() {
	if w.s.held || w.cut != nil {
		return
	}
	for _, e := range w.s.history {
		if e.rev <= w.cursor {
			continue
		}
		w.cursor = e.rev
		if e.resource == w.resource && (w.namespace == "" || metaOf(e.obj)["namespace"] == w.namespace) {
			w.write(e.kind, e.obj)
		}
	}
	if w.bookmark {
		w.bookmark = false
		w.cursor = w.s.rev
		w.writeBookmark(nil)
	}
}

func (w *watchBody) Close() error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	delete(w.s.watches, w)
	return nil
}
