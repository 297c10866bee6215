// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Custom tells which custom resources are served.
type Custom interface {
	Resources() []*resource.Resource
	// Generation changes with every change of them.
	Generation() uint64
}

// Controller keeps a service for every version in which custom resources are
// served, and says of all services whether they are available.
type Controller struct {
	custom     Custom
	generation uint64
	// desired are the versions of custom resources by the names of their services;
	// nil: not looked at yet.
	desired map[string]schema.GroupVersion
	// remote are the services that other servers are said to serve.
	remote step.KeySet
	due    step.KeySet
}

var _ step.Controller = (*Controller)(nil)

// NewController returns a controller that has seen nothing yet.
func NewController(custom Custom) *Controller {
	return &Controller{custom: custom, remote: step.KeySet{}, due: step.KeySet{}}
}

// Name implements [step.Controller].
func (*Controller) Name() string { return "apiservice-registration-controller" }

// Reset implements [step.Controller].
func (c *Controller) Reset(view storage.View) {
	*c = *NewController(c.custom)
	for rec := range view.Ascend(Bucket, "", "") {
		c.see(rec)
	}
}

// Observe implements [step.Controller].
func (c *Controller) Observe(e storage.Event) {
	switch e.Record.Key.Bucket {
	case Bucket:
		delete(c.remote, e.Record.Key)
		if e.Deleted {
			c.due.Add(e.Record.Key)
		} else {
			c.see(e.Record)
		}
	case serviceBucket, sliceBucket:
		for key := range c.remote {
			c.due.Add(key)
		}
	}
}

func (c *Controller) see(rec *storage.Record) {
	if remote(rec) != nil {
		c.remote.Add(rec.Key)
	} else if settled(rec) {
		return
	}
	c.due.Add(rec.Key)
}

// settled tells of most services, without decoding them, that they call for
// nothing.
func settled(rec *storage.Record) bool {
	return bytes.Contains(rec.Value, []byte(`"reason":"`+localReason+`","message":"`+localMessage+`"`)) &&
		!bytes.Contains(rec.Value, []byte(`"`+automanaged+`":"`+always+`"`))
}

// Step implements [step.Controller].
func (c *Controller) Step(view storage.View, now time.Time) []step.Request {
	c.follow()
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

// Report implements [step.Controller].
func (c *Controller) Report(r step.Request, err error) {
	if err != nil {
		c.due.Add(r.Subject.Key)
	}
}

// follow notes which versions of custom resources there are, if that has changed.
func (c *Controller) follow() {
	now := c.custom.Generation()
	if c.desired != nil && c.generation == now {
		return
	}
	before := c.desired
	c.desired, c.generation = map[string]schema.GroupVersion{}, now
	for _, gv := range versions(c.custom.Resources()) {
		c.desired[name(gv)] = gv
		if _, known := before[name(gv)]; !known {
			c.due.Add(storage.Key{Bucket: Bucket, Name: name(gv)})
		}
	}
	for name := range before {
		if _, still := c.desired[name]; !still {
			c.due.Add(storage.Key{Bucket: Bucket, Name: name})
		}
	}
}

// look returns what one service calls for.
func (c *Controller) look(view storage.View, key storage.Key, now time.Time) []step.Request {
	gv, wanted := c.desired[key.Name]
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
	state := locally()
	if s.Spec.Service != nil {
		state = availability(view, s)
	}
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
