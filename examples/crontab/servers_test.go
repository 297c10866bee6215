// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/examples/crontab/api/v1beta1"
	"github.com/steer-dev/steer/internal/kubeapiserver"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// TestWebhooksWorkOnKubeAPIServer runs the operator with its generated manifests, over
// TLS with its own authority, on Steer and, where STEER_UPSTREAM_BIN has it, on
// kube-apiserver. A Service of type ExternalName leads to this process.
func TestWebhooksWorkOnKubeAPIServer(t *testing.T) {
	t.Parallel()
	t.Run("steer", func(t *testing.T) {
		t.Parallel()
		env := steertest.New(t, steertest.Options{})
		env.NeedPlane()
		serveWebhooks(t, env.Config)
	})
	t.Run("kube-apiserver", func(t *testing.T) {
		t.Parallel()
		serveWebhooks(t, kubeapiserver.Server(t))
	})
}

func serveWebhooks(t *testing.T, cfg *rest.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := newService(t)
	c := s.install(ctx, t, cfg)
	r := startReplica(ctx, t, cfg, func(o *manager.Options) { o.Webhooks.Drain = -1 })
	defer func() {
		r.stop()
		if err := r.await(); err != nil {
			t.Error(err)
		}
	}()
	s.add(r.address())
	trusted(ctx, t, c)

	ct := newCronTab("@daily")
	must(c.Create(ctx, ct))
	if ct.Spec.CronSpec != "0 0 * * *" {
		t.Errorf("the schedule is stored as %q", ct.Spec.CronSpec)
	}
	bad := newCronTab("soon")
	bad.Name = "bad"
	if err := c.Create(ctx, bad); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `"vcrontab-v1.kb.io" denied the request`) {
		t.Errorf("a schedule that is none: %v", err)
	}
	readsAsOlder(ctx, t, c, ct)
}

// readsAsOlder reads and changes a CronTab in v1beta1.
func readsAsOlder(ctx context.Context, t *testing.T, c client.Client, ct *v1.CronTab) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var older v1beta1.CronTab
	must(c.Get(ctx, client.ObjectKeyFromObject(ct), &older))
	if older.Spec.Schedule != ct.Spec.CronSpec || older.UID != ct.UID {
		t.Errorf("in v1beta1 it is %+v", older)
	}
	must(c.Patch(ctx, &older, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"schedule":"@hourly"}}`))))
	var now v1.CronTab
	must(c.Get(ctx, client.ObjectKeyFromObject(ct), &now))
	if now.Spec.CronSpec != "0 * * * *" {
		t.Errorf("an update in v1beta1 stores %q", now.Spec.CronSpec)
	}
}
