#!/bin/sh
# Programs whose NIC breaks while they run (docs/nic.md): `broken.sh MODE RNIC` prints what they said and "MODE: ok", or says what was
# not so.
# shellcheck disable=SC2086 # commands are lists of words
set -eu
mode=$1 rnic=$2
XDG_RUNTIME_DIR=$PWD/run
export XDG_RUNTIME_DIR
mkdir -m 700 "$XDG_RUNTIME_DIR"
program=
trap 'kill $program 2>/dev/null || :; wait' EXIT # one may have ended by itself

# until COMMAND...: waits until it succeeds. The row has a limit.
until_() {
	while ! "$@" >/dev/null 2>&1; do sleep 0.05; done
}

# listed STATE N: N NICs are in that state.
listed() { [ "$("$rnic" nic ls | grep -c " $1 ")" = "$2" ]; }

# listens PORT: somebody listens on a TCP port.
listens() { grep -qi ":$(printf %04X "$1") 0\{8,\}:0000 0A" /proc/net/tcp /proc/net/tcp6; }

# says FILE TEXT: a line with the text.
says() { grep -q "$2" "$1"; }

case $mode in
asyncwatch)
	stdbuf -oL "$rnic" run --stats -- ibv_asyncwatch >said 2>&1 &
	program=$!
	until_ says said 'async event FD'
	for command in "down softrnic0" "up softrnic0" "degrade softrnic0 10g 1ms" "move-gid softrnic0" "move-gid softrnic0" "quiet" "unplug softrnic0"; do
		"$rnic" nic $command
	done
	until_ says said DEVICE_FATAL
	sed -n 's/.*\(IBV_EVENT_[A-Z_]*\).*/\1/p' said | tee events
	printf 'IBV_EVENT_%s\n' PORT_ERR PORT_ACTIVE GID_CHANGE GID_CHANGE DEVICE_FATAL | cmp - events
	;;
rping)
	"$rnic" run --stats -- rping -s -a 127.0.0.1 -C 100000 >server.out 2>&1 &
	program=$!
	until_ listed ACTIVE 1
	"$rnic" run --stats -- rping -c -d -v -V -a 127.0.0.1 -C 100000 >client.out 2>&1 &
	client=$!
	program="$program $client"
	until_ says client.out 'ping data: rdma-ping-9:'
	"$rnic" nic down softrnic0
	n=$(wc -l <client.out)
	sleep 0.5
	[ "$(wc -l <client.out)" -le "$((n + 1))" ]
	"$rnic" nic up softrnic0
	until_ says client.out "ping data: rdma-ping-$((n + 100)):"
	"$rnic" nic down softrnic0
	wait $client || :
	grep 'DISCONNECT EVENT' client.out
	;;
ucx)
	ucx="env UCX_TLS=rc_v,ud_v UCX_RC_TIMEOUT=250ms UCX_RC_RETRY_COUNT=3 ucx_perftest -e -t tag_bw -s 4096 -n 100000000 -p 13399"
	"$rnic" run --stats --as roce -- $ucx >server.out 2>&1 &
	program=$!
	until_ listens 13399
	"$rnic" run --stats --as roce -- $ucx 127.0.0.1 >client.out 2>&1 &
	client=$!
	program="$program $client"
	until_ says client.out 'thread 0'
	"$rnic" nic down softrnic0 # for less than it waits
	sleep 0.3
	"$rnic" nic up softrnic0
	n=$(grep -c 'thread 0' client.out)
	until_ sh -c "[ \$(grep -c 'thread 0' client.out) -gt $((n + 2)) ]"
	"$rnic" nic down softrnic0
	until_ says client.out 'error handler called with status -80 (Endpoint timeout)' # it waits for ever then, for its peer's word
	grep 'error handler' client.out
	;;
port) # ours, which breaks its own
	for as in iwarp roce; do
		"$rnic" run --stats --as $as -- ./port "$rnic"
	done
	;;
esac
echo "$mode: ok"
