package archtest

// entry is one package: its path in this module, what it holds, and what its files but tests import: packages of this
// module by their path, and packages of other modules by the first three elements of theirs.
type entry struct{ path, holds, imports string }

// group is packages that stand together.
type group struct {
	title   string
	entries []entry
}

// packages is the table of the house: the test of this package holds the code against it, .golangci.yml and
// docs/architecture.md are made from it (go test ./internal/test/archtest -update). A new package, and a new import, is a
// decision about layers: it is taken here.
var packages = []group{
	{"The nouns and the wire", []entry{
		{
			"wr", "the nouns: work requests, completions, Immediate Errors, statuses, events, access rights, counters, records of a trace",
			"",
		},
		{
			"internal/crc32c", "CRC32C of octets where they are, or while they are copied, and folding for other CRCs",
			"golang.org/x/sys",
		},
		{
			"mpa", "FPDUs, CRCs, markers, the startup and its negotiation (RFC 5044, 6581)",
			"internal/crc32c",
		},
		{
			"ddp", "segment headers, cutting messages into segments, the MSN and MO rules (RFC 5041)",
			"",
		},
		{
			"rdmap", "opcodes, Read Request and Terminate formats, Terminate codes (RFC 5040, 7306)",
			"ddp",
		},
	}},
	{"Below the queue pair", []entry{
		{
			"internal/tcpsock", "system calls on sockets, none of which waits",
			"golang.org/x/sys",
		},
		{
			"internal/safecopy", "copies of memory that may fault, in a program with signal handlers of its own",
			"golang.org/x/sys",
		},
		{
			"internal/proflabel", "labels of goroutines, for profiles",
			"",
		},
		{
			"internal/lockorder", "mutexes with classes, and the order in which they may be waited for",
			"",
		},
		{
			"internal/inventory", "how packages count what they hold, and what is left when all is closed: objects, goroutines, descriptors",
			"internal/proflabel",
		},
		{
			"internal/statuscount", "completions counted by their status",
			"wr",
		},
		{
			"internal/names", "names for constants and for the bits of sets, for `String` methods",
			"",
		},
		{
			"internal/handles", "values by number, found without a lock",
			"",
		},
		{
			"internal/sglcheck", "the scatter/gather element that stands for an impossible one",
			"wr",
		},
		{
			"internal/verbsinternal", "typed functions by which packages of this module reach what programs cannot in `verbs`",
			"wr",
		},
		{
			"internal/instrument", "typed methods by which `verbs` reaches what programs cannot in `lab/fault` and `lab/tap`",
			"mpa wr",
		},
		{
			"internal/netpoll", "groups of streams: who serves the sockets of a completion queue, and how it sleeps",
			"golang.org/x/sys internal/inventory internal/lockorder internal/proflabel internal/safecopy internal/tcpsock",
		},
		{
			"internal/ownsock", "local sockets at which processes of one user meet: the folder, whose process it is, descriptors passed",
			"golang.org/x/sys internal/inventory",
		},
		{
			"internal/safeopen", "files at a name that the user gives, opened through no link of another user",
			"",
		},
		{
			"internal/admission", "the accept loop of listeners, and the places at it",
			"golang.org/x/sys internal/inventory internal/tcpsock",
		},
		{
			"internal/cq", "the completion queue",
			"internal/inventory internal/lockorder internal/netpoll internal/proflabel internal/statuscount wr",
		},
		{
			"srq", "the shared receive queue",
			"internal/inventory internal/lockorder internal/sglcheck wr",
		},
		{
			"stag", "the STag table: memory regions and windows, their states, access checks, holds",
			"internal/crc32c internal/inventory internal/lockorder internal/names internal/safecopy wr",
		},
		{
			"internal/gather", "what goes to a connection in one write: octets of its own, and registered memory where it is",
			"stag",
		},
	}},
	{"The RNIC", []entry{
		{
			"qp", "the queue pair; the only package that puts the wire layers together",
			"ddp internal/cq internal/crc32c internal/gather internal/inventory internal/lockorder internal/names internal/netpoll internal/proflabel internal/sglcheck internal/statuscount internal/tcpsock internal/verbsinternal mpa rdmap srq stag wr",
		},
		{
			"verbs", "the RNIC: open, PD, MR, MW, CQ, S-RQ, QP, events. What a program imports",
			"github.com/google/uuid internal/cq internal/instrument internal/inventory internal/lockorder internal/names internal/proflabel internal/sglcheck internal/verbsinternal mpa qp rdmap srq stag wr",
		},
		{
			"cm", "connecting: dial, listen, accept, reject",
			"internal/admission internal/inventory internal/tcpsock internal/verbsinternal mpa verbs",
		},
		{
			"nd2", "NetworkDirect version 2 over the two ([networkdirect.md](networkdirect.md))",
			"cm internal/handles internal/inventory internal/names internal/tcpsock verbs wr",
		},
		{
			"ulp/rsocket", "`net.Conn` over RDMA, as rsockets of rdma-core speak it ([rsocket.md](rsocket.md))",
			"cm internal/inventory verbs",
		},
		{
			"ulp/nvmeof", "NVMe over Fabrics: a target and a host ([nvme.md](nvme.md))",
			"cm golang.org/x/sync golang.org/x/sys internal/inventory verbs",
		},
	}},
	{"VI over TCP ([vi.md](vi.md))", []entry{
		{
			"internal/vitcp/segment", "the segments of VI over TCP: headers, CRC, finding them in a stream",
			"golang.org/x/sys internal/crc32c",
		},
		{
			"internal/vitcp/endpoint", "the endpoint, which moves the messages of an established connection",
			"internal/inventory internal/lockorder internal/names internal/netpoll internal/vitcp/segment stag wr",
		},
		{
			"internal/vitcp", "the machines that establish a connection",
			"internal/admission internal/inventory internal/names internal/tcpsock internal/vitcp/endpoint internal/vitcp/segment",
		},
		{
			"internal/vitcp/port", "a VI port that NICs and processes share ([decisions/0024](decisions/0024-vi-port.md))",
			"golang.org/x/sys internal/admission internal/ownsock internal/tcpsock internal/vitcp internal/vitcp/segment",
		},
		{
			"vipl", "the VI Provider Library: NIC, VIs, Descriptors, CQs. What a VI program imports",
			"internal/inventory internal/lockorder internal/names internal/netpoll internal/tcpsock internal/vitcp internal/vitcp/endpoint internal/vitcp/port internal/vitcp/segment stag wr",
		},
	}},
	{"To look and to break ([lab.md](lab.md), [counters.md](counters.md))", []entry{
		{
			"stats", "names for what `verbs` counts, and a socket that offers it",
			"internal/ownsock verbs",
		},
		{
			"stats/expvars", "the counters for `expvar`",
			"stats verbs",
		},
		{
			"stats/prometheus", "the counters for Prometheus, whose client library no other package needs",
			"github.com/prometheus/client_golang stats verbs",
		},
		{
			"lab/trace", "what an RNIC did, as records: a ring, a file, a page, log/slog",
			"internal/safeopen wr",
		},
		{
			"lab/internal/interpose", "between a program and a connection: faults change its bytes, and observers see them",
			"mpa",
		},
		{
			"lab/fault", "fault plans: what goes wrong when, in streams and at the verbs",
			"ddp internal/instrument internal/verbsinternal lab/internal/interpose mpa rdmap stats verbs wr",
		},
		{
			"lab/relay", "what `rnic proxy` does: connections carried between two ends, with the faults of a plan",
			"cm internal/admission internal/tcpsock lab/fault lab/internal/interpose mpa",
		},
		{
			"lab/tap", "captures of streams, as pcapng",
			"ddp internal/instrument internal/safeopen lab/internal/interpose mpa rdmap wr",
		},
		{
			"lab/rnictest", "for `go test`: connected queue pairs in one line",
			"cm internal/inventory lab/fault lab/trace verbs",
		},
	}},
	{"C programs ([c-programs.md](c-programs.md))", []entry{
		{
			"rdmacore/internal/sysfs", "the files of /sys that rdma-core reads",
			"stats verbs",
		},
		{
			"rdmacore", "the front door: what `rnic run` tells a program's engine, and the files in which rdma-core finds the device",
			"rdmacore/internal/sysfs",
		},
		{
			"rdmacore/internal/uabi", "the structs of the two devices",
			"",
		},
		{
			"rdmacore/internal/umem", "the memory of the program, by address",
			"golang.org/x/sys internal/safecopy",
		},
		{
			"rdmacore/internal/udwire", "the datagrams that carry UD queue pairs ([decisions/0019](decisions/0019-ud-as-udp.md))",
			"",
		},
		{
			"rdmacore/internal/uverbs", "the device uverbs0: the commands of Linux's user ABI over `verbs`",
			"cm golang.org/x/sys internal/handles internal/inventory internal/tcpsock internal/verbsinternal mpa rdmacore/internal/sysfs rdmacore/internal/uabi rdmacore/internal/udwire rdmacore/internal/umem verbs",
		},
		{
			"rdmacore/internal/portmap", "rdma_cm's own port numbers, and the iWARP port mapper ([decisions/0038](decisions/0038-ports-of-rdma-cm.md))",
			"golang.org/x/sys",
		},
		{
			"rdmacore/internal/ucma", "the device rdma_cm, over `cm`",
			"cm golang.org/x/sys internal/inventory internal/tcpsock rdmacore/internal/portmap rdmacore/internal/uabi rdmacore/internal/udwire rdmacore/internal/umem rdmacore/internal/uverbs verbs",
		},
		{
			"rdmacore/clib", "the shared library that a C program loads: C calls as Go calls (beside it `rdmacore/preload`, in C)",
			"internal/safecopy internal/safeopen lab/fault lab/tap lab/trace rdmacore rdmacore/internal/ucma rdmacore/internal/uverbs stats verbs",
		},
	}},
	{"Conformance ([conformance.md](conformance.md))", []entry{
		{
			"internal/rping", "the messages of rdma-core's rping",
			"wr",
		},
		{
			"conformance/requirements", "the registry: every requirement by key",
			"",
		},
		{
			"conformance/uppertester", "the upper tester: the program above the RNIC under test",
			"cm internal/rping internal/verbsinternal verbs",
		},
		{
			"conformance", "what a case is, the runner, targets",
			"conformance/uppertester golang.org/x/sync internal/inventory mpa",
		},
		{
			"conformance/cases", "the cases",
			"cm conformance conformance/uppertester github.com/stretchr/testify golang.org/x/sync internal/admission internal/cq internal/verbsinternal internal/vitcp internal/vitcp/endpoint internal/vitcp/port internal/vitcp/segment lab/fault mpa nd2 srq stag verbs vipl wr",
		},
		{
			"conformance/mutants", "known faults, each put into the product to see a case fail",
			"conformance conformance/cases golang.org/x/sync",
		},
	}},
	{"The program", []entry{
		{
			"cmd/rnic/internal/cli", "what commands share: flags, tables, JSON, progress, another process of the program",
			"cm github.com/spf13/cobra github.com/spf13/pflag internal/safeopen lab/fault lab/tap lab/trace rdmacore stats verbs",
		},
		{
			"cmd/rnic/internal/endpoint", "what two-process commands share: an RNIC, a queue pair, its memory, the other process",
			"cm verbs",
		},
		{
			"cmd/rnic/internal/pattern", "data whose every byte says where it belongs",
			"",
		},
		{
			"cmd/rnic/internal/histogram", "durations, counted",
			"",
		},
		{
			"cmd/rnic/internal/dissect", "the decoder of the wire, VI over TCP included; captures: connections, frames, broken MUSTs",
			"ddp github.com/gopacket/gopacket internal/vitcp/segment mpa rdmap",
		},
		{
			"cmd/rnic/internal/report", "results as text, JSON, JUnit's XML, a page, captures",
			"cmd/rnic/internal/dissect conformance conformance/requirements github.com/gopacket/gopacket internal/vitcp mpa",
		},
		{
			"cmd/rnic/internal/conform", "`rnic conform`",
			"cmd/rnic/internal/cli cmd/rnic/internal/report conformance conformance/cases conformance/requirements conformance/uppertester github.com/spf13/cobra github.com/spf13/pflag internal/safeopen",
		},
		{
			"cmd/rnic/internal/demo", "`rnic demo`",
			"cm cmd/rnic/internal/cli cmd/rnic/internal/endpoint cmd/rnic/internal/pattern ddp github.com/spf13/cobra rdmap verbs",
		},
		{
			"cmd/rnic/internal/dump", "`rnic dump`",
			"cmd/rnic/internal/cli cmd/rnic/internal/dissect github.com/spf13/cobra",
		},
		{
			"cmd/rnic/internal/cdi", "`rnic cdi`",
			"cmd/rnic/internal/cli github.com/spf13/cobra rdmacore tags.cncf.io/container-device-interface/specs-go",
		},
		{
			"cmd/rnic/internal/info", "`rnic info`",
			"cmd/rnic/internal/cli github.com/spf13/cobra github.com/spf13/pflag rdmacore verbs",
		},
		{
			"cmd/rnic/internal/man", "`rnic man`",
			"cmd/rnic/internal/cli github.com/spf13/cobra github.com/spf13/pflag verbs",
		},
		{
			"cmd/rnic/internal/nic", "`rnic nic`",
			"cmd/rnic/internal/cli github.com/spf13/cobra lab/fault stats",
		},
		{
			"cmd/rnic/internal/nvme", "`rnic nvme`",
			"cm cmd/rnic/internal/cli cmd/rnic/internal/pattern github.com/spf13/cobra internal/safeopen ulp/nvmeof",
		},
		{
			"cmd/rnic/internal/perf", "`rnic perf`",
			"cm cmd/rnic/internal/cli cmd/rnic/internal/endpoint cmd/rnic/internal/histogram cmd/rnic/internal/pattern github.com/spf13/cobra github.com/spf13/pflag golang.org/x/sync internal/safeopen internal/tcpsock verbs",
		},
		{
			"cmd/rnic/internal/ping", "`rnic ping`",
			"cm cmd/rnic/internal/cli cmd/rnic/internal/endpoint cmd/rnic/internal/histogram github.com/spf13/cobra internal/rping verbs",
		},
		{
			"cmd/rnic/internal/proxy", "`rnic proxy`",
			"cmd/rnic/internal/cli github.com/spf13/cobra lab/fault lab/relay",
		},
		{
			"cmd/rnic/internal/bundle", "the libraries of `rnic run` in the program itself, and how they are unpacked",
			"golang.org/x/sys",
		},
		{
			"cmd/rnic/internal/run", "`rnic run`",
			"cmd/rnic/internal/bundle cmd/rnic/internal/cli github.com/spf13/cobra golang.org/x/sys rdmacore stats verbs",
		},
		{
			"cmd/rnic/internal/fabric/layout", "the file of a fabric: hosts, NICs, links, what runs and what breaks; as other tools have it",
			"",
		},
		{
			"cmd/rnic/internal/fabric/box", "hosts and cables of a fabric: network namespaces, queueing disciplines, packets carried in user space",
			"cmd/rnic/internal/fabric/layout github.com/vishvananda/netlink golang.org/x/sys",
		},
		{
			"cmd/rnic/internal/fabric", "`rnic fabric`",
			"cmd/rnic/internal/cli cmd/rnic/internal/fabric/box cmd/rnic/internal/fabric/layout cmd/rnic/internal/run github.com/spf13/cobra golang.org/x/sys golang.org/x/term internal/ownsock rdmacore stats",
		},
		{
			"cmd/rnic/internal/top", "`rnic top`",
			"cmd/rnic/internal/cli github.com/spf13/cobra golang.org/x/sys stats",
		},
		{
			"cmd/rnic/internal/trace", "`rnic trace`",
			"cmd/rnic/internal/cli github.com/spf13/cobra internal/safeopen lab/trace verbs",
		},
		{
			"cmd/rnic/internal/vi", "`rnic vi`",
			"cmd/rnic/internal/cli cmd/rnic/internal/endpoint cmd/rnic/internal/histogram cmd/rnic/internal/pattern github.com/spf13/cobra github.com/spf13/pflag internal/vitcp vipl",
		},
		{
			"cmd/rnic/internal/clitest", "for tests of commands: a command line and what it printed",
			"cmd/rnic/internal/cli github.com/spf13/cobra",
		},
		{
			"cmd/rnic", "the program: it puts the commands together",
			"cmd/rnic/internal/cdi cmd/rnic/internal/cli cmd/rnic/internal/conform cmd/rnic/internal/demo cmd/rnic/internal/dump cmd/rnic/internal/fabric cmd/rnic/internal/info cmd/rnic/internal/man cmd/rnic/internal/nic cmd/rnic/internal/nvme cmd/rnic/internal/perf cmd/rnic/internal/ping cmd/rnic/internal/proxy cmd/rnic/internal/run cmd/rnic/internal/top cmd/rnic/internal/trace cmd/rnic/internal/vi github.com/spf13/cobra",
		},
	}},
	{"Examples ([examples.md](examples.md), [tutorial.md](tutorial.md)) and interop ([interop.md](interop.md), [ulps.md](ulps.md))", []entry{
		{
			"examples/ci/go", "a project for the recipe of CI in Go",
			"verbs",
		},
		{
			"examples/copy", "a file over TLS by RDMA Writes",
			"cm verbs",
		},
		{
			"examples/crowd", "a server of a thousand clients",
			"cm golang.org/x/sync verbs",
		},
		{
			"examples/kv", "a key-value store with one-sided gets",
			"cm verbs",
		},
		{
			"examples/params", "a parameter server that survives the loss of a NIC",
			"cm verbs",
		},
		{
			"docs", "tests of these pages",
			"",
		},
		{
			"docs/tutorial", "the program of the tutorial",
			"",
		},
		{
			"interop/internal/docsection", "writes what a run found into a page",
			"",
		},
		{
			"interop/internal/procnet", "looks at the sockets of another network",
			"",
		},
		{
			"interop/internal/siw", "QEMU guests with Linux's siw",
			"",
		},
		{
			"interop", "softrnic against Linux Soft-iWARP in a guest",
			"conformance conformance/cases conformance/requirements interop/internal/docsection interop/internal/siw",
		},
		{
			"interop/cprograms", "C programs of Debian's packages under `rnic run`",
			"cm interop/internal/docsection interop/internal/procnet interop/internal/siw lab/fault stats verbs",
		},
		{
			"interop/containers", "RDMA programs in containers, by podman",
			"interop/internal/docsection interop/internal/procnet",
		},
		{
			"interop/nvme", "Linux's NVMe initiator and target against `rnic nvme`",
			"interop/internal/docsection interop/internal/siw",
		},
		{
			"interop/ulps", "upper layers against other people's programs",
			"interop/internal/docsection interop/internal/siw ulp/rsocket",
		},
	}},
	{"Helpers of tests", []entry{
		{
			"internal/test/abbench", "benchmarks of two loops in turns of one run",
			"",
		},
		{
			"internal/test/archtest", "this table, and the tests of it",
			"",
		},
		{
			"internal/test/docgen", "the generated parts of these pages",
			"",
		},
		{
			"internal/test/dist", "what is in the archives of a release",
			"",
		},
		{
			"internal/test/exhaustion", "a process with few descriptors, or few local ports",
			"golang.org/x/sys",
		},
		{
			"internal/test/leakcheck", "no goroutine of this module is left behind",
			"internal/inventory",
		},
		{
			"internal/test/nosighandlers", "a process without Go's signal handlers",
			"internal/safecopy",
		},
		{
			"internal/test/modproxy", "the modules of this tree as a module proxy has them, and what their users get",
			"",
		},
		{
			"internal/test/otheruser", "a thread that is another user's",
			"",
		},
		{
			"internal/test/pathcover", "the files and functions that one Send and one segment walk through",
			"cm verbs",
		},
		{
			"internal/test/rawpeer", "the other end of an iWARP stream, played by hand",
			"ddp mpa rdmap",
		},
		{
			"internal/test/droppedpeer", "connections that end at each step of connecting, and the count of what they leave",
			"golang.org/x/sys internal/test/leakcheck internal/test/rawpeer internal/vitcp/segment mpa verbs",
		},
		{
			"internal/test/stress", "listeners under attack (`make siege`)",
			"",
		},
	}},
}
