// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFlagsOfEtcdAreLeftOutWithTheirValues(t *testing.T) {
	t.Parallel()
	got := withoutEtcd([]string{"--etcd-prefix", "a", "--etcd-servers=http://x", "--v=1", "--etcd-tls", "--runtime-config", "api/all=true"})
	if want := []string{"--v=1", "--runtime-config", "api/all=true"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}

func TestTokensOfTheTestAreTakenOver(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, []byte("t,user,uid"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--v=1", "--token-auth-file=" + file}, {"--token-auth-file", file, "--v=1"}} {
		others, tokens, err := withoutTokens(flags)
		if err != nil || !slices.Equal(others, []string{"--v=1"}) || tokens != "t,user,uid\n" {
			t.Errorf("%q: left are %q, the tokens %q: %v", flags, others, tokens, err)
		}
	}
	if _, _, err := withoutTokens([]string{"--token-auth-file=absent"}); err == nil {
		t.Error("a file that is not there is no error")
	}
}

func TestGatesAreLeftOutButForThoseThatAreHonoured(t *testing.T) {
	t.Parallel()
	var ignored []string
	got := withoutGates([]string{"--feature-gates", "A=true,B=false", "--v=1", "--runtime-config=api/all=true", "--feature-gates=C=true"},
		func(format string, args ...any) { ignored = append(ignored, fmt.Sprintf(format, args...)) }, "B=false")
	if want := []string{"--v=1", "--feature-gates=B=false"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	if want := []string{"ignored: --feature-gates=A=true", "ignored: --feature-gates=C=true", "ignored: --runtime-config=api/all=true"}; !slices.Equal(ignored, want) {
		t.Errorf("logged are %q, want %q", ignored, want)
	}
}
