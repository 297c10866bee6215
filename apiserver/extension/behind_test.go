// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/apiserver/extension"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/certificate"
)

// bookDefinition is a kind of the group of notes with three versions; the stored one is not served.
const bookDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: books.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Book, plural: books}
  versions:
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1alpha1, served: false, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// library serves notes and books.
func library() extension.Server {
	s := noteServer(nil)
	s.Kinds = func(context.Context) ([]extension.Kind, error) {
		return []extension.Kind{
			custom.Kind[*unstructured.Unstructured]{Definition: []byte(definition)},
			custom.Kind[*unstructured.Unstructured]{Definition: []byte(bookDefinition)},
		}, nil
	}
	return s
}

func TestServerRegistersTheVersionsThatItServes(t *testing.T) {
	t.Parallel()
	const services = "/api/v1/namespaces/team/services/"
	for name, c := range map[string]struct {
		args    []string
		service map[string]any // of the APIServices
		made    map[string]any // the spec of the Service that is made, nil: none
	}{
		"by defaults": {
			service: map[string]any{"namespace": "team", "name": "notes", "port": 443.0},
		},
		"at a Service of another name and port": {
			args:    []string{"--service-name", "front", "--service-port", "8443"},
			service: map[string]any{"namespace": "team", "name": "front", "port": 8443.0},
		},
		"at another host": {
			args:    []string{"--external-name", "laptop.example.com", "--service-port", "6443"},
			service: map[string]any{"namespace": "team", "name": "notes", "port": 6443.0},
			made: map[string]any{"type": "ExternalName", "externalName": "laptop.example.com",
				"ports": []any{map[string]any{"name": "https", "port": 6443.0}}},
		},
		"at the port of its address": { // a listener without a port counts as 443
			args:    []string{"--external-name", "laptop.example.com"},
			service: map[string]any{"namespace": "team", "name": "notes", "port": 443.0},
			made: map[string]any{"type": "ExternalName", "externalName": "laptop.example.com",
				"ports": []any{map[string]any{"name": "https", "port": 443.0}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := newFakeCluster()
				r := startBehind(t, cluster, library(), c.args...)
				want := []string{"POST " + secrets}
				if c.made != nil {
					want = append(want, "PATCH "+services+"notes")
				}
				want = append(want, "PATCH "+apis+"v1.example.com", "PATCH "+apis+"v1beta1.example.com")
				if diff := cmp.Diff(want, cluster.written()); diff != "" {
					t.Fatalf("writes (-want +got):\n%s\n%s", diff, r.log)
				}
				if c.made != nil {
					got, manager := cluster.object(t, services+"notes")
					want := map[string]any{
						"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "notes", "namespace": "team"}, "spec": c.made,
					}
					if diff := cmp.Diff(want, got); diff != "" || manager != "notes" {
						t.Errorf("Service of %s (-want +got):\n%s", manager, diff)
					}
				}
				for version, priority := range map[string]float64{"v1": 100, "v1beta1": 99} {
					got, manager := cluster.object(t, apis+version+".example.com")
					want := map[string]any{
						"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + ".example.com"},
						"spec": map[string]any{
							"group": "example.com", "version": version, "groupPriorityMinimum": 1000.0, "versionPriority": priority,
							"service": c.service, "caBundle": base64.StdEncoding.EncodeToString(cluster.bundle(t)),
						},
					}
					if diff := cmp.Diff(want, got); diff != "" || manager != "notes" {
						t.Errorf("APIService of %s (-want +got):\n%s", manager, diff)
					}
				}
				r.client("", cluster.bundle(t)).must(http.StatusOK, "GET", "/readyz", "")
				r.client("user", cluster.bundle(t)).must(http.StatusForbidden, "GET", notes, "")
				r.client("admin", cluster.bundle(t)).must(http.StatusOK, "GET", notes, "")
				if err := r.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestServerSharesTheAuthorityOfTheSecret(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster()
		first := startBehind(t, cluster, noteServer(nil))
		bundle := cluster.bundle(t)
		cluster.written()
		second := startBehind(t, cluster, noteServer(nil))
		if diff := cmp.Diff([]string{"PATCH " + apis + "v1.example.com"}, cluster.written()); diff != "" {
			t.Errorf("writes of a second replica (-want +got):\n%s", diff)
		}
		for _, r := range []*running{first, second} {
			r.client("", bundle).must(http.StatusOK, "GET", "/readyz", "")
		}
		// A Secret that was emptied gets the authority again, by an update.
		cluster.put(secret, `{"metadata": {"resourceVersion": "7"}}`)
		time.Sleep(16 * time.Second)
		synctest.Wait()
		if got := cluster.written(); len(got) == 0 || got[0] != "PUT "+secret {
			t.Errorf("writes to an empty Secret: %q", got)
		}
		if diff := cmp.Diff(string(bundle), string(cluster.bundle(t))); diff != "" {
			t.Errorf("bundle after the Secret was emptied (-want +got):\n%s", diff)
		}
		if err := errors.Join(first.stop(), second.stop()); err != nil {
			t.Error(err)
		}
	})
}

func TestServerTakesTheAuthorityThatAnotherReplicaWasFasterToWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		authority, err := certificate.NewAuthority(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		data, err := authority.Data()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": "1"}, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		cluster := newFakeCluster()
		cluster.answerWith(http.StatusConflict, "POST "+secrets)
		r := startBehind(t, cluster, noteServer(nil))
		if got := cluster.written(); len(got) > 0 {
			t.Errorf("writes before there is an authority: %q", got)
		}
		cluster.put(secret, string(text))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.client("", authority.Bundle()).must(http.StatusOK, "GET", "/readyz", "")
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if strings.Contains(r.log.String(), "level=ERROR") {
			t.Errorf("a conflict is an error:\n%s", r.log)
		}
	})
}

func TestServerLogsTheRightsThatItLacksAndGoesOnOnceItHasThem(t *testing.T) {
	t.Parallel()
	for refused, c := range map[string]struct {
		code int
		want string
	}{
		"GET " + secret: {
			http.StatusForbidden,
			"the server needs create on secrets, and get and update on secrets with the resource name notes-ca; or give it certificate files (--cert-path)",
		},
		"POST " + secrets: {http.StatusUnprocessableEntity, "it is tried again"},
		"PATCH " + apis + "v1.example.com": {
			http.StatusForbidden, "the server needs create and patch on apiservices.apiregistration.k8s.io",
		},
		"PATCH " + apis + "v1beta1.example.com": {http.StatusUnprocessableEntity, "it is tried again"},
	} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := newFakeCluster()
				cluster.answerWith(c.code, refused)
				r := startBehind(t, cluster, library())
				if !strings.Contains(r.log.String(), `advice="`+c.want+`"`) {
					t.Errorf("want the advice %q:\n%s", c.want, r.log)
				}
				cluster.answerWith(0, refused)
				time.Sleep(16 * time.Second)
				synctest.Wait()
				for _, version := range []string{"v1", "v1beta1"} {
					cluster.object(t, apis+version+".example.com")
				}
				r.client("", cluster.bundle(t)).must(http.StatusOK, "GET", "/readyz", "")
				if err := r.stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestServerComparesItsClockWithThatOfTheCluster(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]bool{0: false, 4 * time.Minute: false, time.Hour: true, -time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			cluster := newFakeCluster()
			cluster.ahead = ahead
			r := startBehind(t, cluster, noteServer(nil))
			if err := r.stop(); err != nil {
				t.Error(err)
			}
			if got := strings.Contains(r.log.String(), "set the clocks of both nodes"); got != want {
				t.Errorf("the cluster is %s ahead: reported %v, want %v\n%s", ahead, got, want, r.log)
			}
		})
	}
}

