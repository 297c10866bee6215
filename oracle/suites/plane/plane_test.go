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

func TestServersOfAnEtcdShareAFolder(t *testing.T) {
	t.Parallel()
	below := t.TempDir()
	a, b := Etcd{Servers: []string{"unix://x"}, Prefix: "a/registry"}, Etcd{Servers: []string{"unix://x"}, Prefix: "b/registry"}
	wantFlags := []string{"--etcd-servers=unix://x", "--etcd-prefix=a/registry"}
	for range 2 {
		if dir, flags, err := a.share("own", below, true); err != nil || dir != filepath.Join(below, "etcd-a-registry") || !slices.Equal(flags, wantFlags) {
			t.Errorf("on an etcd: %s, %q, %v", dir, flags, err)
		}
	}
	if dir, flags, err := b.share("own", below, false); err != nil || dir != "own" || flags != nil {
		t.Errorf("in memory: %s, %q, %v", dir, flags, err)
	}
	if _, _, err := b.share("own", below, false); err == nil {
		t.Error("a second server in memory has the objects of the first")
	}
	for range 2 {
		if dir, flags, err := (Etcd{Prefix: "c"}).share("own", below, false); err != nil || dir != "own" || flags != nil {
			t.Errorf("without an etcd: %s, %q, %v", dir, flags, err)
		}
	}
}
