//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package top

import "golang.org/x/sys/unix"

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA
