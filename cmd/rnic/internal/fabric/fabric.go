// Package fabric is `rnic fabric`: hosts with RDMA NICs, on this machine, from one file.
//
//	fabric.go, look.go       the commands, and what they print
//	layout, box              the file; namespaces and cables
//	up_linux.go              starts a keeper
//	keeper_linux.go          the process that holds a fabric; programs_linux.go, serve_linux.go: what it runs, whom it answers
//	client_linux.go          asks it
//	place_linux.go           where it is found, and what a crash leaves
package fabric

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
)

// keepFlag has rnic fabric up be the keeper that another one starts.
const keepFlag = "keep"

// notTime is what a fabric is not.
const notTime = "time is not simulated: this shows what programs do, not how fast they are on such a network"

// Command makes `rnic fabric`.
func Command() *cobra.Command {
	var name string
	group := cli.Group("fabric", "Make a fabric of hosts with RDMA NICs on this machine, and break it",
		upCommand(&name), lsCommand(&name), execCommand(&name), runCommand(&name), breakCommand(&name), topCommand(&name),
		logCommand(&name), downCommand(&name), exportCommand())
	group.Long = `Make hosts with RDMA NICs, switches and cables between them out of one small file, on this machine: each host is
a network namespace of its own, with root or, in a user namespace, without. Programs run there as they are, under rnic run.
A cable can be slow, lossy or out, from the beginning, at a time, or on command.

It is for what programs do: ` + notTime + `.

The file has a line each, and what is behind a # is a comment:

  name NAME                          of the fabric; else that of the file
  switch rail0 rail1
  host h1..h8: rail0 rail1           eight hosts, each with nic0 at rail0 and nic1 at rail1
  host h9: mlx5_0=rail0              a NIC by a name
  mesh h1..h4: delay 1ms             a cable from each to each, with a NIC at both ends
  trunk rail0 rail1: rate 10g        a cable between switches
  link h1.nic0 *.nic1: delay 2ms rate 100m loss 0.1%
  flags *: --as roce                 of rnic run, for what runs there
  run h1: rping -s                   a command of the shell, from the beginning
  at 5s: break h1.nic0 down          down, up, delay, rate, loss, mend
  at 6s: run h2: COMMAND`
	group.Example = `  rnic fabric up examples/fabric/pair.fabric
  rnic fabric exec h1 -- rping -s -C 3 &
  rnic fabric exec h2 -- rping -c -a h1 -C 3 -v
  rnic fabric break h1.nic0 loss 5%
  rnic fabric run -- mpirun.mpich -n 8 PROGRAM
  rnic fabric down`
	for _, c := range group.Commands() {
		if c.Name() != "export" {
			c.Flags().StringVar(&name, "name", "", "the `name` of the fabric, where there are several")
		}
	}
	return group
}

// read is the file of a fabric, and what it says.
func read(cmd *cobra.Command, path string) (text string, f *layout.Fabric, err error) {
	in, err := cli.OpenInput(cmd, path)
	if err != nil {
		return "", nil, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, layout.MaxText+1))
	if err == nil {
		f, err = layout.Parse(string(raw))
	}
	if err != nil {
		return "", nil, cli.WithStatus(2, fmt.Errorf("%s: %w", path, err))
	}
	return string(raw), f, nil
}

// nameFor is what the fabric of a file is called.
func nameFor(given string, f *layout.Fabric, path string) (string, error) {
	if given != "" {
		return given, layout.CheckName(given)
	}
	if f.Name != "" {
		return f.Name, nil
	}
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	if layout.CheckName(base) != nil {
		base = "fabric"
	}
	return base, nil
}

func upCommand(name *string) *cobra.Command {
	var loopback, keeper bool
	cmd := &cobra.Command{
		Use:   "up FILE",
		Short: "Make the fabric of a file, and start what it says",
		Args: func(cmd *cobra.Command, args []string) error {
			if keeper {
				return nil
			}
			return cli.ExactArgs("FILE")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if keeper {
				return keep(cmd.InOrStdin(), cmd.OutOrStdout())
			}
			text, f, err := read(cmd, args[0])
			if err != nil {
				return err
			}
			called, err := nameFor(*name, f, args[0])
			if err != nil {
				return cli.Usagef("--name: %w", err)
			}
			s, err := up(cmd.Context(), called, text, loopback)
			if err != nil {
				return fmt.Errorf("fabric: %w", err)
			}
			return tell(cmd.OutOrStdout(), s)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&loopback, "loopback", false, "make no namespaces: the hosts are addresses of the loopback")
	fs.BoolVar(&keeper, keepFlag, false, "be the keeper")
	fs.Lookup(keepFlag).Hidden = true
	return cmd
}

func downCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End a fabric and all that runs in it",
		Args:  cli.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := found(cmd.Context(), *name)
			if err == nil {
				err = down(cmd.Context(), dir)
			}
			return err
		},
	}
}

// request has the flags of what starts a program.
func request(cmd *cobra.Command, req *execRequest, flags *string) {
	fs := cmd.Flags()
	fs.SetInterspersed(false) // the flags behind the program are its own
	fs.StringVar(&req.NIC, "nic", "", "give the program this `NIC` alone")
	fs.BoolVar(&req.Plain, "plain", false, "without rnic run: the program has no RDMA device but what it makes itself")
	fs.StringVar(flags, "flags", "", "more `flags` for rnic run, such as '--as roce --strace FILE'")
}

// execute runs a program of a fabric, and ends as it does.
func execute(cmd *cobra.Command, name string, req *execRequest, flags string) error {
	dir, err := found(cmd.Context(), name)
	if err != nil {
		return err
	}
	req.Flags = append(req.Flags, strings.Fields(flags)...)
	status, err := onHost(cmd.Context(), dir, req, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil {
		return fmt.Errorf("fabric: %w", err)
	}
	return cli.ExitStatus(status)
}

// terminals reports whether a user sits before in and out.
func terminals(in io.Reader, out io.Writer) bool {
	from, ok := in.(*os.File)
	to, too := out.(*os.File)
	return ok && too && term.IsTerminal(int(from.Fd())) && term.IsTerminal(int(to.Fd()))
}

func execCommand(name *string) *cobra.Command {
	var req execRequest
	var flags string
	cmd := &cobra.Command{
		Use:   "exec [flags] HOST -- PROGRAM [ARG...]",
		Short: "Run a program on a host of a fabric",
		Long: `Run a program on a host, under rnic run with a device for each of the host's NICs, with this command's standard
input, output and error, folder and environment. Signals go on to it, and the exit status is its own. When this command is
killed, so is the program. Programs that rnic run cannot serve, such as those that are linked statically, run as they are.

The file's flags for rnic run (flags HOSTS: ...) are those of the host's programs too.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("want a host and a program, such as exec h1 -- ibv_devinfo")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for req.Shell && strings.HasPrefix(args[0], "-") && len(args) > 2 { // flags of ssh
				args = args[1:]
			}
			req.Host, req.Args = args[0], args[1:]
			if req.Args[0] == "--" {
				req.Args = req.Args[1:]
			}
			if len(req.Args) == 0 {
				return cli.Usagef("PROGRAM is missing")
			}
			if !cmd.Flags().Changed("terminal") {
				req.Terminal = terminals(cmd.InOrStdin(), cmd.OutOrStdout())
			}
			return execute(cmd, *name, &req, flags)
		},
	}
	request(cmd, &req, &flags)
	cmd.Flags().BoolVarP(&req.Terminal, "terminal", "t", false, "give the program a terminal of its own, as ssh -t does; default: if standard input and output are terminals")
	cmd.Flags().BoolVar(&req.Shell, "rsh", false, "PROGRAM and its arguments are words of one command of the host's shell, as rsh and ssh have it")
	return cmd
}

func runCommand(name *string) *cobra.Command {
	var req execRequest
	var flags string
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARG...]",
		Short: "Run a program over a fabric, such as mpirun",
		Long: `Run a program on the first host, as exec does. mpirun of MPICH and of Open MPI starts its processes on all hosts
there, by itself: rnic has made a file of the hosts for it, and a launcher, and named them in the environment of all
programs (HYDRA_LAUNCHER, HYDRA_LAUNCHER_EXEC, HYDRA_HOST_FILE; OMPI_MCA_plm_rsh_agent, OMPI_MCA_orte_default_hostfile).`,
		Example: "  rnic fabric run -- mpirun.mpich -n 16 ./allreduce",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("PROGRAM is missing")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Args = args
			return execute(cmd, *name, &req, flags)
		},
	}
	request(cmd, &req, &flags)
	return cmd
}

func breakCommand(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "break LINK... down|up|mend|delay TIME|rate BITS|loss SHARE",
		Short: "Pull the cable of a link, make it slow or lossy, or mend it",
		Long: `Change links of a fabric. LINK is h1.nic0, a range (h1..h8.nic0), all of a host (h1), *.nic0, a trunk or a pair
of a mesh (s1-s2), or *.

  down      the cable is pulled: the NIC at its end has no carrier, and packets are lost
  up        it is in again
  delay     each packet takes so long more, each way
  rate      bits a second, each way
  loss      so many packets are lost, each way
  mend      up, and as the file has it

What has no cable, such as a verb that fails, is broken by fault plans and by commands on the host
(docs/fabric.md).`,
		Example: "  rnic fabric break h1.nic0 down\n  rnic fabric break '*.nic1' delay 2ms\n  rnic fabric break h1.nic0 h2.nic0 mend",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("want links and what becomes of them, such as h1.nic0 down")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := found(cmd.Context(), *name)
			if err != nil {
				return err
			}
			if _, err = ask(cmd.Context(), dir, msgBreak, args); err != nil {
				return fmt.Errorf("fabric: %w", err)
			}
			return nil
		},
	}
}

func exportCommand() *cobra.Command {
	var compose, clab bool
	var image string
	cmd := &cobra.Command{
		Use:   "export --compose|--containerlab FILE",
		Short: "Write the same fabric for podman or docker compose, or for containerlab",
		Long: `Write a fabric's file as a compose file, for podman and docker, or as a topology of containerlab. Those go past one
machine as their tools do. Each host is a container of the image, which has rnic and the programs
(docs/containers.md). What the other tool cannot say is a comment in the result.`,
		Example: "  rnic fabric export --compose --image softrnic my.fabric > compose.yaml",
		Args:    cli.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if compose == clab {
				return cli.Usagef("want one of --compose and --containerlab")
			}
			_, f, err := read(cmd, args[0])
			if err != nil {
				return err
			}
			name, err := nameFor("", f, args[0])
			if err != nil {
				return err
			}
			write := f.Compose
			if clab {
				write = f.Containerlab
			}
			return write(cmd.OutOrStdout(), name, image)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&compose, "compose", false, "for podman compose and docker compose")
	fs.BoolVar(&clab, "containerlab", false, "for containerlab")
	fs.StringVar(&image, "image", "softrnic", "the `image` of the hosts")
	return cmd
}
