// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/controller"
)

// server is as much of an API server as a controller touches, in memory: one
// revision, optimistic locks, generations, status apart from the rest, graceful
// deletion by finalizers, and apply without list semantics. It implements
// client.Client and cache.Informers; its caches never lag.
type server struct {
	scheme   *runtime.Scheme
	mapper   *mapping.Mapper
	noStatus map[string]bool // kinds without a status subresource
	// intercept may fail a call before it has an effect. It is called without
	// locks and must be set before the first call.
	intercept func(verb client.Verb, kind string, key client.ObjectKey, sub string) error
	// lose says whose answers get lost after they took effect. It must be set
	// before the first call.
	lose func(verb client.Verb, sub string) bool

	mu       sync.Mutex
	revision int
	objects  map[schema.GroupVersionKind]map[client.ObjectKey]map[string]any
	applied  map[string]map[string]any
	handlers []*handler
	calls    []string
	// statusOwner is the field owner of the last write of a status.
	statusOwner string
}

type handler struct {
	server *server
	gvk    schema.GroupVersionKind
	like   client.Object
	fn     cache.Handler
}

func newServer(add ...func(*runtime.Scheme) error) *server {
	scheme, err := client.NewScheme(add...)
	if err != nil {
		panic(err)
	}
	s := &server{
		scheme: scheme, noStatus: map[string]bool{},
		objects: map[schema.GroupVersionKind]map[client.ObjectKey]map[string]any{}, applied: map[string]map[string]any{},
	}
	s.mapper = mapping.New(s)
	return s
}

// Do answers discovery: every kind of the scheme is served.
func (s *server) Do(_ context.Context, req wire.Request) (*wire.Response, error) {
	var body any
	groups := map[string][]string{}
	for gvk := range s.scheme.AllKnownTypes() {
		if !slices.Contains(groups[gvk.Group], gvk.Version) && gvk.Version != runtime.APIVersionInternal {
			groups[gvk.Group] = append(groups[gvk.Group], gvk.Version)
		}
	}
	switch parts := strings.Split(strings.Trim(req.Path, "/"), "/"); {
	case req.Path == "/api":
		body = metav1.APIVersions{Versions: []string{"v1"}}
	case req.Path == "/apis":
		list := metav1.APIGroupList{}
		for group, versions := range groups {
			g := metav1.APIGroup{Name: group}
			for _, v := range versions {
				g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + v, Version: v})
			}
			g.PreferredVersion = g.Versions[0]
			if group != "" {
				list.Groups = append(list.Groups, g)
			}
		}
		body = list
	case parts[0] == "api":
		body = s.resources(schema.GroupVersion{Version: parts[1]})
	default:
		body = s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	data, err := json.Marshal(body)
	return &wire.Response{Status: http.StatusOK, ContentType: "application/json", Body: data}, err
}

func (s *server) resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{GroupVersion: gv.String()}
	for kind := range s.scheme.KnownTypes(gv) {
		name := strings.ToLower(kind) + "s"
		namespaced := kind != "Namespace" && kind != "Node"
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch"}})
		if !s.noStatus[kind] {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name + "/status", Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"patch"}})
		}
	}
	return list
}

func (s *server) Scheme() *runtime.Scheme { return s.scheme }
func (s *server) Mapper() *mapping.Mapper { return s.mapper }

// log returns the writes of reconcilers so far, as "verb Kind[/sub] name".
func (s *server) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *server) forgetLog() {
	s.mu.Lock()
	s.calls = nil
	s.mu.Unlock()
}

