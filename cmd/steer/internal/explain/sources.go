// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

const (
	// patience bounds one request, maxAnswer the bytes of what is read from an operator.
	patience  = 30 * time.Second
	maxAnswer = 256 << 20
	// maxLine bounds one record in a file or of an operator.
	maxLine = 1 << 20
)

// server is the API server that a kubeconfig names.
type server struct {
	conn      *wire.Conn
	resources []mapping.Resource
}

func connect(ctx context.Context, config *rest.Config) (*server, error) {
	conn, err := wire.New(config, wire.Options{})
	if err != nil {
		return nil, err
	}
	s := &server{conn: conn}
	s.resources, err = mapping.New(conn).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask %s what it serves: %w", config.Host, err)
	}
	return s, nil
}

// resource finds one by a name that kubectl takes: plural, singular, short or kind, with
// the group or without.
func (s *server) resource(name string) (mapping.Resource, error) {
	plain, group, grouped := strings.Cut(strings.ToLower(name), ".")
	for _, r := range s.resources {
		if grouped && r.GVR.Group != group && r.GVR.Version+"."+r.GVR.Group != group {
			continue
		}
		if plain == r.GVR.Resource || plain == r.Singular || plain == strings.ToLower(r.GVK.Kind) || slices.Contains(r.ShortNames, plain) {
			return r, nil
		}
	}
	return mapping.Resource{}, fmt.Errorf("the server doesn't have a resource type %q", name)
}

// of returns the resource of a kind.
func (s *server) of(group, kind string) (mapping.Resource, bool) {
	i := slices.IndexFunc(s.resources, func(r mapping.Resource) bool { return r.GVK.Group == group && r.GVK.Kind == kind })
	if i < 0 {
		return mapping.Resource{}, false
	}
	return s.resources[i], true
}

func (s *server) plural(group, kind string) string {
	r, _ := s.of(group, kind)
	return r.GVR.Resource
}

// At implements [chain.Server] by exact lists of one object, which every API server
// answers while it has the revision.
func (s *server) At(ctx context.Context, object trace.Object, revision int64) (map[string]any, error) {
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
		return nil, chain.ErrForgotten
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

// all lists the objects of a namespace, or with an empty one all, and says what it could
// not list.
func (s *server) all(ctx context.Context, namespace string) (all []chain.Object, missing []string) {
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
			all = append(all, chain.Object{Object: trace.Object{Group: r.GVK.Group, Kind: r.GVK.Kind, Namespace: in, Name: name}, Content: item})
		}
	}
	return all, missing
}

// notes asks who wrote what; if the server does not say, why is in words.
func (s *server) notes(ctx context.Context) (items []notes.Note, why string) {
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

// records are those of operators.
type records struct {
	dirs []*recording.Reader
	all  []trace.Record // of files and running operators
	none bool
	warn func(error)
	// known are the answers of earlier calls: an answer asks for an object again and again.
	known map[trace.Object][]trace.Record
}

// openRecords opens directories of --record-dir, files of JSON lines, and the addresses
// of running operators.
func openRecords(ctx context.Context, places []string, warn func(error)) (*records, error) {
	out := &records{none: len(places) == 0, warn: warn, known: map[trace.Object][]trace.Record{}}
	for _, place := range places {
		if strings.HasPrefix(place, "http://") || strings.HasPrefix(place, "https://") {
			if err := out.follow(ctx, place); err != nil {
				return nil, err
			}
			continue
		}
		info, err := os.Stat(place)
		switch {
		case err != nil:
			return nil, fmt.Errorf("records: %w", err)
		case info.IsDir():
			reader, err := recording.Open(place)
			if err != nil {
				return nil, err
			}
			out.dirs = append(out.dirs, reader)
		default:
			file, err := os.Open(place)
			if err != nil {
				return nil, err
			}
			err = out.read(file, place)
			_ = file.Close() // it was read
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// follow reads what a running operator has.
func (r *records) follow(ctx context.Context, address string) error {
	if !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"), "/") {
		address += "/debug/reconciles"
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("records: %w: an operator serves them with --pprof-bind-address", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("records: %s: %s", address, answer.Status)
	}
	return r.read(answer.Body, address)
}

// read reads JSON lines.
func (r *records) read(from io.Reader, name string) error {
	lines := bufio.NewScanner(io.LimitReader(from, maxAnswer))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var record trace.Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return fmt.Errorf("records: line %d of %s is no record: %w", n, name, err)
		}
		r.all = append(r.all, record)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("records: %s: %w", name, err)
	}
	return nil
}

// about returns the records about an object as they were at the first call.
func (r *records) about(object trace.Object) []trace.Record {
	found, ok := r.known[object]
	if !ok {
		found = r.find(object)
		r.known[object] = found
	}
	return found
}

func (r *records) find(object trace.Object) (found []trace.Record) {
	for _, dir := range r.dirs {
		for record, err := range dir.Of(object) {
			if err != nil {
				r.warn(err)
				continue
			}
			found = append(found, record)
		}
	}
	for i := range r.all {
		if recording.About(&r.all[i], object) {
			found = append(found, r.all[i])
		}
	}
	return found
}

// errArguments says how objects are named.
var errArguments = errors.New("name one object, as deploy/web or deployment web")
