// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/spdystream"
	"golang.org/x/net/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/stream"
	"github.com/steer-dev/steer/storage"
)

// free is a strategy without rules.
type free struct{}

func (free) Default(resource.Object) ([]string, error)                           { return nil, nil }
func (free) Prepare(context.Context, resource.Object, resource.Object)           {}
func (free) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }
func (free) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}

// none is a backend without objects.
type none struct{}

func (none) List(context.Context, *resource.Request, *internalversion.ListOptions) (*resource.List, error) {
	return &resource.List{}, nil
}

// limit ends what a test waits for.
const limit = 60 * time.Second

// serve serves machines with the given subresources over a socket; it returns the address
// and the path of the machine "m".
func serve(t *testing.T, below ...resource.Subresource) (server *apiserver.Server, host, path string) {
	t.Helper()
	server, err := apiserver.New(apiserver.Options{Store: storage.NewMemory(storage.MemoryOptions{}), Authorizer: auth.AllowAll{}})
	if err != nil {
		t.Fatal(err)
	}
	v := resource.Version{Name: "v1", Strategy: free{}, Subresources: below}
	err = server.Install(&resource.Resource{
		Names:   resource.Names{Group: "example.com", Plural: "machines", Singular: "machine", Kind: "Machine", ListKind: "MachineList", Namespaced: true},
		Backend: none{}, Versions: []resource.Version{v},
	})
	if err != nil {
		t.Fatal(err)
	}
	over := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
		over.Close()
	})
	return server, strings.TrimPrefix(over.URL, "http://"), "/apis/example.com/v1/namespaces/default/machines/m/"
}

// shell copies its input to its output, says which sizes its terminal has, and ends with
// the code that its argument says.
func shell(ctx context.Context, r *resource.Request, o stream.Options, s *stream.Session) error {
	if s.Resize != nil {
		size := <-s.Resize
		_, _ = fmt.Fprintf(s.Stdout, "%dx%d\n", size.Width, size.Height)
	}
	switch o.Command[0] {
	case "cat":
		if _, err := io.Copy(s.Stdout, s.Stdin); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(s.Stderr, "copied for %s", r.Name)
		return nil
	case "wait":
		_, _ = io.WriteString(s.Stdout, "waiting")
		<-ctx.Done()
		return ctx.Err()
	case "fail":
		return errors.New("no such program")
	}
	return &stream.ExitError{Code: len(o.Command)}
}

// talk is one side of a command, whatever the protocol.
type talk struct {
	stdin          io.WriteCloser
	resize         io.Writer
	stdout, stderr io.Reader
	status         io.Reader
	close          func()
}

// overWebSocket starts a command over a WebSocket.
func overWebSocket(t *testing.T, host, path, protocol string) talk {
	t.Helper()
	config, err := websocket.NewConfig("ws://"+host+path, "http://"+host)
	if err != nil {
		t.Fatal(err)
	}
	config.Protocol = []string{protocol}
	ws, err := config.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ws.PayloadType = websocket.BinaryFrame
	_ = ws.SetDeadline(time.Now().Add(limit))
	readers, writers := map[byte]*io.PipeReader{}, map[byte]*io.PipeWriter{}
	for _, c := range []byte{1, 2, 3} {
		readers[c], writers[c] = io.Pipe()
	}
	go func() {
		for {
			var data []byte
			err := websocket.Message.Receive(ws, &data)
			if err != nil {
				for _, w := range writers {
					_ = w.CloseWithError(err)
				}
				return
			}
			if len(data) > 1 {
				_, _ = writers[data[0]].Write(data[1:])
			}
		}
	}()
	return talk{
		stdin: channel{ws, 0}, resize: channel{ws, 4}, stdout: readers[1], stderr: readers[2], status: readers[3],
		close: func() { _ = ws.Close() },
	}
}

// channel writes to a channel of a WebSocket.
type channel struct {
	ws     *websocket.Conn
	number byte
}

