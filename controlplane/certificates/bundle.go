// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// bundle is a ClusterTrustBundle (KEP-3257).
type bundle = *certificatesv1.ClusterTrustBundle

const bundles = "clustertrustbundles"

// pemCertificate is the type of the PEM block of a certificate.
const pemCertificate = "CERTIFICATE"

// largestBundle is how many bytes a trust bundle may have.
const largestBundle = 1 << 20

var trustBundles = sync.OnceValue(func() *resource.Resource {
	return kind.Definition[certificatesv1.ClusterTrustBundle, bundle]{
		Group: certificatesv1.GroupName, Version: "v1", Plural: bundles, Cluster: true,
		Metadata: kind.Metadata{RepeatCreationErrors: true},
		NameRule: func(string, bool) []string { return nil }, // its own rule needs the whole object
		Validate: validateBundle,
		Columns: described(kind.Columns("Name", "SignerName"), map[string]string{
			"SignerName": certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"],
		}),
		Row: func(b bundle) []any { return []any{b.Name, kind.OrNone(b.Spec.SignerName)} },
		Selectable: []kind.Selectable[bundle]{
			kind.Leaf("spec.signerName", func(b bundle) string { return b.Spec.SignerName }),
		},
	}.Resource()
})

// validateBundle checks a bundle. What has not changed of its certificates is not parsed
// again, as what can be parsed depends on the version of Go.
func validateBundle(b, old bundle) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	metadata, spec := root.Child("metadata"), root.Child("spec")
	signer := b.Spec.SignerName
	if b.GenerateName != "" {
		metadata.Problems("generateName", b.GenerateName, valid.BundleNameProblems(b.GenerateName, signer, true))
	}
	if b.Name != "" {
		metadata.Problems("name", b.Name, valid.BundleNameProblems(b.Name, signer, false))
	}
	if signer != "" {
		spec.SignerName("signerName", signer)
	}
	if old == nil || old.Spec.TrustBundle != b.Spec.TrustBundle {
		checkAnchors(&spec, "trustBundle", b.Spec.TrustBundle)
	}
	if old != nil {
		spec.Unchanged("signerName", signer, old.Spec.SignerName)
	}
	return errs
}

// checkAnchors requires certificates of authorities in PEM, each of them once.
func checkAnchors(f *valid.Field, name, text string) {
	if len(text) > largestBundle {
		f.TooLong(name, largestBundle)
		return
	}
	before := f.Len()
	invalid := func(format string, args ...any) { f.Invalid(name, "<value omitted>", fmt.Sprintf(format, args...)) }
	var anchors [][]int // the entries of each certificate
	known := map[string]int{}
	rest := []byte(text)
	for i := 0; ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if problem := anchorProblem(block); problem != "" {
			invalid("entry %d %s", i, problem)
			continue
		}
		at, ok := known[string(block.Bytes)]
		if !ok {
			at = len(anchors)
			known[string(block.Bytes)], anchors = at, append(anchors, nil)
		}
		anchors[at] = append(anchors[at], i)
	}
	if f.Len() > before {
		return // what is missing or repeated follows from that
	}
	if len(anchors) == 0 {
		invalid("at least one trust anchor must be provided")
	}
	for _, entries := range anchors {
		if len(entries) > 1 {
			invalid("duplicate trust anchor (indices %v)", entries)
		}
	}
}

// anchorProblem is why a block is not the certificate of an authority; empty: it is one.
func anchorProblem(block *pem.Block) string {
	if block.Type != pemCertificate {
		return "has bad block type: " + block.Type
	}
	if len(block.Headers) != 0 {
		return "has PEM block headers"
	}
	switch c, err := x509.ParseCertificate(block.Bytes); {
	case err != nil:
		return "does not parse as X.509"
	case !c.IsCA:
		return "does not have the CA bit set"
	case !c.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}
