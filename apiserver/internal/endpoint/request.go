// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Request is an API request, parsed and routed.
type Request struct {
	resource.Request
	// HTTP is the request as it was received.
	HTTP *http.Request
	// Info of its path.
	Info exchange.RequestInfo
	// Served is the resource that the path names, and Sub its subresource; nil if there
	// is none.
	Served *registry.Served
	Sub    *resource.Subresource
	// Elsewhere reports that another server serves the version.
	Elsewhere bool
	values    url.Values // see Query
	body      []byte     // nil until readBody
}

// Query returns the query, parsed on first use.
func (r *Request) Query() url.Values {
	if r.values == nil {
		r.values = r.HTTP.URL.Query()
	}
	return r.values
}

// hasQuery reports whether the URL has a query.
func (r *Request) hasQuery() bool { return r.HTTP.URL.RawQuery != "" }

// ReadParameter returns a parameter of the query if [Request.Query] was called before,
// and "" otherwise.
func (r *Request) ReadParameter(name string) string { return r.values.Get(name) }

// Retry returns a copy of the request as it was received, to be routed and answered
// again. Its warnings are kept.
func (r *Request) Retry() *Request {
	return &Request{Request: resource.Request{Path: r.Path, RawQuery: r.RawQuery, UserAgent: r.UserAgent, User: r.User, Warnings: r.Warnings}, HTTP: r.HTTP, Info: r.Info, body: r.body}
}

// LongRunning reports whether a request has no time limit: a watch or a connection. What it
// is depends on what it names alone: a header Upgrade makes no request long.
func (r *Request) LongRunning() bool {
	if r.Verb == "watch" {
		return true
	}
	if r.Elsewhere {
		return connects(r.Subresource)
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

// AnyRevision reports whether a request reads with resourceVersion=0: a state that the
// server has had for some time is good enough.
func (r *Request) AnyRevision() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return strings.Contains(r.HTTP.URL.RawQuery, "resourceVersion=0") && r.Query().Get("resourceVersion") == "0"
	}
	return false
}

// connects reports whether a subresource is by its name one of those whose requests last, for
// what another server serves.
func connects(subresource string) bool {
	switch subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return true
	}
	return false
}

func (r *Request) offer() negotiation.Offer {
	return negotiation.Offer{Protobuf: r.Version.Protobuf(), Shapes: true, Stream: r.Verb == "watch"}
}

// negotiate chooses the representation of the answer. The paths of built-in kinds look at the
// media types alone first, and have an error of their own where none is known.
func (r *Request) negotiate(offer negotiation.Offer) (negotiation.Choice, error) {
	choice, err := negotiation.Output(r.HTTP, offer)
	if err == nil || !r.Version.Typed() {
		return choice, err
	}
	known := negotiation.Accepted(negotiation.Offer{})
	for part := range strings.SplitSeq(r.HTTP.Header.Get("Accept"), ",") {
		if media, _, _ := strings.Cut(part, ";"); slices.Contains(known, strings.TrimSpace(media)) {
			return choice, err
		}
	}
	types := strings.Join(known, ", ") + ", " + strings.Join(negotiation.Accepted(negotiation.Offer{Stream: true}), ", ")
	return choice, Refusal(http.StatusNotAcceptable, "406: Not Acceptable\n\nAvailable representations: "+types)
}

// answerOffer returns the representations in which a request can be answered.
func (r *Request) answerOffer() negotiation.Offer {
	offer := r.offer()
	if r.Sub != nil && r.Sub.Scale != nil {
		offer.Protobuf = true
	}
	return offer
}

func (r *Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Info.Group, Resource: r.Info.Plural}
}