func (c channel) Write(p []byte) (int, error) {
	return len(p), websocket.Message.Send(c.ws, append([]byte{c.number}, p...))
}

func (c channel) Close() error { return websocket.Message.Send(c.ws, []byte{255, c.number}) }

// overSPDY opens a connection of SPDY.
func overSPDY(t *testing.T, host, path, protocol string) *spdystream.Connection {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(limit))
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: %s\r\nContent-Length: 0\r\n\r\n", path, protocol)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s: %s", path, answer.Status)
	}
	spdy, err := spdystream.NewConnection(conn, false)
	if err != nil {
		t.Fatal(err)
	}
	go spdy.Serve(spdystream.NoOpStreamHandler)
	t.Cleanup(func() { _ = conn.Close() })
	return spdy
}

func open(t *testing.T, spdy *spdystream.Connection, headers ...string) *spdystream.Stream {
	t.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	s, err := spdy.CreateStream(h, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WaitTimeout(limit); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a command over one of the protocols.
func start(t *testing.T, protocol, host, path string) talk {
	t.Helper()
	if protocol != "spdy" {
		return overWebSocket(t, host, path, protocol)
	}
	spdy := overSPDY(t, host, path, "v4.channel.k8s.io")
	c := talk{close: func() { _ = spdy.Close() }}
	c.status = open(t, spdy, "streamType", "error")
	at, _ := url.Parse(path)
	for name, use := range map[string]func(s *spdystream.Stream){
		"stdin": func(s *spdystream.Stream) { c.stdin = s }, "stdout": func(s *spdystream.Stream) { c.stdout = s },
		"stderr": func(s *spdystream.Stream) { c.stderr = s },
	} {
		if at.Query().Get(name) == "true" {
			use(open(t, spdy, "streamType", name))
		}
	}
	if at.Query().Get("tty") == "true" {
		c.resize = open(t, spdy, "streamType", "resize")
	}
	return c
}

func everything(t *testing.T, from io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(from)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%q: %v", text, err)
	}
	return string(text)
}

func protocols() []string { return []string{"v5.channel.k8s.io", "v4.channel.k8s.io", "spdy"} }

func TestCommandCopiesStreamsUntilTheClientClosesItsInput(t *testing.T) {
	t.Parallel()
	_, host, path := serve(t, stream.Command{Run: shell}.Subresource("exec"))
	for _, protocol := range []string{"v5.channel.k8s.io", "spdy"} { // v4 over a WebSocket cannot close one stream
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := start(t, protocol, host, path+"exec?command=cat&stdin=true&stdout=true&stderr=true")
			defer c.close()
			long := strings.Repeat("0123456789abcdef", 64<<10)
			go func() {
				for i := 0; i < len(long); i += 16 << 10 {
					_, _ = io.WriteString(c.stdin, long[i:i+16<<10])
				}
				_ = c.stdin.Close()
			}()
			got := make([]byte, len(long))
			if _, err := io.ReadFull(c.stdout, got); err != nil || string(got) != long {
				t.Errorf("stdout: %d bytes: %v", len(got), err)
			}
			said := make([]byte, len("copied for m"))
			if _, err := io.ReadFull(c.stderr, said); err != nil || string(said) != "copied for m" {
				t.Errorf("stderr: %q: %v", said, err)
			}
			if status := everything(t, c.status); !strings.Contains(status, `"status":"Success"`) {
				t.Errorf("status: %s", status)
			}
		})
	}
}

func TestCommandReportsItsEnd(t *testing.T) {
	t.Parallel()
	_, host, path := serve(t, stream.Command{Run: shell}.Subresource("exec"))
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			for query, want := range map[string]metav1.Status{
				"command=exit&command=2&command=3": {
					Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "command terminated with non-zero exit code: 3",
					Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: "3"}}},
				},
				"command=fail": {Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: "no such program", Code: 500},
			} {
				c := start(t, protocol, host, path+"exec?stdout=true&"+query)
				var got metav1.Status
				if err := json.NewDecoder(c.status).Decode(&got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", query, diff)
				}
				c.close()
			}
		})
	}
}

func TestCommandKnowsTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	_, host, path := serve(t, stream.Command{Run: shell}.Subresource("attach"))
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := start(t, protocol, host, path+"attach?command=exit&stdout=true&tty=true")
			defer c.close()
			if _, err := io.WriteString(c.resize, `{"Width":80,"Height":24}`); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len("80x24\n"))
			if _, err := io.ReadFull(c.stdout, got); err != nil || string(got) != "80x24\n" {
				t.Errorf("size %q: %v", got, err)
			}
		})
	}
}

func TestCommandEndsWhenItsClientIsGone(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 8)
	_, host, path := serve(t, stream.Command{Run: func(ctx context.Context, r *resource.Request, o stream.Options, s *stream.Session) error {
		err := shell(ctx, r, o, s)
		ended <- err
		return err
	}}.Subresource("exec"))
	for _, protocol := range protocols() {
		c := start(t, protocol, host, path+"exec?command=wait&stdout=true")
		said := make([]byte, len("waiting"))
		if _, err := io.ReadFull(c.stdout, said); err != nil {
			t.Fatal(err)
		}
		c.close()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", protocol, err)
			}
		case <-time.After(limit):
			t.Fatalf("%s: the command still runs", protocol)
		}
	}
}

func TestCommandEndsWhenTheServerStops(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols() {
		server, host, path := serve(t, stream.Command{Run: shell}.Subresource("exec"))
		c := start(t, protocol, host, path+"exec?command=wait&stdout=true")
		said := make([]byte, len("waiting"))
		if _, err := io.ReadFull(c.stdout, said); err != nil {
			t.Fatal(err)
		}
		stopped := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			stopped <- server.Stop(ctx)
		}()
		if protocol != "spdy" { // of SPDY the connection is closed
			if status := everything(t, c.status); !strings.Contains(status, "context canceled") {
				t.Errorf("%s: status %q", protocol, status)
			}
		}
		c.close()
		if err := <-stopped; err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func TestCommandThatItsClientDoesNotReadEndsWhenTheServerStops(t *testing.T) {
	t.Parallel()
	for _, protocol := range protocols() {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			server, host, path := serve(t, stream.Command{Run: func(_ context.Context, _ *resource.Request, _ stream.Options, s *stream.Session) error {
				for {
					if _, err := s.Stdout.Write(make([]byte, 32<<10)); err != nil {
						ended <- err
						return err
					}
				}
			}}.Subresource("exec"))
			c := start(t, protocol, host, path+"exec?command=x&stdout=true")
			defer c.close()
			if _, err := io.ReadFull(c.stdout, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := server.Stop(ctx); err != nil {
				t.Error(err)
			}
			<-ended
		})
	}
}

