package manifest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// example is one of docs/plans: what is applied, and the plan that its comment gives for the policy.
type example struct {
	plan      policy.Plan
	templates map[string]*corev1.PodTemplate
	mounted   map[string]bool
}

// exampleOf reads docs/plans/NAME.yaml. A field that the API or the policy doesn't know is an error.
func exampleOf(t *testing.T, name string) example {
	t.Helper()
	content := page(t, filepath.Join("docs", "plans", name+".yaml"))
	e := example{templates: map[string]*corev1.PodTemplate{}, mounted: map[string]bool{}}

	text := "version: 1\n"
	for _, line := range strings.Split(content, "\n") {
		if inside, ok := strings.CutPrefix(line, "#   "); ok {
			text += inside + "\n"
		}
	}
	settings, err := file.Decode([]byte(text), policy.DefaultSettings(), nil)
	assert.NilError(t, err, text)
	assert.Equal(t, len(settings.Plans), 1, text)
	e.plan = settings.Plans[0]

	docs, err := split([]byte(content))
	assert.NilError(t, err)
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, doc := range docs {
		obj, _, err := decoder.Decode(doc, nil, nil)
		assert.NilError(t, err)
		switch o := obj.(type) {
		case *corev1.PodTemplate:
			assert.Equal(t, o.Namespace, "bottlerocket-plans")
			e.templates[o.Name] = o
		case *corev1.Secret:
			assert.Equal(t, o.Namespace, "bottlerocket-plans")
			e.mounted[o.Name] = true
		default:
			t.Fatalf("docs/plans/%s.yaml has a %T", name, obj)
		}
	}
	return e
}

// Each example can be applied as it is, its comment is a policy, and the two belong together.
func TestPlanExamples(t *testing.T) {
	files, err := filepath.Glob(inRepository("docs/plans/*.yaml"))
	assert.NilError(t, err)
	assert.Assert(t, len(files) >= 4)
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".yaml")
		t.Run(name, func(t *testing.T) {
			e := exampleOf(t, name)
			assert.Equal(t, e.plan.Name, name)
			assert.Assert(t, strings.Contains(page(t, "docs/plans.md"), "(plans/"+name+".yaml)"), "docs/plans.md doesn't name it")
			named := map[string]bool{e.plan.Apply: true}
			if e.plan.Prepare != "" {
				named[e.plan.Prepare] = true
			}
			for template := range named {
				assert.Assert(t, e.templates[template] != nil, "there is no template %s", template)
			}
			assert.Equal(t, len(e.templates), len(named), "a template is there that the plan doesn't name")
			for _, template := range e.templates {
				spec := template.Template.Spec
				assert.Equal(t, len(spec.Containers), 1)
				mounts := map[string]bool{}
				for _, m := range spec.Containers[0].VolumeMounts {
					mounts[m.Name] = true
				}
				for _, v := range spec.Volumes {
					assert.Assert(t, mounts[v.Name], "volume %s is not mounted", v.Name)
					delete(mounts, v.Name)
					if v.Secret != nil {
						assert.Assert(t, e.mounted[v.Secret.SecretName], "there is no Secret %s", v.Secret.SecretName)
					}
				}
				assert.Equal(t, len(mounts), 0, "what is mounted is no volume: %v", mounts)
			}
		})
	}
}

const terminationLog = "/dev/termination-log"

// machine is a host, as a container of an example sees it: folders for what is mounted, commands that are stand-ins and
// write down how they were called, and the termination log.
type machine struct {
	dir, target string
}

func newMachine(t *testing.T, target string) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir(), target: target}
	// No command of the machine that the test runs on is found, but for these.
	for _, tool := range []string{"sh", "cat", "cp", "grep", "rm", "tail"} {
		at, err := exec.LookPath(tool)
		assert.NilError(t, err)
		for _, of := range []string{"container", "host"} {
			assert.NilError(t, os.MkdirAll(m.in(of), 0o755))
			assert.NilError(t, os.Symlink(at, m.in(of, tool)))
		}
	}
	// What a container runs in its host's root finds the commands of the host.
	m.command(t, "container", "chroot", `shift; PATH=`+m.in("host")+` exec "$@"`)
	return m
}

