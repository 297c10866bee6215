// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage/durable"
)

// Audit are the flags that say which requests are recorded, and where.
type Audit struct {
	policy, path          string
	mode, format, version string
}

// Modes of the audit log.
const (
	blocking = "blocking"
	strict   = "blocking-strict"
)

// AddFlags defines the flags.
func (a *Audit) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&a.policy, "audit-policy-file", "", "file with a Policy of audit.k8s.io/v1: which requests are recorded, and how much of them")
	f.StringVar(&a.path, "audit-log-path", "", "file that the audit events are appended to, one JSON line for each; -: standard output")
	f.StringVar(&a.mode, "audit-log-mode", blocking, "blocking: events are written before requests go on; blocking-strict: requests whose events cannot be written are refused, too")
	f.StringVar(&a.format, "audit-log-format", "json", "json")
	f.StringVar(&a.version, "audit-log-version", "audit.k8s.io/v1", "audit.k8s.io/v1")
}

// Apply has a control plane record requests as the flags say. The file stays open as long as
// the process runs.
func (a *Audit) Apply(o *controlplane.Options, stdout io.Writer) error {
	for _, flag := range []struct {
		name, value string
		accepted    []string
	}{
		{"audit-log-mode", a.mode, []string{blocking, strict}},
		{"audit-log-format", a.format, []string{"json"}},
		{"audit-log-version", a.version, []string{"audit.k8s.io/v1"}},
	} {
		if flag.value != "" && !slices.Contains(flag.accepted, flag.value) {
			return fmt.Errorf("--%s: %q is not implemented: use %s", flag.name, flag.value, strings.Join(flag.accepted, " or "))
		}
	}
	switch {
	case a.policy == "" && a.path == "":
		return nil
	case a.policy == "":
		return errors.New("--audit-log-path needs --audit-policy-file: without a policy nothing is recorded")
	case a.path == "":
		return errors.New("--audit-policy-file needs --audit-log-path: name a file for the events, or - for standard output")
	}
	text, err := os.ReadFile(a.policy)
	if err != nil {
		return fmt.Errorf("--audit-policy-file: %w", err)
	}
	policy, err := audit.ParsePolicy(text)
	if err != nil {
		return fmt.Errorf("--audit-policy-file: %s: %w", a.policy, err)
	}
	out := stdout
	if a.path != "-" {
		if out, err = appendTo(a.path); err != nil {
			return fmt.Errorf("--audit-log-path: %w", err)
		}
	}
	o.Audit, err = audit.NewLog(audit.Options{Policy: policy, Out: out, Strict: a.mode == strict, Log: o.Log})
	return err
}

// appendTo opens a file to append to, which is made if it is not there.
func appendTo(path string) (*os.File, error) {
	if err := durable.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}
