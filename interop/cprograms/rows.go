//go:build linux

package main

import (
	"slices"
	"strings"
	"time"
)

// Where the programs listen if they are not told.
const (
	portPerftest  = 18515 // and ibv_*_pingpong
	portRping     = 7174  // and udaddy
	portCM        = 7471  // the examples of librdmacm
	portRcopy     = 7427
	portQperf     = 19765
	portFabric    = 47592
	portUCX       = 13337
	portISCSI     = 3260
	portRPMA      = 7204
	portMigration = 4444 // QEMU's
	portCeph      = 3300
	wantBandwidth = `(?m)^ *[1-9][0-9]* +[1-9][0-9]* +[0-9.]+ `
)

// Why a program cannot work.
const (
	noMulticast = "multicast is carried by unreliable datagrams between adapters of one InfiniBand or RoCE network; TCP has no such thing"
	noXRC       = "XRC has no form in iWARP"
	noIPoIB     = "IP over InfiniBand needs an InfiniBand network"
)

// rows is the table. No row is dropped: a program that does not work says why.
func rows() []row {
	return slices.Concat(verbsRows(), cmRows(), socketRows(), perftestRows(), qperfRows(), fabricRows(), ownRows(), nicRows(), brokenRows(), daplRows(), iserRows(), fioRows(), mpiRows(), rpmaRows(), qemuRows(), cephRows(), glooRows())
}

// verbsRows are the programs of libibverbs.
func verbsRows() []row {
	const pkg = "ibverbs-utils"
	pair := func(command string) row {
		return row{pkg: pkg, server: command, client: command + " HOST", port: portPerftest}
	}
	checked := func(command string) row {
		r := pair(command)
		r.checks = true
		return r
	}
	first := checked("ibv_rc_pingpong -g 0 -c")
	first.newer = true
	impossible := func(command, why string) row {
		r := pair(command)
		r.cannot = why
		return r
	}
	return []row{
		{pkg: pkg, client: "ibv_devices", want: "softrnic0", newer: true},
		{pkg: pkg, client: "ibv_devinfo -v", want: "PORT_ACTIVE", newer: true},
		{pkg: pkg, client: "ibv_devinfo -v", flags: "--as roce", want: "(?s)InfiniBand.*PORT_ACTIVE"},
		// It hears of what has no object alone, of which there is nothing here: it waits until it is ended.
		{pkg: pkg, client: `sh -c "timeout -s INT 1 stdbuf -oL ibv_asyncwatch; true"`, want: "softrnic0: async event FD [0-9]"},
		first,
		checked("ibv_rc_pingpong -g 0 -c -e"),
		{pkg: pkg, server: "ibv_rc_pingpong -g 0 -c", client: "ibv_rc_pingpong -g 0 -c HOST", port: portPerftest, flags: "--as roce", checks: true},
		checked("ibv_srq_pingpong -g 0 -c"),
		checked("ibv_uc_pingpong -g 0 -c"),
		checked("ibv_uc_pingpong -g 0 -c -e"),
		{pkg: pkg, server: "ibv_uc_pingpong -g 0 -c", client: "ibv_uc_pingpong -g 0 -c HOST", port: portPerftest, flags: "--as roce", checks: true},
		checked("ibv_ud_pingpong -g 0 -c"),
		pair("ibv_ud_pingpong -g 0 -e"),
		impossible("ibv_xsrq_pingpong -g 0", noXRC),
	}
}

