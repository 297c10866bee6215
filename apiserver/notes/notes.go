// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notes remembers who wrote which revision: the user, the client and the id of
// the request, which objects do not have. It is memory alone, bounded, and of the writes
// that this server executed: a restart forgets it, and of several servers each knows its
// own writes.
package notes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

// Path is where a server serves its notes. Reading them takes a right of its own, to get
// this path, which no role has by default but cluster-admin: they name users and what
// they wrote in all namespaces.
const Path = "/steer.dev/writes"

const (
	// DefaultBytes bounds the notes of a server.
	DefaultBytes = 4 << 20
	// overhead of one note beside its texts, in bytes.
	overhead = 256
	// maxText bounds each text of a note, in bytes, and maxAuditID the id, as
	// kube-apiserver does in its answers.
	maxText    = 256
	maxAuditID = 64
	// mostItems of one answer, and as many as are asked for without a limit.
	mostItems = 5000
)

// Note says who wrote a revision.
type Note struct {
	Revision storage.Revision `json:"-"`
	// Term of the leader when the note was made, where several servers share a store. A
	// later one than that of the write is known by its revision, which is above the write's.
	Term storage.Revision `json:"-"`
	Time time.Time        `json:"time"`
	// Verb of the request: create, update, patch, delete or deletecollection.
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	User        string `json:"user"`
	UserAgent   string `json:"userAgent,omitempty"`
	// FieldManager is the one that managedFields name.
	FieldManager string `json:"fieldManager,omitempty"`
	// AuditID is that of the request. Clients may choose it: it is a hint to what sent the
	// request and proves nothing; User is what was authenticated.
	AuditID string `json:"auditID,omitempty"`
}

// MarshalJSON writes the revision as resourceVersion, a string.
func (n Note) MarshalJSON() ([]byte, error) {
	type plain Note
	return json.Marshal(struct {
		ResourceVersion string `json:"resourceVersion"`
		plain
	}{strconv.FormatInt(int64(n.Revision), 10), plain(n)})
}

// UnmarshalJSON reads the form of MarshalJSON.
func (n *Note) UnmarshalJSON(text []byte) error {
	type plain Note
	whole := struct {
		ResourceVersion string `json:"resourceVersion"`
		*plain
	}{plain: (*plain)(n)}
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	revision, err := strconv.ParseInt(whole.ResourceVersion, 10, 64)
	n.Revision = storage.Revision(revision)
	return err
}

func (n *Note) size() int {
	return overhead + len(n.Verb) + len(n.Group) + len(n.Resource) + len(n.Subresource) + len(n.Namespace) + len(n.Name) +
		len(n.User) + len(n.UserAgent) + len(n.FieldManager) + len(n.AuditID)
}

// Notes keeps the newest notes within a number of bytes. It is safe for concurrent use; a
// nil one keeps nothing.
type Notes struct {
	most int

	mu    sync.Mutex
	notes []Note // in the order of their revisions
	first int    // index of the oldest that is kept
	bytes int
}

// New returns empty notes. 0 bytes mean [DefaultBytes].
func New(bytes int) *Notes {
	if bytes == 0 {
		bytes = DefaultBytes
	}
	return &Notes{most: bytes}
}

// Add keeps a note, and forgets the oldest that are too many. Texts are cut.
func (n *Notes) Add(note Note) {
	if n == nil {
		return
	}
	for _, text := range []*string{&note.User, &note.UserAgent, &note.FieldManager} {
		*text = (*text)[:min(len(*text), maxText)]
	}
	note.AuditID = note.AuditID[:min(len(note.AuditID), maxAuditID)]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, note)
	for i := len(n.notes) - 1; i > n.first && n.notes[i].Revision < n.notes[i-1].Revision; i-- { // writes end in another order than they are stored
		n.notes[i], n.notes[i-1] = n.notes[i-1], n.notes[i]
	}
	n.bytes += note.size()
	for n.bytes > n.most && n.first < len(n.notes) {
		n.bytes -= n.notes[n.first].size()
		n.notes[n.first] = Note{}
		n.first++
	}
	if n.first > len(n.notes)/2 {
		n.notes = slices.Delete(n.notes, 0, n.first)
		n.first = 0
	}
}

// List is the answer of a server.
type List struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	// KnownFrom is the oldest revision from which on this server has a note of each write.
	// What is older it has forgotten, or was written before it was started; of several
	// servers, it is in the newest term of this one, and what others wrote before or after
	// that has a note there. Empty: it has none.
	KnownFrom string `json:"knownFrom,omitempty"`
	// Omitted counts the notes that match and are older than those listed.
	Omitted int `json:"omitted,omitempty"`
	// Items in the order of their revisions.
	Items []Note `json:"items"`
}

// Query selects notes; what is zero selects all.
type Query struct {
	// From and To are the first and the last revision.
	From, To                  storage.Revision
	Resource, Namespace, Name string
	Group                     string
	// Limit of the answer, of which the newest are kept; 0 means 5000, as much as there can be.
	Limit int
}

func (q *Query) selects(n *Note) bool {
	return n.Revision >= q.From && (q.To == 0 || n.Revision <= q.To) &&
		(q.Resource == "" || q.Resource == n.Resource && q.Group == n.Group) &&
		(q.Namespace == "" || q.Namespace == n.Namespace) && (q.Name == "" || q.Name == n.Name)
}

// unbroken is where the notes of the newest term begin: between two terms others may have
// written. A term has a revision, and a write that is older was made before it.
func unbroken(kept []Note) int {
	first := len(kept) - 1
	for first > 0 && kept[first-1].Term == kept[first].Term && kept[first-1].Revision >= kept[first].Term {
		first--
	}
	return first
}

// List returns the notes of a query.
func (n *Notes) List(q Query) List {
	out := List{Kind: "WriteList", APIVersion: "steer.dev/v1alpha1", Items: []Note{}}
	if n == nil {
		return out
	}
	if q.Limit <= 0 || q.Limit > mostItems {
		q.Limit = mostItems
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.notes[n.first:]
	if len(kept) > 0 {
		out.KnownFrom = strconv.FormatInt(int64(kept[unbroken(kept)].Revision), 10)
	}
	for i := len(kept) - 1; i >= 0; i-- {
		switch {
		case !q.selects(&kept[i]):
		case len(out.Items) == q.Limit:
			out.Omitted++
		default:
			out.Items = append(out.Items, kept[i])
		}
	}
	slices.Reverse(out.Items)
	return out
}

// ServeHTTP answers GET with a [List]. The query has from, to, group, resource, namespace,
// name and limit. Who may read is not its concern.
func (n *Notes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "writes can be listed only: use GET", http.StatusMethodNotAllowed)
		return
	}
	values := r.URL.Query()
	q := Query{Group: values.Get("group"), Resource: values.Get("resource"), Namespace: values.Get("namespace"), Name: values.Get("name")}
	for name, set := range map[string]func(int64){
		"from": func(v int64) { q.From = storage.Revision(v) }, "to": func(v int64) { q.To = storage.Revision(v) }, "limit": func(v int64) { q.Limit = int(v) },
	} {
		text := values.Get(name)
		if text == "" {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			http.Error(w, fmt.Sprintf("%s=%q is no number: revisions are resourceVersions", name, text), http.StatusBadRequest)
			return
		}
		set(v)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(n.List(q)) // a write fails when the reader has gone
}
