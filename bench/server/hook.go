// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/util/cert"
)

// The paths of a hook.
const (
	allowPath   = "/allow"
	convertPath = "/convert"
)

// hook serves webhooks over TLS on loopback, in this process: their work is not the server's. An
// admission webhook allows every request; a conversion webhook changes the apiVersion alone.
type hook struct {
	// url of the server, and bundle that verifies its certificate, as base64.
	url, bundle string
	server      *http.Server
	// calls counts the reviews.
	calls atomic.Int64
}

// newHook starts a hook; close ends it.
func newHook() (*hook, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	h := &hook{url: "https://" + listener.Addr().String(), bundle: base64.StdEncoding.EncodeToString(certPEM)}
	mux := http.NewServeMux()
	mux.HandleFunc(allowPath, h.answering(allowAll))
	mux.HandleFunc(convertPath, h.answering(convertAll))
	h.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: exchangeTimeout,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = h.server.ServeTLS(listener, "", "") }() // until close
	return h, nil
}

func (h *hook) close() { _ = h.server.Close() } // nothing is under way

// answering serves reviews with the answers of a function.
func (h *hook) answering(answer func(review []byte) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h.calls.Add(1)
		body := bytes.NewBuffer(make([]byte, 0, max(r.ContentLength, 0)+bytes.MinRead))
		_, err := io.Copy(body, r.Body)
		var out []byte
		if err == nil {
			out, err = answer(body.Bytes())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write(out) // the server has gone
	}
}

// allowAll answers an AdmissionReview. It finds the uid, which stands in front, and decodes
// nothing.
func allowAll(review []byte) ([]byte, error) {
	_, rest, _ := bytes.Cut(review, []byte(`"uid":"`))
	uid, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return nil, fmt.Errorf("a review without uid: %.100s", review)
	}
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":%q,"allowed":true}}`, uid), nil
}

// convertAll answers a ConversionReview of items that are stored as v1.
func convertAll(review []byte) ([]byte, error) {
	var in struct {
		Request struct {
			UID               string            `json:"uid"`
			DesiredAPIVersion string            `json:"desiredAPIVersion"`
			Objects           []json.RawMessage `json:"objects"`
		} `json:"request"`
	}
	if err := json.Unmarshal(review, &in); err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(review)+512)
	out = fmt.Appendf(out, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":%q,"result":{"status":"Success"},"convertedObjects":[`, in.Request.UID)
	from, to := []byte(`"apiVersion":"bench.example.com/v1"`), fmt.Appendf(nil, `"apiVersion":%q`, in.Request.DesiredAPIVersion)
	for i, obj := range in.Request.Objects {
		if i > 0 {
			out = append(out, ',')
		}
		before, after, ok := bytes.Cut(obj, from)
		if !ok {
			return nil, fmt.Errorf("an object of another version: %.100s", obj)
		}
		out = append(append(append(out, before...), to...), after...)
	}
	return append(out, "]}}"...), nil
}
