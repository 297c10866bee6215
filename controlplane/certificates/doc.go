// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates serves CertificateSigningRequests, and signs those that are
// approved.
//
// A client creates a CertificateSigningRequest, which holds its identity and what
// it wants certified. A user with the permission "approve" for the signer that it
// names approves or denies it through the subresource approval. The signer then
// puts the certificate into its status.
//
//   - [Resource] is the kind with its subresources.
//   - [Plugins] are the admission plugins that require the permissions to approve and to sign.
//   - [NewSigner] is the controller that signs for the signers of Kubernetes, with
//     the authority of the plane; other signers are programs of their own.
//   - [NewCleaner] is the controller that removes old requests.
package certificates
