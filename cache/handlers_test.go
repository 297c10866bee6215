// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/cache"
)

// TestHandlersUseTheInformerThatCallsThem lets a handler add another one, take both
// out, and close the last hold, which ends the watch.
func TestHandlersUseTheInformerThatCallsThem(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		informer := r.informer(&corev1.ConfigMap{})
		r.start()
		var outer, inner cache.Registration
		var late eventLog
		outer = informer.AddHandler(func(e cache.Event) {
			switch {
			case e.Type == cache.Added && inner == nil:
				inner = informer.AddHandler(late.handler)
			case e.Type == cache.Updated && e.Object.(*corev1.ConfigMap).Data["v"] == "2":
				inner.Remove()
				outer.Remove()
			}
		})
		late.expect(t, "added default/a v=1 initial")
		if err := inner.WaitForSync(t.Context()); err != nil || !inner.HasSynced() {
			t.Errorf("a handler that a handler added is not synced: %v", err)
		}
		r.server.Put("configmaps", "default", "b", v("1"), nil)
		late.expect(t, "added default/b v=1")
		r.server.Put("configmaps", "default", "a", v("2"), nil)
		synctest.Wait()
		late.take() // the order of the two handlers decides whether it saw this one
		r.server.Put("configmaps", "default", "a", v("3"), nil)
		late.expect(t)

		closed := make(chan struct{})
		informer.AddHandler(func(cache.Event) {
			select {
			case <-closed:
			default:
				informer.Close()
				close(closed)
			}
		})
		r.server.Put("configmaps", "default", "a", v("4"), nil)
		<-closed
		synctest.Wait()
		if got := r.cache.Informers(); len(got) != 0 {
			t.Errorf("after the last hold was closed there are %d informers", len(got))
		}
	})
}

// TestARemovedHandlerIsWaitedFor shows that Wait returns when the last call has.
func TestARemovedHandlerIsWaitedFor(t *testing.T) {
	inBubble(t, cache.Options{}, func(t *testing.T, r *rig) {
		r.server.Put("configmaps", "default", "a", v("1"), nil)
		informer := r.informer(&corev1.ConfigMap{})
		r.start()
		synctest.Wait()
		called, goOn := make(chan struct{}), make(chan struct{})
		registration := informer.AddHandler(func(e cache.Event) {
			if e.Type == cache.Updated {
				close(called)
				<-goOn
			}
		})
		r.server.Put("configmaps", "default", "a", v("2"), nil)
		<-called
		registration.Remove()
		waited := make(chan struct{})
		go func() {
			registration.Wait()
			close(waited)
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("Wait returned during a call")
		default:
		}
		close(goOn)
		<-waited
		r.server.Put("configmaps", "default", "a", v("3"), nil)
		synctest.Wait() // a second call would close called again, and panic
	})
}
