#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Simulates a slow and lossy network of three machines: three network namespaces on this machine, whose packets go
through this process, which delays and drops them. This also works on kernels without the queueing discipline netem.

usage: slow_network.py DELAY_MS LOSS_PERCENT COMMAND ARGUMENT...

The namespaces have the addresses 10.83.0.1, .2 and .3. COMMAND runs in the first one; `$SLOW_AGENT ADDRESS COMMAND...`
runs a command in another, as ssh would, for launchers of MPI.

Everything runs in a namespace of processes and of mounts of its own, whose first process is this program. So the
kernel ends all processes and removes all namespaces and devices when this program ends, even if it is killed."""
import fcntl
import heapq
import os
import random
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import threading
import time

COUNT = 3
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
address=$1; shift
exec ip netns exec "slow${address##*.}" unshare --uts sh -c "hostname $address; $*"
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def open_tun(namespace, number):
    """Opens a device of the namespace whose packets this process receives."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    name = f"tun{number}"
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    ip("link", "set", name, "netns", namespace)
    ip("-n", namespace, "addr", "add", f"10.83.0.{number}/24", "dev", name)
    ip("-n", namespace, "link", "set", name, "up")
    ip("-n", namespace, "link", "set", "lo", "up")
    return device


def forward(devices, delay, loss, counts, stop):
    """Delivers each packet to the device of its address after `delay` seconds, unless the packet is lost."""
    chance, waiting, number = random.Random(1), [], 0
    while not stop.is_set():
        rest = min(0.05, max(waiting[0][0] - time.monotonic(), 0)) if waiting else 0.05
        for device in select.select(devices, [], [], rest)[0]:
            packet = os.read(device, 65536)
            if len(packet) < 20 or packet[0] >> 4 != 4 or not 1 <= packet[19] <= COUNT:
                continue
            counts[0] += 1
            if chance.random() < loss:
                counts[1] += 1
                continue
            number += 1
            heapq.heappush(waiting, (time.monotonic() + delay, number, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            packet = heapq.heappop(waiting)[2]
            try:
                os.write(devices[packet[19] - 1], packet)
            except OSError:
                pass


def isolate():
    """Replaces this process by `unshare`, which starts this program again as the first process of new namespaces, with
    root's rights in them, and kills it when it ends itself."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    unshare = ["unshare", *user, "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp("unshare", [*unshare, sys.executable, os.path.abspath(__file__), "--isolated", *sys.argv[1:]])


def main():
    if sys.argv[1] != "--isolated":
        isolate()
    delay, loss, command = float(sys.argv[2]) / 1e3, float(sys.argv[3]) / 100, sys.argv[4:]
    counts, stop = [0, 0], threading.Event()
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)  # these names are visible only here
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        agent = os.path.join(folder, "agent")
        with open(agent, "w", encoding="ascii") as file:
            file.write(AGENT)
        os.chmod(agent, 0o700)
        for i in range(COUNT):
            ip("netns", "add", f"slow{i + 1}")
        devices = [open_tun(f"slow{i + 1}", i + 1) for i in range(COUNT)]
        thread = threading.Thread(target=forward, args=(devices, delay, loss, counts, stop))
        thread.start()
        try:
            done = subprocess.run([agent, "10.83.0.1", "exec", shlex.join(command)],
                                  env={**os.environ, "SLOW_AGENT": agent}, check=False)
        finally:
            stop.set()
            thread.join()
    print(f"{counts[0]} packets, {counts[1]} of them lost", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
