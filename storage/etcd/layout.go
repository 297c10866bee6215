// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/storage"
)

// layout is where the keys are. It is a prefix that ends with a slash.
//
// An object is at PREFIX/pods/default/web or PREFIX/GROUP/PLURAL/default/web, as
// kube-apiserver has custom resources. What the store itself keeps is below
// PREFIX/.steer.
type layout string

func newLayout(prefix string) layout { return layout("/" + strings.Trim(prefix, "/") + "/") }

// The keys of the store itself.
func (l layout) owner() string    { return string(l) + ".steer/owner" }
func (l layout) leader() string   { return string(l) + ".steer/leader" }
func (l layout) resigned() string { return string(l) + ".steer/resigned" }
func (l layout) clock() string    { return string(l) + ".steer/clock" }

// key returns the key of an object. Different keys of a store have different ones.
func (l layout) key(k storage.Key) string {
	return string(l) + segments(k.Bucket) + "/" + k.Name
}

// parse returns the key of an object, and whether it is one.
func (l layout) parse(raw string) (storage.Key, bool) {
	first, rest, ok := strings.Cut(strings.TrimPrefix(raw, string(l)), "/")
	switch {
	case !ok || first == "" || strings.HasPrefix(first, "."):
		return storage.Key{}, false
	case strings.HasPrefix(first, "%"):
		return storage.Key{Bucket: strings.NewReplacer("%2F", "/", "%25", "%").Replace(first[1:]), Name: rest}, rest != ""
	case !isGroup(first):
		return storage.Key{Bucket: first, Name: rest}, rest != ""
	}
	plural, name, ok := strings.Cut(rest, "/")
	return storage.Key{Bucket: first + "/" + plural, Name: name}, ok && plural != "" && name != ""
}

// segments returns a bucket as parse expects it: PLURAL, GROUP/PLURAL, or one segment that
// begins with a percent sign.
func segments(bucket string) string {
	group, plural, two := strings.Cut(bucket, "/")
	special := strings.HasPrefix(bucket, "%") || strings.HasPrefix(bucket, ".")
	if !special && (!two && !isGroup(bucket) || two && isGroup(group) && plural != "" && !strings.Contains(plural, "/")) {
		return bucket
	}
	return "%" + strings.NewReplacer("/", "%2F", "%", "%25").Replace(bucket)
}

// isGroup reports whether a first segment is the group of a resource.
func isGroup(segment string) bool {
	return strings.Contains(segment, ".") ||
		slices.Contains([]string{"apps", "autoscaling", "batch", "extensions", "policy"}, segment)
}

// header begins a value; the offset of its revision follows, and a line feed.
const header = "steer/1 "

// encode returns the value of a write as it is stored: without its revision, which is
// not known yet.
func encode(w *storage.Write) []byte {
	out := make([]byte, 0, len(header)+8+len(w.Value))
	out = append(out, header...)
	out = strconv.AppendInt(out, int64(w.Stamp), 10)
	out = append(out, '\n')
	return append(out, w.Value...)
}

// decode returns the stored value of a key with its revision.
func decode(key string, raw []byte, rev storage.Revision) (value []byte, stamp int, err error) {
	line, payload, ok := bytes.Cut(raw, []byte{'\n'})
	digits, known := bytes.CutPrefix(line, []byte(header))
	if ok && known {
		stamp, err = strconv.Atoi(string(digits))
	}
	if !ok || !known || err != nil || stamp < 0 || stamp > len(payload) {
		return nil, 0, fmt.Errorf("etcd: the value of %q at revision %d was not written by this program: remove the key with etcdctl del", key, rev)
	}
	w := storage.Write{Value: payload, Stamp: stamp}
	return w.Stamped(rev), stamp, nil
}

// isOwn reports whether a key is one of the store itself.
func (l layout) isOwn(raw string) bool { return strings.HasPrefix(raw, string(l)+".steer/") }
