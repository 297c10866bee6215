// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/wiretest"
	"github.com/steer-dev/steer/controlplane"
)

// request is one that both servers get.
type request struct {
	method, target string
	body           map[string]any
	// how says what was changed.
	how []string
}

func (r *request) text() string {
	body, err := yaml.Marshal(r.body)
	if err != nil {
		panic(err) // it came from YAML
	}
	return r.method + " " + r.target + "\n\n" + string(body)
}

// pair is the two servers.
type pair struct {
	reference, steer *wiretest.Target
}

// ask sends the request to both and returns the normalised answers.
func (p *pair) ask(ctx context.Context, r *request) (want, got string, err error) {
	data := []byte("-- r --\n" + r.text())
	for _, side := range []struct {
		target *wiretest.Target
		answer *string
	}{{p.reference, &want}, {p.steer, &got}} {
		script, err := wiretest.Parse("explore", data)
		if err != nil {
			return "", "", err
		}
		answers, err := side.target.Run(ctx, script)
		if err != nil {
			return "", "", err
		}
		*side.answer = r.plain(answers[0].Text)
	}
	return want, got, nil
}

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
// controllers, which the reference server goes without as well.
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
