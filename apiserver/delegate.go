// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/openapi"
)

// Delegated is a group version that another server serves.
type Delegated struct {
	// Elsewhere is its entry in discovery.
	discovery.Elsewhere
	// OpenAPI are the URLs of all descriptions of version 3 that the server has, which Handler
	// answers, relative to the server, by what is described:
	// "apis/GROUP/VERSION": "/openapi/v3/apis/GROUP/VERSION?hash=HASH". Those of versions that this
	// server or other Delegated have are ignored. nil: there are none.
	OpenAPI map[string]string
	// Swagger is the description of version 2 of the server, which may describe other versions, too.
	// It is merged into that of this server. nil: there is none.
	Swagger *openapi.Swagger
	// Convert has this server make a description of version 3 of Swagger.
	Convert bool
	// Handler answers all requests for the version, after authentication, authorization
	// and the limits of this server.
	Handler http.Handler
}

// Delegate replaces the list of group versions that other servers serve. Resources of
// this server in these versions are not reachable while they are listed. The group
// apiregistration.k8s.io cannot be delegated, because APIServices live in it; listing
// it has no effect.
func (s *Server) Delegate(versions ...Delegated) {
	s.change(func(t *served) {
		t.delegated = map[string]Delegated{}
		for _, d := range versions {
			switch d.Group {
			case "apiregistration.k8s.io":
			case "":
				t.delegated["/api/"+d.Version] = d
			default:
				t.delegated["/apis/"+d.Group+"/"+d.Version] = d
			}
		}
		t.generation++
		t.discovery, t.openapi = t.documents(), t.descriptions()
	})
}

// Delegated returns the entries of the versions that other servers serve, in no order.
func (s *Server) Delegated() []discovery.Elsewhere {
	var out []discovery.Elsewhere
	for _, d := range s.table.Load().delegated {
		out = append(out, d.Elsewhere)
	}
	return out
}

// elsewhere returns the handler of a path in a delegated version, or nil.
func (t *served) elsewhere(path string) http.Handler {
	if len(t.delegated) == 0 {
		return nil
	}
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 4)
	depth := 3
	if parts[0] == "api" {
		depth = 2
	}
	if len(parts) < depth {
		return nil
	}
	return t.delegated["/"+strings.Join(parts[:depth], "/")].Handler
}