// cmRows are the programs of librdmacm, but for sockets.
func cmRows() []row {
	const pkg = "rdmacm-utils"
	const late = "its first thread closes the channel that its second still reads (rdma-core 59 mends it)"
	ping := func(host, more string) row {
		return row{pkg: pkg, server: "rping -s -a " + host + more, client: "rping -c -V -a " + host + more, port: portRping, leaves: late, checks: true}
	}
	nobody := ping("HOST", " -C 10")
	nobody.user = true
	ours := ping("HOST", " -C 10")
	ours.server, ours.plain, ours.leaves = "RNIC ping -s -a HOST -p 7174", server, ""
	theirs := ping("HOST", " -C 10")
	theirs.client, theirs.plain = "RNIC ping -c -a HOST -p 7174 -C 10 -V", client
	ours.stays = true
	lossy := ping("HOST", " -C 100 -S 4096")
	lossy.lossy, lossy.newer = true, true
	example := func(server, client string) row {
		return row{pkg: pkg, server: server, client: client, port: portCM}
	}
	ucmatose := example("ucmatose -c 4 -C 100 -S 4096", "ucmatose -c 4 -C 100 -S 4096 -s HOST")
	ucmatose.lossy, ucmatose.newer = true, true
	times := example("cmtime -c 100", "cmtime -c 100 -s HOST")
	times.stays = true
	xserver := example("rdma_xserver -c r", "rdma_xclient -c r -s HOST")
	shared := example("rdma_xserver -c x", "rdma_xclient -c x -s HOST")
	shared.cannot = noXRC
	datagrams := func(more string) row {
		return row{pkg: pkg, server: "udaddy" + more, client: "udaddy -s HOST" + more, port: portRping, want: "data transfers complete\ntest complete\nreturn status 0"}
	}
	roce := datagrams(" -c 4 -C 100 -S 4096")
	roce.flags = "--as roce"
	return []row{
		ping("HOST", " -C 10"), ping("127.0.0.1", " -C 10"), ping("::1", " -C 10"), ping("HOST", " -C 100 -S 65535"), lossy, nobody, ours, theirs,
		ucmatose,
		example("rdma_server", "rdma_client -s HOST"),
		times,
		xserver, shared,
		datagrams(""), datagrams(" -t 32"), datagrams(" -c 4 -C 100 -S 4096"), roce,
		{pkg: pkg, client: "mckey -m 239.1.1.1 -b HOST", cannot: noMulticast},
		{pkg: pkg, client: "mckey -m ff12::1 -b HOST -p 0x2", cannot: noIPoIB},
	}
}

// socketRows are librdmacm's sockets.
func socketRows() []row {
	const pkg = "rdmacm-utils"
	stream := func(command string) row {
		return row{pkg: pkg, server: command, client: command + " -s HOST", port: portCM, checks: true}
	}
	const pollHUP = 0x10 // rstream -T a ends with what its last poll saw beyond data
	async := stream("rstream -S 4096 -I 100 -C 10 -T v -T a")
	async.early = pollHUP
	blocking := stream("rstream -S 65536 -I 100 -C 10 -T v -T b")
	blocking.newer = true
	whole := stream("rstream -S all -T v")
	whole.limit = 6 * time.Minute
	return []row{
		stream("rstream -S 65536 -I 100 -C 10 -T v"), blocking, stream("rstream -S 4096 -I 100 -C 10 -T v -T n"),
		async, stream("rstream -S 4096 -I 100 -C 10 -T v -T f"), whole,
		stream("riostream -S 4096 -I 100 -C 10 -T v"),
		{
			pkg: pkg, server: "rcopy", client: "rcopy original HOST:copy", port: portRcopy, stays: true, checks: true, lossy: true, newer: true,
			before: "head -c 5000000 /dev/urandom >original", after: "cmp original copy",
		},
	}
}

