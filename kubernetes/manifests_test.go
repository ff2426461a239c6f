package kubernetes

import (
	"bytes"
	"context"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/softrnic/softrnic/kubernetes/internal/command"
)

var update = flag.Bool("update", false, "make kustomize/base/daemonset.yaml anew")

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir("chart")
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	return c
}

// values are those of a release named softrnic, with these settings: YAML.
func values(t *testing.T, c *chart.Chart, settings string) (chartutil.Values, error) {
	t.Helper()
	given, err := chartutil.ReadValues([]byte(settings))
	require.NoError(t, err)
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.29.0", Major: "1", Minor: "29"}
	release := chartutil.ReleaseOptions{Name: "softrnic", Namespace: "softrnic-system"}
	return chartutil.ToRenderValues(c, given, release, capabilities)
}

// render is what the chart makes with these settings: a file, and its notes.
func render(t *testing.T, settings string) (manifest, notes string) {
	t.Helper()
	c := loadChart(t)
	v, err := values(t, c, settings)
	require.NoError(t, err)
	files, err := engine.Engine{Strict: true}.Render(c, v)
	require.NoError(t, err)
	return files["softrnic/templates/daemonset.yaml"], files["softrnic/templates/NOTES.txt"]
}

// daemonSet reads a manifest as strictly as `kubectl apply --validate=strict` does.
func daemonSet(t *testing.T, text string) *apps.DaemonSet {
	t.Helper()
	d := &apps.DaemonSet{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), d), text)
	require.Equal(t, meta.TypeMeta{Kind: "DaemonSet", APIVersion: "apps/v1"}, d.TypeMeta)
	return d
}

const changed = `
image: {repository: registry.example/x, tag: "7", pullPolicy: Always}
imagePullSecrets: [{name: secret}]
resource: example.com/nic
devices: 9
inject: mounts
hostFolder: /var/lib/softrnic
kubeletFolder: /var/lib/k0s/kubelet/device-plugins
nodeSelector: {rdma: soft}
tolerations: [{operator: Exists}]
priorityClassName: ""
resources: {}
seLinuxOptions: {type: spc_t}
`

func TestChart(t *testing.T) {
	text, notes := render(t, "")
	d := daemonSet(t, text)
	spec := d.Spec.Template.Spec
	assert.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
	assert.False(t, *spec.AutomountServiceAccountToken, "it asks the cluster nothing")
	assert.Contains(t, notes, "softrnic.io/rnic: 1")

	text, notes = render(t, changed)
	d = daemonSet(t, text)
	spec = d.Spec.Template.Spec
	assert.Contains(t, notes, "example.com/nic: 1")
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		assert.Equal(t, "registry.example/x:7", c.Image)
		assert.Equal(t, core.PullAlways, c.ImagePullPolicy)
	}
	assert.Equal(t, map[string]string{"kubernetes.io/os": "linux", "rdma": "soft"}, spec.NodeSelector)
	assert.Equal(t, []core.Toleration{{Operator: core.TolerationOpExists}}, spec.Tolerations)
	assert.Equal(t, "spc_t", spec.SecurityContext.SELinuxOptions.Type)
	assert.Equal(t, []core.LocalObjectReference{{Name: "secret"}}, spec.ImagePullSecrets)
	assert.Len(t, spec.Volumes, 2, "no folder for CDI files")
}

// Whatever the settings, the program takes the arguments, and each folder that they name is the host's under the same
// name.
func TestArguments(t *testing.T) {
	for what, settings := range map[string]string{
		"default": "", "changed": changed, "cdi": "cdiFolder: /etc/cdi\nhostFolder: /usr/lib/softrnic",
	} {
		t.Run(what, func(t *testing.T) {
			text, _ := render(t, settings)
			spec := daemonSet(t, text).Spec.Template.Spec
			folders := map[string]string{} // of the host, by volume
			for _, v := range spec.Volumes {
				folders[v.Name] = v.HostPath.Path
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				mounted := map[string]bool{}
				for _, m := range c.VolumeMounts {
					assert.Equal(t, folders[m.Name], m.MountPath)
					mounted[m.MountPath] = true
				}
				for _, a := range c.Args[1:] {
					name, value, _ := strings.Cut(a, "=")
					switch name {
					case "--to", "--kubelet-dir", "--cdi-dir":
						assert.True(t, mounted[value], a)
					case "--rnic":
						assert.True(t, mounted[filepath.Dir(value)], a)
						assert.Equal(t, "--to="+filepath.Dir(value), spec.InitContainers[0].Args[1])
					}
				}
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel() // so that it reads its flags, and ends
			assert.NoError(t, command.Run(ended, spec.Containers[0].Args, io.Discard))
			assert.ErrorContains(t, command.Run(ended, append(spec.InitContainers[0].Args, "--from=/none"), io.Discard), "/none")
		})
	}
}

func TestChartRefuses(t *testing.T) {
	for want, settings := range map[string]string{
		"device'":   "device: 3",
		"devices":   "devices: 0",
		"inject":    "inject: hooks",
		"resource":  "resource: rnic",
		"/image":    "image: {name: x}",
		"cdiFolder": "cdiFolder: run/cdi",
	} {
		_, err := values(t, loadChart(t), settings)
		assert.ErrorContains(t, err, want)
	}
}

// build is what kustomize makes of a folder, by kind.
func build(t *testing.T, folder string) map[string]string {
	t.Helper()
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err)
	objects := map[string]string{}
	for _, r := range all.Resources() {
		text, err := r.AsYAML()
		require.NoError(t, err)
		objects[r.GetKind()] = string(text)
	}
	return objects
}

