// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/manager"
)

// settings are the standard flags and environment variables.
type settings struct {
	kubeconfig, metrics, health            string
	elect                                  bool
	electNamespace                         string
	devel                                  bool
	encoder, level, stackLevel, timeFormat string
	log                                    io.Writer
}

// parseFlags reads the standard flags and the operator's own.
func parseFlags(args []string, op Operator) (*settings, error) {
	s := &settings{log: os.Stderr}
	set := flag.NewFlagSet(op.Name, flag.ContinueOnError)
	set.StringVar(&s.kubeconfig, "kubeconfig", "", "`file` that names the cluster; default $KUBECONFIG, the cluster this runs in, ~/.kube/config")
	set.StringVar(&s.metrics, "metrics-bind-address", "0", "`address` of /metrics; 0 serves none")
	set.StringVar(&s.health, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 serves none")
	set.BoolVar(&s.elect, "leader-elect", false, "let one of several processes lead")
	set.StringVar(&s.electNamespace, "leader-election-namespace", "", "`namespace` of the leader lease; default $POD_NAMESPACE, the namespace this runs in")
	set.BoolVar(&s.devel, "zap-devel", false, "log for people: text, debug level")
	set.StringVar(&s.encoder, "zap-encoder", "", "log `format`: json or console")
	set.StringVar(&s.level, "zap-log-level", "", "log `level`: debug, info, error, or a number above 0 for more than debug")
	set.StringVar(&s.stackLevel, "zap-stacktrace-level", "", "accepted for existing manifests; stack traces come with panics only")
	set.StringVar(&s.timeFormat, "zap-time-encoding", "", "accepted for existing manifests; times are RFC 3339")
	if op.Flags != nil {
		op.Flags(set)
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w; see --help", ErrUsage, err)
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%w: unexpected argument %q; see --help", ErrUsage, set.Arg(0))
	}
	if s.encoder != "" && s.encoder != "json" && s.encoder != "console" {
		return nil, fmt.Errorf("%w: --zap-encoder=%s: want json or console", ErrUsage, s.encoder)
	}
	if _, err := s.logLevel(); err != nil {
		return nil, err
	}
	return s, nil
}

// config finds the cluster: flag, environment, the cluster this runs in, home.
func (s *settings) config() (*rest.Config, error) {
	if s.kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if cfg, err := rest.InClusterConfig(); err == nil {
			return cfg, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("steer: no cluster: %w; pass --kubeconfig, set KUBECONFIG, or run `steer dev -- COMMAND`", err)
	}
	return cfg, nil
}

// options makes the manager's options of the settings.
func (s *settings) options(name string, scheme *runtime.Scheme) manager.Options {
	o := manager.Options{
		Name:          name,
		Scheme:        scheme,
		HealthAddress: address(s.health),
		Metrics:       manager.Metrics{Address: address(s.metrics)},
		Election: manager.Election{
			Enabled:   s.elect,
			Namespace: cmp.Or(s.electNamespace, os.Getenv("POD_NAMESPACE")),
		},
		Log: s.logger(),
	}
	for namespace := range strings.SplitSeq(os.Getenv("WATCH_NAMESPACE"), ",") {
		if namespace = strings.TrimSpace(namespace); namespace != "" {
			o.Cache.Namespaces = append(o.Cache.Namespaces, namespace)
		}
	}
	return o
}

// address turns the conventional "0" into no address.
func address(flag string) string {
	if flag == "0" {
		return ""
	}
	return flag
}

func (s *settings) logger() *slog.Logger {
	level, _ := s.logLevel() // checked by parseFlags
	opts := &slog.HandlerOptions{Level: level}
	if s.encoder == "console" || s.encoder == "" && s.devel {
		return slog.New(slog.NewTextHandler(s.log, opts))
	}
	return slog.New(slog.NewJSONHandler(s.log, opts))
}

func (s *settings) logLevel() (slog.Level, error) {
	switch s.level {
	case "":
		if s.devel {
			return slog.LevelDebug, nil
		}
		return slog.LevelInfo, nil
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "error", "panic":
		return slog.LevelError, nil
	}
	n, err := strconv.ParseUint(s.level, 10, 7)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: --zap-log-level=%s: want debug, info, error or a number above 0", ErrUsage, s.level)
	}
	return slog.LevelDebug - slog.Level(n-1), nil
}
