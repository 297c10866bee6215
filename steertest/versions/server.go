// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/trace"
)

// patience bounds one request.
const patience = 30 * time.Second

// Server is an API server, asked with the rights of a configuration's user. It is safe for
// concurrent use.
type Server struct {
	resources

	conn *wire.Conn
}

// Connect asks a server what it serves.
func Connect(ctx context.Context, config *rest.Config) (*Server, error) {
	conn, err := wire.New(config, wire.Options{})
	if err != nil {
		return nil, err
	}
	s := &Server{conn: conn}
	s.resources, err = mapping.New(conn).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask %s what it serves: %w", config.Host, err)
	}
	return s, nil
}

// At implements [Source] by exact lists of one object, which every API server answers while
// it has the revision.
func (s *Server) At(ctx context.Context, object trace.Object, revision int64) (map[string]any, error) {
	r, ok := s.of(object.Group, object.Kind)
	if !ok {
		return nil, fmt.Errorf("the server does not serve %s", object.Kind)
	}
	query := url.Values{"fieldSelector": {"metadata.name=" + object.Name}}
	if revision > 0 {
		query.Set("resourceVersion", strconv.FormatInt(revision, 10))
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := s.conn.Do(ctx, wire.Request{Verb: "list", Method: http.MethodGet, Path: r.Path(object.Namespace, "", ""), Query: query, Accept: wire.JSON})
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return nil, ErrForgotten
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("versions are read by lists: %w; a rule with the verb list on %s allows it", err, r.GVR.GroupResource())
	case err != nil:
		return nil, err
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return nil, fmt.Errorf("list %s: %w", r.GVR.Resource, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return list.Items[0], nil
}

// All implements [Source]. Lists that are refused are named.
func (s *Server) All(ctx context.Context, namespace string) (all []Object, missing []string) {
	seen := map[string]bool{}
	for _, r := range s.resources {
		of := r.GVR.GroupResource().String()
		if seen[of] || !r.Can("list") || r.GVR.Resource == "events" || namespace != "" && !r.Namespaced {
			continue
		}
		seen[of] = true
		limited, cancel := context.WithTimeout(ctx, patience)
		answer, err := s.conn.Do(limited, wire.Request{Verb: "list", Method: http.MethodGet, Path: r.Path(namespace, "", ""), Query: url.Values{"limit": {"5000"}}, Accept: wire.JSON})
		cancel()
		var list struct {
			Metadata struct{ Continue string }
			Items    []map[string]any
		}
		if err == nil {
			err = json.Unmarshal(answer.Body, &list)
		}
		switch {
		case apierrors.IsForbidden(err):
			missing = append(missing, of+": there is no right to list them")
		case err != nil:
			missing = append(missing, of+": "+err.Error())
		case list.Metadata.Continue != "":
			missing = append(missing, of+": there are more than 5000")
		}
		for _, item := range list.Items {
			metadata, _ := item["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			in, _ := metadata["namespace"].(string)
			all = append(all, Object{trace.Object{Group: r.GVK.Group, Kind: r.GVK.Kind, Namespace: in, Name: name}, item})
		}
	}
	return all, missing
}

// Notes implements [Source].
func (s *Server) Notes(ctx context.Context) (items []notes.Note, why string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := s.conn.Do(ctx, wire.Request{Verb: "get", Method: http.MethodGet, Path: notes.Path, Accept: wire.JSON})
	switch {
	case apierrors.IsNotFound(err):
		return nil, "this server does not note who wrote a revision, as steer up and steer dev do"
	case apierrors.IsForbidden(err):
		return nil, "who wrote a revision is told to users with the right to get the nonResourceURL " + notes.Path
	case err != nil:
		return nil, "the server did not say who wrote a revision: " + err.Error()
	}
	var list notes.List
	if err := json.Unmarshal(answer.Body, &list); err != nil {
		return nil, "the server did not say who wrote a revision: " + err.Error()
	}
	if list.KnownFrom == "" {
		return nil, "the server has no notes: they are of the writes since it was started"
	}
	return list.Items, ""
}
