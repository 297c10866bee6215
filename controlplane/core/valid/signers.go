// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

// SignerName checks the name of a signer of certificates, of the form "domain/path".
func (f *Field) SignerName(name, value string) {
	const longestDomain = validation.DNS1123SubdomainMaxLength
	const longest = longestDomain + 1 + validation.DNS1123SubdomainMaxLength + 1 + validation.DNS1123LabelMaxLength
	if !f.NonEmpty(name, value) {
		return
	}
	domain, path, ok := strings.Cut(value, "/")
	if !ok || strings.Contains(path, "/") {
		f.Invalid(name, value, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return
	}
	if len(domain) > longestDomain {
		f.TooLong(name, longestDomain)
	}
	f.parts(name, domain, validation.IsDNS1123Label)
	if !strings.Contains(domain, ".") {
		f.Invalid(name, domain, "should be a domain with at least two segments separated by dots")
	}
	f.parts(name, path, validation.IsDNS1123Subdomain)
	if len(value) > longest {
		f.TooLong(name, longest)
	}
}

// parts names the problems of the first part between dots that has any.
func (f *Field) parts(name, value string, problemsOf func(string) []string) {
	for part := range strings.SplitSeq(value, ".") {
		if problems := problemsOf(part); len(problems) > 0 {
			for _, problem := range problems {
				f.Invalid(name, value, fmt.Sprintf("validating label %q: %s", part, problem))
			}
			return
		}
	}
}

// IsKubernetesSigner reports whether the name of a signer is one of Kubernetes.
func IsKubernetesSigner(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
}

// BundleNameProblems are those of the name of a ClusterTrustBundle, or of the prefix of a
// generated one: the bundles of a signer have its name in theirs, and no other bundles have
// the name of one.
func BundleNameProblems(name, signer string, prefix bool) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return apivalidation.NameIsDNSSubdomain(name, prefix)
	}
	begin := strings.ReplaceAll(signer, "/", ":") + ":"
	rest, found := strings.CutPrefix(name, begin)
	if !found {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, begin)}
	}
	return apivalidation.NameIsDNSSubdomain(rest, prefix)
}

// UserAnnotations checks what a Pod tells the signer of its certificate: keys have a domain.
func (f *Field) UserAnnotations(name string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		f.Add(validation.IsDomainPrefixedKey(f.PathOf(name), strings.ToLower(key))...)
	}
	if apivalidation.ValidateAnnotationsSize(annotations) != nil {
		f.TooLong(name, apivalidation.TotalAnnotationSizeLimitB)
	}
}
