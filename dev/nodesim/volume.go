package nodesim

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
)

// volume is a folder whose files come from one or more sources, each of which
// may change while the pod runs. The files of one moment change together: they
// are links through one link, as kubelets do it.
type volume struct {
	dir     string
	changed func()

	mu      sync.Mutex
	sources []map[string][]byte // nil: not there yet
	serial  int
	err     error
}

// files is a source that is there.
type files map[string][]byte

func newVolume(dir string, sources int, changed func()) *volume {
	return &volume{dir: dir, sources: make([]map[string][]byte, sources), changed: changed}
}

// set gives what one source holds now.
func (v *volume) set(source int, content files) {
	v.mu.Lock()
	v.sources[source] = content
	v.err = v.publish()
	v.mu.Unlock()
	v.changed()
}

// ready tells whether every source is there; the error says what went wrong.
func (v *volume) ready() (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.sources {
		if s == nil {
			return false, v.err
		}
	}
	return v.err == nil, v.err
}

func (v *volume) publish() error {
	all := files{}
	for _, s := range v.sources {
		if s == nil {
			return nil
		}
		maps.Copy(all, s)
	}
	v.serial++
	next := filepath.Join(v.dir, ".."+itoa(v.serial))
	for name, content := range all {
		file := filepath.Join(next, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return errors.Wrap(err, "making a folder in a volume")
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return errors.Wrap(err, "writing a file of a volume")
		}
	}
	if err := os.MkdirAll(next, 0o700); err != nil {
		return errors.Wrap(err, "making a folder in a volume")
	}
	if err := link(filepath.Base(next), filepath.Join(v.dir, "..data")); err != nil {
		return err
	}
	for name := range all {
		first := firstPart(name)
		if err := link(filepath.Join("..data", first), filepath.Join(v.dir, first)); err != nil {
			return err
		}
	}
	return errors.Wrap(os.RemoveAll(filepath.Join(v.dir, ".."+itoa(v.serial-1))), "clearing a volume")
}

// link makes or replaces a symbolic link at once.
func link(target, path string) error {
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}
	temp := path + ".new"
	_ = os.Remove(temp)
	if err := os.Symlink(target, temp); err != nil {
		return errors.Wrap(err, "linking a file of a volume")
	}
	return errors.Wrap(os.Rename(temp, path), "linking a file of a volume")
}

// mount makes the folders of the pod's volumes and keeps them up to date until
// ctx ends.
func (r *podRun) mount(ctx context.Context) error {
	r.volumes = map[string]string{}
	for _, v := range r.seen().Spec.Volumes {
		dir := filepath.Join(r.dir, "volumes", v.Name)
		switch {
		case v.HostPath != nil:
			r.volumes[v.Name] = v.HostPath.Path
			continue
		case v.EmptyDir != nil, v.Projected != nil, v.ConfigMap != nil, v.Secret != nil:
		default:
			continue
		}
		// What an earlier boot left there is older than what comes now.
		if v.EmptyDir == nil {
			if err := os.RemoveAll(dir); err != nil {
				return errors.Wrap(err, "clearing a volume")
			}
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return errors.Wrap(err, "making a volume")
		}
		r.volumes[v.Name] = dir
		r.fill(ctx, dir, v)
	}
	return nil
}

// fill starts what fills one volume.
func (r *podRun) fill(ctx context.Context, dir string, v corev1.Volume) {
	var sources []corev1.VolumeProjection
	switch {
	case v.Projected != nil:
		sources = v.Projected.Sources
	case v.ConfigMap != nil:
		sources = []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items, Optional: v.ConfigMap.Optional,
		}}}
	case v.Secret != nil:
		sources = []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items, Optional: v.Secret.Optional,
		}}}
	}
	if len(sources) == 0 {
		return
	}
	vol := newVolume(dir, len(sources), r.volumesChanged)
	r.filled = append(r.filled, vol)
	for i, s := range sources {
		set := func(f files) { vol.set(i, f) }
		switch {
		case s.ServiceAccountToken != nil:
			r.wg.Go(func() { r.keepToken(ctx, *s.ServiceAccountToken, set) })
		case s.ConfigMap != nil:
			r.followConfigMap(ctx, *s.ConfigMap, set)
		case s.Secret != nil:
			r.followSecret(ctx, *s.Secret, set)
		case s.DownwardAPI != nil:
			set(r.downward(*s.DownwardAPI))
		default:
			set(files{})
		}
	}
}
