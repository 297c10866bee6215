// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/steer-dev/steer/controlplane"
)

// What an unauthenticated request may make the server allocate: so much, and so much for each
// byte that was received.
const (
	// hostileBase is above what the race detector adds: with it, a sync.Pool drops a
	// quarter of what is put back, so that a small request makes buffers anew.
	hostileBase   = 256 << 10
	hostileFactor = 64
	// hostileRequest is what one of many requests costs that come at once.
	hostileRequest = 8 << 10
	// hostileFrame is what one of many frames costs with the race detector, when a single
	// processor answers each by itself: a quarter of net/http's buffers of 4 KiB is made anew.
	hostileFrame = 1 << 10
)

// attack is a request without credentials, or with wrong ones.
type attack struct {
	method, path string
	headers      [][2]string
	body         string
}

func header(name, value string) [][2]string { return [][2]string{{name, value}} }

func repeated(n int, field func(i int) (name, value string)) (out [][2]string) {
	for i := range n {
		name, value := field(i)
		out = append(out, [2]string{name, value})
	}
	return out
}

// token makes a token in three parts.
func token(head, claims string) [][2]string {
	encode := base64.RawURLEncoding.EncodeToString
	return header("authorization", "Bearer "+encode([]byte(head))+"."+encode([]byte(claims))+"."+encode(make([]byte, 64)))
}

// attacks are requests of about 60 KB that are good over HTTP/1.1 and HTTP/2.
func attacks() map[string]attack {
	const pods = "/api/v1/namespaces/default/pods"
	long := func(unit string) string { return strings.Repeat(unit, 60_000/len(unit)) }
	ours := `"iss":"https://kubernetes.default.svc.cluster.local"`
	es256 := `{"alg":"ES256"}`
	out := map[string]attack{
		"cookies in many fields":  {headers: repeated(4000, func(i int) (string, string) { return "cookie", fmt.Sprint(i) })},
		"cookies in long fields":  {headers: repeated(60, func(int) (string, string) { return "cookie", strings.Repeat("x", 1000) })},
		"a long header":           {headers: header("x-long", long("x"))},
		"many headers":            {headers: repeated(3000, func(i int) (string, string) { return fmt.Sprintf("x-%d", i), "v" })},
		"many values":             {headers: repeated(5000, func(int) (string, string) { return "x", "v" })},
		"a long token":            {headers: header("authorization", "Bearer "+long("x"))},
		"a token of dots":         {headers: header("authorization", "Bearer "+long("."))},
		"a token with much space": {headers: header("authorization", "Bearer "+long(" ")+"x")},
		"a token of two parts":    {headers: header("authorization", "Bearer "+long("x")[:30_000]+"."+long("y")[:30_000])},
		"deep claims":             {headers: token(es256, `{`+ours+`,"aud":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`)},
		"a deep token header":     {headers: token(`{"alg":"ES256","x":`+strings.Repeat(`{"a":`, 6000)+`1`+strings.Repeat(`}`, 6000)+`}`, `{`+ours+`}`)},
		"many audiences":          {headers: token(es256, `{`+ours+`,"aud":["`+strings.Repeat(`a","`, 10_000)+`"]}`)},
		"claims again and again":  {headers: token(es256, `{`+ours+strings.Repeat(`,"aud":["a","b"],"kubernetes.io":{"pod":{"name":"a"}}`, 800)+`}`)},
		"a long algorithm":        {headers: token(`{"alg":"`+long("x")[:40_000]+`"}`, `{`+ours+`}`)},
		"a forged token":          {headers: token(es256, `{`+ours+`,"sub":"system:serviceaccount:a:b","exp":9999999999}`)},
		"protocols of a socket":   {headers: slices.Concat(header("upgrade", "websocket"), header("sec-websocket-protocol", long("a,")))},
		"a token in a protocol":   {headers: slices.Concat(header("upgrade", "websocket"), header("sec-websocket-protocol", "x, base64url.bearer.authorization.k8s.io."+long("x")))},
		"many groups":             {headers: slices.Concat(header("impersonate-user", "a"), repeated(3000, func(i int) (string, string) { return "impersonate-group", fmt.Sprint(i) }))},
		"groups without a user":   {headers: repeated(3000, func(int) (string, string) { return "impersonate-group", "\"\"\"\"" })},
		"much else of a user":     {headers: slices.Concat(header("impersonate-user", "a"), repeated(2000, func(i int) (string, string) { return fmt.Sprintf("impersonate-extra-%d", i), "v" }))},
		"extra without a user":    {headers: repeated(2000, func(i int) (string, string) { return fmt.Sprintf("impersonate-extra-%d", i), "v" })},
		"a long user":             {headers: header("impersonate-user", "system:serviceaccount:"+long("a:"))},
		"users of a proxy":        {headers: slices.Concat(header("x-remote-user", "a"), repeated(2000, func(i int) (string, string) { return fmt.Sprintf("x-remote-extra-%d", i), "v" }))},
		"many media types":        {headers: header("accept", long("a/b,"))},
		"many short media types":  {headers: header("accept", long(","))},
		"many parameters":         {headers: header("accept", "a/b"+long(";c=d"))},
		"a long media type":       {headers: header("accept", "application/"+long("x"))},
		"a long agent":            {headers: header("user-agent", long("x"))},
		"a long audit ID":         {headers: header("audit-id", long("x"))},
		"a long path":             {path: "/" + long("x")},
		"a deep path":             {path: long("/a")},
		"an escaped path":         {path: "/api/v1/namespaces/" + long("%41") + "/pods"},
		"dots in a path":          {path: long("/..")},
		"a long name":             {path: pods + "/" + long("x")},
		"a query of many":         {path: pods + "?" + long("a&")},
		"a query of escapes":      {path: pods + "?watch=" + long("%41")},
		"a long timeout":          {path: pods + "?timeout=" + long("1h")},
		"many labels":             {path: pods + "?labelSelector=" + long("a=b,")},
		"a label of many":         {path: pods + "?labelSelector=a+in+(" + long("b,") + "c)"},
		"labels without end":      {path: pods + "?labelSelector=" + long("(")},
		"bad values of a label":   {path: pods + "?labelSelector=a+in+(" + long("-,") + "-)"},
		"many fields":             {path: pods + "?fieldSelector=" + long("a=b,") + "c=d"},
		"fields of escapes":       {path: pods + "?fieldSelector=a=" + long(`%5C%5C`)},
		"a name among labels":     {path: pods + "?fieldSelector=metadata.name=a&labelSelector=" + strings.Repeat("(", 480)},
		"a name among values":     {path: pods + "?fieldSelector=metadata.name=a&labelSelector=a+in+(" + strings.Repeat("b,", 230) + "c)"},
		"a name among fields":     {path: pods + "?fieldSelector=metadata.name=a" + strings.Repeat(",a=b", 120)},
		"fields without values":   {path: pods + "?fieldSelector=" + long("a,")},
		"deletion of a selection": {method: http.MethodDelete, path: pods + "?labelSelector=" + long("a=b,")},
		"pretty":                  {path: pods + "?pretty=" + long("1")},
		"a deep body":             {method: http.MethodPost, body: long("[")},
		"a long method":           {method: long("M")[:8000]},
	}
	for name, a := range out {
		if a.method == "" {
			a.method = http.MethodGet
		}
		if a.path == "" {
			a.path = pods
		}
		out[name] = a
	}
	return out
}

