// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain holds the commands that say why an object is as it is: history, why and
// tree, and page, which shows it.
package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/cmd/steer/internal/chain"
	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/scaffold/project"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

// options are those of all commands.
type options struct {
	kubeconfig, context, namespace, output, from string
	records                                      []string
}

func (o *options) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that names the server (default: $KUBECONFIG, .steer/kubeconfig of the project, ~/.kube/config)")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig")
	flags.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of the object")
	flags.StringVarP(&o.output, "output", "o", "", "format: json, yaml, wide, which has more columns, or text, the default")
	flags.StringVar(&o.from, "from", "", "file that a failed test has left, in place of a server and of records")
	flags.StringArrayVar(&o.records, "records", nil, "records of an operator: the directory of its --record-dir, a file of JSON lines, or the address of its --pprof-bind-address, as http://127.0.0.1:6060, or [NAMESPACE/]pod/NAME[:PORT] or [NAMESPACE/]deploy/NAME[:PORT], reached by port-forward (default: the namespace of the object, port 6060); may be repeated (default: those of steer dev in the project)")
}

// shownVersions is how many versions a history has at most, unless told otherwise.
const shownVersions = 30

// NewHistory returns the command history.
func NewHistory() *cobra.Command {
	var o options
	values, limit := false, 0
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show the versions of an object, and who wrote them",
		Long: `Shows the versions of an object that the server still has (five minutes, as a rule), and
those that records know: revision, time, field manager, user, reconcile, changed fields.
Versions are asked for with the rights of the kubeconfig's user. The user of a write is
known by steer up and steer dev; the reconcile, where the records of its operator are at
hand. What is not known is said; nothing is guessed.`,
		Example: "  steer history deploy/web\n  steer history shop/bakery -p\n  steer history configmap web -n shop --records /var/lib/shop/records",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args, false, func(ctx context.Context, f *chain.Facts, object trace.Object, _ string) error {
				found, err := f.History(ctx, object, limit)
				if err != nil {
					return err
				}
				return o.print(cmd.OutOrStdout(), found, func() string { return found.Text(values, o.wide()) })
			})
		},
	}
	o.register(cmd)
	cmd.Flags().BoolVarP(&values, "patch", "p", false, "show the old and the new values, and what is not known")
	cmd.Flags().IntVar(&limit, "limit", shownVersions, "how many versions are shown at most")
	return cmd
}

// NewWhy returns the command why.
func NewWhy() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "why KIND/NAME[.FIELD]",
		Short: "Say why an object, or a field of it, is as it is",
		Long: `Says which write made a field as it is, which reconcile that write was of, and what
caused it, back to the first writer. It joins versions, writes and causes by revisions
alone. Where the chain ends it says what is missing.`,
		Example: "  steer why deploy/web.spec.replicas\n  steer why shop bakery\n  steer why deploy/web.spec.replicas --records http://127.0.0.1:6060 -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args, true, func(ctx context.Context, f *chain.Facts, object trace.Object, field string) error {
				answer, err := f.Why(ctx, object, field)
				if err != nil {
					return err
				}
				return o.print(cmd.OutOrStdout(), answer, answer.String)
			})
		},
	}
	o.register(cmd)
	return cmd
}

// NewTree returns the command tree.
func NewTree() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "tree KIND/NAME",
		Short: "Show what an object owns, and what of it is not ready",
		Long: `Shows the owners of an object and what it owns, by owner references, with the condition
Ready, Available or Complete of each. The deepest object that is not ready comes first,
with its whole message and its last reconcile. Lists that are refused are named.`,
		Example: "  steer tree deploy/web\n  steer tree shop bakery -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args, false, func(ctx context.Context, f *chain.Facts, object trace.Object, _ string) error {
				tree, err := treeOf(ctx, f, object)
				if err != nil {
					return err
				}
				return o.print(cmd.OutOrStdout(), tree, func() string { return tree.Text(o.wide()) })
			})
		},
	}
	o.register(cmd)
	return cmd
}

// treeOf lists what the server has in the namespace of an object, or everywhere for one
// without.
func treeOf(ctx context.Context, f *chain.Facts, object trace.Object) (*chain.Tree, error) {
	s := f.Server.(versions.Source)
	content, err := s.At(ctx, object, 0)
	if err != nil {
		return nil, err
	}
	if content == nil {
		return nil, fmt.Errorf("%s is not there", object)
	}
	all, missing := s.All(ctx, object.Namespace)
	tree := f.NewTree(versions.Object{Object: object, Content: content}, all)
	tree.Missing = append(tree.Missing, missing...)
	if f.NoRecords != "" {
		tree.Missing = append(tree.Missing, "the last reconciles: "+f.NoRecords)
	}
	return tree, nil
}

