//go:build linux

package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/softrnic/softrnic/interop/internal/procnet"
)

// row is a line of the table. run returns what the table says of it.
type row struct {
	what, with string
	run        func(ctx context.Context, l *lab) (string, error)
}

// Ways to give a container the device, and to take all else from it.
var (
	byCDI = []string{"--device", device}
	bare  = []string{"--read-only", "--read-only-tmpfs=false", "--user", "nobody", "--cap-drop", "all", "--security-opt", "no-new-privileges"}
)

// byHand are the flags of the way without CDI.
func (l *lab) byHand() []string {
	const inside = "/opt/softrnic"
	return []string{
		"-v", l.dir + ":" + inside + ":ro", "-e", "LD_PRELOAD=" + inside + "/libsoftrnic-preload.so",
		"-e", "SOFTRNIC_ENGINE=" + inside + "/libsoftrnic-engine.so", "-e", "SOFTRNIC_TREE=" + inside + "/softrnic-sysfs-1",
	}
}

var rows = []row{
	{"`ibv_devices`", "CDI, a stock image", one(byCDI, "softrnic0", "ibv_devices")},
	{"`ibv_devinfo -v`", "CDI", one(byCDI, `(?s)transport:\s+iWARP.*PORT_ACTIVE`, "ibv_devinfo", "-v")},
	{"`ibv_devinfo`", "CDI, `-e SOFTRNIC_AS=roce`", one(with(byCDI, "-e", "SOFTRNIC_AS=roce"), `transport:\s+InfiniBand`, "ibv_devinfo")},
	{"`rping`", "CDI, two containers on a network", pair(byCDI, 7174, "rping -s -C 100 -S 4096", "rping -c -V -a HOST -C 100 -S 4096")},
	{"`ib_write_bw -R`", "CDI, two containers on a network", pair(byCDI, 18515, "ib_write_bw -R -n 1000", "ib_write_bw -R -n 1000 -F HOST")},
	{"`ib_send_lat -R`", "CDI, two containers on a network", pair(byCDI, 18515, "ib_send_lat -R -n 1000", "ib_send_lat -R -n 1000 -F HOST")},
	{"`ib_write_bw -R`", "CDI, and `--read-only`, nothing to write to but `/dev/shm`, `--user nobody`, `--cap-drop all`, `no-new-privileges`", pair(with(byCDI, bare...), 18515, "ib_write_bw -R -n 1000", "ib_write_bw -R -n 1000 -F HOST")},
	{"`rnic run -- ibv_devinfo`", "the same", one(with(byCDI, bare...), "PORT_ACTIVE", "/opt/softrnic/rnic", "run", "--", "ibv_devinfo")},
	{"`rping`", "CDI, each container in a user namespace (`--uidmap`)", pair(with(byCDI, "--uidmap", "0:100000:65536"), 7174, "rping -s -C 100", "rping -c -V -a HOST -C 100")},
	{"`rping` to 127.0.0.1", "CDI, two containers of a pod", inPod},
	{"`rping`", "a compose file, by podman-compose: [packaging/compose.yaml](../packaging/compose.yaml)", composed},
	{"Open MPI over libfabric, two ranks, `mpi4py.bench ringtest`", "CDI, one container", one(byCDI, "2 processes", mpi(overLibfabric, "--oversubscribe", "-np", "2")...)},
	{"Open MPI over UCX, two ranks, `mpi4py.bench ringtest`", "CDI, two containers, started over ssh", acrossSSH},
	{"`ib_write_bw -R`", "`-v` and `-e`, without CDI", func(ctx context.Context, l *lab) (string, error) {
		return pair(l.byHand(), 18515, "ib_write_bw -R -n 1000", "ib_write_bw -R -n 1000 -F HOST")(ctx, l)
	}},
	{"`ibv_devinfo`", "bubblewrap: a network, processes and users of its own, as nobody", inBubblewrap},
	{"`ibv_devinfo`", "gVisor (runsc)", inGVisor},
	{"a program of musl", "CDI, a root folder with musl and nothing else", ofMusl},
	{"a static program", "CDI", told(`no device`, "/programs/look-static")},
	{"a static program", "CDI, under `rnic run`", told(`statically linked`, "/opt/softrnic/rnic", "run", "--", "/programs/look-static")},
	{"a setuid program", "CDI, as another user", setuid("/tmp/setuid", "No IB devices found|Failed to get IB devices")},
	{"a setuid program", "CDI, under `rnic run`, as another user", setuid("/opt/softrnic/rnic run -- /tmp/setuid", "is setuid")},
}

