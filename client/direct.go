// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
)

// direct is the Client whose every call is a request.
type direct struct {
	conn   *wire.Conn
	mapper *mapping.Mapper
	scheme *runtime.Scheme
	opts   Options

	// jsonOnly holds the kinds whose protobuf the server has refused.
	jsonOnly sync.Map // schema.GroupVersionKind -> struct{}
}

var _ Client = (*direct)(nil)

// New makes a client of the server that cfg names: each call is a request, and
// nothing is sent yet. What it returns is a listwatch.Source as well, so that
// package cache can be given it.
func New(cfg *rest.Config, opts Options) (Client, error) {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Warnings == nil {
		opts.Warnings = logWarnings(opts.Log)
	}
	conn, err := wire.New(cfg, wire.Options{
		HTTPClient: opts.HTTPClient, OnAttempt: opts.OnAttempt, Warnings: opts.Warnings, Log: opts.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	d := &direct{conn: conn, mapper: opts.Mapper, scheme: opts.Scheme, opts: opts}
	if d.mapper == nil {
		d.mapper = mapping.New(conn)
	}
	if d.scheme == nil {
		d.scheme = runtime.NewScheme()
	}
	return d, nil
}

// logWarnings logs each distinct text once.
func logWarnings(log *slog.Logger) func(context.Context, string) {
	var seen sync.Map
	return func(ctx context.Context, text string) {
		if _, dup := seen.LoadOrStore(text, struct{}{}); !dup {
			log.WarnContext(ctx, "warning of the API server", "text", text)
		}
	}
}

// Scheme implements Client.
func (d *direct) Scheme() *runtime.Scheme { return d.scheme }

// Mapper implements Client.
func (d *direct) Mapper() *mapping.Mapper { return d.mapper }

// accept is the Accept header for answers that obj's type can take.
func (d *direct) accept(obj runtime.Object, gvk schema.GroupVersionKind, watch bool) string {
	protobuf, json, as := codec.Protobuf, codec.JSON, ""
	if watch {
		protobuf += ";stream=watch"
		json += ";stream=watch"
	}
	switch obj.(type) {
	case *metav1.PartialObjectMetadata:
		as = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	case *metav1.PartialObjectMetadataList:
		as = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
		if watch {
			as = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		}
	}
	accept := json + as
	if watch {
		accept += "," + codec.JSON + as
	}
	if as != "" {
		accept += "," + codec.JSON
	}
	if d.protobuf(obj, gvk) {
		accept = protobuf + as + "," + accept
	}
	return accept
}

func (d *direct) protobuf(obj runtime.Object, gvk schema.GroupVersionKind) bool {
	if d.opts.JSONOnly || !codec.SpeaksProtobuf(obj) {
		return false
	}
	_, refused := d.jsonOnly.Load(gvk)
	return !refused
}

// refusedProtobuf notes a 406 or 415 for gvk. It is true when asking again
// makes sense: the request offered protobuf.
func (d *direct) refusedProtobuf(obj runtime.Object, gvk schema.GroupVersionKind, err error) bool {
	if !d.protobuf(obj, gvk) || !apierrors.IsNotAcceptable(err) && !apierrors.IsUnsupportedMediaType(err) {
		return false
	}
	d.jsonOnly.Store(gvk, struct{}{})
	return true
}

// call is one request of a verb under way.
type call struct {
	Call
	d        *direct
	resource mapping.Resource
	query    url.Values
	sent     bool
}

// begin resolves the resource of a kind.
func (d *direct) begin(ctx context.Context, verb Verb, gvk schema.GroupVersionKind, key ObjectKey, sub string) (*call, error) {
	c := &call{d: d, Call: Call{Verb: verb, GVK: gvk, Key: key, SubResource: sub, Start: time.Now()}, query: url.Values{}}
	resource, err := d.mapper.ForKind(ctx, gvk)
	if err != nil {
		return c, err
	}
	c.resource, c.Resource = resource, resource.GVR.Resource
	if resource.Namespaced {
		named := verb != VerbList && verb != VerbWatch && verb != VerbDeleteAll
		if named && key.Namespace == "" {
			return c, fmt.Errorf("%s is namespaced: set metadata.namespace", gvk.Kind)
		}
	} else {
		c.Key.Namespace = ""
	}
	return c, nil
}

// admit asks BeforeWrite; the options must be known by now.
func (c *call) admit(ctx context.Context) error {
	if c.d.opts.BeforeWrite == nil || !c.Verb.Writes() {
		return nil
	}
	return c.d.opts.BeforeWrite(ctx, &c.Call)
}

// begun tells the observers of a change to an object what is sent.
func (c *call) begun(ctx context.Context, contentType string, body any) {
	switch c.Verb {
	case VerbUpdate:
		// An update without a revision replaces whatever there is: what it changes is not known.
		if m, ok := body.(metav1.Object); ok && m.GetResourceVersion() != "" {
			begun(ctx, &c.Call, m.GetResourceVersion())
		}
	case VerbPatch, VerbApply:
		c.Patch, _ = body.([]byte)
		c.PatchType = types.PatchType(contentType)
		if c.Verb == VerbApply {
			begun(ctx, &c.Call, "")
		}
	}
}

// end notifies the observers and names the call in the error.
func (c *call) end(ctx context.Context, err error) error {
	if err != nil {
		if wire.IsPathMissing(err) {
			c.d.mapper.Invalidate() // the resource is not where discovery said
		}
		err = fmt.Errorf("%s %s: %w", c.Verb, c.what(), err)
	}
	c.Err, c.End = err, time.Now()
	c.BeforeWire = err != nil && !c.sent
	if err == nil && c.ResourceVersion == "" && c.Object != nil {
		if m, ok := c.Object.(metav1.Object); ok {
			c.ResourceVersion = m.GetResourceVersion()
		}
	}
	Notify(ctx, &c.Call)
	return err
}

func (c *call) what() string {
	var b strings.Builder
	b.WriteString(c.GVK.Kind)
	if c.SubResource != "" {
		b.WriteString("/" + c.SubResource)
	}
	switch {
	case c.Key.Name != "":
		b.WriteString(" " + FormatKey(c.Key))
	case c.Key.Namespace != "":
		b.WriteString(" in " + c.Key.Namespace)
	}
	return b.String()
}

func (c *call) path() string {
	name := c.Key.Name
	if c.Verb == VerbCreate && c.SubResource == "" {
		name = ""
	}
	return c.resource.Path(c.Key.Namespace, name, c.SubResource)
}

// send does the round trip: body, if any, goes as contentType or, when that is
// empty, in the best encoding; the answer replaces into, of kind gvk.
func (c *call) send(ctx context.Context, method, contentType string, body any, into runtime.Object, gvk schema.GroupVersionKind) (*wire.Response, error) {
	for {
		req := wire.Request{
			Verb: string(c.Verb), Method: method, Path: c.path(), Query: c.query,
			ContentType: contentType, Accept: c.d.accept(into, gvk, false),
		}
		var sent runtime.Object
		switch b := body.(type) {
		case nil:
		case []byte:
			req.Body = b
		case runtime.Object:
			sent = b
			req.ContentType = codec.JSON
			sentKind := b.GetObjectKind().GroupVersionKind()
			if c.d.protobuf(b, sentKind) {
				req.ContentType = codec.Protobuf
			}
			data, err := codec.Encode(req.ContentType, b)
			if err != nil {
				return nil, err
			}
			req.Body = data
		}
		c.sent = true
		resp, err := c.d.conn.Do(ctx, req)
		if err != nil {
			again := c.d.refusedProtobuf(into, gvk, err)
			if sent != nil {
				again = c.d.refusedProtobuf(sent, sent.GetObjectKind().GroupVersionKind(), err) || again
			}
			if again {
				continue
			}
			return nil, err
		}
		return resp, nil
	}
}

// exchange is send with the answer decoded into into.
func (c *call) exchange(ctx context.Context, method, contentType string, body any, into runtime.Object, gvk schema.GroupVersionKind) error {
	if err := c.admit(ctx); err != nil {
		return err
	}
	c.begun(ctx, contentType, body)
	resp, err := c.send(ctx, method, contentType, body, into, gvk)
	if err != nil {
		return err
	}
	if len(resp.Body) > 0 {
		// A subresource like binding or eviction answers with a Status.
		if status, ok := wire.DecodeStatus(resp.Body); ok && gvk.Kind != "Status" {
			c.Object = status
			return nil
		}
		if err := codec.Decode(resp.ContentType, resp.Body, into, gvk); err != nil {
			return err
		}
	}
	c.Object = into
	return nil
}

// Get implements Reader. A get without a resourceVersion returns the newest state, so that every GetOption
// is satisfied.
func (d *direct) Get(ctx context.Context, key ObjectKey, obj Object, _ ...GetOption) error {
	return d.get(ctx, key, obj, "", obj)
}

func (d *direct) get(ctx context.Context, key ObjectKey, obj Object, sub string, into Object) error {
	gvk, err := KindOf(d.scheme, obj)
	if err != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	c, err := d.begin(ctx, VerbGet, gvk, key, sub)
	if err == nil && key.Name == "" {
		err = ErrNoName
	}
	if err != nil {
		return c.end(ctx, err)
	}
	intoKind := gvk
	if sub != "" && into != obj {
		if intoKind, err = KindOf(d.scheme, into); err != nil {
			return c.end(ctx, err)
		}
	}
	return c.end(ctx, c.exchange(ctx, http.MethodGet, "", nil, into, intoKind))
}

// List implements Reader.
func (d *direct) List(ctx context.Context, list ObjectList, opts ...ListOption) error {
	gvk, err := itemKindOf(d.scheme, list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	o := ResolveList(opts)
	c, err := d.begin(ctx, VerbList, gvk, ObjectKey{Namespace: o.Namespace}, "")
	if err == nil {
		err = o.Err()
	}
	if err != nil {
		return c.end(ctx, err)
	}
	setListQuery(c.query, &o)
	listKind := gvk
	listKind.Kind += "List"
	err = c.exchange(ctx, http.MethodGet, "", nil, list, listKind)
	if err == nil {
		c.Object, c.ResourceVersion, c.Items = nil, list.GetResourceVersion(), meta.LenList(list)
	}
	return c.end(ctx, err)
}

// setListQuery writes what o selects into a query.
func setListQuery(q url.Values, o *ListOptions) {
	if o.LabelSelector != nil && !o.LabelSelector.Empty() {
		q.Set("labelSelector", o.LabelSelector.String())
	}
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		q.Set("fieldSelector", o.FieldSelector.String())
	}
	if o.Limit > 0 {
		q.Set("limit", strconv.FormatInt(o.Limit, 10))
	}
	if o.Continue != "" {
		q.Set("continue", o.Continue)
	}
}

// newLike is an empty object of obj's type and kind.
func newLike(obj runtime.Object, gvk schema.GroupVersionKind) runtime.Object {
	fresh := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
	fresh.GetObjectKind().SetGroupVersionKind(gvk)
	return fresh
}
