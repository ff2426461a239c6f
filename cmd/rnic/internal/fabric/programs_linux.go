package fabric

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/cmd/rnic/internal/fabric/layout"
	"github.com/softrnic/softrnic/cmd/rnic/internal/run"
	"github.com/softrnic/softrnic/rdmacore"
)

// program is one that the keeper has started.
type program struct {
	host    int
	pid     int
	command string
	ofFile  bool          // its end is kept, for ls
	done    chan struct{} // closed at its end
	over    bool          // guarded by keeper.mu, as status
	status  int           // as a shell has it
}

// keptEnds is how many programs of the file are kept that are over: as many as a line of it may have run. The oldest go.
const keptEnds = layout.MaxHosts

// background starts a command of the file, whose output goes to the host's log.
func (k *keeper) background(r layout.Run) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	log, err := os.OpenFile(filepath.Join(k.Dir, logFolder, k.f.Hosts[r.Host].Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	req := execRequest{Host: k.f.Hosts[r.Host].Name, Args: []string{r.Command}, Shell: true, Env: k.Env, Dir: k.Cwd}
	_, err = k.start(&req, [3]*os.File{null, log, log}, true)
	return err
}

// start starts a program on its host. The files stay the caller's.
func (k *keeper) start(req *execRequest, files [3]*os.File, ofFile bool) (*program, error) {
	host := 0
	if req.Host != "" {
		var err error
		if host, err = k.f.HostNumber(req.Host); err != nil {
			return nil, err
		}
	}
	if len(req.Args) == 0 {
		return nil, errors.New("there is no program")
	}
	args := req.Args
	if req.Shell {
		args = []string{"/bin/sh", "-c", strings.Join(args, " ")}
	}
	env := k.environment(host, req.Env)
	path, err := lookUp(args[0], env, req.Dir)
	if err != nil {
		return nil, err
	}
	devices, err := k.devices(host, req.NIC)
	if err != nil {
		return nil, err
	}
	if k.libs && !req.Plain && len(devices) > 0 && run.Preloads(path) == nil {
		under := append([]string{"rnic", "run", "--stats"}, devices...)
		args = slices.Concat(under, k.f.Hosts[host].Flags, req.Flags, []string{"--"}, args)
		path = k.Self
	}
	attr := &syscall.ProcAttr{
		Dir: req.Dir, Env: env, Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: req.Terminal}, // the standard input is the session's
	}
	p := &program{host: host, command: strings.Join(req.Args, " "), ofFile: ofFile, done: make(chan struct{})}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return nil, errEnds
	}
	if k.box != nil {
		p.pid, err = k.box.Start(host, path, args, attr)
	} else {
		p.pid, err = k.startHere(path, args, attr)
	}
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	k.running[p.pid] = p
	k.programs = append(k.programs, p)
	return p, nil
}

// startHere starts a program by the one thread whose end, that of this process, is the program's.
func (k *keeper) startHere(path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	attr.Sys.Pdeathsig = syscall.SIGKILL
	done := make(chan struct{})
	k.starter <- func() {
		defer close(done)
		pid, err = syscall.ForkExec(path, args, attr)
	}
	<-done
	return pid, err
}

func (k *keeper) starts() {
	runtime.LockOSThread()
	for f := range k.starter {
		f()
	}
}

// devices are the flags of rnic run for the NICs of a host.
func (k *keeper) devices(host int, only string) (flags []string, err error) {
	var names []string
	for _, n := range k.f.Hosts[host].NICs {
		names = append(names, n.Name)
		if only != "" && n.Name != only {
			continue
		}
		flags = append(flags, n.RunFlags()...)
	}
	if only != "" && len(flags) == 0 {
		return nil, fmt.Errorf("%s has no NIC %q; it has %s", k.f.Hosts[host].Name, only, strings.Join(names, ", "))
	}
	return flags, nil
}

