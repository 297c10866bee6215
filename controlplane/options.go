// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/audit"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/kubelet"
	"github.com/steer-dev/steer/controlplane/quota"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/storage"
)

// Options of a plane. The zero value is a plane in memory that listens nowhere.
type Options struct {
	// DataDir keeps everything: data, keys, kubeconfig. It is created if it does
	// not exist. Empty: nothing outlives the plane.
	DataDir string
	// Store holds the objects in place of memory or DataDir; the plane does not
	// close it. nil: the plane opens its own.
	Store storage.Store
	// HistoryAge bounds how long versions stay readable. 0: 5 minutes.
	HistoryAge time.Duration
	// Listen is the address to serve on after Start, such as "127.0.0.1:6443";
	// port 0 picks a free one. Empty: no listener.
	Listen string
	// Hosts are more names and addresses that clients may use for the listener;
	// its own address, localhost and the names inside a cluster are known.
	Hosts []string
	// Endpoint is the host and port by which clients reach the plane where that is not the
	// listener: those of a load balancer in front of several servers, such as
	// "api.example.com:6443". Kubeconfigs have it, and the certificate of the listener is for
	// its host as well. Empty: the listener.
	Endpoint string
	// Advertise is where Pods and, unless PeerAddress says otherwise, the other servers of the
	// store reach the listener; port 0 is its port. The zero value: its address, or one of the
	// machine's if it listens on all.
	Advertise netip.AddrPort
	// PeerAddress is where the other servers of the store reach the listener, if that is not where
	// Pods do; port 0 is its port. The zero value: as Advertise.
	PeerAddress netip.AddrPort
	// Authentication says who users are.
	Authentication Authentication
	// Authorizer of requests. nil: members of system:masters may do everything,
	// others what roles and their bindings allow. In a list of several, rbac.ByRoles stands for these.
	Authorizer auth.Authorizer
	// Admission of writes, after the plane's own plugins that change objects and before
	// validating policies, validating webhooks and ResourceQuota. nil: none.
	Admission resource.Admission
	// Audit records requests, also those that the plane sends to itself. nil: none are.
	Audit *audit.Log
	// Entropy of the answers. nil: random; see [apiserver.SeededEntropy].
	Entropy apiserver.Entropy
	// Limits of requests; the zero value is the usual ones.
	Limits apiserver.Limits
	// Disable lists admission plugins and controllers to leave out, by the names
	// that kube-apiserver and kube-controller-manager have for them; [Plugins] and
	// [Controllers] are those that there are. nil: none.
	Disable []string
	// Serve lists versions of the API that are served beside the usual ones, such as
	// "admissionregistration.k8s.io/v1beta1"; [OptionalVersions] are those that there are. nil: none.
	Serve []string
	// ManualControllers keeps Start from running the built-in controllers:
	// they act when [Plane.Step] or [Plane.Settle] is called.
	ManualControllers bool
	// ShutdownDelay is how long Stop leaves everything as it is, except that /readyz fails:
	// longer than load balancers take to notice. 0: not at all.
	ShutdownDelay time.Duration
	// Workloads makes Deployments, Jobs and their like behave as if a cluster ran
	// them on simulated nodes. nil: they stay as they are written.
	Workloads *workloads.Options
	// Kubelets says where the plane may connect to for logs, exec, attach and port-forward of Pods
	// whose node states the endpoint of a kubelet. The zero value: nowhere.
	Kubelets kubelet.Options
	// Webhooks says where webhooks and the API servers behind APIServices are, and where the
	// plane may connect to for them.
	Webhooks webhookclient.Options
	// LimitedResources are what objects may use only where a quota of their namespace bounds
	// it, as limitedResources of a ResourceQuotaConfiguration. nil: what no quota bounds is
	// not limited.
	LimitedResources []quota.Limited
	// Version of Steer, shown in /version. Empty: "devel".
	Version string
	// ServiceRanges are where Services have their cluster IPs from, one range of a family of
	// addresses or, for dual-stack, one of each: the first is that of Services which ask for
	// none. nil: 10.0.0.0/24.
	ServiceRanges []netip.Prefix
	// StrictTransportSecurity are the directives of the header of this name (RFC 6797) that all
	// answers have, such as "max-age=31536000". nil: they have none.
	StrictTransportSecurity []string
	// Flags of the program with their values, shown at /flagz as they are: leave out what is
	// secret. nil: none are shown.
	Flags map[string]string
	// Metrics receives the plane's metrics. nil: a registry of its own.
	Metrics *prometheus.Registry
	// Log receives what no client sees. nil: discarded.
	Log *slog.Logger
}

// withDefaults returns the options with what every plane needs.
func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Entropy == nil {
		o.Entropy = apiserver.RandomEntropy()
	}
	return o
}

// Authentication says who users are, besides the holders of certificates of the
// plane's own authority. The zero value knows the ServiceAccounts; all other
// users are system:anonymous.
type Authentication struct {
	// Keys are the plane's secrets. nil: those in KeyDir, or new ones.
	Keys *Keys
	// KeyDir is the folder of the plane's secrets; see [OpenKeys]. Where the store is that of a
	// cluster which has its keys, none are made. Empty: pki in DataDir.
	KeyDir string
	// Tokens are bearer tokens that the listener accepts, with their users.
	Tokens auth.Tokens
	// TokenReviewers are asked about tokens that are not of Tokens or of ServiceAccounts, in
	// turn, such as [delegated.NewTokenWebhook]. nil: none are.
	TokenReviewers []auth.TokenAuthenticator
	// Issuers of the tokens of ServiceAccounts: new ones are of the first, those
	// of the others are accepted. Empty:
	// https://kubernetes.default.svc.cluster.local.
	Issuers []string
	// Audiences that the plane answers to in tokens. Empty: the issuers.
	Audiences []string
	// MaxTokenLife bounds the life of new tokens of ServiceAccounts. 0: as long as
	// is asked for, up to 2^32 seconds.
	MaxTokenLife time.Duration
	// ExactTokenLife ends tokens of Pods when they say, in place of a year later.
	ExactTokenLife bool
	// KeySetURL is where others find /openid/v1/jwks. Empty: at the listener.
	KeySetURL string
	// FrontProxy authenticates requests that a proxy has authenticated. nil:
	// none are.
	FrontProxy *auth.FrontProxy
	// NoAnonymous refuses requests without credentials.
	NoAnonymous bool
	// AnonymousPaths are the only paths that may be asked for without credentials, such as
	// "/livez". nil: all, unless NoAnonymous is set.
	AnonymousPaths []string
}
