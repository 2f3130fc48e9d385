package dist

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"github.com/pkg/errors"
)

// recognised is how much of a licence file must be that of known licences, in percent. The rest are names and years.
const recognised = 75

// licenceOf returns the SPDX expression of a module's licence files: all licences that they hold, since a file
// doesn't say which of them is for what. all has the files of each module under the module's path. A licence that
// isn't recognised is an error: its text must be read first.
func licenceOf(all fs.FS, module string, modules map[string]bool) (string, error) {
	found := map[string]bool{}
	err := fs.WalkDir(all, module, func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && file != module && modules[file]:
			return fs.SkipDir
		// A notice says who wrote something, and maybe that it has the licence beside it.
		case e.IsDir(), strings.HasPrefix(strings.ToLower(path.Base(file)), "notice"):
			return nil
		}
		text, err := fs.ReadFile(all, file)
		if err != nil {
			return err
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < recognised {
			return errors.Errorf("%s is no licence that is known", file)
		}
		for _, m := range coverage.Match {
			if !m.IsURL {
				found[m.ID] = true
			}
		}
		return nil
	})
	if err != nil {
		return "", errors.Wrapf(err, "reading the licence of %s", module)
	}
	if len(found) == 0 {
		return "", errors.Errorf("%s has no licence", module)
	}
	var ids []string
	for id := range found {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return strings.Join(ids, " AND "), nil
}
