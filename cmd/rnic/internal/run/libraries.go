package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/softrnic/softrnic/rdmacore"
)

// libraries are the two that `make c` builds beside this program.
type libraries struct{ engine, preload string }

// findLibraries looks for them in the folder of this program.
func findLibraries() (libraries, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return libraries{}, fmt.Errorf("finding this program, whose libraries are beside it: %w", err)
	}
	return librariesIn(filepath.Dir(self))
}

func librariesIn(dir string) (libraries, error) {
	for _, name := range []string{rdmacore.EngineLibrary, rdmacore.PreloadLibrary} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return libraries{}, fmt.Errorf("%s is not beside this program, in %s; `make c` builds it", name, dir)
		}
	}
	// ld.so(8): LD_PRELOAD is a list with these between its elements, and no way to quote them.
	if strings.ContainsAny(dir, " :\t\n") {
		return libraries{}, fmt.Errorf("the dynamic loader takes no libraries from %q; move rnic and its libraries to a folder without spaces and colons in its name", dir)
	}
	return libraries{filepath.Join(dir, rdmacore.EngineLibrary), filepath.Join(dir, rdmacore.PreloadLibrary)}, nil
}
