//go:build unix && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package top

import "golang.org/x/sys/unix"

const getTermios, setTermios = unix.TCGETS, unix.TCSETS
