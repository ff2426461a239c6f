package ownsock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockName is the file in Folder that processes lock. It stays.
const lockName = "lock"

// Lock makes the Folder, and has this process be the one that looks for a socket, or puts one in the place of
// another's, until unlock is called: for moments. A process that dies lets go. Errors: the folder's; that another
// process has not let go within the time; ctx's.
func Lock(ctx context.Context, within time.Duration) (unlock func(), err error) {
	dir, err := Make()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockName)
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) { // a wait in the kernel has no end that could be set
		free, err := tryLock(f)
		switch {
		case err != nil:
			_ = f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		case free:
			return func() { _ = f.Close() }, nil
		case time.Now().After(end):
			_ = f.Close()
			return nil, fmt.Errorf("%s has been locked by another process for %v: one that stands still? end it", path, within)
		case ctx.Err() != nil:
			_ = f.Close()
			return nil, ctx.Err()
		}
	}
}
