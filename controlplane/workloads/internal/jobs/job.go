// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobs holds the controllers of Jobs and CronJobs.
package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const (
	jobController = step.KubeSystem + "job-controller"
	ttlController = step.KubeSystem + "ttl-after-finished-controller"
)

// Delays before a Pod that failed is replaced.
const (
	firstReplacement = 10 * time.Second
	lastReplacement  = 10 * time.Minute
)

// run is one look at a Job.
type run struct {
	*turn
	key  storage.Key
	self *cluster.Object
	j    *batchv1.Job
	// pods of the Job; active are those that have not ended.
	pods, active []*cluster.Object
	// numbers as they are after what this turn does.
	activeN, ready, terminating int32
	// succeeded and failed count all Pods that have, uncounted ones included.
	succeeded, failed int32
	// indexes that have succeeded, of an indexed Job, and those that have failed if
	// they have limits of their own.
	indexes, failedIndexes []int
	// verdicts on the Pods that have failed, once computed.
	verdicts map[types.UID]verdict
}

// Job requests the next changes of the Pods and the status of a Job.
func Job(common *cluster.Turn, key storage.Key) {
	t := &turn{common}
	self, j := t.Index.Objects[key], cluster.Stored[batchv1.Job](t.Turn, key)
	if self == nil || j == nil || j.Spec.ManagedBy != nil && *j.Spec.ManagedBy != batchv1.JobControllerName {
		return
	}
	if end := finishedAt(j); !end.IsZero() {
		t.expire(self, j, end)
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(j.Spec.Selector)
	if err != nil || selector.Empty() {
		return
	}
	r := &run{turn: t, key: key, self: self, j: j}
	r.pods = t.Claim(jobController, self, batchv1.SchemeGroupVersion.WithKind("Job"), cluster.Pods, selector)
	before := j.Status.DeepCopy()
	r.count()
	if j.Status.StartTime == nil && !r.suspended() {
		now := t.Stamp()
		j.Status.StartTime = &now
	}
	goal := r.goal()
	switch {
	case goal != nil:
		for _, p := range r.active {
			t.Delete(jobController, key, p, metav1.DeleteOptions{})
			t.TellDeletion(jobController, self, p)
			r.gone(p)
		}
	case !self.Deleting:
		r.manage()
		if goal = r.reached(); goal == nil {
			r.suspendOrResume()
		}
	}
	r.track(goal)
	j.Status.Active, j.Status.Ready, j.Status.Terminating = r.activeN, &r.ready, &r.terminating
	if !equality.Semantic.DeepEqual(before, &j.Status) {
		t.Update(jobController, key, "status", j)
		r.tell(before)
	}
}

// tell records Events of what has changed since a status.
func (r *run) tell(before *batchv1.JobStatus) {
	note := cluster.Note{User: jobController, About: r.key, UID: r.j.UID}
	was := func(kind batchv1.JobConditionType) corev1.ConditionStatus {
		for _, c := range before.Conditions {
			if c.Type == kind {
				return c.Status
			}
		}
		return ""
	}
	for _, c := range r.j.Status.Conditions {
		if was(c.Type) == c.Status {
			continue
		}
		note.Reason, note.Message, note.Warning = c.Reason, c.Message, false
		switch c.Type {
		case batchv1.JobComplete:
			note.Reason, note.Message = "Completed", "Job completed"
		case batchv1.JobFailed:
			note.Warning = true
		case batchv1.JobSuspended:
			note.Reason = strings.TrimPrefix(c.Reason, "Job")
		default:
			continue
		}
		r.Tell(note)
	}
}

func (r *run) suspended() bool { return r.j.Spec.Suspend != nil && *r.j.Spec.Suspend }

func (r *run) indexed() bool {
	return r.j.Spec.CompletionMode != nil && *r.j.Spec.CompletionMode == batchv1.IndexedCompletion
}

// uncounted returns the Pods in status.uncountedTerminatedPods.
func (r *run) uncounted() *batchv1.UncountedTerminatedPods {
	if r.j.Status.UncountedTerminatedPods == nil {
		r.j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	}
	return r.j.Status.UncountedTerminatedPods
}

// hasFailed reports whether a Pod counts as failed: by default as soon as it is
// being deleted.
func (r *run) hasFailed(p *cluster.Object) bool {
	early := r.j.Spec.PodReplacementPolicy == nil || *r.j.Spec.PodReplacementPolicy == batchv1.TerminatingOrFailed
	return p.Phase == corev1.PodFailed || early && p.Deleting && p.Phase != corev1.PodSucceeded
}

// count counts the Pods by what has become of them.
func (r *run) count() {
	u := r.uncounted()
	r.succeeded = r.j.Status.Succeeded + int32(len(u.Succeeded))
	r.failed = r.j.Status.Failed + int32(len(u.Failed))
	r.indexes = parseIndexes(r.j.Status.CompletedIndexes)
	for _, p := range r.pods {
		switch {
		case p.Active():
			r.active = append(r.active, p)
			r.activeN++
			if p.Ready {
				r.ready++
			}
		case p.Deleting && !p.Ended():
			r.terminating++
		}
		if !p.Tracked || slices.Contains(u.Succeeded, p.UID) || slices.Contains(u.Failed, p.UID) {
			continue
		}
		switch {
		case p.Phase == corev1.PodSucceeded && r.indexed():
			if p.Ordinal >= 0 && p.Ordinal < int(*r.j.Spec.Completions) && !slices.Contains(r.indexes, p.Ordinal) {
				r.indexes = append(r.indexes, p.Ordinal)
			}
		case p.Phase == corev1.PodSucceeded:
			r.succeeded++
		case r.hasFailed(p) && r.judge(p).action != batchv1.PodFailurePolicyActionIgnore:
			r.failed++
		}
	}
	if r.indexed() {
		slices.Sort(r.indexes)
		r.succeeded = int32(len(r.indexes))
	}
	r.countIndexes()
}

// gone removes a Pod that this step deletes from the counts.
func (r *run) gone(p *cluster.Object) {
	r.activeN--
	r.terminating++
	if p.Ready {
		r.ready--
	}
}

func jobCondition(j *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range j.Status.Conditions {
		if c := &j.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// finishedAt returns when a Job has completed or failed; the zero time if it
// has not.
func finishedAt(j *batchv1.Job) time.Time {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if c := jobCondition(j, kind); c != nil {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// goal returns the condition with which the Job is going to finish: one that
// it has already, or a failure; nil while it runs.
func (r *run) goal() *batchv1.JobCondition {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget} {
		if c := jobCondition(r.j, kind); c != nil {
			return c
		}
	}
	if message := r.failJob(); message != "" {
		return r.condition(batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonPodFailurePolicy, message)
	}
	restarts := int32(0)
	if r.j.Spec.Template.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		for _, p := range r.pods {
			if !p.Ended() {
				restarts += p.Restarts
			}
		}
	}
	limit := *r.j.Spec.BackoffLimit
	if r.failed > limit || restarts > 0 && restarts >= limit {
		return r.condition(batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	}
	if r.late() {
		return r.condition(batchv1.JobFailureTarget, corev1.ConditionTrue, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	}
	if c := r.tooManyIndexes(); c != nil {
		return c
	}
	return r.succeeds()
}

// late reports whether the Job has been active for too long.
func (r *run) late() bool {
	seconds := r.j.Spec.ActiveDeadlineSeconds
	if seconds == nil || r.suspended() || r.j.Status.StartTime == nil {
		return false
	}
	deadline := r.j.Status.StartTime.Add(time.Duration(*seconds) * time.Second)
	if deadline.After(r.Now) {
		r.Later(r.key, deadline)
		return false
	}
	return true
}

func (r *run) condition(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason, message string) *batchv1.JobCondition {
	return &batchv1.JobCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastProbeTime: r.Stamp(), LastTransitionTime: r.Stamp(),
	}
}

// reached returns the condition of success once there are enough successes.
func (r *run) reached() *batchv1.JobCondition {
	enough := r.succeeded > 0
	if r.j.Spec.Completions != nil {
		enough = r.succeeded >= *r.j.Spec.Completions
	}
	if !enough || r.activeN > 0 {
		return nil
	}
	return r.condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods")
}

// suspendOrResume updates the condition Suspended.
func (r *run) suspendOrResume() {
	i := slices.IndexFunc(r.j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobSuspended })
	was := i >= 0 && r.j.Status.Conditions[i].Status == corev1.ConditionTrue
	now := r.suspended()
	if was == now {
		return
	}
	c := r.condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
	start := r.Stamp()
	r.j.Status.StartTime = nil
	if !now {
		c = r.condition(batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
		r.j.Status.StartTime = &start
	}
	if i < 0 {
		r.j.Status.Conditions = append(r.j.Status.Conditions, *c)
		return
	}
	r.j.Status.Conditions[i] = *c
}

// manage creates Pods until as many are active as should be, or deletes the surplus.
func (r *run) manage() {
	want := *r.j.Spec.Parallelism
	switch {
	case r.suspended():
		want = 0
	case r.j.Spec.Completions == nil && r.succeeded > 0:
		want = r.activeN
	case r.j.Spec.Completions != nil:
		want = max(0, min(want, *r.j.Spec.Completions-r.succeeded-int32(len(r.failedIndexes))))
	}
	if r.activeN > want {
		slices.SortFunc(r.active, cluster.FirstToGo)
		for _, p := range r.active[:min(int(r.activeN-want), cluster.Burst)] {
			r.untrack(p) // it does not count as failed
			r.Delete(jobController, r.key, p, metav1.DeleteOptions{})
			r.TellDeletion(jobController, r.self, p)
			r.gone(p)
		}
		return
	}
	missing := want - r.activeN
	if policy := r.j.Spec.PodReplacementPolicy; policy != nil && *policy == batchv1.Failed {
		missing -= r.terminating
	}
	if missing <= 0 {
		return
	}
	if at := r.replacement(); at.After(r.Now) && !r.perIndex() {
		r.Later(r.key, at)
		return
	}
	for _, pod := range r.make(min(int(missing), cluster.Burst)) {
		r.Create(jobController, r.key, cluster.Pods, pod)
		r.TellFailure(jobController, r.self)
		if r.Failures[r.key] == "" { // after a failure the creation is unlikely to succeed
			r.activeN++
		}
	}
}

// replacement is when a Pod may be created after others have failed.
func (r *run) replacement() time.Time {
	ended := slices.DeleteFunc(slices.Clone(r.pods), func(p *cluster.Object) bool { return !p.Ended() || p.FinishedAt.IsZero() })
	slices.SortStableFunc(ended, func(a, b *cluster.Object) int {
		return cmp.Or(b.FinishedAt.Compare(a.FinishedAt), cmp.Compare(b.Created, a.Created))
	})
	var at time.Time
	delay := firstReplacement
	for i, p := range ended {
		if p.Phase == corev1.PodSucceeded {
			break
		}
		if i > 0 {
			delay = min(2*delay, lastReplacement)
		}
		at = ended[0].FinishedAt.Add(delay)
	}
	return at
}

// make returns n new Pods, or fewer if not enough indexes are left.
func (r *run) make(n int) []*corev1.Pod {
	var out []*corev1.Pod
	owner := cluster.Reference(batchv1.SchemeGroupVersion.WithKind("Job"), r.j.Name, r.j.UID)
	if !r.indexed() {
		for range n {
			pod := cluster.PodOf(&r.j.Spec.Template, r.j.Name+"-", owner)
			pod.Finalizers = append(slices.Clone(pod.Finalizers), batchv1.JobTrackingFinalizer)
			out = append(out, pod)
		}
		return out
	}
	taken := map[int]bool{}
	for _, i := range slices.Concat(r.indexes, r.failedIndexes) {
		taken[i] = true
	}
	for _, p := range r.active {
		taken[p.Ordinal] = true
	}
	for i := 0; i < int(*r.j.Spec.Completions) && len(out) < n; i++ {
		if taken[i] {
			continue
		}
		number := strconv.Itoa(i)
		pod := cluster.PodOf(&r.j.Spec.Template, r.j.Name+"-"+number+"-", owner)
		pod.Finalizers = append(slices.Clone(pod.Finalizers), batchv1.JobTrackingFinalizer)
		pod.Annotations = cluster.With(pod.Annotations, batchv1.JobCompletionIndexAnnotation, number)
		pod.Labels = cluster.With(pod.Labels, batchv1.JobCompletionIndexAnnotation, number)
		if r.perIndex() {
			if at := r.annotateFailures(pod, i); at.After(r.Now) {
				r.Later(r.key, at)
				continue
			}
		}
		pod.Spec.Hostname = r.j.Name + "-" + number
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for c := range list {
				list[c].Env = append(list[c].Env, corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"},
				}})
			}
		}
		out = append(out, pod)
	}
	return out
}

// untrack removes the finalizer from a Pod of the Job.
func (r *run) untrack(p *cluster.Object) {
	if p.Tracked {
		Release(r.Turn, r.key, p)
	}
}

// Release removes the finalizer from a Pod that its Job has counted, or whose Job does not exist.
func Release(t *cluster.Turn, about storage.Key, p *cluster.Object) {
	t.Patch(jobController, about, p.Key, map[string]any{"metadata": map[string]any{
		"uid": p.UID, "$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer},
	}})
	t.Requests[len(t.Requests)-1].ContentType = string(types.StrategicMergePatchType)
}

// track counts each Pod that has ended exactly once: its uid is first written to
// status.uncountedTerminatedPods, then its finalizer is removed, then it is counted. When all
// are counted, the Job finishes.
func (r *run) track(goal *batchv1.JobCondition) {
	noted := r.uncounted()
	held := map[types.UID]bool{} // by their finalizer
	for _, p := range r.pods {
		if p.Tracked {
			held[p.UID] = true
		}
	}
	settled := func(list []types.UID) (left []types.UID, n int32) {
		for _, uid := range list {
			if held[uid] {
				left = append(left, uid)
			} else {
				n++
			}
		}
		return left, n
	}
	var n, m int32
	noted.Succeeded, n = settled(noted.Succeeded)
	noted.Failed, m = settled(noted.Failed)
	r.j.Status.Succeeded += n
	r.j.Status.Failed += m
	failing := goal != nil && goal.Type == batchv1.JobFailureTarget
	waiting := false
	for _, p := range r.pods {
		if !p.Tracked {
			continue
		}
		known := slices.Contains(noted.Succeeded, p.UID) || slices.Contains(noted.Failed, p.UID)
		switch {
		case known, r.self.Deleting, p.Phase == corev1.PodSucceeded && r.indexed() && slices.Contains(parseIndexes(r.j.Status.CompletedIndexes), p.Ordinal):
			r.untrack(p)
		case p.Phase == corev1.PodSucceeded && !r.indexed():
			noted.Succeeded = append(noted.Succeeded, p.UID)
		case p.Phase != corev1.PodSucceeded && (r.hasFailed(p) || failing):
			if r.judge(p).action == batchv1.PodFailurePolicyActionIgnore {
				r.untrack(p)
			} else {
				noted.Failed = append(noted.Failed, p.UID)
			}
		case !p.Ended() && goal != nil: // the Job does not need it any more
			r.untrack(p)
		case !p.Ended():
			continue
		}
		waiting = true
	}
	if r.indexed() {
		r.j.Status.Succeeded, r.j.Status.CompletedIndexes = int32(len(r.indexes)), formatIndexes(r.indexes)
	}
	if r.perIndex() {
		failed := formatIndexes(r.failedIndexes)
		r.j.Status.FailedIndexes = &failed
	}
	if goal == nil {
		return
	}
	if jobCondition(r.j, goal.Type) == nil {
		r.j.Status.Conditions = append(r.j.Status.Conditions, *goal)
	}
	if waiting || r.terminating > 0 || len(noted.Succeeded)+len(noted.Failed) > 0 {
		return
	}
	last := r.condition(batchv1.JobFailed, corev1.ConditionTrue, goal.Reason, goal.Message)
	if !failing {
		last.Type = batchv1.JobComplete
		now := last.LastTransitionTime
		r.j.Status.CompletionTime = &now
	}
	r.j.Status.Conditions = append(r.j.Status.Conditions, *last)
}

// expire deletes a finished Job after its ttlSecondsAfterFinished.
func (t *turn) expire(self *cluster.Object, j *batchv1.Job, end time.Time) {
	if j.Spec.TTLSecondsAfterFinished == nil || self.Deleting {
		return
	}
	at := end.Add(time.Duration(*j.Spec.TTLSecondsAfterFinished) * time.Second)
	if at.After(t.Now) {
		t.Later(self.Key, at)
		return
	}
	foreground := metav1.DeletePropagationForeground
	t.Delete(ttlController, self.Key, self, metav1.DeleteOptions{PropagationPolicy: &foreground})
}

// formatIndexes writes sorted indexes as "0,2-4".
func formatIndexes(list []int) string {
	var out []string
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		switch last - i {
		case 0:
			out = append(out, strconv.Itoa(list[i]))
		case 1:
			out = append(out, strconv.Itoa(list[i]), strconv.Itoa(list[last]))
		default:
			out = append(out, fmt.Sprintf("%d-%d", list[i], list[last]))
		}
		i = last + 1
	}
	return strings.Join(out, ",")
}

// parseIndexes reads what formatIndexes has written.
func parseIndexes(text string) []int {
	var out []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for i := first; i <= last; i++ {
			out = append(out, i)
		}
	}
	return out
}

// turn is a step of the controllers of this package.
type turn struct{ *cluster.Turn }
