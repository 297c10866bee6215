// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/cmd/steer/internal/dev/webhooks"
	"github.com/steer-dev/steer/cmd/steer/internal/feed"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/internal/userroles"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
	"github.com/steer-dev/steer/storage/local"
)

// own is a control plane of the project's own, with its data in the [project.StateDir].
type own struct {
	*loop
	kubeconfig string // of an administrator
	operators  string // kubeconfig that the operator gets
	webhooks   *webhooks.Local
	server     *localServer
	// waits is what was said of samples whose namespace is not there, refused of others.
	waits, refused string
}

// onOwn runs the loop with a control plane of the project's own.
func (l *loop) onOwn(ctx context.Context) (err error) {
	state := filepath.Join(l.Dir, project.StateDir)
	data := filepath.Join(state, "data")
	t := &own{
		loop:       l,
		kubeconfig: filepath.Join(state, "kubeconfig"), operators: filepath.Join(state, "operator.kubeconfig"),
	}
	l.target = t
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) { // a new control plane has no samples
		if err := os.RemoveAll(t.record()); err != nil {
			return err
		}
	}
	address, err := webhooks.FreeAddress()
	if err != nil {
		return err
	}
	t.webhooks = webhooks.New(address)
	if address, err = webhooks.FreeAddress(); err != nil {
		return err
	}
	t.server = &localServer{own: t, address: address}
	if err := webhooks.WriteCertificate(t.certificates()); err != nil {
		return err
	}
	plane, stop, err := t.plane(ctx, data)
	var inUse *local.InUseError
	if errors.As(err, &inUse) {
		return fmt.Errorf("dev: another steer dev runs in this project: stop that one")
	}
	if err != nil {
		return err
	}
	defer func() {
		t.server.end()
		err = errors.Join(err, stop())
	}()
	if err := plane.WriteKubeconfig(t.kubeconfig); err != nil {
		return err
	}
	l.config = plane.RESTConfig()
	if l.client, err = client.New(l.config, client.Options{FieldOwner: "steer-dev"}); err != nil {
		return err
	}
	return l.show(ctx, "Kubernetes 1.37", project.StateDir+"/kubeconfig", fmt.Sprintf("export KUBECONFIG=%s # %s, Kubernetes 1.37%s", t.kubeconfig, l.project.Name, elsewhere("", t.kubeconfig)))
}

// plane starts the control plane with the data of an earlier run.
func (t *own) plane(ctx context.Context, data string) (*controlplane.Plane, func() error, error) {
	keys, err := t.keyring()
	if err != nil {
		return nil, nil, err
	}
	return StartPlane(ctx, controlplane.Options{
		Listen: t.address(), DataDir: data, Version: t.Version, Workloads: &workloads.Options{},
		Webhooks:       webhookclient.Options{Resolve: t.webhooks.Resolve},
		Authentication: controlplane.Authentication{Keys: keys},
	})
}

// keyring returns the keys of the control plane of the project. They are kept by the path of
// the project and not in it, where keys could be that came with a repository, and that its
// author has, too.
func (t *own) keyring() (*controlplane.Keys, error) {
	if t.Keys == "" {
		return controlplane.NewKeys()
	}
	path, err := filepath.Abs(t.Dir)
	if err != nil {
		return nil, err
	}
	of := sha256.Sum256([]byte(path))
	keys, err := controlplane.OpenKeys(filepath.Join(t.Keys, hex.EncodeToString(of[:16])))
	if err != nil {
		return nil, fmt.Errorf("dev: the keys of the control plane are kept in %s: %w", t.Keys, err)
	}
	return keys, nil
}

// elsewhere is a line about the server that kubectl and make install speak to by the first
// kubeconfig; empty if there is none, or if it is that of the second one.
func elsewhere(first, second string) string {
	theirs, err := cluster.Config(first)
	if err != nil {
		return ""
	}
	if ours, err := cluster.Config(second); err != nil || ours.Host == theirs.Host {
		return ""
	}
	return fmt.Sprintf("\nsteer: without that line kubectl and make install speak to %s, of which the operator sees nothing", theirs.Host)
}