func with(flags []string, more ...string) []string {
	return append(append([]string{}, flags...), more...)
}

// find is an error if out has no match of want.
func find(out, want string) error {
	if !regexp.MustCompile(want).MatchString(out) {
		return fmt.Errorf("it prints no %s\n%s", want, out)
	}
	return nil
}

// one runs a program in a container.
func one(flags []string, want string, command ...string) func(context.Context, *lab) (string, error) {
	return func(ctx context.Context, l *lab) (string, error) {
		args := append(with([]string{"run", "--rm", "--name", prefix + "one", "--network", prefix + "net"}, flags...), l.image)
		out, err := l.podman(ctx, append(args, command...)...)
		if err != nil {
			return "", err
		}
		return "ran", find(out, want)
	}
}

// start starts a container that stays when its program ends, and returns its address.
func (l *lab) start(ctx context.Context, name string, flags []string, command string) (addr string, err error) {
	args := append(with([]string{"run", "-d", "--name", prefix + name, "--network", prefix + "net"}, flags...), l.image)
	if _, err = l.podman(ctx, append(args, strings.Fields(command)...)...); err != nil {
		return "", err
	}
	addr, err = l.podman(ctx, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", prefix+name)
	return strings.TrimSpace(addr), err
}

// ready waits until a container listens on a port.
func (l *lab) ready(ctx context.Context, name string, port int) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		text, err := l.podman(ctx, "inspect", "-f", "{{.State.Pid}}", prefix+name)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return err
		}
		if pid == 0 {
			said, _ := l.podman(ctx, "logs", prefix+name)
			return fmt.Errorf("it ended before it listened:\n%s", said)
		}
		if procnet.Listens(pid, port) {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("it does not listen on port %d", port)
		}
	}
}

// ended waits for the container of a server, which has to end well.
func (l *lab) ended(ctx context.Context, name string) error {
	status, err := l.podman(ctx, "wait", prefix+name)
	if err != nil {
		return err
	}
	if strings.TrimSpace(status) != "0" {
		said, _ := l.podman(ctx, "logs", prefix+name)
		return fmt.Errorf("the server's exit status is %s\n%s", status, said)
	}
	return nil
}

// pair runs a server and a client in a container each. The client's HOST is the server's address.
func pair(flags []string, port int, server, client string) func(context.Context, *lab) (string, error) {
	return func(ctx context.Context, l *lab) (string, error) {
		addr, err := l.start(ctx, "server", flags, server)
		if err != nil {
			return "", err
		}
		if err := l.ready(ctx, "server", port); err != nil {
			return "", err
		}
		if _, err := one(flags, "", strings.Fields(strings.ReplaceAll(client, "HOST", addr))...)(ctx, l); err != nil {
			return "", fmt.Errorf("client: %w", err)
		}
		if strings.HasPrefix(server, "rping") {
			return "ran, data compared", l.ended(ctx, "server")
		}
		return "ran", l.ended(ctx, "server")
	}
}