// environment is that of a program: what the caller has, but what leads to another device, and where things are here.
func (k *keeper) environment(host int, from []string) []string {
	h := &k.f.Hosts[host]
	rsh := filepath.Join(k.Dir, rshFile)
	ours := [][2]string{
		{"XDG_RUNTIME_DIR", filepath.Join(k.Dir, runFolder, h.Name)},
		{"TMPDIR", filepath.Join(k.Dir, tmpFolder)},
		{placeVariable, k.Dir},
		{"SOFTRNIC_FABRIC_HOST", h.Name},
		// MPICH's and Open MPI's launchers. MPICH's ranks are to have the environment of their own host, and not mpirun's.
		{"HYDRA_ENV", "none"},
		{"HYDRA_LAUNCHER", "rsh"}, {"HYDRA_LAUNCHER_EXEC", rsh}, {"HYDRA_HOST_FILE", filepath.Join(k.Dir, "hosts.mpich")},
		{"OMPI_MCA_plm_rsh_agent", rsh}, {"OMPI_MCA_orte_default_hostfile", filepath.Join(k.Dir, "hosts.openmpi")},
		{"OMPI_MCA_rmaps_base_oversubscribe", "1"}, {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
	}
	var env []string
	for _, v := range from {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(name, "SOFTRNIC_"), name == "SYSFS_PATH":
			continue
		case slices.ContainsFunc(ours, func(o [2]string) bool { return o[0] == name }):
			continue
		case name == "LD_PRELOAD":
			if v = withoutOurs(value); v == "" {
				continue
			}
			v = name + "=" + v
		}
		env = append(env, v)
	}
	for _, o := range ours {
		env = append(env, o[0]+"="+o[1])
	}
	return env
}

// withoutOurs is an LD_PRELOAD without the library of rnic run.
func withoutOurs(list string) string {
	words := strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ' ' })
	words = slices.DeleteFunc(words, func(w string) bool { return filepath.Base(w) == rdmacore.PreloadLibrary })
	return strings.Join(words, ":")
}

// lookUp finds a program as a shell in dir does.
func lookUp(name string, env []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, in := range filepath.SplitList(list) {
			path := filepath.Join(in, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w in PATH", name, os.ErrNotExist)
}

// reap takes the ends of programs and, as the first process of its namespace, of all that have lost their parent.
func (k *keeper) reap() {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	for range ends {
		for k.reapOne() {
		}
	}
}

func (k *keeper) reapOne() bool {
	k.mu.Lock() // a program that is being started is not known yet
	defer k.mu.Unlock()
	var ws syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return true
	}
	if pid <= 0 || err != nil {
		return false
	}
	p := k.running[pid]
	if p == nil {
		return true
	}
	delete(k.running, pid)
	p.over, p.status = true, ws.ExitStatus()
	if ws.Signaled() {
		p.status = 128 + int(ws.Signal())
	}
	if !p.ofFile {
		k.programs = slices.DeleteFunc(k.programs, func(other *program) bool { return other == p })
	} else if k.ends++; k.ends > keptEnds {
		first := slices.IndexFunc(k.programs, func(other *program) bool { return other.over })
		k.programs = slices.Delete(k.programs, first, first+1)
		k.ends--
	}
	close(p.done)
	return true
}

// status is that of a program that is over.
func (k *keeper) status(p *program) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.status
}

// grace is how long programs may take to end by themselves.
const grace = 2 * time.Second

// endProgram ends one and its children, as far as they are of its process group.
func (k *keeper) endProgram(p *program) {
	k.signal(p, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	_ = unix.Kill(-p.pid, unix.SIGKILL) // the group, which its leader may have left
	<-p.done
}

// signal sends a program a signal, unless it is over.
func (k *keeper) signal(p *program, s syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !p.over {
		_ = unix.Kill(p.pid, s)
	}
}

// endPrograms ends all.
func (k *keeper) endPrograms() {
	for _, s := range []syscall.Signal{unix.SIGTERM, unix.SIGKILL} {
		end := time.Now().Add(grace)
		for sent := false; time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			if !sent || s == unix.SIGKILL { // a second SIGTERM would end what is about to end well
				k.signalAll(s)
				sent = true
			}
			if !k.signalAll(0) {
				return
			}
		}
	}
}

// signalAll sends all programs a signal, and reports whether there are some.
func (k *keeper) signalAll(s syscall.Signal) (some bool) {
	if k.boxed && os.Getpid() == 1 {
		return unix.Kill(-1, s) == nil // kill(2): all of this process namespace, but its first, which this process is
	}
	for _, pid := range descendants() {
		some = unix.Kill(pid, s) == nil || some
	}
	return some
}

// descendants are all processes below this one, those that it has not waited for included.
func descendants() (pids []int) {
	self := os.Getpid()
	for _, pid := range processes() {
		for at := parent(pid); at > 0; at = parent(at) {
			if at == self {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}
