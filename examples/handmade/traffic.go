// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package handmade

import (
	"context"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"

	v1 "github.com/steer-dev/steer/examples/handmade/api/example/v1"
	"github.com/steer-dev/steer/examples/handmade/client/clientset/versioned"
	typed "github.com/steer-dev/steer/examples/handmade/client/clientset/versioned/typed/example/v1"
)

// traffic is a clientset that prints the lists and watches of Greetings, and every
// event of a watch.
type traffic struct {
	versioned.Interface
	print func(format string, args ...any)

	mu      sync.Mutex
	expired chan struct{} // closed to end the watches that run
}

func newTraffic(c versioned.Interface, out func(string, ...any)) *traffic {
	return &traffic{Interface: c, print: out, expired: make(chan struct{})}
}

// expire ends the watches that run with the error that the server sends for a resource
// version that is too old. The reflector answers it with a list of everything.
func (t *traffic) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.expired)
	t.expired = make(chan struct{})
}

// failed prints why a list or watch failed, and what to do. The reflector tries again.
func (t *traffic) failed(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		t.print("the server has no Greetings; run: kubectl apply -f examples/handmade/config/crd/bases")
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		t.print("%v; this program needs get, list and watch of greetings, and update of greetings/status", err)
	case utilnet.IsConnectionRefused(err), utilnet.IsConnectionReset(err), utilnet.IsProbableEOF(err):
		t.print("the API server cannot be reached: start it, or correct the address in the kubeconfig; trying again: %v", err)
	default:
		t.print("list or watch failed, trying again: %v", err)
	}
}

func (t *traffic) ExampleV1() typed.ExampleV1Interface {
	return printedGroup{t.Interface.ExampleV1(), t}
}

type printedGroup struct {
	typed.ExampleV1Interface
	traffic *traffic
}

func (g printedGroup) Greetings(namespace string) typed.GreetingInterface {
	return printedGreetings{g.ExampleV1Interface.Greetings(namespace), g.traffic}
}

type printedGreetings struct {
	typed.GreetingInterface
	traffic *traffic
}

func (g printedGreetings) List(ctx context.Context, o metav1.ListOptions) (*v1.GreetingList, error) {
	list, err := g.GreetingInterface.List(ctx, o)
	if err != nil {
		g.traffic.failed(ctx, err)
		return nil, err
	}
	g.traffic.print("LIST from %q: %d at %s", o.ResourceVersion, len(list.Items), list.ResourceVersion)
	return list, nil
}

func (g printedGreetings) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := g.GreetingInterface.Watch(ctx, o)
	if err != nil {
		g.traffic.failed(ctx, err)
		return nil, err
	}
	initial := ""
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		initial = ", beginning with what there is"
	}
	g.traffic.print("WATCH from %q%s", o.ResourceVersion, initial)
	g.traffic.mu.Lock()
	defer g.traffic.mu.Unlock()
	p := &printedWatch{Interface: w, traffic: g.traffic, events: make(chan watch.Event), stopped: make(chan struct{})}
	go p.run(g.traffic.expired)
	return p, nil
}

// printedWatch passes the events of a watch on.
type printedWatch struct {
	watch.Interface
	traffic *traffic
	events  chan watch.Event
	stop    sync.Once
	stopped chan struct{}
}

func (p *printedWatch) ResultChan() <-chan watch.Event { return p.events }

func (p *printedWatch) Stop() {
	p.stop.Do(func() { close(p.stopped) })
	p.Interface.Stop()
}

func (p *printedWatch) run(expired <-chan struct{}) {
	defer close(p.events)
	defer p.Interface.Stop()
	for {
		var e watch.Event
		select {
		case <-p.stopped:
			return
		case <-expired:
			e = watch.Event{Type: watch.Error, Object: &metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
				Message: "too old resource version",
			}}
			expired = nil
		case next, open := <-p.Interface.ResultChan():
			if !open {
				p.traffic.print("end of the watch")
				return
			}
			e = next
		}
		p.show(e)
		select {
		case p.events <- e:
		case <-p.stopped:
			return
		}
	}
}

func (p *printedWatch) show(e watch.Event) {
	if e.Type == watch.Error {
		if status, ok := e.Object.(*metav1.Status); ok {
			p.traffic.print("  ERROR %d %s: %s", status.Code, status.Reason, status.Message)
		}
		return
	}
	obj, err := meta.Accessor(e.Object)
	switch {
	case err != nil:
		p.traffic.print("  %s", e.Type)
	case e.Type != watch.Bookmark:
		p.traffic.print("  %s %s/%s at %s", e.Type, obj.GetNamespace(), obj.GetName(), obj.GetResourceVersion())
	case obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		p.traffic.print("  BOOKMARK: that was what there is, at %s", obj.GetResourceVersion())
	default:
		p.traffic.print("  BOOKMARK: nothing else until %s", obj.GetResourceVersion())
	}
}
