// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/admissionregistration/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// TestCallsEndWithTheirTimeoutOrThatOfTheRequest has a webhook that never answers, and
// compares what it is told, when its call ends, and what comes of it.
func TestCallsEndWithTheirTimeoutOrThatOfTheRequest(t *testing.T) {
	t.Parallel()
	// The request ends between whole seconds: of two deadlines at one moment any comes first.
	const (
		allotted  = "504 Timeout: Timeout: request did not complete within the allotted timeout"
		requested = "504 Timeout: Timeout: request did not complete within requested timeout"
	)
	exceeded := func(told string) string {
		return `500 InternalError: Internal error occurred: failed calling webhook "w": failed to call webhook: Post ` +
			`"https://hooks.default.svc:443/w?timeout=` + told + `": context deadline exceeded`
	}
	for name, one := range map[string]struct {
		seconds       int32         // of the webhook; 0: not set
		request       time.Duration // 0: none
		told          string
		took          time.Duration
		fail, ignored string
	}{
		"its own":                       {10, 0, "10s", 10 * time.Second, exceeded("10s"), ""},
		"none":                          {0, 0, "30s", 30 * time.Second, exceeded("30s"), ""},
		"within the request's":          {1, 10 * time.Second, "1s", time.Second, exceeded("1s"), ""},
		"the request's":                 {10, 1999 * time.Millisecond, "2s", 1999 * time.Millisecond, allotted, requested},
		"half a second of the request":  {10, 1500 * time.Millisecond, "2s", 1500 * time.Millisecond, allotted, requested},
		"the request's, below a second": {10, time.Millisecond, "1s", time.Millisecond, allotted, requested},
		"none but the request's":        {0, 4900 * time.Millisecond, "5s", 4900 * time.Millisecond, allotted, requested},
	} {
		for _, bucket := range []string{mutating, validating} {
			for policy, want := range map[v1.FailurePolicyType]string{v1.Fail: one.fail, v1.Ignore: one.ignored} {
				synctest.Test(t, func(t *testing.T) {
					c := newCluster(t)
					w := hook("w")
					w.FailurePolicy = &policy
					if one.seconds > 0 {
						w.TimeoutSeconds = &one.seconds
					}
					c.configure(t, bucket, "one", w)
					c.on["w"] = func(r call) (int, string, error) {
						<-r.http.Context().Done()
						return 0, "", r.http.Context().Err()
					}
					ctx := t.Context()
					if one.request > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, one.request)
						defer cancel()
					}
					begun := time.Now()
					equal(t, name+": "+string(policy), want, c.admit(ctx, bucket, c.create(t)))
					equal(t, name+": took", one.took, time.Since(begun))
					equal(t, name+": told", one.told, c.calls[0].http.URL.Query().Get("timeout"))
				})
			}
		}
	}
}

func TestCallsOfRequestsThatAreGoneAreNotCountedAsFailures(t *testing.T) {
	t.Parallel()
	for bucket, step := range map[string]string{mutating: "admit", validating: "validating"} {
		for _, change := range []func(*v1.MutatingWebhook){func(*v1.MutatingWebhook) {}, ignoring} {
			c := newCluster(t)
			c.configure(t, bucket, "one", hook("w", change), hook("other", func(w *v1.MutatingWebhook) { w.Rules = nil }))
			ctx, leave := context.WithCancel(t.Context())
			c.on["w"] = func(r call) (int, string, error) {
				leave()
				<-r.http.Context().Done()
				return 0, "", r.http.Context().Err()
			}
			if got := c.admit(ctx, bucket, c.create(t)); got == "" {
				t.Errorf("%s: the request goes on", step)
			}
			equal(t, step+": fail open", map[string]int{}, c.counted(t, "apiserver_admission_webhook_fail_open_count"))
			equal(t, step+": rejections", map[string]int{}, c.counted(t, "apiserver_admission_webhook_rejection_count"))
		}
	}
}

