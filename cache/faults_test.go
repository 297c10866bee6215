// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

func TestEveryRefusalIsSurvivedWithAdvice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer func() *http.Response
		advice string
	}{
		{"server down", broken, "unexpected EOF"},
		{"401", func() *http.Response { return refuse(401, metav1.StatusReasonUnauthorized, "no") }, "check the token or certificate"},
		{"403", func() *http.Response { return refuse(403, metav1.StatusReasonForbidden, "no") }, `grant it: a ClusterRole with {apiGroups: [""], resources: ["configmaps"], verbs: [get, list, watch]}`},
		{"404", func() *http.Response { return refuse(404, metav1.StatusReasonNotFound, "no") }, "discovery is asked again"},
		{"429", func() *http.Response { return refuse(429, metav1.StatusReasonTooManyRequests, "no") }, "shedding load"},
		{"500", func() *http.Response { return refuse(500, metav1.StatusReasonInternalError, "no") }, "in trouble"},
		{"503", func() *http.Response { return refuse(503, metav1.StatusReasonServiceUnavailable, "no") }, "in trouble"},
		{"not JSON", func() *http.Response {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("<html>"))}
		}, "invalid character"},
		{"truncated list", func() *http.Response {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"items":[{"metadata":`))}
		}, "unexpected EOF"},
	} {
		for _, when := range []string{"at start", "while running"} {
			t.Run(c.name+" "+when, func(t *testing.T) {
				var out lockedBuffer
				inBubble(t, cache.Options{Log: slog.New(slog.NewTextHandler(&out, nil))}, func(t *testing.T, r *rig) {
					r.server.Put("configmaps", "default", "a", v("1"), nil)
					var seen eventLog
					inf := r.informer(&corev1.ConfigMap{})
					inf.AddHandler(seen.handler)
					if when == "while running" {
						r.start()
						r.synced()
						synctest.Wait()
						seen.take()
						r.server.Put("configmaps", "default", "a", v("1.5"), nil)
						r.server.Compact() // what follows cannot be resumed
						r.server.SetFail(onCollections(c.answer))
						r.server.Cut(errors.New("reset"))
					} else {
						r.server.SetFail(onCollections(c.answer))
						r.start()
						ctx, cancel := context.WithTimeout(context.Background(), time.Second)
						defer cancel()
						err := r.cache.WaitForSync(ctx)
						if err == nil || !strings.Contains(err.Error(), c.advice) {
							t.Errorf("wait for sync: %v, want advice %q", err, c.advice)
						}
					}
					time.Sleep(2 * time.Second)
					if st := inf.Status(); st.Err == nil || !strings.Contains(st.Err.Error(), c.advice) {
						t.Errorf("status %+v, want advice %q", st, c.advice)
					}
					r.server.Put("configmaps", "default", "a", v("2"), nil)
					r.server.SetFail(nil)
					time.Sleep(2 * time.Minute)
					var cm corev1.ConfigMap
					if err := r.client.Get(context.Background(), key("a"), &cm); err != nil || cm.Data["v"] != "2" {
						t.Errorf("after recovery: %v, %v", cm.Data, err)
					}
					if st := inf.Status(); st.Err != nil || st.State != "watching" {
						t.Errorf("after recovery the status is %+v", st)
					}
					if !strings.Contains(out.String(), "watch is interrupted") || strings.Count(out.String(), "\n") > 8 {
						t.Errorf("the log should say what is wrong, once each:\n%s", out.String())
					}
				})
			})
		}
	}
}

// TestServerThatCannotBeReachedIsOneLine, however many kinds are watched; what is of one kind
// is a line of its own.
func TestServerThatCannotBeReachedIsOneLine(t *testing.T) {
	var out lockedBuffer
	inBubble(t, cache.Options{Log: slog.New(slog.NewTextHandler(&out, nil))}, func(t *testing.T, r *rig) {
		for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &corev1.Namespace{}} {
			r.informer(kind)
		}
		r.start()
		r.synced()
		synctest.Wait()
		for range 2 { // and another time
			r.server.SetFail(func(*http.Request) *http.Response { return broken() })
			r.server.Cut(io.ErrUnexpectedEOF)
			time.Sleep(time.Minute)
			r.server.SetFail(func(req *http.Request) *http.Response {
				if strings.Contains(req.URL.Path, "secrets") {
					return refuse(403, metav1.StatusReasonForbidden, "no")
				}
				return nil
			})
			time.Sleep(5 * time.Minute)
			r.server.SetFail(nil)
			time.Sleep(2 * time.Minute)
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if len(lines) != 4 {
				t.Fatalf("%d lines, want 4:\n%s", len(lines), out.String())
			}
			if refused := `"watch is interrupted" kind="/v1, Kind=Secret"`; strings.Contains(lines[1], refused) {
				lines[1], lines[2] = lines[2], lines[1] // which kind is the last to have an answer, is chance
			}
			for i, text := range []string{"cannot be reached", "is reached again", "Kind=Secret", `"watch is well again" kind="/v1, Kind=Secret"`} {
				if !strings.Contains(lines[i], text) {
					t.Errorf("line %d lacks %q: %s", i+1, text, lines[i])
				}
			}
			out.Reset()
		}
	})
}

// lockedBuffer collects a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestExpiredWatchIsListedAgainAndDeletionsAreInferred(t *testing.T) {
	for name, expire := range map[string]func(r *rig){
		"410 at opening": func(r *rig) {
			r.server.Compact()
			r.server.Cut(io.EOF)
		},
		"410 as an event": func(r *rig) {
			r.server.Send(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}}` + "\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
				r.server.Put("configmaps", "default", "a", v("1"), nil)
				r.server.Put("configmaps", "default", "b", v("1"), nil)
				var seen eventLog
				r.informer(&corev1.ConfigMap{}).AddHandler(seen.handler)
				r.start()
				r.synced()
				synctest.Wait()
				seen.take()
				r.server.Hold(true)
				r.server.Delete("configmaps", "default", "a")
				r.server.Put("configmaps", "default", "b", v("2"), nil)
				r.server.Put("configmaps", "default", "c", v("1"), nil)
				expire(r)
				time.Sleep(10 * time.Second)
				r.server.Hold(false)
				seen.expect(t, "updated default/b v=2", "added default/c v=1", "deleted default/a v=1 inferred")
			})
		})
	}
}

