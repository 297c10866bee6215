// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/controlplane"
)

func TestAuditFlagsBelongTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "logs", "audit.log")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{ // an error; empty: none
		"": "",
		"--audit-policy-file=" + policy + " --audit-log-path=" + log:                             "",
		"--audit-policy-file=" + policy + " --audit-log-path=- --audit-log-mode=blocking-strict": "",
		"--audit-policy-file=" + policy:                                                          "--audit-policy-file needs --audit-log-path",
		"--audit-log-path=" + log:                                                                "--audit-log-path needs --audit-policy-file",
		"--audit-policy-file=" + log + ".absent --audit-log-path=-":                              "--audit-policy-file: open ",
		"--audit-policy-file=" + policy + " --audit-log-path=" + policy + "/x":                   "--audit-log-path: ",
		"--audit-log-mode=batch":                                                                 `--audit-log-mode: "batch" is not implemented: use blocking or blocking-strict`,
		"--audit-log-format=legacy":                                                              `--audit-log-format: "legacy" is not implemented: use json`,
	} {
		var flags planeflags.Audit
		var o controlplane.Options
		f := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
		flags.AddFlags(f)
		if err := f.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		err := flags.Apply(&o, io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || (o.Audit != nil) != (want == "" && args != "") {
			t.Errorf("%s: %v, a log: %t; want %s", args, err, o.Audit != nil, want)
		}
	}
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log is %v, %v", info, err)
	}
}
