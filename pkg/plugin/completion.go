package plugin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// completionTime bounds a completion.
const completionTime = 5 * time.Second

// Which nodes a subcommand is for, by their labels and annotations.

func inCare(n *metav1.PartialObjectMetadata) bool {
	return fleet.InterfaceOf(n.Labels) != fleet.InterfaceNone || has(n, marker.KeyIntentID)
}
func withHistory(n *metav1.PartialObjectMetadata) bool { return has(n, marker.KeyHistory) }
func failed(n *metav1.PartialObjectMetadata) bool      { return has(n, marker.KeyFailure) }
func paused(n *metav1.PartialObjectMetadata) bool      { return has(n, marker.KeyPaused) }
func notPaused(n *metav1.PartialObjectMetadata) bool   { return inCare(n) && !paused(n) }

func has(n *metav1.PartialObjectMetadata, key marker.Key) bool {
	_, there := n.Annotations[string(key)]
	return there
}

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completeNodes completes the names of nodes that aren't there yet.
func (p *plugin) completeNodes(wanted func(*metav1.PartialObjectMetadata) bool) completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if !strings.Contains(c.Use, "...") && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		err := p.eachNode(c.Context(), completionTime, func(n *metav1.PartialObjectMetadata) {
			if wanted(n) && strings.HasPrefix(n.Name, begun) && !slices.Contains(args, n.Name) {
				names = append(names, n.Name)
			}
		})
		return completed(names, err)
	}
}

// completeFailedVersions completes versions that some node failed at.
func (p *plugin) completeFailedVersions(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	versions := map[string]bool{}
	err := p.eachNode(c.Context(), completionTime, func(n *metav1.PartialObjectMetadata) {
		if marks, _ := marker.Decode(n.Annotations); marks.Failure != nil {
			for _, v := range marks.Failure.Versions {
				if strings.HasPrefix(v, begun) {
					versions[v] = true
				}
			}
		}
	})
	return completed(slices.SortedFunc(maps.Keys(versions), marker.CompareVersions), err)
}

// completeOfferedVersions completes versions that some host lists or runs.
func (p *plugin) completeOfferedVersions(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	versions := map[string]bool{}
	err := p.eachNode(c.Context(), completionTime, func(n *metav1.PartialObjectMetadata) {
		marks, _ := marker.Decode(n.Annotations)
		listed, _ := marks.Report.Offered.Versions()
		for _, v := range append(listed, marks.Report.Current, marks.Report.Available) {
			if v != "" && strings.HasPrefix(v, begun) {
				versions[v] = true
			}
		}
	})
	return completed(slices.SortedFunc(maps.Keys(versions), marker.CompareVersions), err)
}

// completeGroups completes the policy's groups.
func (p *plugin) completeGroups(c *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	client, err := p.client()
	var config *corev1.ConfigMap
	if err == nil {
		config, err = p.policyConfigMap(ctx, client)
	}
	var set policy.Settings
	if err == nil {
		set, err = decodePolicy(config)
	}
	var names []string
	for _, g := range set.Groups {
		if strings.HasPrefix(g.Name, begun) {
			names = append(names, g.Name)
		}
	}
	return completed(names, err)
}

func completed(words []string, err error) ([]string, cobra.ShellCompDirective) {
	if err != nil {
		cobra.CompErrorln(line(err.Error()))
		return nil, cobra.ShellCompDirectiveError
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// eachNode looks at the metadata of all nodes, page by page.
func (p *plugin) eachNode(ctx context.Context, within time.Duration, do func(*metav1.PartialObjectMetadata)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	client, err := p.metadataClient()
	if err != nil {
		return err
	}
	nodes := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})
	list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) })
	return list.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		do(o.(*metav1.PartialObjectMetadata))
		return nil
	})
}
