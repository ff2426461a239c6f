"""A small iWARP stack behind tester.py: MPA's startup on either side, FPDUs with CRC32C and without
markers, Send, RDMA Write and RDMA Read in both directions, Terminate for what it refuses. It is there
to show where a stack's calls go, and to be run by a test; it is slow, and keeps few rules."""

import collections
import socket
import struct
import threading

from stream import (CLOSING, ERROR, FLUSHED, IDLE, LOCAL_READ, READ, RECV, RTS, SEND, SEND_SE, WRITE, Stream)
from tester import Refused, Tester, octets, pattern, seconds, text


class Region:
    def __init__(self, number, a):
        self.pd, self.access = a["PD"], a["Access"]
        self.memory = bytearray(pattern(a["Seed"], a["Len"]))
        self.stag = number << 8 | a["Key"]
        self.base = 0 if a["ZeroBased"] else a["VA"] or number << 16

    def at(self, to, n):
        """Where n octets at a tagged offset are; None if they are not within."""
        off = to - self.base
        return off if 0 <= off and off + n <= len(self.memory) else None


class QP:
    def __init__(self, a, pd, send_cq, recv_cq):
        self.pd, self.send_cq, self.recv_cq = pd, send_cq, recv_cq
        self.ird, self.ord = a["IRD"] or 16, a["ORD"] or 16
        self.send_depth, self.recv_depth = a["SendDepth"] or 64, a["RecvDepth"] or 64
        self.state, self.stream, self.result, self.terminate = IDLE, None, None, None
        self.recvs, self.sends = collections.deque(), collections.deque()