// do runs one call: intercept, effect, observers.
func (s *server) do(ctx context.Context, verb client.Verb, obj runtime.Object, key client.ObjectKey, sub string, fn func(gvk schema.GroupVersionKind) (map[string]any, error)) error {
	gvk, err := client.KindOf(s.scheme, obj)
	if err != nil {
		return err
	}
	call := client.Call{Verb: verb, GVK: gvk, Key: key, SubResource: sub, Object: obj}
	if s.intercept != nil {
		err = s.intercept(verb, gvk.Kind, key, sub)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		var content map[string]any
		s.mu.Lock()
		if verb.Writes() && !controller.ReconcileID(ctx).IsZero() {
			what := gvk.Kind
			if sub != "" {
				what += "/" + sub
			}
			s.calls = append(s.calls, fmt.Sprint(verb, " ", what, " ", key.Name))
		}
		content, err = fn(gvk)
		s.mu.Unlock()
		if err == nil && s.lose != nil && s.lose(verb, sub) {
			err = errors.New("connection reset by peer")
		}
		if err == nil && content != nil {
			fill(obj, content)
			call.ResourceVersion = revisionOf(content)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s %s %s: %w", verb, gvk.Kind, key, err)
	}
	call.Err = err
	client.Notify(ctx, &call)
	return err
}

func (s *server) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	return s.do(ctx, client.VerbGet, obj, key, "", func(gvk schema.GroupVersionKind) (map[string]any, error) {
		return s.find(gvk, key)
	})
}

func (s *server) find(gvk schema.GroupVersionKind, key client.ObjectKey) (map[string]any, error) {
	content := s.objects[gvk][key]
	if content == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}, key.Name)
	}
	return content, nil
}

func (s *server) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := client.ResolveList(opts)
	gvk, err := itemKindOf(s.scheme, list)
	if err != nil {
		return err
	}
	s.mu.Lock()
	items := []any{}
	for _, key := range slices.SortedFunc(maps.Keys(s.objects[gvk]), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) }) {
		if o.Namespace == "" || o.Namespace == key.Namespace {
			items = append(items, s.objects[gvk][key])
		}
	}
	revision := strconv.Itoa(s.revision) // of these items: a write may follow at once
	s.mu.Unlock()
	fill(list, map[string]any{"metadata": map[string]any{"resourceVersion": revision}, "items": items})
	client.Notify(ctx, &client.Call{Verb: client.VerbList, GVK: gvk, Key: client.ObjectKey{Namespace: o.Namespace}, Items: len(items), ResourceVersion: revision})
	return nil
}

func (s *server) Watch(context.Context, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
	panic("a controller does not watch by itself")
}

func (s *server) Create(ctx context.Context, obj client.Object, _ ...client.WriteOption) error {
	key := client.ObjectKeyFromObject(obj)
	return s.do(ctx, client.VerbCreate, obj, key, "", func(gvk schema.GroupVersionKind) (map[string]any, error) {
		if s.objects[gvk][key] != nil {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: gvk.Kind}, key.Name)
		}
		return s.store(gvk, key, nil, toMap(obj)), nil
	})
}

func (s *server) Update(ctx context.Context, obj client.Object, _ ...client.WriteOption) error {
	key := client.ObjectKeyFromObject(obj)
	return s.do(ctx, client.VerbUpdate, obj, key, "", func(gvk schema.GroupVersionKind) (map[string]any, error) {
		was, err := s.find(gvk, key)
		if err != nil {
			return nil, err
		}
		now := toMap(obj)
		if revisionOf(now) != revisionOf(was) {
			return nil, conflict(gvk, key)
		}
		if !s.noStatus[gvk.Kind] {
			now["status"] = was["status"]
		}
		return s.store(gvk, key, was, now), nil
	})
}

func (s *server) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	return s.patch(ctx, obj, "", patch)
}

func (s *server) patch(ctx context.Context, obj client.Object, sub string, patch client.Patch) error {
	key := client.ObjectKeyFromObject(obj)
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	if patch.Type() != types.MergePatchType {
		return fmt.Errorf("the fake does not know %s", patch.Type())
	}
	var change map[string]any
	if err := json.Unmarshal(data, &change); err != nil {
		return err
	}
	return s.do(ctx, client.VerbPatch, obj, key, sub, func(gvk schema.GroupVersionKind) (map[string]any, error) {
		was, err := s.find(gvk, key)
		if err != nil || sub == "status" && s.noStatus[gvk.Kind] {
			if err == nil {
				err = apierrors.NewNotFound(schema.GroupResource{Resource: gvk.Kind + "/status"}, key.Name)
			}
			return nil, err
		}
		if rv := revisionOf(change); rv != "" && rv != revisionOf(was) {
			return nil, conflict(gvk, key)
		}
		now := merge(was, change)
		switch {
		case sub == "status":
			now = merge(was, nil)
			now["status"] = merge(was, change)["status"]
		case !s.noStatus[gvk.Kind]:
			now["status"] = was["status"]
		}
		return s.store(gvk, key, was, now), nil
	})
}

