package kindcluster

import (
	"encoding/json"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// fromYAML reads YAML as JSON.
func fromYAML(t *testing.T, content []byte, into any) {
	t.Helper()
	j, err := utilyaml.ToJSON(content)
	assert.NilError(t, err, "%s", content)
	assert.NilError(t, json.Unmarshal(j, into))
}

type mount struct{ HostPath, ContainerPath string }

type configured struct {
	Kind, APIVersion     string
	KubeadmConfigPatches []string
	Nodes                []struct {
		Role        string
		ExtraMounts []mount
	}
}

func TestConfig(t *testing.T) {
	folders := []string{"/a folder/n1", "/a folder/n2"}
	content, err := kindConfig(folders, 16*time.Second)
	assert.NilError(t, err)
	var c configured
	fromYAML(t, content, &c)
	assert.Equal(t, c.Kind+" "+c.APIVersion, "Cluster kind.x-k8s.io/v1alpha4")

	assert.Equal(t, len(c.Nodes), 3)
	assert.Equal(t, c.Nodes[0].Role, "control-plane")
	for i, n := range c.Nodes[1:] {
		assert.Equal(t, n.Role, "worker")
		assert.DeepEqual(t, n.ExtraMounts, []mount{
			{folders[i], "/bottlerocket"},
			{folders[i] + "/kubelet.conf", "/etc/systemd/system/kubelet.service.d/20-bottlerocket.conf"},
		})
	}

	type patch struct {
		Kind, APIVersion  string
		ControllerManager struct{ ExtraArgs any }
	}
	patches := map[string]any{}
	for _, p := range c.KubeadmConfigPatches {
		var got patch
		fromYAML(t, []byte(p), &got)
		assert.Equal(t, got.Kind, "ClusterConfiguration")
		patches[got.APIVersion] = got.ControllerManager.ExtraArgs
	}
	assert.DeepEqual(t, patches, map[string]any{
		"kubeadm.k8s.io/v1beta3": map[string]any{"node-monitor-grace-period": "16s"},
		"kubeadm.k8s.io/v1beta4": []any{map[string]any{"name": "node-monitor-grace-period", "value": "16s"}},
	})
}

func TestConfigWithoutGracePeriod(t *testing.T) {
	content, err := kindConfig([]string{"/n1"}, 0)
	assert.NilError(t, err)
	var c configured
	fromYAML(t, content, &c)
	assert.Equal(t, len(c.KubeadmConfigPatches), 0)
	assert.Equal(t, len(c.Nodes), 2)
}