func TestRecreatedObjectIsADeletionAndAnAddition(t *testing.T) {
	inBubble(t, cache.Options{InitialSync: cache.SyncList}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		var seen eventLog
		r.informer(&corev1.ConfigMap{}).AddHandler(seen.handler)
		r.start()
		r.synced()
		synctest.Wait()
		seen.take()
		r.server.Hold(true)
		r.server.Delete("configmaps", "default", "a")
		r.server.Put("configmaps", "default", "a", v("2"), nil)
		r.server.Compact()
		r.server.Cut(io.EOF)
		time.Sleep(10 * time.Second)
		seen.expect(t, "deleted default/a v=1 inferred", "added default/a v=2")
	})
}

func TestMissingKindIsWaitedFor(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		inf := r.informer(client.NewUnstructured(widgetKind))
		var seen eventLog
		inf.AddHandler(seen.handler)
		r.start()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := r.cache.WaitForSync(ctx)
		const want = `cache of Widget has not synced: waiting for the kind to exist: find the resource of example.com/v1, Kind=Widget`
		if err == nil || !strings.Contains(err.Error(), "waiting for the kind to exist") || !strings.Contains(err.Error(), "install its CustomResourceDefinition") {
			t.Fatalf("got %v\nwant something like %s", err, want)
		}
		r.server.ServeWidgets(true)
		r.server.Put("widgets", "default", "w", v("1"), nil)
		r.synced()
		seen.expect(t, "added default/w initial")

		r.server.Hold(true) // the watch ends before it sends the deletion
		r.server.ServeWidgets(false)
		synctest.Wait() // else the watch is opened again while the kind is there, and sees the deletion
		r.server.Cut(io.EOF)
		time.Sleep(time.Minute)
		r.server.Hold(false)
		seen.expect(t, "deleted default/w inferred")
		if st := inf.Status(); st.State != "waiting for the kind to exist" {
			t.Fatalf("status %+v", st)
		}
		r.server.ServeWidgets(true)
		r.server.Put("widgets", "default", "again", v("1"), nil)
		time.Sleep(time.Minute)
		seen.expect(t, "added default/again")
	})
}

func TestSilentConnectionIsOpenedAnew(t *testing.T) {
	inBubble(t, cache.Options{IdleTimeout: time.Minute}, func(t *testing.T, r *rig) {
		var seen eventLog
		inf := r.informer(&corev1.ConfigMap{})
		inf.AddHandler(seen.handler)
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Hold(true) // the connection is dead without a sign
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		time.Sleep(50 * time.Second)
		if st := inf.Status(); st.Restarts != 0 {
			t.Fatalf("restarted too early: %+v", st)
		}
		time.Sleep(time.Minute)
		r.server.Hold(false)
		seen.expect(t, "added default/a v=1")
		if st := inf.Status(); st.Restarts == 0 || st.Relists != 0 {
			t.Fatalf("status %+v, want a restart and no relist", st)
		}
	})
}

