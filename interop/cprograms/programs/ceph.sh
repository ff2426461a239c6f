#!/bin/sh
# Ceph's messenger over RDMA: `serve HOST HOW` is a cluster, a monitor and a storage daemon that keeps its objects in memory,
# `use` stores objects there and reads them. HOW: iwarp connects by rdma_cm, ib brings queue pairs up by hand.
set -eu
uuid=6d1ee9b4-9f6a-4c53-9e4a-0f3f3c1c4b11
CEPH_CONF=$PWD/ceph.conf
export CEPH_CONF

case $1 in
serve)
	cm=false
	[ "$3" = ib ] || cm=true
	cat >"$CEPH_CONF" <<-END
		[global]
		fsid = $uuid
		mon host = v2:$2:3300
		auth cluster required = none
		auth service required = none
		auth client required = none
		ms type = async+rdma
		ms async rdma device name = softrnic0
		ms async rdma type = $3
		ms async rdma cm = $cm
		ms async rdma receive queue len = 256
		ms async rdma receive buffers = 1024
		ms async rdma send buffers = 256
		keyring = $PWD/keyring
		run dir = $PWD
		crash dir = $PWD
		log file =
		admin socket =
		mon data = $PWD/mon
		mon allow pool size one = true
		mon data avail crit = 1
		osd data = $PWD/osd
		osd objectstore = memstore
		osd crush chooseleaf type = 0
		osd pool default size = 1
	END
	touch keyring
	mkdir osd
	monmaptool --create --fsid $uuid --addv a "[v2:$2:3300]" monmap
	ceph-mon --mkfs -i a --monmap monmap
	ceph-mon -f -i a &
	daemons=$!
	trap 'kill -9 $daemons; wait; exit' INT TERM
	ceph osd new $uuid
	ceph-osd --mkfs -i 0 --osd-uuid $uuid
	ceph-osd -f -i 0 &
	daemons="$daemons $!"
	wait
	;;
use)
	ceph osd pool create objects 1
	for size in 1 4096 1000000 20000000; do
		head -c $size /dev/urandom >original
		rados -p objects put object$size original
		rados -p objects get object$size copy
		cmp original copy
	done
	echo "ceph: ok"
	;;
esac
