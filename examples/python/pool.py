# SPDX-License-Identifier: Apache-2.0
"""Reserves memory in a device's pool, limits it, reads its statistics, and gives it back."""
import numpy as np

import cleave

with cleave.Context(memory=0.25) as context:  # at most a quarter of each device
    if not context.devices:
        raise SystemExit("no OpenCL device: there is no pool")
    device = context.devices[0]
    device.reserve(1 << 22, count=3)  # three buffers of 4 MiB, for later calls to take
    print("reserved:", device.memory().cached_bytes, "bytes kept for reuse")

    before = device.memory()
    arrays = [cleave.array(np.full(1 << 20, k, np.float32)) for k in range(3)]  # 4 MiB each
    after = device.memory()
    assert after.pool_hits - before.pool_hits == 3, "they came from the pool"
    assert after.raw_allocations == before.raw_allocations
    total = arrays[0] + arrays[1] + arrays[2]
    assert float(total.max()) == 3.0

    room = device.room()
    print(f"used {device.memory().used_bytes / 1e6:.1f} MB, free {room.free_bytes / 1e6:.1f} MB of "
          f"{room.limit_bytes / 1e6:.0f} MB allowed, {room.total_bytes / 1e6:.0f} MB there")
    del arrays, total
    busy = device.utilisation()
    print("utilisation:", "the driver does not tell" if busy is None else f"{busy:.0f} %")
    device.trim()
    assert device.memory().cached_bytes == 0
