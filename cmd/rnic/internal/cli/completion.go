package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// shells are those that completion knows.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// completionCommand is `rnic completion`.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Write what completes rnic's commands and flags in a shell",
		Long: `Write a script that has the Tab key complete the commands and flags of rnic. SHELL
is bash, zsh, fish or powershell. The first lines of the script say where it
belongs.

For this shell alone:

  source <(rnic completion bash)                       # with bash-completion
  source <(rnic completion zsh)                        # behind compinit
  rnic completion fish | source
  rnic completion powershell | Out-String | Invoke-Expression

For all from now on, with bash:

  rnic completion bash > ~/.local/share/bash-completion/completions/rnic`,
		Args:      ExactArgs("SHELL"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(w)
			}
			return Usagef("unknown shell %q, want one of %s", args[0], strings.Join(shells, ", "))
		},
	}
}
