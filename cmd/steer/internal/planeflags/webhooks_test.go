// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/dev"
	"github.com/steer-dev/steer/cmd/steer/internal/envtest"
	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/cmd/steer/up"
)

const refusal = `admission webhook "refuse.example.com" denied the request: not today`

// refuser serves a webhook that refuses every request. It returns a value of --webhook-service
// and the files of a configuration with the Service, and of a ConfigMap that is refused.
func refuser(t *testing.T) (service string, configuration, configMap string) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("hook.operators.svc", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Errorf("read a review: %v", err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "not today"}}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Errorf("answer a review: %v", err)
		}
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	configuration = write("configuration.yaml", fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuse}
webhooks:
- name: refuse.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: operators, name: hook}, caBundle: %s}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
`, base64.StdEncoding.EncodeToString(certPEM)))
	configMap = write("configmap.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: refused, namespace: default}\n")
	return "operators/hook=" + server.Listener.Addr().String(), configuration, configMap
}

// startUp starts steer up in memory, and returns its kubeconfig once it says that it is up.
func startUp(t *testing.T, flags ...string) (kubeconfig string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	r, w := io.Pipe()
	cmd := up.New(nil)
	cmd.SetArgs(append([]string{"--in-memory", "--bare", "--listen=127.0.0.1:0", "--kubeconfig", kubeconfig}, flags...))
	cmd.SetOut(w)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	done := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = w.CloseWithError(io.EOF) // never fails
		done <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal("steer up ended early")
	}
	go func() { _, _ = io.Copy(io.Discard, r) }() // until it ends
	return kubeconfig
}

func TestUpCallsWebhooksOfServicesAtGivenAddresses(t *testing.T) {
	t.Parallel()
	service, configuration, configMap := refuser(t)
	config, err := clientcmd.BuildConfigFromFlags("", startUp(t, "--"+planeflags.WebhookService, service))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{FieldOwner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Read(configuration, configMap)
	if err != nil {
		t.Fatal(err)
	}
	if err := manifest.Apply(t.Context(), c, "", objects); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("apply the ConfigMap: got %v, want %s", err, refusal)
	}
}

func TestDevCallsWebhooksOfServicesAtGivenAddresses(t *testing.T) {
	t.Parallel()
	service, configuration, configMap := refuser(t)
	webhooks, err := planeflags.WebhookOptions([]string{service})
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Command(t.Context(), dev.CommandOptions{Manifests: []string{configuration, configMap}, Webhooks: webhooks, Errs: io.Discard}, []string{"true"}); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("apply the ConfigMap: got %v, want %s", err, refusal)
	}
}

func TestWebhookServicesOfFlagsAreValidated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"operators/hook":                   "the address is missing",
		"hook=127.0.0.1:9443":              "the namespace of the Service is missing",
		"/hook=127.0.0.1:9443":             `"" is not a name of a namespace`,
		"operators/Hook=127.0.0.1:9443":    `"Hook" is not a name of a Service`,
		"operators/hook=127.0.0.1":         `"127.0.0.1" is not an address HOST:PORT`,
		"operators/hook=:9443":             `":9443" is not an address HOST:PORT`,
		"operators/hook=localhost:0":       `"0" is not a port`,
		"operators/hook=localhost:webhook": `"webhook" is not a port`,
		"operators/hook=[::1]:65536":       `"65536" is not a port`,
	} {
		_, err := planeflags.WebhookOptions([]string{text})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--webhook-service: ") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	_, err := planeflags.WebhookOptions([]string{"operators/hook=localhost:1", "operators/hook=localhost:2"})
	if err == nil || !strings.Contains(err.Error(), "operators/hook is given as localhost:1 and as localhost:2") {
		t.Errorf("a Service that is given twice: got %v", err)
	}
}

// TestAdmissionControlOfFlagsIsValidated gives files that cannot be used to both programs.
func TestAdmissionControlOfFlagsIsValidated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: "
	missing := write("missing.yaml", head+"[{name: MutatingAdmissionWebhook, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: "+dir+"/none}}]")
	for file, want := range map[string]string{
		filepath.Join(dir, "none.yaml"):                   "none.yaml: no such file",
		write("other.yaml", head+"[{name: ImagePolicy}]"): `"ImagePolicy" cannot be configured`,
		missing: "load the kubeConfigFile of MutatingAdmissionWebhook: open " + dir + "/none: no such file",
	} {
		for program, run := range map[string]func() error{
			"steer up": func() error {
				cmd := up.New(nil)
				cmd.SetArgs([]string{"--in-memory", "--bare", "--listen=127.0.0.1:0", "--" + planeflags.AdmissionControl, file})
				cmd.SilenceErrors, cmd.SilenceUsage = true, true
				return cmd.ExecuteContext(t.Context())
			},
			"kube-apiserver": func() error {
				cmd := envtest.New("kube-apiserver")
				cmd.SetArgs([]string{"--secure-port=1", "--authorization-mode=RBAC", "--" + planeflags.AdmissionControl + "=" + file})
				return cmd.ExecuteContext(t.Context())
			},
		} {
			if err := run(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s with %s: got %v, want one line with %s", program, file, err, want)
			}
		}
	}
}