// TestCallsAreNotMadeForRequestsThatHaveEnded: a validating webhook is not called.
func TestCallsAreNotMadeForRequestsThatHaveEnded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configure(t, validating, "one", hook("w"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	equal(t, "error", "504 Timeout: Timeout: request did not complete within requested timeout", c.admit(ctx, validating, c.create(t)))
	equal(t, "calls", []string{}, c.called())
}

func TestCallsAreCounted(t *testing.T) {
	t.Parallel()
	const prefix = "apiserver_admission_webhook_"
	for bucket, step := range map[string]string{mutating: "admit", validating: "validating"} {
		for name, one := range map[string]struct {
			status int
			answer string
			change func(*v1.MutatingWebhook)
			dryRun bool
			// code and rejected are labels of the call; rejection and kind those of the
			// rejection, empty for none.
			code, rejected, rejection, kind string
			open                            int
		}{
			"allowed":           {status: 200, answer: response(`"allowed": true`), code: "200", rejected: "false"},
			"refused":           {status: 200, answer: response(`"status": {"code": 409}`), code: "409", rejected: "true", rejection: "409", kind: "no_error"},
			"refused, ignored":  {status: 200, answer: response(`"status": {"code": 409}`), change: ignoring, code: "409", rejected: "true", rejection: "409", kind: "no_error"},
			"large code":        {status: 200, answer: response(`"status": {"code": 99999}`), code: "600", rejected: "true", rejection: "600", kind: "no_error"},
			"failed":            {status: 502, code: "502", rejected: "true", rejection: "502", kind: "calling_webhook_error"},
			"failed, ignored":   {status: 502, change: ignoring, code: "502", rejected: "false", open: 1},
			"no known version":  {change: func(w *v1.MutatingWebhook) { w.AdmissionReviewVersions = nil }, code: "400", rejected: "true", rejection: "400", kind: "calling_webhook_error"},
			"dry run not known": {dryRun: true, change: func(w *v1.MutatingWebhook) { w.SideEffects = nil }, code: "400", rejected: "true", rejection: "400", kind: "calling_webhook_error"},
			"dry run with side effects": {dryRun: true, change: func(w *v1.MutatingWebhook) { some := v1.SideEffectClassSome; w.SideEffects = &some },
				code: "0", rejected: "true", rejection: "0", kind: "apiserver_internal_error"},
		} {
			c := newCluster(t)
			c.on["w"] = func(call) (int, string, error) { return one.status, one.answer, nil }
			if one.change == nil {
				one.change = func(*v1.MutatingWebhook) {}
			}
			c.configure(t, bucket, "one", hook("w", one.change))
			for range 2 {
				r := c.write(t, "configmaps", resource.Update, configMap("b"), configMap("b"))
				r.DryRun = one.dryRun
				c.admit(t.Context(), bucket, r)
			}
			equal(t, name, map[string]int{"code=" + one.code + " name=w operation=UPDATE rejected=" + one.rejected + " type=" + step: 2},
				c.counted(t, prefix+"request_total"))
			equal(t, name, map[string]int{"name=w operation=UPDATE rejected=" + one.rejected + " type=" + step: 2},
				c.counted(t, prefix+"admission_duration_seconds"))
			rejections, open := map[string]int{}, map[string]int{}
			if one.kind != "" {
				rejections["error_type="+one.kind+" name=w operation=UPDATE rejection_code="+one.rejection+" type="+step] = 2
			}
			if one.open > 0 {
				open["name=w type="+step] = 2
			}
			equal(t, name+": rejections", rejections, c.counted(t, prefix+"rejection_count"))
			equal(t, name+": fail open", open, c.counted(t, prefix+"fail_open_count"))
		}
	}
}

// TestCallsGoWhereTheClientConfigSays has Services with and without a port and a path, and
// an address without one.
func TestCallsGoWhereTheClientConfigSays(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	port := int32(8443)
	for name, one := range map[string]struct {
		config v1.WebhookClientConfig
		want   string // the address in the error
	}{
		"service":       {v1.WebhookClientConfig{Service: &v1.ServiceReference{Namespace: "n", Name: "s"}}, `Post "https://s.n.svc:443/?timeout=30s": `},
		"port and path": {v1.WebhookClientConfig{Service: &v1.ServiceReference{Namespace: "n", Name: "s", Port: &port, Path: text("/p/q")}}, `Post "https://s.n.svc:8443/p/q?timeout=30s": `},
		"neither":       {v1.WebhookClientConfig{}, "webhook configuration must have either service or URL"},
	} {
		for _, bucket := range []string{mutating, validating} {
			c := newCluster(t)
			c.configure(t, bucket, "one", hook("w", func(w *v1.MutatingWebhook) { w.ClientConfig = one.config }))
			got := c.admit(t.Context(), bucket, c.create(t))
			want := `500 InternalError: Internal error occurred: failed calling webhook "w": failed to call webhook: ` + one.want
			equal(t, name, want, got[:min(len(got), len(want))])
		}
	}
	c := newCluster(t)
	c.configure(t, mutating, "one", hook("w"))
	equal(t, "request", "", c.admit(t.Context(), mutating, c.create(t)))
	r := c.calls[0].http
	equal(t, "request", []string{http.MethodPost, "https://hooks.default.svc:443/w?timeout=30s", "application/json"},
		[]string{r.Method, r.URL.String(), r.Header.Get("Content-Type")})
}
