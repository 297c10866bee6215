// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

const webhookGroup = "webhooks"

// WebhookScale says how much work a run of group webhooks does.
type WebhookScale struct {
	// Rounds is how often each side runs; the sides take turns.
	Rounds int
	// Writes is how many dry runs are measured with each configuration.
	Writes int
	// Objects is how many objects a list converts.
	Objects int
}

// FullWebhooks is the scale of published figures, QuickWebhooks that of a look in between.
func FullWebhooks() WebhookScale { return WebhookScale{Rounds: 3, Writes: 800, Objects: 10_000} }

// QuickWebhooks is a tenth of it.
func QuickWebhooks() WebhookScale { return WebhookScale{Rounds: 1, Writes: 80, Objects: 1000} }

// settle is how long kube-apiserver has to notice a configuration or a policy.
const settle = 4 * time.Second

const (
	registration     = "/apis/admissionregistration.k8s.io/v1/"
	validatingHooks  = registration + "validatingwebhookconfigurations"
	mutatingHooks    = registration + "mutatingwebhookconfigurations"
	policies         = registration + "validatingadmissionpolicies"
	policyBindings   = registration + "validatingadmissionpolicybindings"
	podsOfDefault    = "/api/v1/namespaces/default/pods"
	itemRule         = `{"operations":["CREATE"],"apiGroups":["bench.example.com"],"apiVersions":["*"],"resources":["items"]}`
	configurationMax = 1000
)

// admission is one way in which admission is configured.
type admission struct {
	// name as the table has it; what it adds is measured against its absence.
	name string
	// item reports that an item of 2 KB is created, else a Pod of 4 KB.
	item bool
	// latency reports that the time of one client counts, too.
	latency bool
	// objects are created for it, by collection.
	objects func(h *hook) map[string][][]byte
	// share of the writes of the scale is enough, because kube-apiserver needs tens of
	// milliseconds for each. 0: all.
	share int
	// inForce waits until the objects are in force; nil: a while passes.
	inForce func(ctx context.Context, c *Client) error
	goal    report.Goal
}

// webhook returns a configuration with one webhook. more are members of it, as JSON.
func webhook(kind, name, url, bundle, rule, more string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":%q,"metadata":{"name":%q},"webhooks":[{"name":"%s.example.com",`+
		`"clientConfig":{"url":%q,"caBundle":%q},"rules":[%s],"sideEffects":"None","admissionReviewVersions":["v1"]%s}]}`,
		kind, name, name, url, bundle, rule, more)
}

// admissions are what is measured. Each begins and ends without the others.
func admissions() []admission {
	const validating, mutating = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
	return []admission{
		{
			name: "a validating webhook that does nothing", item: true, latency: true, goal: report.Goal{Times: 2},
			objects: func(h *hook) map[string][][]byte {
				return map[string][][]byte{validatingHooks: {webhook(validating, "noop", h.url+allowPath, h.bundle, itemRule, "")}}
			},
		},
		{
			name: "a mutating webhook that does nothing", item: true, latency: true, goal: report.Goal{Times: 2},
			objects: func(h *hook) map[string][][]byte {
				return map[string][][]byte{mutatingHooks: {webhook(mutating, "noop", h.url+allowPath, h.bundle, itemRule, "")}}
			},
		},
		{
			name: "1,000 configurations for other resources", item: true,
			objects: func(h *hook) map[string][][]byte {
				out := map[string][][]byte{}
				for i := range configurationMax {
					rule := fmt.Sprintf(`{"operations":["*"],"apiGroups":["g%d.example.com"],"apiVersions":["v1"],"resources":["*"]}`, i)
					collection, kind := validatingHooks, validating
					if i%2 == 0 {
						collection, kind = mutatingHooks, mutating
					}
					out[collection] = append(out[collection], webhook(kind, name("other", i), h.url+allowPath, h.bundle, rule, ""))
				}
				return out
			},
		},
		{
			name: "100 webhooks whose selectors do not match", item: true, goal: report.Goal{AtMost: 60},
			objects: func(h *hook) map[string][][]byte {
				out := map[string][][]byte{}
				for i := range configurationMax / 10 {
					collection, kind, selector := validatingHooks, validating, "objectSelector"
					if i%2 == 0 {
						collection, kind = mutatingHooks, mutating
					}
					if i%4 < 2 {
						selector = "namespaceSelector"
					}
					more := fmt.Sprintf(`,%q:{"matchLabels":{"for":"%d"}}`, selector, i)
					out[collection] = append(out[collection], webhook(kind, name("selects", i), h.url+allowPath, h.bundle, itemRule, more))
				}
				return out
			},
		},
		{name: "50 policies that match", latency: true, share: 4, goal: report.Goal{Times: 3}, objects: matchingPolicies, inForce: allWarn},
	}
}

