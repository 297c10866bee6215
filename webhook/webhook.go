// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook serves the admission and conversion webhooks of an operator. One
// line each, beside controller.Add:
//
//	err := webhook.AddDefaulter(m, &CronTabDefaulter{})   // /mutate-stable-example-com-v1-crontab
//	err = webhook.AddValidator(m, &CronTabValidator{})    // /validate-stable-example-com-v1-crontab
//	err = webhook.AddConversion(m, &v1.CronTab{})         // /convert
//	err = webhook.AddHandler(m, "/mutate--v1-pod", h)     // any kind and subresource
//
// The type of a kind may itself be the [Defaulter] or [Validator]. Paths, metrics and
// flags are those of kubebuilder projects, so that their manifests stay.
//
// Webhooks run on every replica, from before the caches are synced until [Options.Drain]
// after the manager was told to stop. What they read comes from the manager's client; a
// replica that does not lead cannot write with it.
package webhook

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/webhook/conversion"
)

// Manager is the process that serves the webhooks; *manager.Manager is one.
type Manager interface {
	// Webhooks returns the server of the manager's webhooks.
	Webhooks() *Server
}

// Option of a webhook.
type Option func(*settings)

type settings struct{ path string }

// Path serves the webhook at another path than that of kubebuilder projects.
func Path(path string) Option { return func(s *settings) { s.path = path } }

func settingsOf(options []Option, path string) settings {
	s := settings{path}
	for _, option := range options {
		option(&s)
	}
	return s
}

// AddDefaulter serves a defaulter of the objects of a kind, which is that of the
// parameter of Default, at the path /mutate-GROUP-VERSION-KIND.
func AddDefaulter[T Object](m Manager, d Defaulter[T], options ...Option) error {
	s := m.Webhooks()
	kind, err := kindOf[T](s)
	if err == nil {
		err = s.handle(settingsOf(options, pathOf("mutate", kind.gvk)).path, defaulting[T]{kind, d, s.opts.OnMistake})
	}
	if err != nil {
		return fmt.Errorf("add defaulter %T: %w", d, err)
	}
	return nil
}

// AddValidator serves a validator of the objects of a kind, which is that of the
// parameters of its methods, at the path /validate-GROUP-VERSION-KIND.
func AddValidator[T Object](m Manager, v Validator[T], options ...Option) error {
	s := m.Webhooks()
	kind, err := kindOf[T](s)
	if err == nil {
		err = s.handle(settingsOf(options, pathOf("validate", kind.gvk)).path, validating[T]{kind, v})
	}
	if err != nil {
		return fmt.Errorf("add validator %T: %w", v, err)
	}
	return nil
}

// AddHandler serves a handler of any requests: of kinds without a Go type, of several
// kinds, of subresources. The path is that of the webhook's clientConfig.
func AddHandler(m Manager, path string, h Handler) error {
	if err := m.Webhooks().handle(path, h); err != nil {
		return fmt.Errorf("add webhook handler %T: %w", h, err)
	}
	return nil
}

// AddConversion serves the conversion of a kind between its versions, at the path
// /convert, which all kinds share. The others of its versions that the scheme knows
// must be conversion.Convertible.
func AddConversion(m Manager, hub conversion.Hub) error {
	s := m.Webhooks()
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, err := s.converter.Add(hub)
	if err != nil {
		return fmt.Errorf("add %w", err)
	}
	s.converted = append(s.converted, kind)
	if len(s.converted) == 1 {
		s.serve(conversionPath, http.HandlerFunc(s.serveConversion))
	}
	return nil
}

const conversionPath = "/convert"

// pathOf is the path that kubebuilder projects use.
func pathOf(verb string, gvk schema.GroupVersionKind) string {
	return "/" + verb + "-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}
