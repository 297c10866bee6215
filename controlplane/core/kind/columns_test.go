// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestColumnsReadTypeAndPriorityFromNames(t *testing.T) {
	t.Parallel()
	var got []string
	for _, c := range Columns("Name", "Ready", "Desired:integer", "Images*", "Node:name*", "Age", "Name*", "Age:date", "Name:string") {
		got = append(got, fmt.Sprintf("%s %s %q %d", c.Name, c.Type, c.Format, c.Priority))
	}
	want := []string{
		`Name string "name" 0`, `Ready string "" 0`, `Desired integer "" 0`, `Images string "" 1`, `Node string "name" 1`, `Age string "" 0`,
		`Name string "name" 1`, `Age date "" 0`, `Name string "" 0`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("columns are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestColumnsAreDescribedByTheFieldsThatTheyShow(t *testing.T) {
	t.Parallel()
	docs := columnDocs()
	if got, want := docs["Pod/Node"], (corev1.PodSpec{}).SwaggerDoc()["nodeName"]; got != want || want == "" {
		t.Errorf("the node of a Pod is described as %q, want %q", got, want)
	}
	for column, text := range docs {
		if kind, name, ok := strings.Cut(column, "/"); text == "" || !ok || kind == "" || name == "" {
			t.Errorf("column %q is described as %q", column, text)
		}
	}
	// A kind takes the description unless it has one of its own.
	r := Definition[corev1.ConfigMap, *corev1.ConfigMap]{
		Version: "v1", Plural: "configmaps", Columns: append(Columns("Name", "Data:integer"), metav1.TableColumnDefinition{Name: "Data", Description: "own"}),
		Row: func(c *corev1.ConfigMap) []any { return []any{c.Name, int64(len(c.Data))} },
	}.Resource()
	columns := r.Versions[0].Printer.Columns()
	if columns[1].Description != docs["ConfigMap/Data"] || columns[2].Description != "own" {
		t.Errorf("columns are described as %q and %q", columns[1].Description, columns[2].Description)
	}
	cells, err := r.Versions[0].Printer.Cells(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"a": "b"}})
	if err != nil || fmt.Sprint(cells) != "[c 1]" {
		t.Errorf("cells are %v: %v", cells, err)
	}
}

func TestCellsShowValuesAsKubectlDoes(t *testing.T) {
	t.Parallel()
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("east", 3600)))
	names, images := ContainerText([]corev1.Container{{Name: "a", Image: "x"}, {Name: "b", Image: "y"}})
	one := 1
	filled, kept := (*int)(nil), &one
	Fill(&filled, 7)
	Fill(&kept, 7)
	empty, set := "", "set"
	OrDefault(&empty, "default")
	OrDefault(&set, "default")
	for _, c := range []struct{ got, want any }{
		{OrNone(""), "<none>"}, {OrNone("a"), "a"},
		{LabelText(nil), "<none>"}, {LabelText(map[string]string{"b": "2", "a": "1"}), "a=1,b=2"},
		{SelectorText(&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}), "a=b"}, {SelectorText(nil), "<none>"},
		{names, "a,b"}, {images, "x,y"},
		{fmt.Sprint(SortedKeys(map[corev1.ResourceName]int{"memory": 1, "cpu": 2})), "[cpu memory]"},
		{Value[int](nil), 0}, {Value(&one), 1}, {*filled, 7}, {*kept, 1}, {empty, "default"}, {set, "set"},
		{Count([]int{1, 2}), int64(2)}, {Fraction(1, 3), "1/3"},
		{fmt.Sprint(CreatedRow(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: created}})), "[p 2026-01-02T02:04:05Z]"},
		{Some(nil), "<none>"}, {Some([]string{"a", "b", "c"}), "a,b,c"}, {Some([]string{"a", "b", "c", "d", "e"}), "a,b,c + 2 more..."},
		{Age(&corev1.Pod{}), "<unknown>"},
	} {
		if c.got != c.want {
			t.Errorf("got %#v, want %#v", c.got, c.want)
		}
	}
}
