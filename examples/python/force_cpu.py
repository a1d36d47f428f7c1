# SPDX-License-Identifier: Apache-2.0
"""Which device works is the caller's choice: by mode, by name, for a block, for a thread."""
import threading

import numpy as np

import cleave

random = np.random.default_rng(2)
movie = random.poisson(10, (4, 64, 64)).astype(np.float32)
movie[:, 30:33, 40:43] += 60


def find():
    spots = cleave.blobs(movie, threshold_sigma=6, table="array")
    print(f"{threading.current_thread().name}: {len(spots)} spots, "
          f"mode {cleave.default_context().mode}")
    return spots


everywhere = find()
with cleave.Context(mode="reference"):  # plain C: nothing of OpenCL is touched
    plain = find()
    other = threading.Thread(target=find, name="another thread")  # has the default context
    other.start()
    other.join()
assert np.allclose(plain["y"], everywhere["y"], atol=1e-3)

for order in ("cpu", "gpu"):
    try:
        with cleave.Context(mode=order) as context:
            print(f"{order}: {', '.join(device.label for device in context.devices)}")
    except cleave.NoDeviceError as error:  # an order is never bent
        print(f"{order}: {error}")
