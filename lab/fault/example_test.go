package fault_test

import (
	"fmt"
	"io"
	"log"
	"net"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// A plan is a text, a rule a line.
func ExampleParse() {
	plan, err := fault.Parse(`
		seed 7
		message every 3 out: delay 20ms
		segment 5 in of send: flip behind crc   # its CRC is wrong when it arrives
	`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(plan)
	_, err = fault.Parse("octet 4096 out: drop")
	fmt.Println(err)
	// Output:
	// seed 7
	// message every 3 out: delay 20ms
	// segment 5 in of send: flip behind crc
	// line 1: octet goes with one of cut, reset, half-close, stall, delay, split, flip, not with "drop"
}

// Inside an RNIC: the second registration finds no resources.
func ExampleNew() {
	in, err := fault.New(fault.MustParse("registration 2: fail"), func(s fault.Strike) { fmt.Println("fault:", s) })
	if err != nil {
		log.Fatal(err)
	}
	nic, err := verbs.Open(verbs.Config{Faults: in})
	if err != nil {
		log.Fatal(err)
	}
	defer nic.Close()
	pd, err := nic.AllocatePD()
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		_, err = pd.Register(make([]byte, 10), verbs.LocalRead)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// fault: line 1: registration 2: fail
	// Register Memory Region of 10 octets refused: insufficient resources to complete request: by the fault plan, line 1: registration 2: fail: take that line out of the plan (verbs draft 9.2.6.2)
}

// Around any connection, as a proxy has it: what the caller writes is out.
func ExampleInjector_Conn() {
	in, err := fault.New(fault.MustParse("octet 50 out: cut"), nil)
	if err != nil {
		log.Fatal(err)
	}
	here, there := net.Pipe()
	conn, err := in.Conn(here)
	if err != nil {
		log.Fatal(err)
	}
	go func() { _, _ = conn.Write(make([]byte, 100)) }()
	b, err := io.ReadAll(there)
	fmt.Println(len(b), "octets came,", err)
	// Output: 50 octets came, <nil>
}