func TestConnectionsThatAreNotUpgradedAreRefused(t *testing.T) {
	t.Parallel()
	_, host, path := serve(t, stream.Command{Run: shell}.Subresource("exec"), stream.PortForward{}.Subresource())
	for _, test := range []struct {
		path, upgrade, protocol string
		code                    int
		want                    string
	}{
		{path: "exec?command=x", code: 400, want: "you must specify at least one of stdin, stdout, stderr"},
		{path: "exec?command=x&stdout=perhaps", code: 400, want: "neither true nor false"},
		{path: "exec?command=x&stdout=true", code: 400, want: "Upgrade request required"},
		{path: "exec?command=x&stdout=true", upgrade: "SPDY/3.1", protocol: "v1.channel.k8s.io", code: 403, want: "the server v4.channel.k8s.io"},
		{path: "exec?command=x&stdout=true", upgrade: "other", code: 400, want: "unknown protocol"},
		{path: "portforward", code: 400, want: "Upgrade request required"},
		{path: "portforward", upgrade: "SPDY/3.1", protocol: "none", code: 403, want: "the server portforward.k8s.io"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+path+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.upgrade != "" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", test.upgrade)
			r.Header.Set("X-Stream-Protocol-Version", test.protocol)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		text := everything(t, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != test.code || !strings.Contains(text, test.want) {
			t.Errorf("%s: %d %s, want %d %s", test.path, answer.StatusCode, text, test.code, test.want)
		}
	}
}

func TestLogFollowsUntilItsClientIsGone(t *testing.T) {
	t.Parallel()
	lines, opened, gone := make(chan string), make(chan stream.LogOptions, 2), make(chan struct{})
	_, host, path := serve(t, stream.Log{Open: func(ctx context.Context, _ *resource.Request, o stream.LogOptions) (io.ReadCloser, error) {
		opened <- o
		if o.Container == "none" {
			return nil, apierrors.NewBadRequest("there is no container none")
		}
		r, w := io.Pipe()
		go func() {
			for {
				select {
				case line := <-lines:
					_, _ = io.WriteString(w, line)
				case <-ctx.Done():
					_ = w.CloseWithError(ctx.Err())
					close(gone)
					return
				}
			}
		}()
		return r, nil
	}}.Subresource())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := func(query string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path+"log?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	if answer := get("container=none"); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("no container: %s", answer.Status)
	}
	<-opened
	for _, query := range []string{"tailLines=-1", "limitBytes=0", "follow=perhaps", "sinceTime=today", "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z"} {
		if answer := get(query); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", query, answer.Status)
		}
	}
	answer := get("follow=true&tailLines=3&timestamps=true&sinceTime=2026-01-02T03:04:05Z")
	want := stream.LogOptions{Follow: true, Tail: 3, Timestamps: true, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	if diff := cmp.Diff(want, <-opened); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	text := bufio.NewReader(answer.Body)
	for _, line := range []string{"one\n", "two\n"} { // each is sent before the next one is there
		lines <- line
		if got, err := text.ReadString('\n'); err != nil || got != line {
			t.Fatalf("line %q: %v", got, err)
		}
	}
	cancel()
	select {
	case <-gone:
	case <-time.After(limit):
		t.Fatal("the log is still open")
	}
}

func TestStreamsAnswerTheVerbsThatDiscoveryNames(t *testing.T) {
	t.Parallel()
	_, host, path := serve(t,
		stream.Log{Open: func(context.Context, *resource.Request, stream.LogOptions) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("text")), nil
		}}.Subresource(),
		stream.Command{Run: shell}.Subresource("exec"), stream.Command{Run: shell}.Subresource("attach"), stream.PortForward{}.Subresource(),
		stream.Proxy{Target: func(context.Context, *resource.Request) (*url.URL, error) {
			return nil, apierrors.NewResourceExpired("nothing")
		}}.Subresource(),
		resource.Subresource{Name: "bare", Backend: stream.Command{Run: shell}}, // without verbs
	)
	send := func(method, path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, everything(t, answer.Body)
	}
	_, text := send("GET", "/apis/example.com/v1")
	var found metav1.APIResourceList
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	both := "create get"
	want := map[string]string{"log": "get", "exec": both, "attach": both, "portforward": both, "bare": both, "proxy": "create delete get patch update"}
	got := map[string]string{}
	for _, r := range found.APIResources {
		if _, name, below := strings.Cut(r.Name, "/"); below {
			got[name] = strings.Join(r.Verbs, " ")
			if r.Kind != "Machine" {
				t.Errorf("%s is of the kind %q", r.Name, r.Kind)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verbs (-want +got):\n%s", diff)
	}
	for name, verbs := range want {
		for method, verb := range map[string]string{"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"} {
			code, _ := send(method, path+name)
			if served := code != http.StatusMethodNotAllowed; served != strings.Contains(verbs, verb) {
				t.Errorf("%s of %s: %d", method, name, code)
			}
		}
	}
}
