// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/readiness"
	"github.com/steer-dev/steer/controller/internal/children"
	"github.com/steer-dev/steer/queue"
)

// Option adjusts a controller of objects; see [Add].
type Option interface{ apply(s *settings[Request]) }

// RequestOption is an [Option] that fits a controller of requests as well; see
// [AddRequests]. What is about objects (finalizers, owners, predicates of the
// reconciled kind) is none.
type RequestOption interface {
	Option
	set(c *common)
}

// objectOption is an Option, anyOption a RequestOption.
type (
	objectOption func(*settings[Request])
	anyOption    func(*common)
)

func (o objectOption) apply(s *settings[Request]) { o(s) }
func (o anyOption) apply(s *settings[Request])    { o(&s.common) }
func (o anyOption) set(c *common)                 { o(c) }

// TypedOption is an option of a reconciler of requests of type K: a source of
// requests, or the limiter of retries. Those of K = [Request] are an [Option].
type TypedOption[K comparable] interface {
	apply(s *settings[K])
	typed(K)
}

// Typed is the list of typed options that [AddRequests] takes.
func Typed[K comparable](options ...TypedOption[K]) []TypedOption[K] { return options }

// SourceOption is a source of requests of type K; see [Watches] and [From].
type SourceOption[K comparable] struct {
	open     func(sh *shared, deps Deps) (Source[K], error)
	priority int
}

func (o SourceOption[K]) apply(s *settings[K]) { s.sources = append(s.sources, o) }
func (o SourceOption[K]) typed(K)              {}

// Priority makes the requests of the source run before those of lower priority; see
// the function [Priority].
func (o SourceOption[K]) Priority(n int) SourceOption[K] {
	o.priority = n
	return o
}

// ObjectSource is a source of requests of a controller of objects; see [Owns],
// [OwnsKind] and [References].
type ObjectSource struct{ source SourceOption[Request] }

func (o ObjectSource) apply(s *settings[Request]) { o.source.apply(s) }

// Priority makes the requests of the source run before those of lower priority; see
// the function [Priority].
func (o ObjectSource) Priority(n int) ObjectSource {
	o.source.priority = n
	return o
}

func objectSource(open func(sh *shared, deps Deps) (Source[Request], error)) ObjectSource {
	return ObjectSource{SourceOption[Request]{open: open}}
}

// limiterOption is the TypedOption of RateLimiter.
type limiterOption[K comparable] struct{ limiter queue.Limiter[K] }

func (o limiterOption[K]) apply(s *settings[K]) { s.limiter = o.limiter }
func (o limiterOption[K]) typed(K)              {}

// common are the settings of all controllers. The zero value is the default.
type common struct {
	name        string
	concurrency int
	timeout     time.Duration
	backoff     queue.Backoff
	maxRetries  int
	fieldOwner  string
	// rate and burst of all retries together.
	rate       float64
	burst      int
	everywhere bool
}

// settings are what options set. The zero value is the default; those after limiter
// are of controllers of objects.
type settings[K comparable] struct {
	common
	sources []SourceOption[K]
	limiter queue.Limiter[K]

	gvk        schema.GroupVersionKind
	priority   int // of the reconciled kind's own events
	silent     bool
	failures   bool
	paused     string
	onGone     func(context.Context, Request) error
	finalizers []finalizer
	retired    []string
	where      []predicateOf
}

// predicateOf is a predicate that is typed where it is made.
type predicateOf struct {
	of   reflect.Type
	keep Predicate[client.Object]
}

// Name names the controller, in logs, metrics and as field manager. It must be
// unique in its manager. Without it the name is that of the kind, in lower case.
func Name(name string) Option { return objectOption(func(s *settings[Request]) { s.name = name }) }

// OfKind says which kind a reconciler of unstructured or metadata-only objects
// reconciles.
func OfKind(gvk schema.GroupVersionKind) Option {
	return objectOption(func(s *settings[Request]) { s.gvk = gvk })
}

