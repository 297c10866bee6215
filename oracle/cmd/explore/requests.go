// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// talk is a conversation about one definition, as it is made up.
type talk struct {
	definer
	definition map[string]any
	versions   []string
	schemas    map[string]map[string]any
	namespaced bool
	// steps are the requests, those together that need one another.
	steps [][]string
	// redefined counts the changes of the definition.
	redefined int
}

// newTalk makes up so many requests about a definition.
func newTalk(d definer, definition map[string]any, requests int) *talk {
	c := &talk{definer: d, definition: definition, schemas: map[string]map[string]any{}}
	spec := c.definition["spec"].(map[string]any)
	c.namespaced = spec["scope"] == "Namespaced"
	for _, version := range spec["versions"].([]any) {
		version := version.(map[string]any)
		name := version["name"].(string)
		c.versions = append(c.versions, name)
		c.schemas[name] = version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	}
	c.begin()
	c.say("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions\n@setup\n", c.definition)
	for _, version := range c.versions {
		c.say("GET "+c.collection(version)+"\n@until 200\n@setup\n@capture rv0 = metadata.resourceVersion\n", nil)
	}
	for range requests {
		c.begin()
		c.request()
	}
	c.begin()
	c.say("GET "+c.collection(c.versions[0])+"\n", nil)
	c.begin()
	c.say(fmt.Sprintf("GET %s?watch=1&resourceVersion=${rv0}&timeoutSeconds=1\n", c.collection(c.versions[c.IntN(len(c.versions))])), nil)
	return c
}

// begin makes the next requests ones that need not those before them.
func (c *talk) begin() { c.steps = append(c.steps, nil) }

// say adds a request.
func (c *talk) say(head string, body any) {
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			panic(err) // it is of maps and lists
		}
		head += "\n" + string(data) + "\n"
	}
	last := &c.steps[len(c.steps)-1]
	*last = append(*last, head)
}

func (c *talk) version() string { return c.versions[c.IntN(len(c.versions))] }

func (c *talk) name() string { return one(c.Rand, "n0", "n0", "n0", "n1", "n1", "n2") }

func (c *talk) collection(version string) string {
	if c.namespaced {
		return "/apis/" + groupMark + "/" + version + "/namespaces/default/" + plural
	}
	return "/apis/" + groupMark + "/" + version + "/" + plural
}

// request adds one of any sort.
func (c *talk) request() {
	sorts := []struct {
		weight int
		add    func()
	}{
		{8, c.create}, {6, c.update}, {5, c.merge}, {4, c.jsonPatch}, {8, c.apply}, {5, c.status}, {3, c.scale}, {2, c.get}, {5, c.list}, {4, c.watch},
		{3, c.delete}, {1, c.deleteSome}, {1, c.duplicates}, {2, c.tables}, {1, c.redefine}, {1, c.odd},
	}
	total := 0
	for _, s := range sorts {
		total += s.weight
	}
	at := c.IntN(total)
	for _, s := range sorts {
		if at -= s.weight; at < 0 {
			s.add()
			return
		}
	}
}

// query joins what is chosen to a query.
func query(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return "?" + strings.Join(kept, "&")
}

// writes are the parameters of a write.
func (c *talk) writes() string {
	return query(one(c.Rand, "", "", "", "dryRun=All"), one(c.Rand, "", "", "fieldValidation=Strict", "fieldValidation=Warn", "fieldValidation=Ignore"),
		one(c.Rand, "", "", "fieldManager=m1", "fieldManager=m2"))
}

const remember = "@capture rv = metadata.resourceVersion\n@capture uid = metadata.uid\n"

func (c *talk) create() {
	version := c.version()
	c.say("POST "+c.collection(version)+c.writes()+"\n"+remember, c.object(version, c.name()))
}

// settled sets the resourceVersion that an update has to have, usually the right one.
func (c *talk) settled(object map[string]any, name string) string {
	metadata := object["metadata"].(map[string]any)
	switch c.IntN(8) {
	case 0: // none
	case 1:
		metadata["resourceVersion"] = "${rv0}"
	case 2:
		metadata["resourceVersion"], metadata["uid"] = "${now}", one(c.Rand, "${uid}", "other")
	default:
		metadata["resourceVersion"] = "${now}"
	}
	return "GET " + c.collection(c.versions[0]) + "/" + name + "\n@capture now = metadata.resourceVersion\n@capture uid = metadata.uid\n@keep kind message\n"
}

func (c *talk) update() {
	version, name := c.version(), c.name()
	object := c.object(version, name)
	c.say(c.settled(object, name), nil)
	c.say("PUT "+c.collection(version)+"/"+name+c.writes()+"\n"+remember, object)
}

