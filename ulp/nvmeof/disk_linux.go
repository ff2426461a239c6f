package nvmeof

import (
	"os"

	"golang.org/x/sys/unix"
)

func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

// punch makes a hole, which reads as zeroes.
func punch(f *os.File, off, n int64) error {
	for {
		if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n); err != unix.EINTR {
			return err
		}
	}
}
