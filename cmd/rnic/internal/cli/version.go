package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the build and its platform.
type version struct {
	Version string `json:"version"` // of the module; (devel) if the build does not know
	Go      string `json:"go"`
	System  string `json:"system"` // GOOS/GOARCH
}

func thisVersion() version {
	v := version{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = info.Main.Version
	}
	v.Version = cmp.Or(v.Version, "(devel)")
	return v
}

// Version is that of this module, or (devel) if the build does not know.
func Version() string { return thisVersion().Version }

func (v version) String() string { return fmt.Sprintf("rnic %s, %s, %s", v.Version, v.Go, v.System) }

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Print(cmd, asJSON, thisVersion(), Line)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
