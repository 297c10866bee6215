// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
)

const (
	// Answers are remembered for so long: a scraper asks every few seconds.
	rememberAllowed = time.Minute
	rememberDenied  = 10 * time.Second
	// maxRemembered bounds the answers; more forget them all.
	maxRemembered = 1024
	reviewTimeout = 10 * time.Second
)

// guard lets through who the API server says may: it asks whose bearer token it
// is (TokenReview) and whether they may do so to the path (SubjectAccessReview).
type guard struct {
	client client.Client
	next   http.Handler
	log    *slog.Logger

	mu      sync.Mutex
	answers map[question]answer
}

// question is what the API server is asked: may the holder of a token use a verb on a
// path. Only the hash of the token is kept.
type question struct {
	token      [sha256.Size]byte
	verb, path string
}

type answer struct {
	status int // http.StatusOK lets through
	until  time.Time
}

func newGuard(c client.Client, next http.Handler, log *slog.Logger) *guard {
	return &guard{client: c, next: next, log: log, answers: map[question]answer{}}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		http.Error(w, "a bearer token is needed: use the token of a service account that may get the path", http.StatusUnauthorized)
		return
	}
	q := question{sha256.Sum256([]byte(token)), strings.ToLower(r.Method), r.URL.Path}
	status, known := g.recall(q)
	if !known {
		var err error
		if status, err = g.ask(r.Context(), token, q); err != nil {
			g.log.Warn("a request to the metrics server could not be judged", "path", q.path, "error", err, "advice",
				cmp.Or(wire.Advice(err), "the service account needs create on tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io"))
			http.Error(w, "the API server could not be asked who you are", http.StatusInternalServerError)
			return
		}
		g.remember(q, status)
	}
	switch status {
	case http.StatusOK:
		g.next.ServeHTTP(w, r)
	case http.StatusForbidden:
		http.Error(w, "you may not "+q.verb+" "+q.path+": grant a ClusterRole with nonResourceURLs: ["+q.path+"]", status)
	default:
		http.Error(w, "the token is not accepted by the API server", status)
	}
}

// ask asks the API server.
func (g *guard) ask(ctx context.Context, token string, q question) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	who := &tokenReview{}
	who.Spec.Token = token
	if err := g.client.Create(ctx, who); err != nil {
		return 0, err
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	may := &accessReview{Spec: accessQuestion{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: user.Extra,
		NonResourceAttributes: accessPath{Path: q.path, Verb: q.verb},
	}}
	if err := g.client.Create(ctx, may); err != nil {
		return 0, err
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (g *guard) recall(q question) (status int, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, ok := g.answers[q]
	return a.status, ok && time.Now().Before(a.until)
}

func (g *guard) remember(q question, status int) {
	keep := rememberDenied
	if status == http.StatusOK {
		keep = rememberAllowed
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.answers) >= maxRemembered {
		clear(g.answers)
	}
	g.answers[q] = answer{status, time.Now().Add(keep)}
}
