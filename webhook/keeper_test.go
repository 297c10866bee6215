// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/certificate"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/webhook"
)

const configured = "mutating-webhook-configuration"

// keeping is a control plane with webhook configurations, and replicas of an operator.
type keeping struct {
	*steertest.Env
	t *testing.T
}

func newKeeping(t *testing.T) keeping {
	t.Helper()
	scheme, err := client.NewScheme(addWidgets, corev1.AddToScheme, admissionv1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	k := keeping{steertest.New(t, steertest.Options{Scheme: scheme}), t}
	k.Create(configuration())
	k.Create(widgetDefinition())
	return k
}

// configuration has webhooks of the operator, of another Service, of another path, and
// by URL.
func configuration() *admissionv1.MutatingWebhookConfiguration {
	path, other, url, none := mutatePath, "/elsewhere", "https://example.com", admissionv1.SideEffectClassNone
	hook := func(name string, c admissionv1.WebhookClientConfig) admissionv1.MutatingWebhook {
		return admissionv1.MutatingWebhook{Name: name + ".example.com", ClientConfig: c, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}}
	}
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configured},
		Webhooks: []admissionv1.MutatingWebhook{
			hook("ours", admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "default", Name: "webhooks", Path: &path}}),
			hook("path", admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "default", Name: "webhooks", Path: &other}}),
			hook("service", admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "other", Name: "webhooks", Path: &path}}),
			hook("url", admissionv1.WebhookClientConfig{URL: &url}),
		},
	}
}

func widgetDefinition() client.Object {
	var versions []any
	for _, v := range []string{"v1", "v2", "v3"} {
		versions = append(versions, map[string]any{
			"name": v, "served": true, "storage": v == "v2",
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "versions": versions,
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"conversionReviewVersions": []any{"v1"},
				"clientConfig":             map[string]any{"service": map[string]any{"namespace": "default", "name": "webhooks", "path": "/convert"}},
			}},
		},
	}}
}

// replica starts a replica, which ends with the returned function.
func (k keeping) replica(c client.Client) (shown func() *tls.Certificate, log *lines, stop func()) {
	k.t.Helper()
	return k.replicaWith(c, func(*webhook.Options) {})
}

func (k keeping) replicaWith(c client.Client, change func(*webhook.Options)) (shown func() *tls.Certificate, log *lines, stop func()) {
	k.t.Helper()
	log = &lines{}
	o := webhook.Options{
		Scheme: k.Client.Scheme(), Client: c, Authority: webhook.Authority{Namespace: "default", Secret: "widgets-webhook-ca"}, Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	change(&o)
	w := web{webhook.New(o), log}
	if err := webhook.AddDefaulter(w, defaulter(func(context.Context, *widget) error { return nil })); err != nil {
		k.t.Fatal(err)
	}
	if err := webhook.AddConversion(w, &widget{}); err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(k.t.Context())
	return w.Keep(ctx), log, cancel
}

func get[T client.Object](k keeping, key string, obj T) T {
	k.t.Helper()
	if err := k.Client.Get(k.t.Context(), steertest.Key(key), obj); err != nil {
		k.t.Fatal(err)
	}
	return obj
}

func (k keeping) configuration() *admissionv1.MutatingWebhookConfiguration {
	k.t.Helper()
	return get(k, configured, &admissionv1.MutatingWebhookConfiguration{})
}

func (k keeping) update(obj client.Object) {
	k.t.Helper()
	if err := k.Client.Update(k.t.Context(), obj); err != nil {
		k.t.Fatal(err)
	}
}

func (k keeping) remove(obj client.Object) {
	k.t.Helper()
	if err := k.Client.Delete(k.t.Context(), obj); err != nil {
		k.t.Fatal(err)
	}
}

func (k keeping) secret() *corev1.Secret {
	k.t.Helper()
	return get(k, "default/widgets-webhook-ca", &corev1.Secret{})
}

// bundles are the caBundles of the configuration, and of the definition.
func (k keeping) bundles() (hooks map[string][]byte, definition []byte) {
	k.t.Helper()
	hooks = map[string][]byte{}
	for _, hook := range k.configuration().Webhooks {
		hooks[strings.TrimSuffix(hook.Name, ".example.com")] = hook.ClientConfig.CABundle
	}
	crd := get(k, "widgets.example.com", widgetDefinition())
	var read struct {
		Spec struct {
			Conversion struct {
				Webhook struct{ ClientConfig struct{ CABundle []byte } }
			}
		}
	}
	text, err := json.Marshal(crd)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil {
		k.t.Fatal(err)
	}
	return hooks, read.Spec.Conversion.Webhook.ClientConfig.CABundle
}

// trusts reports whether an API server with a bundle trusts a certificate as that of
// the operator's Service.
func trusts(bundle []byte, c *tls.Certificate) bool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	if c == nil {
		return false
	}
	_, err := c.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "webhooks.default.svc", CurrentTime: time.Now()})
	return err == nil
}

