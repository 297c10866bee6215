// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package planeflags_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
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
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/storage"
)

const refusal = `admission webhook "refuse.example.com" denied the request: not today`

// refuser serves a webhook that refuses every request. It returns a value of --service
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

// applying returns what applies manifests to the control plane of a kubeconfig.
func applying(t *testing.T, kubeconfig string) func(files ...string) error {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{FieldOwner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return func(files ...string) error {
		objects, err := manifest.Read(files...)
		if err != nil {
			t.Fatal(err)
		}
		return manifest.Apply(t.Context(), c, "", objects)
	}
}

func TestUpCallsWebhooksOfServicesAtGivenAddresses(t *testing.T) {
	t.Parallel()
	service, configuration, configMap := refuser(t)
	for what, flags := range map[string][]string{
		"the Service": {"--service", service},
		"its port":    {"--service", strings.Replace(service, "=", ":443=", 1), "--service", "operators/hook=127.0.0.1:1"},
	} {
		apply := applying(t, startUp(t, flags...))
		if err := apply(configuration, configMap); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s has an address: got %v, want %s", what, err, refusal)
		}
	}
}

// TestErrorsOfWebhooksNameTheFlagOfServices that lead nowhere.
func TestErrorsOfWebhooksNameTheFlagOfServices(t *testing.T) {
	t.Parallel()
	_, configuration, configMap := refuser(t)
	const want = "--service operators/hook=HOST:PORT"
	if err := applying(t, startUp(t))(configuration, configMap); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error that names %s", err, want)
	}
}

// setServices runs steer service, and returns what it prints.
func setServices(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	cmd := up.NewService()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestServicesGetAddressesWhileAControlPlaneRuns does what the error of a webhook says.
func TestServicesGetAddressesWhileAControlPlaneRuns(t *testing.T) {
	t.Parallel()
	service, configuration, configMap := refuser(t)
	kubeconfig := startUp(t, "--"+planeflags.AllowServiceChanges)
	apply := applying(t, kubeconfig)
	const advice = "steer service operators/hook=HOST:PORT"
	if err := apply(configuration, configMap); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("got %v, want an error that names %s", err, advice)
	}
	if out, err := setServices(t, "--kubeconfig", kubeconfig, service, "a/b:8443=127.0.0.1:1"); err != nil || out != "a/b:8443=127.0.0.1:1\n"+service+"\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if err := apply(configMap); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("the Service has an address: got %v, want %s", err, refusal)
	}
	if out, err := setServices(t, "--kubeconfig", kubeconfig, "operators/hook-", "a/b:8443-"); err != nil || out != "" {
		t.Errorf("got %q, %v", out, err)
	}
	if err := apply(configMap); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("the Service has none any more: got %v, want an error that names %s", err, advice)
	}
}

func TestMistakesWithAddressesOfServices(t *testing.T) {
	t.Parallel()
	fixed := startUp(t, "--service", "a/b=127.0.0.1:1")
	for want, args := range map[string][]string{
		"the address is missing":                         {"shop/hook"},
		"the namespace of the Service is missing":        {"hook-"},
		"shop/hook is given twice":                       {"shop/hook-", "shop/hook=127.0.0.1:1"},
		"start it with steer up --allow-service-changes": {"--kubeconfig", fixed, "shop/hook=127.0.0.1:1"},
	} {
		if _, err := setServices(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", args, err, want)
		}
	}
	for want, args := range map[string][]string{
		`--service: "shop/hook": the address is missing`: {"--service", "shop/hook", "--in-memory"},
		"give --service to each of them":                 {"--allow-service-changes", "--etcd-servers", "http://127.0.0.1:1"},
	} {
		cmd := up.New(func(context.Context, up.Etcd) (storage.Elector, error) { return nil, errors.New("etcd is opened") })
		cmd.SetArgs(append(args, "--listen=127.0.0.1:0"))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("steer up %q: got %v, want %s", args, err, want)
		}
	}
}

func TestDevCallsWebhooksOfServicesAtGivenAddresses(t *testing.T) {
	t.Parallel()
	service, configuration, configMap := refuser(t)
	var services planeflags.Services
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	services.AddFlags(flags, "")
	var webhooks webhookclient.Options
	if err := errors.Join(flags.Parse([]string{"--service", service}), services.Apply(&webhooks)); err != nil {
		t.Fatal(err)
	}
	if err := dev.Command(t.Context(), dev.CommandOptions{Manifests: []string{configuration, configMap}, Webhooks: webhooks, Errs: io.Discard}, []string{"true"}); err == nil || !strings.Contains(err.Error(), refusal) {
		t.Errorf("apply the ConfigMap: got %v, want %s", err, refusal)
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
