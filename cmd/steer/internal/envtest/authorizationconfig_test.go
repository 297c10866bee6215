// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAuthorizationConfigNamesModes(t *testing.T) {
	t.Parallel()
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n"
	file := filepath.Join(t.TempDir(), "config.yaml")
	for text, want := range map[string]struct {
		modes []string
		err   string
	}{
		header + "authorizers: [{type: Node, name: node}, {type: RBAC, name: rbac}]":                  {modes: []string{"Node", "RBAC"}},
		strings.ReplaceAll(header, "/v1\n", "/v1alpha1\n") + "authorizers: [{type: RBAC, name: a.b}]": {modes: []string{"RBAC"}},
		"kind: AuthorizationConfiguration":                                                            {err: `of "", want an AuthorizationConfiguration of apiserver.config.k8s.io/v1`},
		header:                                                                                        {err: "authorizers: at least one is needed"},
		header + "authorizers: [{type: RBAC}]":                                                        {err: `authorizers[0].name: "" is no name`},
		header + "authorizers: [{type: RBAC, name: a}, {type: RBAC, name: b}]":                        {err: "authorizers[1].type: there is a RBAC already"},
		header + "authorizers: [{type: RBAC, name: a}, {type: Node, name: a}]":                        {err: `authorizers[1].name: there is a "a" already`},
		header + "authorizers: [{type: Webhook, name: a, webhook: {timeout: 1s}}]":                    {err: "authorizers[0]: webhooks are not implemented"},
		header + "authorizers: [{type: RBAC, name: a, mode: b}]":                                      {err: `unknown field "mode"`},
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		modes, err := readModes(file)
		if (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) || !slices.Equal(modes, want.modes) {
			t.Errorf("%s\n%v, %v; want %v, %s", text, modes, err, want.modes, want.err)
		}
	}
	cmd := NewAPIServer(nil)
	cmd.SetArgs([]string{"--authorization-config=" + file, "--authorization-mode=RBAC"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "leave these out") {
		t.Errorf("both flags: %v", err)
	}
}
