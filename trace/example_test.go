// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"fmt"
	"time"

	"github.com/steer-dev/steer/trace"
)

// A controller opens a record, whoever talks to the API server notes accesses,
// and the controller closes it.
func ExampleRecorder() {
	recorder := trace.NewRecorder(trace.Options{})
	var causes trace.Causes
	causes.Add(trace.Cause{Type: trace.Deleted, Object: trace.Object{Kind: "Pod", Namespace: "default", Name: "web-1"}, Revision: "44"})

	var record trace.Active
	recorder.Begin(&record, trace.Start{
		Controller: "fleet", Object: trace.Object{Group: "example.com", Kind: "Fleet", Namespace: "default", Name: "web"}, Causes: &causes,
	})
	record.Note(trace.Access{Verb: trace.List, Object: trace.Object{Kind: "Pod", Namespace: "default"}, Revision: "44", Items: 2})
	record.Note(trace.Access{Verb: trace.Create, Object: trace.Object{Kind: "Pod", Namespace: "default", Name: "web-1"}, Revision: "45"})
	record.End(trace.End{Outcome: trace.Done, Took: 3 * time.Millisecond})

	for r := range recorder.Records() {
		fmt.Println(r)
	}
	// Output: fleet default/web: deleted Pod default/web-1@44 -> list Pod@44[2] -> create Pod default/web-1@45 -> done in 3ms
}
