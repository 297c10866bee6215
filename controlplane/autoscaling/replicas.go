// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"errors"
	"fmt"
	"math"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// tolerances are how much the use may differ from the target before anything is scaled, as
// fractions.
type tolerances struct{ up, down float64 }

const defaultTolerance = 0.1

func tolerancesOf(behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) tolerances {
	t := tolerances{defaultTolerance, defaultTolerance}
	if behavior == nil {
		return t
	}
	if r := behavior.ScaleUp; r != nil && r.Tolerance != nil {
		t.up = r.Tolerance.AsApproximateFloat64()
	}
	if r := behavior.ScaleDown; r != nil && r.Tolerance != nil {
		t.down = r.Tolerance.AsApproximateFloat64()
	}
	return t
}

// allow reports whether a ratio of use to target is near enough to 1.
func (t tolerances) allow(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// calculation is how many replicas a metric calls for.
type calculation struct {
	current    int32 // replicas of the target's specification
	pods       []*corev1.Pod
	tolerances tolerances
	now        time.Time
}

// Periods in which the use of CPU by a Pod does not tell what it will be.
const (
	initialization   = 5 * time.Minute
	initialReadiness = 30 * time.Second
)

// groups are Pods by what their metrics are good for.
type groups struct {
	ready            int
	unready, missing []string // without a use that counts; without a sample
}

// group sorts the Pods, and removes the samples of those that do not count.
func (c *calculation) group(samples map[string]sample, resource corev1.ResourceName) groups {
	var g groups
	for _, p := range c.pods {
		s, measured := samples[p.Name]
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
			delete(samples, p.Name)
		case p.Status.Phase == corev1.PodPending:
			delete(samples, p.Name)
			g.unready = append(g.unready, p.Name)
		case !measured:
			g.missing = append(g.missing, p.Name)
		case resource == corev1.ResourceCPU && c.starting(p, s):
			delete(samples, p.Name)
			g.unready = append(g.unready, p.Name)
		default:
			g.ready++
		}
	}
	return g
}

// starting reports whether the CPU that a Pod uses is that of its start, or the Pod has never
// been ready.
func (c *calculation) starting(p *corev1.Pod, s sample) bool {
	ready := readiness(p)
	if ready == nil || p.Status.StartTime == nil {
		return true
	}
	began, changed := p.Status.StartTime.Time, ready.LastTransitionTime.Time
	unready := ready.Status == corev1.ConditionFalse
	if began.Add(initialization).After(c.now) {
		return unready || s.at.Before(changed.Add(s.window))
	}
	return unready && began.Add(initialReadiness).After(changed)
}

func readiness(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c
		}
	}
	return nil
}

var (
	errNoPods    = errors.New("no pods returned by selector while calculating replica count")
	errNoSamples = errors.New("did not receive metrics for targeted pods (pods might be unready)")
)

// average is a use per Pod, in thousandths, and in per cent of what Pods request.
type average struct {
	value   int64
	percent int32
}

// perPod returns the replicas that samples of Pods call for. ratio returns the use in
// proportion to the target; assumed is the use of Pods without samples where fewer
// replicas are called for.
func (c *calculation) perPod(
	samples map[string]sample, resource corev1.ResourceName,
	ratio func(map[string]sample) (float64, average, error), assumed func(pod string) int64,
) (int32, average, error) {
	if len(c.pods) == 0 {
		return 0, average{}, errNoPods
	}
	g := c.group(samples, resource)
	if len(samples) == 0 {
		return 0, average{}, errNoSamples
	}
	is, use, err := ratio(samples)
	if err != nil {
		return 0, average{}, err
	}
	rising := is > 1
	if len(g.missing) == 0 && !(rising && len(g.unready) > 0) {
		if c.tolerances.allow(is) {
			return c.current, use, nil
		}
		return ceil(is * float64(g.ready)), use, nil
	}
	// Pods without a use that counts hold the change back.
	for _, pod := range g.missing {
		switch {
		case rising:
			samples[pod] = sample{}
		case is < 1:
			samples[pod] = sample{value: assumed(pod)}
		}
	}
	if rising {
		for _, pod := range g.unready {
			samples[pod] = sample{}
		}
	}
	damped, _, err := ratio(samples)
	if err != nil {
		return 0, use, err
	}
	replicas := ceil(damped * float64(len(samples)))
	switch {
	case c.tolerances.allow(damped), rising && damped < 1, is < 1 && damped > 1,
		damped < 1 && replicas > c.current, damped > 1 && replicas < c.current:
		return c.current, use, nil
	}
	return replicas, use, nil
}

