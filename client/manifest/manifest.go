// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads objects from YAML and JSON files and applies them, the
// way `kubectl apply --server-side -f` does. It is a package of its own so that
// only programs that read files link a YAML parser.
package manifest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/client"
)

// Object is one object and the file it came from.
type Object struct {
	*unstructured.Unstructured
	File string
}

// Read reads the objects of files, and of the .yaml, .yml and .json files of
// folders (not of folders in them), in the order of their names. Files of folders that
// are named kustomization are passed over: they say what kustomize does with the others.
// A path that does not exist and a folder without such files are errors.
func Read(paths ...string) ([]Object, error) {
	var out []Object
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("read manifests: %w", err)
			}
			objects, err := Parse(file, data)
			if err != nil {
				return nil, err
			}
			out = append(out, objects...)
		}
	}
	return out, nil
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if isManifest(e) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no .yaml, .yml or .json file", path)
	}
	return files, nil
}

func isManifest(e fs.DirEntry) bool {
	name := strings.ToLower(e.Name())
	return !e.IsDir() && strings.TrimSuffix(name, filepath.Ext(name)) != "kustomization" && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// Parse reads the objects of one file; name is used in errors and in
// Object.File. Items of a List are returned one by one, documents that hold
// only comments are passed over.
func Parse(name string, data []byte) ([]Object, error) {
	var out []Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 1; ; i++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		objects, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("read %s, document %d: %w", name, i, err)
		}
		for _, u := range objects {
			out = append(out, Object{Unstructured: u, File: name})
		}
	}
}

// decode returns the objects of one document: none, one, or those of a List.
func decode(document []byte) ([]*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil || bytes.Equal(data, []byte("null")) {
		return nil, err
	}
	obj, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	switch obj := obj.(type) {
	case *unstructured.UnstructuredList:
		for i := range obj.Items {
			out = append(out, &obj.Items[i])
		}
	case *unstructured.Unstructured:
		out = append(out, obj)
	}
	for _, u := range out {
		if u.GetAPIVersion() == "" || u.GetName() == "" {
			return nil, errors.New("want an object with apiVersion, kind and metadata.name")
		}
	}
	return out, nil
}

// Apply applies objects in their order, server-side and with force. Namespaced
// ones that name no namespace go to namespace, or to "default" when that is
// empty. It stops at the first failure, which names object and file.
func Apply(ctx context.Context, c client.Client, namespace string, objects []Object, opts ...client.WriteOption) error {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	for _, o := range objects {
		resource, err := c.Mapper().ForKind(ctx, o.GroupVersionKind())
		if err == nil {
			target := o.DeepCopy()
			if resource.Namespaced && target.GetNamespace() == "" {
				target.SetNamespace(namespace)
			}
			err = c.Apply(ctx, target, append([]client.WriteOption{client.ForceOwnership}, opts...)...)
		}
		if err != nil {
			return fmt.Errorf("apply %s %s (%s): %w", o.GetKind(), o.GetName(), o.File, err)
		}
	}
	return nil
}

// ApplyServed is [Apply] for objects of which some may be of kinds that the server does not
// have, such as those of a monitoring system: they are left out and returned.
func ApplyServed(ctx context.Context, c client.Client, namespace string, objects []Object, opts ...client.WriteOption) (left []Object, err error) {
	for _, o := range objects {
		err := Apply(ctx, c, namespace, []Object{o}, opts...)
		switch {
		case meta.IsNoMatchError(err):
			left = append(left, o)
		case err != nil:
			return left, err
		}
	}
	return left, nil
}
