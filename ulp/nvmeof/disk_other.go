//go:build !linux

package nvmeof

import (
	"errors"
	"os"
)

func syncData(f *os.File) error { return f.Sync() }

func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }
