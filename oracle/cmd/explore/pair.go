// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/controlplane"
)

// request is one that both servers get.
type request struct {
	method, target string
	// header is one of the request, or none.
	header string
	body   map[string]any
	// list is the body where that is a list.
	list []any
	// how says what was changed.
	how []string
}

func (r *request) text() string {
	head := r.method + " " + r.target + "\n"
	if r.header != "" {
		head += r.header + "\n"
	}
	var content any
	switch {
	case r.list != nil:
		content = r.list
	case r.body != nil:
		content = r.body
	default:
		return head
	}
	body, err := yaml.Marshal(content)
	if err != nil {
		panic(err) // it came from YAML
	}
	return head + "\n" + string(body)
}

// pair is the two servers.
type pair struct {
	kubernetes, steer *wiretest.Target
	// given are the addresses and ports that the servers have chosen, in pairs: of
	// kube-apiserver and of Steer.
	given []string
}

// chosen finds what a server may choose in an answer.
var chosen = regexp.MustCompile(`(?m)^ *(?:- )?(?:clusterIP|nodePort|healthCheckNodePort): (10\.0\.0\.\d+|3\d{4})$`)

// learn notes what the servers have chosen for the same object.
func (p *pair) learn(want, got string) {
	x, y := chosen.FindAllStringSubmatch(want, -1), chosen.FindAllStringSubmatch(got, -1)
	for i := range min(len(x), len(y)) {
		if x[i][1] != y[i][1] {
			p.given = append(p.given, x[i][1], y[i][1])
		}
	}
}

// ask sends the request to both and returns the normalised answers.
func (p *pair) ask(ctx context.Context, r *request) (want, got string, err error) {
	data := []byte("-- r --\n" + r.text())
	for _, side := range []struct {
		target *wiretest.Target
		answer *string
	}{{p.kubernetes, &want}, {p.steer, &got}} {
		script, err := wiretest.Parse("explore", data)
		if err != nil {
			return "", "", err
		}
		answers, err := side.target.Run(ctx, script)
		if err != nil {
			return "", "", err
		}
		text := onPurpose.ReplaceAllString(r.plain(answers[0].Text), "")
		if strings.Contains(r.target, "/customresourcedefinitions") {
			text = namesAccepted.ReplaceAllString(text, "")
		}
		*side.answer = text
	}
	for i := 0; i < len(p.given); i += 2 {
		for j, answer := range []*string{&want, &got} {
			whole := regexp.MustCompile(`\b` + regexp.QuoteMeta(p.given[i+j]) + `\b`)
			*answer = whole.ReplaceAllString(*answer, fmt.Sprintf("<chosen %d>", i/2))
		}
	}
	return want, got, nil
}

// onPurpose is what Steer says beside the answer where it does not do what it is told.
var onPurpose = regexp.MustCompile(`(?m)^Warning: 299 - "[^"]*(this server does not enforce them yet|does not pass requests on)[^"]*"\n`)

// namesAccepted is the status of a definition, which Steer settles at once, and
// kube-apiserver a moment after the write, unless that is a dry run.
var namesAccepted = regexp.MustCompile(`(?m)^status:\n([ -].*\n)*|^ *- kube-apiserver Update apiextensions\.k8s\.io/v1 /status .*\n`)

// plain replaces a name that a server has made up.
func (r *request) plain(answer string) string {
	metadata, _ := r.body["metadata"].(map[string]any)
	prefix, _ := metadata["generateName"].(string)
	if name, _ := metadata["name"].(string); prefix == "" || name != "" {
		return answer
	}
	made, err := regexp.Compile(regexp.QuoteMeta(prefix) + "[bcdfghjklmnpqrstvwxz2456789]{5}")
	if err != nil {
		return answer
	}
	return made.ReplaceAllString(answer, prefix+"<generated>")
}

// startSteer serves a plane as the conversations are replayed against: without
// controllers, which kube-apiserver goes without as well.
func startSteer(ctx context.Context) (*wiretest.Target, func() error, error) {
	keys, err := controlplane.NewKeys()
	if err != nil {
		return nil, nil, err
	}
	plane, err := controlplane.New(controlplane.Options{
		Disable: append(controlplane.Controllers(), "ServiceAccount"),
		Authentication: controlplane.Authentication{
			Keys:      keys,
			Tokens:    auth.Tokens{"admin": {Name: "admin", UID: "admin", Groups: []string{"system:masters"}}},
			Issuers:   []string{"https://127.0.0.1/"},
			KeySetURL: "https://127.0.0.1/openid/v1/jwks",
		},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := plane.Start(ctx); err != nil {
		return nil, nil, errors.Join(err, plane.Stop(context.WithoutCancel(ctx)))
	}
	server := httptest.NewServer(plane.Handler())
	stop := func() error {
		server.Close()
		return plane.Stop(context.WithoutCancel(ctx))
	}
	return &wiretest.Target{Client: server.Client(), Base: server.URL, Token: "admin"}, stop, nil
}
