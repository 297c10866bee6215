// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
)

func TestRefusalsNameUserVerbAndResource(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	anonymous := s.RoundTripper(nil)
	for path, want := range map[string]string{
		widgetsPath:                    `widgets.example.com is forbidden: User "system:anonymous" cannot list resource "widgets" in API group "example.com" in the namespace "default"`,
		widgetsPath + "/x/status":      `widgets.example.com "x" is forbidden: User "system:anonymous" cannot get resource "widgets/status" in API group "example.com" in the namespace "default"`,
		"/apis/example.com/v1/widgets": `widgets.example.com is forbidden: User "system:anonymous" cannot list resource "widgets" in API group "example.com" at the cluster scope`,
		"/metrics":                     `forbidden: User "system:anonymous" cannot get path "/metrics"`,
		widgetsPath + "?fieldSelector=metadata.name%3Dx": `widgets.example.com "x" is forbidden: User "system:anonymous" cannot list resource "widgets" in API group "example.com" in the namespace "default"`,
	} {
		got := send(t, anonymous, http.MethodGet, path, "")
		if status := got.status(t); got.code != 403 || status.Message != want || status.Reason != metav1.StatusReasonForbidden {
			t.Errorf("%s: %d %q, want %q", path, got.code, status.Message, want)
		}
	}
	for _, path := range []string{"/version", "/healthz", "/readyz", "/livez", "/apis"} {
		if got := send(t, anonymous, http.MethodGet, path, ""); got.code != 200 {
			t.Errorf("%s is not readable without credentials: %d %s", path, got.code, got.body)
		}
	}
}

func TestImpersonationIsAuthorizedAndSetsTheUser(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	as := []string{"Impersonate-User", "jane", "Impersonate-Group", "dev"}
	got := send(t, s.RoundTripper(admin), http.MethodGet, widgetsPath, "", as...)
	if want := `User "jane" cannot list`; got.code != 403 || !strings.Contains(got.body, "jane") {
		t.Errorf("as jane: %d %s, want %s", got.code, got.body, want)
	}
	got = send(t, s.RoundTripper(&auth.User{Name: "joe"}), http.MethodGet, widgetsPath, "", as...)
	if status := got.status(t); status.Message != `widgets.example.com is forbidden: User "joe" cannot impersonate-on:user-info:list resource "widgets" in API group "example.com" in the namespace "default"` {
		t.Errorf("joe as jane: %s", status.Message)
	}
	got = send(t, s.RoundTripper(admin), http.MethodGet, widgetsPath, "", "Impersonate-User", "root", "Impersonate-Group", auth.Masters)
	if got.code != 200 {
		t.Errorf("as a master: %d %s", got.code, got.body)
	}
	if got = send(t, s.RoundTripper(admin), http.MethodGet, widgetsPath, "", "Impersonate-Group", "dev"); got.code != 400 && got.code != 500 {
		t.Errorf("a group without a user: %d", got.code)
	}
}

func TestHandlerAuthenticates(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *apiserver.Options) {
		o.Authenticator = auth.Authenticators{auth.Bearer{Tokens: []auth.TokenAuthenticator{auth.Tokens{"secret": admin}}}, auth.AsAnonymous{}}
	})
	overTheNetwork := handlerTransport{s.Handler()}
	for token, want := range map[string]int{"Bearer secret": 200, "Bearer wrong": 401, "": 403} {
		if got := send(t, overTheNetwork, http.MethodGet, widgetsPath, "", "Authorization", token); got.code != want {
			t.Errorf("token %q: %d, want %d", token, got.code, want)
		}
	}
}

// handlerTransport calls a handler without a user.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r.RequestURI = r.URL.RequestURI()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testLimits)
}

