"""A stream of stack.py: MPA's startup, FPDUs, segments, and its end."""

import collections
import socket
import struct
import threading

from tester import Refused, octets, text

IDLE, RTS, CLOSING, TERMINATE, ERROR = range(5)
SEND, SEND_SE, WRITE, READ, RECV = 0, 1, 4, 5, 10  # verbs' operations
LOCAL_READ, LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE = 1, 2, 4, 8
CLOSED, TERMINATED, RESET, BAD_CLOSE = 1, 2, 3, 22  # asynchronous events
FLUSHED, INVALID_STAG = 1, 5  # statuses of completions

TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
    TABLE.append(n)


def crc32c(b):
    crc = 0xFFFFFFFF
    for o in b:
        crc = TABLE[(crc ^ o) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Fault(Exception):
    """A segment that is refused: the code of a Terminate Message, the event, and the segment."""

    def __init__(self, code, event, segment=None):
        super().__init__(hex(code))
        self.code, self.event, self.segment = code, event, segment


class Stream:
    """One connection. Everything but ask, answer and run is called with the RNIC's lock held."""

    def __init__(self, rnic, qp, conn, gate):
        self.rnic, self.qp, self.conn, self.gate = rnic, qp, conn, gate
        self.crc, self.sent, self.asked, self.expected, self.placed = True, 0, 0, 1, 0
        self.reads = collections.deque()  # that are under way
        self.got_reads = 1
        emss = conn.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        self.mulpdu = min(emss - 6 - emss % 4, 64768)

    # MPA's startup (RFC 5044 7.1, RFC 6581).

    def exactly(self, n):
        b = b""
        while len(b) < n:
            more = self.conn.recv(n - len(b))
            if not more:
                raise EOFError
            b += more
        return b

    def frame(self, key, flags, rev, private):
        self.conn.sendall(key + struct.pack(">BBH", flags, rev, len(private)) + private)

    def hear(self, key):
        f = self.exactly(20)
        flags, rev, n = f[16], f[17], struct.unpack(">H", f[18:])[0]
        if f[:16] != key or rev not in (1, 2) or n > 512 or flags & 0x80:
            raise ValueError("invalid startup frame")
        return flags, rev, self.exactly(n)

    def agree(self, result, mine, theirs, rev, private):
        self.crc = bool((mine | theirs) & 0x40)
        if theirs & 0x10:
            ird, ord_, private = *struct.unpack(">HH", private[:4]), private[4:]
            result["PeerIRD"], result["PeerORD"] = ird & 0x3FFF, ord_ & 0x3FFF
            self.qp.ord = min(self.qp.ord, result["PeerIRD"])
        result.update(CRC=self.crc, Rev=rev, IRD=self.qp.ird, ORD=self.qp.ord, PrivateData=text(private))

    def answer(self, a, result):
        theirs, rev, private = self.hear(b"MPA ID Req Frame")
        mine = (0 if a["NoCRC"] else 0x40) | theirs & 0x10
        self.agree(result, mine, theirs, rev, private)
        word = struct.pack(">HH", self.qp.ird, self.qp.ord) if mine & 0x10 else b""
        if a["Reject"]:
            mine, result["Rejected"], result["Failed"] = mine | 0x20, True, "rejected"
        self.frame(b"MPA ID Rep Frame", mine, rev, word + octets(a["PrivateData"]))

    def ask(self, a, result):
        rev = a["Rev"] or 2
        mine = (0 if a["NoCRC"] else 0x40) | (0x10 if rev == 2 else 0)
        word = struct.pack(">HH", self.qp.ird, self.qp.ord) if rev == 2 else b""
        self.frame(b"MPA ID Req Frame", mine, rev, word + octets(a["PrivateData"]))
        theirs, rev, private = self.hear(b"MPA ID Rep Frame")
        self.agree(result, mine, theirs, rev, private)
        if theirs & 0x20:
            result["Rejected"], result["Failed"] = True, "rejected"

    # What comes.

    def run(self):
        with self.rnic.changed:
            self.push()
        try:
            while True:
                head = self.conn.recv(2)
                if not head:
                    break
                head += b"" if len(head) == 2 else self.exactly(1)
                n = struct.unpack(">H", head)[0]
                rest = self.exactly(n + (-(n + 2) & 3) + 4)
                with self.rnic.changed:
                    if self.crc and crc32c(head + rest[:-4]) != struct.unpack("<I", rest[-4:])[0]:
                        raise Fault(0x2002, 6)
                    self.gate = False
                    if self.take(rest[:n]):
                        return
                    self.push()
        except Fault as f:
            with self.rnic.changed:
                self.refuse(f)
            return
        except (OSError, EOFError) as err:
            with self.rnic.changed:
                self.end(ERROR, BAD_CLOSE if isinstance(err, EOFError) else RESET)
            return
        with self.rnic.changed:
            busy = self.reads or self.placed or self.qp.sends
            self.end(*((ERROR, BAD_CLOSE) if busy else (IDLE, CLOSED)))

    def take(self, u):
        """One segment; True if it is the last of the stream."""
        if len(u) < 2 or len(u) < (14 if u[0] & 0x80 else 18):
            raise Fault(0x1203, 7)
        if u[0] & 3 != 1:
            raise Fault(0x1206 if not u[0] & 0x80 else 0x1104, 8, u)
        if u[1] >> 6 != 1:
            raise Fault(0x0205, 9, u)
        op = u[1] & 0x0F
        if u[0] & 0x80:
            self.tagged(u, op)
            return False
        qn, msn, mo = struct.unpack(">III", u[6:18])
        if op == 7 and qn == 2:
            self.qp.terminate = {"Sent": False, "Code": struct.unpack(">H", u[18:20])[0], "Raw": text(u[18:])}
            self.end(ERROR, TERMINATED)
            return True
        if op == 1 and qn == 1:
            self.read(u, msn)
        elif op in (3, 5) and qn == 0:
            self.send(u, msn, mo)
        else:
            raise Fault(0x0206, 10, u)
        return False

    def tagged(self, u, op):
        stag, to = struct.unpack(">IQ", u[2:14])
        data = u[14:]
        if op == 0 and data:
            r, off = self.rnic.by_stag(stag, to, len(data), REMOTE_WRITE, self.qp.pd)
            if not r:
                raise Fault(0x1101 if off == 1 else 0x1100, 17 if off == 1 else 16, u)
            r.memory[off:off + len(data)] = data
        elif op == 2 and self.reads:
            w, got = self.reads[0]
            sink = w["Local"]
            if (stag, to) != (sink["STag"], sink["TO"] + got) or got + len(data) > sink["Length"]:
                raise Fault(0x1100, 16, u)
            if data:
                r, off = self.rnic.by_stag(stag, to, len(data), REMOTE_WRITE, self.qp.pd)
                if not r:
                    raise Fault(0x1100, 16, u)
                r.memory[off:off + len(data)] = data
            self.reads[0] = (w, got + len(data))
            if u[0] & 0x40:
                self.reads.popleft()
                self.rnic.complete(self.qp, self.qp.send_cq, w, READ)
        elif op:
            raise Fault(0x0206, 10, u)

    def read(self, u, msn):
        if msn != self.got_reads or len(u) != 46:
            raise Fault(0x1203, 26, u)
        self.got_reads += 1
        sink, sink_to, size, source, source_to = struct.unpack(">IQIIQ", u[18:])
        data = b""
        if size:
            r, off = self.rnic.by_stag(source, source_to, size, REMOTE_READ, self.qp.pd)
            if not r:
                raise Fault((0x0100, 0x0101, 0x0102)[off], (28, 29, 30)[off], u)
            data = bytes(r.memory[off:off + size])
        self.send_tagged(0x42, sink, sink_to, data)

    def send(self, u, msn, mo):
        if msn != self.expected:
            raise Fault(0x1203, 23, u)
        if not self.qp.recvs:
            raise Fault(0x1202, 23, u)
        if mo != self.placed:
            raise Fault(0x1204, 23, u)
        w, data = self.qp.recvs[0], u[18:]
        if mo + len(data) > sum(e["Length"] for e in w["SGL"] or []):
            raise Fault(0x1205, 17, u)
        at = 0
        for memory, off, n in self.rnic.pieces(w["SGL"], LOCAL_WRITE, self.qp.pd):
            for i in range(max(mo, at), min(mo + len(data), at + n)):
                memory[off + i - at] = data[i - mo]
            at += n
        self.placed += len(data)
        if u[0] & 0x40:
            self.qp.recvs.popleft()
            self.rnic.complete(self.qp, self.qp.recv_cq, w, RECV, 0, self.placed)
            self.expected, self.placed = self.expected + 1, 0

    # What goes.

    def fpdu(self, ulpdu):
        b = struct.pack(">H", len(ulpdu)) + ulpdu
        b += bytes(-len(b) & 3)
        self.conn.sendall(b + struct.pack("<I", crc32c(b) if self.crc else 0))

    def send_tagged(self, control, stag, to, data):
        room = self.mulpdu - 14
        for off in range(0, max(len(data), 1), room):
            last = 0x40 if off + room >= len(data) else 0
            self.fpdu(struct.pack(">BBIQ", 0x81 | last, control, stag, to + off) + data[off:off + room])

    def send_untagged(self, control, qn, msn, data):
        room = self.mulpdu - 18
        for off in range(0, max(len(data), 1), room):
            last = 0x40 if off + room >= len(data) else 0
            self.fpdu(struct.pack(">BBIIII", 0x01 | last, control, 0, qn, msn, off) + data[off:off + room])

    def push(self):
        """Sends what is posted: nothing before the Initiator has (RFC 5044 7.1.2), and no more Reads
        than ORD."""
        while self.qp.sends and not self.gate and self.qp.state == RTS:
            w = self.qp.sends[0]
            if w["Op"] == READ and len(self.reads) >= self.qp.ord or w["Flags"] & 2 and self.reads:
                return
            self.qp.sends.popleft()
            remote = w["Remote"]
            if w["Op"] == READ:
                self.asked += 1
                self.reads.append((w, 0))
                sink = w["Local"]
                self.send_untagged(0x41, 1, self.asked, struct.pack(
                    ">IQIIQ", sink["STag"], sink["TO"], sink["Length"], remote["STag"], remote["TO"]))
                continue
            try:
                data = b"".join(bytes(m[o:o + n]) for m, o, n in self.rnic.pieces(w["SGL"], LOCAL_READ, self.qp.pd))
            except Refused:  # it has been deregistered since
                self.rnic.complete(self.qp, self.qp.send_cq, w, w["Op"], INVALID_STAG)
                self.end(ERROR, None)
                return
            if w["Op"] == WRITE:
                self.send_tagged(0x40, remote["STag"], remote["TO"], data)
            else:
                self.sent += 1
                self.send_untagged(0x43 if w["Op"] == SEND else 0x45, 0, self.sent, data)
            self.rnic.complete(self.qp, self.qp.send_cq, w, w["Op"])

    # The end.

    def refuse(self, f):
        """Sends a Terminate Message (RFC 5040 4.8), waits for the other side's end, and goes to Error."""
        raw = struct.pack(">HH", f.code, 0)
        if f.segment:
            u = f.segment
            read = u[1] & 0x0F == 1 and f.code >> 12 == 0
            n = (14 if u[0] & 0x80 else 18) + (28 if read else 0)
            raw = struct.pack(">HBBH", f.code, 0xE0 if read else 0xC0, 0, len(u)) + u[:n]
        self.qp.terminate = {"Sent": True, "Code": f.code, "Raw": text(raw)}
        try:
            self.fpdu(struct.pack(">BBIIII", 0x41, 0x47, 0, 2, 1, 0) + raw)
            self.conn.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.end(ERROR, f.event)

    def end(self, state, event):
        q = self.qp
        q.state, q.stream = state, None
        if state == ERROR:
            for w, _ in self.reads:
                self.rnic.complete(q, q.send_cq, w, READ, FLUSHED)
            for w in q.sends:
                self.rnic.complete(q, q.send_cq, w, w["Op"], FLUSHED)
            for w in q.recvs:
                self.rnic.complete(q, q.recv_cq, w, RECV, FLUSHED)
            q.sends.clear()
            q.recvs.clear()
        if event:
            self.rnic.events.append({"ID": event, "QP": q.id})
        self.rnic.changed.notify_all()
        try:
            self.conn.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        threading.Thread(target=self.drain, daemon=True).start()

    def drain(self):
        """Reads what still comes: closed with octets unread, TCP would send an RST."""
        try:
            self.conn.settimeout(60)
            while self.conn.recv(65536):
                pass
        except OSError:
            pass
        self.conn.close()
