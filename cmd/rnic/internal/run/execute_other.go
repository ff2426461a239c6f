//go:build !linux || !(amd64 || arm64)

package run

import (
	"debug/elf"
	"errors"
	"io"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
)

var errSystem = errors.New("C programs run on this RNIC on Linux only, on amd64 and arm64; use one of those")

func execute(*cobra.Command, flags, []string) error { return errSystem }

func check(io.Writer, netip.Addr) error { return errSystem }

func machine() elf.Machine { return elf.EM_NONE }

func privileged(*os.File) error { return nil }