class RNIC(Tester):
    def __init__(self, host):
        super().__init__(host)
        self.changed = threading.Condition()  # and the lock of everything
        self.qps, self.cqs, self.regions, self.events = {}, {}, {}, []
        self.last, self.sockets = 1000, []

    def close(self):
        with self.changed:
            for s in self.sockets:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()

    def number(self):
        self.last += 1
        return self.last

    def wait(self, what, a):
        """Waits until what() is so, for no longer than the call says."""
        self.changed.wait_for(what, seconds(a["Timeout"]))
        return what()

    # Queue pairs and connections.

    def Open(self, a):
        with self.changed:
            if min(a["IRD"], a["ORD"], a["SendDepth"], a["RecvDepth"]) < 0:
                raise Refused(2, "invalid modifier")
            send, recv = a["SendCQ"], a["RecvCQ"]
            if send == recv == 0:
                send = recv = self.number()
            for cq in send, recv:
                self.cqs.setdefault(cq, collections.deque())
            n = self.number()
            self.qps[n] = QP(a, a["PD"], send, recv)
            self.qps[n].id = n
            return {"QP": n, "SendCQ": send, "RecvCQ": recv, "ID": n}

    def Listen(self, a):
        server = socket.create_server((self.host, 0))
        self.sockets.append(server)
        threading.Thread(target=self.connect, args=(self.qps[a["QP"]], a, server), daemon=True).start()
        return {"Addr": "%s:%d" % server.getsockname()[:2]}

    def Dial(self, a):
        threading.Thread(target=self.connect, args=(self.qps[a["QP"]], a, None), daemon=True).start()

    def connect(self, qp, a, server):
        """The life of a stream: its startup, and what comes until it ends."""
        result = {"PeerIRD": -1, "PeerORD": -1}
        stream = None
        try:
            if server:
                with server:
                    conn, _ = server.accept()
            else:
                host, port = a["Addr"].rsplit(":", 1)
                conn = socket.create_connection((host, int(port)))
            self.sockets.append(conn)
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = Stream(self, qp, conn, bool(server))
            (stream.answer if server else stream.ask)(a, result)
        except (OSError, ValueError, EOFError, struct.error) as err:
            result["Failed"] = str(err) or "connection lost"
        with self.changed:
            if "Failed" not in result:
                qp.stream, qp.state = stream, RTS
            elif stream:
                stream.conn.close()
            qp.result = result
            self.changed.notify_all()
        if "Failed" not in result:
            stream.run()

    def Connected(self, a):
        with self.changed:
            qp = self.qps[a["Of"]]
            if not self.wait(lambda: qp.result, a):
                raise TimeoutError("not connected in time")
            return qp.result

    def Ended(self, a):
        with self.changed:
            if not self.wait(lambda: self.qps[a["Of"]].stream is None, a):
                raise TimeoutError("the stream did not end in time")
            return self.Query(a["Of"])

    def Query(self, qp):
        q = self.qps[qp]
        return {"State": q.state, "IRD": q.ird, "ORD": q.ord, "SendDepth": q.send_depth,
                "RecvDepth": q.recv_depth, "Stream": q.stream is not None, "Terminate": q.terminate}

    def Modify(self, a):
        with self.changed:
            q = self.qps[a["QP"]]
            if a["Next"] == IDLE and q.state == ERROR:
                q.state = IDLE
            elif a["Next"] == CLOSING and q.state == RTS:
                q.state = CLOSING
                q.stream.conn.shutdown(socket.SHUT_WR)
            elif a["Next"] == ERROR and q.state == RTS:
                q.stream.end(ERROR, None)
            elif a["Next"] != q.state:
                raise Refused(22, "invalid QP state")

    # Memory.

    def Register(self, a):
        if a["Access"] & 3 == 0 or a["Access"] & 5 == 4 or a["Access"] & 10 == 8:
            raise Refused(29, "invalid access rights requested")
        with self.changed:
            n = self.number()
            self.regions[n] = r = Region(n, a)
            return {"Region": n, "STag": r.stag, "Base": r.base}

    def Deregister(self, region):
        with self.changed:
            if self.regions.pop(region, None) is None:
                raise Refused(32, "invalid STag index")

    def Memory(self, region):
        with self.changed:
            return {"Octets": text(bytes(self.regions[region].memory))}

    def Fill(self, a):
        with self.changed:
            b = octets(a["Octets"])
            self.regions[a["Region"]].memory[a["Off"]:a["Off"] + len(b)] = b

    def by_stag(self, stag, to, n, access, pd):
        """A region that stag opens, and where in it; else what a Terminate says of it: STag invalid,
        access, bounds."""
        r = self.regions.get(stag >> 8)
        if not r or r.stag != stag:
            return None, 0
        if r.pd != pd or r.access & access != access:
            return None, 2
        off = r.at(to, n)
        return (r, off) if off is not None else (None, 1)

    def pieces(self, sgl, access, pd):
        for e in sgl or []:
            r, off = self.by_stag(e["STag"], e["TO"], e["Length"], access, pd)
            if not r and e["Length"]:
                raise Refused(32, "invalid STag index")
            if e["Length"]:
                yield r.memory, off, e["Length"]

    # Work.

    def PostSend(self, a):
        with self.changed:
            q = self.qps[a["QP"]]
            if q.state not in (IDLE, RTS):
                raise Refused(22, "invalid QP state")
            for w in a["Sends"] or []:
                if w["Op"] not in (SEND, SEND_SE, WRITE, READ):
                    raise Refused(35, "invalid operation type")
                list(self.pieces(w["SGL"], LOCAL_READ, q.pd))
                q.sends.append(w)
            if q.stream:
                q.stream.push()
            return {"N": len(a["Sends"] or [])}

    def PostRecv(self, a):
        with self.changed:
            if a["SRQ"]:
                raise Refused(16, "invalid S-RQ handle")
            self.qps[a["QP"]].recvs.extend(a["Recvs"] or [])
            return {"N": len(a["Recvs"] or [])}

    def complete(self, q, cq, w, op, status=0, n=0):
        """A completion; of a success one that was asked for."""
        if status or op == RECV or not w["Flags"] & 1:
            self.cqs[cq].append({"ID": w["ID"], "QP": q.id, "Op": op, "Status": status, "Bytes": n})
        self.changed.notify_all()

    def Poll(self, a):
        with self.changed:
            cq = self.cqs[a["CQ"]]
            self.wait(lambda: len(cq) >= a["N"], a)
            return {"Completions": [cq.popleft() for _ in range(min(a["N"], len(cq)))]}

    def Events(self, a):
        with self.changed:
            self.wait(lambda: len(self.events) >= a["N"], a)
            return {"Events": self.events}
