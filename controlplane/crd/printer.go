// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/jsonpath"

	"github.com/steer-dev/steer/apiserver/resource"
)

// printer makes table rows by the columns of a definition: the name, then what
// each JSON path finds.
type printer struct {
	columns []metav1.TableColumnDefinition
	paths   []*jsonpath.JSONPath // of the columns after the name
}

var _ resource.Printer = (*printer)(nil)

// newPrinter returns the printer for columns; without columns it prints the
// age. Columns from the first one on that does not parse are left out: stored
// definitions may be older than the check that refuses them.
func newPrinter(columns []v1.CustomResourceColumnDefinition) *printer {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	if len(columns) == 0 {
		columns = []v1.CustomResourceColumnDefinition{{
			Name: "Age", Type: "date", Description: docs["creationTimestamp"], JSONPath: ".metadata.creationTimestamp",
		}}
	}
	p := &printer{columns: []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: docs["name"]}}}
	for _, c := range columns {
		path := jsonpath.New(c.Name)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			break
		}
		path.AllowMissingKeys(true)
		if c.Description == "" {
			c.Description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		p.paths = append(p.paths, path)
		p.columns = append(p.columns, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Priority: c.Priority})
	}
	return p
}

// Columns implements [resource.Printer].
func (p *printer) Columns() []metav1.TableColumnDefinition { return p.columns }

// Cells implements [resource.Printer].
func (p *printer) Cells(obj resource.Object) ([]any, error) {
	cells := make([]any, 1, len(p.columns))
	cells[0] = obj.GetName()
	content := obj.(*unstructured.Unstructured).Object
	for i, path := range p.paths {
		cells = append(cells, cell(path, p.columns[i+1].Type, content))
	}
	return cells, nil
}

// cell returns what a path finds in a form that fits the column type; nil for
// nothing, or something of another type.
func cell(path *jsonpath.JSONPath, columnType string, content map[string]any) any {
	results, err := path.FindResults(content)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	switch columnType {
	case "string":
		var text bytes.Buffer
		if err := path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil
		}
		return text.String()
	case "integer":
		return asInteger(value)
	case "number":
		return asNumber(value)
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if s, ok := value.(string); ok {
			return age(s)
		}
	}
	return nil
}

func asInteger(value any) any {
	switch v := value.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	}
	return nil
}

func asNumber(value any) any {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case json.Number:
		if n, err := v.Float64(); err == nil {
			return n
		}
	}
	return nil
}

// age renders a timestamp as the time that has passed since.
func age(timestamp string) string {
	var t metav1.Time
	if err := t.UnmarshalQueryParameter(timestamp); err != nil {
		return "<invalid>"
	}
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// definitionPrinter prints definitions: name and the time of creation.
type definitionPrinter struct{}

// Columns implements [resource.Printer].
func (definitionPrinter) Columns() []metav1.TableColumnDefinition {
	docs := metav1.ObjectMeta{}.SwaggerDoc()
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: docs["name"]},
		{Name: "Created At", Type: "date", Description: docs["creationTimestamp"]},
	}
}

// Cells implements [resource.Printer].
func (definitionPrinter) Cells(obj resource.Object) ([]any, error) {
	return []any{obj.GetName(), obj.GetCreationTimestamp().UTC().Format(time.RFC3339)}, nil
}
