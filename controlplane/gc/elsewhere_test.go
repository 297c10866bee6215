// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
)

const (
	lookForN   = "GET " + notesPath + "n: look for owner 1"
	deleteHere = "DELETE /api/v1/namespaces/a/configmaps/child: delete Background"
)

func expect(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestCollectorRequestsFollowFromObjectsOfOtherServers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		there []*metav1.PartialObjectMetadata
		here  func(*outside)
		want  string
	}{
		{"owner there lives", []*metav1.PartialObjectMetadata{note("a/n", "1")}, func(o *outside) { o.object("a/child", "2", ownedByNote("n", "1")) }, ""},
		{"owner that is not seen is asked for, and is absent", nil, func(o *outside) { o.object("a/child", "2", ownedByNote("n", "1")) },
			lookForN + "\n" + deleteHere},
		{"owner there has another uid", []*metav1.PartialObjectMetadata{note("a/n", "9")}, func(o *outside) { o.object("a/child", "2", ownedByNote("n", "1")) },
			lookForN + "\n" + deleteHere},
		{"owner there is in another namespace", []*metav1.PartialObjectMetadata{note("b/n", "1")}, func(o *outside) { o.object("a/child", "2", ownedByNote("n", "1")) },
			lookForN + "\n" + deleteHere},
		{"owner there whose name cannot be a part of a path", nil, func(o *outside) { o.object("a/child", "2", ownedByNote("../n", "1")) }, ""},
		{"cluster-scoped child of an owner there that has a namespace", nil, func(o *outside) { o.object("child", "2", ownedByNote("n", "1")) }, ""},
		{"owner there waits in the foreground", []*metav1.PartialObjectMetadata{note("a/n", "1", deleting(metav1.FinalizerDeleteDependents))}, func(o *outside) {
			o.object("a/child", "2", ownedByNote("n", "1"))
		}, "PATCH " + notesPath + "n: remove finalizer foregroundDeletion\n" + deleteHere},
		{"owner there is orphaning", []*metav1.PartialObjectMetadata{note("a/n", "1", deleting("x/y"))}, func(o *outside) {
			o.object("a/child", "2", ownedByNote("n", "1"))
			o.server.tell("MODIFIED", note("a/n", "1", deleting(metav1.FinalizerOrphanDependents)))
		}, "PATCH /api/v1/namespaces/a/configmaps/child: drop owners"},
		{"owner there lives beside an absent one", []*metav1.PartialObjectMetadata{note("a/n", "1")}, func(o *outside) {
			o.object("a/child", "2", ownedByNote("n", "1"), ownedByNote("m", "3"))
		}, "GET " + notesPath + "m: look for owner 3\nPATCH /api/v1/namespaces/a/configmaps/child: drop owners"},
		{"child there of an absent owner", []*metav1.PartialObjectMetadata{note("a/c", "2", ownedBy("owner", "1"))}, func(*outside) {},
			"DELETE " + notesPath + "c: delete Background"},
		{"child there of an absent owner, with finalizers of its own", []*metav1.PartialObjectMetadata{
			note("a/c", "2", ownedBy("owner", "1"), func(m *metav1.ObjectMeta) { m.Finalizers = []string{metav1.FinalizerOrphanDependents} }),
			note("a/d", "3", ownedBy("owner", "1"), func(m *metav1.ObjectMeta) { m.Finalizers = []string{metav1.FinalizerDeleteDependents} }),
		}, func(*outside) {}, "DELETE " + notesPath + "c: delete Orphan\nDELETE " + notesPath + "d: delete Foreground"},
		{"child there of an owner here that is orphaning", nil, func(o *outside) {
			o.object("a/owner", "1")
			o.settle()
			o.server.tell("ADDED", note("a/c", "2", ownedBy("owner", "1")))
			o.settle()
			o.object("a/owner", "1", deleting(metav1.FinalizerOrphanDependents))
		}, "PATCH " + notesPath + "c: drop owners"},
		{"circle there", []*metav1.PartialObjectMetadata{
			note("a/x", "1", deleting(metav1.FinalizerDeleteDependents), ownedByNote("y", "2")), note("a/y", "2", ownedByNote("x", "1")),
		}, func(*outside) {}, "PATCH " + notesPath + "y: unblock owners"},
		{"objects there without a uid, a namespace or a plain name", []*metav1.PartialObjectMetadata{
			note("a/c", "", ownedBy("owner", "1")), note("c", "2", ownedBy("owner", "1")), note("a/..", "3", ownedBy("owner", "1")),
		}, func(*outside) {}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t, test.there...)
				before := o.settle()
				test.here(o)
				expect(t, "requests", test.want, strings.Trim(before+"\n"+o.settle(), "\n"))
			})
		})
	}
}

func TestCollectorSendsOtherServersWhatItHasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t,
			note("a/c", "2", ownedBy("owner", "1")),
			note("a/d", "3", ownedBy("owner", "1"), func(m *metav1.ObjectMeta) { m.ResourceVersion = "" }),
			note("a/e", "4", deleting("x/y", metav1.FinalizerOrphanDependents)))
		o.settle()
		want := []string{
			"0s LIST", "0s WATCH 5",
			`0s DELETE ` + notesPath + `c {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"2","resourceVersion":"7"},"propagationPolicy":"Background"}`,
			`0s DELETE ` + notesPath + `d {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"3"},"propagationPolicy":"Background"}`,
			`0s PATCH ` + notesPath + `e {"metadata":{"finalizers":["x/y"],"resourceVersion":"7","uid":"4"}}`,
		}
		if diff := cmp.Diff(want, o.server.requests()); diff != "" {
			t.Errorf("the server was asked (-want +got):\n%s", diff)
		}
	})
}

// TestCollectorDeletesNothingOnDoubtfulAnswers: an owner is absent only if its server says so.
func TestCollectorDeletesNothingOnDoubtfulAnswers(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "example.org", Resource: "notes"}
	for name, answer := range map[string]error{
		"unavailable":                  apierrors.NewServiceUnavailable("later"),
		"forbidden":                    apierrors.NewForbidden(resource, "n", nil),
		"not found without details":    &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}},
		"not found under another name": apierrors.NewNotFound(resource, "m"),
		"no answer":                    errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t)
				o.settle()
				o.object("a/child", "2", ownedByNote("n", "1"))
				o.server.refuses("GET ", answer)
				expect(t, "requests", lookForN, o.settle())
				o.pass(time.Second - 1)
				expect(t, "requests before the second is over", "", o.settle())
				o.server.refuses("", nil)
				o.pass(1)
				expect(t, "requests once the server answers", lookForN+"\n"+deleteHere, o.settle())
			})
		})
	}
}

func TestCollectorRetriesAnswersThatAreNoObject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t)
		o.settle()
		o.server.replace(note("a/n", "1"))
		o.object("a/child", "2", ownedByNote("n", "1"))
		o.server.answers(func(s *server) { s.instead = note("a/", "1") })
		expect(t, "requests", lookForN, o.settle())
		o.server.answers(func(s *server) { s.instead = nil })
		o.pass(time.Second)
		expect(t, "requests for the object itself", lookForN, o.settle())
	})
}

func TestCollectorRetriesWithGrowingDelays(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"refused": false, "not sent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t, note("a/c", "2", ownedBy("owner", "1")))
				request := "DELETE " + notesPath + "c"
				if lost {
					o.lost = map[string]error{request: errors.New("no sender")}
				} else {
					o.server.refuses("DELETE", apierrors.NewConflict(schema.GroupResource{Resource: "notes"}, "c", nil))
				}
				expect(t, "requests", request+": delete Background", o.settle())
				var delays []time.Duration
				for range 8 {
					at := o.collector.Wake()
					delays = append(delays, time.Until(at))
					o.pass(time.Until(at))
					expect(t, fmt.Sprintf("requests after %v", delays), request+": delete Background", o.settle())
				}
				const s = time.Second
				if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s}; !slices.Equal(want, delays) {
					t.Errorf("delays %v, want %v", delays, want)
				}
				o.lost = nil
				o.server.refuses("", nil)
				o.pass(time.Minute)
				expect(t, "requests", request+": delete Background", o.settle())
				if at := o.collector.Wake(); !at.IsZero() {
					t.Errorf("it wakes in %v although the request succeeded", time.Until(at))
				}
			})
		})
	}
}

func TestCollectorTakesNotFoundForSuccessOfAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t, note("a/c", "2", ownedBy("owner", "1")))
		o.server.refuses("DELETE", apierrors.NewNotFound(schema.GroupResource{Resource: "notes"}, "c"))
		expect(t, "requests", "DELETE "+notesPath+"c: delete Background", o.settle())
		if at := o.collector.Wake(); !at.IsZero() {
			t.Errorf("it wakes in %v", time.Until(at))
		}
	})
}