// inPod has both ends in the network of a pod.
func inPod(ctx context.Context, l *lab) (string, error) {
	if _, err := l.podman(ctx, "pod", "create", "--infra=true", "--name", prefix+"pod"); err != nil {
		if strings.Contains(err.Error(), "pause") || strings.Contains(err.Error(), "infra") {
			return "", fmt.Errorf("%w: the infra image of pods: %s", errNotHere, lastLine(err.Error()))
		}
		return "", err
	}
	flags := with([]string{"--pod", prefix + "pod"}, byCDI...)
	args := append(with([]string{"run", "-d", "--name", prefix + "server"}, flags...), l.image, "rping", "-s", "-C", "100")
	if _, err := l.podman(ctx, args...); err != nil {
		return "", err
	}
	if err := l.ready(ctx, "server", 7174); err != nil {
		return "", err
	}
	args = append(with([]string{"run", "--rm", "--name", prefix + "one"}, flags...), l.image, "rping", "-c", "-V", "-a", "127.0.0.1", "-C", "100")
	if _, err := l.podman(ctx, args...); err != nil {
		return "", err
	}
	return "ran, data compared", l.ended(ctx, "server")
}

// composed runs the compose file as it is, with this run's image and device.
func composed(ctx context.Context, l *lab) (string, error) {
	env := []string{"IMAGE=" + l.image, "DEVICE=" + device}
	compose := func(args ...string) (string, error) {
		return l.output(ctx, "env", append(append(env, "podman-compose", "-p", prefix+"compose", "-f", l.compose), args...)...)
	}
	out, err := compose("up", "--abort-on-container-exit", "--exit-code-from", "client")
	_, err2 := compose("down", "-t", "0")
	if err == nil {
		err = err2
	}
	if err != nil {
		return "", err
	}
	return "ran, data compared", find(out, `client.*ping data|ping data|exit code: 0`)
}

// What Open MPI sends its messages over. libfabric's verbs provider gives 127.0.0.1 to ranks in other containers.
const (
	overLibfabric = "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs;ofi_rxm --mca btl self"
	overUCX       = "--mca pml ucx --mca osc ucx --mca btl ^openib -x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=softrnic0:1 -x SOFTRNIC_AS=roce"
)

// mpi is the command of an MPI program that sends round a ring.
func mpi(over string, flags ...string) []string {
	words := append([]string{"mpirun", "--allow-run-as-root"}, flags...)
	return append(words, strings.Fields(over+" python3 -m mpi4py.bench ringtest -l 100")...)
}

