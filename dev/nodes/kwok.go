package nodes

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/pkg/errors"
)

//go:embed stages.yaml
var stages string

// defaultLease is the Lease duration of kubelets.
const defaultLease = 40 * time.Second

// writeStages writes the machine's stages for its kwok.
func (m *Machine) writeStages() error {
	c := m.fleet.config
	text := strings.NewReplacer(
		"@NAMESPACE@", c.Namespace,
		"@START@", strconv.FormatInt(c.PodStart.Milliseconds(), 10),
		"@STOP@", strconv.FormatInt(c.PodStop.Milliseconds(), 10),
		"@HOSTIP@", m.hostIP(),
	).Replace(stages)
	return errors.Wrap(os.WriteFile(m.path("stages.yaml"), []byte(text), 0o600), "writing stages")
}

// startKwok starts the part of the machine's kubelet that kwok plays.
func (m *Machine) startKwok() (*process.Process, error) {
	lease := m.fleet.config.LeaseDuration
	if lease == 0 {
		lease = defaultLease
	}
	cmd := exec.Command(m.fleet.cluster.Binaries().Kwok,
		"--kubeconfig="+m.fleet.kwokKubeconfig,
		"--config="+m.path("stages.yaml"),
		"--manage-single-node="+m.name,
		"--node-lease-duration-seconds="+strconv.Itoa(int(lease.Seconds())),
		"--cidr="+fmt.Sprintf("10.%d.%d.0/24", 128+m.index>>8, m.index&0xff),
		"--node-ip="+m.hostIP(),
	)
	log, err := process.Log(filepath.Join(m.fleet.logs, m.name+"-kwok.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	// Its own home, so that a configuration of the user's isn't found.
	cmd.Env = []string{"HOME=" + m.dir, "PATH=" + os.Getenv("PATH"), "GOMAXPROCS=2"}
	return process.Start(cmd)
}