// stranger is a connection that has not authenticated.
type stranger struct {
	t      *testing.T
	conn   *tls.Conn
	reader *bufio.Reader
	frame  []byte
}

func dialStranger(t *testing.T, plane *controlplane.Plane, protocol string) *stranger {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(plane.URL(), "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &stranger{t: t, conn: conn, reader: bufio.NewReaderSize(conn, 32<<10), frame: make([]byte, 1<<20)}
}

// exchange1 sends a request of HTTP/1.1 and reads the answer, or the end.
func (s *stranger) exchange1(request []byte) {
	if _, err := s.conn.Write(request); err != nil {
		return // it has hung up, and what it allocated is seen
	}
	answer, err := http.ReadResponse(s.reader, nil)
	if err != nil {
		return
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.Copy(io.Discard, answer.Body)
}

// exchange2 sends frames of HTTP/2 and reads up to the end of a stream, or of the
// connection.
func (s *stranger) exchange2(frames []byte, stream uint32) {
	sent := make(chan struct{})
	go func() { // what it makes the server answer must not hold it up
		defer close(sent)
		_, _ = s.conn.Write(frames)
	}()
	defer func() { <-sent }()
	for {
		head := s.frame[:9]
		if _, err := io.ReadFull(s.reader, head); err != nil {
			return
		}
		length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		kind, flags, id := http2.FrameType(head[3]), http2.Flags(head[4]), binary.BigEndian.Uint32(head[5:])
		if _, err := io.ReadFull(s.reader, s.frame[:length]); err != nil {
			return
		}
		over := kind == http2.FrameRSTStream || (kind == http2.FrameData || kind == http2.FrameHeaders) && flags.Has(http2.FlagDataEndStream)
		if id == stream && over {
			return
		}
	}
}

// over1 is an attack in HTTP/1.1.
func (a attack) over1() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\nHost: x\r\n", a.method, a.path)
	for _, h := range a.headers {
		fmt.Fprintf(&out, "%s: %s\r\n", h[0], h[1])
	}
	if a.body != "" {
		fmt.Fprintf(&out, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(a.body))
	}
	out.WriteString("\r\n" + a.body)
	return out.Bytes()
}

// frameWriter encodes for one connection of HTTP/2.
type frameWriter struct {
	bytes.Buffer
	framer *http2.Framer
	block  bytes.Buffer
	enc    *hpack.Encoder
}

func newFrameWriter() *frameWriter {
	f := &frameWriter{}
	f.framer = http2.NewFramer(f, nil)
	f.framer.AllowIllegalWrites = true
	f.enc = hpack.NewEncoder(&f.block)
	return f
}

// greet begins the connection.
func (f *frameWriter) greet() {
	f.WriteString(http2.ClientPreface)
	_ = f.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1})
	_ = f.framer.WriteWindowUpdate(0, 1<<30)
}