func TestServerToldToStopBeforeItHasACertificate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster()
		cluster.answerWith(http.StatusForbidden, "GET "+secret)
		r := startBehind(t, cluster, noteServer(nil))
		err := r.stop()
		if err == nil || !strings.Contains(err.Error(), "told to stop before it had a certificate") || !strings.Contains(err.Error(), "403") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestServerBehindNeedsTheTrustOfTheCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster()
		cluster.answerWith(http.StatusForbidden, "GET /api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
		r := startBehind(t, cluster, noteServer(nil))
		if err := r.wait(); err == nil || !strings.Contains(err.Error(), "extension-apiserver-authentication-reader") {
			t.Errorf("Run returned %v", err)
		}
	})
}

// TestServerServesUntilItHasDrained stops servers: they are alive but not ready until the
// drain is over.
func TestServerServesUntilItHasDrained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want time.Duration
	}{
		"by default":      {nil, 10 * time.Second},
		"for a while":     {[]string{"--drain", "25s"}, 25 * time.Second},
		"not at all":      {[]string{"--drain", "-1s"}, 0},
		"on another host": {[]string{"--external-name", "laptop", "--drain", "25s"}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster := newFakeCluster()
			r := startBehind(t, cluster, noteServer(nil), c.args...)
			health := r.client("", cluster.bundle(t))
			health.must(http.StatusOK, "GET", "/readyz", "")
			began := time.Now()
			r.cancel()
			if c.want > 0 {
				time.Sleep(c.want - time.Second)
				if got := health.must(http.StatusInternalServerError, "GET", "/readyz", ""); !strings.Contains(got, "[-]drain failed") {
					t.Errorf("%s: not ready for another reason: %s", name, got)
				}
				health.must(http.StatusOK, "GET", "/livez", "")
				r.client("admin", cluster.bundle(t)).must(http.StatusCreated, "POST", notes, note)
			}
			if err := r.wait(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			const closing = 6 * time.Second // net/http and crypto/tls wait up to 5 s for the other end
			if got := time.Since(began); got < c.want || got > c.want+closing {
				t.Errorf("%s: it stopped after %s, want %s", name, got, c.want)
			}
		})
	}
}

