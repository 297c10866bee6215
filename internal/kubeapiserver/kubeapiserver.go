// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeapiserver starts kube-apiserver with etcd for a test. Module oracle
// builds both; STEER_UPSTREAM_BIN names the directory of the programs.
//
// It is a small package of its own because tests of several folders need it, and
// none of them may import another.
package kubeapiserver

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// Server starts a kube-apiserver that ends with the test, and returns the
// configuration of its administrator. flags are added to those of kube-apiserver. It skips
// the test if STEER_UPSTREAM_BIN is not set.
func Server(t testing.TB, flags ...string) *rest.Config {
	t.Helper()
	binaries := os.Getenv("STEER_UPSTREAM_BIN")
	if binaries == "" {
		t.Skip("STEER_UPSTREAM_BIN is not set: see oracle/README.md")
	}
	args := append([]string{"-binaries", binaries, "--"}, flags...)
	cmd := exec.Command(filepath.Join(binaries, "upstream"), args...) // the flags are those of tests
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe() // the server ends when it is closed
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
			t.Errorf("kube-apiserver: %v", err)
		}
	})
	var about struct{ URL, Token, CA string }
	if err := json.NewDecoder(out).Decode(&about); err != nil {
		t.Fatalf("kube-apiserver did not start: %v", err)
	}
	return &rest.Config{Host: about.URL, BearerToken: about.Token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(about.CA)}}
}
