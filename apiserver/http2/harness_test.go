// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/steer-dev/steer/apiserver/http2"
)

// certificate of all tests; making one takes a moment.
func certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// served is a server under test.
type served struct {
	address string
	server  *http.Server
	log     *bytes.Buffer // what it logged; read it after the end of the server
	done    chan error
}

// serve starts a server; change may say more about it.
func serve(t testing.TB, handler http.HandlerFunc, change ...func(*http.Server)) *served {
	t.Helper()
	return start(t, handler, append(change, http2.Configure)...)
}

// start is serve with net/http's own HTTP/2.
func start(t testing.TB, handler http.HandlerFunc, change ...func(*http.Server)) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	out := &served{address: l.Addr().String(), log: new(bytes.Buffer), done: make(chan error, 1)}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	out.server = &http.Server{
		Handler: handler, Protocols: protocols, ErrorLog: log.New(out.log, "", 0),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate(t)}, ClientAuth: tls.RequestClientCert},
	}
	for _, c := range change {
		c(out.server)
	}
	go func() { out.done <- out.server.ServeTLS(http2.Listener(l), "", "") }()
	t.Cleanup(func() {
		_ = out.server.Close()
		<-out.done
	})
	return out
}

// client returns a client of net/http that speaks HTTP/2 alone.
func (s *served) client(t testing.TB, certificates ...tls.Certificate) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	transport := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}} //nolint:gosec // a test
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func (s *served) url(path string) string { return "https://" + s.address + path }

// peer speaks frames to a server under test, and checks nothing on its own.
type peer struct {
	t      testing.TB
	conn   *tls.Conn
	framer *wire.Framer
	out    bytes.Buffer
	block  bytes.Buffer
	enc    *hpack.Encoder
}

// dial connects without saying anything.
func (s *served) dial(t testing.TB) *peer {
	t.Helper()
	conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) //nolint:gosec // a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, conn: conn}
	p.framer = wire.NewFramer(&p.out, conn)
	p.framer.AllowIllegalWrites = true
	p.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.enc = hpack.NewEncoder(&p.block)
	return p
}

// greet connects and exchanges settings.
func (s *served) greet(t testing.TB, settings ...wire.Setting) *peer {
	t.Helper()
	p := s.dial(t)
	p.send(func() {
		p.out.WriteString(wire.ClientPreface)
		_ = p.framer.WriteSettings(settings...)
		_ = p.framer.WriteSettingsAck()
	})
	for {
		if f, ok := p.next().(*wire.SettingsFrame); ok && f.IsAck() {
			return p
		}
	}
}

// send writes what frames puts together in one piece.
func (p *peer) send(frames func()) {
	p.t.Helper()
	frames()
	_, err := p.conn.Write(p.out.Bytes())
	p.out.Reset()
	if err != nil {
		p.t.Fatal(err)
	}
}

// headers encodes pairs of names and values.
func (p *peer) headers(pairs ...string) []byte {
	p.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = p.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(p.block.Bytes())
}

// ask begins a request.
func (p *peer) ask(id uint32, method, path string, ended bool, more ...string) {
	block := p.headers(append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path}, more...)...)
	_ = p.framer.WriteHeaders(wire.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true, EndStream: ended})
}

// next returns the next frame, nil when the connection has ended.
func (p *peer) next() wire.Frame {
	p.t.Helper()
	f, err := p.framer.ReadFrame()
	if late, ok := err.(net.Error); ok && late.Timeout() { //nolint:errorlint // of the connection itself
		p.t.Fatal("nothing came")
	}
	if err != nil {
		return nil
	}
	return f
}

// answer reads up to the end of a stream.
func (p *peer) answer(id uint32) (status int, body string, reset wire.ErrCode) {
	p.t.Helper()
	var data []byte
	for {
		switch f := p.next().(type) {
		case nil:
			p.t.Fatal("the connection has ended")
		case *wire.MetaHeadersFrame:
			if f.StreamID == id {
				if text := f.PseudoValue("status"); text != "" {
					status, _ = strconv.Atoi(text)
				}
				if f.StreamEnded() {
					return status, string(data), 0
				}
			}
		case *wire.DataFrame:
			if f.StreamID == id {
				if data = append(data, f.Data()...); f.StreamEnded() {
					return status, string(data), 0
				}
			}
		case *wire.RSTStreamFrame:
			if f.StreamID == id {
				return status, string(data), f.ErrCode
			}
		case *wire.GoAwayFrame:
			if f.ErrCode != wire.ErrCodeNo {
				p.t.Fatalf("the server went away: %v", f.ErrCode)
			}
		}
	}
}

// farewell reads up to the end of the connection and returns what the server said.
func (p *peer) farewell() wire.ErrCode {
	p.t.Helper()
	code := wire.ErrCode(0xffff)
	for {
		f := p.next()
		if f == nil {
			return code
		}
		if g, ok := f.(*wire.GoAwayFrame); ok {
			code = g.ErrCode
		}
	}
}

// get is a request that has to succeed.
func get(t testing.TB, c *http.Client, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Fatalf("%s: %v, %s, %v", url, res.Status, res.Proto, err)
	}
	return string(body)
}
