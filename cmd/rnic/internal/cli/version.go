package cli

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/softrnic/softrnic/verbs"
)

// version is the build and its platform.
type version struct {
	Version string     `json:"version"`          // of softrnic, without v
	Release bool       `json:"release"`          // that version as it was published
	Commit  string     `json:"commit,omitempty"` // if the build knows it
	Date    *time.Time `json:"date,omitempty"`   // the commit's
	Changed bool       `json:"changed,omitempty"`
	Go      string     `json:"go"`
	System  string     `json:"system"` // GOOS/GOARCH

	words string
}

func thisVersion() version {
	is := verbs.Version()
	v := version{
		Version: is.Release, Release: is.Published, Commit: is.Commit, Changed: is.Changed,
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, words: is.String(),
	}
	if !is.Date.IsZero() {
		v.Date = &is.Date
	}
	return v
}

func (v version) String() string { return fmt.Sprintf("rnic %s, %s, %s", v.words, v.Go, v.System) }

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