// ask adds the frames of a request.
func (f *frameWriter) ask(stream uint32, a attack, indexed bool) {
	f.block.Reset()
	fields := slices.Concat([][2]string{{":method", a.method}, {":scheme", "https"}, {":authority", "x"}, {":path", a.path}}, a.headers)
	for _, h := range fields {
		_ = f.enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1], Sensitive: !indexed})
	}
	block := f.block.Bytes()
	const most = 16 << 10
	first := block[:min(len(block), most)]
	block = block[len(first):]
	_ = f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: first, EndHeaders: len(block) == 0, EndStream: a.body == ""})
	for len(block) > 0 {
		next := block[:min(len(block), most)]
		block = block[len(next):]
		_ = f.framer.WriteContinuation(stream, len(block) == 0, next)
	}
	for body := []byte(a.body); len(body) > 0; {
		next := body[:min(len(body), most)]
		body = body[len(next):]
		_ = f.framer.WriteData(stream, len(body) == 0, next)
	}
}

// take returns what was encoded since the last time.
func (f *frameWriter) take() []byte {
	out := bytes.Clone(f.Bytes())
	f.Reset()
	return out
}

// allocated returns what the process has allocated so far, in bytes.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// cost is what the process allocates while f runs.
func cost(f func()) uint64 {
	before := allocated()
	f()
	return allocated() - before
}

// TestUnauthenticatedRequestsAreBounded measures what the process allocates for
// requests without credentials, or with wrong ones, against the bytes that they have. It
// is not parallel, so that it measures nothing else.
func TestUnauthenticatedRequestsAreBounded(t *testing.T) {
	for _, s := range setUps() {
		t.Run(s.name, func(t *testing.T) { measureStrangers(t, s.of(t).plane) })
	}
}

// measureStrangers attacks one server.
func measureStrangers(t *testing.T, plane *controlplane.Plane) {
	t.Helper()
	usual := attack{method: http.MethodGet, path: "/version"}
	// judge measures up to ten times, each over a connection of its own, and the least
	// counts: what is made once in the life of the process is no cost of a request.
	judge := func(t *testing.T, base int, measure func() (sent int, spent uint64)) {
		t.Helper()
		for try := 1; ; try++ {
			sent, spent := measure()
			most := uint64(base + hostileFactor*sent)
			t.Logf("%d bytes received, %d allocated: %.1f each", sent, spent, float64(spent)/float64(sent))
			if spent <= most {
				return
			}
			if try == 10 {
				t.Fatalf("%d bytes received made the process allocate %d, more than %d", sent, spent, most)
			}
		}
	}
	over1 := func(t *testing.T, request []byte) func() (int, uint64) {
		return func() (int, uint64) {
			s := dialStranger(t, plane, "http/1.1")
			s.exchange1(usual.over1())
			return len(request), cost(func() { s.exchange1(request) })
		}
	}
	over2 := func(t *testing.T, last uint32, write func(f *frameWriter)) func() (int, uint64) {
		return func() (int, uint64) {
			s, f := dialStranger(t, plane, "h2"), newFrameWriter()
			f.greet()
			f.ask(1, usual, true)
			s.exchange2(f.take(), 1)
			write(f)
			request := f.take()
			return len(request), cost(func() { s.exchange2(request, last) })
		}
	}
	for name, a := range attacks() {
		t.Run("HTTP1/"+name, func(t *testing.T) { judge(t, hostileBase, over1(t, a.over1())) })
		t.Run("HTTP2/"+name, func(t *testing.T) {
			judge(t, hostileBase, over2(t, 3, func(f *frameWriter) { f.ask(3, a, false) }))
		})
	}
	for name, a := range map[string]attack{
		"cookies": {headers: repeated(30, func(int) (string, string) { return "cookie", strings.Repeat("x", 3900) })},
		"values":  {headers: repeated(400, func(int) (string, string) { return "x-long", strings.Repeat("x", 3900) })},
		"short":   {headers: repeated(20_000, func(int) (string, string) { return "x", "v" })},
		"groups":  {headers: repeated(400, func(int) (string, string) { return "impersonate-group", strings.Repeat("x", 3900) })},
	} {
		a.method, a.path = usual.method, "/api/v1/pods"
		t.Run("HTTP2/compressed "+name, func(t *testing.T) {
			judge(t, hostileBase, over2(t, 3, func(f *frameWriter) { f.ask(3, a, true) }))
		})
	}
	for name, flood := range floods() {
		t.Run("HTTP2/"+name, func(t *testing.T) {
			const last = 1_000_001
			judge(t, hostileBase+floodFrames*hostileFrame+flood.requests*hostileRequest, over2(t, last, func(f *frameWriter) {
				flood.write(f)
				f.ask(last, usual, true)
			}))
		})
	}
	for name, request := range lines() {
		t.Run("HTTP1/"+name, func(t *testing.T) { judge(t, hostileBase, over1(t, []byte(request))) })
	}
}

