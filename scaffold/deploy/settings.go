// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy makes the objects that bring the operator of a project to a cluster:
// what is generated of its types and markers, and what every operator needs around it.
// All forms of a package are made of this one set of objects.
package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold/project"
)

// SettingsFile is the name of the file of a project with the [Settings].
const SettingsFile = "steer.yaml"

// Settings are what differs between deployments of operators.
type Settings struct {
	// Image of the operator. Default: the project's name and the tag latest.
	Image string `json:"image,omitempty"`
	// Namespace of the operator. Default: the project's name and "-system".
	Namespace string `json:"namespace,omitempty"`
	// Replicas of the operator, of which one leads. Default 1.
	Replicas int `json:"replicas,omitempty"`
	// Resources of its container. Default: requests of 10m CPU and 64Mi memory, and
	// limits of 500m and 128Mi.
	Resources Resources `json:"resources,omitzero"`
	// ServiceMonitor adds one, for clusters with the operator of Prometheus.
	ServiceMonitor bool `json:"serviceMonitor,omitempty"`
	// Server is the custom API server, in projects that have one.
	Server ServerSettings `json:"server,omitzero"`
}

// ServerSettings are what differs between deployments of custom API servers.
type ServerSettings struct {
	// Image of the server. Default: the project's name and "-server", and the tag latest.
	Image string `json:"image,omitempty"`
	// Resources of its container. Default: those of the operator.
	Resources Resources `json:"resources,omitzero"`
	// Storage is the size of the volume with its objects. Default: 1Gi. "none": there is no
	// volume, and objects of kinds without a backend end with the Pod.
	Storage string `json:"storage,omitempty"`
}

// noStorage is the Storage of a server without a volume.
const noStorage = "none"

// Resources are quantities by the names of resources, such as cpu and memory.
type Resources struct {
	Limits   map[string]string `json:"limits,omitempty"`
	Requests map[string]string `json:"requests,omitempty"`
}

// ReadSettings reads steer.yaml of a project, which does not need to have it.
func ReadSettings(dir string, p *project.Project) (Settings, error) {
	var s Settings
	file := filepath.Join(dir, SettingsFile)
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return s, fmt.Errorf("%s: %s", file, strings.ReplaceAll(err.Error(), "\n", " "))
	}
	s.Image = cmp.Or(s.Image, p.Name+":latest")
	s.Namespace = cmp.Or(s.Namespace, p.Name+"-system")
	s.Replicas = cmp.Or(s.Replicas, 1)
	if s.Resources.Limits == nil && s.Resources.Requests == nil {
		s.Resources = Resources{
			Limits:   map[string]string{"cpu": "500m", "memory": "128Mi"},
			Requests: map[string]string{"cpu": "10m", "memory": "64Mi"},
		}
	}
	s.Server.Image = cmp.Or(s.Server.Image, p.Name+"-server:latest")
	s.Server.Storage = cmp.Or(s.Server.Storage, "1Gi")
	if s.Server.Resources.Limits == nil && s.Server.Resources.Requests == nil {
		s.Server.Resources = s.Resources
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// ReadProject reads a project and its settings, with another image unless it is empty.
func ReadProject(dir, image string) (*project.Project, Settings, error) {
	p, err := project.Read(dir)
	if err != nil {
		return nil, Settings{}, err
	}
	s, err := ReadSettings(dir, p)
	s.Image = cmp.Or(image, s.Image)
	return p, s, err
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func (s Settings) check() error {
	switch {
	case strings.ContainsAny(s.Image, " \t\n\"'"):
		return fmt.Errorf("image: %q is no name of an image", s.Image)
	case strings.ContainsAny(s.Server.Image, " \t\n\"'"):
		return fmt.Errorf("server: image: %q is no name of an image", s.Server.Image)
	case !label.MatchString(s.Namespace):
		return fmt.Errorf("namespace: %q is no DNS label", s.Namespace)
	case s.Replicas < 1:
		return fmt.Errorf("replicas: %d is not positive", s.Replicas)
	}
	if s.Server.Storage != noStorage {
		if _, err := resource.ParseQuantity(s.Server.Storage); err != nil {
			return fmt.Errorf("server: storage: %q is no quantity such as 1Gi, and not %s", s.Server.Storage, noStorage)
		}
	}
	for _, list := range []map[string]string{s.Resources.Limits, s.Resources.Requests, s.Server.Resources.Limits, s.Server.Resources.Requests} {
		for name, quantity := range list {
			if _, err := resource.ParseQuantity(quantity); err != nil {
				return fmt.Errorf("resources: %s: %q is no quantity such as 500m or 128Mi", name, quantity)
			}
		}
	}
	return nil
}
