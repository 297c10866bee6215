// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Refusals lets the requests that the roles do not allow through, and notes them.
// It is safe for concurrent use.
type Refusals struct {
	administrator http.RoundTripper

	mu      sync.Mutex
	missing map[string][]string // verbs by the groups and resources of a marker
}

// NewRefusals returns an empty list. What is refused is sent again by the administrator's way.
func NewRefusals(administrator http.RoundTripper) *Refusals {
	return &Refusals{administrator: administrator, missing: map[string][]string{}}
}

// Wrap returns the way of the operator under its roles.
func (f *Refusals) Wrap(next http.RoundTripper) http.RoundTripper { return &underRole{next, f} }

// underRole is the operator's way to the control plane.
type underRole struct {
	http.RoundTripper
	refusals *Refusals
}

// RoundTrip implements http.RoundTripper.
func (u *underRole) RoundTrip(r *http.Request) (*http.Response, error) {
	again := r.Clone(r.Context())
	if r.Body != nil {
		content, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body, again.Body = io.NopCloser(bytes.NewReader(content)), io.NopCloser(bytes.NewReader(content))
	}
	resp, err := u.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusForbidden {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	what, verb := refused(body)
	if verb == "" {
		resp.Body = io.NopCloser(bytes.NewReader(body))
		return resp, nil
	}
	u.refusals.note(what, verb)
	resp, err = u.refusals.administrator.RoundTrip(again)
	if err == nil && verb == "patch" && resp.StatusCode == http.StatusCreated { // an apply that creates needs both
		u.refusals.note(what, "create")
	}
	return resp, err
}

// leases are what leader election needs.
const leases = "groups=coordination.k8s.io,resources=leases"

// refusal is what an authorizer says, in a status of any encoding.
var refusal = regexp.MustCompile(` cannot (\S+) resource \\?"([^"\\]+)\\?" in API group \\?"([^"\\]*)\\?"`)

// escalation is what the API server says of a Role or a binding that gives more rights than
// the operator has itself.
var escalation = regexp.MustCompile(`(role|clusterrole)(binding)?s\.rbac\.authorization\.k8s\.io .* is attempting to grant RBAC permissions not currently held`)

// refused returns what an authorizer refused, as the groups and resources of a
// marker, and the verb; that is empty when admission refused, with the same status.
func refused(body []byte) (what, verb string) {
	if said := escalation.FindSubmatch(body); said != nil {
		switch kind, binding := string(said[1]), len(said[2]) > 0; {
		case !binding:
			return "groups=rbac.authorization.k8s.io,resources=" + kind + "s", "escalate"
		case kind == "clusterrole":
			return "groups=rbac.authorization.k8s.io,resources=clusterroles", "bind"
		default:
			return "groups=rbac.authorization.k8s.io,resources=roles;clusterroles", "bind"
		}
	}
	said := refusal.FindSubmatch(body)
	if said == nil {
		return "", ""
	}
	return fmt.Sprintf("groups=%s,resources=%s", cmp.Or(string(said[3]), `""`), said[2]), string(said[1])
}

// note notes that a verb is missing.
func (f *Refusals) note(what, verb string) {
	verbs := []string{verb}
	switch {
	case verb == "list" || verb == "watch": // an informer needs both, and reads beside it get
		verbs = []string{"get", "list", "watch"}
	case strings.HasSuffix(what, ",resources=events"): // one that happens again is patched
		verbs = []string{"create", "patch"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, verb := range verbs {
		if !slices.Contains(f.missing[what], verb) {
			f.missing[what] = append(f.missing[what], verb)
		}
	}
}

// Advice says what to add for the requests that were refused; empty for none.
func (f *Refusals) Advice() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(f.missing)) {
		if what != leases {
			lines = append(lines, fmt.Sprintf("\t// +kubebuilder:rbac:%s,verbs=%s", what, strings.Join(f.missing[what], ";")))
		}
	}
	if len(lines) > 0 {
		lines = slices.Insert(lines, 0, "Add these markers above Reconcile and run `steer generate`:")
	}
	if slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasSuffix(line, "=bind") || strings.HasSuffix(line, "=escalate")
	}) {
		lines = append(lines, "The verbs bind and escalate let the operator give rights that it does not have itself: give it those rights instead, or name the roles with resourceNames.")
	}
	if len(f.missing[leases]) > 0 {
		lines = append(lines, "Leader election has a Role of its own, which `steer generate` makes in a project, and `steer generate rbac:roleName=NAME,leaderElection=true` elsewhere.")
	}
	return strings.Join(lines, "\n")
}