func TestObjectThatDoesNotFitItsTypeIsNamed(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		inf := r.informer(&corev1.ConfigMap{})
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Send(`{"type":"ADDED","object":{"metadata":{"name":"x"},"data":5}}` + "\n")
		time.Sleep(100 * time.Millisecond)
		if st := inf.Status(); st.Err == nil || !strings.Contains(st.Err.Error(), "the Go type disagree") {
			t.Fatalf("status %+v", st)
		}
		time.Sleep(time.Minute)
		if st := inf.Status(); st.Err != nil {
			t.Fatalf("the watch has not recovered: %+v", st)
		}
	})
}

func TestPanickingHandlerLosesItsEventOnly(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		var seen eventLog
		inf := r.informer(&corev1.ConfigMap{})
		inf.AddHandler(func(cache.Event) { panic("oops") })
		inf.AddHandler(seen.handler)
		r.start()
		r.synced()
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		seen.expect(t, "added default/a v=1")
	})
}

// slowHandler has client-go's shape and waits for permission.
type slowHandler struct {
	gate chan struct{}
	mu   sync.Mutex
	log  []string
}

func (h *slowHandler) note(line string) {
	<-h.gate
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, line)
}

func (h *slowHandler) OnAdd(obj any, initial bool) {
	h.note("add " + obj.(*corev1.ConfigMap).Data["v"])
}
func (h *slowHandler) OnUpdate(_, obj any) { h.note("update " + obj.(*corev1.ConfigMap).Data["v"]) }
func (h *slowHandler) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		h.note("gone " + gone.Key)
		return
	}
	h.note("delete " + obj.(*corev1.ConfigMap).Data["v"])
}

func TestSlowForeignHandlerMergesUpdates(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		h := &slowHandler{gate: make(chan struct{})}
		var seen eventLog
		inf := r.informer(&corev1.ConfigMap{})
		registration := inf.AddEventHandler(h, cache.EventHandlerOptions{Buffer: 2})
		inf.AddHandler(seen.handler)
		r.start()
		r.synced()
		synctest.Wait()
		r.server.Put("configmaps", "default", "x", v("first"), nil)
		synctest.Wait() // the handler is busy with it
		for _, value := range []string{"1", "2", "3", "4", "5"} {
			r.server.Put("configmaps", "default", "a", v(value), nil)
		}
		synctest.Wait()
		if lines := seen.take(); len(lines) != 6 {
			t.Fatalf("our handler saw %v, want 6 events: a slow foreign one must not hold it back while merging helps", lines)
		}
		if registration.HasSynced() {
			t.Fatal("a handler with waiting events has synced")
		}
		close(h.gate)
		synctest.Wait()
		if got := strings.Join(h.log, ", "); got != "add first, add 1, update 5" {
			t.Fatalf("the handler saw %q", got)
		}
		if !registration.HasSynced() {
			t.Fatal("a handler without waiting events has not synced")
		}
	})
}

func TestStopEndsThoughAHandlerBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cache.Options{})
		h := &slowHandler{gate: make(chan struct{})}
		inf := r.informer(&corev1.ConfigMap{})
		inf.AddEventHandler(h, cache.EventHandlerOptions{Buffer: 1})
		r.start()
		r.synced()
		for _, name := range []string{"a", "b", "c", "d"} {
			r.server.Put("configmaps", "default", name, v("1"), nil)
		}
		synctest.Wait() // the committer waits for room
		start := time.Now()
		r.cache.Stop()
		if took := time.Since(start); took > time.Minute {
			t.Fatalf("stop took %s", took)
		}
		close(h.gate)
	})
}

func TestForbiddenKindNamesTheRule(t *testing.T) {
	inBubble(t, cache.Options{Namespaces: []string{"default"}}, func(t *testing.T, r *rig) {
		r.server.SetFail(onCollections(func() *http.Response {
			return refuse(403, metav1.StatusReasonForbidden, `configmaps is forbidden: User "u" cannot list resource "configmaps"`)
		}))
		inf := r.informer(&corev1.ConfigMap{})
		r.start()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := inf.WaitForSync(ctx)
		if !apierrors.IsForbidden(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v should be both: forbidden and the end of the wait", err)
		}
		if !strings.Contains(err.Error(), `a Role in default with {apiGroups: [""], resources: ["configmaps"]`) {
			t.Fatalf("%v does not name the rule", err)
		}
	})
}
