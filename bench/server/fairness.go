// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

const fairnessGroup = "fairness"

// FairnessScale says how much work a run of group fairness does.
type FairnessScale struct {
	// Rounds is how often each side runs; the sides take turns.
	Rounds int
	// Attackers are the slow requests of one user without a role.
	Attackers int
	// Length of the attack, in which another user works.
	Length time.Duration
}

// FullFairness is the scale of published figures, QuickFairness that of a look in between.
func FullFairness() FairnessScale {
	return FairnessScale{Rounds: 3, Attackers: 200, Length: 30 * time.Second}
}

// QuickFairness is a part of it.
func QuickFairness() FairnessScale {
	return FairnessScale{Rounds: 1, Attackers: 200, Length: 12 * time.Second}
}

// RunFairness measures what one user without a role takes from another one: he sends reviews
// of his own access whose bodies do not come. A nil upstream is left out.
func RunFairness(ctx context.Context, out *report.Report, log io.Writer, steer, upstream Subject, scale FairnessScale) error {
	for round := range out.Turns(ctx, fairnessGroup, scale.Rounds) {
		for _, side := range sides(steer, upstream) {
			fmt.Fprintf(log, "fairness: round %d, %s\n", round+1, side.name)
			add := func(name, unit string, better report.Direction, value float64) {
				out.Add(fairnessGroup, name, unit, better, side.name, value)
			}
			if err := measureFairness(ctx, add, side.subject, scale); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
	}
	out.Note("fairness: %d requests of one user without a role, whose bodies do not come, for %v. A lease is lost after 10 s without a renewal, as client-go's leader election has it. Without kube-controller-manager nothing makes a namespace ready, so that kube-apiserver alone has no figure for it", scale.Attackers, scale.Length)
	return nil
}

func measureFairness(ctx context.Context, add adder, subject Subject, scale FairnessScale) (err error) {
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	admin := instance.NewClient()
	defer admin.Close()
	attacker, err := account(ctx, admin, "mallory")
	if err != nil {
		return err
	}
	editor, err := account(ctx, admin, "editor")
	if err != nil {
		return err
	}
	if err := send(ctx, admin, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", jsonType, []byte(
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"editor"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},`+
			`"subjects":[{"kind":"ServiceAccount","name":"editor","namespace":"default"}]}`)); err != nil {
		return err
	}
	v := &victim{instance: instance, token: editor}
	if err := v.prepare(ctx); err != nil {
		return err
	}
	usual, makes := v.namespace(ctx, "before")
	var attack sync.WaitGroup
	defer attack.Wait()
	ctx, cancel := context.WithTimeout(ctx, scale.Length)
	defer cancel()
	begun := make(chan struct{}, scale.Attackers)
	for range scale.Attackers {
		attack.Go(func() { stall(ctx, instance, attacker, begun) })
	}
	for range scale.Attackers {
		<-begun
	}
	if err := leave(ctx, time.Second); err != nil { // the server has read the headers
		return err
	}
	refused, lost, took := v.work(ctx, makes)
	add("requests of another user refused with 429", "%", report.Lower, refused)
	add("leases lost", "", report.Lower, float64(lost))
	if makes {
		add("a new namespace is ready, without the attack", "ms", report.Lower, milliseconds(usual))
		add("a new namespace is ready", "ms", report.Lower, milliseconds(took))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// account makes a ServiceAccount and returns a token of it.
func account(ctx context.Context, c *Client, name string) (token string, err error) {
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	if err := send(ctx, c, http.MethodPost, accounts, jsonType, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":%q}}`, name)); err != nil {
		return "", err
	}
	answer, err := c.Do(ctx, http.MethodPost, accounts+"/"+name+"/token", jsonType, []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`))
	if err != nil {
		return "", err
	}
	var issued struct {
		Status struct{ Token string }
	}
	err = json.Unmarshal(answer, &issued)
	return issued.Status.Token, err
}

// anonymous is the TLS configuration of an instance without a client's certificate.
func (i *Instance) anonymous() *tls.Config {
	out := i.TLS.Clone()
	out.Certificates, out.GetClientCertificate = nil, nil
	return out
}

// stall sends the beginning of a review, again and again, until ctx ends. It says when it has
// sent the first one, or could not.
func stall(ctx context.Context, instance *Instance, token string, begun chan<- struct{}) {
	say := sync.OnceFunc(func() { begun <- struct{}{} })
	defer say()
	address, err := url.Parse(instance.URL)
	if err != nil {
		return
	}
	secure := instance.anonymous()
	secure.NextProtos = []string{"http/1.1"}
	for ctx.Err() == nil {
		conn, err := (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", address.Host)
		if err != nil {
			say()
			continue
		}
		hold(ctx, conn, fmt.Sprintf("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", address.Host, token), say)
	}
}

// hold sends text and reads until the server closes the connection, or answers, or ctx ends.
func hold(ctx context.Context, conn net.Conn, text string, say func()) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err := io.WriteString(conn, text)
	say()
	if err == nil {
		_, _ = conn.Read(make([]byte, 1)) // whatever comes ends the request
	}
}

// victim is a user who works meanwhile.
type victim struct {
	instance *Instance
	token    string
}

func (v *victim) client() *Client {
	return &Client{base: v.instance.URL, token: v.token, secure: v.instance.anonymous(), accept: jsonType}
}

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

// prepare makes the lease that is renewed.
func (v *victim) prepare(ctx context.Context) error {
	c := v.client()
	defer c.Close()
	return send(ctx, c, http.MethodPost, leasePath, jsonType, []byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"held"},"spec":{"holderIdentity":"one","leaseDurationSeconds":15}}`))
}

