// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// authorizationConfig is what is taken from an AuthorizationConfiguration.
type authorizationConfig struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	Authorizers []struct {
		Type    string          `json:"type"`
		Name    string          `json:"name"`
		Webhook json.RawMessage `json:"webhook"`
	} `json:"authorizers"`
}

// readModes returns the types of the authorizers in a file, which are those of --authorization-mode.
func readModes(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var c authorizationConfig
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	versions := []string{"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1", "apiserver.config.k8s.io/v1alpha1"}
	if c.Kind != "AuthorizationConfiguration" || !slices.Contains(versions, c.APIVersion) {
		return nil, fmt.Errorf("it is a %q of %q, want an AuthorizationConfiguration of %s", c.Kind, c.APIVersion, versions[0])
	}
	if len(c.Authorizers) == 0 {
		return nil, errors.New("authorizers: at least one is needed, such as {type: RBAC, name: rbac}")
	}
	var modes, names []string
	for i := range c.Authorizers {
		a, where := &c.Authorizers[i], fmt.Sprintf("authorizers[%d]", i)
		switch {
		case a.Type == "Webhook" || a.Webhook != nil:
			return nil, fmt.Errorf("%s: webhooks are not implemented: use RBAC or AlwaysAllow", where)
		case slices.Contains(modes, a.Type):
			return nil, fmt.Errorf("%s.type: there is a %s already", where, a.Type)
		case len(validation.IsDNS1123Subdomain(a.Name)) > 0:
			return nil, fmt.Errorf("%s.name: %q is no name: %s", where, a.Name, strings.Join(validation.IsDNS1123Subdomain(a.Name), ", "))
		case slices.Contains(names, a.Name):
			return nil, fmt.Errorf("%s.name: there is a %q already", where, a.Name)
		}
		modes, names = append(modes, a.Type), append(names, a.Name)
	}
	return modes, nil
}