func (s *server) Apply(ctx context.Context, obj any, opts ...client.WriteOption) error {
	o := client.ResolveWrite(opts)
	body, err := codec.ApplyBody(obj, func(o runtime.Object) (schema.GroupVersionKind, error) { return client.KindOf(s.scheme, o) })
	if err != nil {
		return err
	}
	body = toMap(&unstructured.Unstructured{Object: body})
	object := obj.(client.Object)
	key := client.ObjectKeyFromObject(object)
	return s.do(ctx, client.VerbApply, object, key, "", func(gvk schema.GroupVersionKind) (map[string]any, error) {
		was := s.objects[gvk][key]
		id := fmt.Sprint(gvk, key, o.FieldOwner)
		now := merge(drop(was, s.applied[id], body), body)
		s.applied[id] = body
		return s.store(gvk, key, was, now), nil
	})
}

func (s *server) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	o := client.ResolveDelete(opts)
	key := client.ObjectKeyFromObject(obj)
	return s.do(ctx, client.VerbDelete, obj, key, "", func(gvk schema.GroupVersionKind) (map[string]any, error) {
		was, err := s.find(gvk, key)
		if err != nil {
			return nil, err
		}
		uid, _, _ := unstructured.NestedString(was, "metadata", "uid")
		if o.Preconditions != nil && string(*o.Preconditions.UID) != uid {
			return nil, conflict(gvk, key)
		}
		now := merge(was, map[string]any{"metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}})
		s.store(gvk, key, was, now)
		return nil, nil
	})
}

func (s *server) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	panic("not needed")
}

func (s *server) Status() client.StatusWriter { return statusOf{s} }

func (s *server) SubResource(string) client.SubResourceClient { panic("not needed") }

type statusOf struct{ s *server }

func (w statusOf) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.WriteOption) error {
	w.s.mu.Lock()
	w.s.statusOwner = client.ResolveWrite(opts).FieldOwner
	w.s.mu.Unlock()
	return w.s.patch(ctx, obj, "status", patch)
}

func (w statusOf) Update(context.Context, client.Object, ...client.WriteOption) error {
	panic("not needed")
}
func (w statusOf) Apply(context.Context, any, ...client.WriteOption) error { panic("not needed") }

// store commits a version and tells the handlers. The lock is held.
func (s *server) store(gvk schema.GroupVersionKind, key client.ObjectKey, was, now map[string]any) map[string]any {
	now = merge(now, map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind})
	if was != nil && reflect.DeepEqual(was, now) {
		return was
	}
	s.revision++
	meta := map[string]any{"resourceVersion": strconv.Itoa(s.revision)}
	if was == nil {
		meta["uid"] = fmt.Sprint("uid-", s.revision)
		meta["generation"] = int64(1)
		meta["namespace"], meta["name"] = key.Namespace, key.Name
	} else if !reflect.DeepEqual(was["spec"], now["spec"]) {
		generation, _, _ := unstructured.NestedFieldNoCopy(was, "metadata", "generation")
		n, _ := strconv.Atoi(fmt.Sprint(generation))
		meta["generation"] = int64(n + 1)
	}
	now = toMap(&unstructured.Unstructured{Object: merge(now, map[string]any{"metadata": meta})})
	finalizers, _, _ := unstructured.NestedSlice(now, "metadata", "finalizers")
	deleting, _, _ := unstructured.NestedString(now, "metadata", "deletionTimestamp")
	e := cache.Event{Type: cache.Updated}
	switch {
	case deleting != "" && len(finalizers) == 0:
		delete(s.objects[gvk], key)
		e.Type = cache.Deleted
	case was == nil:
		e.Type = cache.Added
		fallthrough
	default:
		if s.objects[gvk] == nil {
			s.objects[gvk] = map[client.ObjectKey]map[string]any{}
		}
		s.objects[gvk][key] = now
	}
	for _, h := range s.handlers {
		if h.gvk == gvk {
			h.send(e, was, now)
		}
	}
	return now
}

