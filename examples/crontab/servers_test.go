// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/examples/crontab"
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
	op := crontab.Operator()
	scheme, err := client.NewScheme(append(op.Scheme, corev1.AddToScheme, admissionv1.AddToScheme)...)
	must(err)
	c, err := client.New(cfg, client.Options{Scheme: scheme, FieldOwner: "user"})
	must(err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	address := free.Addr().(*net.TCPAddr)
	must(free.Close())
	must(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "system"}}))
	must(c.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "webhook-service"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}))
	objects, err := manifest.Read(generated, "config/webhook")
	must(err)
	for _, o := range objects {
		setPort(o.Object, int64(address.Port))
	}
	must(manifest.Apply(ctx, c, "", objects))

	op.Config = cfg
	op.Configure = func(o *manager.Options) {
		o.Webhooks.Address, o.Webhooks.Authority.Namespace, o.Webhooks.Drain = address.String(), "system", -1
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- steer.Run(running, []string{"--health-probe-bind-address=0", "--zap-log-level=error"}, op)
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	_, err = await.Object(ctx, c, client.ObjectKey{Name: "mutating-webhook-configuration"}, func(m *admissionv1.MutatingWebhookConfiguration) bool {
		return m.Webhooks[0].ClientConfig.CABundle != nil
	})
	must(err)
	_, err = await.Object(ctx, c, client.ObjectKey{Name: "validating-webhook-configuration"}, func(v *admissionv1.ValidatingWebhookConfiguration) bool {
		return v.Webhooks[0].ClientConfig.CABundle != nil
	})
	must(err)

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

// setPort gives every Service in an object a port.
func setPort(value any, port int64) {
	switch value := value.(type) {
	case map[string]any:
		if service, ok := value["service"].(map[string]any); ok {
			service["port"] = port
		}
		for _, v := range value {
			setPort(v, port)
		}
	case []any:
		for _, v := range value {
			setPort(v, port)
		}
	}
}
