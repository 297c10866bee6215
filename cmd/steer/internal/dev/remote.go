// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// Remote is a cluster that a kubeconfig names.
type Remote struct {
	// Context of the kubeconfig. Its user installs what the operator needs, holds its
	// lease, and impersonates its service account.
	Context *cluster.Context
	// Takeover takes the lease also from an operator that runs.
	Takeover bool
	// Confirm asks whether to go on; nil goes on. [ErrUnconfirmed] is for callers that
	// cannot ask.
	Confirm func(ctx context.Context, question string) error
}

// ErrUnconfirmed says that an installation was not confirmed: nothing was changed.
var ErrUnconfirmed = errors.New("nothing was changed")

// remote is a cluster as the target of a loop.
type remote struct {
	*loop
	at        *cluster.Context
	settings  deploy.Settings
	operators string    // kubeconfig that the operator gets
	notBefore time.Time // when the operator may be started: a former one may go on until then
}

// onRemote installs what the operator needs and runs the loop while this process holds
// the lease of the operator.
func (l *loop) onRemote(ctx context.Context) error {
	line := progress.Start(l.Errs, "asking context "+l.Remote.Context.Name)
	defer line.Stop()
	version, _, err := cluster.Version(ctx, l.Remote.Context.Config)
	if err != nil {
		return fmt.Errorf("dev: context %s: the API server cannot be reached: %w", l.Remote.Context.Name, err)
	}
	t := &remote{loop: l, at: l.Remote.Context}
	l.target = t
	if t.settings, err = deploy.ReadSettings(l.Dir, l.project); err != nil {
		return err
	}
	l.config = t.at.Config
	if l.client, err = client.New(l.config, client.Options{FieldOwner: "steer-dev"}); err != nil {
		return err
	}
	if err := os.MkdirAll(t.folder(), 0o700); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lease := &cluster.Lease{Config: t.at.Config, Operator: l.project.Name, Namespace: t.settings.Namespace, Identity: "steer-dev_" + host + "_" + rand.Text()[:8]}
	if !l.Remote.Takeover { // before anything is changed
		if err := lease.Check(ctx); err != nil {
			return fmt.Errorf("dev: %w", err)
		}
	}
	line.Stop()
	fmt.Fprintf(l.Errs, "steer: context %s, %s, Kubernetes %s\n", t.at.Name, t.at.Config.Host, strings.TrimPrefix(version, "v"))
	if err := l.generate(ctx); err != nil {
		l.problems(err)
		return fmt.Errorf("dev: %w", err)
	}
	if err := t.install(ctx, l.Remote.Confirm); err != nil {
		return err
	}
	if err := t.impersonate(ctx); err != nil {
		return err
	}
	former, err := lease.Take(ctx, l.Remote.Takeover)
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	t.notBefore = time.Now().Add(former)
	err = lease.Hold(ctx, func(ctx context.Context) error {
		return l.show(ctx, "Kubernetes "+strings.TrimPrefix(version, "v"), "context "+t.at.Name,
			fmt.Sprintf("steer: this process holds the lease %s/%s; webhooks are not called here", lease.Namespace, lease.Operator))
	})
	if errors.Is(err, manager.ErrLostLease) {
		return fmt.Errorf("dev: the lease %s/%s was lost, and the operator was stopped: %w", lease.Namespace, lease.Operator, err)
	}
	return err
}

// folder is one for each context.
func (t *remote) folder() string {
	return filepath.Join(t.Dir, project.StateDir, "context-"+url.QueryEscape(t.at.Name))
}

func (t *remote) arguments() []string { return nil }

// environment turns webhooks off: the API server cannot call this machine.
func (t *remote) environment() []string {
	return []string{"KUBECONFIG=" + t.operators, "ENABLE_WEBHOOKS=false"}
}

// impersonate writes the kubeconfig of the operator's service account.
func (t *remote) impersonate(ctx context.Context) error {
	t.operators = filepath.Join(t.folder(), "kubeconfig")
	account := t.project.Name + "-controller-manager"
	if err := t.at.WriteKubeconfig(t.operators, t.settings.Namespace, account); err != nil {
		return err
	}
	config, err := cluster.Config(t.operators)
	if err != nil {
		return err
	}
	if _, _, err := cluster.Version(ctx, config); err != nil {
		return fmt.Errorf("dev: the user of context %s cannot act as ServiceAccount %s/%s, whose rights the operator has: %w; it needs the verb impersonate on serviceaccounts and groups", t.at.Name, t.settings.Namespace, account, err)
	}
	return nil
}

// prepare installs what has changed since the last time.
func (t *remote) prepare(ctx context.Context) error {
	changed, err := t.changed()
	if err == nil && changed {
		if err = t.install(ctx, nil); err != nil {
			clear(t.applied)
		}
	}
	if err != nil {
		return err
	}
	if wait := time.Until(t.notBefore); wait > 0 {
		fmt.Fprintf(t.Errs, "steer: the operator that held the lease may go on for %s; this one is started then\n", wait.Round(time.Second))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	return nil
}

func (t *remote) complete(context.Context) error { return nil }
func (t *remote) late(context.Context) error     { return nil }

// changed reports whether the generated files are others than those that were installed.
func (t *remote) changed() (bool, error) {
	changed := false
	for _, folder := range []string{project.CRDDir, roleFile} {
		_, now, err := t.manifests(folder)
		if err != nil {
			return false, err
		}
		changed = changed || now
	}
	return changed, nil
}

// install prints what an installation changes, and applies it once it is confirmed.
func (t *remote) install(ctx context.Context, confirm func(ctx context.Context, question string) error) error {
	if _, err := t.changed(); err != nil { // what follows is of the files as they are now
		return err
	}
	objects, err := t.objects(ctx)
	if err != nil {
		return err
	}
	line := progress.Start(t.Errs, "comparing with context "+t.at.Name)
	plan, err := cluster.Examine(ctx, t.client, objects)
	line.Stop()
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	fmt.Fprint(t.Errs, plan)
	if plan.Empty() {
		return nil
	}
	if confirm != nil {
		if err := confirm(ctx, fmt.Sprintf("apply this to context %s (%s)?", t.at.Name, t.at.Config.Host)); err != nil {
			return err
		}
	}
	line = progress.Start(t.Errs, "applying to context "+t.at.Name)
	defer line.Stop()
	if err := plan.Apply(ctx, t.client); err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	return nil
}

// objects are those of the deployment that the operator needs also outside of the
// cluster: its namespace, CRDs, account and roles.
func (t *remote) objects(ctx context.Context) ([]manifest.Object, error) {
	all, err := deploy.Objects(ctx, t.Dir, t.project, t.settings)
	if err != nil {
		return nil, err
	}
	var needed []deploy.Object
	for _, o := range all {
		if o.Part == deploy.Namespace || o.Part == deploy.CRD || o.Part == deploy.RBAC {
			needed = append(needed, o)
		}
	}
	text, err := deploy.YAML(needed)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Parse("the deployment of "+t.project.Name, text)
	for _, o := range objects {
		if _, converted, _ := unstructured.NestedMap(o.Object, "spec", "conversion"); converted && o.GetKind() == "CustomResourceDefinition" {
			unstructured.RemoveNestedField(o.Object, "spec", "conversion")
			fmt.Fprintf(t.Errs, "steer: the conversion of %s is left as it is in the cluster, which cannot call this machine\n", o.GetName())
		}
	}
	return objects, err
}
