# SPDX-License-Identifier: Apache-2.0
"""Makes the golden cases of operations on arrays: random numbers, eigenvalues, normalisation, regression and filters.

make_goldens.py calls add_cases between its blocks and its files, so that both draw from one sequence of numbers.
"""

import numpy as np
from scipy.ndimage import convolve


def philox4x32(ctr, key, rounds=10):
    """Philox 4x32 (Salmon et al. 2011), vectorised; ctr [N,4] uint32, key (k0,k1)."""
    c = [ctr[:, i].astype(np.uint64) for i in range(4)]
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    M = np.uint64(0xFFFFFFFF)
    for r in range(rounds):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ k0, p1 & M, (p0 >> np.uint64(32)) ^ c[3] ^ k1, p0 & M]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & M, (k1 + np.uint64(0xBB67AE85)) & M
    return np.stack(c, 1).astype(np.uint32)


assert [hex(v) for v in philox4x32(np.zeros((1, 4), np.uint32), (0, 0))[0]] == [
    "0x6627e8d5",
    "0xe169c58d",
    "0xbc57ac4c",
    "0x9b00dbd8",
]
assert [hex(v) for v in philox4x32(np.full((1, 4), 0xFFFFFFFF, np.uint32), (0xFFFFFFFF, 0xFFFFFFFF))[0]] == [
    "0x408f276d",
    "0x41c83b0e",
    "0xa20bc7c6",
    "0x6d5451fd",
]


def add_cases(T, META, R, seed):
    """Adds tensors to T and what is known about them to META. R(*shape) draws float32 from a normal distribution."""
    N = 1 << 20
    key = (seed & 0xFFFFFFFF, 7)
    ctr = np.zeros((N // 2, 4), np.uint32)
    ctr[:, 0] = np.arange(N // 2)
    o = philox4x32(ctr, key)
    u = (o >> np.uint32(8)).astype(np.uint64)  # 24-bit integers, so the test is exact in integers
    inside = int(
        np.count_nonzero(u[:, 0] ** 2 + u[:, 1] ** 2 <= 1 << 48)
        + np.count_nonzero(u[:, 2] ** 2 + u[:, 3] ** 2 <= 1 << 48)
    )
    META["montecarlo_pi"] = {
        "params": {
            "n": N,
            "generator": "philox4x32-10",
            "key": list(map(int, key)),
            "counter": "(i,0,0,0), i=0..n/2-1; words (0,1) and (2,3) are two points; u = word>>8 (24 bits)",
            "inside": "ux*ux+uy*uy <= 2^48 in 64-bit integers",
        },
        "count": inside,
        "pi": 4 * inside / N,
        "tol": 0,
    }
    T["philox.out.first"] = o[:64].view(np.int32)
    A = R(4, 12, 12)
    w = np.linalg.eigvals(A.astype(np.float64))
    w = np.stack([x[np.lexsort((x.imag, x.real))] for x in w])
    T["eigvals.a"], T["eigvals.out.re"], T["eigvals.out.im"] = (
        A,
        w.real.astype(np.float32),
        w.imag.astype(np.float32),
    )
    META["eigvals"] = {
        "params": {"note": "general real, sorted by (re, im); compare as multisets"},
        "tol": {"out.re": 1e-4, "out.im": 1e-4},
    }
    A = R(5, 16, 16)
    A = ((A + A.transpose(0, 2, 1)) / 2).astype(np.float32)
    T["eigvalsh.a"], T["eigvalsh.out.w"] = A, np.linalg.eigvalsh(A.astype(np.float64)).astype(np.float32)
    META["eigvalsh"] = {"params": {"order": "ascending"}, "tol": {"out.w": 2e-5}}
    X = R(50, 20) * 3 + 100
    Z = (X.astype(np.float64) - X.mean(0, dtype=np.float64)) / X.std(0, dtype=np.float64)
    T["normalise.x"], T["normalise.out.z"], T["normalise.out.gram"] = (
        X,
        Z.astype(np.float32),
        (Z @ Z.T).astype(np.float32),
    )
    META["normalise"] = {"params": {"std": "population (ddof 0)"}, "tol": {"out.z": 2e-4, "out.gram": 5e-3}}
    X, w, y = R(64, 9), R(9), R(64)
    r = X.astype(np.float64) @ w - y
    T["linreg.x"], T["linreg.w"], T["linreg.y"] = X, w, y
    T["linreg.out.loss"], T["linreg.out.grad"] = np.array([(r**2).mean()], np.float32), (
        2 * X.T.astype(np.float64) @ r / 64
    ).astype(np.float32)
    META["linreg"] = {"params": {}, "tol": {"out.loss": 1e-5, "out.grad": 1e-5}}
    im, kr = R(19, 23), R(5, 4)
    T["imfilter.image"], T["imfilter.kernel"] = im, kr
    tol = {}
    for mode in ("reflect", "nearest", "constant", "mirror", "wrap"):
        T["imfilter.out." + mode] = convolve(im.astype(np.float64), kr.astype(np.float64), mode=mode).astype(
            np.float32
        )
        tol["out." + mode] = 2e-5
    META["imfilter"] = {
        "params": {
            "note": "true convolution (kernel flipped), centre at size//2 as scipy.ndimage.convolve, even size included"
        },
        "tol": tol,
    }
