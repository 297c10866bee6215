// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	core "github.com/steer-dev/steer/controlplane/core/autoscaling"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

var record = flag.Bool("record", false, "record testdata/scenes.txt from the controller in $STEER_UPSTREAM_BIN, in some minutes")

const recordedFile = "testdata/scenes.txt"

// TestControllerDecidesAsThatOfACluster plays scenes, and compares statuses and Events with
// those that the controller of kube-controller-manager has written on kube-apiserver.
func TestControllerDecidesAsThatOfACluster(t *testing.T) {
	t.Parallel()
	if *record {
		if err := os.WriteFile(recordedFile, recordScenes(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[string]string{}
	for _, part := range strings.Split(string(want), "-- ")[1:] {
		name, text, _ := strings.Cut(part, " --\n")
		recorded[name] = text
	}
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			got := playScene(t, s)
			for i, text := range got {
				name := fmt.Sprintf("%s/%d", s.name, i)
				if diff := cmp.Diff(recorded[name], text); diff != "" {
					t.Errorf("pass %d, %+v (-the controller of a cluster +this one):\n%s", i, s.passes[i], diff)
				}
			}
		})
	}
}

// playScene returns what each pass shows.
func playScene(t *testing.T, s scene) (out []string) {
	t.Helper()
	w := newWorld(t,
		step.Resource{Bucket: "example.com/widgets", Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget", Namespaced: true},
		step.Resource{Bucket: "networking.k8s.io/ingresses", Group: "networking.k8s.io", Version: "v1", Plural: "ingresses", Kind: "Ingress", Namespaced: true},
		step.Resource{Bucket: "services", Version: "v1", Plural: "services", Kind: "Service", Namespaced: true},
		step.Resource{Bucket: "namespaces", Version: "v1", Plural: "namespaces", Kind: "Namespace"})
	server := &metricServer{now: func() time.Time { return w.now }, scene: map[string]*served{}}
	w.controller.fetch = func(_ context.Context, r step.Request) (io.ReadCloser, error) {
		request := httptest.NewRequest(r.Method, r.Path, http.NoBody)
		request.URL.RawQuery = r.Query.Encode()
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, request)
		if answer.Code >= 300 {
			return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(answer.Code), Message: answer.Body.String()}}
		}
		return io.NopCloser(answer.Body), nil
	}
	w.put(t, "namespaces", s.name, "{metadata: {name: "+s.name+"}}")
	w.put(t, definitions, "widgets.example.com", widgetDefinition)
	widget := func(replicas int) {
		w.put(t, "example.com/widgets", s.name+"/w", fmt.Sprintf(widgetManifest, s.name, replicas))
	}
	key := storage.Key{Bucket: scalers, Name: s.name + "/a"}
	replicas := s.replicas
	pods := 0
	for i, c := range s.passes {
		if i == 0 && c.pods == "" {
			c.pods = s.pods
		}
		server.set(s.name, c)
		for ; pods > 0 && c.pods != ""; pods-- {
			steptest.Put(t, w.store, storage.Key{Bucket: "pods", Name: fmt.Sprintf("%s/p%d", s.name, pods-1)}, nil)
		}
		for ; pods < len(c.pods); pods++ {
			steptest.Put(t, w.store, storage.Key{Bucket: "pods", Name: fmt.Sprintf("%s/p%d", s.name, pods)}, podManifest(pods, c.pods[pods], w.now))
		}
		if c.replicas != 0 {
			replicas = max(c.replicas, 0)
		}
		widget(replicas)
		if i == 0 {
			steptest.Put(t, w.store, key, stored(t, fmt.Sprintf(scalerManifest, s.name, s.spec)))
		}
		w.told = nil
		for r := w.step(t); r != nil; r = w.step(t) {
			if strings.HasSuffix(r.Path, "/status") {
				w.put(t, scalers, s.name+"/a", string(r.Body))
			} else {
				var scale autoscalingv1.Scale
				if err := json.Unmarshal(r.Body, &scale); err != nil {
					t.Fatal(err)
				}
				replicas = int(scale.Spec.Replicas)
				w.put(t, "example.com/widgets", s.name+"/w", fmt.Sprintf(widgetManifest, s.name, replicas))
			}
			w.controller.Done(*r, nil)
		}
		o := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := json.Unmarshal(w.store.Latest().Get(key).Value, o); err != nil {
			t.Fatal(err)
		}
		out = append(out, statusText(int64(replicas), o, w.told))
		w.now = w.now.Add(period)
	}
	return out
}