// lines are requests that only HTTP/1.1 has.
func lines() map[string]string {
	const chunked = "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	return map[string]string{
		"small chunks":         chunked + strings.Repeat("1\r\nx\r\n", 10_000) + "0\r\n\r\n",
		"chunks that say more": chunked + "1;" + strings.Repeat("x", 4000) + "\r\nx\r\n0\r\n\r\n",
		"trailers":             chunked + "0\r\n" + strings.Repeat("X-Trailer: x\r\n", 4000) + "\r\n",
		"folded lines":         "GET / HTTP/1.1\r\nHost: x\r\nX-Long: x\r\n" + strings.Repeat(" x\r\n", 10_000) + "\r\n",
		"no end of the line":   "GET /" + strings.Repeat("x", 200_000),
	}
}

// flood is what a client sends beside its request.
type flood struct {
	requests int
	write    func(f *frameWriter)
}

// floodFrames is how many frames or requests a flood has.
const floodFrames = 2000

// floods are frames that cost a client little.
func floods() map[string]flood {
	many := func(one func(f *frameWriter, i uint32)) flood {
		return flood{write: func(f *frameWriter) {
			for i := range uint32(floodFrames) {
				one(f, i)
			}
		}}
	}
	requests := func(f flood) flood {
		f.requests = floodFrames
		return f
	}
	usual := attack{method: http.MethodGet, path: "/version"}
	return map[string]flood{
		"pings":    many(func(f *frameWriter, _ uint32) { _ = f.framer.WritePing(false, [8]byte{}) }),
		"settings": many(func(f *frameWriter, _ uint32) { _ = f.framer.WriteSettings() }),
		"table sizes": many(func(f *frameWriter, i uint32) {
			_ = f.framer.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 4096 * (i % 2)})
		}),
		"windows":    many(func(f *frameWriter, _ uint32) { _ = f.framer.WriteWindowUpdate(0, 1) }),
		"priorities": many(func(f *frameWriter, i uint32) { _ = f.framer.WritePriority(2*i+3, http2.PriorityParam{StreamDep: 1}) }),
		"unknown frames": many(func(f *frameWriter, _ uint32) {
			_ = f.framer.WriteRawFrame(0x55, 0, 0, []byte("x"))
		}),
		"reset requests": requests(many(func(f *frameWriter, i uint32) {
			f.ask(2*i+3, usual, true)
			_ = f.framer.WriteRSTStream(2*i+3, http2.ErrCodeCancel)
		})),
		"half requests": requests(many(func(f *frameWriter, i uint32) {
			f.block.Reset()
			for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/version"}} {
				_ = f.enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
			}
			_ = f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 3, BlockFragment: f.block.Bytes(), EndHeaders: true})
		})),
		"headers without end": {write: func(f *frameWriter) {
			_ = f.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x82}})
			for range floodFrames {
				_ = f.framer.WriteContinuation(3, false, nil)
			}
		}},
		"empty data": {write: func(f *frameWriter) {
			f.ask(3, attack{method: http.MethodPost, path: "/version", body: "x"}, true)
			for range floodFrames {
				_ = f.framer.WriteData(3, false, nil)
			}
		}},
		"a frame that is announced": {write: func(f *frameWriter) { f.Write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 3}) }},
	}
}
