// Package image builds the operator's container image without a container engine: an OCI archive, which
// containerd, skopeo and others take, of one image for each platform and an index of them.
//
// It promises:
//
//   - What the Dockerfile makes, this makes: the same files at the same places, user and entrypoint. A
//     test reads the Dockerfile and compares.
//   - Nothing comes from the machine: the commands are compiled from this checkout, the certificates (see
//     roots) and the licences (see dev/licences.sh) are those of pinned modules and of Go.
//   - The same source, version and Go release give the same bytes in any folder, on any machine and at any
//     time: entries are sorted, times are fixed, and nothing depends on the modes of files.
//   - The index's digest doesn't depend on the image's name, which is only in the archive's annotations.
//
// Compile, which runs the go command, is apart from the rest, which computes from files.
//
// Manifests, layers and the layout are written by github.com/google/go-containerregistry. It is what the
// tools of this trade are made of and is well kept, and writing digests, media types and diff IDs by
// hand would gain nothing. No product command may link it, which dev/architecture holds.
// It adds five modules to go.mod, itself and the roots counted, and two more to go.sum alone; klauspost/compress
// is the only one of them with much code.
//
// It imports that library, pkg/errors and dev/controlplane for the checkout's place and the go command.
package image
