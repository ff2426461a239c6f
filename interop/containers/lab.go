//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	suite = "bookworm"
	// prefix begins the names of containers, pods and the network.
	prefix = "softrnic-test-"
	// device is the CDI name; no other specification of this machine has it.
	device   = "softrnic.io/rnic=" + deviceID
	deviceID = "container-test"
	// specification is where podman finds it.
	specification = "/var/run/cdi/softrnic-container-test.json"
)

// packages are what the image has, with what they depend on.
var packages = []string{
	"ibverbs-providers", "ibverbs-utils", "rdmacm-utils", "perftest", "openmpi-bin", "python3-mpi4py", "openssh-server", "openssh-client",
}

// errNotHere is wrapped by what this machine does not have.
var errNotHere = errors.New("not here")

// lab is what the rows run in.
type lab struct {
	image    string
	dir      string // with rnic, its libraries and podman's settings; any user can read it
	programs string // a folder in dir with look.c as programs of all kinds
	compose  string // absolute
	env      []string
}

func newLab(ctx context.Context, rnic, here, compose string) (l *lab, err error) {
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	l = &lab{}
	if l.compose, err = filepath.Abs(compose); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "softrnic-containers-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if err := os.Chmod(l.dir, 0o755); err != nil {
		return l, err
	}
	if err := l.settings(cache); err != nil {
		return l, err
	}
	built := filepath.Dir(rnic)
	if err := l.do(ctx, "cp", rnic, built+"/libsoftrnic-engine.so", built+"/libsoftrnic-preload.so", l.dir); err != nil {
		return l, fmt.Errorf("%w; build them first with `make c`", err)
	}
	if err := l.do(ctx, l.dir+"/rnic", "cdi", "generate", "--name", deviceID, "-o", specification); err != nil {
		return l, err
	}
	if err := l.build(ctx, here); err != nil {
		return l, err
	}
	if err := l.makeImage(ctx, here); err != nil {
		return l, err
	}
	if err := l.remove(ctx); err != nil { // of a run that was killed
		return l, err
	}
	if l.do(ctx, "podman", "network", "exists", prefix+"net") == nil {
		return l, nil
	}
	err = l.do(ctx, "podman", "network", "create", prefix+"net")
	return l, err
}

// settings are podman's: storage of our own, and what a machine without systemd, or with a low limit of descriptors, wants.
func (l *lab) settings(cache string) error {
	manager := "systemd"
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		manager = "cgroupfs"
	}
	limit := func(which int, most uint64) uint64 {
		var r syscall.Rlimit
		if err := syscall.Getrlimit(which, &r); err != nil {
			return 1024
		}
		return min(r.Max, most)
	}
	const processes = 6 // RLIMIT_NPROC
	conf := fmt.Sprintf("[engine]\nruntime = \"runc\"\ncgroup_manager = %q\nevents_logger = \"file\"\n[containers]\ndefault_ulimits = [\"nofile=%[2]d:%[2]d\", \"nproc=%[3]d:%[3]d\"]\n",
		manager, limit(syscall.RLIMIT_NOFILE, 1<<20), limit(processes, 1024))
	storage := fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(cache, "storage"), filepath.Join(cache, "run"))
	l.env = append(os.Environ(), "CONTAINERS_CONF="+l.dir+"/containers.conf", "CONTAINERS_STORAGE_CONF="+l.dir+"/storage.conf", "LC_ALL=C")
	return errors.Join(
		os.WriteFile(l.dir+"/containers.conf", []byte(conf), 0o644),
		os.WriteFile(l.dir+"/storage.conf", []byte(storage), 0o644))
}

// build makes look.c a program of musl and a static one.
func (l *lab) build(ctx context.Context, here string) error {
	l.programs = filepath.Join(l.dir, "programs")
	if err := os.Mkdir(l.programs, 0o755); err != nil {
		return err
	}
	source := filepath.Join(here, "programs", "look.c")
	return errors.Join(
		l.do(ctx, "musl-gcc", "-o", l.programs+"/look-musl", source),
		l.do(ctx, "gcc", "-static", "-o", l.programs+"/look-static", source),
		l.do(ctx, "sh", "-c", `cp -L /lib/ld-musl-*.so.1 "$1"`, "sh", l.programs))
}

// makeImage makes an image of a root folder with the packages, once for a list of them.
func (l *lab) makeImage(ctx context.Context, here string) error {
	list := strings.Join(packages, " ")
	l.image = fmt.Sprintf("localhost/softrnic-test:%x", sha256.Sum256([]byte(suite+list)))[:len("localhost/softrnic-test:")+12]
	if l.do(ctx, "podman", "image", "exists", l.image) == nil {
		return nil
	}
	fmt.Fprintf(os.Stderr, "making an image of Debian's %s with %s: a few minutes, once ... ", suite, list)
	const script = `root=$("$1/../../packaging/root" "$2" "$(dpkg --print-architecture)" $3) && tar -C "$root" -cf - . | podman import -q - "$4"`
	err := l.do(ctx, "sh", "-c", script, "sh", here, suite, list, l.image)
	fmt.Fprintln(os.Stderr, "done")
	return err
}

// podman runs podman and returns what it prints; an error has all that it printed.
func (l *lab) podman(ctx context.Context, args ...string) (string, error) {
	return l.output(ctx, "podman", args...)
}

func (l *lab) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = l.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		said := string(out)
		if ctx.Err() != nil {
			said += "\nit did not end in time"
		}
		return string(out), fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, strings.TrimSpace(said))
	}
	return string(out), nil
}

func (l *lab) do(ctx context.Context, name string, args ...string) error {
	_, err := l.output(ctx, name, args...)
	return err
}

// remove ends what a row has started. Podman itself is still cleaning up behind a container that has just ended, and refuses
// meanwhile.
func (l *lab) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	for {
		err := errors.Join(
			l.do(ctx, "podman", "pod", "rm", "-f", "-i", "-t", "0", prefix+"pod"),
			l.do(ctx, "sh", "-c", `podman ps -aq --filter name=`+prefix+` | xargs -r podman rm -f -t 0`))
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "busy") {
			return err
		}
	}
}

func (l *lab) close() error {
	ctx := context.Background()
	return errors.Join(
		l.remove(ctx),
		l.do(ctx, "podman", "network", "rm", "-f", prefix+"net"),
		os.RemoveAll(specification),
		os.RemoveAll(l.dir))
}
