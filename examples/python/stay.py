# SPDX-License-Identifier: Apache-2.0
"""Keeps data on the device between calls, and shows by statistics that nothing is transferred."""
import numpy as np

import cleave

x = np.random.default_rng(5).standard_normal((2000, 64), np.float32)

on_device = cleave.array(x)  # one transfer to the device
before = cleave.array_stats()
mean, deviation = on_device.mean(axis=0), on_device.std(axis=0)
z = cleave.compute("(x - mean) / deviation", x=on_device, mean=mean, deviation=deviation)
gram = cleave.product(z, z, transpose_a=True)  # z^T z
largest = gram.max()
after = cleave.array_stats()
assert after.uploads == before.uploads and after.downloads == before.downloads
print("five operations:", after.calls_device - before.calls_device, "on the device,",
      after.bytes_from_device - before.bytes_from_device, "bytes moved")

want = (x - x.mean(0)) / x.std(0)
assert np.allclose(z.numpy(), want, atol=1e-4)  # one transfer back
print(f"largest element of the {gram.shape[0]}x{gram.shape[1]} products: {float(largest):.1f}")

again = cleave.normalize(on_device)  # the same, as one operation
assert np.allclose(again.z, want, atol=1e-4)  # np.asarray(array) reads it too
