// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// Bounds of the life of a certificate for a Pod, in seconds.
const (
	shortestCertificate = 3600
	longestCertificate  = 91 * 24 * 3600
	longestOfKubernetes = 24 * 3600
)

// checkBundleFile has the rules of the trust anchors of one ClusterTrustBundle, or of all of a
// signer that a selector matches (KEP-3257).
func checkBundleFile(f *valid.Field, b *corev1.ClusterTrustBundleProjection) {
	switch {
	case b.Name != nil && b.SignerName != nil:
		f.Invalid(valid.Self, valid.Untagged(*b), "only one of name and signerName may be used")
	case b.Name != nil:
		name := *b.Name
		if name == "" {
			f.Required("name", "must be a valid object name")
		}
		signer := "" // of which the name has to be the name of a bundle
		if at := strings.LastIndex(name, ":"); at >= 0 {
			signer = strings.ReplaceAll(name[:at], ":", "/")
		}
		for _, problem := range valid.BundleNameProblems(name, signer, false) {
			f.Invalid("name", name, "not a valid clustertrustbundlename: "+problem)
		}
		if b.LabelSelector != nil {
			f.Invalid("labelSelector", b.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case b.SignerName != nil:
		if *b.SignerName == "" {
			f.Required("signerName", "must be a valid signer name")
		}
		f.SignerName("signerName", *b.SignerName)
		f.Selector("labelSelector", b.LabelSelector)
	default:
		f.Required(valid.Self, "either name or signerName must be specified")
	}
	f.NonEmpty("path", b.Path)
	f.Unreserved("path", b.Path)
}

// checkCertificateFiles has the rules of a private key and its certificates (KEP-4317). Each
// of their paths is given to once, with itself.
func checkCertificateFiles(f *valid.Field, c *corev1.PodCertificateProjection, once func(path, of string)) {
	f.SignerName("signerName", c.SignerName)
	f.UserAnnotations("userAnnotations", c.UserAnnotations)
	valid.Supported(f, "keyType", c.KeyType, "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
	if s := kind.Value(c.MaxExpirationSeconds); c.MaxExpirationSeconds != nil {
		longest := int32(longestCertificate)
		if valid.IsKubernetesSigner(c.SignerName) {
			longest = longestOfKubernetes
		}
		if s < shortestCertificate {
			f.Invalid("maxExpirationSeconds", s, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", shortestCertificate))
		}
		if s > longest {
			f.Invalid("maxExpirationSeconds", s, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", longest))
		}
	}
	some := false
	for _, file := range []struct{ name, path string }{
		{"credentialBundlePath", c.CredentialBundlePath}, {"keyPath", c.KeyPath}, {"certificateChainPath", c.CertificateChainPath},
	} {
		if file.path != "" {
			some = true
			f.Unreserved(file.name, file.path)
			once(file.path, file.path)
		}
	}
	if !some {
		f.Required(valid.Self, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
	}
}