// perftestRows are perftest's. On a busy machine it may not find out how long a tick of the processor's clock is. Then a client says nothing
// at all of what it has done, and a server with -a ends behind any of the sizes ("Can't produce a report"): -F has them say how many
// messages there were, with times of 0.
func perftestRows() []row {
	var all []row
	add := func(command string, change func(*row)) {
		r := row{
			pkg: "perftest", server: command + " -F", client: command + " -F HOST", port: portPerftest,
			want: wantBandwidth,
		}
		if change != nil {
			change(&r)
		}
		all = append(all, r)
	}
	lossy := func(r *row) { r.lossy = true }
	long := func(r *row) { r.limit = 3 * time.Minute }
	for _, what := range []string{"send", "write", "read"} {
		for _, how := range []string{"lat", "bw"} {
			program := "ib_" + what + "_" + how
			change := func(*row) {}
			switch program {
			case "ib_write_bw":
				change = func(r *row) { r.lossy, r.newer = true, true }
			case "ib_send_lat", "ib_read_bw":
				change = func(r *row) { r.newer = true }
			}
			add(program+" -R -n 1000", change)
			add(program+" -n 1000", func(r *row) {
				if program == "ib_send_bw" {
					r.cannot = "without -R this perftest leaves the region of its flow control for iWARP registered, so its ibv_dealloc_pd fails " +
						"when all messages have arrived; --as roce it has no such flow control"
				}
			})
			add(program+" -R -n 20 -a", long)
		}
	}
	add("ib_send_lat -R -n 1000 -e", nil)
	// With more messages than its 512 receives perftest's flow control, which it has for iWARP only, may look for a credit, find none
	// yet, and then sleep until a Send completes, when all of its Sends have.
	add("ib_send_bw -R -n 500 -e", nil)
	add("ib_send_bw -R -n 1000 -e", func(r *row) { r.flags = "--as roce" })
	add("ib_send_lat -R -n 1000 -I 64", nil)
	add("ib_write_bw -R -n 1000 -q 4", nil)
	add("ib_send_bw -R -n 1000 -q 4", nil)
	add("ib_send_bw -R -n 1000 --use-srq", nil)
	add("ib_send_bw -R -n 1000 -b", lossy)
	add("ib_write_bw -R -n 1000 -b", nil)
	add("ib_write_bw -R -D 2", nil)
	add("ib_send_bw -n 1000", func(r *row) { r.flags = "--as roce" })
	for _, command := range []string{"ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat"} {
		add(command+" -c UC -n 1000", func(r *row) { r.flags = "--as roce" })
	}
	for _, what := range []string{"ib_atomic_lat", "ib_atomic_bw"} {
		for _, kind := range []string{"FETCH_AND_ADD", "CMP_AND_SWAP"} {
			add(what+" -R -n 1000 -A "+kind, nil)
		}
		add(what+" -n 1000 -A FETCH_AND_ADD", nil)
	}
	add("ib_send_lat -c UD -n 1000", nil)
	add("ib_send_bw -c UD -n 1000", func(r *row) {
		r.cannot = "for iWARP this perftest waits for credits, which are RDMA Writes, and UD has none; --as roce it has no such flow control"
	})
	add("ib_send_lat -c UD -n 1000", func(r *row) { r.flags = "--as roce" })
	add("ib_send_bw -c UD -n 1000", func(r *row) { r.flags = "--as roce" })
	add("ib_write_bw -R -n 1000 --write_with_imm", func(r *row) {
		r.newer = true
		r.cannot = "this perftest has no such option; newer ones do"
	})
	return all
}

// qperfRows are qperf's.
func qperfRows() []row {
	var all []row
	for _, test := range []string{
		"rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_rdma_write_poll_lat",
		"rc_rdma_write_lat", "rc_rdma_write_bw", "rc_compare_swap_mr", "rc_fetch_add_mr",
	} {
		all = append(all, row{
			pkg: "qperf", server: "qperf", client: "qperf HOST -cm 1 -t 1 " + test, port: portQperf, stays: true,
			want: `(?m)^ +[a-z_]+ += +[1-9]`,
		})
	}
	for _, test := range []string{"ver_rc_compare_swap", "ver_rc_fetch_add"} {
		all = append(all, row{
			pkg: "qperf", server: "qperf", client: "qperf HOST -cm 1 -t 1 " + test, port: portQperf, stays: true, checks: true,
		})
	}
	return all
}

