// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Column is one column of a custom resource.
type Column struct {
	// Name is the heading.
	Name string
	// Type of the cells: integer, number, string, boolean or date. A date shows
	// as age.
	Type string
	// Format and Description for clients; both may be empty.
	Format, Description string
	// Priority 0 is always shown, others in wide views.
	Priority int32
	// Path of the value, such as ".spec.replicas".
	Path string
}

// Custom prints objects by JSON paths. A path that finds nothing, or a value of another
// type than the column's, gives an empty cell. It is safe for concurrent use.
type Custom struct {
	columns []metav1.TableColumnDefinition
	values  []*value
}

// NewCustom returns the printer for the columns of a custom resource: name, then the
// given ones; name and age if there are none. If a path does not parse, it returns an
// error that names it and the printer of the columns before it.
func NewCustom(columns []Column) (resource.Printer, error) {
	if len(columns) == 0 {
		age := AgeColumn("date")
		columns = []Column{{Name: age.Name, Type: age.Type, Description: age.Description, Path: ".metadata.creationTimestamp"}}
	}
	c := &Custom{columns: []metav1.TableColumnDefinition{NameColumn()}}
	for _, column := range columns {
		v, err := newValue(column)
		if err != nil {
			return c, fmt.Errorf("table: column %s: path %q: %w", column.Name, column.Path, err)
		}
		description := column.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + column.Path
		}
		c.values = append(c.values, v)
		c.columns = append(c.columns, metav1.TableColumnDefinition{
			Name: column.Name, Type: column.Type, Format: column.Format, Description: description, Priority: column.Priority,
		})
	}
	return c, nil
}

// Columns implements [resource.Printer].
func (c *Custom) Columns() []metav1.TableColumnDefinition { return c.columns }

// Cells implements [resource.Printer].
func (c *Custom) Cells(obj resource.Object) ([]any, error) {
	var content map[string]any
	if d, ok := obj.(*resource.Doc); ok {
		content = d.Content()
	} else {
		var err error
		if content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(obj); err != nil {
			return nil, err
		}
	}
	cells := make([]any, 1, len(c.columns))
	cells[0] = obj.GetName()
	for _, v := range c.values {
		cells = append(cells, v.cell(content))
	}
	return cells, nil
}

// value finds and formats the value of one column.
type value struct {
	columnType string
	// keys is the path if it is only a chain of members, as most are.
	keys []string
	// paths holds parsed *jsonpath.JSONPath otherwise: evaluation changes them.
	paths sync.Pool
}

func newValue(c Column) (*value, error) {
	v := &value{columnType: c.Type, keys: chain(c.Path)}
	parse := func() (*jsonpath.JSONPath, error) {
		p := jsonpath.New(c.Name).AllowMissingKeys(true)
		return p, p.Parse("{" + c.Path + "}")
	}
	p, err := parse()
	if err != nil {
		return nil, err
	}
	v.paths.New = func() any {
		p, _ := parse() // it was parsed before
		return p
	}
	v.paths.Put(p)
	return v, nil
}

// chain splits a path like ".spec.replicas"; nil for any other path.
func chain(path string) []string {
	rest, ok := strings.CutPrefix(path, ".")
	if !ok {
		return nil
	}
	for _, r := range rest {
		plain := r == '.' || r == '_' ||
			'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !plain {
			return nil
		}
	}
	keys := strings.Split(rest, ".")
	for _, key := range keys {
		if key == "" {
			return nil
		}
	}
	return keys
}

func (v *value) cell(content map[string]any) any {
	found, ok := v.find(content)
	if !ok {
		return nil
	}
	if v.columnType == "string" {
		return v.text(found)
	}
	return typed(v.columnType, found)
}

func (v *value) find(content map[string]any) (any, bool) {
	if v.keys == nil {
		p := v.paths.Get().(*jsonpath.JSONPath)
		defer v.paths.Put(p)
		results, err := p.FindResults(content)
		if err != nil || len(results) == 0 || len(results[0]) == 0 {
			return nil, false
		}
		return results[0][0].Interface(), true
	}
	var current any = content
	for _, key := range v.keys {
		object, ok := current.(map[string]any)
		if !ok {
			return nil, false
		}
		if current, ok = object[key]; !ok {
			return nil, false
		}
	}
	return current, true
}

// text formats a value of any type as kubectl's jsonpath output does.
func (v *value) text(found any) any {
	if s, ok := found.(string); ok {
		return s
	}
	p := v.paths.Get().(*jsonpath.JSONPath)
	defer v.paths.Put(p)
	var out bytes.Buffer
	if err := p.PrintResults(&out, []reflect.Value{reflect.ValueOf(found)}); err != nil {
		return nil
	}
	return out.String()
}

// typed returns a cell of the column's type, nil if the value has another type.
func typed(columnType string, found any) any {
	switch columnType {
	case "integer":
		switch n := found.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := found.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := found.(bool); ok {
			return b
		}
	case "date":
		if s, ok := found.(string); ok {
			var t metav1.Time
			if err := t.UnmarshalQueryParameter(s); err != nil {
				return "<invalid>"
			}
			return Age(t)
		}
	}
	return nil
}