// in is where something of the machine is.
func (m *machine) in(elements ...string) string {
	return filepath.Join(append([]string{m.dir}, elements...)...)
}

// command is a stand-in for one of the container or the host.
func (m *machine) command(t *testing.T, of, name, body string) {
	t.Helper()
	script := "#!/bin/sh\n{ printf " + name + "; printf ' <%s>' \"$@\"; echo; } >>" + m.in("calls") + "\n" + body + "\n"
	assert.NilError(t, os.WriteFile(m.in(of, name), []byte(script), 0o755))
}

// mount is where what is mounted at a path is.
func (m *machine) mount(path string) string { return m.in("mounts", path) }

// write writes a file of what is mounted.
func (m *machine) write(t *testing.T, path, content string) {
	t.Helper()
	assert.NilError(t, os.MkdirAll(filepath.Dir(m.mount(path)), 0o755))
	assert.NilError(t, os.WriteFile(m.mount(path), []byte(content), 0o600))
}

// read reads a file, which need not be there.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		assert.NilError(t, err)
	}
	return string(content)
}

// calls returns the calls of stand-ins since the last time. The machine's own folder is left out of them.
func (m *machine) calls(t *testing.T) string {
	t.Helper()
	calls := read(t, m.in("calls"))
	assert.NilError(t, os.RemoveAll(m.in("calls")))
	return strings.ReplaceAll(calls, m.in("mounts"), "")
}

// run runs the one container of a template: its script, with the paths of what is mounted and of the termination log
// replaced by the machine's. It returns the last line of its log, and whether it ended with 0.
func (m *machine) run(t *testing.T, e example, template string, env ...string) (last string, ok bool) {
	t.Helper()
	c := e.templates[template].Template.Spec.Containers[0]
	assert.DeepEqual(t, c.Command[:2], []string{"/bin/sh", "-ec"})
	assert.Equal(t, len(c.Command), 3)
	script := c.Command[2]
	var replace []string
	for _, v := range c.VolumeMounts {
		replace = append(replace, v.MountPath, m.mount(v.MountPath))
		assert.NilError(t, os.MkdirAll(m.mount(v.MountPath), 0o755))
	}
	if e.plan.Target.Content {
		replace = append(replace, terminationLog, m.in("terminated"))
	}
	for i := 0; i < len(replace); i += 2 {
		assert.Assert(t, strings.Contains(script, replace[i]), "the script does not use %s", replace[i])
	}
	script = strings.NewReplacer(replace...).Replace(script)

	run := exec.CommandContext(t.Context(), "/bin/sh", c.Command[1], script)
	run.Dir = m.dir
	run.Env = append(env, "PATH="+m.in("container"))
	for _, v := range c.Env {
		assert.Equal(t, v.ValueFrom.FieldRef.FieldPath, "metadata.annotations['bottlerocket.aws/target']")
		run.Env = append(run.Env, v.Name+"="+m.target)
	}
	out, err := run.CombinedOutput()
	t.Logf("%s: %v\n%s", template, err, out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], err == nil
}

const digest = "0123456789abcdef"