func keep(t *testing.T, test func(k keeping)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(newKeeping(t)) })
}

func TestKeeperGivesAPIServersOneAuthorityOfAllReplicas(t *testing.T) {
	keep(t, func(k keeping) {
		one, _, stop := k.replica(k.Client)
		defer stop()
		two, _, stop := k.replica(k.Client)
		defer stop()
		time.Sleep(time.Minute)
		hooks, definition := k.bundles()
		if !trusts(hooks["ours"], one()) || !trusts(hooks["ours"], two()) || !bytes.Equal(definition, hooks["ours"]) || !bytes.Equal(hooks["ours"], k.secret().Data["ca.crt"]) {
			k.t.Errorf("the replicas are not trusted: %s %s", hooks, definition)
		}
		for _, other := range []string{"path", "service", "url"} {
			if hooks[other] != nil {
				k.t.Errorf("the webhook %s is given a caBundle", other)
			}
		}
		for _, entry := range k.configuration().ManagedFields {
			if entry.Manager != "widgets-webhook-ca" {
				continue
			}
			if got, want := entry.FieldsV1.GetRawString(), `{"f:webhooks":{"k:{\"name\":\"ours.example.com\"}":{".":{},"f:clientConfig":{"f:caBundle":{}},"f:name":{}}}}`; got != want || entry.Operation != "Apply" {
				k.t.Errorf("it owns %s by %s, want %s", got, entry.Operation, want)
			}
		}
		revision := k.secret().ResourceVersion
		time.Sleep(5 * time.Minute)
		if k.secret().ResourceVersion != revision {
			k.t.Error("the Secret is written although nothing changed")
		}
	})
}

func TestKeeperRestoresASecretThatIsDeletedOrDamaged(t *testing.T) {
	keep(t, func(k keeping) {
		shown, log, stop := k.replica(k.Client)
		defer stop()
		time.Sleep(time.Minute)
		before, certificate := k.secret().Data["ca.crt"], shown()
		for name, harm := range map[string]func(){
			"deleted": func() { k.remove(k.secret()) },
			"damaged": func() {
				s := k.secret()
				s.Data["ca.key"] = []byte("garbage")
				k.update(s)
			},
			"emptied": func() {
				s := k.secret()
				s.Data = nil
				k.update(s)
			},
		} {
			harm()
			time.Sleep(time.Minute)
			if !bytes.Equal(k.secret().Data["ca.crt"], before) || shown() != certificate {
				k.t.Errorf("%s: it is another authority", name)
			}
		}
		if n := strings.Count(log.String(), "is damaged"); n != 1 {
			k.t.Errorf("damage is told %d times: %s", n, log)
		}
	})
}

