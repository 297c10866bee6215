// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command schedule runs kube-apiserver, etcd and kube-scheduler, creates the objects of
// files of scenarios one after another, and writes behind them what becomes of each Pod: its node, or
// why it has none. Its arguments are the files.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/steer-dev/steer/oracle/upstream"
)

// Names of the parts of a file.
const (
	objects = "objects.yaml"
	answers = "answers"
)

const (
	// patience is how long the scheduler may take with a Pod.
	patience = 20 * time.Second
	// between scenarios the scheduler notices that the objects of the last one are gone.
	between = 3 * time.Second
	poll    = 50 * time.Millisecond
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "schedule:", err)
		os.Exit(1) // nothing is left to be stopped
	}
}

func run(ctx context.Context, files []string) (err error) {
	if len(files) == 0 {
		return errors.New("name the files of scenarios, such as ../controlplane/workloads/testdata/scheduling/*.txtar")
	}
	server, err := upstream.Start(ctx, upstream.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: server.URL, BearerToken: server.Token, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA}, QPS: -1,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended, err := startScheduler(ctx, server)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := record(ctx, client, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		select {
		case err := <-ended:
			return fmt.Errorf("kube-scheduler has ended: %w", err)
		case <-time.After(between):
		}
	}
	return nil
}

// startScheduler runs kube-scheduler with its default profile until ctx ends.
func startScheduler(ctx context.Context, server *upstream.Server) (<-chan error, error) {
	dir, err := os.MkdirTemp("", "schedule-")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"u","user":{"token":%q}}]}`,
		server.URL, base64.StdEncoding.EncodeToString(server.CA), server.Token)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	command := app.NewSchedulerCommand()
	command.SetArgs([]string{"--kubeconfig", config, "--authentication-kubeconfig", config, "--authorization-kubeconfig", config, "--leader-elect=false", "--secure-port=0"})
	ended := make(chan error, 1)
	go func() {
		defer os.RemoveAll(dir)
		ended <- command.ExecuteContext(ctx)
	}()
	return ended, nil
}

// record writes the answers of one file.
func record(ctx context.Context, client *kubernetes.Clientset, file string) error {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		return err
	}
	var docs []byte
	for _, f := range archive.Files {
		if f.Name == objects {
			docs = f.Data
		}
	}
	var out strings.Builder
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(docs)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(doc, nil, nil)
		if err != nil {
			return fmt.Errorf("%w in\n%s", err, doc)
		}
		line, err := create(ctx, client, obj)
		if err != nil {
			return err
		}
		out.WriteString(line)
	}
	archive.Files = []txtar.File{{Name: objects, Data: docs}, {Name: answers, Data: []byte(out.String())}}
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil { // test data
		return err
	}
	return clear(ctx, client)
}

// create creates an object, and returns what becomes of it if it is a Pod.
func create(ctx context.Context, client *kubernetes.Clientset, obj runtime.Object) (string, error) {
	var err error
	switch o := obj.(type) {
	case *corev1.Namespace:
		_, err = client.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{})
	case *schedulingv1.PriorityClass:
		_, err = client.SchedulingV1().PriorityClasses().Create(ctx, o, metav1.CreateOptions{})
	case *corev1.PersistentVolume:
		_, err = client.CoreV1().PersistentVolumes().Create(ctx, o, metav1.CreateOptions{})
	case *corev1.PersistentVolumeClaim:
		_, err = client.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).Create(ctx, o, metav1.CreateOptions{})
	case *corev1.Node:
		// New nodes are tainted until a controller takes that back.
		taints := o.Spec.Taints
		if o, err = client.CoreV1().Nodes().Create(ctx, o, metav1.CreateOptions{}); err == nil {
			o.Spec.Taints = taints
			_, err = client.CoreV1().Nodes().Update(ctx, o, metav1.UpdateOptions{})
		}
		time.Sleep(time.Second) // until the scheduler knows it
	case *corev1.Pod:
		if o.Namespace == "" {
			o.Namespace = metav1.NamespaceDefault
		}
		if _, err = client.CoreV1().Pods(o.Namespace).Create(ctx, o, metav1.CreateOptions{}); err == nil {
			return answer(ctx, client, o.Namespace, o.Name)
		}
	default:
		err = fmt.Errorf("nothing is known of %T", obj)
	}
	return "", err
}

// answer waits until the scheduler has decided over a Pod.
func answer(ctx context.Context, client *kubernetes.Clientset, namespace, name string) (string, error) {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(poll) {
		p, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if p.Spec.NodeName != "" {
			return name + ": " + p.Spec.NodeName + "\n", nil
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return name + ": " + c.Message + "\n", nil
			}
		}
	}
	return "", fmt.Errorf("kube-scheduler has not decided over %s after %v", name, patience)
}

// clear deletes what scenarios create.
func clear(ctx context.Context, client *kubernetes.Clientset) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	all, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range all.Items {
		if err := client.CoreV1().Pods(all.Items[i].Namespace).Delete(ctx, all.Items[i].Name, now); err != nil {
			return err
		}
	}
	return errors.Join(
		client.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{}),
		client.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault).DeleteCollection(ctx, now, metav1.ListOptions{}),
		client.CoreV1().PersistentVolumes().DeleteCollection(ctx, now, metav1.ListOptions{}),
	)
}