// run gathers the facts and passes them on with the object that the arguments name.
func (o *options) run(cmd *cobra.Command, args []string, fields bool, do func(context.Context, *chain.Facts, trace.Object, string) error) error {
	kind, name, err := split(args)
	if err != nil {
		return command.Usage(err.Error())
	}
	if !slices.Contains([]string{"", "json", "yaml", "wide", "text"}, o.output) {
		return command.Usage(fmt.Sprintf("-o %s: use json, yaml, wide or text", o.output))
	}
	ctx := cmd.Context()
	s, rec, err := o.open(ctx, func(err error) { fmt.Fprintln(cmd.ErrOrStderr(), "steer: "+chain.Plain(err.Error())) })
	if err != nil {
		return err
	}
	defer rec.close()
	r, err := s.Resource(kind)
	if err != nil {
		return err
	}
	object := trace.Object{Group: r.GVK.Group, Kind: r.GVK.Kind, Name: name}
	if r.Namespaced {
		object.Namespace = o.namespace
	}
	facts := newFacts(ctx, s, rec, "there are no records of operators: pass --records")
	field := ""
	if fields {
		if object.Name, field, err = fieldOf(ctx, s, object); err != nil {
			return err
		}
	}
	return do(ctx, facts, object, field)
}

// newFacts are those of a server and of records; without any, none says so.
func newFacts(ctx context.Context, s versions.Source, rec *records, none string) *chain.Facts {
	facts := &chain.Facts{Server: s, Records: rec.about, Ahead: rec.ahead, Plural: s.Plural}
	if rec.none {
		facts.NoRecords = none
	}
	facts.Notes, facts.NoNotes = s.Notes(ctx)
	return facts
}

// warnOnce tells each warning once.
func warnOnce(warn func(error)) func(error) {
	told := map[string]bool{}
	return func(err error) {
		if text := err.Error(); !told[text] {
			told[text] = true
			warn(err)
		}
	}
}

// open opens the sources that the flags name. A warning is told once.
func (o *options) open(ctx context.Context, warn func(error)) (versions.Source, *records, error) {
	if o.from != "" {
		if o.kubeconfig != "" || o.context != "" || len(o.records) > 0 {
			return nil, nil, command.Usage("--from is in place of --kubeconfig, --context and --records: leave them out")
		}
		return openFile(o.from)
	}
	config, err := o.config()
	if err != nil {
		return nil, nil, err
	}
	s, err := versions.Connect(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	rec, err := openRecords(ctx, o.places(), &pods{config, o.namespace}, warnOnce(warn))
	return s, rec, err
}

// split reads KIND/NAME, or KIND NAME.
func split(args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") && !strings.Contains(name, "[") {
		return "", "", errArguments
	}
	return kind, name, nil
}

// fieldOf splits NAME.FIELD at the dot that ends the longest name of an object that is
// there; names may have dots.
func fieldOf(ctx context.Context, s versions.Source, object trace.Object) (name, field string, err error) {
	whole := object.Name
	for end := len(whole); end > 0; end = strings.LastIndexAny(whole[:end], ".[") {
		object.Name = whole[:end]
		if strings.ContainsAny(object.Name, "[]/ ") {
			continue
		}
		found, err := s.At(ctx, object, 0)
		if err != nil {
			return "", "", err
		}
		if found != nil {
			return object.Name, strings.TrimPrefix(whole[end:], "."), nil
		}
	}
	name, field, _ = strings.Cut(whole, ".") // there is none: of a former one
	return name, field, nil
}

// config is that of the flags.
func (o *options) config() (*rest.Config, error) {
	file := o.kubeconfig
	if own := filepath.Join(project.StateDir, "kubeconfig"); file == "" && os.Getenv("KUBECONFIG") == "" && o.context == "" {
		if _, err := os.Stat(own); err == nil {
			file = own
		}
	}
	if o.context != "" {
		found, err := cluster.Find(file, o.context)
		if err != nil {
			return nil, err
		}
		return found.Config, nil
	}
	return cluster.Config(file)
}

// places are where records are.
func (o *options) places() []string {
	if len(o.records) > 0 {
		return o.records
	}
	own := filepath.FromSlash(project.RecordsDir)
	if info, err := os.Stat(own); err == nil && info.IsDir() {
		return []string{own}
	}
	return nil
}

func (o *options) wide() bool { return o.output == "wide" }

func (o *options) print(out io.Writer, value any, text func() string) error {
	switch o.output {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		data, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	}
	_, err := io.WriteString(out, text())
	return err
}
