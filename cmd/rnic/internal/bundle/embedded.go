//go:build bundled && linux

package bundle

import (
	"embed"
	"fmt"
	"os"
)

// made is what tools/bundle.sh puts there before it builds the program.
//
//go:embed made
var made embed.FS

// Folder is where the libraries are, of this user alone and as they were built.
func Folder() (string, error) {
	files, err := load(made)
	if err != nil {
		return "", fmt.Errorf("the libraries in this program: %w", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no folder to unpack the libraries to: %w; set XDG_CACHE_HOME or HOME", err)
	}
	return unpack(cache, files)
}
