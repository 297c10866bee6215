// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planeflags holds the flags that the commands which run a control plane share: where
// its webhooks are, and who its users are.
package planeflags

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/controlplane/admission/webhooks"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

const (
	// WebhookService is the name of the flag that [AddWebhookServices] defines.
	WebhookService = "webhook-service"
	// AdmissionControl is the name of the flag that [AddAdmissionControl] defines.
	AdmissionControl = "admission-control-config-file"
)

// AddAdmissionControl defines the flag whose value [ReadAdmissionControl] reads.
func AddAdmissionControl(f *pflag.FlagSet, file *string) {
	f.StringVar(file, AdmissionControl, "", "file with an AdmissionConfiguration, as kube-apiserver takes it: the kubeconfigs whose credentials webhooks are shown")
}

// ReadAdmissionControl adds what a file says to the options; no name is no file.
func ReadAdmissionControl(o *webhookclient.Options, file string) (err error) {
	if file == "" {
		return nil
	}
	if o.KubeConfigFiles, err = webhookclient.ReadAdmissionConfiguration(file, webhooks.MutatingName, webhooks.ValidatingName); err != nil {
		return fmt.Errorf("--%s: %w", AdmissionControl, err)
	}
	return nil
}

// AddWebhookServices defines the flag whose values [WebhookOptions] reads. Its description begins
// with when it applies.
func AddWebhookServices(f *pflag.FlagSet, services *[]string, when string) {
	f.StringArrayVar(services, WebhookService, nil, when+"call the webhooks behind a Service at an address, where no Pod serves them: `NAMESPACE/NAME=HOST:PORT`,\n"+
		"such as guestbook-system/guestbook-webhook-service=127.0.0.1:9443; may be repeated. The certificate has to be valid for NAME.NAMESPACE.svc")
}

// WebhookOptions returns options by which the webhooks behind the Services are called at the
// addresses that are given as NAMESPACE/NAME=HOST:PORT. Other Services are where their endpoints are.
func WebhookOptions(services []string) (webhookclient.Options, error) {
	if len(services) == 0 {
		return webhookclient.Options{}, nil
	}
	addresses := make(map[webhookclient.Service]string, len(services))
	for _, text := range services {
		service, address, err := parseWebhookService(text)
		if err != nil {
			return webhookclient.Options{}, fmt.Errorf("--%s: %q: %w: write it as in guestbook-system/webhook-service=127.0.0.1:9443", WebhookService, text, err)
		}
		if other, ok := addresses[service]; ok {
			return webhookclient.Options{}, fmt.Errorf("--%s: %s/%s is given as %s and as %s: leave one of them out", WebhookService, service.Namespace, service.Name, other, address)
		}
		addresses[service] = address
	}
	return webhookclient.Options{Resolve: func(_ context.Context, s webhookclient.Service) (webhookclient.Backend, bool) {
		address, ok := addresses[webhookclient.Service{Namespace: s.Namespace, Name: s.Name}]
		return webhookclient.Backend{Address: address}, ok
	}}, nil
}

func parseWebhookService(text string) (webhookclient.Service, string, error) {
	var none webhookclient.Service
	name, address, ok := strings.Cut(text, "=")
	if !ok {
		return none, "", errors.New("the address is missing")
	}
	namespace, name, ok := strings.Cut(name, "/")
	if !ok {
		return none, "", errors.New("the namespace of the Service is missing")
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return none, "", fmt.Errorf("%q is not a name of a namespace", namespace)
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return none, "", fmt.Errorf("%q is not a name of a Service", name)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return none, "", fmt.Errorf("%q is not an address HOST:PORT", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return none, "", fmt.Errorf("%q is not a port between 1 and 65535", port)
	}
	return webhookclient.Service{Namespace: namespace, Name: name}, address, nil
}
