package vipl

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/softrnic/softrnic/internal/test/leakcheck"
)

// portEnv has the device of a server that another process is: the test binary.
const portEnv = "SOFTRNIC_TEST_VI_PORT"

func TestMain(m *testing.M) {
	if device := os.Getenv(portEnv); device != "" {
		portChild(device)
	}
	leakcheck.Main(m)
}

// portChild waits for "child" and accepts all who call.
func portChild(device string) {
	n, err := OpenNic(device, Config{})
	if err == nil {
		fmt.Println("ready")
	}
	for err == nil {
		var c *Conn
		if c, err = n.ConnectWait(context.Background(), &NetAddress{Discriminator: []byte("child")}); err == nil {
			ptag, _ := n.CreatePtag()
			v, _ := n.CreateVi(&ViAttributes{MaxTransferSize: hostMemory, Ptag: ptag}, nil, nil)
			err = c.ConnectAccept(v)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}
