// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	"github.com/steer-dev/steer/apiserver/discovery"
)

// Delegated is a version of a group that another server serves.
type Delegated struct {
	// Elsewhere is what discovery tells about it.
	discovery.Elsewhere
	// Handler answers all requests for the version, behind the whole chain.
	Handler http.Handler
}

// Delegate replaces the versions that other servers serve. What this server has of
// the same versions is not reached while they are listed. The group apiregistration
// of Kubernetes cannot be delegated, as it is where delegation is decided; listing
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
		t.discovery = t.documents()
	})
}

// elsewhere returns what answers a path of a delegated version, or nil.
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
