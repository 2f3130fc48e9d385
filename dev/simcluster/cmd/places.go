package main

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// places are where a local cluster has its things. They are the same for each, so that what a terminal was told once
// holds for the next cluster too.
type places struct {
	// dir holds the cluster's files, the kubeconfig and logs among them; they go with it. bin is in it.
	dir, bin string
	// authority is the folder of its certificate authority, which stays.
	authority string
	// socket is where a running cluster is talked to, lock is held while one runs.
	socket, lock string
	// program is the copy of this one that stays, log what it says.
	program, log string
}

func findPlaces() (places, error) {
	cache, err := controlplane.CacheDir()
	if err != nil {
		return places{}, err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return places{}, errors.Wrap(err, "making the cache folder")
	}
	dir := filepath.Join(cache, "local")
	return places{
		dir: dir, bin: filepath.Join(dir, "bin"), authority: dir + "-authority",
		socket: dir + ".sock", lock: dir + ".lock", program: dir + "-keep", log: dir + "-keep.log",
	}, nil
}

// unused reports whether no cluster runs, starts or stops.
func (p places) unused() (bool, error) {
	held, err := controlplane.TryLock(p.lock)
	if held == nil {
		return false, err
	}
	return true, held.Close()
}
