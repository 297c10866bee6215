// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Command runs a function for a client, as exec and attach of Pods run a process.
type Command struct {
	// Run runs a command until it ends or ctx does; required. The streams are not used
	// after it has returned. An [ExitError] is the exit code that the client gets, another
	// error a message.
	Run func(ctx context.Context, r *resource.Request, o Options, s *Session) error
}

// Options are the parameters of a command, with the names that exec of Pods has.
type Options struct {
	// Command and its arguments; empty for attach.
	Command []string
	// Container that is meant; empty: the client leaves it to the server.
	Container string
	// Stdin, Stdout and Stderr are the streams that the client wants; at least one.
	Stdin, Stdout, Stderr bool
	// TTY asks for a terminal, whose Stdout has both outputs.
	TTY bool
}

// Session has the streams of a command. Those that the client does not want are nil.
type Session struct {
	// Stdin ends when the client closes it.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Resize has the sizes of the client's terminal, the first one at the beginning. It is
	// nil without a TTY, is closed with the connection, and keeps the newest size if it is
	// not read.
	Resize <-chan Size

	gone    <-chan struct{} // closed when the client is gone or the server stops
	copying sync.WaitGroup  // what reads Stdin for [Session.Run]
}

// Size of a terminal, in characters.
type Size struct{ Width, Height uint16 }

// ExitError ends a [Command] with an exit code other than 0.
type ExitError struct{ Code int }

func (e *ExitError) Error() string {
	return fmt.Sprintf("command terminated with non-zero exit code: %d", e.Code)
}

// Exit returns the error of [exec.Cmd.Run] as an [ExitError] if the process has ended by
// itself, and err in any other case.
func Exit(err error) error {
	if exited, ok := errors.AsType[*exec.ExitError](err); ok && exited.ExitCode() > 0 {
		return &ExitError{Code: exited.ExitCode()}
	}
	return err
}

// Subresource returns the subresource of a name, exec or attach. Clients need the right to
// the verb create if they ask with POST, and to get if they ask with GET, as WebSockets do.
func (c Command) Subresource(name string) resource.Subresource {
	return resource.Subresource{Name: name, Verbs: streamVerbs(), Backend: c}
}

// streamVerbs are the verbs of streams in both directions: WebSockets are opened with GET,
// SPDY with POST.
func streamVerbs() []string { return []string{"create", "get"} }

// Connect implements [resource.Connecter].
func (c Command) Connect(ctx context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	o, err := commandOptions(h.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	run := func(ctx context.Context, s *Session) metav1.Status { return statusOf(c.Run(ctx, r, o, s)) }
	switch upgrade := strings.ToLower(h.Header.Get("Upgrade")); {
	case !exchange.Upgrading(h):
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "Upgrade request required")
	case upgrade == "websocket":
		commandOverWebSocket(ctx, w, h, o, run)
	case upgrade == "spdy/3.1":
		commandOverSPDY(ctx, w, h, o, run)
	default:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "unable to upgrade: unknown protocol "+strconv.Quote(upgrade))
	}
}

// commandOptions decodes the parameters of a command.
func commandOptions(query url.Values) (o Options, err error) {
	o.Command, o.Container = query["command"], query.Get("container")
	for name, into := range map[string]*bool{"stdin": &o.Stdin, "stdout": &o.Stdout, "stderr": &o.Stderr, "tty": &o.TTY} {
		if value := query.Get(name); value != "" {
			if *into, err = strconv.ParseBool(value); err != nil {
				return o, fmt.Errorf("parameter %s: %q is neither true nor false", name, value)
			}
		}
	}
	o.Stderr = o.Stderr && !o.TTY
	if !o.Stdin && !o.Stdout && !o.Stderr {
		return o, errors.New("you must specify at least one of stdin, stdout, stderr")
	}
	return o, nil
}

// statusOf returns the end of a command as clients of exec expect it.
func statusOf(err error) metav1.Status {
	if err == nil {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	status := metav1.Status{Status: metav1.StatusFailure, Message: err.Error(), Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError}
	if exit, ok := errors.AsType[*ExitError](err); ok {
		status.Code, status.Reason = 0, "NonZeroExitCode"
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(exit.Code)}}}
	}
	return status
}

// maxSize bounds the JSON text of a size of a terminal, in bytes.
const maxSize = 1 << 10

// sizes passes the sizes that a client sends on, the newest one if they come faster than
// they are read. What is no size, or too long, is the last one.
func sizes(from io.Reader) <-chan Size {
	out := make(chan Size, 1)
	go func() {
		defer close(out)
		defer func() { _, _ = io.Copy(io.Discard, from) }() // other channels stand behind
		text := &io.LimitedReader{R: from}
		for decoder := json.NewDecoder(text); ; {
			var size Size
			text.N = maxSize // for what is not buffered yet
			if decoder.Decode(&size) != nil {
				return
			}
			select {
			case <-out:
			default:
			}
			out <- size
		}
	}()
	return out
}
