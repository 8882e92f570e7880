"""A line between two network namespaces, with a rate and a delay each way: line.py A B MBIT MS

A has the address 10.0.0.1 and B has 10.0.0.2. The kernels' own TCP runs over it: a device TUN in
each namespace hands packets to this program, which hands them out at the other end when a line of
that rate and delay would have. Where a packet would wait for longer than QUEUE, it is lost.
"""

import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections import deque

QUEUE = 0.25
LONGEST_PACKET = 1500
TUNSETIFF = 0x400454CA
IFF_TUN_WITHOUT_HEADER = 0x1001


def device(namespace, address):
    """Opens a TUN device, and moves it into the namespace."""
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    asked = struct.pack("16sH22x", b"line%d", IFF_TUN_WITHOUT_HEADER)
    name = fcntl.ioctl(tun, TUNSETIFF, asked)[:16].rstrip(b"\0").decode()
    inside = ["ip", "-n", namespace]
    subprocess.run(["ip", "link", "set", name, "netns", namespace], check=True)
    subprocess.run([*inside, "addr", "add", f"{address}/24", "dev", name], check=True)
    subprocess.run([*inside, "link", "set", name, "up", "mtu", str(LONGEST_PACKET)], check=True)
    subprocess.run([*inside, "link", "set", "lo", "up"], check=True)
    return tun


class Way:
    """One way of the line: packets that are on it, with the moments at which they come out."""

    def __init__(self, source, sink, bits_per_second, delay):
        self.source, self.sink = source, sink
        self.seconds_per_byte, self.delay = 8 / bits_per_second, delay
        self.packets = deque()
        self.free_at = 0.0

    def take(self):
        """Takes all packets that the source has."""
        while True:
            try:
                packet = os.read(self.source, LONGEST_PACKET)
            except BlockingIOError:
                return
            starts = max(self.free_at, time.monotonic())
            if starts - time.monotonic() < QUEUE:
                self.free_at = starts + len(packet) * self.seconds_per_byte
                self.packets.append((self.free_at + self.delay, packet))

    def give(self):
        """Hands out what has come to the other end. Returns when the next packet will have."""
        while self.packets:
            due, packet = self.packets[0]
            if due > time.monotonic():
                return due
            self.packets.popleft()
            try:
                os.write(self.sink, packet)
            except OSError:
                pass  # As on any line, what the receiver has no room for is lost.
        return None


def main():
    near, far, megabits, milliseconds = sys.argv[1:]
    one, other = device(near, "10.0.0.1"), device(far, "10.0.0.2")
    try:
        # A line does not wait until a browser leaves it a processor.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        print("line.py: may not go before other programs; times vary more", file=sys.stderr)
    line = float(megabits) * 1e6, float(milliseconds) / 1e3
    ways = Way(one, other, *line), Way(other, one, *line)
    print("ready", flush=True)
    while True:
        dues = [due for due in [way.give() for way in ways] if due is not None]
        # `select` waits for microseconds, where epoll rounds up to milliseconds.
        wait = max(min(dues) - time.monotonic(), 0) if dues else None
        readable, _, _ = select.select([one, other], [], [], wait)
        for way in ways:
            if way.source in readable:
                way.take()


main()
