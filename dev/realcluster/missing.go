package realcluster

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// tools are the programs that a cluster needs of the machine, and the Debian packages that bring them.
var tools = map[string]string{
	"ip": "iproute2", "iptables": "iptables", "nsenter": "util-linux", "unshare": "util-linux", "mount": "mount", "runc": "runc",
	"ldd": "libc-bin",
}

// Missing says in one line why a cluster can't be run here; empty: it can.
func Missing() string {
	if runtime.GOOS != "linux" {
		return "real nodes need Linux"
	}
	if os.Geteuid() != 0 {
		return "real nodes need root"
	}
	var lacking []string
	for tool, pkg := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			lacking = append(lacking, fmt.Sprintf("%s (Debian package %s)", tool, pkg))
		}
	}
	if len(lacking) > 0 {
		return "real nodes need " + strings.Join(lacking, " and ")
	}
	groups, err := hierarchies()
	if err != nil {
		return err.Error()
	}
	if len(groups) == 0 {
		return "real nodes need cgroups of version 1: on a machine with version 2 alone they were never tried"
	}
	return ""
}