func testLimits(t *testing.T) {
	s := newServer(t, func(o *apiserver.Options) {
		o.Limits = apiserver.Limits{BodyBytes: 1000, PatchOperations: 2, WatchesPerUser: 1}
		o.Authorizer = auth.AllowAll{}
	})
	rt := s.RoundTripper(&auth.User{Name: "joe"})
	got := send(t, rt, http.MethodPost, widgetsPath, strings.Repeat(" ", 1001))
	if status := got.status(t); got.code != 413 || status.Message != "Request entity too large: limit is 1000" {
		t.Errorf("large body: %d %s", got.code, got.body)
	}
	raw(t, rt, http.MethodPost, widgetsPath, []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`))
	ops := strings.Repeat(`,{"op":"test","path":"/kind","value":"Widget"}`, 3)[1:]
	got = send(t, rt, http.MethodPatch, widgetsPath+"/a", "["+ops+"]", "Content-Type", "application/json-patch+json")
	if got.code != 413 || !strings.Contains(got.body, "The allowed maximum operations in a JSON patch is 2, got 3") {
		t.Errorf("long patch: %d %s", got.code, got.body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://steer.invalid"+widgetsPath+"?watch=true", nil)
	first, err := rt.RoundTrip(r)
	if err != nil || first.StatusCode != 200 {
		t.Fatal(err)
	}
	got = send(t, rt, http.MethodGet, widgetsPath+"?watch=true&timeoutSeconds=1", "")
	if status := got.status(t); got.code != 429 || status.Reason != metav1.StatusReasonTooManyRequests || got.header.Get("Retry-After") != "1" {
		t.Errorf("second watch: %d %s", got.code, got.body)
	}
	_ = first.Body.Close()
	if got = send(t, rt, http.MethodGet, widgetsPath+"?watch=true&timeoutSeconds=1", ""); got.code != 200 {
		t.Errorf("a watch after the first has ended: %d %s", got.code, got.body)
	}
}

// slow is admission that blocks, or panics.
type slow struct{ wait chan struct{} }

func (a slow) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	if strings.HasPrefix(r.Name, "panic") {
		panic("oops")
	}
	if r.Name != "slow" {
		return nil
	}
	select {
	case <-a.wait:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (slow) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

func TestInFlightRequestsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		s := newServer(t, func(o *apiserver.Options) {
			o.Limits.Writes, o.Admission, o.Authorizer = 1, slow{wait}, auth.AllowAll{}
		})
		rt := s.RoundTripper(&auth.User{Name: "joe"})
		first := make(chan reply)
		body := func(name string) string {
			return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"}}`
		}
		go func() { first <- send(t, rt, http.MethodPost, widgetsPath, body("slow")) }()
		synctest.Wait()
		if got := send(t, rt, http.MethodPost, widgetsPath, body("b")); got.code != 429 || got.header.Get("Retry-After") != "1" {
			t.Errorf("a second write: %d %s", got.code, got.body)
		}
		if got := send(t, rt, http.MethodGet, widgetsPath, ""); got.code != 200 {
			t.Errorf("a read beside a write: %d", got.code)
		}
		if got := send(t, s.RoundTripper(admin), http.MethodPost, widgetsPath, body("c")); got.code != 201 {
			t.Errorf("a master: %d %s", got.code, got.body)
		}
		close(wait)
		if got := <-first; got.code != 201 {
			t.Errorf("the first write: %d %s", got.code, got.body)
		}
	})
}

func TestRequestsTimeOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, func(o *apiserver.Options) { o.Admission = slow{} })
		rt := s.RoundTripper(admin)
		start := time.Now()
		got := send(t, rt, http.MethodPost, widgetsPath+"?timeout=5s", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"slow"}}`)
		if status := got.status(t); got.code != 504 || status.Reason != metav1.StatusReasonTimeout || time.Since(start) != 5*time.Second {
			t.Errorf("after %s: %d %s", time.Since(start), got.code, got.body)
		}
		if got := send(t, rt, http.MethodGet, widgetsPath+"?timeout=soon", ""); got.code != 400 {
			t.Errorf("a bad timeout: %d %s", got.code, got.body)
		}
	})
}

func TestPanicsAreAnsweredAsInternalErrors(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *apiserver.Options) { o.Admission = slow{} })
	got := send(t, s.RoundTripper(admin), http.MethodPost, widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"panic"}}`)
	if status := got.status(t); got.code != 500 || status.Reason != metav1.StatusReasonInternalError {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := send(t, s.RoundTripper(admin), http.MethodGet, widgetsPath, ""); got.code != 200 {
		t.Errorf("the next request: %d", got.code)
	}
}

func TestMetricsCountRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	rt := s.RoundTripper(admin)
	send(t, rt, http.MethodPost, widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`)
	send(t, rt, http.MethodGet, widgetsPath+"/none", "")
	got := send(t, rt, http.MethodGet, "/metrics", "").body
	for _, want := range []string{
		`apiserver_request_total{code="201",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="namespace",subresource="",verb="POST",version="v1"} 1`,
		`code="404"`, `apiserver_resource_objects{group="example.com",resource="widgets"} 1`, "apiserver_request_duration_seconds_bucket", "apiserver_longrunning_requests 0",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

// TestMetricsSeparateRequestsByVerbScopeCodeAndDryRun: requests with another verb, scope, code
// or dryRun are counted separately, the series of a replaced resource continue, and
// unknown methods share one series.
func TestMetricsSeparateRequestsByVerbScopeCodeAndDryRun(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	rt := s.RoundTripper(admin)
	for i := range 2 {
		if i > 0 {
			if err := s.Install(s.Resources()...); err != nil {
				t.Fatal(err)
			}
		}
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a%d"}}`, i)
		send(t, rt, http.MethodPost, widgetsPath+"?dryRun=All", body)
		for range 2 {
			send(t, rt, http.MethodPost, widgetsPath, body)
			send(t, rt, http.MethodGet, widgetsPath+fmt.Sprint("/a", i), "")
			send(t, rt, http.MethodGet, widgetsPath, "")
		}
		for _, path := range []string{widgetsPath, "/version", "/nowhere"} {
			send(t, rt, fmt.Sprint("BREW", i), path, "")
		}
	}
	got := send(t, rt, http.MethodGet, "/metrics", "").body
	series := func(code, dryRun, scope, verb string, n int) string {
		return fmt.Sprintf(`apiserver_request_total{code="%s",component="apiserver",dry_run="%s",group="example.com",resource="widgets",scope="%s",subresource="",verb="%s",version="v1"} %d`,
			code, dryRun, scope, verb, n)
	}
	for _, want := range []string{
		series("201", "All", "namespace", "POST", 2), series("201", "", "namespace", "POST", 2), series("409", "", "namespace", "POST", 2),
		series("200", "", "resource", "GET", 4), series("200", "", "namespace", "LIST", 4), series("405", "", "namespace", "other", 2),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if strings.Contains(got, "BREW") {
		t.Error("what a client calls a method is a label")
	}
}

func TestStopEndsWatchesAndRefusesRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		w, err := dynamicClient(t, s).Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if event, open := <-w.ResultChan(); open {
			t.Errorf("the watch goes on: %v", event)
		}
		got := send(t, s.RoundTripper(admin), http.MethodGet, widgetsPath, "")
		if got.code != 503 {
			t.Errorf("a request after Stop: %d %s", got.code, got.body)
		}
	})
}

func TestResourcesComeAndGo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	rt := s.RoundTripper(admin)
	if got := send(t, rt, http.MethodGet, "/apis/example.com/v1", ""); !strings.Contains(got.body, `"widgets/scale"`) {
		t.Errorf("discovery lacks the scale: %s", got.body)
	}
	s.Remove("example.com", "widgets")
	for _, path := range []string{widgetsPath, "/apis/example.com/v1"} {
		if got := send(t, rt, http.MethodGet, path, ""); got.code != 404 || strings.TrimSpace(got.body) != "404 page not found" {
			t.Errorf("%s after removal: %d %q", path, got.code, got.body)
		}
	}
	if err := s.Install(&resource.Resource{Names: resource.Names{Plural: "x"}}); err == nil {
		t.Error("installed a resource without a kind")
	}
}

func TestWarningsTravelAsHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	deprecated := widgetResource()
	deprecated.Versions[0].Deprecation = `old "v1"`
	if err := s.Install(deprecated); err != nil {
		t.Fatal(err)
	}
	var texts []string
	c := config(s)
	c.WarningHandler = rest.WarningHandler(warningList{&texts})
	client := dynamicFor(t, c)
	u := widget("a", func(u *unstructured.Unstructured) { u.Object["extra"] = int64(1) })
	if _, err := client.Resource(widgets).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if want := []string{`old "v1"`, `unknown field "extra"`}; strings.Join(texts, ";") != strings.Join(want, ";") {
		t.Errorf("warnings %q, want %q", texts, want)
	}
	u.SetName("b")
	_, err := client.Resource(widgets).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{FieldValidation: "Strict"})
	if want := `Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "extra"`; err == nil || err.Error() != want {
		t.Errorf("strict: %v, want %s", err, want)
	}
}

type warningList struct{ texts *[]string }

func (l warningList) HandleWarningHeader(_ int, _, text string) { *l.texts = append(*l.texts, text) }

// noting is an authorizer that records its requests, and allows them unless it refuses
// all.
type noting struct {
	asked  []auth.Attributes
	refuse bool
}

func (n *noting) Authorize(_ context.Context, a *auth.Attributes) (auth.Decision, string, error) {
	n.asked = append(n.asked, *a)
	if n.refuse {
		return auth.Deny, "", nil
	}
	return auth.Allow, "", nil
}

func TestAuthorizersSeeSelectors(t *testing.T) {
	t.Parallel()
	n := &noting{}
	s := newServer(t, func(o *apiserver.Options) { o.Authorizer = n })
	const byName = "?fieldSelector=metadata.name%3Dx&labelSelector=a+in+(b,c)"
	prefixed := strings.Replace(widgetsPath, "/namespaces/", "/watch/namespaces/", 1)
	for request, want := range map[string][3]string{
		"GET " + widgetsPath + byName:                           {"metadata.name=x", "a in (b,c)", "x"},
		"GET " + widgetsPath + "?labelSelector=a+in+(b":         {"", "", ""},
		"GET " + widgetsPath + "?limit=5":                       {"", "", ""},
		"DELETE " + widgetsPath + byName:                        {"metadata.name=x", "a in (b,c)", ""},
		"GET " + prefixed + byName + "&timeoutSeconds=1":        {"", "", ""},
		"GET " + prefixed + "/y" + byName + "&timeoutSeconds=1": {"", "", "y"},
	} {
		n.asked, n.refuse = nil, true // the refusal comes after the attributes were recorded
		method, path, _ := strings.Cut(request, " ")
		send(t, s.RoundTripper(admin), method, path, "")
		a := n.asked[0]
		var got [3]string
		if a.Selected != nil {
			byField, byLabel := a.Selected()
			for _, r := range byField {
				got[0] = r.Field + string(r.Operator) + r.Value
			}
			for _, r := range byLabel {
				got[1] = r.String()
			}
		}
		got[2] = a.Name
		if got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
}

// undecided is an authorizer that returns an error.
type undecided struct{}

func (undecided) Authorize(context.Context, *auth.Attributes) (auth.Decision, string, error) {
	return auth.NoOpinion, "", errors.New("out of order")
}

func TestAuthorizerThatCannotDecideIsNoRefusal(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(o *apiserver.Options) { o.Authorizer = undecided{} })
	if got := send(t, s.RoundTripper(admin), http.MethodGet, widgetsPath, ""); got.code != 500 || !strings.Contains(got.body, "out of order") {
		t.Errorf("%d %s", got.code, got.body)
	}
}