// fabricRows are the libraries above the verbs.
func fabricRows() []row {
	const fabric = "libfabric-bin"
	ping := func(command string) row {
		return row{pkg: fabric, server: command, client: command + " HOST", port: portFabric, checks: true}
	}
	mpi := row{
		pkg: "openmpi-bin",
		client: `mpirun.openmpi -np 2 --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "verbs;ofi_rxm" --mca btl self ` +
			`--allow-run-as-root --oversubscribe ./ring`,
		before: "mpicc.openmpi -O1 -o ring HERE/programs/ring.c", want: "ring: ok", checks: true,
	}
	uct := func(test string) row {
		const command = "ucx_perftest -x rc_verbs -d softrnic0:1 -n 1000 -w 100 -t "
		return row{pkg: "ucx-utils", server: command + test, client: command + test + " HOST", port: portUCX, flags: "--as roce"}
	}
	swap := uct("swap")
	swap.cannot = "UCX offers no swap over verbs alone, whatever the device (uct_rc_iface_query)"
	tag := row{
		pkg: "ucx-utils", server: "env UCX_TLS=rc_v,ud_v ucx_perftest -n 1000 -w 100 -t tag_lat", port: portUCX, flags: "--as roce",
		client: "env UCX_TLS=rc_v,ud_v ucx_perftest -n 1000 -w 100 -t tag_lat HOST",
	}
	msg := ping("fi_pingpong -c -p verbs -e msg")
	msg.newer = true
	return []row{
		{pkg: fabric, client: "fi_info -p verbs", want: "provider: verbs"},
		msg,
		ping(`fi_pingpong -c -p "verbs;ofi_rxm" -e rdm`),
		mpi,
		uct("am_lat"), uct("put_lat"), uct("put_bw"), uct("put_lat -D bcopy"), uct("get -D bcopy"), uct("get -D zcopy -s 4096"),
		uct("add_mr"), uct("add_lat"), uct("fadd"), uct("cswap"), swap, tag,
	}
}

// ownRows are what a program may expect of its process: threads, many queue pairs, waiting, signals, memory that vanishes, ends.
func ownRows() []row {
	var all []row
	for _, mode := range []string{"threads", "many", "immediate", "wake", "signals", "unmap", "exit"} {
		for _, flags := range []string{"", "--as roce"} {
			all = append(all, row{
				pkg: "ours, in C", client: "./behave " + mode + " HOST", flags: flags, want: mode + ": ok", checks: true,
				before: "gcc -O1 -Wall -Werror -pthread -o behave HERE/programs/behave.c -lrdmacm -libverbs",
			})
		}
	}
	all = append(all, endRows()...)
	all = append(all, extendedRows()...)
	for _, mode := range handlerModes {
		all = append(all, row{
			pkg: "ours, in C", client: "./handlers " + mode + " HOST 3", want: mode + ": ok", checks: true, before: buildHandlers,
		})
	}
	// What cannot be is refused with a sentence that says what to do.
	for _, r := range []struct{ mode, want string }{
		{"title", "title: ok"},
		{"closes", "closes: ok"},
		{"daemonizes", "daemonizes: ok"},
		{"nobody", "nobody: ok"},
		{"jail", "(?s)start `rnic run` within.*jail: refused"},
		{"files", "(?s)ulimit -n.*files: refused"},
		{"memory", "(?s)ulimit -v.*memory: refused"},
		{"processes", "(?s)ulimit -u.*processes: refused"},
	} {
		begins := row{
			pkg: "ours, in C", client: "./begins " + r.mode + " HOST", want: r.want, checks: strings.HasSuffix(r.want, "ok"),
			before: "gcc -O1 -Wall -Werror -pthread -o begins HERE/programs/begins.c -lrdmacm -libverbs",
		}
		if r.mode == "daemonizes" {
			// What the daemon kept is removed once it has ended, which it has not yet when it has said all.
			begins.after = "while grep -qsx begins /proc/[0-9]*/comm; do sleep 0.01; done; TMPDIR=tmp RNIC run -- true"
		}
		all = append(all, begins)
	}
	// Tools that look at a program see what it does wrong, and nothing of ours.
	all = append(all, row{
		pkg: "ours, in C", client: "./behave-asan threads HOST", want: "threads: ok", checks: true,
		before: "gcc -g -O1 -Wall -Werror -fsanitize=address,undefined -pthread -o behave-asan HERE/programs/behave.c -lrdmacm -libverbs",
	}, row{
		pkg: "ours, in C", client: "./behave-tsan threads HOST", want: "threads: ok", checks: true,
		before: "gcc -g -O1 -Wall -Werror -fsanitize=thread -pthread -o behave-tsan HERE/programs/behave.c -lrdmacm -libverbs",
	}, row{
		pkg: "valgrind", client: "valgrind --error-exitcode=9 ./behave immediate HOST", want: "(?s)immediate: ok.*ERROR SUMMARY: 0 errors", checks: true,
		before: "gcc -g -O1 -Wall -Werror -pthread -o behave HERE/programs/behave.c -lrdmacm -libverbs",
	})
	// A GODEBUG for others must not have Go's runtime interrupt the program's threads.
	for _, command := range []string{"./sleeps sleeps HOST 10", "env GODEBUG=asyncpreemptoff=0 ./sleeps urgent HOST 10"} {
		all = append(all, row{
			pkg: "ours, in C", client: command, want: "(sleeps|urgent): ok", checks: true,
			before: "gcc -O1 -Wall -Werror -pthread -o sleeps HERE/programs/sleeps.c -lrdmacm -libverbs",
		})
	}
	return append(all, row{
		pkg: "python3-pyverbs", client: "/usr/bin/python3 HERE/programs/handlers.py 3", want: "handlers: ok", checks: true,
	})
}