// Concurrency is how many objects are reconciled at once; 1 without it.
func Concurrency(n int) RequestOption { return anyOption(func(s *common) { s.concurrency = n }) }

// Timeout bounds every call of the reconciler; its context ends then. There is
// no bound without it.
func Timeout(d time.Duration) RequestOption { return anyOption(func(s *common) { s.timeout = d }) }

// RateLimit sets the back-off of failures: base after the first, doubled up to
// limit. Without it, and for zeros, 5 ms and 5 minutes.
func RateLimit(base, limit time.Duration) RequestOption {
	return anyOption(func(s *common) { s.backoff = queue.Exponential(base, limit) })
}

// RetryRate bounds the retries of all objects together: perSecond of them, and a
// burst at once. It comes beside [RateLimit]: a retry waits for the longer of the two.
func RetryRate(perSecond float64, burst int) RequestOption {
	return anyOption(func(s *common) { s.rate, s.burst = perSecond, burst })
}

// RateLimiter sets how long retries wait, in place of the back-off of [RateLimit];
// with both, the longer one counts. K is [Request], or the type of the reconciler's
// requests. Rate limiters of client-go's workqueue fit.
func RateLimiter[K comparable](limiter queue.Limiter[K]) TypedOption[K] {
	return limiterOption[K]{limiter}
}

// Priority makes the requests that events of the reconciled kind make run before
// those of lower priority; the method Priority of a source (Owns, Watches, From) does
// it for those of the source. It is 0 without it, and is added to queue.LowPriority for
// what was there at the start. One point outweighs 100 ms of waiting, so that nothing
// starves.
func Priority(n int) Option { return objectOption(func(s *settings[Request]) { s.priority = n }) }

// FieldOwner owns the fields that the controller writes, in place of the
// controller's name: that of a former operator, whose fields are taken over.
func FieldOwner(name string) RequestOption {
	return anyOption(func(s *common) { s.fieldOwner = name })
}

// MaxRetries gives an object up after n retries in a row failed, until something
// changes. Without it retries never end.
func MaxRetries(n int) RequestOption { return anyOption(func(s *common) { s.maxRetries = n }) }

// OnEveryReplica runs the controller without leader election, for work that
// every replica of the operator does for itself.
func OnEveryReplica() RequestOption { return anyOption(func(s *common) { s.everywhere = true }) }

// Paused leaves objects alone while they carry the annotation with the value
// "true", which a user sets to work on one by hand: they are neither reconciled nor
// cleaned up, so that one which is deleted stays until it is resumed. OnGone is
// called all the same.
func Paused(annotation string) Option {
	return objectOption(func(s *settings[Request]) { s.paused = annotation })
}

// NoConditionEvents turns the events off that are emitted when an object becomes
// ready, ceases to be, or stalls: for controllers that emit their own.
func NoConditionEvents() Option { return objectOption(func(s *settings[Request]) { s.silent = true }) }

// OnGone is called instead of Reconcile when the object of a request does not
// exist any more, to forget what is remembered of it. It cannot rely on being
// called: the operator may not run when an object goes. Use Finalizer for
// cleanup that must happen.
func OnGone(fn func(ctx context.Context, req Request) error) Option {
	return objectOption(func(s *settings[Request]) { s.onGone = fn })
}

// Where filters the events of the reconciled kind itself. An event is dropped
// unless all predicates keep it.
func Where[T client.Object](predicates ...Predicate[T]) Option {
	keep := untyped(All(predicates...))
	return objectOption(func(s *settings[Request]) { s.where = append(s.where, predicateOf{reflect.TypeFor[T](), keep}) })
}

// untyped makes a typed predicate fit a source whose type is not known.
func untyped[T client.Object](p Predicate[T]) Predicate[client.Object] {
	return func(e Event[client.Object]) bool {
		typed, ok := retyped[T](e)
		return ok && p(typed)
	}
}