// policyCount is how many policies match.
const policyCount = 50

// matchingPolicies are policies about Pods, each with a variable, two validations and a
// message expression, and their bindings. They warn: the warnings of a Pod that violates
// them say how many are in force. kube-apiserver sends at most 4 KB of warnings.
func matchingPolicies(*hook) map[string][][]byte {
	out := map[string][][]byte{}
	for i := range policyCount {
		short := fmt.Sprintf("p%d", i)
		out[policies] = append(out[policies], fmt.Appendf(nil, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%[1]q},"spec":{`+
			`"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]},`+
			`"variables":[{"name":"containers","expression":"object.spec.containers"}],"validations":[`+
			`{"expression":"variables.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits)","message":"no limit"},`+
			`{"expression":"object.metadata.labels.exists(l, l == 'app.kubernetes.io/name')","messageExpression":"'no ' + object.metadata.name"}]}}`, short))
		out[policyBindings] = append(out[policyBindings], fmt.Appendf(nil, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":%[1]q},`+
			`"spec":{"policyName":%[1]q,"validationActions":["Warn"]}}`, short))
	}
	return out
}

// RunWebhooks measures what admission webhooks and policies add to a write, and lists through
// a conversion webhook, on both sides in turn. A nil upstream is left out.
func RunWebhooks(ctx context.Context, out *report.Report, log io.Writer, steer, upstream Subject, scale WebhookScale) error {
	for round := range out.Turns(ctx, webhookGroup, scale.Rounds) {
		for _, side := range sides(steer, upstream) {
			fmt.Fprintf(log, "webhooks: round %d, %s\n", round+1, side.name)
			add := func(name, unit string, better report.Direction, value float64) {
				out.Add(webhookGroup, name, unit, better, side.name, value)
			}
			if err := measureWebhooks(ctx, add, log, side.subject, scale); err != nil {
				return fmt.Errorf("%s: %w", side.name, err)
			}
		}
	}
	for _, a := range admissions() {
		out.Expect(webhookGroup, a.name+": server CPU", a.goal)
		if a.latency && a.item {
			out.Expect(webhookGroup, a.name+": p50", a.goal)
		}
	}
	out.Expect(webhookGroup, firstConversion(scale.Objects)+": wall", report.Goal{Times: 2})
	out.Expect(webhookGroup, laterConversion(scale.Objects)+": wall", report.Goal{Times: 2})
	out.Note("webhooks: the figures of webhooks, configurations and policies are what they add to one dry run, against runs without them before and after it; the webhooks are in the process of the load generator")
	return nil
}

func measureWebhooks(ctx context.Context, add adder, log io.Writer, subject Subject, scale WebhookScale) (err error) {
	begun := time.Now()
	took := func(name string) {
		fmt.Fprintf(log, "webhooks: %s: %s\n", name, time.Since(begun).Round(time.Second))
		begun = time.Now()
	}
	instance, err := subject.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Stop()) }()
	hook, err := newHook()
	if err != nil {
		return err
	}
	defer hook.close()
	clients, done := instance.NewClients(16)
	defer done()
	if _, err := prepare(ctx, clients[0]); err != nil {
		return err
	}
	if err := leave(ctx, quiet); err != nil {
		return err
	}
	if err := measureConversion(ctx, add, instance, clients, hook, scale.Objects); err != nil {
		return err
	}
	took("conversion")
	var before *taken // of the object of the next way
	item := false
	for _, a := range admissions() {
		writes := scale.Writes / max(a.share, 1)
		if before == nil || item != a.item {
			before, item = new(taken), a.item
			if *before, err = dryRuns(ctx, instance, clients, writes, a.item); err != nil {
				return err
			}
		}
		if err := a.measure(ctx, add, instance, clients, hook, writes, before); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		took(a.name)
	}
	return nil
}

