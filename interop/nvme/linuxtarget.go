//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// What Linux's target exports: the name of its subsystem, and its port in the guest.
const (
	linuxNQN  = "nqn.2026-01.org.softrnic:linux"
	linuxPort = 4420
)

// export makes the guest a target, through the files that nvmet is configured by.
var export = `
modprobe nvmet-rdma && modprobe brd rd_nr=1 rd_size=65536 || exit 1
grep -q configfs /proc/mounts || mount -t configfs none /sys/kernel/config || exit 1
cd /sys/kernel/config/nvmet &&
mkdir subsystems/` + linuxNQN + ` && cd subsystems/` + linuxNQN + ` && echo 1 >attr_allow_any_host &&
mkdir namespaces/1 && echo -n /dev/ram0 >namespaces/1/device_path && echo 1 >namespaces/1/enable || exit 1
cd /sys/kernel/config/nvmet && mkdir ports/1 && cd ports/1 &&
echo rdma >addr_trtype && echo ipv4 >addr_adrfam && echo 0.0.0.0 >addr_traddr && echo ` + strconv.Itoa(linuxPort) + ` >addr_trsvcid &&
ln -s /sys/kernel/config/nvmet/subsystems/` + linuxNQN + ` subsystems/`

// use runs a command of rnic nvme on the guest's disk. The guest's discovery log has the guest's own address, so that the
// subsystem is named.
func (l *lab) use(ctx context.Context, command string, args ...string) (printed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := append([]string{"nvme", command, net.JoinHostPort("127.0.0.1", strconv.Itoa(l.guest.Port)), "--nqn", linuxNQN}, args...)
	out, err := exec.CommandContext(ctx, l.rnic, all...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("rnic nvme %s: %w: %s", command, err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

func listed(ctx context.Context, l *lab) (string, error) {
	if out, err := l.guest.Run(ctx, limit, export); err != nil {
		return out, err
	}
	out, err := l.use(ctx, "ls")
	if err == nil && (!strings.Contains(out, linuxNQN) || !strings.Contains(out, "67,108,864")) {
		err = errors.New("the disk is not listed")
	}
	return out, err
}

func checked(ctx context.Context, l *lab) (string, error) {
	return l.use(ctx, "check", "--offset", "1M", "--length", "32M", "--queues", "2", "--yes")
}

func copied(ctx context.Context, l *lab) (string, error) {
	const octets, at = 3000123, 4096
	name, back := filepath.Join(l.dir, "written"), filepath.Join(l.dir, "read")
	b := make([]byte, octets)
	_, _ = rand.Read(b) // does not fail
	if err := os.WriteFile(name, b, 0o600); err != nil {
		return "", err
	}
	where := []string{"--offset", fmt.Sprint(at), "--length", fmt.Sprint(octets)}
	if out, err := l.use(ctx, "write", append([]string{name}, where...)...); err != nil {
		return out, err
	}
	out, err := l.guest.Run(ctx, limit, fmt.Sprintf("dd if=/dev/ram0 bs=%d skip=1 2>/dev/null | head -c %d | md5sum", at, octets))
	if err != nil {
		return out, err
	}
	if sum, _, _ := strings.Cut(strings.TrimSpace(out), " "); sum != fmt.Sprintf("%x", md5.Sum(b)) {
		return out, errors.New("the guest has other octets")
	}
	if out, err := l.use(ctx, "read", append([]string{back}, where...)...); err != nil {
		return out, err
	}
	got, err := os.ReadFile(filepath.Clean(back))
	if err == nil && !bytes.Equal(b, got) {
		err = errors.New("other octets were read")
	}
	return out, err
}
