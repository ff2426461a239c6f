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
