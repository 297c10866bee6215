// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"io"
	"strings"
	"testing"
)

func TestUpRefusesFlagsOfEtcdThatDoNotFit(t *testing.T) {
	t.Parallel()
	servers := []string{"http://127.0.0.1:2379"}
	for want, o := range map[string]upOptions{
		"name the servers":      {etcd: Etcd{Prefix: "/x"}},
		"leave one of them out": {inMemory: true, etcd: Etcd{Servers: servers}},
		"belong together":       {etcd: Etcd{Servers: servers, CertFile: "a"}},
	} {
		if err := up(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestUpNamesTheWayToTheProgramForEtcd(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := findSibling(); err == nil || !strings.Contains(err.Error(), "go install") {
		t.Errorf("got %v, want how to install steer-etcd", err)
	}
}
