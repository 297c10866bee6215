// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plane starts `steer up` where a test of Kubernetes starts a server of its own.
// Files in ../testdata/overlay, which take the places of files of Kubernetes' modules, are
// what calls it: each test binary runs one process of Steer for each server.
package plane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/internal/children"
)

// Program is the variable of the environment with the path of the command line of Steer.
const Program = "STEER_SUITES_PROGRAM"

const (
	startLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
)

// Plane is a running `steer up`.
type Plane struct {
	// Config is that of its administrator, without a throttle.
	Config *rest.Config

	dir    string
	child  *children.Child
	exited chan struct{} // closed when the process has ended
}

// Start starts one in memory, on a port of its own. Without controllers it is what a
// kube-apiserver alone is: flags adds to that. Stop ends it.
func Start(logf func(format string, args ...any), flags ...string) (*Plane, error) {
	program := os.Getenv(Program)
	if program == "" {
		return nil, fmt.Errorf("%s is not set: run the suites with go run ./cmd/suites", Program)
	}
	dir, err := os.MkdirTemp("", "steer-suites-")
	if err != nil {
		return nil, err
	}
	p := &Plane{dir: dir, exited: make(chan struct{})}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	command := exec.Command(program, append([]string{"up", "--in-memory", "--bare", "--listen=127.0.0.1:0", "--kubeconfig=" + kubeconfig}, flags...)...)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer log.Close()
	command.Stderr = log
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if p.child, err = children.Start(command); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program, err), os.RemoveAll(dir))
	}
	up := make(chan bool, 1)
	go func() {
		defer close(p.exited)
		line, _ := bufio.NewReader(out).ReadString('\n')
		up <- strings.HasPrefix(line, "steer is up")
		_, _ = io.Copy(io.Discard, out)
		_ = p.child.Wait() // how it ends is its log's to say
	}()
	var started bool
	select {
	case started = <-up:
	case <-time.After(startLimit):
	}
	if !started {
		text, _ := os.ReadFile(log.Name())
		p.Stop()
		return nil, fmt.Errorf("%s does not start: %s", command, text)
	}
	p.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		p.Stop()
		return nil, err
	}
	p.Config.QPS = -1
	logf("%s serves at %s", command, p.Config.Host)
	return p, nil
}

// Stop ends the process, and returns when it has ended.
func (p *Plane) Stop() {
	p.child.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopLimit):
		p.child.Kill()
		<-p.exited
	}
	_ = os.RemoveAll(p.dir)
}

// AllowAll allows every request of every user, as the authorization mode AlwaysAllow does:
// by a binding of cluster-admin. A test of who may do what proves nothing then.
func AllowAll(config *rest.Config) error {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = c.RbacV1().ClusterRoleBindings().Create(context.Background(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "suites:always-allow"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"},
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"},
		},
	}, metav1.CreateOptions{})
	return err
}

// MakeNamespaces has the clients of a configuration create each namespace before they write
// objects into it: for tests whose server has the plugin NamespaceLifecycle switched off.
func MakeNamespaces(config *rest.Config) {
	var made sync.Map // namespaces
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if namespace := writtenTo(r); namespace != "" {
				if _, there := made.Load(namespace); !there {
					if err := create(next, r, namespace); err != nil {
						return nil, err
					}
					made.Store(namespace, true)
				}
			}
			return next.RoundTrip(r)
		})
	})
}

// writtenTo is the namespace of the objects that a request writes; empty for others.
func writtenTo(r *http.Request) string {
	if r.Method != http.MethodPost && r.Method != http.MethodPut && r.Method != http.MethodPatch {
		return ""
	}
	_, rest, ok := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, object, named := strings.Cut(rest, "/")
	if !ok || !named || object == "status" || object == "finalize" {
		return ""
	}
	return namespace
}

func create(next http.RoundTripper, r *http.Request, namespace string) error {
	at := *r.URL
	at.Path, at.RawQuery = "/api/v1/namespaces", ""
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, namespace)
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, at.String(), strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", r.Header.Get("Authorization"))
	answer, err := next.RoundTrip(request)
	if err != nil {
		return err
	}
	return answer.Body.Close() // one that is there already is a 409
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
