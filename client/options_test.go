// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// selected is what a list selects, in words.
type selected struct {
	Namespace, Labels, Fields, Continue, AtLeast, Err string
	Limit                                             int64
	Live                                              bool
}

func selects(o *client.ListOptions) selected {
	s := selected{Namespace: o.Namespace, Continue: o.Continue, AtLeast: o.AtLeast, Limit: o.Limit, Live: o.Live}
	if o.LabelSelector != nil {
		s.Labels = o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		s.Fields = o.FieldSelector.String()
	}
	if o.Err() != nil {
		s.Err = o.Err().Error()
	}
	return s
}

func TestListOptionsAddUp(t *testing.T) {
	t.Parallel()
	parsed := func(text string) labels.Selector {
		s, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, c := range map[string]struct {
		opts []client.ListOption
		want selected
	}{
		"none": {},
		"each": {
			opts: []client.ListOption{client.InNamespace("n"), client.Limit(3), client.Continue("c"), client.AtLeast("7"), client.Live, client.MatchingFields{"a": "b"}, client.MatchingLabels{"x": "y"}},
			want: selected{Namespace: "n", Limit: 3, Continue: "c", AtLeast: "7", Live: true, Fields: "a=b", Labels: "x=y"},
		},
		"selectors are joined": {
			opts: []client.ListOption{
				client.HasLabels{"h"}, client.MatchingLabels{"x": "y"}, client.MatchingLabelsSelector{Selector: parsed("z in (1,2)")},
				client.MatchingFields{"a": "b"}, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("c", "d")},
			},
			want: selected{Labels: "h,x=y,z in (1,2)", Fields: "a=b,c!=d"},
		},
		"one that selects everything changes nothing": {
			opts: []client.ListOption{client.HasLabels{"h"}, client.MatchingLabelsSelector{Selector: labels.Everything()}, client.MatchingLabelsSelector{}, client.MatchingFieldsSelector{}},
			want: selected{Labels: "h"},
		},
		"one that selects nothing stays": {
			opts: []client.ListOption{client.HasLabels{"h"}, client.MatchingLabelsSelector{Selector: labels.Nothing()}, client.HasLabels{"i"}},
			want: selected{Labels: ""},
		},
		"invalid label": {
			opts: []client.ListOption{client.MatchingLabels{"x": "not a value"}, client.HasLabels{"h"}},
			want: selected{Labels: "h", Err: `label selector x: values[0][x]: Invalid value: "not a value": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		},
		"a struct overwrites with what it sets": {
			opts: []client.ListOption{
				client.InNamespace("n"), client.Limit(3), client.HasLabels{"h"},
				&client.ListOptions{Continue: "c", LabelSelector: parsed("i"), FieldSelector: fields.OneTermEqualSelector("a", "b"), Live: true}, &client.ListOptions{Namespace: "m", Limit: 5, AtLeast: "8"},
			},
			want: selected{Namespace: "m", Limit: 5, Continue: "c", AtLeast: "8", Live: true, Labels: "h,i", Fields: "a=b"},
		},
	} {
		o := client.ResolveList(c.opts)
		if diff := cmp.Diff(c.want, selects(&o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	nothing := client.ResolveList([]client.ListOption{client.MatchingLabelsSelector{Selector: labels.Nothing()}, client.HasLabels{"i"}})
	if nothing.LabelSelector.Matches(labels.Set{"i": ""}) {
		t.Error("what selects nothing selects more with another option")
	}
}

func TestGetAndWriteOptionsAddUp(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(client.GetOptions{Live: true, AtLeast: "8"}, client.ResolveGet([]client.GetOption{client.Live, client.AtLeast("7"), &client.GetOptions{AtLeast: "8"}, &client.GetOptions{}})); diff != "" {
		t.Errorf("get (-want +got):\n%s", diff)
	}
	body := &corev1.Pod{}
	want := client.WriteOptions{DryRun: true, FieldOwner: "o", Validation: metav1.FieldValidationStrict, Force: true, SubResourceBody: body}
	opts := []client.WriteOption{client.DryRunAll, client.FieldOwner("o"), client.FieldValidation(metav1.FieldValidationStrict), client.ForceOwnership, client.WithSubResourceBody(body)}
	if diff := cmp.Diff(want, client.ResolveWrite(append(opts, &client.WriteOptions{}))); diff != "" {
		t.Errorf("write (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, client.ResolveWrite([]client.WriteOption{client.FieldOwner("p"), &want})); diff != "" {
		t.Errorf("a struct of write options (-want +got):\n%s", diff)
	}
}

func TestDeleteOptionsAddUp(t *testing.T) {
	t.Parallel()
	uid, version, seconds, policy := types.UID("u"), "7", int64(0), metav1.DeletePropagationOrphan
	want := client.DeleteOptions{DryRun: true, GracePeriodSeconds: &seconds, PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	of := client.PreconditionsOf(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, ResourceVersion: version}})
	got := client.ResolveDelete([]client.DeleteOption{client.DryRunAll, client.GracePeriodSeconds(0), client.PropagationPolicy(policy), of, &client.DeleteOptions{}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, client.ResolveDelete([]client.DeleteOption{client.GracePeriodSeconds(5), &want})); diff != "" {
		t.Errorf("a struct (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(client.Preconditions{}, client.PreconditionsOf(&corev1.Pod{})); diff != "" {
		t.Errorf("preconditions of an object that was not read (-want +got):\n%s", diff)
	}

	all := []client.DeleteAllOfOption{
		client.DryRunAll, client.GracePeriodSeconds(0), client.PropagationPolicy(policy), of,
		client.InNamespace("n"), client.MatchingLabels{"x": "y"}, client.HasLabels{"h"}, client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{"s": "t"})},
		client.MatchingFields{"a": "b"}, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("c", "d")},
	}
	listed := selected{Namespace: "n", Labels: "h,s=t,x=y", Fields: "a=b,c=d"}
	resolved := client.ResolveDeleteAllOf(all)
	again := client.ResolveDeleteAllOf([]client.DeleteAllOfOption{&resolved})
	parts := client.ResolveDeleteAllOf([]client.DeleteAllOfOption{&resolved.ListOptions, &resolved.DeleteOptions})
	for name, o := range map[string]client.DeleteAllOfOptions{"options": resolved, "a struct": again, "two structs": parts} {
		if diff := cmp.Diff(want, o.DeleteOptions); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(listed, selects(&o.ListOptions)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
