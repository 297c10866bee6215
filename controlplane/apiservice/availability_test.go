// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/steer-dev/steer/controlplane/apiservice"
	"github.com/steer-dev/steer/controlplane/internal/egress"
	"github.com/steer-dev/steer/storage"
)

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const (
	asked  = "ask: GET /apis/example.com/v1"
	status = "PUT /apis/apiregistration.k8s.io/v1/apiservices/v1.example.com/status"
	passed = status + " Available=True Passed: all checks passed (03:04:05)"
)

func TestAvailabilityFollowsFromServiceAndEndpoints(t *testing.T) {
	t.Parallel()
	ready, unready := true, false
	for what, tt := range map[string]struct {
		stored map[storage.Key]any
		want   string
	}{
		"no Service": {want: `ServiceNotFound: service/wings in "default" is not present`},
		"another port": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 80, "")},
			want:   `ServicePortError: service/wings in "default" is not listening on port 443`,
		},
		"no slice": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https")},
			want:   `EndpointsNotFound: cannot find endpointslices for service/wings in "default"`,
		},
		"a slice of another Service": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https"), {Bucket: sliceKey.Bucket, Name: "default/wings-2"}: map[string]any{}},
			want:   `EndpointsNotFound: cannot find endpointslices for service/wings in "default"`,
		},
		"no ready endpoint": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https"), sliceKey: sliceOf("https", &unready)},
			want:   `MissingEndpoints: endpointslices for service/wings in "default" have no addresses with port name "https"`,
		},
		"no endpoint with the port": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https"), sliceKey: sliceOf("http", &ready)},
			want:   `MissingEndpoints: endpointslices for service/wings in "default" have no addresses with port name "https"`,
		},
		"a ready endpoint": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https"), sliceKey: sliceOf("https", &ready)},
		},
		"an endpoint that says nothing": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https"), sliceKey: sliceOf("https", nil)},
		},
		"Endpoints without a slice": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https"), endpointsKey: endpointsOf("https")},
		},
		"Endpoints without the port": {
			stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeClusterIP, 443, "https"), endpointsKey: endpointsOf("http")},
			want:   `MissingEndpoints: endpointslices for service/wings in "default" have no addresses with port name "https"`,
		},
		"another name": {stored: map[storage.Key]any{serviceKey: serviceOf(corev1.ServiceTypeExternalName, 80, "")}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, egress.Services{}, nil)
			d := drive(w, apiservice.NewAvailability(w.aggregation))
			for key, o := range tt.stored {
				d.put(key, o)
			}
			d.put(wingsKey, wings())
			want := asked
			if tt.want != "" {
				want = status + " Available=False " + tt.want + " (03:04:05)"
			}
			got := ""
			for _, r := range d.requests() {
				got += rendered(t, r)
			}
			same(t, "requests", want, got)
		})
	}
}

func TestAvailabilityFollowsFromTheAnswer(t *testing.T) {
	t.Parallel()
	const url = "https://wings.default.svc:443/apis/example.com/v1"
	for want, answer := range map[string]func(*http.Request) (*http.Response, error){
		"Available=True Passed: all checks passed": text(204, "", ""),
		"Available=False FailedDiscoveryCheck: failing or missing response from " + url + ": bad status from " + url + ": 500":        text(500, "", ""),
		"Available=False FailedDiscoveryCheck: failing or missing response from " + url + ": bad status from " + url + ": 302":        text(302, "", "", "Location", "/"),
		"Available=False FailedDiscoveryCheck: failing or missing response from " + url + ": Get \"" + url + "\": connection refused": down,
		"Available=False FailedDiscoveryCheck: failing or missing response from " + url + ": bad status from " + url + ": 404":        nil,
	} {
		server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis/example.com/v1": answer}}
		w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
		d := drive(w, apiservice.NewAvailability(w.aggregation))
		d.put(wingsKey, wings())
		same(t, "the first step", asked, d.step())
		same(t, "the second step", status+" "+want+" (03:04:05)", d.step())
		same(t, "the third step", "", d.step())
		same(t, "requests to the server", []string{"GET /apis/example.com/v1"}, server.requests())
	}
}

func TestAvailabilityOfAServerThatHangsFailsInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
		server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis/example.com/v1": hangs}}
		w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
		d := drive(w, apiservice.NewAvailability(w.aggregation))
		d.put(wingsKey, wings())
		began := time.Now()
		d.step()
		same(t, "time that it took", 5*time.Second, time.Since(began))
		const url = "https://wings.default.svc:443/apis/example.com/v1"
		same(t, "the condition", status+" Available=False FailedDiscoveryCheck: failing or missing response from "+url+": Get \""+url+
			"\": context deadline exceeded (Client.Timeout exceeded while awaiting headers) (03:04:05)", d.step())
	})
}