func (c *talk) merge() {
	version, name := c.version(), c.name()
	body := c.fragment(c.object(version, name))
	if metadata, ok := body["metadata"].(map[string]any); ok && c.oneIn(4) {
		metadata[one(c.Rand, "finalizers", "labels", "annotations", "resourceVersion")] = one[any](c.Rand, nil, nil, []any{}, "7")
	}
	media := one(c.Rand, "merge-patch", "merge-patch", "merge-patch", "merge-patch", "strategic-merge-patch")
	c.say("PATCH "+c.collection(version)+"/"+name+c.writes()+"\nContent-Type: application/"+media+"+json\n"+remember, body)
}

func (c *talk) jsonPatch() {
	version, name := c.version(), c.name()
	object := c.object(version, name)
	all := paths("", map[string]any{"spec": object["spec"], "metadata": object["metadata"]})
	var operations []any
	for range 1 + c.IntN(2) {
		operation := map[string]any{"op": one(c.Rand, "add", "add", "replace", "remove", "test", "copy", "move"), "path": all[c.IntN(len(all))]}
		switch operation["op"] {
		case "copy", "move":
			operation["from"] = all[c.IntN(len(all))]
		case "remove":
		default:
			operation["value"] = one[any](c.Rand, "a", 1, true, map[string]any{}, []any{}, []any{"a", "a"}, nil, "x")
			if inner, ok := object["spec"].(map[string]any); ok && operation["path"] == "/spec" {
				operation["value"] = inner
			}
		}
		operations = append(operations, operation)
	}
	c.say("PATCH "+c.collection(version)+"/"+name+c.writes()+"\nContent-Type: application/json-patch+json\n"+remember, operations)
}

// apply is by one of a few managers, of some fields, with what identifies the entries
// of lists most of the time.
func (c *talk) apply() {
	version, name := c.version(), c.name()
	body := c.object(version, name)
	if c.oneIn(2) {
		body = c.fragment(body)
		body["apiVersion"], body["kind"] = groupMark+"/"+version, "Thing"
	}
	target := c.collection(version) + "/" + name
	if c.oneIn(6) {
		target += one(c.Rand, "/status", "/status", "/scale")
	}
	c.say("PATCH "+target+query("fieldManager="+one(c.Rand, "m1", "m1", "m2", "m3"), one(c.Rand, "", "", "force=true"), one(c.Rand, "", "", "", "dryRun=All"),
		one(c.Rand, "", "", "", "fieldValidation=Strict", "fieldValidation=Ignore"))+"\nContent-Type: application/apply-patch+yaml\n"+remember, body)
}

func (c *talk) status() {
	version, name := c.version(), c.name()
	object := c.object(version, name)
	properties, _ := c.schemas[version]["properties"].(map[string]any)
	schema, _ := properties["status"].(map[string]any)
	object["status"] = c.instance(schema, 5)
	target := c.collection(version) + "/" + name + "/status" + c.writes()
	if c.oneIn(2) {
		c.say("PATCH "+target+"\nContent-Type: application/merge-patch+json\n"+remember, map[string]any{"status": object["status"], "spec": object["spec"]})
		return
	}
	c.say(c.settled(object, name), nil)
	c.say("PUT "+target+"\n"+remember, object)
}