// The example for packages proves its content only once all is done, and asks for a boot before it says that one comes.
func TestPackagesExample(t *testing.T) {
	const upgraded = "chroot </host> <apt-get> <-q> <update>\napt-get <-q> <update>\n" +
		"chroot </host> <apt-get> <-q> <-y> <dist-upgrade>\napt-get <-q> <-y> <dist-upgrade>\n"
	e := exampleOf(t, "packages")
	for _, tc := range []struct {
		name             string
		reboot, fails    bool
		shutdown         string
		calls, last, end string
	}{
		{name: "no boot is needed", calls: upgraded, end: digest},
		{name: "a boot is needed", reboot: true, calls: upgraded + "chroot </host> <shutdown> <-r> <+1>\nshutdown <-r> <+1>\n", end: digest + " reboot"},
		{name: "no boot can be had", reboot: true, shutdown: "echo no >&2; exit 1\n",
			calls: upgraded + "chroot </host> <shutdown> <-r> <+1>\nshutdown <-r> <+1>\n", last: "no"},
		{name: "the mirror is down", fails: true, calls: "chroot </host> <apt-get> <-q> <update>\napt-get <-q> <update>\n", last: "E: no mirror"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMachine(t, digest)
			aptGet := `[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 100`
			if tc.fails {
				aptGet = "echo 'E: no mirror' >&2; exit 100"
			}
			m.command(t, "host", "apt-get", aptGet)
			m.command(t, "host", "shutdown", "[ ! -e "+m.in("terminated")+" ] || { echo it was said already; exit 1; }\n"+tc.shutdown)
			if tc.reboot {
				m.write(t, "/host/run/reboot-required", "")
			}
			last, ok := m.run(t, e, "packages")
			assert.Equal(t, ok, tc.end != "")
			assert.Equal(t, last, tc.last)
			assert.Equal(t, m.calls(t), tc.calls)
			assert.Equal(t, read(t, m.in("terminated")), tc.end)
		})
	}
}

// The example for files proves its content only once the files are there.
func TestFilesExample(t *testing.T) {
	e := exampleOf(t, "files")
	m := newMachine(t, digest)
	// A Secret's files are links to a folder that is replaced as a whole.
	m.write(t, "/files/..data/example.conf", "answer = 42\n")
	assert.NilError(t, os.Symlink("..data/example.conf", m.mount("/files/example.conf")))
	_, ok := m.run(t, e, "files")
	assert.Assert(t, ok)
	info, err := os.Lstat(m.mount("/host/example.conf"))
	assert.NilError(t, err)
	assert.Assert(t, info.Mode().IsRegular(), "a link was copied")
	assert.Equal(t, read(t, m.mount("/host/example.conf")), "answer = 42\n")
	assert.Equal(t, read(t, m.in("terminated")), digest)

	m = newMachine(t, digest)
	_, ok = m.run(t, e, "files")
	assert.Assert(t, !ok, "there was no file")
	assert.Equal(t, read(t, m.in("terminated")), "")
}

// standIn is updog as hosts have it before Bottlerocket 0.4.1: what it says, and where, and how it ends. $offers is the
// version that its repository has for the host, and $wave when the host's turn comes: now, at a time, or later. With
// $deaf it heeds that although it was told not to.
const standIn = `
# Bad usage ends with 1, as all errors do.
usage() { echo "USAGE:" >&2; exit 1; }
command=$1; shift
version=$offers; now=; reboot=
while [ $# -gt 0 ]; do
	case $1 in
	-i) version=$2; shift ;;
	-n) [ -n "$deaf" ] || now=yes ;;
	-r) reboot=yes ;;
	*) usage ;;
	esac
	shift
done
if [ -n "$fails" ]; then echo "$fails" >&2; exit 1; fi
case $command in
update-image)
	if [ "$version" != "$offers" ]; then echo "No update required" >&2; exit 0; fi
	case $wave$now in
	later) echo "Update available in later wave" >&2; exit 0 ;;
	at) echo "Update available at 2020-09-01 08:00:00 UTC"; exit 0 ;;
	esac
	echo "Starting update to $version" >&2
	[ -z "$now" ] || echo "** Updating immediately **" >&2
	echo "$version" >written
	echo "Update applied: aws-k8s-1.17$separator$version"
	;;
update-apply)
	[ -e written ] || { echo "Inactive partition is not valid to be upgraded to" >&2; exit 1; }
	[ -z "$reboot" ] || shutdown -r
	;;
*) usage ;;
esac
`