func (t *own) folder() string { return filepath.Join(t.Dir, project.StateDir, "bin") }

func (t *own) arguments() []string {
	return []string{"--webhook-port=" + t.webhooks.Port(), "--webhook-cert-path=" + t.certificates(), "--webhook-drain=-1s"}
}

// certificates is the folder with the certificate of the operator's webhooks.
func (t *own) certificates() string {
	return filepath.Join(t.Dir, project.StateDir, "webhook-certificate")
}

func (t *own) environment() []string { return []string{"KUBECONFIG=" + t.operators} }

func (t *own) prepare(ctx context.Context) error {
	if err := t.define(ctx); err != nil {
		return err
	}
	if err := t.server.renew(ctx); err != nil {
		return err
	}
	return errors.Join(t.extras(ctx), t.authorize(ctx))
}

// address is that of the kubeconfig of an earlier run, if it is free, and on the loopback
// interface as all that are written: the file may have come with a repository.
func (t *own) address() string {
	config, err := clientcmd.LoadFromFile(t.kubeconfig)
	if err != nil {
		return "127.0.0.1:0"
	}
	if about, ok := config.Contexts[config.CurrentContext]; ok && config.Clusters[about.Cluster] != nil {
		server, err := url.Parse(config.Clusters[about.Cluster].Server)
		if err != nil {
			return "127.0.0.1:0"
		}
		if at, err := netip.ParseAddrPort(server.Host); err == nil && at.Addr().IsLoopback() && feed.IsFree(server.Host) {
			return server.Host
		}
	}
	return "127.0.0.1:0"
}

// define brings the CRDs to the control plane.
func (t *own) define(ctx context.Context) error {
	for _, folder := range []string{project.ExternalCRDDir, project.CRDDir} {
		objects, changed, err := t.manifests(folder)
		if folder == project.CRDDir {
			objects = append(objects, t.userRoles(objects)...)
		}
		if err == nil && changed {
			err = manifest.Apply(ctx, t.client, "", objects)
		}
		if err != nil {
			delete(t.applied, folder)
			return err
		}
	}
	return nil
}

// userRoles are those for people who use the kinds of the project.
func (t *own) userRoles(definitions []manifest.Object) (roles []manifest.Object) {
	for _, d := range definitions {
		for _, role := range userroles.Of(t.project.Name, t.project.MultiGroup, d.Object) {
			roles = append(roles, manifest.Object{File: d.File, Unstructured: &unstructured.Unstructured{Object: role}})
		}
	}
	return roles
}

// extras brings the manifests of the project's own to the control plane.
func (t *own) extras(ctx context.Context) error {
	objects, changed, err := t.manifests(project.ExtrasDir)
	if err != nil || !changed || len(objects) == 0 {
		return err
	}
	settings, err := deploy.ReadSettings(t.Dir, t.project)
	if err != nil {
		return err
	}
	err = cluster.ApplyExtras(ctx, t.client, settings.Namespace, objects, t.Errs)
	if err != nil {
		delete(t.applied, project.ExtrasDir)
	}
	return err
}

// webhookFile has the generated webhook configurations.
const webhookFile = "config/webhook/manifests.yaml"

// complete brings what needs the operator to the control plane: the webhooks, and new
// samples.
func (t *own) complete(ctx context.Context) error {
	objects, changed, err := t.manifests(webhookFile)
	if err == nil && len(objects) > 0 {
		waiting, cancel := context.WithTimeout(ctx, t.patience())
		err = t.webhooks.Await(waiting)
		cancel()
	}
	if err == nil && changed {
		if t.Debug != "" {
			webhooks.BePatient(objects)
		}
		err = webhooks.Configure(ctx, t.client, objects)
	}
	if err != nil {
		delete(t.applied, webhookFile)
		return err
	}
	return t.sample(ctx)
}

// patience is how long the operator may take to serve its webhooks.
func (t *own) patience() time.Duration {
	if t.Debug != "" {
		return time.Hour
	}
	return webhooks.Patience
}
