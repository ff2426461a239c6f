"""Python's signal handlers beside verbs: handlers.py SECONDS prints "handlers: ok", or fails. The program runs under `rnic run`."""

import faulthandler
import signal
import sys
import time

from pyverbs import device, enums
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD

handled = {signal.SIGALRM: 0, signal.SIGPROF: 0}


def handle(number, _frame):
    """Counts, with some depth of stack of Python's."""
    handled[number] += 1
    if number == signal.SIGPROF:
        sorted(range(100), key=lambda i: -i)


def main():
    """Makes objects, polls and destroys, while timers run."""
    faulthandler.enable()
    for number in handled:
        signal.signal(number, handle)
    ctx = device.Context(name=device.get_device_list()[0].name.decode())
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    until = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < until:
        with PD(ctx) as pd, CQ(ctx, 100) as cq:
            for size in (64, 4096, 1 << 20):
                with MR(pd, size, enums.IBV_ACCESS_LOCAL_WRITE) as mr:
                    mr.write("x" * 64, 64)
                    assert cq.poll(16)[0] == 0 and mr.read(64, 0) == b"x" * 64
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    assert all(handled.values()), handled
    print("handlers: ok")


main()