// stored returns an autoscaler as the server stores it, with its defaults.
func stored(t *testing.T, manifest string) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	o := &autoscalingv2.HorizontalPodAutoscaler{}
	if err := yaml.UnmarshalStrict([]byte(manifest), o); err != nil {
		t.Fatal(err)
	}
	if _, err := core.Resources()[0].Versions[0].Strategy.Default(o); err != nil {
		t.Fatal(err)
	}
	return o
}

// recordScenes plays the scenes on kube-apiserver, in real time.
func recordScenes(t *testing.T) []byte {
	t.Helper()
	bin := os.Getenv("STEER_UPSTREAM_BIN")
	if bin == "" {
		t.Fatal("STEER_UPSTREAM_BIN has to name the directory that `make -C oracle` fills")
	}
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "controllers"))
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = input.Close(); _ = command.Wait() }()
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // of this test
	if err := json.Unmarshal(line, &c.at); err != nil {
		t.Fatal(err)
	}
	server := &metricServer{now: time.Now, scene: map[string]*served{}}
	c.aggregate(server)
	c.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgetDefinition, nil)
	c.until("the definition is served", func() bool { return c.try("GET", "/apis/example.com/v1/widgets", "", nil) == 200 })
	var wait sync.WaitGroup
	texts := make([]string, len(scenes()))
	for i, s := range scenes() {
		wait.Go(func() { texts[i] = c.play(server, s) })
	}
	wait.Wait()
	return []byte("Statuses and Events of HorizontalPodAutoscalers of scenes_test.go, as the controller of kube-controller-manager writes them.\n" + strings.Join(texts, ""))
}

// cluster is kube-apiserver with controllers.
type cluster struct {
	t  *testing.T
	at struct {
		URL   string `json:"url"`
		Token string `json:"token"`
	}
	client *http.Client
}

// try sends a request with a body in YAML, and returns the status of the answer.
func (c *cluster) try(method, path, body string, into any) int {
	raw, err := yaml.YAMLToJSON([]byte(body))
	if err != nil {
		c.t.Error(err)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.at.URL+path, bytes.NewReader(raw))
	if err != nil {
		c.t.Error(err)
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+c.at.Token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", step.MergePatch)
	}
	if method == http.MethodGet {
		request.Body = http.NoBody
	}
	answer, err := c.client.Do(request)
	if err != nil {
		c.t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Error(err)
	}
	if answer.StatusCode >= 300 && method != http.MethodGet {
		c.t.Errorf("%s %s: %d: %s", method, path, answer.StatusCode, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Error(err)
		}
	}
	return answer.StatusCode
}

func (c *cluster) do(method, path, body string, into any) {
	if code := c.try(method, path, body, into); code >= 300 || code == 0 {
		c.t.Errorf("%s %s: %d", method, path, code)
	}
}

// until waits for a condition.
func (c *cluster) until(what string, holds func() bool) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !holds(); {
		select {
		case <-end:
			c.t.Errorf("after a minute not: %s", what)
			return
		case <-tick.C:
		}
	}
}