// Owns watches a kind of children and requests their controlling owner.
func Owns[T client.Object](predicates ...Predicate[T]) ObjectSource {
	keep := untyped(All(predicates...))
	return objectSource(func(sh *shared, deps Deps) (Source[Request], error) {
		obj, err := newObject[T]()
		if err != nil {
			return nil, err
		}
		return ownedKind(sh, deps, obj, keep)
	})
}

// OwnsKind is Owns for a kind without a Go type: the children are held as
// metadata only.
func OwnsKind(gvk schema.GroupVersionKind) ObjectSource {
	return objectSource(func(sh *shared, deps Deps) (Source[Request], error) {
		return ownedKind(sh, deps, client.NewMetadata(gvk), All[client.Object]())
	})
}

// ownedKind is the source of a kind of children. What is remembered of an owner is told
// of each child that appears, also of those whose events are not kept.
func ownedKind(sh *shared, deps Deps, obj client.Object, keep Predicate[client.Object]) (Source[Request], error) {
	sh.needScope = true
	sh.owned = append(sh.owned, obj)
	request := owner(sh.gvk.GroupKind(), &sh.scope)
	return Kind(deps.Informers, obj, request, func(e Event[client.Object]) bool {
		if e.Type != cache.Deleted && (e.Old == nil || children.ControllerOf(e.Old) != children.ControllerOf(e.Object)) {
			request(context.Background(), Event[client.Object]{Type: e.Type, Object: e.Object}, func(r Request) { sh.children.Appeared(r.NamespacedName) })
		}
		return keep(e)
	})
}

// Watches watches another kind and requests what the handler makes of its
// events:
//
//	controller.Watches(controller.Map(r.requestsForSecret))
func Watches[T client.Object, K comparable](handler Handler[T, K], predicates ...Predicate[T]) SourceOption[K] {
	return SourceOption[K]{open: func(sh *shared, deps Deps) (Source[K], error) {
		obj, err := newObject[T]()
		if err != nil {
			return nil, err
		}
		sh.pods = readiness.Pods(obj, deps.Client, sh.pods)
		return Kind(deps.Informers, obj, handler, predicates...)
	}}
}

// From takes requests from a source: [Channel], [Poll], a [Kind] of another
// cluster, or one of your own.
func From[K comparable](source Source[K]) SourceOption[K] {
	return SourceOption[K]{open: func(*shared, Deps) (Source[K], error) { return source, nil }}
}

// Finalizer makes the controller hold back the deletion of its objects until fn
// has cleaned up. The name is put on every object before it is first
// reconciled. Once the object is being deleted, fn is called instead of
// Reconcile, until it returns [Finalized]; then the name is taken off. Several
// finalizers run one after the other, in the order of the options. What fn
// changes in the status is written as for Reconcile.
func Finalizer[T client.Object](name string, fn func(ctx context.Context, obj T) (FinalizerResult, error)) Option {
	return objectOption(func(s *settings[Request]) {
		s.finalizers = append(s.finalizers, finalizer{
			name: name, of: reflect.TypeFor[T](),
			call: func(ctx context.Context, obj client.Object) (FinalizerResult, error) { return fn(ctx, obj.(T)) },
		})
	})
}

// RetiredFinalizer takes a finalizer that former versions of the operator used
// off every object that has it, without any cleanup.
func RetiredFinalizer(name string) Option {
	return objectOption(func(s *settings[Request]) { s.retired = append(s.retired, name) })
}

// newObject makes an empty object of a Go type.
func newObject[T client.Object]() (T, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		var none T
		return none, fmt.Errorf("%v is not a pointer to a Go type of a kind", t)
	}
	obj := reflect.New(t.Elem()).Interface().(T)
	switch client.Object(obj).(type) {
	case *metav1.PartialObjectMetadata:
		return obj, fmt.Errorf("%v does not say which kind is meant: use OwnsKind, or From with a Kind of client.NewMetadata(gvk)", t)
	case interface{ UnstructuredContent() map[string]any }:
		return obj, fmt.Errorf("%v does not say which kind is meant: use From with a Kind of client.NewUnstructured(gvk)", t)
	}
	return obj, nil
}
