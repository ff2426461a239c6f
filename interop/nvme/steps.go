//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/softrnic/softrnic/interop/internal/siw"
)

// nqn is the name of the subsystem that rnic nvme serve exports.
const nqn = "nqn.2026-01.org.softrnic:disks"

// limit bounds a step, whose processors may be emulated.
const limit = 5 * time.Minute

// step is one thing to do. good is what the table says of it when it went well, or if empty what do printed.
type step struct {
	name, good string
	do         func(ctx context.Context, l *lab) (printed string, err error)
}

var steps = []step{
	{"`nvme discover`", "the subsystem, over RDMA", discover},
	{"`nvme connect -i 4 -Q 32`", "a disk of 256 MiB over four I/O queues", connect},
	{"4 MiB of random data, 64 KiB at a time, with `oflag=direct`, read with `iflag=direct`", "the same", script(direct)},
	{"`mkfs.ext4`, mount, a tree of 300 files, unmount, caches dropped, mount, MD5 of each", "no file differs", script(tree)},
	{"four direct writers and readers side by side, 8 MiB each, three times", "the same, twelve times", script(parallel)},
	{"the target killed amid that, restarted on its port and file", "the host reconnects; no I/O error; the same", pulled},
	{"8 MiB written with `conv=fsync`, the target killed at once, its file", "all of it is in the file", crash},
	{"`nvme disconnect`", "orderly: no disk left, and the target ends as asked", disconnect},
	{"connect, write, read and disconnect with `--no-invalidate`, `--shared 64` and a disk in memory", "the same", memory},
	{"`rnic nvme ls`, of Linux's target (`nvmet-rdma`) with a RAM disk in the guest", "the subsystem, and its disk of 64 MiB", listed},
	{"`rnic nvme check`, 32 MiB over two queues", "all verified", checked},
	{"3,000,123 octets with `rnic nvme write`, their MD5 in the guest, and with `rnic nvme read`", "the same", copied},
	{"the kernel's log", "", kernelLog},
}

func script(text string) func(context.Context, *lab) (string, error) {
	return func(ctx context.Context, l *lab) (string, error) { return l.guest.Run(ctx, limit, text) }
}

func discover(ctx context.Context, l *lab) (string, error) {
	if err := os.WriteFile(l.disk(), nil, 0o600); err != nil {
		return "", err
	}
	if err := os.Truncate(l.disk(), diskSize); err != nil {
		return "", err
	}
	if err := l.serve(ctx, "0", l.disk()); err != nil {
		return "", err
	}
	out, err := l.guest.Run(ctx, limit, "dmesg -c >/dev/null; modprobe nvme-rdma && nvme discover -t rdma -a "+siw.HostAddr+" -s "+l.port)
	if err == nil && (!strings.Contains(out, nqn) || !strings.Contains(out, "rdma")) {
		err = errors.New("the discovery log does not name the subsystem")
	}
	return out, err
}

// connectScript connects, and waits until the disk is there.
func (l *lab) connectScript() string {
	return fmt.Sprintf(`
nvme connect -t rdma -a %s -s %s -n %s -i 4 -Q 32 || exit 1
n=0
while ! [ -b /dev/nvme0n1 ]; do
  n=$((n + 1))
  [ $n -lt 600 ] || { echo "no /dev/nvme0n1"; exit 1; }
  usleep 50000
done
`, siw.HostAddr, l.port, nqn)
}

func connect(ctx context.Context, l *lab) (string, error) {
	out, err := l.guest.Run(ctx, limit, l.connectScript()+"cat /sys/block/nvme0n1/size; dmesg | grep 'creating 4 I/O queues' || exit 1")
	if err == nil && !strings.Contains(out, fmt.Sprintf("%d\n", diskSize/512)) {
		err = errors.New("the disk has another size")
	}
	return out, err
}

const direct = `
cd /tmp && dd if=/dev/urandom of=r bs=64k count=64 2>/dev/null &&
dd if=r of=/dev/nvme0n1 bs=64k oflag=direct 2>/dev/null &&
dd if=/dev/nvme0n1 of=back bs=64k count=64 iflag=direct 2>/dev/null && cmp r back || { echo "the data differs"; exit 1; }
rm -f r back`

const tree = `
set -e
mkfs.ext4 -q -F /dev/nvme0n1
mkdir -p /mnt
mount -t ext4 /dev/nvme0n1 /mnt
cd /tmp
n=0
while [ $n -lt 300 ]; do
  d=/mnt/$((n % 10))/$((n % 7))
  mkdir -p $d
  dd if=/dev/urandom of=$d/$n bs=1000 count=$((n % 40 + 1)) 2>/dev/null
  n=$((n + 1))
done
find /mnt -type f | sort | xargs md5sum >sums
umount /mnt
echo 3 >/proc/sys/vm/drop_caches
mount -t ext4 /dev/nvme0n1 /mnt
md5sum -c sums >checked || { grep -v OK checked; echo "a file differs"; exit 1; }
test "$(wc -l <checked)" = 300
umount /mnt
rm sums checked`

