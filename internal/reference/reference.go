// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference gives tests the real kube-apiserver with etcd, where
// somebody has built them: module oracle says how, and STEER_PEER_BIN where.
//
// It is a package of few lines because tests of several folders need it, and none
// of them may import another.
package reference

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// Server starts a kube-apiserver that ends with the test, and returns how its
// administrator reaches it. It skips the test where there is none.
func Server(t testing.TB) *rest.Config {
	t.Helper()
	binaries := os.Getenv("STEER_PEER_BIN")
	if binaries == "" {
		t.Skip("STEER_PEER_BIN is not set: see oracle/README.md")
	}
	cmd := exec.Command(filepath.Join(binaries, "peer"), "-binaries", binaries)
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe() // its end is the server's
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = hold.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the reference server: %v", err)
		}
	})
	var about struct{ URL, Token, CA string }
	if err := json.NewDecoder(out).Decode(&about); err != nil {
		t.Fatalf("the reference server did not start: %v", err)
	}
	return &rest.Config{Host: about.URL, BearerToken: about.Token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(about.CA)}}
}