// aggregate has kube-apiserver pass requests for metrics to a server.
func (c *cluster) aggregate(h http.Handler) {
	backend := httptest.NewTLSServer(h)
	c.t.Cleanup(backend.Close)
	_, port, err := net.SplitHostPort(backend.Listener.Addr().String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.do("POST", "/api/v1/namespaces/default/services", "{metadata: {name: metrics}, spec: {type: ExternalName, externalName: localhost, ports: [{port: "+port+"}]}}", nil)
	for _, gv := range []string{"v1beta1.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io", "v1beta1.external.metrics.k8s.io"} {
		version, group, _ := strings.Cut(gv, ".")
		c.do("POST", "/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf("{metadata: {name: %s}, spec: {group: %s, version: %s, insecureSkipTLSVerify: true, "+
			"groupPriorityMinimum: 100, versionPriority: 100, service: {namespace: default, name: metrics, port: %s}}}", gv, group, version, port), nil)
		c.until(gv+" is served", func() bool {
			return c.try("GET", "/apis/"+group+"/"+version, "", nil) == 200 && c.try("GET", "/apis/"+group, "", nil) == 200
		})
	}
}

// play plays one scene: each change is followed by one pass.
func (c *cluster) play(server *metricServer, s scene) string {
	c.do("POST", "/api/v1/namespaces", "{metadata: {name: "+s.name+"}}", nil)
	widgets, pods := "/apis/example.com/v1/namespaces/"+s.name+"/widgets", "/api/v1/namespaces/"+s.name+"/pods"
	c.do("POST", widgets, fmt.Sprintf(widgetManifest, s.name, s.replicas), nil)
	var out strings.Builder
	told := map[string]int32{}
	for i, change := range s.passes {
		if i == 0 && change.pods == "" {
			change.pods = s.pods
		}
		if change.pods != "" {
			c.do("DELETE", pods+"?gracePeriodSeconds=0", "{}", nil)
		}
		for k := range len(change.pods) {
			manifest := podManifest(k, change.pods[k], time.Now())
			body, _ := json.Marshal(manifest)
			c.do("POST", pods, string(body), nil)
			status, _ := json.Marshal(map[string]any{"status": manifest["status"]})
			c.do("PATCH", fmt.Sprintf("%s/p%d/status", pods, k), string(status), nil)
		}
		if change.replicas != 0 {
			c.do("PATCH", widgets+"/w", fmt.Sprintf("{spec: {replicas: %d}}", max(change.replicas, 0)), nil)
		}
		var w struct{ Spec, Status struct{ Replicas int64 } }
		c.do("GET", widgets+"/w", "", &w)
		c.do("PATCH", widgets+"/w", fmt.Sprintf("{status: {replicas: %d}}", w.Spec.Replicas), nil)
		time.Sleep(time.Second) // until the controller has seen the Pods
		server.set(s.name, change)
		if i == 0 {
			c.do("POST", "/apis/autoscaling/v2/namespaces/"+s.name+"/horizontalpodautoscalers", fmt.Sprintf(scalerManifest, s.name, s.spec), nil)
		}
		// A pass without metrics is over after 15 seconds, that of a new autoscaler at once.
		most := 17 * time.Second
		if i == 0 {
			most = 5 * time.Second
		}
		for end := time.Now().Add(most); time.Now().Before(end) && !server.wasRead(s.name); {
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(1500 * time.Millisecond)
		c.do("GET", widgets+"/w", "", &w)
		o := &autoscalingv2.HorizontalPodAutoscaler{}
		c.do("GET", "/apis/autoscaling/v2/namespaces/"+s.name+"/horizontalpodautoscalers/a", "", o)
		var list corev1.EventList
		c.do("GET", "/api/v1/namespaces/"+s.name+"/events", "", &list)
		var fresh []string
		for k := range list.Items {
			e := &list.Items[k]
			if e.InvolvedObject.Kind == "HorizontalPodAutoscaler" && told[e.Name] != e.Count {
				told[e.Name] = e.Count
				fresh = append(fresh, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
			}
		}
		fmt.Fprintf(&out, "-- %s/%d --\n%s", s.name, i, statusText(w.Spec.Replicas, o, fresh))
	}
	return out.String()
}
