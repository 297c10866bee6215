// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// WebhookSuffix marks a section that describes a webhook. The name before it is the path
// at which the conversation's webhook server answers, without its slash.
const WebhookSuffix = ".webhook"

// Webhook describes the answers of one path of the webhook server.
type Webhook struct {
	// Path begins with a slash.
	Path string

	source string
	body   string
	code   int
	header http.Header
	raw    bool
	hangUp bool
	wait   time.Duration
	// concurrent calls have no order.
	concurrent bool
	// upgrade switches to the protocol that the request asks for.
	upgrade    bool
	renames    []rename
	overwrites []overwrite
	lost       int
}

// rename says that a field of one version is another field of the other version.
type rename struct {
	versions [2]string
	fields   [2]string
}

// overwrite is a field that a conversion sets in each object.
type overwrite struct {
	field string
	value any
}

func parseWebhook(name, text string) (*Webhook, error) {
	w := &Webhook{Path: "/" + name, source: text, code: http.StatusOK, header: http.Header{}}
	head, body := "", text
	if strings.HasPrefix(text, "@") {
		head, body, _ = strings.Cut(text, "\n\n")
	}
	w.body = strings.TrimSuffix(body, "\n")
	for line := range strings.Lines(head) {
		if err := w.parseDirective(strings.TrimSpace(strings.TrimPrefix(line, "@"))); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *Webhook) parseDirective(text string) (err error) {
	word, rest, _ := strings.Cut(text, " ")
	fields := strings.Fields(rest)
	switch word {
	case "status":
		w.code, err = strconv.Atoi(rest)
	case "header":
		key, value, _ := strings.Cut(rest, ":")
		w.header.Add(strings.TrimSpace(key), strings.TrimSpace(value))
	case "raw":
		w.raw = true
	case "hangup":
		w.hangUp = true
	case "wait":
		w.wait, err = time.ParseDuration(rest)
	case "concurrent":
		w.concurrent = true
	case "upgrade":
		w.upgrade = true
	case "rename":
		if len(fields) != 4 {
			return fmt.Errorf("@rename %s: write VERSION FIELD VERSION FIELD", rest)
		}
		w.renames = append(w.renames, rename{[2]string{fields[0], fields[2]}, [2]string{fields[1], fields[3]}})
	case "overwrite":
		field, value, ok := strings.Cut(rest, "=")
		if !ok {
			return fmt.Errorf("@overwrite %s: write FIELD=VALUE", rest)
		}
		set := overwrite{field: field}
		err = yaml.Unmarshal([]byte(value), &set.value)
		w.overwrites = append(w.overwrites, set)
	case "lose":
		w.lost, err = strconv.Atoi(rest)
	default:
		return fmt.Errorf("unknown directive @%s of a webhook", word)
	}
	if err != nil {
		return fmt.Errorf("@%s %s: %w", word, rest, err)
	}
	return nil
}

// pause waits as long as the section says, or until the request ends.
func (w *Webhook) pause(ctx context.Context) {
	if w.wait == 0 {
		return
	}
	select {
	case <-time.After(w.wait):
	case <-ctx.Done():
	}
}

// answer returns the review that answers the given one.
func (w *Webhook) answer(review map[string]any, body string) ([]byte, error) {
	answer := map[string]any{}
	if err := yaml.Unmarshal([]byte(body), &answer); err != nil {
		return nil, err
	}
	padded(answer)
	request, _ := review["request"].(map[string]any)
	for _, key := range []string{"apiVersion", "kind"} {
		setDefault(answer, key, review[key])
	}
	setDefault(answer, "response", map[string]any{})
	response, ok := answer["response"].(map[string]any)
	if !ok {
		return json.Marshal(answer)
	}
	setDefault(response, "uid", request["uid"])
	if review["kind"] == "ConversionReview" {
		setDefault(response, "result", map[string]any{"status": "Success"})
		setDefault(response, "convertedObjects", w.convert(request))
		return json.Marshal(answer)
	}
	setDefault(response, "allowed", true)
	if patch, ok := response["patch"].([]any); ok {
		setDefault(response, "patchType", "JSONPatch")
		text, err := json.Marshal(patch)
		if err != nil {
			return nil, err
		}
		response["patch"] = text // encoded as base64
	}
	return json.Marshal(answer)
}

func setDefault(object map[string]any, key string, value any) {
	if _, ok := object[key]; !ok && value != nil {
		object[key] = value
	}
}

// convert returns the objects of a conversion request in the version that it asks for.
func (w *Webhook) convert(request map[string]any) []any {
	objects, _ := request["objects"].([]any)
	desired, _ := request["desiredAPIVersion"].(string)
	version := desired[strings.LastIndexByte(desired, '/')+1:]
	converted := make([]any, 0, len(objects))
	for _, element := range objects[:max(0, len(objects)-w.lost)] {
		object, ok := element.(map[string]any)
		if !ok {
			continue
		}
		object = maps.Clone(object)
		object["apiVersion"] = desired
		for _, r := range w.renames {
			switch version {
			case r.versions[0]:
				move(object, r.fields[1], r.fields[0])
			case r.versions[1]:
				move(object, r.fields[0], r.fields[1])
			}
		}
		for _, set := range w.overwrites {
			parent, name := parentOf(object, set.field, true)
			if set.value == nil {
				delete(parent, name)
			} else {
				parent[name] = set.value
			}
		}
		converted = append(converted, object)
	}
	return converted
}

// move moves a field, named by a dotted path.
func move(object map[string]any, from, to string) {
	parent, name := parentOf(object, from, false)
	value, ok := parent[name]
	if !ok {
		return
	}
	delete(parent, name)
	parent, name = parentOf(object, to, true)
	parent[name] = value
}

// parentOf returns the object that has the field, and the field's name. Missing objects
// are created in object if create is set.
func parentOf(object map[string]any, field string, create bool) (map[string]any, string) {
	names := strings.Split(field, ".")
	for _, name := range names[:len(names)-1] {
		child, ok := object[name].(map[string]any)
		if !ok {
			child = map[string]any{}
			if create {
				object[name] = child
			}
		}
		object = child
	}
	return object, names[len(names)-1]
}
