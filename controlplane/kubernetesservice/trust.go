// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// TrustName is the ConfigMap in kube-system by which other API servers of a
// cluster know its users.
const TrustName = "extension-apiserver-authentication"

// trackingName is the ConfigMap in kube-system that says since when the use of
// tokens in Secrets is noted.
const trackingName = "kube-apiserver-legacy-service-account-token-tracking"

// Trust is how users show who they are.
type Trust struct {
	// ClientCA are the authorities of client certificates, in PEM.
	ClientCA []byte
	// Proxy may name users in headers; nil: no proxy. ProxyCA are the authorities of
	// its certificates, in PEM.
	Proxy   *auth.FrontProxy
	ProxyCA []byte
}

// NewTrust is how users of a plane show who they are: by certificates of its authorities, and,
// to API servers behind APIServices, by the plane itself, which is a front proxy to them with
// a certificate of that name and authority, beside the one that is given; nil: none is.
func NewTrust(clients []*x509.Certificate, own *x509.Certificate, name string, given *auth.FrontProxy) Trust {
	proxy, authorities := auth.FrontProxy{Names: []string{name}}, []*x509.Certificate{own}
	if given != nil {
		proxy = *given
		authorities = append(authorities, given.Certificates.Authorities()...)
		if len(given.Names) > 0 { // otherwise every name is good
			proxy.Names = append(slices.Clone(given.Names), name)
		}
	}
	return Trust{ClientCA: encode(clients), Proxy: &proxy, ProxyCA: encode(authorities)}
}

// encode returns certificates in PEM.
func encode(all []*x509.Certificate) []byte {
	var out []byte
	for _, c := range all {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}

// TrustComponent is the health check that reports whether [Server.Publish] has returned.
func TrustComponent(d component.Deps) component.Component {
	return component.Component{Name: "cluster authentication", Health: component.Hooks(d.Progress.Announced, "start-cluster-authentication-info-controller")}
}

// Publish writes the ConfigMaps of the server. What is in them of earlier servers
// stays, as far as this one says nothing else.
func (s *Server) Publish(ctx context.Context, trust Trust) error {
	data, err := trust.data()
	if err != nil {
		return fmt.Errorf("kubernetesservice: publish how users are known: %w", err)
	}
	view := s.Store.Latest()
	published, tracking := configMap(TrustName, data), configMap(trackingName, map[string]string{"since": time.Now().UTC().Format(time.DateOnly)})
	if err := s.put(ctx, view.Get(published.Key), published); err != nil {
		return err
	}
	if view.Get(tracking.Key) != nil {
		return nil // since then
	}
	return s.put(ctx, nil, tracking)
}

// data is what the ConfigMap says.
func (t Trust) data() (map[string]string, error) {
	out := map[string]string{}
	if len(t.ClientCA) > 0 {
		out["client-ca-file"] = string(t.ClientCA)
	}
	p := t.Proxy
	if p == nil {
		return out, nil
	}
	out["requestheader-client-ca-file"] = string(t.ProxyCA)
	for _, m := range []struct {
		key    string
		values []string
		usual  []string // where there are none
	}{
		{"allowed-names", p.Names, []string{}}, // every name
		{"username-headers", p.UserHeaders, []string{"X-Remote-User"}},
		{"uid-headers", p.UIDHeaders, []string{"X-Remote-Uid"}},
		{"group-headers", p.GroupHeaders, []string{"X-Remote-Group"}},
		{"extra-headers-prefix", p.ExtraPrefixes, []string{"X-Remote-Extra-"}},
	} {
		if m.values == nil {
			m.values = m.usual
		}
		list, err := json.Marshal(m.values)
		if err != nil {
			return nil, err
		}
		out["requestheader-"+m.key] = string(list)
	}
	return out, nil
}

// configMap is one in kube-system with the data.
func configMap(name string, data map[string]string) step.Creation {
	var fields, content strings.Builder
	fields.WriteString(`{"f:data":{".":{}`)
	content.WriteString(`"data":{`)
	first := true
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fields.WriteString(`,"f:` + key + `":{}`)
		if !first {
			content.WriteString(",")
		}
		first = false
		value, _ := json.Marshal(data[key]) // texts always have a form
		content.WriteString(`"` + key + `":` + string(value))
	}
	fields.WriteString("}}")
	content.WriteString("}")
	return step.Creation{
		Key:        storage.Key{Bucket: "configmaps", Name: "kube-system/" + name},
		APIVersion: "v1", Kind: "ConfigMap", Namespace: "kube-system", Name: name,
		Fields: fields.String(), Content: content.String(),
	}
}
