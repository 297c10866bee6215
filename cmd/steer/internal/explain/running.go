// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/steer-dev/steer/trace"
)

const (
	// reconciles is the path of the records. The header of an answer says where they are, in
	// memory or in memory and files, and how many about an object were left out.
	reconciles    = "/debug/reconciles"
	recordsHeader = "Steer-Records"
	leftOutHeader = "Steer-Left-Out"
)

// operator is one that runs, and is asked for its records.
type operator struct {
	client *http.Client
	url    string
	name   string // in errors
	files  bool   // it has records in files, too; known after the first answer
	close  func()
	// why completes the error of a request; nil leaves it.
	why func(ctx context.Context, err error) error
}

// ask returns the records that the operator has in memory; with objects, of one kind, those
// about them, of its files, too. If some were left out, there are records and an error.
func (o *operator) ask(ctx context.Context, objects ...trace.Object) ([]trace.Record, error) {
	address := o.url
	if len(objects) > 0 {
		about := url.Values{"group": {objects[0].Group}, "kind": {objects[0].Kind}, "namespace": {objects[0].Namespace}}
		for _, object := range objects {
			about.Add("name", object.Name)
		}
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		address += separator + about.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := o.client.Do(request)
	if err != nil {
		if o.why != nil {
			return nil, fmt.Errorf("records: %s: %w", o.name, o.why(ctx, err))
		}
		return nil, fmt.Errorf("records: %w: an operator serves them with --pprof-bind-address", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("records: %s: %s: is it the address of --pprof-bind-address?", o.name, answer.Status)
	}
	o.files = answer.Header.Get(recordsHeader) == "memory, files"
	found, err := read(answer.Body, o.name)
	if left := answer.Header.Get(leftOutHeader); err == nil && left != "" && left != "0" {
		err = fmt.Errorf("records: %s: the oldest %s about %s are left out, since there are so many", o.name, left, subjects(objects))
	}
	return found, err
}

// subjects names objects in a few words.
func subjects(objects []trace.Object) string {
	if len(objects) == 1 {
		return objects[0].String()
	}
	return fmt.Sprintf("%s and %d others", objects[0], len(objects)-1)
}