func TestServerShowsTheCertificateOfItsFilesAndRegistersNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		authority, err := certificate.NewAuthority(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		issued, err := authority.Issue(time.Now(), "notes.team.svc")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		writePair(t, dir, issued)
		cluster := newFakeCluster()
		r := startBehind(t, cluster, noteServer(nil), "--cert-path", dir)
		r.client("", authority.Bundle()).must(http.StatusOK, "GET", "/readyz", "")
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if got := cluster.written(); len(got) > 0 {
			t.Errorf("writes to the cluster: %q", got)
		}
		missing := startBehind(t, cluster, noteServer(nil), "--cert-path", filepath.Join(dir, "none"))
		if err := missing.wait(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("files that are missing: %v", err)
		}
	})
}

// admission refuses notes with a name.
type admission struct {
	resource.ValidatesOnly
	refused string
}

func (a admission) Validate(_ context.Context, r *resource.AdmissionRequest) error {
	if r.Name == a.refused {
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, errors.New("it is a test"))
	}
	return nil
}

func TestServerRefusesCreationsInNamespacesThatEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := newFakeCluster()
		cluster.put("/api/v1/namespaces/broken", `{}`)
		cluster.answerWith(http.StatusForbidden, "GET /api/v1/namespaces/broken")
		s := noteServer(nil)
		s.Admission = admission{refused: "bread"}
		r := startBehind(t, cluster, s)
		admin := r.client("admin", cluster.bundle(t))
		stored := admin.must(http.StatusCreated, "POST", notes, note)
		cluster.put("/api/v1/namespaces/default", `{"metadata": {"name": "default", "deletionTimestamp": "2000-01-01T00:00:00Z"}}`)
		for _, c := range []struct {
			method, path, body string
			code               int
			want               string
		}{
			{"POST", notes, strings.Replace(note, "milk", "eggs", 1), 403, `notes.example.com "eggs" is forbidden: unable to create new content in namespace default because it is being terminated`},
			{"PUT", notes + "/milk", strings.Replace(stored, "buy", "drink", 1), 200, ""},
			{"DELETE", notes + "/milk", "", 200, ""},
			{"POST", strings.Replace(notes, "default", "absent", 1), note, 404, `namespaces "absent" not found`},
			{"POST", strings.Replace(notes, "default", "broken", 1), note, 500, "Internal error occurred: the cluster answered 403 refused by the test"},
		} {
			text := admin.must(c.code, c.method, c.path, c.body)
			if c.want == "" {
				continue
			}
			var status metav1.Status
			if err := json.Unmarshal([]byte(text), &status); err != nil || status.Message != c.want {
				t.Errorf("%s %s: %s (%v), want %q", c.method, c.path, status.Message, err, c.want)
			}
			if c.code != http.StatusForbidden {
				continue
			}
			cause := metav1.StatusCause{Type: "NamespaceTerminating", Message: "namespace default is being terminated", Field: "metadata.namespace"}
			if diff := cmp.Diff([]metav1.StatusCause{cause}, status.Details.Causes); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		}
		cluster.put("/api/v1/namespaces/default", `{"metadata": {"name": "default"}}`)
		if got := admin.must(http.StatusForbidden, "POST", notes, strings.Replace(note, "milk", "bread", 1)); !strings.Contains(got, "it is a test") {
			t.Errorf("the admission of the author: %s", got)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}
