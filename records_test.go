// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"context"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

// TestRecordsOutliveTheOperator with --record-dir: who wrote an object is known after it
// has ended.
func TestRecordsOutliveTheOperator(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme})
	op := greeterOperator()
	op.Config = env.Config
	dir := filepath.Join(t.TempDir(), "records")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- steer.Run(ctx, []string{"--health-probe-bind-address=0", "--record-dir=" + dir}, op)
	}()
	welcome := steertest.Wait(env, "default/welcome", func(*corev1.ConfigMap) bool { return true })
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	records, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	written := false
	for record, err := range records.Of(trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "welcome"}) {
		if err != nil {
			t.Error(err)
		}
		for _, w := range record.Writes {
			written = written || w.Revision == welcome.ResourceVersion && w.Name == "welcome"
		}
	}
	if !written {
		t.Errorf("no record has the write that made revision %s", welcome.ResourceVersion)
	}
}
