// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/crd"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// Controller keeps a service for every version in which custom resources are
// served, and says of those of this server that they are available.
type Controller struct {
	// served are the versions of the custom resources of each definition, by its
	// name, and defined how many definitions have a version, by the name of its
	// service.
	served  map[string][]schema.GroupVersion
	defined map[string]int
	due     step.KeySet
}

var _ step.Controller = (*Controller)(nil)

// NewController returns a controller that has seen nothing yet.
func NewController() *Controller {
	return &Controller{served: map[string][]schema.GroupVersion{}, defined: map[string]int{}, due: step.KeySet{}}
}

// Name implements [step.Controller].
func (*Controller) Name() string { return "apiservice-registration-controller" }

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	*c = *NewController()
	for rec := range view.Ascend(crd.Bucket, "", "") {
		c.define(rec.Key.Name, versionsOf(rec))
	}
	for rec := range view.Ascend(Bucket, "", "") {
		c.see(rec)
	}
}

// Filter implements [step.Controller].
func (c *Controller) Filter(e storage.Event) bool {
	return e.Record.Key.Bucket == Bucket || e.Record.Key.Bucket == crd.Bucket
}

// Handle implements [step.Controller].
func (c *Controller) Handle(e storage.Event) {
	switch e.Record.Key.Bucket {
	case Bucket:
		if e.Deleted {
			c.due.Add(e.Record.Key)
		} else {
			c.see(e.Record)
		}
	case crd.Bucket:
		var served []schema.GroupVersion
		if !e.Deleted {
			served = versionsOf(e.Record)
		}
		c.define(e.Record.Key.Name, served)
	}
}

func (c *Controller) see(rec *storage.Record) {
	if !settled(rec) {
		c.due.Add(rec.Key)
	}
}

// settled reports of most services, without decoding them, that they call for
// nothing.
func settled(rec *storage.Record) bool {
	return bytes.Contains(rec.Value, []byte(`"reason":"`+localReason+`","message":"`+localMessage+`"`)) &&
		!bytes.Contains(rec.Value, []byte(`"`+automanaged+`":"`+always+`"`))
}

// Sync implements [step.Controller].
func (c *Controller) Sync(view storage.View, now time.Time) []step.Request {
	if len(c.due) == 0 {
		return nil
	}
	var out []step.Request
	for _, key := range c.due.Sorted() {
		out = append(out, c.look(view, key, now)...)
	}
	clear(c.due)
	return out
}

// Done implements [step.Controller].
func (c *Controller) Done(r step.Request, err error) {
	if err != nil {
		c.due.Add(r.Subject.Key)
	}
}

// define notes which versions a definition serves; none: there is no such
// definition.
func (c *Controller) define(definition string, served []schema.GroupVersion) {
	if slices.Equal(c.served[definition], served) {
		return
	}
	for _, gv := range c.served[definition] {
		c.count(gv, -1)
	}
	for _, gv := range served {
		c.count(gv, 1)
	}
	if c.served[definition] = served; len(served) == 0 {
		delete(c.served, definition)
	}
}

func (c *Controller) count(gv schema.GroupVersion, n int) {
	c.due.Add(storage.Key{Bucket: Bucket, Name: name(gv)})
	if c.defined[name(gv)] += n; c.defined[name(gv)] == 0 {
		delete(c.defined, name(gv))
	}
}

// versionsOf returns the versions that a stored definition serves. Schemas can be
// large: it reads no more than it needs.
func versionsOf(rec *storage.Record) []schema.GroupVersion {
	spec := jsontext.Raw(rec.Value, "spec")
	group := text(jsontext.Raw(spec, "group"))
	var out []schema.GroupVersion
	for v := range jsontext.Elements(jsontext.Raw(spec, "versions")) {
		if string(jsontext.Raw(v, "served")) == "true" {
			out = append(out, schema.GroupVersion{Group: group, Version: text(jsontext.Raw(v, "name"))})
		}
	}
	return out
}

// text is what a JSON string without escapes says, as all names are.
func text(value []byte) string { return strings.Trim(string(value), `"`) }

// look returns what one service calls for.
func (c *Controller) look(view storage.View, key storage.Key, now time.Time) []step.Request {
	version, group, _ := strings.Cut(key.Name, ".")
	gv, wanted := schema.GroupVersion{Group: group, Version: version}, c.defined[key.Name] > 0
	rec := view.Get(key)
	if rec == nil {
		if wanted {
			return []step.Request{create(key, gv)}
		}
		return nil
	}
	s := decode(rec)
	if s == nil || s.DeletionTimestamp != nil {
		return nil
	}
	if s.Labels[automanaged] == always {
		switch {
		case !wanted:
			return []step.Request{remove(key, s)}
		case !equality.Semantic.DeepEqual(s.Spec, spec(gv)):
			s.Spec = spec(gv)
			return []step.Request{put(key, "", s)}
		}
	}
	if s.Spec.Service != nil {
		return nil // see [Availability]
	}
	state := locally()
	state.LastTransitionTime = metav1.NewTime(now)
	if !setCondition(s, state) {
		return nil
	}
	return []step.Request{put(key, "/status", s)}
}

// create returns the request that creates the service of a version of custom
// resources.
func create(key storage.Key, gv schema.GroupVersion) step.Request {
	body, err := json.Marshal(&v1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: key.Name, Labels: map[string]string{automanaged: always}},
		Spec:       spec(gv),
	})
	if err != nil {
		panic("apiservice: " + err.Error()) // there is nothing in it that cannot be encoded
	}
	return step.Request{
		User: step.APIServer, Method: http.MethodPost, Path: "/apis/" + apiVersion + "/" + plural,
		ContentType: step.JSON, Body: body, Subject: step.Subject{Key: key},
	}
}

// remove returns the request that deletes a service, if it is still that one.
func remove(key storage.Key, s service) step.Request {
	options := `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"` + string(s.UID) + `"}}`
	return step.Delete(step.APIServer, path(key.Name), []byte(options), step.Subject{Key: key})
}
