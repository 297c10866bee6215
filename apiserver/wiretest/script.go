// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/txtar"
)

// Suffixes of the sections that hold answers.
const (
	// AnswerSuffix marks the recorded answer of kube-apiserver.
	AnswerSuffix = ".answer"
	// OwnSuffix marks the answer of a server that differs on purpose.
	OwnSuffix = ".steer"
)

// Script is one conversation: requests in order, with their recorded answers.
type Script struct {
	// Name is the file name without its extension.
	Name string
	// Comment is the text before the first request.
	Comment string
	// Admission lists the admission plugins that the conversation needs and that
	// kube-apiserver does not enable by default.
	Admission []string
	// Controllers lists the controllers of kube-controller-manager that run during the
	// conversation; all others do not.
	Controllers []string
	// Alone says that the conversation needs a server of its own, because what it
	// configures concerns requests of other conversations.
	Alone bool
	// Webhooks are answered by a server that runs during the conversation.
	Webhooks []*Webhook
	// Backends are the paths of an aggregated API server that runs during the conversation.
	Backends []*Webhook
	Steps    []*Step

	sent sent
	// unordered: warnings have no order.
	unordered bool
}

// Step is one request of a [Script].
type Step struct {
	Name   string
	Method string
	Target string
	Header http.Header
	Body   string

	// Answer is the recorded answer of kube-apiserver; empty before the first
	// recording.
	Answer string
	// Own is the answer of a server that differs on purpose; empty: Answer is expected.
	Own string

	source   string
	captures []capture
	headers  []string
	keep     []path
	where    []filter
	until    *condition
	events   int
	raw      bool
	protobuf bool
	compact  bool
	setup    bool
	settle   bool
	sent     *sent
}

// sent selects what is shown of the requests that webhooks received.
type sent struct {
	nothing bool
	keep    []path
}

func parseSent(text string) *sent {
	s := &sent{nothing: text == "nothing"}
	for _, field := range strings.Fields(text) {
		s.keep = append(s.keep, parsePath(field))
	}
	return s
}

type capture struct {
	name string
	path path
}

type filter struct {
	list         path
	field, value string
}

// Load reads all scripts of a directory, sorted by name.
func Load(dir string) ([]*Script, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no conversations (*.txtar) in %s", dir)
	}
	scripts := make([]*Script, 0, len(files))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		script, err := Parse(strings.TrimSuffix(filepath.Base(file), ".txtar"), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		scripts = append(scripts, script)
	}
	return scripts, nil
}

// Parse reads one script.
func Parse(name string, data []byte) (*Script, error) {
	archive := txtar.Parse(data)
	script := &Script{Name: name, Comment: string(archive.Comment)}
	for line := range strings.Lines(script.Comment) {
		if plugins, ok := strings.CutPrefix(line, "@admission "); ok {
			script.Admission = append(script.Admission, strings.Fields(plugins)...)
		}
		if names, ok := strings.CutPrefix(line, "@controllers "); ok {
			script.Controllers = append(script.Controllers, strings.Fields(names)...)
		}
		switch strings.TrimSpace(line) {
		case "@alone":
			script.Alone = true
		case "@unordered":
			script.unordered = true
		}
		if fields, ok := strings.CutPrefix(line, "@sent "); ok {
			script.sent = *parseSent(strings.TrimSpace(fields))
		}
	}
	byName := map[string]*Step{}
	for _, file := range archive.Files {
		text := string(file.Data)
		if base, ok := strings.CutSuffix(file.Name, AnswerSuffix); ok && byName[base] != nil {
			byName[base].Answer = text
			continue
		}
		if base, ok := strings.CutSuffix(file.Name, OwnSuffix); ok && byName[base] != nil {
			byName[base].Own = text
			continue
		}
		if path, ok := strings.CutSuffix(file.Name, WebhookSuffix); ok {
			hook, err := parseWebhook(path, text)
			if err != nil {
				return nil, fmt.Errorf("webhook %q: %w", path, err)
			}
			script.Webhooks = append(script.Webhooks, hook)
			continue
		}
		if path, ok := strings.CutSuffix(file.Name, BackendSuffix); ok {
			backend, err := parseWebhook(path, text)
			if err != nil {
				return nil, fmt.Errorf("backend %q: %w", path, err)
			}
			script.Backends = append(script.Backends, backend)
			continue
		}
		if byName[file.Name] != nil {
			return nil, fmt.Errorf("request %q is written twice", file.Name)
		}
		step, err := parseStep(file.Name, text)
		if err != nil {
			return nil, fmt.Errorf("request %q: %w", file.Name, err)
		}
		byName[file.Name] = step
		script.Steps = append(script.Steps, step)
	}
	return script, nil
}