// acrossSSH has a rank in each of two containers. Programs that sshd starts have none of the container's variables: mpirun
// passes them on.
func acrossSSH(ctx context.Context, l *lab) (string, error) {
	key := l.programs + "/key"
	if err := l.do(ctx, "sh", "-c", `[ -f "$1" ] || ssh-keygen -q -t ed25519 -N "" -f "$1"`, "sh", key); err != nil {
		return "", err
	}
	flags := with(byCDI, "-v", l.programs+":/programs:ro")
	const set = `mkdir -p /run/sshd /root/.ssh && cp /programs/key /root/.ssh/id_ed25519 && cp /programs/key.pub /root/.ssh/authorized_keys && ` +
		`printf "StrictHostKeyChecking no\nLogLevel ERROR\n" >/root/.ssh/config && chmod -R go= /root/.ssh && `
	args := append(with([]string{"run", "-d", "--name", prefix + "server", "--network", prefix + "net"}, flags...), l.image, "sh", "-c", set+"exec /usr/sbin/sshd -De")
	if _, err := l.podman(ctx, args...); err != nil {
		return "", err
	}
	if err := l.ready(ctx, "server", 22); err != nil {
		return "", err
	}
	addr, err := l.podman(ctx, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", prefix+"server")
	if err != nil {
		return "", err
	}
	words := mpi(overUCX, "-np", "2", "--host", "$(hostname -i),"+strings.TrimSpace(addr), "-x", "LD_PRELOAD", "-x", "SOFTRNIC_ENGINE", "-x", "SOFTRNIC_TREE")
	if _, err := one(flags, "2 processes", "sh", "-c", set+"exec "+strings.Join(words, " "))(ctx, l); err != nil {
		return "", err
	}
	return "ran", nil
}

// inBubblewrap runs a program of the image's root in namespaces that an ordinary user may make.
func inBubblewrap(ctx context.Context, l *lab) (string, error) {
	root, err := l.podman(ctx, "image", "mount", l.image)
	if err != nil {
		return "", err
	}
	root = strings.TrimSpace(root)
	defer func() { _, _ = l.podman(context.WithoutCancel(ctx), "image", "unmount", l.image) }()
	args := []string{"--unshare-all", "--uid", "65534", "--gid", "65534", "--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/opt", "--ro-bind", l.dir, "/opt/softrnic"}
	for _, v := range l.byHand() {
		if name, value, ok := strings.Cut(v, "="); ok {
			args = append(args, "--setenv", name, value)
		}
	}
	out, err := l.output(ctx, "bwrap", append(args, "ibv_devinfo")...)
	if err != nil {
		return "", err
	}
	return "ran", find(out, "PORT_ACTIVE")
}

func inGVisor(ctx context.Context, l *lab) (string, error) {
	if _, err := exec.LookPath("runsc"); err != nil {
		return "", fmt.Errorf("%w: there is no runsc on this machine", errNotHere)
	}
	args := append(with([]string{"--runtime", "runsc", "run", "--rm", "--name", prefix + "one"}, byCDI...), l.image, "ibv_devinfo")
	out, err := l.podman(ctx, args...)
	if err != nil {
		return "", err
	}
	return "ran", find(out, "PORT_ACTIVE")
}

// told runs a program that gets no device, and says what it is told.
func told(want string, command ...string) func(context.Context, *lab) (string, error) {
	return func(ctx context.Context, l *lab) (string, error) {
		args := append(with([]string{"run", "--rm", "--name", prefix + "one", "-v", l.programs + ":/programs:ro"}, byCDI...), l.image)
		return refused(l.podman(ctx, append(args, command...)...))(want)
	}
}

// ofMusl runs a program of musl in a root folder that has no other libc.
func ofMusl(ctx context.Context, l *lab) (string, error) {
	root := l.dir + "/musl"
	if err := l.do(ctx, "sh", "-ec", `mkdir -p "$2"/lib && cp "$1"/look-musl "$2" && cp "$1"/ld-musl-* "$2"/lib`, "sh", l.programs, root); err != nil {
		return "", err
	}
	args := with([]string{"run", "--rm", "--name", prefix + "one"}, byCDI...)
	return refused(l.podman(ctx, append(args, "--rootfs", root, "/look-musl")...))("linked with musl")
}

// setuid runs a copy of ibv_devices that is setuid, as another user.
func setuid(command, want string) func(context.Context, *lab) (string, error) {
	const script = `cp /usr/bin/ibv_devices /tmp/setuid && chown daemon /tmp/setuid && chmod 4755 /tmp/setuid && exec setpriv --reuid=65534 --regid=65534 --clear-groups `
	return func(ctx context.Context, l *lab) (string, error) {
		args := append(with([]string{"run", "--rm", "--name", prefix + "one"}, byCDI...), l.image, "sh", "-c", script+command)
		return refused(l.podman(ctx, args...))(want)
	}
}

// refused is for a program that has to fail: its result is the line that it is told by, which matches want.
func refused(out string, err error) func(want string) (string, error) {
	return func(want string) (string, error) {
		if err == nil {
			return "", fmt.Errorf("it works, and was to be told\n%s", out)
		}
		for line := range strings.Lines(out) {
			if regexp.MustCompile(want).MatchString(line) {
				return "gets none; told: `" + strings.ReplaceAll(strings.TrimSpace(line), "`", "") + "`", nil
			}
		}
		return "", find(out, want)
	}
}
