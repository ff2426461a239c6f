package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/softrnic/softrnic/cmd/rnic/internal/bundle"
	"github.com/softrnic/softrnic/rdmacore"
	"github.com/softrnic/softrnic/verbs"
)

// libraries are the two that `make c` builds beside this program, or that are in it.
type libraries struct{ engine, preload string }

// Libraries is why `rnic run` has not got what it puts into programs, or nil.
func Libraries() error {
	_, err := findLibraries()
	return err
}

// findLibraries looks for them in the folder of this program, and then in the program itself.
func findLibraries() (libraries, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return libraries{}, fmt.Errorf("finding this program, whose libraries are beside it: %w", err)
	}
	libs, missing := librariesIn(filepath.Dir(self))
	if !errors.Is(missing, errMissing) {
		return libs, missing
	}
	dir, err := bundle.Folder()
	switch {
	case err != nil:
		return libraries{}, err
	case dir == "":
		return libraries{}, missing
	}
	return librariesIn(dir)
}

// errMissing is the end of what is said if a library is not there.
var errMissing = fmt.Errorf("take rnic of %s, which has it in itself, or build it in a clone by `make c`", releaseArchive())

// releaseArchive is where packaging/dist puts the program with its libraries in it.
func releaseArchive() string {
	return fmt.Sprintf("softrnic-%s-linux-%s.tar.gz of the releases", verbs.Version().Release, runtime.GOARCH)
}

func librariesIn(dir string) (libraries, error) {
	for _, name := range []string{rdmacore.EngineLibrary, rdmacore.PreloadLibrary} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return libraries{}, fmt.Errorf("%s is not beside this program, in %s; %w", name, dir, errMissing)
		}
	}
	// ld.so(8): LD_PRELOAD is a list with these between its elements, and no way to quote them.
	if strings.ContainsAny(dir, " :\t\n") {
		return libraries{}, fmt.Errorf("the dynamic loader takes no libraries from %q; move rnic and its libraries, or XDG_CACHE_HOME, to a folder without spaces and colons in its name", dir)
	}
	return libraries{filepath.Join(dir, rdmacore.EngineLibrary), filepath.Join(dir, rdmacore.PreloadLibrary)}, nil
}
