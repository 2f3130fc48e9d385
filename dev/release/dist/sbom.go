package dist

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/pkg/errors"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdx/v2/common"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/image"
)

// ours is this project's licence, as COPYRIGHT has it.
const ours = "Apache-2.0 OR MIT"

// Purposes of a part, as SPDX names them.
const (
	purposeArchive     = "ARCHIVE"
	purposeContainer   = "CONTAINER"
	purposeApplication = "APPLICATION"
	purposeLibrary     = "LIBRARY"
)

// part is something of a release: a file of it, or what is in one.
type part struct {
	name    string
	purpose string
	sha256  string
	// locator is its package URL, if it has one.
	locator string
	holds   []part
	links   []debug.Module
}

// stdlib is the module that Go's standard library and runtime are for package URLs. Licences have it under std, as Go
// calls it.
const stdlib = "stdlib"

// program returns a compiled program with what it says of itself: all modules that are linked, and Go's own.
func program(name, platform, version string, content []byte) (part, error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return part{}, errors.Wrapf(err, "reading what %s for %s links", name, platform)
	}
	p := part{name: name + " " + platform, purpose: purposeApplication, sha256: sha256Of(content),
		locator: "pkg:golang/" + info.Main.Path + "@" + version + "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/"),
		links:   []debug.Module{{Path: stdlib, Version: strings.TrimPrefix(info.GoVersion, "go")}}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return part{}, errors.Errorf("%s links a replaced %s, whose source has no version", name, m.Path)
		}
		p.links = append(p.links, *m)
	}
	return p, nil
}

// document describes parts of a release and all that they hold and link, in SPDX. licences has the licence files by
// module.
func document(build image.Build, at time.Time, parts []part, licences fs.FS) (*spdx.Document, error) {
	d := &describer{build: build, licences: licences, modules: map[string]bool{}, described: map[spdx.ElementID]bool{}}
	d.collect(parts)
	d.document = &spdx.Document{
		SPDXVersion:       spdx.Version,
		DataLicense:       spdx.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      "bottlerocket-update-operator " + build.Version,
		DocumentNamespace: repository + "/spdx/" + build.Version + "/" + build.Commit,
		DocumentComment: "Made of what Go writes into each program. The checksum of a module is that of its files in go.sum (h1). " +
			"The licences of a module are those that its licence files hold.",
		CreationInfo: &spdx.CreationInfo{
			Created:  at.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "make-dist-" + build.Version}},
		},
	}
	for _, p := range parts {
		id, err := d.part(p)
		if err != nil {
			return nil, err
		}
		d.relate("DOCUMENT", common.TypeRelationshipDescribe, id)
	}
	return d.document, nil
}

// describer makes the packages of a document, each once.
type describer struct {
	build     image.Build
	licences  fs.FS
	modules   map[string]bool
	described map[spdx.ElementID]bool
	document  *spdx.Document
}

func (d *describer) collect(parts []part) {
	for _, p := range parts {
		for _, m := range p.links {
			d.modules[m.Path] = true
		}
		d.collect(p.holds)
	}
}

func (d *describer) relate(a spdx.ElementID, how string, b spdx.ElementID) {
	d.document.Relationships = append(d.document.Relationships, &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: a}, RefB: common.DocElementID{ElementRefID: b}, Relationship: how})
}

// add adds a package, unless it is there, and says whether it wasn't.
func (d *describer) add(kind string, p *spdx.Package, checksum, locator string) (id spdx.ElementID, added bool) {
	p.PackageSPDXIdentifier = elementID(kind, p.PackageName, p.PackageVersion)
	if d.described[p.PackageSPDXIdentifier] {
		return p.PackageSPDXIdentifier, false
	}
	d.described[p.PackageSPDXIdentifier] = true
	p.PackageDownloadLocation, p.PackageCopyrightText, p.PackageLicenseDeclared = "NOASSERTION", "NOASSERTION", p.PackageLicenseConcluded
	p.IsFilesAnalyzedTagPresent = true
	if checksum != "" {
		p.PackageChecksums = []spdx.Checksum{{Algorithm: spdx.SHA256, Value: checksum}}
	}
	if locator != "" {
		p.PackageExternalReferences = []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator}}
	}
	d.document.Packages = append(d.document.Packages, p)
	return p.PackageSPDXIdentifier, true
}

func (d *describer) part(p part) (spdx.ElementID, error) {
	// What holds others' work has their licences too: those stand with what it holds.
	id, added := d.add("Part", &spdx.Package{PackageName: p.name, PackageVersion: d.build.Version,
		PackageLicenseConcluded: ours, PrimaryPackagePurpose: p.purpose}, p.sha256, p.locator)
	if !added {
		return id, nil
	}
	for _, inner := range p.holds {
		of, err := d.part(inner)
		if err != nil {
			return "", err
		}
		d.relate(id, common.TypeRelationshipContains, of)
	}
	for _, m := range p.links {
		of, err := d.module(m)
		if err != nil {
			return "", err
		}
		d.relate(id, common.TypeRelationshipDependsOn, of)
	}
	return id, nil
}

func (d *describer) module(m debug.Module) (spdx.ElementID, error) {
	files := m.Path
	if files == stdlib {
		files = "std"
	}
	licence, err := licenceOf(d.licences, files, d.modules)
	if err != nil {
		return "", err
	}
	checksum := ""
	if m.Sum != "" {
		sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
		if err != nil {
			return "", errors.Wrapf(err, "decoding the checksum of %s", m.Path)
		}
		checksum = hex.EncodeToString(sum)
	}
	// Package URLs are in lower case for Go.
	id, _ := d.add("Module", &spdx.Package{PackageName: m.Path, PackageVersion: m.Version,
		PackageLicenseConcluded: licence, PrimaryPackagePurpose: purposeLibrary}, checksum, "pkg:golang/"+strings.ToLower(m.Path)+"@"+m.Version)
	return id, nil
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func elementID(words ...string) spdx.ElementID {
	return spdx.ElementID(notInID.ReplaceAllString(strings.Join(words, "-"), "-"))
}

func encodeDocument(d *spdx.Document) ([]byte, error) {
	var out bytes.Buffer
	err := spdxjson.Write(d, &out, spdxjson.Indent(" "), spdxjson.EscapeHTML(false))
	return out.Bytes(), errors.Wrap(err, "encoding the bill of materials")
}
