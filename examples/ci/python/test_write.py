"""An RDMA Write between two processes, by pyverbs of rdma-core."""
import multiprocessing
import unittest

import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.device import get_device_list
from pyverbs.qp import QPCap, QPInitAttr

SIZE = 4096
MESSAGE = bytes(i % 251 for i in range(SIZE))


def endpoint(passive):
    where = {"src": "127.0.0.1", "src_service": "7471", "flags": ce.RAI_PASSIVE} if passive else {
        "dst": "127.0.0.1", "dst_service": "7471"}
    at = AddrInfo(port_space=ce.RDMA_PS_TCP, **where)
    return CMID(creator=at, qp_init_attr=QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(max_recv_wr=1), sq_sig_all=1))


def serve(listening, place, came):
    """Lets the client write to a region, and tells what is in it when the client's message has come."""
    with endpoint(passive=True) as listener:
        listener.listen()
        listening.set()
        with listener.get_request() as peer:
            target, note = peer.reg_write(SIZE), peer.reg_msgs(1)
            peer.post_recv(note)
            place.send((target.buf, target.rkey))
            peer.accept()
            if peer.get_recv_comp().status == e.IBV_WC_SUCCESS:
                came.send(target.read(SIZE, 0))
            peer.disconnect()


class TestWrite(unittest.TestCase):
    def test_device(self):
        self.assertIn(b"softrnic0", [device.name for device in get_device_list()])

    def test_write(self):
        context = multiprocessing.get_context("spawn")
        listening, (place, place_of), (came, came_of) = context.Event(), context.Pipe(False), context.Pipe(False)
        server = context.Process(target=serve, args=(listening, place_of, came_of))
        server.start()
        self.assertTrue(listening.wait(30), "the server does not listen")
        with endpoint(passive=False) as peer:
            out, note = peer.reg_msgs(SIZE), peer.reg_msgs(1)
            peer.connect()
            self.assertTrue(place.poll(30), "the server tells no place")
            address, rkey = place.recv()
            out.write(MESSAGE, SIZE)
            peer.post_write(out, SIZE, address, rkey)
            self.assertEqual(peer.get_send_comp().status, e.IBV_WC_SUCCESS)
            peer.post_send(note)  # behind the Write: when it has come, so has that
            self.assertEqual(peer.get_send_comp().status, e.IBV_WC_SUCCESS)
            self.assertTrue(came.poll(30), "nothing came")
            self.assertEqual(came.recv(), MESSAGE)
            server.join(30)
            self.assertEqual(server.exitcode, 0)


if __name__ == "__main__":
    unittest.main()
