# SPDX-License-Identifier: Apache-2.0
"""Computes several steps as one kernel, which reads the data once and writes it once."""
import numpy as np

import cleave

data = np.random.default_rng(3).random(1 << 20, np.float32)

step1 = cleave.compute("data * 2", data=data)  # two calls: two passes over memory
step2 = cleave.compute("step1 + 1", step1=step1)
fused = cleave.compute("data * 2 + 1", data=data)  # one
assert np.array_equal(fused, step2)
print("apart and fused give the same bits")

# an expression may use the whole grammar, with broadcasting; other text never reaches a compiler
image = data.reshape(1024, 1024)
gain, dark = image[0] + 0.5, image[:, :1]
flat = cleave.compute("clamp((image - dark) / gain, 0, high)", image=image, dark=dark, gain=gain,
                      high=4.0)
assert np.allclose(flat, np.clip((image - dark) / gain, 0, 4), rtol=1e-5)
try:
    cleave.compute("image + system(1)", image=image)
except cleave.FormatError as error:
    print(error.message)
