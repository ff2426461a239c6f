package vipl_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/softrnic/softrnic/vipl"
)

// end is one end of a connection: a Nic with memory and Descriptors on it, and a VI.
type end struct {
	nic         *vipl.Nic
	vi          *vipl.Vi
	memory      []byte
	handle      vipl.MemHandle
	descriptors []vipl.Descriptor
	posting     vipl.MemHandle // of the descriptors
}

func open() *end {
	nic, err := vipl.OpenNic("127.0.0.1:0", vipl.Config{})
	check(err)
	check(nic.ErrorCallback(func(*vipl.ErrorDescriptor) {})) // the server's VI loses its connection in the end
	ptag, err := nic.CreatePtag()
	check(err)
	e := &end{nic: nic, memory: make([]byte, 4096), descriptors: make([]vipl.Descriptor, 4)}
	e.handle, err = nic.RegisterMem(e.memory, &vipl.MemAttributes{Ptag: ptag, EnableRdmaWrite: true})
	check(err)
	e.posting, err = nic.RegisterDescriptors(e.descriptors, ptag)
	check(err)
	e.vi, err = nic.CreateVi(&vipl.ViAttributes{
		ReliabilityLevel: vipl.ServiceReliableDelivery,
		MaxTransferSize:  4096,
		Ptag:             ptag,
		EnableRdmaWrite:  true,
	}, nil, nil)
	check(err)
	return e
}

// at is the data segment of n octets of memory.
func (e *end) at(off, n int) vipl.DataSegment {
	return vipl.DataSegment{Data: vipl.AddressOf(e.memory[off:]), Handle: e.handle, Length: uint32(n)}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A server waits for a client, receives a message that says where its answer is to go, and
// puts it there by RDMA Write, with immediate data so that the client hears of it.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := open()
	attributes, err := server.nic.QueryNic()
	check(err)
	address := &vipl.NetAddress{HostAddress: attributes.LocalNicAddress, Discriminator: []byte("greeter")}

	served := make(chan struct{})
	go func() {
		defer close(served)
		recv := &server.descriptors[0] // posted before the client can send
		recv.SetRecv(server.at(0, 100))
		check(server.vi.PostRecv(recv, server.posting))

		conn, err := server.nic.ConnectWait(ctx, address)
		check(err)
		fmt.Printf("client %s wants %v\n", conn.RemoteAddr().Discriminator, conn.RemoteViAttribs().ReliabilityLevel)
		check(conn.ConnectAccept(server.vi))

		_, err = server.vi.RecvWait(ctx)
		check(err)
		var to vipl.AddressSegment
		var name string
		_, err = fmt.Sscan(string(server.memory[:recv.Control.Length]), &to.Data, &to.Handle, &name)
		check(err)
		n := copy(server.memory[200:], "Hello, "+name+"!")
		write := &server.descriptors[1]
		write.SetRdmaWrite(to, server.at(200, n))
		write.SetImmediate(uint32(n))
		check(server.vi.PostSend(write, server.posting))
		_, err = server.vi.SendWait(ctx)
		check(err)
	}()

	client := open()
	recv := &client.descriptors[0]
	recv.SetRecv() // for the immediate data alone
	check(client.vi.PostRecv(recv, client.posting))
	_, err = client.vi.ConnectRequest(ctx, &vipl.NetAddress{Discriminator: []byte("Ada")}, address)
	check(err)
	n := copy(client.memory, fmt.Sprint(uint64(vipl.AddressOf(client.memory[1000:])), " ", uint32(client.handle), " Ada"))
	send := &client.descriptors[1]
	send.SetSend(client.at(0, n))
	check(client.vi.PostSend(send, client.posting))
	_, err = client.vi.RecvWait(ctx)
	check(err)
	fmt.Printf("%v: %s\n", recv.Control.Status.Op(), client.memory[1000:1000+recv.Control.ImmediateData])

	<-served
	check(client.vi.Disconnect())
	check(client.nic.CloseNic()) // with all that is on it
	check(server.nic.CloseNic())
	// Output:
	// client Ada wants Reliable Delivery
	// remote RDMA Write: Hello, Ada!
}
