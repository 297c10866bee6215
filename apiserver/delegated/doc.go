// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package delegated authenticates and authorizes the requests of a custom API server by
// the cluster that it belongs to.
//
// The cluster's API server says in a ConfigMap which certificates prove that a request
// comes from it, and names the user in headers (aggregated servers); it reviews tokens
// (TokenReview) and decides what a user may do (SubjectAccessReview):
//
//	d, err := delegated.New(delegated.Options{Config: config})
//	err = d.Load(ctx)
//	go d.Run(ctx)
//	server, err := apiserver.New(apiserver.Options{
//		Authenticator: d, Authorizer: d.Authorizer(), Checks: d.Checks(), ...
//	})
//
// The server's ServiceAccount needs the ClusterRole system:auth-delegator, and the Role
// extension-apiserver-authentication-reader in kube-system. Its TLS configuration must ask
// for certificates of clients ([tls.RequestClientCert]).
package delegated