// The example for hosts before 0.4.1 boots a host only into an image that was written for just that.
func TestUpdogExample(t *testing.T) {
	e := exampleOf(t, "updog")
	const (
		image = "chroot </.bottlerocket/rootfs> <updog> <update-image> <-i> <0.4.1> <-n>\nupdog <update-image> <-i> <0.4.1> <-n>\n"
		apply = "chroot </.bottlerocket/rootfs> <updog> <update-apply> <-r>\nupdog <update-apply> <-r>\nshutdown <-r>\n"
		none  = "no pod of updog-image has written 0.4.1 since the host booted"
	)
	for _, tc := range []struct {
		name, target string
		// say is what the stand-in for updog goes by, in place of the environment of a host that has an update.
		say []string
		// last is the end of what the first pod says; empty: it ends well, and the second one boots the host.
		last string
		// unasked: updog isn't called at all.
		unasked bool
	}{
		{name: "it goes well"},
		{name: "with the variant", target: "Bottlerocket OS 0.4.1 (aws-k8s-1.17)"},
		{name: "an older updog", say: []string{"separator=-"}},
		{name: "the host's turn comes later", say: []string{"wave=later"}},
		{name: "the host's turn has a time", say: []string{"wave=at"}},
		{name: "its turn comes later whatever it is told", say: []string{"wave=later", "deaf=yes"}, last: "updog has not written 0.4.1: Update available in later wave"},
		{name: "its turn has a time whatever it is told", say: []string{"wave=at", "deaf=yes"},
			last: "updog has not written 0.4.1: Update available at 2020-09-01 08:00:00 UTC"},
		{name: "there is nothing to do", say: []string{"offers=0.4.0"}, last: "updog has not written 0.4.1: No update required"},
		{name: "it is another version", say: []string{"offers=10.4.1"}, last: "updog has not written 0.4.1: No update required"},
		{name: "it fails", say: []string{"fails=Metadata error: Failed to fetch"}, last: "updog update-image failed with 1: Metadata error: Failed to fetch"},
		{name: "a version of something else", target: "0.4.1", unasked: true,
			last: "the target is not what kubelets of Bottlerocket show, such as Bottlerocket OS 0.4.1: 0.4.1"},
		{name: "a version with a v", target: "Bottlerocket OS v0.4.1", unasked: true, last: "Bottlerocket OS v0.4.1"},
		{name: "half a version", target: "Bottlerocket OS 0.4", unasked: true, last: "Bottlerocket OS 0.4"},
		{name: "more than a version", target: "Bottlerocket OS 0.4.1 $(reboot)", unasked: true, last: "Bottlerocket OS 0.4.1 $(reboot)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.target == "" {
				tc.target = e.plan.Target.Version
			}
			assert.Assert(t, marker.ValidPlanTarget(tc.target))
			m := newMachine(t, tc.target)
			m.command(t, "host", "updog", standIn)
			m.command(t, "host", "shutdown", "")
			env := append([]string{"offers=0.4.1", "wave=", "fails=", "deaf=", "separator= "}, tc.say...)
			// What an earlier attempt has left is not taken for this one's.
			m.write(t, "/.bottlerocket/rootfs/run/update-operator-image", "0.4.1\n")

			last, ok := m.run(t, e, e.plan.Prepare, env...)
			assert.Equal(t, ok, tc.last == "")
			assert.Assert(t, strings.HasSuffix(last, tc.last), last)
			if tc.unasked {
				assert.Equal(t, m.calls(t), "")
				return
			}
			assert.Equal(t, m.calls(t), image)
			last, ok = m.run(t, e, e.plan.Apply, env...)
			if tc.last != "" {
				assert.Assert(t, !ok)
				assert.Equal(t, last, none)
				assert.Equal(t, m.calls(t), "", "the host was booted for nothing")
				return
			}
			assert.Assert(t, ok, last)
			assert.Equal(t, m.calls(t), apply)

			last, ok = m.run(t, e, e.plan.Apply, env...)
			assert.Assert(t, !ok, "an image was applied twice")
			assert.Equal(t, last, none)
			assert.Equal(t, m.calls(t), "")
		})
	}
	t.Run("it can't be applied", func(t *testing.T) {
		m := newMachine(t, e.plan.Target.Version)
		m.command(t, "host", "updog", standIn)
		m.write(t, "/.bottlerocket/rootfs/run/update-operator-image", "0.4.1\n")
		last, ok := m.run(t, e, e.plan.Apply, "fails=")
		assert.Assert(t, !ok)
		assert.Equal(t, last, "Inactive partition is not valid to be upgraded to")
	})
}
