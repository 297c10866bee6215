// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Request is an API request with what the server has found out about it.
type Request struct {
	resource.Request
	// HTTP is the request as it came.
	HTTP *http.Request
	// Target of its path.
	Target exchange.Target
	// Served is the resource that the path names, and Sub its subresource; nil when
	// there is none.
	Served *registry.Served
	Sub    *resource.Subresource
	values url.Values // of the query; see Query
	body   []byte     // as read; nil before
}

// Query returns the parsed query; it parses once.
func (r *Request) Query() url.Values {
	if r.values == nil {
		r.values = r.HTTP.URL.Query()
	}
	return r.values
}

// asks reports whether there is a query.
func (r *Request) asks() bool { return r.HTTP.URL.RawQuery != "" }

// Asked returns a parameter of the query that was read; empty when nobody has
// looked at the query.
func (r *Request) Asked(name string) string { return r.values.Get(name) }

// Again returns a request as it came, to be answered anew. Its warnings are kept.
func (r *Request) Again() *Request {
	return &Request{Request: resource.Request{Path: r.Path, UserAgent: r.UserAgent, User: r.User, Warnings: r.Warnings}, HTTP: r.HTTP, Target: r.Target, body: r.body}
}

// LongRunning reports whether a request may take as long as it likes.
func (r *Request) LongRunning() bool {
	if r.Verb == "watch" {
		return true
	}
	if r.Served == nil {
		return false
	}
	backend := r.Served.Backend
	if r.Sub != nil {
		backend = r.Sub.Backend
	}
	_, ok := backend.(resource.Connecter)
	return ok
}

func (r *Request) offer() negotiate.Offer {
	return negotiate.Offer{Protobuf: r.Version.Typed(), Shapes: true, Stream: r.Verb == "watch"}
}

// negotiate chooses the form of the answer.
func (r *Request) negotiate(offer negotiate.Offer) (negotiate.Choice, error) {
	choice, err := negotiate.Output(r.HTTP, offer)
	if err != nil && r.Version.Typed() {
		if offer.Stream { // what only objects have, YAML, gets as far as the watch
			one := offer
			one.Stream = false
			if _, wrong := negotiate.Output(r.HTTP, one); wrong == nil {
				return choice, err
			}
		}
		types := strings.Join(negotiate.Accepted(negotiate.Offer{}), ", ") + ", " + strings.Join(negotiate.Accepted(negotiate.Offer{Stream: true}), ", ")
		return choice, Refusal(http.StatusNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+types)
	}
	return choice, err
}

// answerOffer is what a request can be answered with.
func (r *Request) answerOffer() negotiate.Offer {
	offer := r.offer()
	if r.Sub != nil && r.Sub.Scale != nil {
		offer.Protobuf = true
	}
	return offer
}

func (r *Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Target.Group, Resource: r.Target.Plural}
}