// Format writes the script back, with its answers.
func (s *Script) Format() []byte {
	archive := &txtar.Archive{Comment: []byte(s.Comment)}
	add := func(name, text string) {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	for _, hook := range s.Webhooks {
		add(hook.Path[1:]+WebhookSuffix, hook.source)
	}
	for _, backend := range s.Backends {
		add(backend.Path[1:]+BackendSuffix, backend.source)
	}
	for _, step := range s.Steps {
		add(step.Name, step.source)
		if step.Answer != "" {
			add(step.Name+AnswerSuffix, step.Answer)
		}
		if step.Own != "" {
			add(step.Name+OwnSuffix, step.Own)
		}
	}
	return txtar.Format(archive)
}

func parseStep(name, text string) (*Step, error) {
	step := &Step{Name: name, Header: http.Header{}, source: text}
	head, body, _ := strings.Cut(text, "\n\n")
	step.Body = strings.TrimSuffix(body, "\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	method, target, ok := strings.Cut(lines[0], " ")
	if !ok || !strings.HasPrefix(target, "/") {
		return nil, fmt.Errorf("first line %q: write a method and a target that begins with /", lines[0])
	}
	step.Method, step.Target = method, strings.TrimSpace(target)
	for _, line := range lines[1:] {
		if directive, ok := strings.CutPrefix(line, "@"); ok {
			if err := step.parseDirective(directive); err != nil {
				return nil, err
			}
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %q is neither a header nor a directive", line)
		}
		step.Header.Add(strings.TrimSpace(key), strings.TrimSpace(value))
	}
	return step, nil
}

func (s *Step) parseDirective(text string) error {
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "capture":
		name, field, ok := strings.Cut(rest, "=")
		if !ok {
			return fmt.Errorf("@capture %s: write NAME = PATH", rest)
		}
		s.captures = append(s.captures, capture{strings.TrimSpace(name), parsePath(strings.TrimSpace(field))})
	case "header":
		s.headers = append(s.headers, strings.Fields(rest)...)
	case "keep":
		for _, field := range strings.Fields(rest) {
			s.keep = append(s.keep, parsePath(field))
		}
	case "where":
		list, match, _ := strings.Cut(rest, " ")
		field, value, ok := strings.Cut(strings.TrimSpace(match), "=")
		if !ok {
			return fmt.Errorf("@where %s: write LIST FIELD=VALUE", rest)
		}
		s.where = append(s.where, filter{parsePath(list), field, value})
	case "until":
		s.until = parseCondition(rest)
	case "events":
		n, err := strconv.Atoi(rest)
		if err != nil {
			return fmt.Errorf("@events %s: %w", rest, err)
		}
		s.events = n
	case "raw":
		s.raw = true
	case "protobuf":
		s.protobuf = true
	case "compact":
		s.compact = true
	case "setup":
		s.setup = true
	case "settle":
		s.settle = true
	case "sent":
		s.sent = parseSent(rest)
	default:
		return fmt.Errorf("unknown directive @%s", word)
	}
	return nil
}

// condition decides whether a repeated request is done.
type condition struct {
	code  int
	text  string
	path  path
	value string
}

func parseCondition(text string) *condition {
	if code, err := strconv.Atoi(text); err == nil {
		return &condition{code: code}
	}
	if part, ok := strings.CutPrefix(text, "~"); ok {
		return &condition{text: part}
	}
	end := strings.LastIndex(text, "=")
	if end < 0 {
		end = len(text)
	}
	return &condition{path: parsePath(text[:end]), value: strings.TrimPrefix(text[end:], "=")}
}
