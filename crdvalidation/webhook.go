// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crdvalidation

import (
	"fmt"
	"net/url"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/transport"
)

// Service is the Service of a webhook, of any kind.
type Service struct {
	Name, Namespace string
	// Path of the URL, nil for none.
	Path *string
	Port int32
}

// CABundle validates that a bundle, if it is not empty, has certificates.
func CABundle(at *field.Path, bundle []byte) field.ErrorList {
	if _, err := transport.TLSConfigFor(&transport.Config{TLS: transport.TLSConfig{CAData: bundle}}); err != nil {
		return field.ErrorList{field.Invalid(at, bundle, err.Error())}
	}
	return nil
}

// WebhookURL validates the URL of a webhook.
func WebhookURL(at *field.Path, address string) (errs field.ErrorList) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(address)
	if err != nil {
		return field.ErrorList{field.Required(at, "url must be a valid URL: "+err.Error()+form)}
	}
	refuse := func(value, detail string) { errs = append(errs, field.Invalid(at, value, detail)) }
	if u.Scheme != "https" {
		refuse(u.Scheme, "'https' is the only allowed URL scheme"+form)
	}
	if u.Host == "" {
		refuse(u.Host, "host must be specified"+form)
	}
	if u.User != nil {
		refuse(u.User.String(), "user information is not permitted in the URL")
	}
	if u.Fragment != "" {
		refuse(u.Fragment, "fragments are not permitted in the URL")
	}
	if u.RawQuery != "" {
		refuse(u.RawQuery, "query parameters are not permitted in the URL")
	}
	return errs
}

// WebhookService validates the Service of a webhook.
//
// kube-apiserver swaps the messages for the name and the namespace; so does this.
func WebhookService(at *field.Path, s Service) (errs field.ErrorList) {
	if s.Namespace == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if problems := utilvalidation.IsValidPortNum(int(s.Port)); len(problems) > 0 {
		errs = append(errs, field.Invalid(at.Child("port"), s.Port, "port is not valid: "+strings.Join(problems, ", ")))
	}
	if s.Path != nil {
		for _, problem := range pathProblems(*s.Path) {
			errs = append(errs, field.Invalid(at.Child("path"), *s.Path, problem))
		}
	}
	return errs
}

// pathProblems validates the path of a webhook's Service: its segments must be DNS
// subdomains.
func pathProblems(path string) (problems []string) {
	const empty = "segment[%d] may not be empty"
	switch path {
	case "", "/":
		return nil
	case "//":
		return []string{fmt.Sprintf(empty, 0)}
	}
	if path[0] != '/' {
		problems = append(problems, "must start with a '/'")
	}
	// The first byte is skipped, whatever it is.
	for i, segment := range strings.Split(strings.TrimSuffix(path[1:], "/"), "/") {
		if segment == "" {
			problems = append(problems, fmt.Sprintf(empty, i))
			continue
		}
		for _, problem := range utilvalidation.IsDNS1123Subdomain(segment) {
			problems = append(problems, fmt.Sprintf("segment[%d]: %v", i, problem))
		}
	}
	return problems
}
