//go:build !bundled || !linux

package bundle

// Folder answers "": this program has no libraries in itself.
func Folder() (string, error) { return "", nil }
