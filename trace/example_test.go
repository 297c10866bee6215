// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"fmt"
	"time"

	"github.com/steer-dev/steer/trace"
)

// A controller opens a record, clients of the API server note accesses,
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

// Code between Begin and End finds the open record in the context.
func ExampleFromContext() {
	recorder := trace.NewRecorder(trace.Options{})
	var record trace.Active
	recorder.Begin(&record, trace.Start{Controller: "fleet", Object: trace.Object{Kind: "Fleet", Name: "web"}, Causes: &trace.Causes{}})
	ctx := trace.NewContext(context.Background(), &record)

	// In a client:
	trace.FromContext(ctx).Note(trace.Access{Verb: trace.Get, Object: trace.Object{Kind: "Secret", Name: "token"}, Revision: "7"})

	record.End(trace.End{Outcome: trace.Done})
	for r := range recorder.Records() {
		fmt.Println(len(r.Reads), r.Reads[0].Verb, r.Reads[0].Object.Name)
	}
	// Output: 1 get token
}

// Follow yields records as they come, until its context ends.
func ExampleRecorder_Follow() {
	recorder := trace.NewRecorder(trace.Options{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	records := recorder.Follow(ctx) // what is written from here on
	go func() {
		for i := range 2 {
			var record trace.Active
			recorder.Begin(&record, trace.Start{Controller: "fleet", Object: trace.Object{Kind: "Fleet", Name: fmt.Sprint("web-", i)}, Causes: &trace.Causes{}})
			record.End(trace.End{Outcome: trace.Done})
		}
	}()
	for r := range records {
		fmt.Println(r.Object.Name, r.Outcome)
		if r.Object.Name == "web-1" {
			stop()
		}
	}
	// Output:
	// web-0 done
	// web-1 done
}
