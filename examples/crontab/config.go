// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab

import (
	"embed"
	"fmt"
	"time"
)

// Config holds the generated CRD, the webhook configurations and the sample, below
// "config".
//
//go:embed config/crd/bases/*.yaml config/webhook/*.yaml config/samples/*.yaml
var Config embed.FS

// Files in [Config].
const (
	CRDFile     = "config/crd/bases/stable.example.com_crontabs.yaml"
	WebhookFile = "config/webhook/manifests.yaml"
	SampleFile  = "config/samples/crontab.yaml"
)

// NextDue returns the first due time of a cronSpec after a time; an error when
// there is none.
func NextDue(cronSpec string, after time.Time) (time.Time, error) {
	s, err := parse(cronSpec)
	if err != nil {
		return time.Time{}, err
	}
	next := s.Next(after.UTC())
	if next.IsZero() {
		return next, fmt.Errorf("%q is never due after %s", cronSpec, after.Format(time.RFC3339))
	}
	return next, nil
}
