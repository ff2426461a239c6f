#!/bin/sh
# Live migration of QEMU over RDMA: `to HOST [pin]` is the machine that a guest goes to, `from HOST [pin]` the one that it
# leaves. The guest never rests: it counts in each octet of 64 KiB of its memory. It is stopped when it has gone, and both
# write their memory to a file. pin: the whole of it is registered at first, not part by part.
set -eu
role=$1
host=$2
size=65544
pin=false
[ "${3:-}" != pin ] || pin=true

# qmp COMMAND [ARGUMENTS]
qmp() { printf '{"execute": "%s", "arguments": {%s}}\n' "$1" "${2:-}" >&3 && hears '"return"'; }

# hears WORDS: reads what QEMU says, as far as WORDS
hears() {
	while read -r line <&4; do
		echo "$line"
		case $line in
		*"$1"*) return ;;
		*'"error"'* | *'"failed"'*) exit 1 ;;
		esac
	done
	echo "QEMU ended before it said $1"
	exit 1
}

# The reset vector: mov ax, 0x1000; mov ds, ax; again: inc byte [bx]; inc bx; jmp again.
{ head -c 65520 /dev/zero && printf '\270\000\020\216\330\376\007\103\353\373\000\000\000\000\000\000'; } >"$role.bios"
mkfifo "$role.in" "$role.out"
# No multiple of 256 KiB: of such memory QEMU before 9.0, without KVM, forgets what a guest writes during a migration, over TCP too.
set -- -machine q35,accel=tcg -m ${size}K -nodefaults -display none -bios "$role.bios" -chardev "pipe,id=qmp,path=$role" -mon qmp,mode=control
case $role in
to) set -- "$@" -S -incoming defer ;;
from) set -- "$@" -device loader,file=original,addr=0x1000000 ;; # only the network has it for the other
esac
qemu-system-x86_64 "$@" &
qemu=$!
trap 'kill $qemu 2>/dev/null || true' EXIT
exec 3>"$role.in" 4<"$role.out"
qmp qmp_capabilities
qmp migrate-set-capabilities '"capabilities": [{"capability": "events", "state": true}, {"capability": "rdma-pin-all", "state": '$pin'}]'
case $role in
to) qmp migrate-incoming "\"uri\": \"rdma:$host:4444\"" ;;
from) qmp migrate "\"uri\": \"rdma:$host:4444\"" ;;
esac
hears '"status": "completed"'
qmp query-migrate
qmp pmemsave "\"val\": 0, \"size\": $((size * 1024)), \"filename\": \"$role.memory\""
qmp quit
wait $qemu
echo "$role: ok"