// TestCollectorForgetsWhatIsNoLongerServed: what it does not see any more is not absent.
func TestCollectorForgetsWhatIsNoLongerServed(t *testing.T) {
	t.Parallel()
	later := notes()
	later.Version = "v2"
	unseen := notes()
	unseen.Verbs = []string{"get", "list", "delete"}
	for _, test := range []struct {
		name string
		then func(*catalog)
		// watched is what the server is asked when the catalog changes, want what is asked for
		// when the owner goes afterwards.
		watched []string
		want    string
	}{
		{"resource gone", func(c *catalog) { c.serve(nil) }, nil, ""},
		{"version stale", func(c *catalog) { c.serve(nil, schema.GroupVersion{Group: "example.org", Version: "v1"}) }, nil, ""},
		{"another version stale", func(c *catalog) { c.serve(nil, schema.GroupVersion{Group: "example.org", Version: "v2"}) }, nil, ""},
		{"same again", func(c *catalog) { c.serve([]step.Resource{notes()}) }, nil, lookForN + "\n" + deleteHere},
		{"other version", func(c *catalog) {
			c.serve([]step.Resource{later})
			c.others.Kinds[schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Note"}] = 0
		}, []string{"0s LIST", "0s WATCH 5"}, strings.Replace(lookForN, "v1", "v2", 1) + "\n" + deleteHere},
		{"cannot be watched", func(c *catalog) { c.serve([]step.Resource{unseen}) }, nil, lookForN + "\n" + deleteHere},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutside(t, note("a/n", "1"))
				o.settle()
				o.object("a/child", "2", ownedByNote("n", "1"))
				expect(t, "requests", "", o.settle())
				o.server.requests()
				test.then(o.catalog)
				expect(t, "requests after the change", "", o.settle())
				if diff := cmp.Diff(test.watched, o.server.requests()); diff != "" {
					t.Errorf("the server was asked (-want +got):\n%s", diff)
				}
				o.server.tell("DELETED", note("a/n", "1"))
				o.object("a/child", "2", ownedByNote("n", "1"), func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"x": "y"} })
				expect(t, "requests", test.want, o.settle())
			})
		})
	}
}

func TestCollectorLooksAgainWhenAResourceIsServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t)
		o.catalog.serve(nil)
		o.object("a/child", "2", ownedByNote("n", "1"))
		expect(t, "requests while the kind is not served", "", o.settle())
		o.catalog.serve([]step.Resource{notes()})
		expect(t, "requests once it is", lookForN+"\n"+deleteHere, o.settle())
	})
}

// TestCollectorKeepsWhatItHasSeenOverAReset, as mirrors go on.
func TestCollectorKeepsWhatItHasSeenOverAReset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t, note("a/n", "1"), note("a/c", "2", ownedBy("owner", "3")))
		o.object("a/owner", "3")
		o.object("a/child", "4", ownedByNote("n", "1"))
		o.settle()
		o.gone("a/owner")
		if _, err := o.cursor.Poll(); err != nil { // it sees the deletion in the snapshot alone
			t.Fatal(err)
		}
		o.collector.Reset(o.store.Latest())
		expect(t, "requests", "DELETE "+notesPath+"c: delete Background", o.settle())
	})
}

func TestCollectorSignalsWhatOtherServersChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t)
		o.settle()
		o.server.tell("ADDED", note("a/n", "1"))
		synctest.Wait()
		if signals := o.signals.Load(); signals != 2 {
			t.Errorf("%d signals, want one for the list and one for the object", signals)
		}
		o.step()
		if at := o.collector.Wake(); at.IsZero() || at.After(time.Now()) {
			t.Errorf("it wakes at %v, want at once", at)
		}
		o.step()
		if at := o.collector.Wake(); !at.IsZero() {
			t.Errorf("it wakes at %v although nothing is left", at)
		}
	})
}

func TestCollectorLooksAgainAtWhatThisServerRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.object("a/child", "2", ownedBy("owner", "1"))
	w.catchUp()
	first := w.collector.Sync(w.store.Latest(), time.Time{})
	expect(t, "requests", deleteHere, render(first))
	w.object("a/child", "2", ownedBy("owner", "1"), ownedBy("other", "3"))
	w.catchUp()
	expect(t, "requests while one is under way", "", render(w.collector.Sync(w.store.Latest(), time.Time{})))
	w.collector.Done(first[0], errors.New("conflict"))
	expect(t, "requests after it is refused", deleteHere, w.requests())
	expect(t, "requests after it succeeds", "", w.requests())
}

func TestCollectorPartEndsItsWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutside(t)
		p := o.collector.Component()
		if p.Name != "garbage-collector-controller" {
			t.Errorf("the part is named %q", p.Name)
		}
		o.settle()
		p.Close()
		p.Close()
		o.server.requests()
		o.catalog.serve([]step.Resource{notes()})
		o.object("a/child", "2", ownedBy("owner", "1"))
		expect(t, "requests", deleteHere, o.step())
		o.pass(time.Hour)
		if got := o.server.requests(); len(got) > 0 {
			t.Errorf("the server was asked %q after the end", got)
		}
	})
}
