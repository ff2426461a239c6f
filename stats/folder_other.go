//go:build !unix

package stats

import (
	"errors"
	"net"
)

var errNoSocket = errors.New("stats: this system has no local sockets that are one user's alone; use stats/expvars or stats/prometheus")

// Folder is where the sockets would be.
func Folder() string { return "" }

// Sockets fails.
func Sockets() ([]string, error) { return nil, errNoSocket }

// Tidy does nothing.
func Tidy() {}

func ownPath() (string, error) { return "", errNoSocket }

func listen(string) (*net.UnixListener, error) { return nil, errNoSocket }

func refused(error) bool { return false }
