// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	websitev1 "example.com/website/api/v1"
)

// websiteWebhook defaults and validates Websites.
type websiteWebhook struct{}

func (websiteWebhook) Default(_ context.Context, site *websitev1.Website) error {
	if !strings.Contains(site.Spec.Image, ":") {
		site.Spec.Image += ":latest"
	}
	return nil
}

func (websiteWebhook) ValidateCreate(_ context.Context, site *websitev1.Website) (admission.Warnings, error) {
	if site.Spec.Replicas > 5 {
		return nil, errors.New("a website has 5 replicas at most")
	}
	return nil, nil
}

func (w websiteWebhook) ValidateUpdate(ctx context.Context, _, site *websitev1.Website) (admission.Warnings, error) {
	return w.ValidateCreate(ctx, site)
}

func (websiteWebhook) ValidateDelete(_ context.Context, site *websitev1.Website) (admission.Warnings, error) {
	if site.Spec.Replicas > 0 {
		return nil, errors.New("a website that serves stays")
	}
	return nil, nil
}

// Page is stored in the version v1.
type Page struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Title string `json:"title,omitempty"`
}

// Hub implements [conversion.Hub].
func (*Page) Hub() {}

// DeepCopyObject implements [runtime.Object].
func (p *Page) DeepCopyObject() runtime.Object {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &out
}

// PageV1alpha1 is Page in the version v1alpha1, where the title has another name.
type PageV1alpha1 struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Heading string `json:"heading,omitempty"`
}

// ConvertTo implements [conversion.Convertible].
func (p *PageV1alpha1) ConvertTo(hub conversion.Hub) error {
	to := hub.(*Page)
	to.ObjectMeta, to.Title = p.ObjectMeta, p.Heading
	return nil
}

// ConvertFrom implements [conversion.Convertible].
func (p *PageV1alpha1) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*Page)
	p.ObjectMeta, p.Heading = from.ObjectMeta, from.Title
	return nil
}

// DeepCopyObject implements [runtime.Object].
func (p *PageV1alpha1) DeepCopyObject() runtime.Object {
	out := *p
	out.ObjectMeta = *p.ObjectMeta.DeepCopy()
	return &out
}

func webhookScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, websitev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	alpha := schema.GroupVersion{Group: websitev1.GroupVersion.Group, Version: "v1alpha1"}
	metav1.AddToGroupVersion(scheme, alpha)
	scheme.AddKnownTypes(websitev1.GroupVersion, &Page{})
	scheme.AddKnownTypeWithName(alpha.WithKind("Page"), &PageV1alpha1{})
	return scheme
}

// startWebhooks starts an environment that calls the webhooks of a manager, and the manager.
// It returns once the webhooks are served.
func startWebhooks(ctx context.Context, t *testing.T) client.Client {
	t.Helper()
	scheme := webhookScheme(t)
	env := &envtest.Environment{
		Scheme: scheme, CRDDirectoryPaths: []string{"../config/crd/bases", "testdata/pages.yaml"}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{"testdata/webhooks.yaml"}},
	}
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stop the environment: %v", err)
		}
	})
	serving := env.WebhookInstallOptions
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: serving.LocalServingHost, Port: serving.LocalServingPort, CertDir: serving.LocalServingCertDir}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &websitev1.Website{}).WithDefaulter(websiteWebhook{}).WithValidator(websiteWebhook{}).Complete(); err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &Page{}).Complete(); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	started := mgr.GetWebhookServer().StartedChecker()
	err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) { return started(nil) == nil, nil })
	if err != nil {
		t.Fatalf("the webhook server does not start: %v", started(nil))
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWebhooksOfASuiteAreCalled has a defaulting, a validating and a conversion webhook, which
// controller-runtime serves at the host and port that envtest picks.
func TestWebhooksOfASuiteAreCalled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := startWebhooks(ctx, t)

	site := &websitev1.Website{ObjectMeta: metav1.ObjectMeta{Name: "home", Namespace: "default"}, Spec: websitev1.WebsiteSpec{Image: "nginx", Replicas: 1}}
	if err := c.Create(ctx, site); err != nil {
		t.Fatal(err)
	}
	if site.Spec.Image != "nginx:latest" {
		t.Errorf("the defaulting webhook: image %q, want nginx:latest", site.Spec.Image)
	}
	refused := func(what string, err error, message string) {
		t.Helper()
		if want := `admission webhook "vwebsite.example.com" denied the request: ` + message; !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want forbidden: %s", what, err, want)
		}
	}
	many := site.DeepCopy()
	many.Spec.Replicas = 6
	refused("an update with too many replicas", c.Update(ctx, many), "a website has 5 replicas at most")
	refused("the deletion of a website that serves", c.Delete(ctx, site), "a website that serves stays")

	alpha := &PageV1alpha1{ObjectMeta: metav1.ObjectMeta{Name: "index", Namespace: "default"}, Heading: "Hello"}
	if err := c.Create(ctx, alpha); err != nil {
		t.Fatal(err)
	}
	page := &Page{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(alpha), page); err != nil {
		t.Fatal(err)
	}
	if page.Title != "Hello" {
		t.Errorf("the conversion webhook: title %q, want Hello", page.Title)
	}
	page.Title = "Welcome"
	if err := c.Update(ctx, page); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(page), alpha); err != nil {
		t.Fatal(err)
	}
	if alpha.Heading != "Welcome" {
		t.Errorf("the conversion webhook: heading %q, want Welcome", alpha.Heading)
	}
}
