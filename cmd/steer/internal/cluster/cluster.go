// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is what commands do with a cluster that a kubeconfig names: connect,
// show what an installation would change before it changes it, and hold the leader lease
// of an operator.
package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// timeout bounds a request for the version of a server.
const timeout = 10 * time.Second

// ErrNoKubeconfig says that there is no kubeconfig.
var ErrNoKubeconfig = errors.New("no kubeconfig is found: set KUBECONFIG, or run steer up or steer dev")

// ErrNoContext is wrapped by errors about contexts that a kubeconfig does not have.
var ErrNoContext = errors.New("no such context")

func rules(kubeconfig string) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	return rules
}

// Config is the configuration that a kubeconfig gives; empty: that of kubectl.
func Config(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules(kubeconfig), &clientcmd.ConfigOverrides{}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, ErrNoKubeconfig
	}
	return config, err
}

// Context is a context of a kubeconfig.
type Context struct {
	// Name of the context.
	Name string
	// Config of its user.
	Config *rest.Config

	kubeconfig clientcmdapi.Config // with this context alone, and without references to files
}

// Find finds a context in a kubeconfig; an empty name of a file means those of kubectl.
// The error for one that is not there wraps [ErrNoContext] and lists those that are.
func Find(kubeconfig, name string) (*Context, error) {
	all, err := rules(kubeconfig).Load()
	if err != nil {
		return nil, err
	}
	if all.Contexts[name] == nil {
		if len(all.Contexts) == 0 {
			return nil, fmt.Errorf("%w: %w", ErrNoContext, ErrNoKubeconfig)
		}
		return nil, fmt.Errorf("%w: the kubeconfig has no context %q, but %s", ErrNoContext, name, strings.Join(slices.Sorted(maps.Keys(all.Contexts)), ", "))
	}
	all.CurrentContext = name
	if err := clientcmdapi.MinifyConfig(all); err != nil {
		return nil, err
	}
	if err := clientcmdapi.FlattenConfig(all); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*all, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("context %s: %w", name, err)
	}
	return &Context{Name: name, Config: config, kubeconfig: *all}, nil
}

// WriteKubeconfig writes a kubeconfig with which the user of the context impersonates a
// service account.
func (c *Context) WriteKubeconfig(file, namespace, account string) error {
	return Impersonate(*c.kubeconfig.DeepCopy(), file, namespace, account)
}

// Impersonate writes a kubeconfig with which all users of another one impersonate a
// service account.
func Impersonate(config clientcmdapi.Config, file, namespace, account string) error {
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + namespace + ":" + account
		user.ImpersonateGroups = []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	}
	return clientcmd.WriteToFile(config, file)
}

// Version asks a server for its version.
func Version(ctx context.Context, config *rest.Config) (version string, minor int, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", 0, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("/version").String(), nil)
	if err != nil {
		return "", 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	var info struct {
		GitVersion string `json:"gitVersion"`
		Minor      string `json:"minor"`
	}
	if response.StatusCode != http.StatusOK {
		return "", 0, fmt.Errorf("status %s", response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<16)).Decode(&info); err != nil {
		return "", 0, err
	}
	minor, err = strconv.Atoi(strings.TrimSuffix(info.Minor, "+"))
	return info.GitVersion, minor, err
}
