// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

// recentBytes is how much of a directory of records a page begins with.
const recentBytes = 64 << 20

// NewPage returns the command page.
func NewPage() *cobra.Command {
	var o options
	address := ""
	cmd := &cobra.Command{
		Use:   "page [FILE|DIR|URL|pod/NAME|deploy/NAME]...",
		Short: "Show the page of an operator, or of what it has left",
		Long: `Serves a page on this machine, until it is interrupted, and prints its URL with a token:
what fails, is stuck or keeps itself busy, the attempts of each object and what caused
them, and what comes next. It shows the file that a failed test has left, a file of JSON
lines such as the page saves, a directory of --record-dir as it is written, or what a
running operator has at the moment: at the address of its --pprof-bind-address, or in a
Pod, reached by port-forward (deploy/NAME[:PORT], default port 6060). Without arguments:
the records of steer dev in the project.

Conditions, history and tree are read from the file of the test, or from the server that
--kubeconfig or --context names, or that has the Pod.`,
		Example: "  steer page /tmp/steer-1000/TestScales-123.jsonl\n  steer page /var/lib/shop/records\n  steer page deploy/shop -n shop-system",
		RunE: func(cmd *cobra.Command, args []string) error {
			page, err := o.page(cmd.Context(), args)
			if err != nil {
				return err
			}
			local, err := page.Listen(address)
			if err != nil {
				return fmt.Errorf("--address: %w", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), local.URL())
			return local.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that names the server of conditions, history and tree (default for Pods: as kubectl)")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig")
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of the Pods")
	flags.StringVar(&address, "address", "127.0.0.1:0", "address of this machine to serve on; port 0 picks a free one")
	return cmd
}

// page makes the page of places.
func (o *options) page(ctx context.Context, places []string) (*dashboard.Page, error) {
	own := len(places) == 0
	if own {
		if places = o.places(); len(places) == 0 {
			return nil, command.Usage("page: name a file, a directory of --record-dir, or deploy/NAME: there are no records of steer dev here")
		}
	}
	title := strings.Join(places, ", ")
	if len(places) == 1 && isVersions(places[0]) {
		file, rec, err := openFile(places[0])
		if err != nil {
			return nil, err
		}
		plane := &Plane{Connect: func(context.Context) (versions.Source, error) { return file, nil }, Records: rec.all}
		return dashboard.New(dashboard.Options{Title: filepath.Base(title), Objects: plane, Source: dashboard.Recording(rec.all, "A recording: the file of a test")}), nil
	}
	if slices.ContainsFunc(places, isVersions) {
		return nil, command.Usage("page: the file of a failed test has a page of its own: name it alone")
	}
	in := &pods{namespace: o.namespace}
	var plane *Plane
	if o.kubeconfig != "" || o.context != "" || own || anyPod(places) {
		config, err := o.config()
		switch {
		case err == nil:
			in.config, plane = config, NewPlane(config)
		case !own: // the records of a project are there without a server, too
			return nil, err
		}
	}
	rec, err := openRecords(ctx, places, in, func(error) {})
	if err != nil {
		return nil, err
	}
	rec.close() // what operators have at this moment was read
	byEnd(rec.all)
	made := dashboard.Options{Title: title}
	if len(rec.dirs) > 0 {
		made.Source = &tails{open: func() []*recording.Reader { return rec.dirs }, first: rec.all}
	} else {
		made.Source = dashboard.Recording(rec.all, "A recording, read at "+time.Now().Format(time.TimeOnly))
	}
	if plane != nil {
		plane.Records = rec.all
		for _, place := range places {
			if info, err := os.Stat(place); err == nil && info.IsDir() {
				plane.Dirs = append(plane.Dirs, place)
			}
		}
		made.Objects = plane
	}
	return dashboard.New(made), nil
}

func anyPod(places []string) bool {
	for _, place := range places {
		if _, err := os.Stat(place); err != nil && isPod(place) {
			return true
		}
	}
	return false
}

// isVersions reports whether a file says of itself that a failed test has left it.
func isVersions(name string) bool {
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	line, _ := bufio.NewReaderSize(file, 4<<10).ReadSlice('\n') // records have longer lines
	var head struct{ Format string }
	return json.Unmarshal(line, &head) == nil && head.Format != ""
}

// tails is a source of directories as they are written. Those that are not there yet are
// looked for again.
type tails struct {
	open    func() []*recording.Reader
	now     func() dashboard.Now
	first   []trace.Record
	tails   []*recording.Tail
	trouble []string // what could not be read, each once: a page looks again and again
}

// ProjectSource is a source of the records in a directory, which need not be there yet. now
// is what the operator does; nil: it is not known.
func ProjectSource(dir string, now func() dashboard.Now) dashboard.Source {
	return &tails{now: now, open: func() []*recording.Reader {
		reader, err := recording.Open(dir)
		if err != nil {
			return nil // the operator has not made it yet
		}
		return []*recording.Reader{reader}
	}}
}

// New implements [dashboard.Source].
func (t *tails) New() iter.Seq[trace.Record] {
	return func(yield func(trace.Record) bool) {
		for len(t.first) > 0 {
			record := t.first[0]
			if t.first = t.first[1:]; !yield(record) {
				return
			}
		}
		if t.tails == nil {
			for _, reader := range t.open() {
				t.tails = append(t.tails, reader.Tail(recentBytes))
			}
		}
		if len(t.tails) == 1 {
			t.read(t.tails[0], yield)
			return
		}
		var all []trace.Record
		for _, tail := range t.tails {
			t.read(tail, func(r trace.Record) bool { all = append(all, r); return true })
		}
		byEnd(all)
		for i := range all {
			if !yield(all[i]) {
				return
			}
		}
	}
}

// read yields what is new in a directory.
func (t *tails) read(tail *recording.Tail, yield func(trace.Record) bool) {
	for record, err := range tail.New() {
		switch {
		case err == nil:
			if !yield(record) {
				return
			}
		case !slices.Contains(t.trouble, err.Error()):
			t.trouble = append(t.trouble, err.Error())
		}
	}
}

// byEnd brings records of several operators into one order: what one did is seen to have caused
// what another did if it stands before.
func byEnd(records []trace.Record) {
	slices.SortStableFunc(records, func(a, b trace.Record) int { return a.Began.Add(a.Took).Compare(b.Began.Add(b.Took)) })
}

// Now implements [dashboard.Source].
func (t *tails) Now() (now dashboard.Now) {
	if t.now != nil {
		now = t.now()
	}
	if len(t.trouble) > 0 {
		now.Trouble = strings.Join(t.trouble, "\n")
	}
	return now
}
