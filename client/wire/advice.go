// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/x509"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Advice says what to do about an error of credentials: the server refuses those of
// this process, or the other way round. It is empty for other errors.
func Advice(err error) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var hostname x509.HostnameError
	switch {
	case err == nil:
		return ""
	case apierrors.IsUnauthorized(err):
		return "the credentials are not accepted: check the token or certificate of the kubeconfig or service account; it may have been revoked or have expired"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of the API server has expired, or the clock of this machine is wrong: renew the certificate, or set the clock"
	case errors.As(err, &unknown):
		return "the certificate of the API server is not signed by the CA that the kubeconfig names: take certificate-authority-data from the cluster again"
	case errors.As(err, &hostname):
		return "the certificate of the API server is for other names: use one of them as the server of the kubeconfig"
	}
	// The refusals of a TLS server are of a type that crypto/tls does not export.
	if text := err.Error(); strings.Contains(text, "remote error: tls: ") && strings.Contains(text, "certificate") {
		return "the API server refuses the client certificate of the kubeconfig: it has expired or another CA has signed it; get a new one"
	}
	return ""
}
