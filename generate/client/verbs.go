// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/markers"
)

// every lists what a client can do by itself.
func every() []string {
	return []string{"create", "update", "updateStatus", "delete", "deleteCollection", "get", "list", "watch", "patch", "apply", "applyStatus"}
}

// verbs is the value of onlyVerbs and skipVerbs: names parted by commas.
type verbs []string

// ParseMarker reads the names.
func (v *verbs) ParseMarker(name, text string) error {
	*v = strings.Split(text, ",")
	for _, verb := range *v {
		if !slices.Contains(every(), verb) {
			return fmt.Errorf("%s: there is no verb %q: use some of %s", name, verb, strings.Join(every(), ", "))
		}
	}
	return nil
}

// verbsOf says what the client of a kind can do, from its markers alone.
func verbsOf(set markers.Set) map[string]bool {
	can := map[string]bool{}
	if set.Has("genclient:noVerbs") {
		return can
	}
	only, limited := markers.First[verbs](set, "genclient:onlyVerbs")
	if set.Has("genclient:readonly") {
		only, limited = append(slices.Clone(only), "get", "list", "watch"), true
	}
	skip, _ := markers.First[verbs](set, "genclient:skipVerbs")
	if limited {
		skip = nil // what is listed is all that counts
	}
	for _, verb := range every() {
		if !slices.Contains(skip, verb) && (!limited || slices.Contains(only, verb)) {
			can[verb] = true
		}
	}
	return can
}

// method is a method beyond the usual ones:
//
//	+genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale
type method struct {
	Name        string // of the Go method
	Verb        string // one of get, list, create, update, patch and apply
	Subresource string // empty: the object itself
	Input       string // Go type of what is sent: Name, or path.Name; empty: the kind
	Result      string // Go type of what comes back, likewise
}

// ParseMarker reads the method.
func (m *method) ParseMarker(_, text string) error {
	name, rest, _ := strings.Cut(text, ",")
	m.Name = strings.TrimSpace(name)
	if m.Name == "" {
		return fmt.Errorf("the method needs a name: +genclient:method=Name,verb=create")
	}
	fields := map[string]*string{"verb": &m.Verb, "subresource": &m.Subresource, "input": &m.Input, "result": &m.Result}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		field, known := fields[key]
		if rest == "" {
			break
		}
		if !known {
			return fmt.Errorf("method %s: unknown argument %q: use verb, subresource, input or result", m.Name, key)
		}
		if value == "" {
			return fmt.Errorf("method %s: %s has no value", m.Name, key)
		}
		*field = value
	}
	switch m.Verb {
	case "create", "update", "apply", "get", "list", "patch":
	case "":
		return fmt.Errorf("method %s needs a verb: +genclient:method=%s,verb=create", m.Name, m.Name)
	default:
		return fmt.Errorf("method %s: verb %q cannot be a method: use get, list, create, update, patch or apply", m.Name, m.Verb)
	}
	if m.Input != "" && !m.sends() {
		return fmt.Errorf("method %s: verb %s takes no input; only create, update and apply do", m.Name, m.Verb)
	}
	return nil
}

// sends reports whether the method takes an object.
func (m method) sends() bool { return m.Verb == "create" || m.Verb == "update" || m.Verb == "apply" }

// call is a method as templates write it.
type call struct {
	method
	In, Out string // Go types, with the names under which their packages are imported
}

// imported is a package that a call needs.
type imported struct{ Alias, Path string }

func (c call) member(name string) any {
	switch name {
	case "Name":
		return c.Name
	case "Verb":
		return c.Verb
	case "Subresource":
		return c.Subresource
	case "In":
		return c.In
	case "Out":
		return c.Out
	}
	return nil
}

func (i imported) member(name string) any {
	switch name {
	case "Alias":
		return i.Alias
	case "Path":
		return i.Path
	}
	return nil
}

// calls turns the methods of a kind into calls. Apply methods are left out where
// apply configurations are not made.
func calls(kind, applyPackage string, methods []method) (made []call, needs []imported) {
	use := func(in string) string {
		alias := path.Base(path.Dir(in)) + path.Base(in)
		alias = strings.Map(func(r rune) rune {
			if strings.ContainsRune("-._", r) {
				return -1
			}
			return r
		}, alias)
		if strings.Contains(in, "/applyconfigurations/") {
			alias += "ac"
		}
		if one := (imported{alias, in}); !slices.Contains(needs, one) {
			needs = append(needs, one)
		}
		return alias
	}
	for _, m := range methods {
		if m.Verb == "apply" && applyPackage == "" {
			continue
		}
		c := call{method: m}
		from, name := split(m.Result, kind)
		if c.Out = "api." + name; from != "" {
			c.Out = use(from) + "." + name
		}
		if m.Verb == "list" {
			c.Out += "List"
		}
		if from, name = split(m.Input, kind); m.sends() {
			switch builtin, isBuiltin := strings.CutPrefix(from, "k8s.io/api/"); {
			case m.Verb == "apply" && from == "":
				c.In = "ac." + name + "ApplyConfiguration"
			case m.Verb == "apply" && isBuiltin:
				c.In = use("k8s.io/client-go/applyconfigurations/"+builtin) + "." + name + "ApplyConfiguration"
			case m.Verb == "apply":
				c.In = use(path.Join(from, "applyconfiguration", path.Base(path.Dir(from)), path.Base(from))) + "." + name + "ApplyConfiguration"
			case from == "":
				c.In = "api." + name
			default:
				c.In = use(from) + "." + name
			}
		}
		made = append(made, c)
	}
	return made, needs
}

// split parts "path.Name"; nothing means the kind itself.
func split(typ, kind string) (from, name string) {
	if typ == "" {
		return "", kind
	}
	at := strings.LastIndex(typ, ".")
	return typ[:max(at, 0)], typ[at+1:]
}
