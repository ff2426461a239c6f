//go:build amd64 || arm64

package run

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/stats"
)

func machine() elf.Machine {
	if runtime.GOARCH == "arm64" {
		return elf.EM_AARCH64
	}
	return elf.EM_X86_64
}

// privileged is an error if running the file changes the user, the group or the capabilities.
func privileged(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&os.ModeSetuid != 0 && st != nil && int(st.Uid) != os.Getuid():
		return errors.New("is setuid")
	case info.Mode()&os.ModeSetgid != 0 && st != nil && int(st.Gid) != os.Getgid():
		return errors.New("is setgid")
	}
	if n, err := unix.Fgetxattr(int(f.Fd()), "security.capability", nil); err == nil && n > 0 && os.Getuid() != 0 {
		return errors.New("has capabilities")
	}
	return nil
}

// execute runs the program and ends as it does.
func execute(cmd *cobra.Command, f flags, args []string) error {
	libs, err := findLibraries()
	if err != nil {
		return err
	}
	path, status, err := find(args[0])
	if err != nil {
		return cli.WithStatus(status, err)
	}
	if err := preloads(path); err != nil {
		return cli.WithStatus(126, err)
	}
	if f.strace != "" {
		if f.strace, err = filepath.Abs(f.strace); err != nil {
			return err
		}
		if err := cli.Empty("--strace", f.strace); err != nil { // processes of the program append to it
			return err
		}
	}
	if err := f.lab.Absolute(); err != nil {
		return err
	}
	settings, err := f.settings(libs).Resolve()
	if err != nil {
		return err
	}

	// From here on a signal is the program's, and does not end this process before the tree is gone.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	tree, err := newTreeIn(treeFolders())
	if err != nil {
		return fmt.Errorf("making a folder for the device's files: %w", err)
	}
	program := exec.Command(path, args[1:]...)
	defer func() { tree.remove(signaled(program.ProcessState)) }()
	if err := settings.WriteTree(tree.path); err != nil {
		return fmt.Errorf("writing the device's files: %w", err)
	}
	valgrind, err := writeSuppressions(tree.path, os.Getenv("VALGRIND_OPTS"))
	if err != nil {
		return err
	}
	program.Args[0] = args[0]
	program.Stdin, program.Stdout, program.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	program.Env = os.Environ()
	preload := preloadList(libs.preload, addressSanitizer(path), os.Getenv("LD_PRELOAD"))
	for _, v := range append(environment(settings, tree.path, preload), [2]string{"VALGRIND_OPTS", valgrind}) {
		program.Env = append(program.Env, v[0]+"="+v[1])
	}
	if f.stats.On() {
		defer stats.Tidy() // a C program ends without a word
	}
	return wait(program, signals)
}

// passed are the signals that go on to the program. Others stop or end this process as any.
var passed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH,
}

// wait runs the program, passes signals on and returns its status. If this process is killed, so is the program: no signal
// would reach it any more. Its tree stays until the next one is made.
func wait(program *exec.Cmd, signals <-chan os.Signal) error {
	runtime.LockOSThread() // Pdeathsig is sent when the thread ends, not the process
	defer runtime.UnlockOSThread()
	program.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := program.Start(); err != nil {
		return cli.WithStatus(126, err)
	}
	ended := make(chan struct{})
	forwarded := make(chan struct{})
	go func() {
		defer close(forwarded)
		for {
			select {
			case s := <-signals:
				if !fromTerminal(s) {
					_ = program.Process.Signal(s) // if it has ended, Wait says how
				}
			case <-ended:
				return
			}
		}
	}()
	err := program.Wait()
	close(ended)
	<-forwarded
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	ws, _ := program.ProcessState.Sys().(syscall.WaitStatus)
	status := ws.ExitStatus()
	if ws.Signaled() {
		status = 128 + int(ws.Signal())
	}
	return cli.ExitStatus(status)
}

// signaled reports whether a signal has ended the program; s is nil if it was not started.
func signaled(s *os.ProcessState) bool {
	if s == nil {
		return false
	}
	ws, _ := s.Sys().(syscall.WaitStatus)
	return ws.Signaled()
}

// fromTerminal is whether the terminal has sent a signal to the program itself already: it sends them to every process in
// the foreground.
func fromTerminal(s os.Signal) bool {
	switch s {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGWINCH, syscall.SIGHUP:
	default:
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