func TestKustomize(t *testing.T) {
	text, _ := render(t, "")
	text = strings.TrimLeft(text, "\n")
	file := filepath.Join("kustomize", "base", "daemonset.yaml")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	now, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, text, string(now), "GOWORK=off go test -C kubernetes . -update")

	base := build(t, filepath.Join("kustomize", "base"))
	require.Equal(t, []string{"DaemonSet", "Namespace"}, slices.Sorted(maps.Keys(base)))
	d := daemonSet(t, base["DaemonSet"])
	assert.Equal(t, daemonSet(t, text), d)
	namespace := &core.Namespace{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(base["Namespace"]), namespace))
	assert.Equal(t, d.Namespace, namespace.Name)
	level := namespace.Labels[api.EnforceLevelLabel]
	assert.Empty(t, forbidden(t, api.Level(level), &d.ObjectMeta, &d.Spec.Template.Spec))

	mounts := daemonSet(t, build(t, filepath.Join("kustomize", "mounts"))["DaemonSet"])
	d.Spec.Template.Spec.Containers[0].Args[3] = "--inject=mounts"
	assert.Equal(t, d, mounts)
}

// forbidden is what Pod Security Admission has against a pod, of this release of its rules.
func forbidden(t *testing.T, level api.Level, m *meta.ObjectMeta, spec *core.PodSpec) (reasons []string) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	for _, r := range evaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, m, spec) {
		if !r.Allowed {
			reasons = append(reasons, r.ForbiddenReason)
		}
	}
	return reasons
}

// What the plug-in needs more than other pods: folders of the host, and to be root in them. docs/kubernetes.md says so.
func TestPluginSecurity(t *testing.T) {
	text, _ := render(t, "")
	d := daemonSet(t, text)
	spec := &d.Spec.Template.Spec
	assert.Equal(t, []string{"hostPath volumes"}, forbidden(t, api.LevelBaseline, &d.ObjectMeta, spec))
	assert.ElementsMatch(t, []string{"restricted volume types", "runAsNonRoot != true", "runAsUser=0"},
		forbidden(t, api.LevelRestricted, &d.ObjectMeta, spec))
}

// examples are the documents of the files in examples, by file.
func examples(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("examples/*.yaml")
	require.NoError(t, err)
	all := map[string][]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all[f] = strings.Split(string(text), "\n---\n")
	}
	return all
}

// The pods of users need nothing that the strictest level forbids.
func TestExamples(t *testing.T) {
	pods := 0
	for file, documents := range examples(t) {
		for _, text := range documents {
			var kind runtime.TypeMeta
			require.NoError(t, yaml.Unmarshal([]byte(text), &kind))
			switch kind.Kind {
			case "Pod":
				p := &core.Pod{}
				require.NoError(t, yaml.UnmarshalStrict([]byte(text), p), file)
				assert.Empty(t, forbidden(t, api.LevelRestricted, &p.ObjectMeta, &p.Spec), "%s: %s", file, p.Name)
				pods++
			case "Service":
				require.NoError(t, yaml.UnmarshalStrict([]byte(text), &core.Service{}), file)
			default:
				require.Fail(t, "unknown kind", "%s: %s", file, kind.Kind)
			}
		}
	}
	assert.Equal(t, 4, pods)
}

// The chart, the examples and the page are of the release that the library says it is.
func TestRelease(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "verbs", "version.go"))
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^const release = "(.+)"$`).FindSubmatch(source)
	require.NotNil(t, m)
	release := string(m[1])
	c := loadChart(t)
	assert.Equal(t, release, c.Metadata.Version)
	assert.Equal(t, release, c.Metadata.AppVersion)

	page, err := os.ReadFile(filepath.Join("..", "docs", "kubernetes.md"))
	require.NoError(t, err)
	texts := map[string]string{"page": string(page)}
	for file, documents := range examples(t) {
		texts[file] = strings.Join(documents, "\n")
	}
	tag := regexp.MustCompile(`(?:softrnic-[a-z-]+:|TAG=)([0-9]\S*[0-9])`)
	for what, text := range texts {
		tags := tag.FindAllStringSubmatch(text, -1)
		assert.NotEmpty(t, tags, what)
		for _, found := range tags {
			assert.Equal(t, release, found[1], "%s: %s", what, found[0])
		}
	}
}

// The page shows the files, not copies that go stale.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "kubernetes.md"))
	require.NoError(t, err)
	for file := range examples(t) {
		assert.Contains(t, string(page), "kubernetes/"+file)
	}
	blocks := bytes.Split(page, []byte("```yaml\n"))[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		text, _, found := bytes.Cut(b, []byte("```"))
		require.True(t, found)
		require.NoError(t, yaml.UnmarshalStrict(text, &core.PodSpec{}), "%s", text)
	}
}