// wait waits until what was configured is in force.
func (a admission) wait(ctx context.Context, c *Client) error {
	if a.inForce == nil {
		return leave(ctx, settle)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exchangeTimeout, errors.New("it is not in force after "+exchangeTimeout.String()))
	defer cancel()
	return a.inForce(ctx, c)
}

// allWarn waits until all policies warn of a Pod that violates them.
func allWarn(ctx context.Context, c *Client) error {
	violating := bytes.Replace(pod("x", 1, ""), []byte(`"app.kubernetes.io/name"`), []byte(`"app"`), 1)
	for {
		warnings, err := c.Warnings(ctx, http.MethodPost, podsOfDefault+"?dryRun=All", jsonType, violating)
		if err != nil || warnings >= policyCount {
			return err
		}
		if err := leave(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// taken is what one dry run takes: the median of one client in milliseconds, and server CPU of
// one of 16 clients in microseconds.
type taken struct{ median, cpu float64 }

// dryRuns creates the same object again and again, and stores nothing: neither disk nor size of
// the store has a part in the figures.
func dryRuns(ctx context.Context, instance *Instance, clients []*Client, writes int, item bool) (taken, error) {
	at, body := collection, object("dry", 1)
	if !item {
		at, body = podsOfDefault, pod("dry", 1, "")
	}
	work := func(ctx context.Context, c *Client, _ int) error {
		return send(ctx, c, http.MethodPost, at+"?dryRun=All", jsonType, body)
	}
	if _, err := drive(ctx, clients, 64, work); err != nil { // connections and programs are made
		return taken{}, err
	}
	one, err := drive(ctx, clients[:1], writes/2, work)
	if err != nil {
		return taken{}, err
	}
	before := use(instance.PIDs)
	if _, err := drive(ctx, clients, writes, work); err != nil {
		return taken{}, err
	}
	cpu := use(instance.PIDs).cpu - before.cpu
	return taken{one.percentile(0.5), float64(cpu.Nanoseconds()) / 1000 / float64(writes)}, nil
}

// measure compares runs with admission configured this way and without: before, and one
// afterwards, which it leaves in before.
func (a admission) measure(ctx context.Context, add adder, instance *Instance, clients []*Client, h *hook, writes int, before *taken) error {
	objects, calls := a.objects(h), h.calls.Load()
	for collection, bodies := range objects {
		if _, err := drive(ctx, clients, len(bodies), func(ctx context.Context, c *Client, i int) error {
			return send(ctx, c, http.MethodPost, collection, jsonType, bodies[i])
		}); err != nil {
			return err
		}
	}
	if err := a.wait(ctx, clients[0]); err != nil {
		return err
	}
	with, err := dryRuns(ctx, instance, clients, writes, a.item)
	if err != nil {
		return err
	}
	if called, wanted := h.calls.Load() > calls, strings.HasSuffix(a.name, "webhook that does nothing"); called != wanted {
		return fmt.Errorf("the webhook was called: %v, want %v", called, wanted)
	}
	for collection := range objects {
		if err := send(ctx, clients[0], http.MethodDelete, collection, "", nil); err != nil {
			return err
		}
	}
	if err := leave(ctx, settle); err != nil {
		return err
	}
	after, err := dryRuns(ctx, instance, clients, writes, a.item)
	if err != nil {
		return err
	}
	if a.latency {
		add(a.name+": p50", "ms", report.Lower, with.median-(before.median+after.median)/2)
	}
	without := (before.cpu + after.cpu) / 2
	add(a.name+": server CPU", "µs", report.Lower, with.cpu-without)
	add(a.name+": server CPU of the write without", "µs", report.Lower, without)
	*before = after
	return nil
}