func (h *handler) send(e cache.Event, was, now map[string]any) {
	e.Object = h.object(now)
	if e.Type == cache.Updated {
		e.Old = h.object(was)
	}
	h.fn(e)
}

func (h *handler) object(content map[string]any) client.Object {
	obj := reflect.New(reflect.TypeOf(h.like).Elem()).Interface().(client.Object)
	fill(obj, content)
	return obj
}

// Informer implements cache.Informers.
func (s *server) Informer(obj client.Object) (cache.Informer, error) {
	gvk, err := client.KindOf(s.scheme, obj)
	if err != nil {
		return nil, err
	}
	return &informer{server: s, gvk: gvk, like: obj}, nil
}

type informer struct {
	server *server
	gvk    schema.GroupVersionKind
	like   client.Object
}

func (i *informer) AddHandler(fn cache.Handler) cache.Registration {
	i.server.mu.Lock()
	defer i.server.mu.Unlock()
	h := &handler{i.server, i.gvk, i.like, fn}
	for _, content := range i.server.objects[i.gvk] {
		h.send(cache.Event{Type: cache.Added, Initial: true}, nil, content)
	}
	i.server.handlers = append(i.server.handlers, h)
	return h
}

func (h *handler) HasSynced() bool                   { return true }
func (h *handler) WaitForSync(context.Context) error { return nil }
func (h *handler) Wait()                             {}
func (h *handler) Remove() {
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	h.server.handlers = slices.DeleteFunc(h.server.handlers, func(o *handler) bool { return o == h })
}

func (i *informer) AddEventHandler(cache.ResourceEventHandler, cache.EventHandlerOptions) cache.Registration {
	panic("not needed")
}
func (i *informer) HasSynced() bool                   { return true }
func (i *informer) WaitForSync(context.Context) error { return nil }
func (i *informer) Status() cache.Status              { return cache.Status{GVK: i.gvk, Synced: true} }
func (i *informer) Close()                            {}

func conflict(gvk schema.GroupVersionKind, key client.ObjectKey) error {
	return apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name, fmt.Errorf("the object has been modified"))
}

func revisionOf(content map[string]any) string {
	rv, _, _ := unstructured.NestedString(content, "metadata", "resourceVersion")
	return rv
}

func toMap(obj any) map[string]any {
	data, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		panic(err)
	}
	return m
}

func fill(obj runtime.Object, content map[string]any) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	v := reflect.ValueOf(obj).Elem()
	v.SetZero()
	data, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(data, obj); err != nil {
		panic(err)
	}
	if gvk.Kind != "" {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
}

// merge applies a JSON merge patch and copies as deep as it goes.
func merge(object, patch map[string]any) map[string]any {
	out := maps.Clone(object)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range patch {
		sub, isMap := v.(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap:
			was, _ := out[k].(map[string]any)
			out[k] = merge(was, sub)
		default:
			out[k] = v
		}
	}
	return out
}

// drop removes what was applied before and is not any more.
func drop(object, before, now map[string]any) map[string]any {
	out := maps.Clone(object)
	for k, v := range before {
		sub, isMap := v.(map[string]any)
		nowSub, nowIsMap := now[k].(map[string]any)
		was, wasIsMap := out[k].(map[string]any)
		switch {
		case isMap && nowIsMap && wasIsMap:
			out[k] = drop(was, sub, nowSub)
		case now[k] == nil:
			delete(out, k)
		}
	}
	return out
}

// itemKindOf is the kind of the items of a list.
func itemKindOf(scheme *runtime.Scheme, list client.ObjectList) (schema.GroupVersionKind, error) {
	gvk, err := client.KindOf(scheme, list)
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	return gvk, err
}