// rounds is the function that writes 8 MiB at a place of its own, $1, reads and compares, $2 times.
const rounds = `
rounds() {
  n=0
  while [ $n -lt $2 ]; do
    n=$((n + 1))
    dd if=/dev/urandom of=/tmp/r$1 bs=64k count=128 2>/dev/null &&
    dd if=/tmp/r$1 of=/dev/nvme0n1 bs=64k seek=$(($1 * 128)) oflag=direct 2>/tmp/e$1 &&
    dd if=/dev/nvme0n1 of=/tmp/b$1 bs=64k skip=$(($1 * 128)) count=128 iflag=direct 2>/tmp/e$1 &&
    cmp /tmp/r$1 /tmp/b$1 || { cat /tmp/e$1; echo "part $1, round $n"; return 1; }
  done
}
all() {
  rounds 0 $1 & a=$!
  rounds 1 $1 & b=$!
  rounds 2 $1 & c=$!
  rounds 3 $1 & d=$!
  ok=0
  for p in $a $b $c $d; do wait $p || ok=1; done
  rm -f /tmp/[rbe][0-3]
  return $ok
}
`

const parallel = rounds + "all 3"

// pulled kills the target while the guest writes and reads, and starts it again when the guest has seen the end.
func pulled(ctx context.Context, l *lab) (printed string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if _, err := l.guest.Run(ctx, limit, rounds+"dmesg -c >>/tmp/dmesg; (all 3; echo $? >/tmp/status) >/tmp/said 2>&1 </dev/null & "+`
stat=/sys/block/nvme0c0n1/stat # of the path, where the kernel has several
[ -e $stat ] || stat=/sys/block/nvme0n1/stat
before=$(awk '{ print $7 }' $stat)
n=0
while [ "$(awk '{ print $7 }' $stat)" -lt $((before + 8192)) ]; do # 4 MiB more are written
  n=$((n + 1))
  [ $n -lt 2000 ] || { echo "nothing is written"; exit 1; }
  usleep 20000
done`); err != nil {
		return "", err
	}
	l.end()
	if _, err := l.guest.Run(ctx, limit, "while ! dmesg | grep -q 'Reconnecting in'; do usleep 50000; done"); err != nil {
		return "", fmt.Errorf("the host did not see the target go: %w", err)
	}
	if err := l.serve(ctx, l.port, l.disk()); err != nil {
		return "", err
	}
	out, err := l.guest.Run(ctx, limit, `
while ! [ -s /tmp/status ]; do usleep 50000; done
cat /tmp/said
dmesg | grep 'Successfully reconnected' || { echo "the host did not reconnect"; exit 1; }
dmesg | grep 'I/O error' && exit 1
[ "$(cat /tmp/status)" = 0 ]
rc=$?
dmesg -c >>/tmp/pulled
rm -f /tmp/status /tmp/said
exit $rc`)
	return out, err
}

// crash kills the target at once after the guest was told that its data is stable, and looks into the file.
func crash(ctx context.Context, l *lab) (string, error) {
	out, err := l.guest.Run(ctx, limit, `
dd if=/dev/urandom of=/tmp/r bs=64k count=128 2>/dev/null &&
dd if=/tmp/r of=/dev/nvme0n1 bs=64k seek=1024 conv=fsync,notrunc 2>/dev/null && md5sum </tmp/r`)
	l.end()
	if err != nil {
		return out, err
	}
	sum, _, _ := strings.Cut(strings.TrimSpace(out), " ")
	found, err := partSum(filepath.Clean(l.disk()), 1024*64<<10, 128*64<<10)
	switch {
	case err != nil:
		return out, err
	case found != sum:
		return out, fmt.Errorf("the file has %s there, the guest wrote %s", found, sum)
	}
	return out, l.serve(ctx, l.port, l.disk())
}

// gone disconnects, and wants the disk to be gone.
const gone = `
nvme disconnect -n ` + nqn + ` || exit 1
n=0
while [ -e /dev/nvme0n1 ] || [ -e /dev/nvme0 ]; do
  n=$((n + 1))
  [ $n -lt 600 ] || { echo "the disk is still there"; exit 1; }
  usleep 50000
done`

func disconnect(ctx context.Context, l *lab) (string, error) {
	// The host has to be back after crash before it can leave in order.
	out, err := l.guest.Run(ctx, limit, `
while [ "$(cat /sys/class/nvme/nvme0/state)" != live ]; do usleep 50000; done
dmesg -c >>/tmp/pulled
`+gone)
	return out, errors.Join(err, l.quit())
}

func memory(ctx context.Context, l *lab) (string, error) {
	if err := l.serve(ctx, "0", "--no-invalidate", "--shared", "64", "mem:64"); err != nil {
		return "", err
	}
	out, err := l.guest.Run(ctx, limit, l.connectScript()+rounds+"all 1 || exit 1"+gone)
	return out, errors.Join(err, l.quit())
}