// extendedRows are the extended verbs, windows and domains, and unreliable connections. One build of the program and of our libraries is for all releases.
func extendedRows() []row {
	var all []row
	for _, command := range []string{
		"./extended queues", "./extended requests", "./extended datagrams", "./extended threads",
		"./windows windows", "./windows domains", "./windows children",
	} {
		program, mode, _ := strings.Cut(command[len("./"):], " ")
		for _, flags := range []string{"", "--as roce"} {
			all = append(all, row{
				pkg: "ours, in C", client: command + " HOST", flags: flags, want: mode + ": ok", checks: true, newer: flags == "",
				before: "gcc -O1 -Wall -Werror -pthread -o " + program + " HERE/programs/" + program + ".c -libverbs",
			})
		}
	}
	for _, mode := range []string{"requests", "drops", "gone", "masks"} {
		for _, flags := range []string{"", "--as roce"} {
			want := mode + ": ok"
			if mode == "drops" {
				want = "(?s)has dropped a message.*" + want
			}
			all = append(all, row{
				pkg: "ours, in C", client: "./uc " + mode + " HOST", flags: flags, want: want, checks: true,
				before: "gcc -O1 -Wall -Werror -o uc HERE/programs/uc.c -libverbs",
			})
		}
	}
	return append(all, row{
		pkg: "ours, in C", client: "./lookup", want: "lookup: ok", newer: true,
		before: "gcc -O1 -Wall -Werror -o lookup HERE/programs/lookup.c -ldl",
	})
}

// Programs with signal handlers: what they do is in programs/handlers.c.
const buildHandlers = "gcc -O1 -Wall -Werror -pthread -o handlers HERE/programs/handlers.c -lrdmacm -libverbs"

var handlerModes = []string{"small", "deep", "onstack", "altstack", "profile", "children", "jump", "verbs", "faults"}

// endRows are ends that an InfiniBand adapter gives, each with what the user is told of it.
func endRows() []row {
	const build = "gcc -O1 -Wall -Wextra -Werror -o ends HERE/programs/ends.c -libverbs"
	var all []row
	for _, r := range []struct{ mode, flags, says string }{
		{"number", "", "no queue pair there has this number"},
		{"number", "--as roce", ""},
		{"gid", "--as roce", "does not reach"},
		{"gone", "", "no queue pair there has this number"},
		{"silent", "", "does not reach"},
		{"rnr", "--as roce", "has posted no receive for a Send, and rnr_retry is 2"},
		{"refused", "--as roce", "needs IBV_QP_ACCESS_FLAGS too.*needs IBV_QP_RQ_PSN too.*takes no IBV_QP_TIMEOUT.*is_global is 0"},
		{"late", "", "a Send of the peer's waits for a receive for a second"},
		{"late", "--as roce", "a Send of the peer's waits for a receive for a second"},
	} {
		all = append(all, row{
			pkg: "ours, in C", client: "./ends " + r.mode, flags: r.flags, want: "(?s)" + r.says + ".*" + r.mode + ": ok", checks: true, before: build,
		})
	}
	for _, flags := range []string{"", "--as roce"} {
		all = append(all, row{
			pkg: "ours, in C", client: "./events", flags: flags, checks: true,
			want: "(?s)communication established.*SRQ limit reached.*last WQE reached.*local access violation work queue error.*" +
				"invalid request local work queue error.*CQ error.*events: ok",
			before: "gcc -O1 -Wall -Wextra -Werror -pthread -o events HERE/programs/events.c -libverbs",
		})
	}
	return all
}
