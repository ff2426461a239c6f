//go:build unix

package top

import (
	"os"

	"golang.org/x/sys/unix"
)

// size is how many lines and columns a terminal has, 0 if f is none.
func size(f *os.File) (lines, columns int) {
	s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	if s.Row == 0 || s.Col == 0 { // it does not say
		return 24, 80
	}
	return int(s.Row), int(s.Col)
}
