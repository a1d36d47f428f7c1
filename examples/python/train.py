# SPDX-License-Identifier: Apache-2.0
"""Trains a linear regression by a loop in Python, then by one call that runs all steps."""
import numpy as np

import cleave

random = np.random.default_rng(6)
true = random.standard_normal(32).astype(np.float32)
x = random.standard_normal((20_000, 32)).astype(np.float32)
y = (x @ true + 0.01 * random.standard_normal(20_000)).astype(np.float32)

weights = np.zeros(32, np.float32)
x_there, y_there = cleave.array(x), cleave.array(y)  # once
for epoch in range(20):
    loss, gradient = cleave.linear_step(x_there, y_there, weights)
    weights -= np.float32(0.2) * np.asarray(gradient)
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {float(loss):.5f}")

there = cleave.array(np.zeros(32, np.float32))
before = cleave.array_stats()
losses = cleave.linear_train(x_there, y_there, there, rate=0.2, steps=20)
assert cleave.array_stats().uploads == before.uploads  # nothing moved
assert np.allclose(there, weights, atol=1e-5)
print(f"20 steps in one call: loss {losses.numpy()[0]:.5f} to {losses.numpy()[-1]:.5f}, "
      f"largest error of a weight {np.abs(there.numpy() - true).max():.4f}")
assert np.abs(there.numpy() - true).max() < 0.02
