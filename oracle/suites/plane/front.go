// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// Front is what a test puts into the process of a server: who users are, and what they may do. It
// stands before Steer as a proxy, and has Steer take users for those that it names by impersonation.
// Requests of the administrator pass as they are.
type Front struct {
	// Authenticator of users. nil: Steer's, which a [Delegate] stands for.
	Authenticator authenticator.Request
	// Authorizer of requests, before Steer's. nil: Steer's.
	Authorizer authorizer.Authorizer
}

// Delegate stands for Steer's authenticator where a test makes its own of several.
type Delegate struct{}

// asked is the key of a context for whether Steer is asked who a user is.
type asked struct{}

// AuthenticateRequest implements [authenticator.Request]: it leaves the request to Steer.
func (Delegate) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if delegated, ok := r.Context().Value(asked{}).(*bool); ok {
		*delegated = true
	}
	return nil, false, nil
}

// front is a running one.
type front struct {
	Front
	admin   *rest.Config
	client  *http.Client
	infos   request.RequestInfoFactory
	forward *httputil.ReverseProxy
}

// Behind puts a front before the server: Config leads to it from now on.
func (p *Plane) Behind(f Front) error {
	server, err := newFront(f, p.Config)
	if err != nil {
		return err
	}
	p.front = server
	ca := filepath.Join(p.dir, "front.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o644); err != nil {
		return err
	}
	config := rest.CopyConfig(p.Config)
	config.Host, config.TLSClientConfig = server.URL, rest.TLSClientConfig{CAFile: ca}
	p.Config = config
	return nil
}

func newFront(f Front, admin *rest.Config) (*httptest.Server, error) {
	to, err := url.Parse(admin.Host)
	if err != nil {
		return nil, err
	}
	// Requests have the credentials of their clients, or those of the administrator by a header.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(admin))
	if err != nil {
		return nil, err
	}
	h := &front{
		Front: f, admin: admin, client: &http.Client{Transport: transport},
		infos: request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")},
		forward: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport:     transport,
			FlushInterval: -1, // watches
		},
	}
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	return server, nil
}

// ServeHTTP implements [http.Handler].
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if bearer(r) == f.admin.BearerToken {
		f.forward.ServeHTTP(w, r)
		return
	}
	as, unknown := f.authenticate(r)
	if unknown {
		refuse(w, metav1.StatusReasonUnauthorized, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if as != nil && r.Header.Get(authenticationv1.ImpersonateUserHeader) != "" {
		refuse(w, metav1.StatusReasonInternalError, http.StatusNotImplemented, "a user of the test's own authenticator cannot impersonate: the front does so for it")
		return
	}
	if f.Authorizer != nil {
		reason, warnings, err := f.authorize(r, as)
		w.Header()["Warning"] = warnings // none, where Steer adds its own
		if err != nil {
			refuse(w, metav1.StatusReasonInternalError, http.StatusInternalServerError, err.Error())
			return
		}
		if reason != "" {
			refuse(w, metav1.StatusReasonForbidden, http.StatusForbidden, reason)
			return
		}
	}
	if as != nil {
		impersonate(r.Header, as, f.admin.BearerToken)
	}
	f.forward.ServeHTTP(w, r)
}

// authenticate returns the user of the test's authenticator, nil if that leaves the request to
// Steer, or that it is refused.
func (f *front) authenticate(r *http.Request) (as user.Info, unknown bool) {
	if f.Authenticator == nil {
		return nil, false
	}
	var delegated bool
	// It takes the credentials that it knows out of the request.
	response, ok, err := f.Authenticator.AuthenticateRequest(r.Clone(context.WithValue(r.Context(), asked{}, &delegated)))
	if err == nil && ok {
		return response.User, false
	}
	return nil, !delegated
}

// authorize returns why a request is refused, with the warnings that Steer has for its user; it is
// not, where the reason is empty, and where Steer does not know its user and refuses it.
func (f *front) authorize(r *http.Request, as user.Info) (refused string, warnings []string, err error) {
	if as == nil {
		if as, warnings, err = f.whoIs(r); err != nil || as == nil {
			return "", nil, err
		}
	}
	info, err := f.infos.NewRequestInfo(r)
	if err != nil {
		return "", nil, err
	}
	attributes, err := filters.GetAuthorizerAttributes(request.WithUser(request.WithRequestInfo(r.Context(), info), as))
	if err != nil {
		return "", nil, err
	}
	decision, reason, err := f.Authorizer.Authorize(r.Context(), attributes)
	if decision == authorizer.DecisionAllow {
		return "", nil, nil
	}
	return fmt.Sprintf("%s may not %s %s: %s", as.GetName(), info.Verb, info.Path, reason), warnings, err
}

// whoIs asks Steer for the user of a request, nil if it does not know one, and its warnings.
func (f *front) whoIs(r *http.Request) (user.Info, []string, error) {
	question, err := http.NewRequestWithContext(r.Context(), http.MethodPost, f.admin.Host+"/apis/authentication.k8s.io/v1/selfsubjectreviews",
		strings.NewReader(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`))
	if err != nil {
		return nil, nil, err
	}
	question.Header = http.Header{"Authorization": r.Header["Authorization"], "Content-Type": {"application/json"}}
	answer, err := f.client.Do(question)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusUnauthorized:
		return nil, nil, nil // no user
	case http.StatusCreated:
	default:
		return nil, nil, fmt.Errorf("ask who a user is: %s", answer.Status)
	}
	var review authenticationv1.SelfSubjectReview
	if err := json.NewDecoder(answer.Body).Decode(&review); err != nil {
		return nil, nil, err
	}
	is := review.Status.UserInfo
	extra := map[string][]string{}
	for key, values := range is.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: is.Username, UID: is.UID, Groups: is.Groups, Extra: extra}, answer.Header.Values("Warning"), nil
}

// impersonate has a request come from the administrator, as a user.
func impersonate(h http.Header, as user.Info, token string) {
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.HasPrefix(name, "Impersonate-") })
	h.Set("Authorization", "Bearer "+token)
	h.Set(authenticationv1.ImpersonateUserHeader, as.GetName())
	if as.GetUID() != "" {
		h.Set(authenticationv1.ImpersonateUIDHeader, as.GetUID())
	}
	for _, group := range as.GetGroups() {
		h.Add(authenticationv1.ImpersonateGroupHeader, group)
	}
	for key, values := range as.GetExtra() {
		for _, value := range values {
			h.Add(authenticationv1.ImpersonateUserExtraHeaderPrefix+url.PathEscape(key), value)
		}
	}
}

func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

func refuse(w http.ResponseWriter, reason metav1.StatusReason, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reason, Code: int32(code), Message: message, // a code of HTTP
	}) // the client may have gone
}
