// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/cmd/steer/up"
	"github.com/steer-dev/steer/controlplane"
)

// writeBackup writes a file as etcdctl snapshot save does: each version of each key by its
// revision, and the checksum at the end.
func writeBackup(t *testing.T, file string, versions ...*mvccpb.KeyValue) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		for _, kv := range versions {
			value, err := proto.Marshal(kv)
			if err != nil {
				return err
			}
			revision := append(binary.BigEndian.AppendUint64(nil, uint64(kv.ModRevision)), "_\x00\x00\x00\x00\x00\x00\x00\x00"...)
			if err := bucket.Put(revision, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	contents, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(contents)
	if err := os.WriteFile(file, append(contents, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs the program with arguments and returns its output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.SetArgs(args)
	c.SetOut(&out)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

func TestSnapshotImportTakesABackupOfEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	backup, snapshot, data := filepath.Join(dir, "etcd.db"), filepath.Join(dir, "cluster.snapshot"), filepath.Join(dir, "data")
	configMap := func(value string) []byte {
		return []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"team","uid":"4c5b0c5e-0000-4000-8000-000000000001"},"data":{"v":"` + value + `"}}`)
	}
	writeBackup(t, backup,
		&mvccpb.KeyValue{Key: []byte("/registry/namespaces/team"), Value: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team","uid":"4c5b0c5e-0000-4000-8000-000000000002"}}`), CreateRevision: 5, ModRevision: 5},
		&mvccpb.KeyValue{Key: []byte("/registry/configmaps/team/one"), Value: configMap("old"), CreateRevision: 6, ModRevision: 6},
		&mvccpb.KeyValue{Key: []byte("/registry/configmaps/team/one"), Value: configMap("new"), CreateRevision: 6, ModRevision: 9},
		&mvccpb.KeyValue{Key: []byte("/registry/configmaps/team/sealed"), Value: []byte("k8s:enc:aescbc:v1:key1:..."), CreateRevision: 10, ModRevision: 10},
	)
	out := run(t, "snapshot", "import", snapshot, "--backup", backup)
	for _, want := range []string{"took 2 objects of 2 resources", "left configmaps/team/sealed"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	run(t, "snapshot", "restore", snapshot, "--data-dir", data)
	plane, err := controlplane.New(controlplane.Options{DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := plane.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	type stored struct {
		Metadata struct{ UID, ResourceVersion string }
		Data     map[string]string
	}
	var got stored
	get(t, plane, "/api/v1/namespaces/team/configmaps/one", &got)
	if got.Data["v"] != "new" || got.Metadata.UID != "4c5b0c5e-0000-4000-8000-000000000001" || got.Metadata.ResourceVersion != "9" {
		t.Errorf("the ConfigMap is %+v", got)
	}
}

func TestProgramIsKubeAPIServerUnderItsName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"/bin/kube-apiserver": "/registry", "kube-apiserver.exe": "/registry", "/bin/steer-etcd": ""} {
		p := program(name)
		got := ""
		if f := p.Flags().Lookup("etcd-prefix"); f != nil {
			got = f.DefValue
		}
		if got != want {
			t.Errorf("as %s it is %s with the prefix %q, want %q", name, p.Name(), got, want)
		}
	}
}

// get reads an object.
func get(t *testing.T, plane *controlplane.Plane, path string, into any) {
	t.Helper()
	config := plane.RESTConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", path, resp.StatusCode, err)
	}
}

// The authority that the flag names is the only one.
func TestEtcdIsVerifiedByTheAuthorityOfTheFlag(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	made, err := controlplane.OpenKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	o, err := options(up.Etcd{Servers: []string{"https://127.0.0.1:2379"}, CAFile: filepath.Join(keys, "ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	want := x509.NewCertPool()
	want.AddCert(made.CA)
	if !o.TLS.RootCAs.Equal(want) || o.TLS.InsecureSkipVerify || o.TLS.VerifyConnection != nil {
		t.Errorf("the options are %+v", o.TLS)
	}
	if _, err := options(up.Etcd{CAFile: filepath.Join(keys, "ca.key")}); err == nil || !strings.Contains(err.Error(), "--etcd-cafile") {
		t.Errorf("a file without certificates: got error %v", err)
	}
}
