// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plane starts Steer where a test of Kubernetes starts a kube-apiserver. Files in
// ../testdata/overlay, which take the places of files of Kubernetes' modules, are what
// calls it: each test binary runs one process of Steer for each server.
package plane

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/oracle/internal/process"
)

// Program is the variable of the environment with the path of Steer under the name of
// kube-apiserver, whose flags it takes then.
const Program = "STEER_SUITES_PROGRAM"

// Shared is the variable of the environment that has the servers of a test keep their objects in the
// etcd of the test, which they share then. Program is steer-etcd under the same name.
const Shared = "STEER_SUITES_ETCD"

// OwnGate is the feature gate that Steer honours and that tests switch off, OwnVersion the version
// of the API that they switch on.
const (
	OwnGate    = "PodTopologyLabelsAdmission"
	OwnVersion = "admissionregistration.k8s.io/v1beta1"
)

const (
	startLimit = 30 * time.Second
	poll       = 10 * time.Millisecond
)

// Plane is a running process of Steer.
type Plane struct {
	// Config is that of its administrator, without a throttle.
	Config *rest.Config

	dir     string
	process *process.Process
	front   *httptest.Server // nil: none is before it
}

// Etcd is where a test says that the objects of a server are. The zero value: it does not say so.
type Etcd struct {
	Servers []string
	Prefix  string
}

// Start starts one without controllers, on a port of its own, with flags of kube-apiserver: one that
// Steer does not know is an error. Feature gates and versions of the API are logged and left out, and
// so are flags of etcd: the objects are in memory, unless the variable [Shared] is set.
// Stop ends it.
func Start(logf func(format string, args ...any), etcd Etcd, flags ...string) (_ *Plane, err error) {
	program := os.Getenv(Program)
	if program == "" {
		return nil, fmt.Errorf("%s is not set: run the suites with go run ./cmd/suites", Program)
	}
	dir, err := os.MkdirTemp("", "steer-suites-")
	if err != nil {
		return nil, err
	}
	p := &Plane{dir: dir}
	defer func() {
		if err != nil {
			p.Stop()
		}
	}()
	certDir, where, err := etcd.share(dir, os.TempDir(), os.Getenv(Shared) != "")
	if err != nil {
		return nil, err
	}
	if where != nil { // the servers of an etcd have one key for tokens: that of their folder
		flags, _ = cut(flags, "--service-account-signing-key-file")
	}
	ports, err := process.FreePorts(1)
	if err != nil {
		return nil, err
	}
	token, tokens := rand.Text(), filepath.Join(dir, "tokens.csv")
	flags, more, err := withoutTokens(withoutGates(withoutEtcd(flags), logf, OwnGate+"=false", OwnVersion+"=true"))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(tokens, []byte(token+",system:apiserver,admin,system:masters\n"+more), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.process, err = process.Start(log, program, slices.Concat([]string{
		fmt.Sprintf("--secure-port=%d", ports[0]), "--cert-dir=" + certDir, "--token-auth-file=" + tokens,
		"--kubelets=127.0.0.0/8", "--peer-advertise-ip=127.0.0.1", // what tests advertise is not there
	}, where, flags)...)
	if err != nil {
		return nil, err
	}
	p.Config = &rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", ports[0]), BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(certDir, "apiserver.crt")},
	}
	if err := p.ready(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s: %w: %s", p.process, err, text)
	}
	logf("%s", p.process)
	return p, nil
}

// share returns the folder of the certificates and keys of a server, which has one of its own, and
// flags that say where its objects are. Servers of one prefix share a folder below another one, which
// the runner removes with all temporary files of the test. In memory a second server of a prefix would
// not have the objects of the first, and is refused.
func (e Etcd) share(own, below string, shared bool) (certDir string, flags []string, err error) {
	if e.Prefix == "" || len(e.Servers) == 0 {
		return own, nil, nil
	}
	certDir = filepath.Join(below, "etcd-"+strings.ReplaceAll(strings.Trim(e.Prefix, "/"), "/", "-"))
	switch err := os.Mkdir(certDir, 0o700); {
	case errors.Is(err, fs.ErrExist) && !shared:
		return "", nil, errors.New("a second server of an etcd, whose objects are in memory: add the test to those that have an etcd, in suites.go")
	case err != nil && !errors.Is(err, fs.ErrExist):
		return "", nil, err
	case !shared:
		return own, nil, nil
	}
	return certDir, []string{"--etcd-servers=" + strings.Join(e.Servers, ","), "--etcd-prefix=" + e.Prefix}, nil
}

// ready waits until the server is.
func (p *Plane) ready() error {
	for began := time.Now(); time.Since(began) < startLimit; time.Sleep(poll) {
		select {
		case <-p.process.Ended:
			return errors.New("it does not start")
		default:
		}
		client, err := rest.HTTPClientFor(p.Config)
		if err != nil {
			continue // its certificate is not there yet
		}
		if answer, err := client.Get(p.Config.Host + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return fmt.Errorf("it is not ready after %s", startLimit)
}

// Stop ends the process, and returns when it has ended.
func (p *Plane) Stop() {
	if p.front != nil {
		p.front.CloseClientConnections() // watches
		p.front.Close()
	}
	if p.process != nil {
		p.process.Stop()
	}
	_ = os.RemoveAll(p.dir)
}

// withoutEtcd leaves out the flags of etcd, with their values.
func withoutEtcd(flags []string) []string {
	var out []string
	for i := 0; i < len(flags); i++ {
		name, _, withValue := strings.Cut(flags[i], "=")
		if strings.HasPrefix(name, "--etcd-") || name == "--storage-media-type" {
			if !withValue && i+1 < len(flags) && !strings.HasPrefix(flags[i+1], "--") {
				i++
			}
			continue
		}
		out = append(out, flags[i])
	}
	return out
}

// withoutTokens leaves out the flag of a file with tokens, and returns what is in it.
func withoutTokens(flags []string) (others []string, tokens string, err error) {
	others, files := cut(flags, "--token-auth-file")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		tokens += string(text) + "\n"
	}
	return others, tokens, nil
}

// withoutGates leaves out feature gates and versions of the API, which Steer refuses where it has
// not what they switch on, except for the gates that are given, and says which they are.
func withoutGates(flags []string, logf func(format string, args ...any), except ...string) []string {
	for _, name := range []string{"--feature-gates", "--runtime-config"} {
		var values []string
		flags, values = cut(flags, name)
		for _, value := range strings.Split(strings.Join(values, ","), ",") {
			switch {
			case value == "":
			case slices.Contains(except, value):
				flags = append(flags, name+"="+value)
			default:
				logf("ignored: %s=%s", name, value)
			}
		}
	}
	return flags
}

// cut takes a flag out of others, and returns its values.
func cut(flags []string, name string) (others, values []string) {
	for i := 0; i < len(flags); i++ {
		value, found := strings.CutPrefix(flags[i], name+"=")
		if !found && flags[i] == name && i+1 < len(flags) {
			i++
			value, found = flags[i], true
		}
		if found {
			values = append(values, value)
		} else {
			others = append(others, flags[i])
		}
	}
	return others, values
}
