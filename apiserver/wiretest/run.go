// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// UserAgent is sent by requests without a User-Agent header; servers derive the field
// manager from it.
const UserAgent = "oracle/1.0 (wiretest)"

// Target is the server under test.
type Target struct {
	// Client sends the requests. Required.
	Client *http.Client
	// Base is the URL before the target of a request, without a final slash.
	Base string
	// Token, when not empty, is sent as bearer token by requests that carry no
	// Authorization header of their own. A request with "Authorization: none"
	// is sent without any.
	Token string
	// Compact compacts the server's history up to now, so that old resource versions
	// are gone. Nil: the server cannot; requests with @compact then fail.
	Compact func(context.Context) error
	// Patience bounds how long a request with @until is repeated.
	// 0 means 30 seconds.
	Patience time.Duration
	// StreamWait bounds how long a watch may be silent before it is closed. 0 means 10
	// seconds.
	StreamWait time.Duration
	// Settle is how long the server needs until a change of a webhook configuration, a
	// policy or a parameter is in force: requests with @settle wait so long. 0: it is in
	// force when its answer is sent.
	Settle time.Duration
	// Pause is how long the server needs until its caches have seen a write, where that
	// decides what webhooks are sent. 0: they have seen it when the answer is sent.
	Pause time.Duration
}

// Answer is the answer to one request of a script.
type Answer struct {
	Step *Step
	// Text is the normalised answer.
	Text string
	// Failed reports that a @setup request did not succeed.
	Failed bool
}

