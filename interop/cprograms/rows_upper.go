//go:build linux

package main

import (
	"strings"
	"time"
)

// daplRows are the tests of uDAPL, by rdma_cm and with queue pairs that its own sockets bring up.
func daplRows() []row {
	const conf = `entries() { printf '%s u2.0 nonthreadsafe default %s dapl.2.0 "%s" ""\n' "$@"; }
entries cma libdaplofa.so.2 "wire 0" scm libdaploscm.so.2 "softrnic0 1" >dat.conf`
	pair := func(test, provider, want string, port int, flags string) row {
		command := "env DAT_OVERRIDE=dat.conf " + test + " -P " + provider
		return row{
			pkg: "dapl2-utils", server: command, client: command + " -h HOST", port: port, flags: flags,
			before: conf, want: want, checks: strings.HasSuffix(want, "PASSED"), limit: 2 * time.Minute,
		}
	}
	const (
		passed   = "DAPL Test Complete. PASSED"
		portSays = 15828 // where a server says what it has
		portTest = 45248
	)
	return []row{
		pair("dtest", "cma", passed, portSays, ""), pair("dtest", "cma", passed, portSays, "--as roce"),
		pair("dtest", "scm", passed, portSays, ""), pair("dtest", "scm", passed, portSays, "--as roce"),
		pair("dtestx", "cma", "immed/atomic test PASSED", portSays, "--as roce"),
		pair("dtestsrq", "cma", "DAPL RC SRQ Test Complete", portTest, ""),
		pair("dtestcm", "cma", "Connections: .* CPS", portTest, ""),
	}
}

// fioRows are fio's jobs, whose data it does not compare.
func fioRows() []row {
	const job = " --ioengine=rdma --port=8888 --bs=64k --size=64m --iodepth=16"
	var all []row
	for _, verb := range []string{"write", "read", "send"} {
		for _, flags := range []string{"", "--as roce"} {
			all = append(all, row{
				pkg: "fio", server: "fio --name=server --rw=read" + job, port: 8888, flags: flags,
				client: "fio --name=client --rw=write" + job + " --hostname=HOST --verb=" + verb, want: "WRITE: bw=.*io=64.0MiB",
			})
		}
	}
	return all
}

// mpiRows are four ranks whose collectives' data is compared, by each MPI over each library.
func mpiRows() []row {
	openib := row{
		pkg: "openmpi-bin", flags: "--as roce", before: "mpicc.openmpi -O2 -o collectives HERE/../../examples/fabric/collectives.c",
		client: "mpirun.openmpi -np 4 --allow-run-as-root --oversubscribe --mca pml ob1 --mca btl openib,self --mca btl_openib_allow_ib 1 ./collectives 2",
		want:   "collectives: ok", checks: true,
		cannot: "Debian builds openib with udcm alone, which wants a link of InfiniBand (udcm_component_query); RoCE and iWARP need its rdmacm",
	}
	mpi := func(pkg, flags, env, run string) row {
		name := strings.TrimSuffix(pkg, "-bin")
		return row{
			pkg: pkg, flags: flags, client: "env " + env + " mpirun." + name + " -np 4 " + run + " ./collectives 2", want: "collectives: ok", checks: true,
			before: "mpicc." + name + " -O2 -o collectives HERE/../../examples/fabric/collectives.c",
		}
	}
	const (
		ucx  = "UCX_TLS=rc_v,ud_v,self UCX_NET_DEVICES=softrnic0:1"
		root = "--allow-run-as-root --oversubscribe "
	)
	return []row{
		mpi("mpich", "--as roce", ucx, ""),
		mpi("openmpi-bin", "--as roce", ucx, root+"--mca pml ucx --mca osc ucx"),
		mpi("openmpi-bin", "", "FI_PROVIDER=verbs", root+`--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "verbs;ofi_rxm" --mca btl self`),
		openib,
	}
}

// iserRows are iSCSI over RDMA: tgt's target, and the tests of libiscsi, which write, read and verify.
func iserRows() []row {
	var all []row
	for _, flags := range []string{"", "--as roce"} {
		all = append(all, row{
			pkg: "tgt, libiscsi-bin", server: "sh ./iser.sh serve", client: "sh ./iser.sh test HOST", port: portISCSI, flags: flags, stays: true,
			before: "cp HERE/programs/iser.sh . && head -c 8388608 /dev/urandom >disk", want: "iser: ok", checks: true, limit: 2 * time.Minute,
		})
	}
	return all
}

// rpmaRows are librpma's API, in a program of our own: each end reads and writes the other's memory, flushes it and sends messages.
func rpmaRows() []row {
	var all []row
	for _, receives := range []string{"", " shared"} {
		for _, flags := range []string{"", "--as roce"} {
			all = append(all, row{
				pkg: "librpma0", server: "./rpma serve HOST" + receives, client: "./rpma use HOST", port: portRPMA, flags: flags,
				before: "gcc -O1 -Wall -Wextra -Werror -o rpma HERE/programs/rpma.c -lrpma -libverbs", want: "rpma: ok", checks: true,
			})
		}
	}
	return all
}

// qemuRows are live migrations of a guest that writes to its memory all the time. Its octets are counters, from zero up: a guest that did
// not run is not one that was migrated alive.
func qemuRows() []row {
	const same = "cmp from.memory to.memory && cmp -i 16777216:0 -n 16777216 to.memory original && ! cmp -s -i 65536:0 -n 65536 to.memory /dev/zero"
	var all []row
	for _, memory := range []string{"", " pin"} {
		for _, flags := range []string{"", "--as roce"} {
			all = append(all, row{
				pkg: "qemu-system-x86", server: "sh ./qemu.sh to HOST" + memory, client: "sh ./qemu.sh from HOST" + memory, port: portMigration, flags: flags,
				before: "cp HERE/programs/qemu.sh . && head -c 16777216 /dev/urandom >original", want: "from: ok", after: same, checks: true,
			})
		}
	}
	return all
}

// cephRows are a cluster and a client, by each of the two ways in which Ceph's messenger connects.
func cephRows() []row {
	var all []row
	for _, r := range []struct{ how, flags string }{{"iwarp", ""}, {"ib", "--as roce"}} {
		all = append(all, row{
			pkg: "ceph-mon, ceph-osd", server: "sh ./ceph.sh serve HOST " + r.how, client: "sh ./ceph.sh use", port: portCeph, flags: r.flags, stays: true,
			before: "cp HERE/programs/ceph.sh .", want: "ceph: ok", checks: true, limit: 2 * time.Minute,
		})
	}
	return all
}

// glooRows are Gloo's collectives, whose queue pairs are brought up by hand and send by Writes with Immediate Data.
func glooRows() []row {
	var all []row
	for _, flags := range []string{"", "--as roce"} {
		all = append(all, row{
			pkg: "libgloo0", client: "./gloo", flags: flags, want: "gloo: ok", checks: true,
			before: "g++ -O1 -Wall -Wextra -Werror -o gloo HERE/programs/gloo.cc -lgloo",
		})
	}
	return all
}
