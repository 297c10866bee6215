// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane"
)

func TestServersAnswerUsersAlike(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	leader, follower := c.leader()
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	for name, tt := range map[string]struct {
		path   string
		header map[string]string
		want   int
		says   string
	}{
		"a user without a role": {
			configMaps, map[string]string{"Impersonate-User": "jane"}, http.StatusForbidden,
			`configmaps is forbidden: User \"jane\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\"`,
		},
		"a name that a client claims": {
			configMaps + "?dryRun=All", map[string]string{"X-Remote-User": "jane", "Steer-Peer-User": "eyJOYW1lIjoiamFuZSJ9"}, http.StatusCreated, `"name":"a"`,
		},
		"a resource that there is not": {"/apis/example.com/v1/things", nil, http.StatusNotFound, "404 page not found"},
		"a kind that is reviewed here": {
			"/apis/authentication.k8s.io/v1/selfsubjectreviews", map[string]string{"Impersonate-User": "jane", "Impersonate-Group": "dev"}, http.StatusCreated, `"username":"jane"`,
		},
		"a dry run that is none": {configMaps + "?dryRun=x", nil, http.StatusUnprocessableEntity, "supported values"},
	} {
		body := object
		if strings.Contains(tt.path, "selfsubject") {
			body = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
		}
		header := map[string]string{"Content-Type": "application/json"}
		for k, v := range tt.header {
			header[k] = v
		}
		for who, s := range map[string]*server{"leader": leader, "follower": follower} {
			if code, answer := s.send(http.MethodPost, tt.path, body, header); code != tt.want || !strings.Contains(string(answer), tt.says) {
				t.Errorf("%s, %s: %d %s", name, who, code, answer)
			}
		}
	}
}

func TestServersEndWatchesOfDefinitionsThatAreGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	leader, follower := c.leader()
	leader.must(http.MethodPost, definitions, cronTabCRD("crontabs", "CronTab", "ct"))
	watch := follower.open(t.Context(), http.MethodGet, cronTabs+"?watch=true", "")
	defer watch.Body.Close()
	if watch.StatusCode != http.StatusOK {
		t.Fatal(watch.Status)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, watch.Body)
		ended <- err
	}()
	leader.must(http.MethodDelete, definitions+"/crontabs.stable.example.com", "")
	if err := <-ended; err != nil { // no request reaches the follower meanwhile
		t.Error(err)
	}
	if got := follower.refused(http.MethodGet, cronTabs, ""); !strings.HasPrefix(got, "404") {
		t.Errorf("a list of what is gone: %s", got)
	}
}

func TestServersDelegateToTheServersOfAPIServices(t *testing.T) {
	t.Parallel()
	wing := newWingServer(t, map[string]http.HandlerFunc{wings: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Steer-Peer-Refused", "true")
		w.Header().Set("Steer-Peer-Protocol", "9")
		_, _ = io.WriteString(w, "a wing")
	}})
	c := newClusterOf(t, 2, func(o *controlplane.Options) { o.Webhooks.Resolve = wing.resolve })
	leader, follower := c.leader()
	follower.must(http.MethodPost, apiServices, wingService+"insecureSkipTLSVerify: true}\n")
	for _, s := range []*server{leader, follower} { // the leader finds out whether it is available
		s.must(http.MethodGet, apiServices+"/v1.wings.example.com", "")
		if _, err := s.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for who, s := range map[string]*server{"leader": leader, "follower": follower} {
		answered := s.open(t.Context(), http.MethodGet, wings, "")
		_ = answered.Body.Close()
		for name := range answered.Header {
			if strings.HasPrefix(name, "Steer-Peer-") {
				t.Errorf("%s: what a backend says to servers reaches a client: %s", who, name)
			}
		}
		if code, answer := s.do(http.MethodGet, wings, ""); code != http.StatusOK || string(answer) != "a wing" {
			t.Errorf("%s: %d %s", who, code, answer)
		}
		if code, answer := s.do(http.MethodPost, wings, "{}"); code != http.StatusOK || string(answer) != "a wing" {
			t.Errorf("a write, %s: %d %s", who, code, answer)
		}
		accept := map[string]string{"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
		if code, answer := s.send(http.MethodGet, "/apis", "", accept); code != http.StatusOK || !strings.Contains(string(answer), `"wings/exec"`) && !strings.Contains(string(answer), `"subresource":"exec"`) {
			t.Errorf("discovery, %s: %d, without the resources of the other server", who, code)
		}
	}
}