func TestAvailabilityIsCheckedAgainInTime(t *testing.T) {
	t.Parallel()
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis/example.com/v1": down}}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
	c := apiservice.NewAvailability(w.aggregation)
	d := drive(w, c)
	d.put(wingsKey, wings())
	same(t, "the time of the next step of a controller that has checked nothing", time.Time{}, c.Wake())
	check := func() time.Duration {
		t.Helper()
		same(t, "requests", asked, d.step())
		d.step() // writes the condition if it has changed
		wait := c.Wake().Sub(d.now)
		d.now = d.now.Add(wait - time.Millisecond)
		same(t, "requests before it is time", "", d.step())
		d.now = d.now.Add(time.Millisecond)
		return wait
	}
	var waits []time.Duration
	for range 9 {
		waits = append(waits, check())
	}
	server.answers["/apis/example.com/v1"] = text(200, "", "")
	waits = append(waits, check(), check())
	server.answers["/apis/example.com/v1"] = down
	waits = append(waits, check())
	const ms, s = time.Millisecond, time.Second
	same(t, "waits", []time.Duration{250 * ms, 500 * ms, s, 2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 30 * s, 30 * s, 250 * ms}, waits)
}

func TestAvailabilityIsCheckedAgainAfterChanges(t *testing.T) {
	t.Parallel()
	ready := true
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis/example.com/v1": text(200, "", "")}}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
	d := drive(w, apiservice.NewAvailability(w.aggregation))
	d.put(wingsKey, wings())
	d.step()
	same(t, "the condition", passed, d.step())
	current := func(change func(*v1.APIService)) *v1.APIService {
		return wings(func(s *v1.APIService) {
			s.Status.Conditions = []v1.APIServiceCondition{{
				Type: v1.Available, Status: v1.ConditionTrue, Reason: "Passed", Message: "all checks passed", LastTransitionTime: metav1.NewTime(d.now),
			}}
			if change != nil {
				change(s)
			}
		})
	}
	for _, tt := range []struct {
		what string
		key  storage.Key
		o    any
		want string
	}{
		{"its own status", wingsKey, current(nil), ""},
		{"its labels", wingsKey, current(func(s *v1.APIService) { s.Labels = map[string]string{"a": "b"} }), ""},
		{"its spec", wingsKey, current(func(s *v1.APIService) { s.Spec.VersionPriority = 7 }), asked},
		{"its Service", serviceKey, serviceOf(corev1.ServiceTypeClusterIP, 443, ""), asked},
		{"a slice of its namespace", sliceKey, sliceOf("", &ready), asked},
		{"its Endpoints", endpointsKey, endpointsOf(""), asked},
		{"another Service", storage.Key{Bucket: serviceKey.Bucket, Name: "default/tails"}, map[string]any{}, ""},
		{"a Service of that name in another namespace", storage.Key{Bucket: serviceKey.Bucket, Name: "other/wings"}, map[string]any{}, ""},
		{"a slice of another namespace", storage.Key{Bucket: sliceKey.Bucket, Name: "other/wings-1"}, map[string]any{}, ""},
		{"a change of the condition by others", wingsKey, current(func(s *v1.APIService) { s.Status.Conditions, s.Spec.VersionPriority = nil, 7 }), passed},
		{"its deletion has begun", wingsKey, current(func(s *v1.APIService) { s.DeletionTimestamp = &metav1.Time{Time: d.now}; s.Spec.Version = "v2" }), ""},
		{"the Service is no longer another server's", wingsKey, current(func(s *v1.APIService) { s.Spec.Service = nil }), ""},
		{"its Service once more", serviceKey, nil, ""},
		{"its Service is another server's again", wingsKey, current(nil), asked},
		{"its deletion", wingsKey, nil, ""},
		{"its Service once it is gone", serviceKey, serviceOf(corev1.ServiceTypeClusterIP, 443, ""), ""},
	} {
		d.put(tt.key, tt.o)
		same(t, "requests after a change of "+tt.what, tt.want, d.step())
		d.step()
	}
}

func TestAvailabilityIsWrittenAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	server := &other{answers: map[string]func(*http.Request) (*http.Response, error){"/apis/example.com/v1": text(200, "", "")}}
	w := newWorld(t, egress.Services{Resolve: resolve(server)}, nil)
	d := drive(w, apiservice.NewAvailability(w.aggregation))
	d.put(wingsKey, wings())
	requests := d.requests()
	same(t, "requests while one is under way", 0, len(d.requests()))
	d.put(serviceKey, serviceOf(corev1.ServiceTypeClusterIP, 443, ""))
	same(t, "requests after a change while one is under way", 0, len(d.requests()))
	d.controller.Done(requests[0], d.carry(requests[0]))
	same(t, "the server is asked again after the change", asked, d.step())
	requests = d.requests()
	same(t, "the request for the condition", passed, rendered(t, requests[0]))
	d.controller.Done(requests[0], errors.New("conflict"))
	same(t, "requests after a conflict", asked, d.step())
	same(t, "requests then", passed, d.step())
	same(t, "requests at the end", "", d.step())
}