func (c *talk) scale() {
	name := c.name()
	target := c.collection(c.version()) + "/" + name + "/scale"
	replicas := map[string]any{"replicas": one[any](c.Rand, 0, 1, 2, 3, -1, 1.5, "x", nil)}
	switch c.IntN(4) {
	case 0:
		c.say("GET "+target+"\n", nil)
	case 1:
		c.say("PATCH "+target+c.writes()+"\nContent-Type: application/merge-patch+json\n"+remember, map[string]any{"spec": replicas})
	case 2:
		replicas["replicas"] = one(c.Rand, 0, 1, 2, -1) // of another type is refused with a position in kube-apiserver's source
		c.say("PUT "+target+c.writes()+"\n"+remember, map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": name}, "spec": replicas})
	case 3:
		c.say("PATCH "+target+query("fieldManager="+one(c.Rand, "m1", "m2"), one(c.Rand, "", "force=true"))+"\nContent-Type: application/apply-patch+yaml\n"+remember,
			map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": name}, "spec": replicas})
	}
}

// fresh is a consistent list, after which what is read of memory is as new.
func (c *talk) fresh(version string) { c.say("GET "+c.collection(version)+"?limit=1\n@setup\n", nil) }

func (c *talk) get() {
	version := c.version()
	at := one(c.Rand, "", "", "resourceVersion=0", "resourceVersion=${rv0}", "resourceVersion=${rv}", "resourceVersion=x", "resourceVersion=-1", "pretty=true")
	if strings.Contains(at, "=0") || strings.Contains(at, "$") {
		c.fresh(version)
	}
	c.say("GET "+c.collection(version)+"/"+c.name()+one(c.Rand, "", "", "", "/status")+query(at)+"\n", nil)
}

// selectors are of labels and fields.
func (c *talk) selectors() (labels, fields string) {
	if c.oneIn(3) {
		labels = "labelSelector=" + url.QueryEscape(one(c.Rand, "a", "!a", "a=x", "a!=x", "a in (x,y)", "a notin (x)", "a=x,b", "b=y", "a=", "==", "a=x y", "a>1", "a in ()"))
	}
	if c.oneIn(3) {
		fields = "fieldSelector=" + url.QueryEscape(one(c.Rand, "metadata.name=n0", "metadata.name!=n0", "metadata.namespace=default", "metadata.namespace!=default", "spec.s1=a", "spec.s1!=a", "spec.s1=", "spec.i1=1",
			"spec.b1=true", "spec.b1!=true", "spec.i1!=2,metadata.name=n0", "metadata.uid=x", "spec.o1=a", "spec.s1", "=", "spec.i1==01"))
	}
	return labels, fields
}

func (c *talk) media() string {
	return one(c.Rand, "", "", "", "Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io\n", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\n", "Accept: application/yaml\n")
}

func (c *talk) list() {
	version := c.version()
	labels, fields := c.selectors()
	at := one(c.Rand, "", "", "", "", "resourceVersion=0", "resourceVersion=${rv0}", "resourceVersion=${rv}", "resourceVersion=x")
	match := one(c.Rand, "", "", "", "resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", "resourceVersionMatch=Other")
	if at == "" && !c.oneIn(5) {
		match = ""
	}
	limit := one(c.Rand, "", "", "limit=1", "limit=2", "limit=0", "limit=-1", "limit=x")
	if at != "" {
		c.fresh(version)
	}
	c.say("GET "+c.collection(version)+query(labels, fields, at, match, limit)+"\n"+c.media()+"@capture next = metadata.continue\n", nil)
	if strings.Contains("limit=1 limit=2", limit) && limit != "" {
		c.say("GET "+c.collection(one(c.Rand, version, version, c.version()))+query(labels, fields, one(c.Rand, "", limit), "continue=${next}", one(c.Rand, "", "", "", "", "resourceVersion=0", "resourceVersion=${rv0}", "resourceVersionMatch=Exact"))+"\n", nil)
	}
}

func (c *talk) watch() {
	version := c.version()
	labels, fields := c.selectors()
	start := one(c.Rand, "resourceVersion=${rv0}", "resourceVersion=${rv0}", "resourceVersion=${rv}", "resourceVersion=0", "", "resourceVersion=x",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=${rv}",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=${rv0}",
		"sendInitialEvents=true", "sendInitialEvents=true&allowWatchBookmarks=true", "resourceVersionMatch=NotOlderThan", "sendInitialEvents=x&resourceVersion=${rv0}", "allowWatchBookmarks=true&resourceVersion=${rv0}")
	c.fresh(version)
	media := one(c.Rand, "", "", "", "Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io\n", "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\n")
	target := c.collection(version)
	if c.oneIn(6) {
		target += "/" + c.name()
	}
	c.say("GET "+target+query("watch="+one(c.Rand, "1", "true"), labels, fields, start, "timeoutSeconds=1")+"\n"+media, nil)
}

func (c *talk) delete() {
	name := c.name()
	options := map[string]any{}
	if c.oneIn(3) {
		options["preconditions"] = map[string]any{one(c.Rand, "uid", "resourceVersion"): one(c.Rand, "${uid}", "${rv}", "other")}
	}
	if c.oneIn(4) {
		options["propagationPolicy"] = one(c.Rand, "Orphan", "Foreground", "Background", "Other")
	}
	if c.oneIn(5) {
		options["gracePeriodSeconds"] = one[any](c.Rand, 0, 1, 30, -1)
	}
	if c.oneIn(5) {
		options["dryRun"] = []any{"All"}
	}
	var body any
	if len(options) > 0 {
		options["apiVersion"], options["kind"] = "v1", "DeleteOptions"
		body = options
	}
	c.say("DELETE "+c.collection(c.version())+"/"+name+query(one(c.Rand, "", "", "", "dryRun=All", "propagationPolicy=Foreground"))+"\n", body)
}

func (c *talk) deleteSome() {
	labels, fields := c.selectors()
	c.say("DELETE "+c.collection(c.version())+query(labels, fields, one(c.Rand, "", "dryRun=All"), one(c.Rand, "", "", "limit=1", "resourceVersion=0", "resourceVersion=${rv}"))+"\n", nil)
}

// duplicates is a write of an object in which fields are there twice.
func (c *talk) duplicates() {
	version := c.version()
	data, err := json.Marshal(c.object(version, c.name()))
	if err != nil {
		panic(err) // it is of maps and lists
	}
	text := string(data)
	for range 1 + c.IntN(2) {
		at := strings.Index(text, one(c.Rand, `"spec":{`, `"metadata":{`, `"labels":{`, `"o1":{`))
		if at < 0 {
			continue
		}
		at += strings.Index(text[at:], "{") + 1
		text = text[:at] + one(c.Rand, `"s1":"a","s1":"b",`, `"i1":1,"i1":2,`, `"name":"n0",`, `"unknown":{"a":1,"a":2},`, `"a":"x",`) + text[at:]
	}
	text = strings.ReplaceAll(text, ",}", "}")
	c.say("POST "+c.collection(version)+c.writes()+"\n@raw\n"+remember+"\n"+text+"\n", nil)
}

func (c *talk) tables() {
	target := c.collection(c.version())
	if c.oneIn(3) {
		target += "/" + c.name()
	}
	c.say("GET "+target+query(one(c.Rand, "", "includeObject=None", "includeObject=Object", "includeObject=Metadata", "includeObject=x"))+"\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\n", nil)
}

// redefine changes the schema of a version, with a column by which is seen when the
// change is served. kube-apiserver forgets what was before.
func (c *talk) redefine() {
	c.redefined++
	version := c.version()
	schema := c.root()
	if c.oneIn(2) {
		schema = clone(c.schemas[version]).(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		if spec, ok := properties["spec"].(map[string]any); ok {
			if inner, ok := spec["properties"].(map[string]any); ok {
				inner[one(c.Rand, "s1", "i1", "list", "map", "o1", "x", "added")] = c.value(2)
			}
		}
	}
	definition := clone(c.definition).(map[string]any)
	mark := fmt.Sprintf("mark-%d", c.redefined)
	for _, each := range definition["spec"].(map[string]any)["versions"].([]any) {
		each := each.(map[string]any)
		if each["name"] != version {
			continue
		}
		each["schema"] = map[string]any{"openAPIV3Schema": schema}
		delete(each, "selectableFields")
		columns, _ := each["additionalPrinterColumns"].([]any)
		each["additionalPrinterColumns"] = append(columns, map[string]any{"name": mark, "type": "string", "jsonPath": ".metadata.name"})
	}
	c.definition, c.schemas[version] = definition, schema
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + plural + "." + groupMark
	c.say("PATCH "+path+"\nContent-Type: application/merge-patch+json\n@keep spec message details.causes\n", map[string]any{"spec": map[string]any{"versions": definition["spec"].(map[string]any)["versions"]}})
	c.say("GET "+c.collection(version)+"?limit=1\nAccept: application/json;as=Table;v=v1;g=meta.k8s.io\n@until ~"+mark+"\n@setup\n@capture rv0 = metadata.resourceVersion\n@capture rv = metadata.resourceVersion\n", nil)
}

// odd is a request that clients should not send.
func (c *talk) odd() {
	version, name := c.version(), c.name()
	object := c.object(version, name)
	switch c.IntN(8) {
	case 0:
		object["kind"] = one[any](c.Rand, "Other", "", nil, 1)
		c.say("POST "+c.collection(version)+"\n", object)
	case 1:
		object["apiVersion"] = one[any](c.Rand, "v1", groupMark+"/v9", "", nil, 1, "other.example.com/v1")
		c.say("POST "+c.collection(version)+"\n", object)
	case 2:
		c.say("PUT "+c.collection(version)+"/other\n", object)
	case 3:
		c.say("POST "+c.collection(version)+"/"+name+one(c.Rand, "", "/status", "/scale")+"\n", object)
	case 4:
		c.say("PATCH "+c.collection(version)+"/"+name+"?fieldManager="+one(c.Rand, "", strings.Repeat("m", 129), "a\tb")+"\nContent-Type: application/apply-patch+yaml\n", object)
	case 5:
		c.say("PATCH "+c.collection(version)+"/"+name+"?force=true\nContent-Type: application/merge-patch+json\n", object)
	case 6:
		object["metadata"] = one[any](c.Rand, nil, map[string]any{}, "x", map[string]any{"generateName": "g-"}, []any{}, map[string]any{"name": "A"}, map[string]any{"name": name, "labels": map[string]any{"a": 1}},
			map[string]any{"name": name, "annotations": map[string]any{"a b": "x"}, "labels": map[string]any{"-": "x y"}})
		c.say("POST "+c.collection(version)+c.writes()+"\n", object)
	case 7:
		c.say("DELETE "+c.collection(version)+"/"+name+"/"+one(c.Rand, "status", "scale", "other")+"\n", nil)
	}
}
