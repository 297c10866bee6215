// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard lets through the requests of who the API server says may get a path.
package guard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/internal/answers"
)

const (
	// Answers are remembered for so long: a scraper asks every few seconds.
	rememberAllowed = time.Minute
	rememberDenied  = 10 * time.Second
	// maxRemembered bounds the answers that let through, and the others apart.
	maxRemembered = 1024
	reviewTimeout = 10 * time.Second
)

// Guard lets through who the API server says may: it asks whose bearer token it
// is (TokenReview) and whether they may do so to the path (SubjectAccessReview).
type Guard struct {
	client client.Client
	next   http.Handler
	log    *slog.Logger
	// answers are HTTP statuses; http.StatusOK lets through.
	answers *answers.Cache[key, int]
}

// question is what the API server is asked: may the holder of a token use a verb on a path.
type question struct{ token, verb, path string }

// key is the hash of a question: tokens are not kept, nor long paths.
type key = [sha256.Size]byte

func (q question) key() key {
	h := sha256.New()
	for _, part := range []string{q.token, q.verb, q.path} {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash never fails
		_, _ = io.WriteString(h, part)                                        // as above
	}
	return key(h.Sum(nil))
}

// New returns the guard of a handler. c writes the reviews: its scheme has their kinds, see
// [AddToScheme].
func New(c client.Client, next http.Handler, log *slog.Logger) *Guard {
	return &Guard{client: c, next: next, log: log, answers: answers.New[key, int](maxRemembered)}
}

// ServeHTTP implements http.Handler.
func (g *Guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		http.Error(w, "a bearer token is needed: use the token of a service account that may get the path", http.StatusUnauthorized)
		return
	}
	q := question{token, strings.ToLower(r.Method), r.URL.Path}
	status, err := g.answers.Get(r.Context(), q.key(), func(ctx context.Context) (answers.Answer[int], error) {
		status, err := g.ask(ctx, q)
		if status == http.StatusOK {
			return answers.Answer[int]{Value: status, Good: true, For: rememberAllowed}, err
		}
		return answers.Answer[int]{Value: status, For: rememberDenied}, err
	})
	switch {
	case errors.Is(err, answers.ErrBusy):
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	case err != nil:
		g.log.Warn("a request could not be judged", "path", q.path, "error", err, "advice",
			cmp.Or(wire.Advice(err), "the service account needs create on tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io"))
		http.Error(w, "the API server could not be asked who you are", http.StatusInternalServerError)
		return
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
func (g *Guard) ask(ctx context.Context, q question) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	who := &tokenReview{}
	who.Spec.Token = q.token
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
