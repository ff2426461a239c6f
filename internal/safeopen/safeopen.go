// Package safeopen opens the files that a user has named to be written to, where another user may have put something
// under that name first: a link to a file of the user's, which would be overwritten, or a file or a pipe of that
// other user's, who would read along.
//
// A file of the user's own is overwritten, or added to. A link is followed if it is the user's or root's, as
// /dev/stdout and a shell's >(command) are; its maker says where it leads. Folders on the way are the user's
// choice, and links among them are followed.
package safeopen

import (
	"fmt"
	"os"
)

// Private opens path for writing, with how as well, which is os.O_TRUNC or os.O_APPEND. The file is this user's
// alone: it has mode 0600, also if it was there with another, is no link's of another user, belongs to none, and has
// no other name.
func Private(path string, how int) (*os.File, error) {
	f, linked, err := open(path, how&^os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !linked {
		err = own(path, info)
	}
	if err == nil && info.Mode().IsRegular() {
		if err = f.Chmod(0o600); err == nil && how&os.O_TRUNC != 0 {
			err = f.Truncate(0)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Create is os.Create for what anybody may read, but through no link of another user.
func Create(path string) (*os.File, error) {
	f, _, err := open(path, os.O_TRUNC, 0o666)
	return f, err
}

func errLink(path string) error {
	return fmt.Errorf("%s is a link of another user: name the file that it leads to, or another", path)
}
