// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// shownHeaders are part of every answer that carries them.
const shownHeaders = "Content-Type Location Retry-After Warning"

var (
	uidPattern      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	agePattern      = regexp.MustCompile(`^(\d+(ms|s|m|h|d|y))+$`)
	hostPort        = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	revisionPattern = regexp.MustCompile(`revision=\d+:`)
	tokenVolume     = regexp.MustCompile(`kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	tooOld          = regexp.MustCompile(`too old resource version: \d+ \(\d+\)`)
	tooLarge        = regexp.MustCompile(`Too large resource version: (\d+), current: \d+`)
	contentHash     = regexp.MustCompile(`hash=[0-9A-F]{64,}`)
	streamID        = regexp.MustCompile(`stream ID \d+`)
	dumpedFields    = regexp.MustCompile(`(\\?"managedFields\\?":\[).*?(\],\\?"name)`)
	dumpedVersion   = regexp.MustCompile(`(\\?"resourceVersion\\?":\\?")\d+`)
	metaVersion     = regexp.MustCompile(`ResourceVersion in object meta: \d+`)
	recordVersion   = regexp.MustCompile(`in (the precondition|record) \(\d+\)`)
)

// normaliser converts the answers of one run to text that does not depend on the
// server's clock, randomness or earlier requests.
type normaliser struct {
	// source is the text of the script: values that it contains are not replaced.
	source string
	uids   map[string]string
	// named counts the uids seen under one name.
	named     map[string]int
	generated map[string]string
	// versions are the resource versions of an object by uid, in the order in which
	// they occurred.
	versions map[string][]string
	// hidden are values of this run, replaced by the names of their variables; port is
	// the port of the webhook server.
	hidden *strings.Replacer
	port   string
	// expired is that of the server with the expired certificate.
	expired string
	// unordered: warnings are sorted.
	unordered bool
}

// hide replaces the address and the certificates of the webhook server.
func (n *normaliser) hide(s *webhookServer) {
	n.port, n.expired = s.port, portOf(s.expired)
	n.hidden = strings.NewReplacer(s.authority, "<ca>", s.stranger, "<other ca>", "svc:"+s.port, "svc:<port>", "localhost:"+s.port, "<localhost>")
}

func newNormaliser(script *Script) *normaliser {
	var source strings.Builder
	for _, step := range script.Steps {
		source.WriteString(step.source)
	}
	return &normaliser{
		source:    source.String(),
		unordered: script.unordered,
		uids:      map[string]string{},
		named:     map[string]int{},
		generated: map[string]string{},
		versions:  map[string][]string{},
	}
}

func (n *normaliser) answer(step *Step, r *reply) string {
	if step.setup && r.code < 400 { // its text is of no interest
		for _, event := range r.events {
			n.learn(event)
		}
		n.learn(r.value)
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%d %s\n", r.code, http.StatusText(r.code))
	for _, name := range append(strings.Fields(shownHeaders), step.headers...) {
		values := r.header.Values(name)
		if name == "Warning" && n.unordered {
			values = slices.Sorted(slices.Values(values))
		}
		for _, value := range values {
			fmt.Fprintf(&out, "%s: %s\n", name, n.headerValue(name, value))
		}
	}
	out.WriteString("\n")
	switch {
	case r.stream:
		for _, event := range r.events {
			out.WriteString(n.document(step, event))
			out.WriteString("---\n")
		}
		if r.ended {
			out.WriteString("(closed by the server)\n")
		} else if step.events == 0 || len(r.events) < step.events {
			out.WriteString("(still open)\n")
		}
	case r.value != nil:
		out.WriteString(n.document(step, r.value))
	case r.raw != "":
		out.WriteString(strings.TrimRight(n.text(r.raw), "\n") + "\n")
	}
	return out.String()
}

func (n *normaliser) headerValue(name, value string) string {
	switch http.CanonicalHeaderKey(name) {
	case "Etag", "Audit-Id", "Date", "Last-Modified":
		return "<" + strings.ToLower(name) + ">"
	}
	return n.text(value)
}

func (n *normaliser) document(step *Step, value any) string {
	n.learn(value)
	keep := step.keep
	if len(step.where) > 0 { // by fields that may not be kept
		keep = nil
	}
	value = n.walk(value, "", keep)
	for _, f := range step.where {
		value = f.apply(value)
	}
	if step.keep != nil {
		value = keepOnly(value, step.keep)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprintf("(cannot be written as YAML: %v)\n", err)
	}
	return string(text)
}

// learn records the identities and versions of all objects in value, in a fixed order.
func (n *normaliser) learn(value any) {
	switch typed := value.(type) {
	case []any:
		for _, element := range typed {
			n.learn(element)
		}
	case map[string]any:
		n.learnMeta(typed)
		for _, key := range slices.Sorted(maps.Keys(typed)) {
			n.learn(typed[key])
		}
	}
}

func (n *normaliser) learnMeta(meta map[string]any) {
	name, _ := meta["name"].(string)
	prefix, _ := meta["generateName"].(string)
	if prefix != "" && len(name) == len(prefix)+5 && strings.HasPrefix(name, prefix) && n.generated[name] == "" {
		n.generated[name] = fmt.Sprintf("%s<generated %d>", prefix, len(n.generated)+1)
	}
	uid, _ := meta["uid"].(string)
	_, born := meta["creationTimestamp"]
	if uid == "" || !born || strings.Contains(n.source, uid) {
		return
	}
	if n.uids[uid] == "" {
		shown := cmp.Or(n.generated[name], name)
		n.named[shown]++
		token := "<uid " + shown + ">"
		if again := n.named[shown]; again > 1 {
			token = fmt.Sprintf("<uid %s %d>", shown, again)
		}
		n.uids[uid] = token
	}
	if version, _ := meta["resourceVersion"].(string); version != "" && !slices.Contains(n.versions[uid], version) {
		n.versions[uid] = append(n.versions[uid], version)
	}
}

// walk returns a copy of value in which all that varies between runs is replaced. Fields that
// are not kept stay as they are: a document can have megabytes. A nil keep keeps all.
func (n *normaliser) walk(value any, key string, keep []path) any {
	switch typed := value.(type) {
	case string:
		if key == "cells" && agePattern.MatchString(typed) {
			return "<age>"
		}
		return n.text(typed)
	case []any:
		if key == "managedFields" {
			return n.managedFields(typed)
		}
		changed := make([]any, len(typed))
		for i, element := range typed {
			changed[i] = n.walk(element, key, keep)
		}
		return changed
	case map[string]any:
		changed := make(map[string]any, len(typed))
		for name, child := range typed {
			below, kept := under(keep, n.text(name))
			switch {
			case !kept && !comparesSiblings(name):
				changed[n.text(name)] = child
			case name == "resourceVersion":
				changed[name] = n.version(typed, child)
			case name == "continue" && child != "":
				changed[name] = "<continue>"
			default:
				changed[n.text(name)] = n.walk(child, name, below)
			}
		}
		n.checkListVersion(typed, changed)
		sortCauses(changed)
		sortResources(changed)
		return changed
	case float64:
		switch text := strconv.FormatFloat(typed, 'f', -1, 64); {
		case n.port != "" && text == n.port:
			return "<port>"
		case n.expired != "" && text == n.expired:
			return "<expired port>"
		}
	}
	return value
}

// comparesSiblings reports whether a field is read when others of its object are normalised.
func comparesSiblings(name string) bool {
	return slices.Contains([]string{"metadata", "message", "details", "resources", "kind"}, name)
}

// version returns the placeholder of a resource version.
func (n *normaliser) version(meta map[string]any, value any) any {
	version, ok := value.(string)
	if !ok || version == "" || version == "0" {
		return value
	}
	uid, _ := meta["uid"].(string)
	seen := n.versions[uid]
	at := slices.Index(seen, version)
	if uid == "" || at < 0 {
		return "<rv>"
	}
	token := fmt.Sprintf("<rv %d>", at+1)
	if at > 0 && number(seen[at]) < number(seen[at-1]) {
		token += " (went backwards)"
	}
	return token
}

// checkListVersion marks a list whose version is older than one of its items.
func (n *normaliser) checkListVersion(list, changed map[string]any) {
	items, ok := list["items"].([]any)
	if !ok {
		return
	}
	meta, ok := list["metadata"].(map[string]any)
	if !ok {
		return
	}
	version, _ := meta["resourceVersion"].(string)
	for _, found := range parsePath("metadata.resourceVersion").find(items) {
		if item, _ := found.(string); version != "" && number(item) > number(version) {
			changed["metadata"].(map[string]any)["resourceVersion"] = "<rv> (older than an item)"
		}
	}
}

func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// sortResources sorts the resources of one version in discovery, which servers list in
// the random order of their definition.
func sortResources(list map[string]any) {
	resources, ok := list["resources"].([]any)
	if !ok || list["kind"] != "APIResourceList" {
		return
	}
	name := func(resource any) string {
		object, _ := resource.(map[string]any)
		return fmt.Sprint(object["name"])
	}
	slices.SortStableFunc(resources, func(a, b any) int { return strings.Compare(name(a), name(b)) })
}

// sortCauses sorts the causes of a Status, and the same list in its message, because
// schema validation visits fields in random order.
func sortCauses(status map[string]any) {
	message, _ := status["message"].(string)
	details, _ := status["details"].(map[string]any)
	causes, _ := details["causes"].([]any)
	if len(causes) < 2 {
		return
	}
	line := func(cause any) string {
		object, _ := cause.(map[string]any)
		return fmt.Sprintf("%v: %v", object["field"], object["message"])
	}
	join := func() string {
		lines := make([]string, len(causes))
		for i, cause := range causes {
			lines[i] = line(cause)
		}
		return "[" + strings.Join(lines, ", ") + "]"
	}
	before := join()
	slices.SortFunc(causes, func(a, b any) int { return strings.Compare(line(a), line(b)) })
	status["message"] = strings.Replace(message, before, join(), 1)
}

// managedFields formats each entry as one line, in an order that does not depend on the
// clock.
func (n *normaliser) managedFields(entries []any) any {
	lines := make([]string, 0, len(entries))
	for _, entry := range entries {
		object, ok := entry.(map[string]any)
		if !ok {
			return entries
		}
		fields, err := json.Marshal(object["fieldsV1"])
		if err != nil {
			return entries
		}
		line := fmt.Sprintf("%v %v %v", object["manager"], object["operation"], object["apiVersion"])
		if sub, ok := object["subresource"]; ok {
			line += fmt.Sprintf(" /%v", sub)
		}
		if _, ok := object["time"]; !ok {
			line += " (no time)"
		}
		if kind := object["fieldsType"]; kind != "FieldsV1" {
			line += fmt.Sprintf(" (fieldsType %v)", kind)
		}
		lines = append(lines, n.text(line+" "+strings.ReplaceAll(strings.ReplaceAll(string(fields), `\"`, `'`), `"`, "")))
	}
	slices.Sort(lines)
	return lines
}

// text replaces the parts of a string that vary between runs.
func (n *normaliser) text(s string) string {
	if n.hidden != nil {
		s = n.hidden.Replace(s)
	}
	s = tokenPattern.ReplaceAllStringFunc(s, token)
	s = uidPattern.ReplaceAllStringFunc(s, func(uid string) string {
		if strings.Contains(n.source, uid) {
			return uid
		}
		return cmp.Or(n.uids[uid], "<uid>")
	})
	for name, token := range n.generated {
		s = strings.ReplaceAll(s, name, token)
	}
	s = timePattern.ReplaceAllStringFunc(s, func(stamp string) string {
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || time.Since(at).Abs() > 48*time.Hour {
			return stamp
		}
		if strings.Contains(stamp, ".") {
			return "<microtime>"
		}
		return "<time>"
	})
	s = tokenVolume.ReplaceAllString(s, "kube-api-access-<suffix>")
	s = hostPort.ReplaceAllString(s, "<host>")
	s = revisionPattern.ReplaceAllString(s, "revision=<rv>:")
	s = tooOld.ReplaceAllString(s, "too old resource version: <rv> (<rv>)")
	s = tooLarge.ReplaceAllString(s, "Too large resource version: $1, current: <rv>")
	s = contentHash.ReplaceAllString(s, "hash=<hash>")
	s = streamID.ReplaceAllString(s, "stream ID <id>")
	s = dumpedFields.ReplaceAllString(s, "$1<managed fields>$2")
	s = dumpedVersion.ReplaceAllString(s, "$1<rv>")
	s = metaVersion.ReplaceAllString(s, "ResourceVersion in object meta: <rv>")
	s = recordVersion.ReplaceAllString(s, "in $1 (<rv>)")
	return s
}