// plain returns the replicas for a use per Pod, in thousandths.
func (c *calculation) plain(samples map[string]sample, resource corev1.ResourceName, target int64) (int32, average, error) {
	ratio := func(samples map[string]sample) (float64, average, error) {
		total := int64(0)
		for _, s := range samples {
			total += s.value
		}
		use := total / int64(len(samples))
		return float64(use) / float64(target), average{value: use}, nil
	}
	return c.perPod(samples, resource, ratio, func(string) int64 { return target })
}

// utilization returns the replicas for a use in per cent of what Pods request, or one of
// their containers does.
func (c *calculation) utilization(samples map[string]sample, resource corev1.ResourceName, container string, target int32) (int32, average, error) {
	var requests map[string]int64
	ratio := func(samples map[string]sample) (float64, average, error) {
		if requests == nil {
			var err error
			if requests, err = requestsOf(c.pods, container, resource); err != nil {
				return 0, average{}, err
			}
		}
		var used, requested, pods int64
		for pod, s := range samples {
			if request, known := requests[pod]; known {
				used, requested, pods = used+s.value, requested+request, pods+1
			}
		}
		if requested == 0 {
			return 0, average{}, errors.New("no metrics returned matched known pods")
		}
		percent := int32(used * 100 / requested) // as wide as the field of the status
		return float64(percent) / float64(target), average{value: used / pods, percent: percent}, nil
	}
	return c.perPod(samples, resource, ratio, func(pod string) int64 { return requests[pod] * int64(max(100, target)) / 100 })
}

// whole returns the replicas for a value of all Pods together.
func (c *calculation) whole(value, target int64) (int32, error) {
	ratio := float64(value) / float64(target)
	switch {
	case c.current == 0:
		return ceil(ratio), nil
	case c.tolerances.allow(ratio):
		return c.current, nil
	case len(c.pods) == 0:
		return 0, fmt.Errorf("unable to calculate ready pods: %w", errNoPods)
	}
	ready := 0
	for _, p := range c.pods {
		if r := readiness(p); p.Status.Phase == corev1.PodRunning && r != nil && r.Status == corev1.ConditionTrue {
			ready++
		}
	}
	return ceil(ratio * float64(ready)), nil
}

// shared returns the replicas for a value that all Pods share, and the value per Pod.
func (c *calculation) shared(value, target int64, running int32) (int32, int64) {
	replicas := running
	if !c.tolerances.allow(float64(value) / (float64(target) * float64(running))) {
		replicas = ceil(float64(value) / float64(target))
	}
	if value == math.MaxInt64 || running == 0 {
		return replicas, math.MaxInt64
	}
	return replicas, int64(math.Ceil(float64(value) / float64(running)))
}

// ceil rounds up to a number of replicas.
func ceil(replicas float64) int32 {
	return int32(min(math.Ceil(replicas), math.MaxInt32))
}

// sum adds values up, to the greatest number at most.
func sum(values []int64) int64 {
	total := int64(0)
	for _, v := range values {
		if v > 0 && total > math.MaxInt64-v {
			return math.MaxInt64
		}
		total += v
	}
	return total
}

// requestsOf returns what each Pod requests of a resource, or what one of its containers
// does, in thousandths.
func requestsOf(pods []*corev1.Pod, container string, resource corev1.ResourceName) (map[string]int64, error) {
	out := make(map[string]int64, len(pods))
	for _, p := range pods {
		request, err := requestOf(p, container, resource)
		if err != nil {
			return nil, err
		}
		out[p.Name] = request
	}
	return out, nil
}

func requestOf(p *corev1.Pod, container string, resource corev1.ResourceName) (int64, error) {
	if own := p.Spec.Resources; container == "" && own != nil && len(own.Requests) > 0 {
		request, ok := own.Requests[resource]
		if !ok {
			return 0, fmt.Errorf("missing pod-level request for %s in Pod %s", resource, p.Name)
		}
		return request.MilliValue(), nil
	}
	total, found := int64(0), false
	each := func(c *corev1.Container) error {
		if container != "" && c.Name != container || container != "" && found {
			return nil
		}
		request, ok := c.Resources.Requests[resource]
		if !ok {
			return fmt.Errorf("missing request for %s in container %s of Pod %s", resource, c.Name, p.Name)
		}
		total, found = total+request.MilliValue(), true
		return nil
	}
	for i := range p.Spec.Containers {
		if err := each(&p.Spec.Containers[i]); err != nil {
			return 0, err
		}
	}
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			continue
		}
		if err := each(c); err != nil {
			return 0, err
		}
	}
	if container != "" && !found {
		return 0, fmt.Errorf("container %s not found in Pod %s", container, p.Name)
	}
	return total, nil
}
