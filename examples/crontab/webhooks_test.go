// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crontab_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/examples/crontab"
	v1 "github.com/steer-dev/steer/examples/crontab/api/v1"
	"github.com/steer-dev/steer/examples/crontab/api/v1beta1"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/trace"
)

// TestConversionLosesNothing converts STEER_OBJECTS random objects each way, 1,000 if it
// is not set.
func TestConversionLosesNothing(t *testing.T) {
	t.Parallel()
	objects := 0
	if text := os.Getenv("STEER_OBJECTS"); text != "" {
		var err error
		if objects, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	scheme, err := client.NewScheme(crontab.Operator().Scheme...)
	if err != nil {
		t.Fatal(err)
	}
	steertest.RoundTrip(t, scheme, &v1.CronTab{}, steertest.RoundTripOptions{Objects: objects})
}

// webhooked runs a test with the webhooks of the operator, in process and over TLS.
func webhooked(t *testing.T, test func(b *bundle)) {
	t.Parallel()
	for name, overTLS := range map[string]bool{"InProcess": false, "OverTLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(operate(t, steertest.Options{Webhooks: []string{"config/webhook"}, WebhooksOverTLS: overTLS}))
		})
	}
}

func newCronTab(cronSpec string) *v1.CronTab {
	return &v1.CronTab{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: object}, Spec: v1.CronTabSpec{CronSpec: cronSpec, Image: "image"}}
}

func TestWebhooksCompleteAndValidateSchedules(t *testing.T) {
	webhooked(t, func(b *bundle) {
		ct := newCronTab("@daily")
		b.Create(ct)
		if ct.Spec.CronSpec != "0 0 * * *" {
			b.Errorf("the schedule is stored as %q", ct.Spec.CronSpec)
		}
		for what, err := range map[string]error{
			"a creation": b.Client.Create(b.Context(), newCronTab("soon")),
			"an update":  b.Client.Patch(b.Context(), newCronTab(""), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cronSpec":"soon"}}`))),
		} {
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.cronSpec") || !strings.Contains(err.Error(), `"vcrontab-v1.kb.io" denied the request`) {
				b.Errorf("%s: %v", what, err)
			}
		}
		var seen []string
		for r := range b.Manager().Recorder().Records() {
			if strings.HasPrefix(r.Controller, "/") {
				seen = append(seen, r.Outcome.String())
			}
			if r.Outcome == trace.Denied && !strings.Contains(r.Request, "CronTab default/"+object+" by ") {
				b.Errorf("the flight recorder says %s", r)
			}
		}
		if got := strings.Join(seen, " "); strings.Count(got, "denied") != 2 {
			b.Errorf("the flight recorder has %s", got)
		}
		b.StopOperator()
		if err := b.Client.Create(b.Context(), newCronTab("* * * * *")); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			b.Errorf("without the operator: %v", err)
		}
	})
}

func TestOlderVersionIsConverted(t *testing.T) {
	webhooked(t, func(b *bundle) {
		old := &v1beta1.CronTab{ObjectMeta: newCronTab("").ObjectMeta, Spec: v1beta1.CronTabSpec{Schedule: "@hourly", Image: "image"}}
		b.Create(old)
		if old.Spec.Schedule != "0 * * * *" {
			b.Errorf("the schedule is %q", old.Spec.Schedule)
		}
		ct := steertest.Expect[*v1.CronTab](b.Env, object, steertest.Ready)
		if ct.Spec.CronSpec != "0 * * * *" {
			b.Errorf("in v1 it is %q", ct.Spec.CronSpec)
		}
	})
}

func TestADeletionEndsWhileTheWebhooksAreDown(t *testing.T) {
	webhooked(t, func(b *bundle) {
		ct := newCronTab("* * * * *")
		ct.Finalizers = []string{"example.com/held"}
		b.Create(ct)
		b.Settled()
		b.StopOperator()
		if err := b.Client.Delete(b.Context(), ct); err != nil {
			b.Fatal(err)
		}
		unhold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := b.Client.Patch(b.Context(), newCronTab(""), unhold); err != nil {
			b.Errorf("take the finalizer off: %v", err)
		}
	})
}