// Status sends a request and returns the status of its answer; 0 if there was none.
func (c *Client) Status(ctx context.Context, method, path, kind string, body []byte) int {
	if _, err := c.do(ctx, method, path, kind, body); err != nil {
		c.Close() // its state is unknown
		return 0
	}
	return c.connection.status
}

// work writes, renews a lease and makes a namespace until ctx ends. It returns how many of the
// writes were refused with 429, in percent, how often the lease was lost, and when the
// namespace was ready.
func (v *victim) work(ctx context.Context, makes bool) (refused float64, lost int, took time.Duration) {
	var working sync.WaitGroup
	working.Go(func() { refused = v.write(ctx) })
	working.Go(func() { lost = v.renew(ctx) })
	if makes {
		working.Go(func() { took, _ = v.namespace(ctx, "during") })
	}
	working.Wait()
	return refused, lost, took
}

// write creates ConfigMaps, 20 per second at most.
func (v *victim) write(ctx context.Context) (refused float64) {
	c := v.client()
	defer c.Close()
	sent, too := 0, 0
	for leave(ctx, 50*time.Millisecond) == nil {
		sent++
		if c.Status(ctx, http.MethodPost, "/api/v1/namespaces/default/configmaps", jsonType,
			fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"}}`, sent)) == http.StatusTooManyRequests {
			too++
		}
	}
	return 100 * float64(too) / float64(max(sent, 1))
}

// The times of client-go's leader election.
const (
	renewDeadline = 10 * time.Second
	renewPeriod   = 2 * time.Second
)

// renew renews the lease and counts how often that took too long.
func (v *victim) renew(ctx context.Context) (lost int) {
	c := v.client()
	defer c.Close()
	last := time.Now()
	for ctx.Err() == nil {
		body := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
		if c.Status(ctx, http.MethodPatch, leasePath+"/held", mergeType, body) == http.StatusOK {
			last = time.Now()
		}
		if time.Since(last) > renewDeadline {
			lost++
			last = time.Now()
		}
		_ = leave(ctx, renewPeriod) // the loop ends with ctx
	}
	return lost
}

// namespace makes a namespace and returns when it has the ServiceAccount default; it gives up
// after a while.
func (v *victim) namespace(ctx context.Context, name string) (took time.Duration, ready bool) {
	c := v.client()
	defer c.Close()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, renewDeadline)
	defer cancel()
	made := false
	for ctx.Err() == nil {
		if !made {
			made = c.Status(ctx, http.MethodPost, "/api/v1/namespaces", jsonType, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)) == http.StatusCreated
		}
		if made && c.Status(ctx, http.MethodGet, "/api/v1/namespaces/"+name+"/serviceaccounts/default", "", nil) == http.StatusOK {
			return time.Since(begin), true
		}
		_ = leave(ctx, 5*time.Millisecond) // the loop ends with ctx
	}
	return time.Since(begin), false
}
