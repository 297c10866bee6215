// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// The bare server is the least that a durable server with watches can be in Go: over
// TLS it takes records of a fixed length, appends each to a file, flushes it, gives it
// back, and sends it to all watches, which gather as those of Steer do. It has no HTTP,
// no JSON, no objects and no versions. What a control plane costs beyond it is what
// can be had by making that cheaper; what it costs itself is the machine: being woken,
// the network, encryption and the disk.

// The first byte of a connection says what it is for.
const (
	bareWrites  = 'c'
	bareWatches = 'w'
)

// bareLog is what was written since the start.
type bareLog struct {
	file     *os.File
	watchers atomic.Int64

	mu    sync.Mutex
	grown sync.Cond
	bytes []byte
}

// ServeBare runs the bare server until ctx ends. It prints its address and the PEM of
// its certificate, followed by a line that is empty.
func ServeBare(ctx context.Context, out io.Writer, record int) (err error) {
	certificate, public, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true,
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })() // ends Accept
	log := &bareLog{}
	log.grown.L = &log.mu
	if log.file, err = os.CreateTemp("", "steer-bench-bare-"); err != nil { // where the servers keep their data
		return err
	}
	defer func() { err = errors.Join(err, log.file.Close(), os.Remove(log.file.Name())) }()
	if _, err := fmt.Fprintf(out, "%s\n%s\n", listener.Addr(), public); err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			log.serve(conn, record) // how it ends is the client's matter
			_ = conn.Close()
		}()
	}
}

func (l *bareLog) serve(conn net.Conn, record int) {
	in := make([]byte, record)
	if _, err := io.ReadFull(conn, in[:1]); err != nil {
		return
	}
	if in[0] == bareWatches {
		l.watch(conn)
		return
	}
	for {
		if _, err := io.ReadFull(conn, in); err != nil {
			return
		}
		if err := l.append(in); err != nil {
			return
		}
		if _, err := conn.Write(in); err != nil {
			return
		}
	}
}

func (l *bareLog) append(record []byte) error {
	if _, err := l.file.Write(record); err != nil {
		return err
	}
	if err := flush(l.file); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes = append(l.bytes, record...)
	l.grown.Broadcast()
	return nil
}

// pause is how long watches gather events: as long as those of Steer while so many are sent.
func (l *bareLog) pause() time.Duration {
	const calm, eventsPerPause, longest = 2500, 500, 50
	perSecond := l.watchers.Load() * pacePerSecond
	if perSecond < calm {
		return 0
	}
	return time.Duration(min(perSecond/eventsPerPause, longest)) * time.Millisecond
}

func (l *bareLog) watch(conn net.Conn) {
	l.watchers.Add(1)
	defer l.watchers.Add(-1)
	for at := 0; ; {
		l.mu.Lock()
		for len(l.bytes) == at {
			l.grown.Wait()
		}
		news := l.bytes[at:]
		at = len(l.bytes)
		l.mu.Unlock()
		if _, err := conn.Write(news); err != nil {
			return
		}
		if pause := l.pause(); pause > 0 { // all watches wake at the same moments
			time.Sleep(time.Until(time.Now().Truncate(pause).Add(pause)))
		}
	}
}

// selfSigned makes a certificate for the loopback address.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bare"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, public, nil
}

// bareCrowd has the bare server do what [watchCrowd] has a control plane do, with records
// that are as long as its events, and returns the CPU time.
func bareCrowd(ctx context.Context, binary string, record, watchers, writes, perSecond int) (cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(writes/perSecond+30)*time.Second)
	defer cancel()
	command := exec.CommandContext(ctx, binary, fmt.Sprint(record))
	command.Stderr = os.Stderr
	printed, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stopProcess(command)) }()
	dial, err := bareDialer(ctx, printed)
	if err != nil {
		return 0, err
	}
	var crowd sync.WaitGroup
	failed := make(chan error, watchers)
	for range watchers {
		conn, err := dial(bareWatches)
		if err != nil {
			return 0, err
		}
		crowd.Go(func() {
			if _, err := io.CopyN(io.Discard, conn, int64(record*writes)); err != nil {
				failed <- err
			}
			_ = conn.Close() // all that was wanted is there
		})
	}
	var connections [paceConnections]net.Conn
	for at := range connections {
		if connections[at], err = dial(bareWrites); err != nil {
			return 0, err
		}
	}
	pids := []int{command.Process.Pid}
	before := use(pids)
	_, err = pace(ctx, writes, perSecond, func(at, _ int) error {
		body := make([]byte, record)
		if _, err := connections[at].Write(body); err != nil {
			return err
		}
		_, err := io.ReadFull(connections[at], body)
		return err
	})
	crowd.Wait()
	for _, conn := range connections {
		_ = conn.Close() // nothing is under way
	}
	close(failed)
	return use(pids).cpu - before.cpu, errors.Join(err, <-failed)
}

// bareDialer reads what the bare server prints and returns what connects to it.
func bareDialer(ctx context.Context, printed io.Reader) (func(kind byte) (net.Conn, error), error) {
	var address string
	var public []byte
	for lines := bufio.NewScanner(printed); lines.Scan() && lines.Text() != ""; {
		if address == "" {
			address = lines.Text()
			continue
		}
		public = append(append(public, lines.Bytes()...), '\n')
	}
	secure, err := trust(public)
	if err != nil {
		return nil, fmt.Errorf("the bare server is not up: %w", err)
	}
	secure.DynamicRecordSizingDisabled = true
	return func(kind byte) (net.Conn, error) {
		conn, err := (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		_, err = conn.Write([]byte{kind})
		return conn, err
	}, nil
}
