// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-machine is a plugin of kubectl, which finds it in PATH:
//
//	kubectl machine logs [-f] NAME
//	kubectl machine exec [-i] [-t] NAME -- COMMAND...
//	kubectl machine port-forward NAME LOCAL:REMOTE...
//
// It does for machines what kubectl's commands of these names do for Pods, with the same
// requests and the same libraries; kubectl's own know no other kind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

const usage = "usage: kubectl machine logs [-f] NAME | exec [-it] NAME -- COMMAND... | port-forward NAME LOCAL:REMOTE..."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	interrupted := ctx.Err() != nil
	stop()
	code := utilexec.CodeExitError{}
	switch {
	case errors.As(err, &code):
		os.Exit(code.Code)
	case err != nil && !interrupted:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, failures io.Writer) error {
	var o options
	if len(args) == 0 {
		return errors.New(usage)
	}
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	set.SetOutput(failures)
	set.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that names the cluster; default as for kubectl")
	set.StringVar(&o.namespace, "n", "", "`namespace` of the machine; default that of the context")
	set.BoolVar(&o.follow, "f", false, "logs: follow")
	set.BoolVar(&o.stdin, "i", false, "exec: pass on the input")
	set.BoolVar(&o.tty, "t", false, "exec: with a terminal")
	both := set.Bool("it", false, "exec: -i and -t")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	o.stdin, o.tty = o.stdin || *both, o.tty || *both
	if set.NArg() == 0 {
		return errors.New(usage)
	}
	name, rest := set.Arg(0), set.Args()[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	m, err := o.machine(name)
	if err != nil {
		return err
	}
	switch args[0] {
	case "logs":
		return m.logs(ctx, o.follow, out)
	case "exec":
		return m.exec(ctx, o, rest, in, out, failures)
	case "port-forward":
		return m.forward(ctx, rest, out, failures)
	}
	return errors.New(usage)
}

type options struct {
	kubeconfig, namespace string
	follow, stdin, tty    bool
}

// machine is a machine of a cluster.
type machine struct {
	config *rest.Config
	url    *url.URL
}

func (o options) machine(name string) (m machine, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	if m.config, err = loaded.ClientConfig(); err != nil {
		return m, err
	}
	if o.namespace == "" {
		if o.namespace, _, err = loaded.Namespace(); err != nil {
			return m, err
		}
	}
	base, _, err := rest.DefaultServerUrlFor(m.config)
	if err != nil {
		return m, err
	}
	m.url = base.JoinPath("apis/example.com/v1/namespaces", o.namespace, "machines", name)
	return m, nil
}

func (m machine) logs(ctx context.Context, follow bool, out io.Writer) error {
	client, err := rest.HTTPClientFor(m.config)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.url.JoinPath("log").String()+fmt.Sprint("?follow=", follow), nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body) // for the message
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	_, err = io.Copy(out, answer.Body)
	return err
}

func (m machine) exec(ctx context.Context, o options, command []string, in io.Reader, out, failures io.Writer) error {
	at := m.url.JoinPath("exec")
	at.RawQuery = url.Values{
		"command": command, "stdout": {"true"}, "stderr": {fmt.Sprint(!o.tty)}, "stdin": {fmt.Sprint(o.stdin)}, "tty": {fmt.Sprint(o.tty)},
	}.Encode()
	executor, err := remotecommand.NewWebSocketExecutor(m.config, http.MethodGet, at.String())
	if err != nil {
		return err
	}
	streams := remotecommand.StreamOptions{Stdout: out, Stderr: failures, Tty: o.tty}
	if o.stdin {
		streams.Stdin = in
	}
	if o.tty {
		streams.Stderr = nil
		if terminal, ok := in.(*os.File); ok && term.IsTerminal(int(terminal.Fd())) {
			before, err := term.MakeRaw(int(terminal.Fd()))
			if err != nil {
				return err
			}
			defer func() { _ = term.Restore(int(terminal.Fd()), before) }() // the process ends
			streams.TerminalSizeQueue = &size{terminal: int(terminal.Fd())}
		}
	}
	return executor.StreamWithContext(ctx, streams)
}

// size is the size of a terminal at the beginning; it is not followed.
type size struct {
	terminal int
	sent     bool
}

// Next implements [remotecommand.TerminalSizeQueue].
func (s *size) Next() *remotecommand.TerminalSize {
	width, height, err := term.GetSize(s.terminal)
	if err != nil || s.sent {
		return nil
	}
	s.sent = true
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)}
}

func (m machine) forward(ctx context.Context, ports []string, out, failures io.Writer) error {
	dialer, err := portforward.NewSPDYOverWebsocketDialer(m.url.JoinPath("portforward"), m.config)
	if err != nil {
		return err
	}
	if len(ports) == 0 || !strings.Contains(ports[0], ":") {
		return errors.New(usage)
	}
	forwarder, err := portforward.New(dialer, ports, ctx.Done(), make(chan struct{}), out, failures)
	if err != nil {
		return err
	}
	return forwarder.ForwardPorts()
}
