// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"cmp"
	"embed"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	h "github.com/steer-dev/steer/dashboard/internal/markup"
	"github.com/steer-dev/steer/dashboard/internal/model"
	"github.com/steer-dev/steer/trace"
)

const (
	// defaultKeep is how many records a page keeps.
	defaultKeep = 100_000
	// atMost is how often in a second, at most, a page is told that something changed.
	atMost = 4
	// lookAgain is how often a source is asked what runs, at most: it looks at all goroutines.
	lookAgain = time.Second
	// moves is how often what is shown changes by time alone.
	moves = 5 * time.Second
	// beat is how often a stream says that it is alive, so that no proxy ends it.
	beat = 15 * time.Second
)

// Options of [New] and [Add].
type Options struct {
	// Title names the operator, or the recording. Default for [Add]: the manager's name.
	Title string
	// Source of the records. nil: for [Add] that of the manager; for [New] there are none, and
	// the page is that of a control plane alone, for which Objects is required.
	Source Source
	// Objects answers for history, conditions and tree. nil: the page says how to ask for them.
	// Who sees the page sees what Objects may read, so [Add] has none by itself: its page does
	// not show what only the operator may read.
	Objects Objects
	// Keep is how many records the page keeps, the newest. Default 100,000, and 10,000 for [Add].
	Keep int
	// Address that [Add] serves the page on. On a loopback interface, as "127.0.0.1:8082",
	// it is for who has the token that the operator logs; elsewhere it is HTTPS, for who may
	// get the path (see manager.Manager.Guard). Required by [Add].
	Address string
}

// Page is an [http.Handler] that lets everyone in: who serves it guards it. It is safe for
// concurrent use.
type Page struct {
	o Options

	mu      sync.Mutex
	model   *model.Model
	now     Now
	source  Source
	looked  time.Time // when the source was asked for now
	version uint64    // counts what changed
	moved   time.Time // when it did
}

//go:embed assets
var assets embed.FS

// New returns the page of a source.
func New(o Options) *Page {
	o.Keep = cmp.Or(o.Keep, defaultKeep)
	p := &Page{o: o, model: model.New(o.Keep), source: o.Source}
	if p.source == nil {
		p.source = none{}
	}
	return p
}

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read only: use GET", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case "/page.css":
		asset(w, "text/css; charset=utf-8", "assets/page.css")
	case "/page.js":
		asset(w, "text/javascript; charset=utf-8", "assets/page.js")
	case "/icon.svg":
		asset(w, "image/svg+xml", "assets/icon.svg")
	case "/stream":
		p.stream(w, r)
	case "/recording.jsonl":
		p.save(w)
	default:
		p.view(w, r)
	}
}

func asset(w http.ResponseWriter, kind, name string) {
	w.Header().Set("Content-Type", kind)
	data, err := assets.ReadFile(name)
	if err != nil { // it is embedded
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Write(data)
}

// view writes one of the views.
func (p *Page) view(w http.ResponseWriter, r *http.Request) {
	s := p.show(r)
	var out bytes.Buffer
	if err := h.Document(&out, p.document(r, s)); err != nil { // into memory
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(s.status)
	w.Write(out.Bytes())
}

// shown is a view.
type shown struct {
	status  int
	name    string // of the tab
	title   string
	content h.Nodes
	ended   string
	version uint64
}

// read brings the model up to date. The caller holds mu.
func (p *Page) read(at time.Time) model.Now {
	before := p.model.Added()
	for r := range p.source.New() {
		p.model.Add(&r)
	}
	if p.looked.IsZero() || at.Sub(p.looked) >= lookAgain {
		ended := p.now.Ended
		p.now, p.looked = p.source.Now(), at
		if len(p.now.Running) > 0 || p.now.Ended != ended || at.Sub(p.moved) >= moves {
			p.version, p.moved = p.version+1, at
		}
	}
	if p.model.Added() != before {
		p.version, p.moved = p.version+1, at
	}
	return model.Now{At: at, Running: p.now.Running, Queued: p.now.Queued}
}

// show works a view out. What asks the control plane does so without the lock.
func (p *Page) show(r *http.Request) shown {
	p.mu.Lock()
	now := p.read(time.Now())
	s := shown{status: http.StatusOK, ended: p.now.Ended, version: p.version}
	recording := p.now.Ended != ""
	trouble := p.now.Trouble
	query := r.URL.Query()
	var ask func() h.Nodes
	switch r.URL.Path {
	case "/":
		s.name, s.title, s.content = "pulse", "Pulse", p.pulse(now, recording)
	case "/objects":
		s.name, s.title, s.content = "objects", "Objects", p.objects(now, query)
	case "/object":
		of := subjectOf(query)
		s.name, s.title = "objects", brief(of.Name())
		s.content, ask = p.object(r.Context(), now, of, query)
	case "/attempt":
		s.name, s.title = "objects", "Attempt"
		if s.content = p.attempt(now, query.Get("id")); s.content == nil {
			s.status, s.content = http.StatusNotFound, empty("This attempt is not among the records", "It was overwritten by newer ones, or belongs to another operator. The records of a directory of --record-dir reach further back.")
		}
	case "/queue":
		s.name, s.title, s.content = "queue", "Queue", p.queue(now, recording)
	case "/recording":
		s.name, s.title, s.content = "recording", "Recording", p.recording()
	default:
		s.status, s.title, s.content = http.StatusNotFound, "Not found", empty("There is no such view", "Pulse, Objects, Queue and Recording are those that there are.")
	}
	if p.o.Source == nil && s.status == http.StatusOK && r.URL.Path != "/object" {
		s.content, ask = p.alone(r.Context(), r.URL.Path, query)
	}
	p.mu.Unlock()
	if ask != nil {
		s.content = append(s.content, ask()...)
	}
	if trouble != "" {
		s.content = append(h.Nodes{notice("Some records could not be read: " + trouble)}, s.content...)
	}
	return s
}

// stream tells a browser that something changed, until it goes, the page does, or no more
// can come.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // for proxies that would gather it
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // a stream has none; what has no deadlines needs none lifted
	tick := time.NewTicker(time.Second / atMost)
	defer tick.Stop()
	told, said := ^uint64(0), time.Now()
	for {
		version, ended := p.current()
		event := ""
		switch {
		case ended != "":
			event = "event: ended\ndata: " + strconv.FormatUint(version, 10) + "\n\n"
		case version != told:
			event = "event: changed\ndata: " + strconv.FormatUint(version, 10) + "\n\n"
		case time.Since(said) >= beat:
			event = ": here\n\n"
		}
		if event != "" {
			if _, err := io.WriteString(w, event); err != nil || out.Flush() != nil || ended != "" {
				return
			}
			told, said = version, time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// current is the version of what is shown, and why no later one comes.
func (p *Page) current() (version uint64, ended string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read(time.Now())
	return p.version, p.now.Ended
}

// save writes the records as JSON lines, which steer page opens.
func (p *Page) save(w http.ResponseWriter) {
	p.mu.Lock()
	p.read(time.Now())
	records := slices.Clone(p.model.Records())
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="records.jsonl"`)
	_ = trace.WriteJSON(w, slices.Values(records)) // it fails when the reader has gone
}
