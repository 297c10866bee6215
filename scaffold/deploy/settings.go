// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy makes the objects that bring the operator of a project to a cluster:
// what is generated of its types and markers, and what every operator needs around it.
// All forms of a package are made of this one set of objects.
package deploy

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/steer-dev/steer/scaffold/project"
)

// SettingsFile is the name of the file of a project with the [Settings].
const SettingsFile = "steer.yaml"

// Settings are what differs between deployments of operators.
type Settings struct {
	// Image of the operator. Default: the project's name and the tag latest.
	Image string `yaml:"image"`
	// Namespace of the operator. Default: the project's name and "-system".
	Namespace string `yaml:"namespace"`
	// Replicas of the operator, of which one leads. Default 1.
	Replicas int `yaml:"replicas"`
	// Resources of its container. Default: requests of 10m CPU and 64Mi memory, and
	// limits of 500m and 128Mi.
	Resources Resources `yaml:"resources"`
	// ServiceMonitor adds one, for clusters with the operator of Prometheus. Alerts have it in
	// any case.
	ServiceMonitor bool `yaml:"serviceMonitor"`
	// With are parts that not every deployment has, of [Additions]. Default: none.
	With []string `yaml:"with"`
	// Server is the custom API server, in projects that have one.
	Server ServerSettings `yaml:"server"`
}

// ServerSettings are what differs between deployments of custom API servers.
type ServerSettings struct {
	// Image of the server. Default: the project's name and "-server", and the tag latest.
	Image string `yaml:"image"`
	// Resources of its container. Default: those of the operator.
	Resources Resources `yaml:"resources"`
	// Storage is the size of the volume with its objects. Default: 1Gi. "none": there is no
	// volume, and objects of kinds without a backend end with the Pod.
	Storage string `yaml:"storage"`
}

// noStorage is the Storage of a server without a volume.
const noStorage = "none"

// Resources are quantities by the names of resources, such as cpu and memory.
type Resources struct {
	Limits   map[string]string `yaml:"limits,omitempty"`
	Requests map[string]string `yaml:"requests,omitempty"`
}

// ReadSettings reads steer.yaml of a project, which does not need to have it.
func ReadSettings(dir string, p *project.Project) (Settings, error) {
	s := Settings{Replicas: 1}
	file := filepath.Join(dir, SettingsFile)
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	document, err := project.ParseDocument(file, text)
	if err != nil {
		return s, err
	}
	if err := document.DecodeStrict(&s); err != nil {
		return s, err
	}
	s.Image = cmp.Or(s.Image, p.Name+":latest")
	s.Namespace = cmp.Or(s.Namespace, p.Name+"-system")
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
	s.ServiceMonitor = s.ServiceMonitor || s.has(WithAlerts)
	return s, s.check(document)
}

// Names of [Additions].
const (
	// WithRecords keeps the records of reconciles in files of each Pod, and answers
	// steer why, history and tree from there, by port-forward.
	WithRecords = "records"
	// WithGrafana is a board of the operator's metrics, in a ConfigMap as the sidecar of
	// Grafana reads it.
	WithGrafana = "grafana"
	// WithAlerts is a PrometheusRule on the operator's metrics, with the ServiceMonitor.
	WithAlerts = "alerts"
)

// Additions are the names that Settings.With may have.
func Additions() []string { return []string{WithRecords, WithGrafana, WithAlerts} }

// has reports whether a deployment has one of the additions.
func (s Settings) has(addition string) bool { return slices.Contains(s.With, addition) }

// ReadProject reads a project and its settings, with another image unless it is empty, and
// with other additions unless there are none.
func ReadProject(dir, image string, with ...string) (*project.Project, Settings, error) {
	p, err := project.Read(dir)
	if err != nil {
		return nil, Settings{}, err
	}
	if !isImage(image) {
		return nil, Settings{}, project.Usagef("--image %q is no name of an image", image)
	}
	for _, name := range with {
		if !slices.Contains(Additions(), name) {
			return nil, Settings{}, project.Usagef("--with %q is not known: give some of %s, with commas between them", name, strings.Join(Additions(), ", "))
		}
	}
	s, err := ReadSettings(dir, p)
	s.Image = cmp.Or(image, s.Image)
	if len(with) > 0 {
		s.With = with
		s.ServiceMonitor = s.ServiceMonitor || s.has(WithAlerts)
	}
	return p, s, err
}

var version = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// CheckVersion validates the version of a package.
func CheckVersion(of string) error {
	if !version.MatchString(of) {
		return project.Usagef("--version %q is no version: give one such as 0.1.0", of)
	}
	return nil
}

// isImage reports whether a text may be the name of an image.
func isImage(name string) bool { return !strings.ContainsAny(name, " \t\n\"'") }

func (s Settings) check(in *project.Document) error {
	switch {
	case !isImage(s.Image):
		return in.Errorf([]string{"image"}, "image: %q is no name of an image", s.Image)
	case !isImage(s.Server.Image):
		return in.Errorf([]string{"server", "image"}, "server: image: %q is no name of an image", s.Server.Image)
	case len(validation.IsDNS1123Label(s.Namespace)) > 0:
		return in.Errorf([]string{"namespace"}, "namespace: %q is no DNS label", s.Namespace)
	case s.Replicas < 1:
		return in.Errorf([]string{"replicas"}, "replicas: %d is not positive", s.Replicas)
	}
	for _, name := range s.With {
		if !slices.Contains(Additions(), name) {
			return in.Errorf([]string{"with"}, "with: %q is not known: give some of [%s]", name, strings.Join(Additions(), ", "))
		}
	}
	if s.Server.Storage != noStorage {
		if _, err := resource.ParseQuantity(s.Server.Storage); err != nil {
			return in.Errorf([]string{"server", "storage"}, "server: storage: %q is no quantity such as 1Gi, and not %s", s.Server.Storage, noStorage)
		}
	}
	for _, resources := range []struct {
		path []string
		list map[string]string
	}{
		{[]string{"resources", "limits"}, s.Resources.Limits},
		{[]string{"resources", "requests"}, s.Resources.Requests},
		{[]string{"server", "resources", "limits"}, s.Server.Resources.Limits},
		{[]string{"server", "resources", "requests"}, s.Server.Resources.Requests},
	} {
		for _, name := range slices.Sorted(maps.Keys(resources.list)) {
			quantity := resources.list[name]
			if _, err := resource.ParseQuantity(quantity); err != nil {
				path := append(resources.path, name)
				return in.Errorf(path, "%s: %q is no quantity such as 500m or 128Mi", strings.Join(path, ": "), quantity)
			}
		}
	}
	return nil
}
