// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// LoadConfig returns the configuration of a cluster: that of a kubeconfig file, or with
// an empty name that of $KUBECONFIG, of the cluster that the process runs in, or of
// ~/.kube/config, in this order. Nothing is sent. An error says in one line what is
// wrong, and what the user of a program with the flag --kubeconfig can do.
func LoadConfig(file string) (*rest.Config, error) {
	if file == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if cfg, err := rest.InClusterConfig(); err == nil {
			return cfg, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // its text advises a variable that is not read here
		err = errors.New("no kubeconfig is found")
		if file != "" {
			err = fmt.Errorf("%s names no cluster", file)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no cluster: %w; pass --kubeconfig, set KUBECONFIG, or run `steer dev -- COMMAND`", err)
	}
	return cfg, nil
}