// TestKeeperRotatesWhileRequestsRun begins with an authority that is near its end, and
// then makes its successor a day older: whatever an API server was given last is good
// for what the replicas show, every second.
func TestKeeperRotatesWhileRequestsRun(t *testing.T) {
	keep(t, func(k keeping) {
		day := 24 * time.Hour
		old, err := certificate.NewAuthority(time.Now().Add(-250 * day))
		if err != nil {
			k.t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "widgets-webhook-ca"}}
		if secret.Data, err = old.Data(); err != nil {
			k.t.Fatal(err)
		}
		k.Create(secret)
		one, _, stop := k.replica(k.Client)
		defer stop()
		two, _, stop := k.replica(k.Client)
		defer stop()
		time.Sleep(time.Minute)
		trusted := func() {
			k.t.Helper()
			for range 60 {
				hooks, _ := k.bundles()
				if !trusts(hooks["ours"], one()) || !trusts(hooks["ours"], two()) {
					k.t.Fatal("a replica is not trusted")
				}
				time.Sleep(time.Second)
			}
		}
		trusted()
		if data := k.secret().Data; data["next.key"] == nil || !bytes.Equal(data["ca.key"], secret.Data["ca.key"]) {
			k.t.Error("no successor is announced, or it signs at once")
		}
		announced, _, err := old.Step(time.Now().Add(-certificate.Overlap-time.Minute), true)
		if err != nil {
			k.t.Fatal(err)
		}
		secret = k.secret()
		if secret.Data, err = announced.Data(); err != nil {
			k.t.Fatal(err)
		}
		next := secret.Data["next.key"]
		k.update(secret)
		trusted()
		if data := k.secret().Data; data["next.key"] != nil || !bytes.Equal(data["ca.key"], next) {
			k.t.Error("the successor does not sign")
		}
	})
}

func TestKeeperLeavesTheRestOfAConfigurationToItsManagers(t *testing.T) {
	keep(t, func(k keeping) {
		_, log, stop := k.replica(k.Client)
		defer stop()
		time.Sleep(time.Minute)
		before, _ := k.bundles()

		// A GitOps tool applies its manifest again and again.
		manifest := configuration()
		manifest.Webhooks[0].MatchConditions = []admissionv1.MatchCondition{{Name: "new", Expression: "true"}}
		for range 3 {
			if err := k.Client.Apply(k.t.Context(), manifest.DeepCopy(), client.FieldOwner("gitops"), client.ForceOwnership); err != nil {
				k.t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		after := k.configuration()
		if !bytes.Equal(after.Webhooks[0].ClientConfig.CABundle, before["ours"]) || len(after.Webhooks[0].MatchConditions) != 1 {
			k.t.Errorf("%+v", after.Webhooks[0])
		}

		// One that owns the caBundle has it.
		manifest.Webhooks[0].ClientConfig.CABundle = append(bytes.Clone(before["ours"]), '\n')
		if err := k.Client.Apply(k.t.Context(), manifest.DeepCopy(), client.FieldOwner("gitops"), client.ForceOwnership); err != nil {
			k.t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if hooks, _ := k.bundles(); bytes.Equal(hooks["ours"], before["ours"]) {
			k.t.Error("it fights for the caBundle")
		}
		if text := log.String(); strings.Count(text, "another manager owns the field caBundle") != 1 {
			k.t.Errorf("log: %s", text)
		}
	})
}

func TestKeeperLeavesWhatCertManagerFills(t *testing.T) {
	keep(t, func(k keeping) {
		c := k.configuration()
		c.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "default/serving-cert"}
		k.update(c)
		_, _, stop := k.replica(k.Client)
		defer stop()
		time.Sleep(time.Minute)
		if hooks, definition := k.bundles(); hooks["ours"] != nil || definition == nil {
			k.t.Errorf("%s %s", hooks, definition)
		}
	})
}

func TestKeeperGivesTheBundleToWhatIsCreatedLater(t *testing.T) {
	keep(t, func(k keeping) {
		k.remove(configuration())
		k.remove(widgetDefinition())
		time.Sleep(time.Minute)
		shown, log, stop := k.replica(k.AsUser("new", "system:masters")) // it has discovered nothing before
		defer stop()
		time.Sleep(time.Minute)
		if shown() == nil || !strings.Contains(log.String(), "find the definition of Widget.example.com") {
			k.t.Errorf("log: %s", log)
		}
		k.Create(configuration())
		k.Create(widgetDefinition())
		time.Sleep(time.Minute)
		if hooks, definition := k.bundles(); !trusts(hooks["ours"], shown()) || definition == nil {
			k.t.Errorf("%s %s", hooks, definition)
		}
	})
}

// TestKeeperGivesTheBundleToAPIServices has one of the operator, one of another namespace,
// and one whose certificate is not verified.
func TestKeeperGivesTheBundleToAPIServices(t *testing.T) {
	keep(t, func(k keeping) {
		var names []string
		for version, spec := range map[string]map[string]any{
			"v1": {"service": map[string]any{"namespace": "default", "name": "webhooks"}},
			"v2": {"service": map[string]any{"namespace": "other", "name": "webhooks"}},
			"v3": {"service": map[string]any{"namespace": "default", "name": "webhooks"}, "insecureSkipTLSVerify": true},
		} {
			service := apiService(version + ".metrics.example.com")
			maps.Copy(spec, map[string]any{"group": "metrics.example.com", "version": version, "groupPriorityMinimum": int64(100), "versionPriority": int64(10)})
			service.Object["spec"] = spec
			k.Create(service)
			names = append(names, service.GetName())
		}
		_, log, stop := k.replicaWith(k.Client, func(o *webhook.Options) { o.Authority.APIServices = append(names, "v4.metrics.example.com") })
		defer stop()
		time.Sleep(time.Minute)
		ca := base64.StdEncoding.EncodeToString(k.secret().Data["ca.crt"])
		for name, want := range map[string]string{"v1": ca, "v2": "", "v3": ""} {
			service := get(k, name+".metrics.example.com", apiService(""))
			if got, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle"); got != want {
				k.t.Errorf("%s has the caBundle %q, want %q; log: %s", name, got, want, log)
			}
		}
		// What others own of it stays theirs.
		for _, entry := range get(k, "v1.metrics.example.com", apiService("")).GetManagedFields() {
			if got, want := entry.FieldsV1.GetRawString(), `{"f:spec":{"f:caBundle":{}}}`; entry.Manager == "widgets-webhook-ca" && got != want {
				k.t.Errorf("it owns %s, want %s", got, want)
			}
		}
	})
}

func apiService(name string) *unstructured.Unstructured {
	service := client.NewUnstructured(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	service.SetName(name)
	return service
}

// skewed is a client of an API server whose clock is behind by some time.
func skewed(c client.Client, behind time.Duration) client.Client {
	return interceptor.New(c, interceptor.Funcs{Create: func(ctx context.Context, next client.Client, obj client.Object, opts ...client.WriteOption) error {
		err := next.Create(ctx, obj, opts...)
		obj.SetCreationTimestamp(metav1.NewTime(obj.GetCreationTimestamp().Add(-behind)))
		return err
	}})
}

func TestKeeperTellsThatClocksDiffer(t *testing.T) {
	t.Parallel()
	for behind, says := range map[time.Duration]string{
		2 * time.Hour:  "the clock of this process is 2h0m0s ahead of that of the API server",
		-2 * time.Hour: "the clock of this process is 2h0m0s behind that of the API server",
		time.Minute:    "",
	} {
		t.Run(behind.String(), func(t *testing.T) {
			keep(t, func(k keeping) {
				shown, log, stop := k.replica(skewed(k.Client, behind))
				defer stop()
				time.Sleep(5 * time.Minute)
				if shown() == nil {
					k.t.Error("there is no certificate")
				}
				if n := strings.Count(log.String(), "set the clocks of both nodes"); says == "" && n > 0 || says != "" && (n != 1 || !strings.Contains(log.String(), says)) {
					k.t.Errorf("log: %s", log)
				}
			})
		})
	}
}

// TestKeeperTellsOfAnAuthorityFromTheFuture has a CA that was made by a replica whose clock
// is two hours ahead.
func TestKeeperTellsOfAnAuthorityFromTheFuture(t *testing.T) {
	keep(t, func(k keeping) {
		future, err := certificate.NewAuthority(time.Now().Add(2 * time.Hour))
		if err != nil {
			k.t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "widgets-webhook-ca"}}
		if secret.Data, err = future.Data(); err != nil {
			k.t.Fatal(err)
		}
		k.Create(secret)
		_, log, stop := k.replica(k.Client)
		defer stop()
		time.Sleep(5 * time.Minute)
		if text := log.String(); strings.Count(text, "which is in the future") != 1 || !strings.Contains(text, "set the clock of this node") {
			k.t.Errorf("log: %s", text)
		}
	})
}

func TestKeeperTellsWhichRolesAreMissing(t *testing.T) {
	keep(t, func(k keeping) {
		_, log, stop := k.replica(k.AsUser("nobody"))
		time.Sleep(5 * time.Minute)
		stop()
		if text := log.String(); strings.Count(text, "create on secrets, and get and update on secrets with the resource name widgets-webhook-ca") != 1 {
			k.t.Errorf("log: %s", text)
		}
	})
}
