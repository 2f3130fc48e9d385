package nodesim

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/pkg/errors"
)

// goodbye bounds what a kubelet has to say before a shutdown.
const goodbye = 5 * time.Second

// Up tells whether the machine has power.
func (m *Machine) Up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up != nil
}

// SetReboot changes how the machine reboots from now on.
func (m *Machine) SetReboot(r Reboot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reboot = r
}

// PowerOff cuts the power: the processes of the machine are killed, its socket
// is gone and its heartbeats end. The Node stays as it is.
func (m *Machine) PowerOff() {
	m.powerMu.Lock()
	defer m.powerMu.Unlock()
	m.mu.Lock()
	up := m.up
	m.up = nil
	m.mu.Unlock()
	if up == nil {
		return
	}
	up.end()
	m.host.PowerOff()
	_ = m.server.Close()
	_ = os.Remove(m.socket)
}

// PowerOn boots the host and then the kubelet; it returns when the API knows of
// the boot, or with an error when ctx ends first. The boot itself goes on then.
func (m *Machine) PowerOn(ctx context.Context) error {
	up, err := m.boot()
	if err != nil {
		return err
	}
	select {
	case <-up.reported:
		return nil
	case <-up.ctx.Done():
		return errors.Errorf("machine %q lost its power while it booted", m.name)
	case <-ctx.Done():
		return errors.Wrapf(ctx.Err(), "waiting for machine %q to boot", m.name)
	}
}

// boot starts the host and what runs on it, if the power is off.
func (m *Machine) boot() (*uptime, error) {
	m.powerMu.Lock()
	defer m.powerMu.Unlock()
	m.mu.Lock()
	up, again := m.up, m.booted
	m.booted = true
	m.mu.Unlock()
	if up != nil {
		return up, nil
	}
	if err := m.ctx.Err(); err != nil {
		return nil, errors.Wrapf(err, "booting machine %q", m.name)
	}
	if again {
		m.host.Boot()
	}
	if err := writeFile(m.BootIDFile(), []byte(m.host.BootID()+"\n")); err != nil {
		return nil, err
	}
	if err := m.server.Serve(m.socket); err != nil {
		return nil, errors.WithMessagef(err, "serving the host API of %q", m.name)
	}
	up = m.newUptime()
	m.mu.Lock()
	m.up = up
	m.mu.Unlock()
	return up, nil
}

// Reboot takes the machine down for a while, in its way of rebooting. It returns
// when the API knows of the new boot. A reboot that is asked for during a reboot
// is the same one.
func (m *Machine) Reboot(ctx context.Context, down time.Duration) error {
	if !m.rebootMu.TryLock() {
		return nil
	}
	defer m.rebootMu.Unlock()
	m.mu.Lock()
	mode := m.reboot.Mode
	m.mu.Unlock()
	if mode == RebootShutdown {
		// A kubelet without its API server shuts down all the same.
		bounded, cancel := context.WithTimeout(ctx, goodbye)
		_ = m.reportShutdown(bounded)
		cancel()
	}
	m.PowerOff()
	timer := time.NewTimer(down)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return errors.Wrapf(ctx.Err(), "rebooting machine %q", m.name)
	}
	return m.PowerOn(ctx)
}

// onReboot is the host's call after it accepted a reboot.
func (m *Machine) onReboot() {
	m.mu.Lock()
	down := m.reboot.Down
	m.mu.Unlock()
	if m.ctx.Err() != nil {
		return
	}
	m.wg.Go(func() { _ = m.Reboot(m.ctx, down) })
}

// neverReady reports whether the kubelet stays away after the boot (F18).
func (m *Machine) neverReady() bool {
	runs := m.host.Snapshot().Version
	for _, f := range m.host.Faults() {
		if f.ID == hostsim.F18 && (f.Version == "" || f.Version == runs) {
			return true
		}
	}
	return false
}

// writeFile replaces a file at once: no reader sees half of it.
func writeFile(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".new")
	if err != nil {
		return errors.Wrap(err, "making a file")
	}
	_, err = temp.Write(content)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return errors.Wrapf(err, "writing %s", filepath.Base(path))
}