// Run sends the requests of a script in order and returns one answer for each. If a
// request could not be sent, its answer is the error, and the run continues. The error
// of Run is that of a cancelled context.
func (t *Target) Run(ctx context.Context, script *Script) ([]Answer, error) {
	r := &runner{target: t, norm: newNormaliser(script), vars: map[string]string{}, sent: &script.sent}
	if len(script.Webhooks)+len(script.Backends) > 0 {
		hooks, err := startWebhooks(script, r.fill)
		if err != nil {
			return nil, fmt.Errorf("conversation %s: start the webhook server: %w", script.Name, err)
		}
		defer hooks.close()
		r.hooks, r.vars = hooks, hooks.vars()
		r.norm.hide(hooks)
	}
	answers := make([]Answer, 0, len(script.Steps))
	for _, step := range script.Steps {
		answer := r.run(ctx, step)
		if err := ctx.Err(); err != nil {
			return answers, fmt.Errorf("conversation %s, request %s: %w", script.Name, step.Name, err)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// runner is the state of one run.
type runner struct {
	target *Target
	norm   *normaliser
	vars   map[string]string
	// hooks is nil if the conversation has no webhooks.
	hooks *webhookServer
	sent  *sent
}

func (r *runner) run(ctx context.Context, step *Step) Answer {
	if step.compact {
		if r.target.Compact == nil {
			return Answer{Step: step, Text: "(the server cannot be asked to compact)\n"}
		}
		if err := r.target.Compact(ctx); err != nil {
			return Answer{Step: step, Text: fmt.Sprintf("(compaction failed: %v)\n", err)}
		}
	}
	reply, err := r.exchangeUntil(ctx, step)
	if err != nil {
		return Answer{Step: step, Text: fmt.Sprintf("(no answer: %s)\n", r.norm.text(err.Error()))}
	}
	for _, c := range step.captures {
		if found := c.path.find(reply.captured()); len(found) > 0 {
			r.vars[c.name] = fmt.Sprint(found[len(found)-1])
		}
	}
	text := r.answer(step, reply)
	r.rest(ctx, step)
	if step.setup {
		if reply.code < 400 {
			return Answer{Step: step, Text: "(done)\n"}
		}
		return Answer{Step: step, Text: text, Failed: true}
	}
	return Answer{Step: step, Text: text}
}

// answer formats a reply and what webhooks were sent before it.
func (r *runner) answer(step *Step, reply *reply) string {
	show := cmp.Or(step.sent, r.sent)
	calls := r.calls()
	if show.nothing {
		calls = nil
	}
	// What webhooks were sent is older than the answer: its versions come first.
	for _, call := range calls {
		r.norm.learn(call.review)
	}
	text := r.norm.answer(step, reply)
	for _, call := range calls {
		to := "a webhook"
		if call.backend {
			to = "a backend"
		}
		text += fmt.Sprintf("(sent to %s) %s\n", to, r.norm.text(call.line))
		text += r.norm.document(&Step{keep: show.keep}, call.review)
	}
	return text
}

// rest waits as long as the server needs after a request.
func (r *runner) rest(ctx context.Context, step *Step) {
	var wait time.Duration
	switch {
	case step.settle:
		wait = r.target.Settle
	case r.hooks != nil && step.Method != http.MethodGet:
		wait = r.target.Pause
	}
	if wait == 0 {
		return
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
}

func (r *runner) calls() []call {
	if r.hooks == nil {
		return nil
	}
	return r.hooks.take()
}

// exchangeUntil repeats the request until its condition holds or Patience ends; it
// returns the last answer.
func (r *runner) exchangeUntil(ctx context.Context, step *Step) (*reply, error) {
	deadline := time.Now().Add(cmp.Or(r.target.Patience, 30*time.Second))
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		r.calls()
		reply, err := r.exchange(ctx, step)
		if step.until == nil || err == nil && step.until.holds(step, reply) || time.Now().After(deadline) {
			return reply, err
		}
		select {
		case <-ctx.Done():
			return reply, ctx.Err()
		case <-pause.C:
		}
	}
}

func (c *condition) holds(step *Step, reply *reply) bool {
	switch {
	case c.code != 0:
		return reply.code == c.code
	case c.text != "":
		return strings.Contains(reply.selected(step), c.text)
	}
	for _, found := range c.path.find(reply.captured()) {
		if c.value == "" || fmt.Sprint(found) == c.value {
			return true
		}
	}
	return false
}

// selected is the text of an answer; of one of which @where selects a part, that part.
func (r *reply) selected(step *Step) string {
	if r.value == nil || len(step.where) == 0 {
		return r.raw
	}
	value := r.value
	for _, f := range step.where {
		value = f.apply(value)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return r.raw
	}
	return string(text)
}

// answerWait is how long a server may take to begin its answer, and to send all of one that
// is not a stream: longer than servers let requests run.
const answerWait = 90 * time.Second

func (r *runner) exchange(ctx context.Context, step *Step) (*reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := r.request(ctx, step)
	if err != nil {
		return nil, err
	}
	silence := time.AfterFunc(answerWait, cancel)
	defer silence.Stop()

	response, err := r.client(request).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if isWatch(request.URL) && response.StatusCode == http.StatusOK {
		wait := cmp.Or(r.target.StreamWait, 10*time.Second)
		silence.Reset(wait)
		return readStream(response, step.events, func() { silence.Reset(wait) })
	}
	return readReply(response)
}

// client returns the client for a request: one with a Connection header, as those for another
// protocol have, is of HTTP/1.1, and has a connection of its own.
func (r *runner) client(request *http.Request) *http.Client {
	shared, ok := r.target.Client.Transport.(*http.Transport)
	if request.Header.Get("Connection") == "" || !ok {
		return r.target.Client
	}
	own := shared.Clone()
	own.ForceAttemptHTTP2, own.TLSNextProto = false, nil
	if own.TLSClientConfig != nil {
		own.TLSClientConfig.NextProtos = nil
	}
	own.Protocols = new(http.Protocols)
	own.Protocols.SetHTTP1(true)
	return &http.Client{Transport: own, CheckRedirect: r.target.Client.CheckRedirect}
}

// isWatch reports whether a successful answer is a stream of events.
func isWatch(u *url.URL) bool {
	watch := u.Query().Get("watch")
	on, err := strconv.ParseBool(watch)
	return watch != "" && (err != nil || on) || strings.Contains(u.Path, "/watch/")
}

func (r *runner) request(ctx context.Context, step *Step) (*http.Request, error) {
	target := strings.ReplaceAll(r.expand(step.Target), " ", "%20")
	body, kind, err := r.body(step)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, step.Method, r.target.Base+target, reader)
	if err != nil {
		return nil, err
	}
	for key, values := range step.Header {
		for _, value := range values {
			request.Header.Add(key, r.expand(value))
		}
	}
	if kind != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", kind)
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", UserAgent)
	}
	if request.Header.Get("Accept") == "" {
		request.Header.Set("Accept", "application/json")
	}
	switch request.Header.Get("Authorization") {
	case "":
		if r.target.Token != "" {
			request.Header.Set("Authorization", "Bearer "+r.target.Token)
		}
	case "none":
		request.Header.Del("Authorization")
	}
	return request, nil
}

// body returns the bytes to send and their default media type.
func (r *runner) body(step *Step) ([]byte, string, error) {
	if step.Body == "" {
		return nil, "", nil
	}
	text := r.expand(step.Body)
	kind := step.Header.Get("Content-Type")
	switch {
	case step.raw:
		return []byte(text), "application/json", nil
	case step.protobuf:
		data, err := encodeProtobuf([]byte(text))
		return data, protobufType, err
	case strings.HasSuffix(strings.Split(kind, ";")[0], "yaml"):
		return []byte(text), kind, nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	return data, "application/json", err
}

var (
	variable = regexp.MustCompile(`\$\{([a-zA-Z0-9_]+)\}`)
	padding  = regexp.MustCompile(`\$\{(\d+) times \|(.*?)\|\}`)
)

// expand replaces captured values, and "${N times |TEXT|}" with N copies of TEXT. A
// variable without a value stays unchanged.
func (r *runner) expand(text string) string { return r.fill(pad(text)) }

// fill replaces captured values.
func (r *runner) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		if value, ok := r.vars[match[2:len(match)-1]]; ok {
			return value
		}
		return match
	})
}

// pad replaces "${N times |TEXT|}".
func pad(text string) string {
	return padding.ReplaceAllStringFunc(text, func(match string) string {
		parts := padding.FindStringSubmatch(match)
		n, err := strconv.Atoi(parts[1])
		if err != nil {
			return match
		}
		return strings.Repeat(parts[2], n)
	})
}

// padded is a decoded document whose strings are padded: decoding YAML of some megabytes
// takes longer than webhooks may.
func padded(value any) any {
	switch value := value.(type) {
	case string:
		return pad(value)
	case []any:
		for i := range value {
			value[i] = padded(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = padded(value[key])
		}
	}
	return value
}
