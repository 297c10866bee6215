// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
)

// NewService returns the command service.
func NewService() *cobra.Command {
	var kubeconfig, name string
	cmd := &cobra.Command{
		Use:   "service [NAMESPACE/NAME[:PORT]=HOST:PORT | NAMESPACE/NAME[:PORT]-]...",
		Short: "Say at which addresses a running control plane calls Services",
		Long: `Say at which addresses a running control plane calls Services, and print those that it has.

NAMESPACE/NAME=HOST:PORT has the webhooks, conversions and API servers behind that Service
called at the address, at once; NAMESPACE/NAME:8443=HOST:PORT those behind that port of it.
NAMESPACE/NAME- takes the address away: the Service is where its endpoints are. All
arguments take effect, or none.

The control plane is one of steer up or steer dev with --` + planeflags.AllowServiceChanges + `, and its user
a member of system:masters. What is to hold after a restart is given with --` + serviceaddress.Flag + `.`,
		Example: `  steer service cert-manager/cert-manager-webhook=127.0.0.1:10250
  steer service monitoring/adapter:6443=127.0.0.1:6444 shop/hook-
  steer service`,
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := serviceChanges(args)
			if err != nil {
				return err
			}
			config, err := configOf(kubeconfig, name)
			if err != nil {
				return err
			}
			addresses, err := changeServices(cmd.Context(), config, changes)
			if err != nil {
				return err
			}
			for _, service := range slices.Sorted(maps.Keys(addresses)) {
				fmt.Fprintf(cmd.OutOrStdout(), "%s=%s\n", service, addresses[service])
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file that names the control plane (default: that of kubectl)")
	cmd.Flags().StringVar(&name, "context", "", "context of the kubeconfig")
	return cmd
}

// serviceChanges reads arguments; nil takes an address away.
func serviceChanges(args []string) (map[string]*string, error) {
	changes := map[string]*string{}
	for _, text := range args {
		var k serviceaddress.Key
		var address *string
		var err error
		if service, removed := strings.CutSuffix(text, "-"); removed && !strings.Contains(text, "=") {
			k, err = serviceaddress.ParseKey(service)
		} else {
			address = new(string)
			k, *address, err = serviceaddress.Parse(text)
		}
		if err != nil {
			return nil, command.Usage(fmt.Sprintf("service: %q: %v: write it as in shop/hook=127.0.0.1:9443, or shop/hook- to take it away", text, err))
		}
		if _, twice := changes[k.String()]; twice {
			return nil, command.Usage(fmt.Sprintf("service: %s is given twice: leave one of them out", k))
		}
		changes[k.String()] = address
	}
	return changes, nil
}

func configOf(kubeconfig, name string) (*rest.Config, error) {
	if name == "" {
		return cluster.Config(kubeconfig)
	}
	found, err := cluster.Find(kubeconfig, name)
	if err != nil {
		return nil, err
	}
	return found.Config, nil
}

// changeServices changes the addresses of Services, and returns all of them.
func changeServices(ctx context.Context, config *rest.Config, changes map[string]*string) (addresses map[string]string, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	method, patch := http.MethodGet, []byte(nil)
	if len(changes) > 0 {
		method = http.MethodPatch
		if patch, err = json.Marshal(changes); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, base.JoinPath(serviceaddress.Path).String(), bytes.NewReader(patch))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the control plane: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", config.Host, err)
	}
	switch response.StatusCode {
	case http.StatusOK:
		return addresses, json.Unmarshal(text, &addresses)
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s does not let the addresses of Services be changed: start it with steer up --%s, or give it --%s", config.Host, planeflags.AllowServiceChanges, serviceaddress.Flag)
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = response.Status
	}
	return nil, fmt.Errorf("%s: %s", config.Host, status.Message)
}
