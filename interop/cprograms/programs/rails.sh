#!/bin/sh
# Two devices on each side of real programs: `rails.sh MODE RNIC` prints "MODE: ok", or says what was not so. Which device the bytes
# went over, the counters say.
# shellcheck disable=SC2086 # commands are lists of words
set -eu
mode=$1 rnic=$2
ip addr add 10.99.1.1/24 dev wire
ip addr add 10.99.2.1/24 dev wire
XDG_RUNTIME_DIR=$PWD/sockets
mkdir -m 700 "$XDG_RUNTIME_DIR"
export XDG_RUNTIME_DIR
one=10.99.1.1 two=10.99.2.1
run="$rnic run --stats --device mlx5_0=$one,numa=0,as=roce --device mlx5_1=$two,numa=0,as=roce --"

# listens PORT: waits until a TCP port is listened on.
listens() {
	port=$(printf %04X "$1")
	while ! grep -qi ":$port 0\{8,\}:0000 0A" /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done
}

# octets DEVICE: what all processes have sent over it so far.
octets() {
	"$rnic" top --counters 2>/dev/null |
		awk -v device="$1" '/ rnic /{on = $NF == device} on && /^  out_octets/{n += $2} END{printf "%.0f\n", n}'
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

# over FIRST SECOND: whether the devices have sent at least as many octets; of 0 none.
over() {
	for want in "$1 $first" "$2 $second"; do
		if [ "${want% *}" -eq 0 ] && [ "${want#* }" -ne 0 ] || [ "${want#* }" -lt "${want% *}" ]; then
			echo "want $1 and $2"
			exit 1
		fi
	done
}

many=50000000 # octets
case $mode in
ucx) # tags of a megabyte go over both rails
	ucx="env UCX_TLS=rc_v,ud_v UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 ucx_perftest -t tag_bw -s 1000000 -n 5000 -w 10"
	$run $ucx >server.out 2>&1 &
	listens 13337
	watch $run $ucx 127.0.0.1
	wait
	over $many $many
	;;
rping) # each address of the server is another device's, and so is the client's, by the route
	for at in $one $two; do
		$run rping -s -a 0.0.0.0 -S 60000 >server.out 2>&1 &
		listens 7174
		watch $run rping -c -a $at -I $at -S 60000 -C 8000
		wait
		if [ $at = $one ]; then over $many 0; else over 0 $many; fi
	done
	;;
fabric) # libfabric's domain is the device that has the source address, or from whose the route to a destination begins
	for at in "$one mlx5_0" "$two mlx5_1"; do
		for how in "-s ${at% *}" "-n ${at% *} -P 7174"; do
			domains=$($run fi_info -p verbs -t FI_EP_MSG $how | sed -n 's/^ *domain: //p')
			echo "$how: $domains"
			[ "$domains" = "${at#* }" ]
		done
	done
	$run fi_pingpong -c -p verbs -e msg >server.out 2>&1 &
	listens 47592
	$run fi_pingpong -c -p verbs -e msg $one
	wait
	;;
lstopo) # below their PCI functions, those below the node
	$run lstopo --of console --whole-io >out 2>&1 || $run lstopo --of console >out 2>&1
	cat out
	grep -A1 'PCI c0:00.0' out | grep -q 'OpenFabrics "mlx5_0"'
	grep -A1 'PCI c1:00.0' out | grep -q 'OpenFabrics "mlx5_1"'
	;;
esac
echo "$mode: ok"
