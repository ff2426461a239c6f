#!/bin/sh
# Two devices on each side of real programs: `rails.sh MODE RNIC` prints "MODE: ok", or says what was not so. Which device the bytes
# went over, the counters say.
# shellcheck disable=SC2086 # commands are lists of words
set -eu
mode=$1 rnic=$2
ip addr add 10.99.0.11/24 dev wire
ip addr add 10.99.0.12/24 dev wire
XDG_RUNTIME_DIR=$PWD/tmp
export XDG_RUNTIME_DIR
one=10.99.0.11 two=10.99.0.12
run="$rnic run --stats --device mlx5_0=$one,numa=0,as=roce --device mlx5_1=$two,numa=0,as=roce --"

# listens PORT: waits until a TCP port is listened on.
listens() {
	port=$(printf %04X "$1")
	while ! grep -qi ":$port 0\{8,\}:0000 0A" /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done
}

# octets DEVICE: what all processes have sent over it so far.
octets() {
	"$rnic" top --counters 2>/dev/null |
		awk -v device="$1" '/ rnic /{on = $NF == device} on && /^  out_octets/{n += $2} END{print n + 0}'
}

# watch COMMAND...: runs it, and sets first and second to what the devices had sent when it was last seen.
watch() {
	"$@" >client.out 2>&1 &
	client=$!
	first=0 second=0
	while kill -0 $client 2>/dev/null; do
		a=$(octets mlx5_0) b=$(octets mlx5_1)
		if [ "$((a + b))" -gt "$((first + second))" ]; then first=$a second=$b; fi
		sleep 0.1
	done
	wait $client || { cat client.out; exit 1; }
	echo "mlx5_0 sent $first octets, mlx5_1 $second"
}

case $mode in
ucx) # tags of a megabyte go over both rails
	ucx="env UCX_TLS=rc_v,ud_v UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 ucx_perftest -t tag_bw -s 1000000 -n 5000 -w 10"
	$run $ucx >server.out 2>&1 &
	listens 13337
	watch $run $ucx 127.0.0.1
	[ "$first" -gt 500000000 ] && [ "$second" -gt 500000000 ]
	;;
rping) # each address of the server is another device's, and so is the client's, by the route
	for at in $one $two; do
		$run rping -s -a 0.0.0.0 >server.out 2>&1 &
		listens 7174
		watch $run rping -c -a $at -I $at -S 60000 -C 5000
		if [ $at = $one ]; then [ "$first" -gt 100000000 ] && [ "$second" -eq 0 ]; else [ "$second" -gt 100000000 ] && [ "$first" -eq 0 ]; fi
		wait
	done
	;;
fabric) # libfabric's domain is the device
	for at in $one $two; do
		$run fi_pingpong -c -p verbs -e msg -I 20000 -S 16384 >server.out 2>&1 &
		listens 47592
		watch $run fi_pingpong -c -p verbs -e msg -I 20000 -S 16384 $at
		if [ $at = $one ]; then [ "$first" -gt 100000000 ] && [ "$second" -eq 0 ]; else [ "$second" -gt 100000000 ] && [ "$first" -eq 0 ]; fi
		wait
	done
	;;
lstopo) # below their PCI functions, those below the node
	$run lstopo --of console --whole-io >out 2>&1 || $run lstopo --of console >out 2>&1
	cat out
	grep -A1 'PCI c0:00.0' out | grep -q 'OpenFabrics "mlx5_0"'
	grep -A1 'PCI c1:00.0' out | grep -q 'OpenFabrics "mlx5_1"'
	;;
esac
echo "$mode: ok"
