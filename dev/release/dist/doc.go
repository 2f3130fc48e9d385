// Package dist makes the files of a release: `make dist`.
//
// It promises:
//
//   - The same commit, tag and Go release give the same bytes in any folder, on any machine and at any time: archives are
//     sorted, every time in them is the commit's, and nothing depends on the modes of files.
//   - The image that manifests and chart name is the one that lies beside them, by its digest.
//   - Whatever a program links stands in sbom.spdx.json, and its licence is in the program's archive and in the image.
//
// Files have the same names in each release but for the chart, whose name Helm makes, so that a link to the newest
// one needs no version. They lie in one folder, as GitHub has it. docs/releasing.md lists them.
//
// Make is the edge, which compiles and writes. The rest computes bytes of values: archives, the chart, the list of
// what is linked, krew's manifest and the checksums.
//
// It imports dev/image for the image and to compile, dev/release/chart, Helm to pack, and the libraries of those that
// define the formats: tools-golang of SPDX and the types of krew. licensecheck is what pkg.go.dev recognises licences
// with.
package dist
