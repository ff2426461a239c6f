#!/usr/bin/env python3
"""An upper tester for `rnic conform run --target`, to be filled in: docs/upper-tester.md.

    tester.py HOST PORT STACK.py

STACK.py has a class RNIC(tester.Tester) with the methods that your stack can do. A method that is not there
answers with an error, and the cases that need it fail. stack/stack.py is an example with a stack of its own.
"""

import base64
import importlib
import json
import os
import socket
import sys
import threading


class Refused(Exception):
    """An Immediate Error, by its number: Refused(22, "invalid QP state")."""
    def __init__(self, number, text):
        super().__init__(f"immediate {number}: {text}")


def seconds(ns):  # the time of an argument
    return ns / 1e9


def octets(base64_text):  # of an argument; None stands for none
    return base64.b64decode(base64_text or "")


def text(b):  # octets for a reply
    return base64.b64encode(b).decode()


def pattern(seed, n):  # what Register fills memory with
    return bytes((seed ^ (i * 31 + (i >> 8) * 17)) & 0xFF for i in range(n))


class Tester:
    """One session: an RNIC, and all that was made in it. `a` is the argument, a dict with all fields, or a
    number. Behind -> is the reply, a dict; a field that is not there counts as zero, and None as no fields.
    Calls come one at a time; streams have to go on between the calls, and while one waits."""

    def __init__(self, host):
        self.host = host  # where Listen listens

    def close(self):
        """The session is over: everything ends."""
    # Queue pairs and connections.

    def Open(self, a):
        """Create QP, with the PD, CQs and S-RQ that are new. -> QP, SendCQ, RecvCQ, ID"""
        raise NotImplementedError

    def Destroy(self, qp):
        """Destroy QP."""
        raise NotImplementedError

    def Listen(self, a):
        """Listen on self.host for one connection, as MPA Responder; return at once. -> Addr"""
        raise NotImplementedError

    def Dial(self, a):
        """Connect to a["Addr"], as MPA Initiator; return at once."""
        raise NotImplementedError

    def Connected(self, a):
        """Wait for what Listen or Dial began on queue pair a["Of"]. -> a Connection"""
        raise NotImplementedError

    def Ended(self, a):
        """Wait until the stream of queue pair a["Of"] is gone. -> as Query"""
        raise NotImplementedError

    def Query(self, qp):
        """Query QP. -> a QPState"""
        raise NotImplementedError

    def Modify(self, a):
        """Modify QP: to a["Next"], with what is not None."""
        raise NotImplementedError

    # Memory.

    def Register(self, a):
        """Register a["Len"] octets, filled with pattern(). -> Region, STag, Base"""
        raise NotImplementedError

    def Allocate(self, a):
        """Allocate a region without memory, in the Invalid state. -> as Register"""
        raise NotImplementedError

    def Share(self, a):
        """Register the memory of region a["Region"] once more. -> as Register"""
        raise NotImplementedError

    def Reregister(self, a):
        """Give region a["Region"] new memory and attributes. -> as Register"""
        raise NotImplementedError

    def Deregister(self, region):
        """Deallocate a region's STag."""
        raise NotImplementedError

    def QueryRegion(self, region):
        """Query Memory Region. -> a RegionState"""
        raise NotImplementedError

    def Memory(self, region):
        """All octets of a region, with what has been placed. -> Octets"""
        raise NotImplementedError

    def Fill(self, a):
        """Put a["Octets"] into a region, from a["Off"] on."""
        raise NotImplementedError

    def AllocateWindow(self, pd):
        """Allocate a Memory Window. -> Window, STag"""
        raise NotImplementedError

    def DeallocateWindow(self, window):
        """Deallocate a Memory Window."""
        raise NotImplementedError

    def QueryWindow(self, window):
        """Query Memory Window. -> a WindowState"""
        raise NotImplementedError

    # Work.

    def PostSend(self, a):
        """PostSQ of all a["Sends"]. -> N, how many were taken"""
        raise NotImplementedError

    def PostRecv(self, a):
        """PostRQ to a["QP"], or to S-RQ a["SRQ"] if not 0. -> N"""
        raise NotImplementedError

    def Poll(self, a):
        """Up to a["N"] completions; after a["Timeout"] those there are. -> Completions"""
        raise NotImplementedError

    def Notify(self, a):
        """Request Completion Notification."""
        raise NotImplementedError

    def Notified(self, a):
        """Wait for the notification of CQ a["Of"], and take it. -> Yes"""
        raise NotImplementedError

    def Events(self, a):
        """All events since the beginning, once there are a["N"]; after a["Timeout"] anyhow. -> Events"""
        raise NotImplementedError

    def Ping(self, a):
        """Serve one client as `rping -s`, or with a["Addr"] be `rping -c`; return at once. -> Addr"""
        raise NotImplementedError


def session(conn, make):
    """Answers the calls of a connection, one after the other, until it ends."""
    rnic = make(conn.getsockname()[0])
    try:
        for line in conn.makefile("rb"):  # a call a line
            call = json.loads(line)
            answer = {"id": call["id"], "result": None, "error": None}
            name = call["method"].removeprefix("Upper.")
            try:
                if not name[:1].isupper() or not hasattr(Tester, name):
                    raise NotImplementedError
                answer["result"] = getattr(rnic, name)(call["params"][0]) or {}
            except NotImplementedError:
                answer["error"] = f"the upper tester has no {name}"
            except Exception as err:  # whatever fails is the answer
                answer["error"] = str(err) or repr(err)
            conn.sendall(json.dumps(answer).encode() + b"\n")
    except OSError:
        pass
    finally:
        rnic.close()
        conn.close()


def main():
    host, port, path = sys.argv[1:]
    sys.modules["tester"] = sys.modules["__main__"]
    sys.path.insert(0, os.path.dirname(path))
    stack = importlib.import_module(os.path.basename(path).removesuffix(".py"))
    server = socket.create_server((host, int(port)), backlog=64)
    print("listening on %s:%d" % server.getsockname()[:2], flush=True)
    while True:
        conn, _ = server.accept()
        threading.Thread(target=session, args=(conn, stack.RNIC), daemon=True).start()


if __name__ == "__main__":
    main()
