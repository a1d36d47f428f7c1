# SPDX-License-Identifier: Apache-2.0
"""Chooses which devices compute: by mode, for the code of one block in one thread."""
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
with cleave.Context(mode="reference"):  # plain C: OpenCL is not used
    plain = find()
    other = threading.Thread(target=find, name="another thread")  # uses the default context
    other.start()
    other.join()
assert np.allclose(plain["y"], everywhere["y"], atol=1e-3)

for order in ("cpu", "gpu"):
    try:
        with cleave.Context(mode=order) as context:
            print(f"{order}: {', '.join(device.label for device in context.devices)}")
    except cleave.NoDeviceError as error:  # no other device takes over
        print(f"{order}: {error}")
