// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pretty() parameter {
	return parameter{"pretty", "query", "string", "If 'true', then the output is pretty printed. Defaults to 'false' " +
		"unless the user-agent indicates a browser or command-line HTTP tool (curl and wget)."}
}

func inNamespace() parameter {
	return parameter{"namespace", "path", "string", "object name and auth scope, such as for teams and projects"}
}

// query returns a query parameter; docs are the descriptions of the options that it
// sets.
func query(name, schemaType string, docs map[string]string) parameter {
	return parameter{name, "query", schemaType, docs[name]}
}

func listParameters() []parameter {
	docs := metav1.ListOptions{}.SwaggerDoc()
	return []parameter{
		query("allowWatchBookmarks", "boolean", docs),
		query("continue", "string", docs),
		query("fieldSelector", "string", docs),
		query("labelSelector", "string", docs),
		query("limit", "integer", docs),
		query("resourceVersion", "string", docs),
		query("resourceVersionMatch", "string", docs),
		query("sendInitialEvents", "boolean", docs),
		query("shardSelector", "string", docs),
		query("timeoutSeconds", "integer", docs),
		query("watch", "boolean", docs),
	}
}

func withPretty(list []parameter) []parameter { return sorted(append(list, pretty())) }

func writeParameters(docs map[string]string) []parameter {
	return []parameter{query("dryRun", "string", docs), query("fieldManager", "string", docs), query("fieldValidation", "string", docs)}
}

func deleteParameters() []parameter {
	docs := metav1.DeleteOptions{}.SwaggerDoc()
	return []parameter{
		query("dryRun", "string", docs),
		query("gracePeriodSeconds", "integer", docs),
		query("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", docs),
		query("orphanDependents", "boolean", docs),
		query("propagationPolicy", "string", docs),
	}
}

// deleteCollectionParameters returns the parameters that select and delete, without
// those of watches.
func deleteCollectionParameters() []parameter {
	list := slices.DeleteFunc(listParameters(), func(p parameter) bool {
		return p.name == "watch" || p.name == "allowWatchBookmarks"
	})
	return sorted(append(list, deleteParameters()...))
}

func sorted(list []parameter) []parameter {
	slices.SortFunc(list, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return list
}
