package chart

import (
	"os"
	"testing"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

var shared = controlplane.Shared{Config: controlplane.Config{ControllerManager: true}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
