// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gofile

import (
	"slices"
	"strings"
	"testing"
)

// unquote has the quotes of tags in place of QQ.
func unquote(text string) string { return strings.ReplaceAll(text, "QQ", "`") }

// TestTypesAreCopiedWithAllThatTheyUse copies a kind whose types are in two files, as
// projects of different ages have them.
func TestTypesAreCopiedWithAllThatTheyUse(t *testing.T) {
	t.Parallel()
	types := `// Copyright Someone.

package v1

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// EDIT THIS FILE!

// TaskSpec is wanted.
type TaskSpec struct {
	Size   Size                QQjson:"size"QQ // of the task
	Port   intstr.IntOrString  QQjson:"port"QQ
	Boxes  map[string]*Box     QQjson:"boxes"QQ
	Shared Shared              QQjson:"shared"QQ
	Other  []metav1.Condition  QQjson:"other"QQ
}

//+kubebuilder:object:root=true
//+kubebuilder:storageversion
// +kubebuilder:conversion:webhook

// Task runs.
type Task struct {
	metav1.TypeMeta QQjson:",inline"QQ
	Spec TaskSpec QQjson:"spec"QQ
}

// +kubebuilder:object:root=true
type TaskList struct {
	Items []Task QQjson:"items"QQ
}

func init() { Builder.Register(&Task{}) }

// Hub marks the version.
func (*Task) Hub() {}

func unused(corev1.Pod) { fmt.Println() }
`
	common := `package v1

import "strings"

// Size of a task.
// +kubebuilder:validation:Enum=Small;Large
type Size string

// Sizes.
const (
	Small Size = "Small" // the least
	Large Size = "Large"
)

func (s Size) Short() string { return short(string(s)) }

func short(s string) string { return strings.ToLower(s[:limit]) }

const limit = 1

// Box holds boxes.
type Box struct {
	Boxes []Box QQjson:"boxes"QQ
}

// Shared is in the other package, too.
type Shared struct{}
`
	var files Package
	for name, text := range map[string]string{"types.go": types, "common.go": common} {
		f, err := Parse(name, []byte(unquote(text)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *File) int { return len(b.text) - len(a.text) })
	text, err := files.CopyTypes("v2", func(name string) bool { return name == "Shared" }, "Task", "TaskList")
	if err != nil {
		t.Fatal(err)
	}
	want := `package v2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"strings"
)

// TaskSpec is wanted.
type TaskSpec struct {
	Size   Size                QQjson:"size"QQ // of the task
	Port   intstr.IntOrString  QQjson:"port"QQ
	Boxes  map[string]*Box     QQjson:"boxes"QQ
	Shared Shared              QQjson:"shared"QQ
	Other  []metav1.Condition  QQjson:"other"QQ
}

//+kubebuilder:object:root=true

// Task runs.
type Task struct {
	metav1.TypeMeta QQjson:",inline"QQ
	Spec TaskSpec QQjson:"spec"QQ
}

// +kubebuilder:object:root=true
type TaskList struct {
	Items []Task QQjson:"items"QQ
}

// Size of a task.
// +kubebuilder:validation:Enum=Small;Large
type Size string

// Sizes.
const (
	Small Size = "Small" // the least
	Large Size = "Large"
)

func (s Size) Short() string { return short(string(s)) }

func short(s string) string { return strings.ToLower(s[:limit]) }

const limit = 1

// Box holds boxes.
type Box struct {
	Boxes []Box QQjson:"boxes"QQ
}
`
	if string(text) != unquote(want) {
		t.Errorf("got:\n%s", text)
	}
	if text, err := files.CopyTypes("v2", func(string) bool { return false }, "Ghost"); text != nil || err != nil {
		t.Errorf("a type that is in none of the files is copied: %s, %v", text, err)
	}
}
