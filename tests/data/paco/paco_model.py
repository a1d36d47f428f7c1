# SPDX-License-Identifier: Apache-2.0
"""Float64 NumPy model of the PACO workload (Flasseur et al. 2018, A&A 618, A138).

The model prefers plain code to speed. make_goldens.py uses it to make and check the golden maps of this folder.

    conv     'paper' : S = (1/T) sum (r-m)(r-m)^T, rho as printed in the paper
             'vip'   : what vip-hci does: S is half of that, and the numerator of
                       rho subtracts 2*sum over ALL S_ij^2 instead of the diagonal
    rounding 'nearest' : patch centre = floor(x+0.5)   (the paper)
             'trunc'   : patch centre = int(x)         (vip-hci)
    psfmode  'fixed' : the same h for every frame
             'shift' : h moved by the sub-pixel remainder (Fourier shift)
"""

import numpy as np


def disc(radius):
    """Offsets (dy, dx) of the circular patch, row-major. r=4 -> 49 pixels."""
    r = int(radius)
    return np.array(
        [(dy, dx) for dy in range(-r, r + 1) for dx in range(-r, r + 1) if dy * dy + dx * dx <= r * r]
    )


def shift_psf(psf, sy, sx):
    """Fourier shift of a PSF image by (sy, sx), |s| < 1, zero padded.

    Padding follows the peer: one zero ring when any shift is non-zero, then one
    more row and column if the side is odd, so that the DFT has even length.
    """
    ny, nx = psf.shape
    assert ny == nx, "square PSF image expected"
    pad = int(np.ceil(max(abs(sy), abs(sx))))
    n = ny + 2 * pad
    lo_y = lo_x = pad
    if n % 2:
        n += 1
        lo_y += 0 if sy > 0 else 1
        lo_x += 0 if sx > 0 else 1
    big = np.zeros((n, n))
    big[lo_y : lo_y + ny, lo_x : lo_x + nx] = psf
    f = np.fft.fftfreq(n)  # Nyquist = -0.5, real part kept
    ph = np.exp(-2j * np.pi * (sy * f[:, None] + sx * f[None, :]))
    out = np.fft.ifft2(np.fft.fft2(big) * ph).real
    return out[lo_y : lo_y + ny, lo_x : lo_x + nx]


def psf_vector(psf, off, sy=0.0, sx=0.0):
    """Sample the (shifted) PSF on the patch; PSF centre is pixel [n//2, n//2]."""
    img = psf if sy == 0 and sx == 0 else shift_psf(psf, sy, sx)
    c = psf.shape[0] // 2
    return img[c + off[:, 0], c + off[:, 1]]


def statistics(patch, conv="paper"):
    """patch [T,P] -> mean [P], S [P,P], rho, C [P,P]."""
    T = patch.shape[0]
    m = patch.mean(0)
    d = patch - m
    S = d.T @ d / T
    if conv == "vip":
        S = 0.5 * S
    s2, tr, dg = (S * S).sum(), np.trace(S), (np.diag(S) ** 2).sum()
    top = s2 + tr * tr - 2.0 * (s2 if conv == "vip" else dg)
    bot = (T + 1.0) * (s2 - dg)
    if bot > 0:
        rho = min(max(top / bot, 0.0), 1.0)
    else:
        rho = 1.0  # S already diagonal
    C = (1.0 - rho) * S + rho * np.diag(np.diag(S))
    return m, S, rho, C


def positions(H, W, angles, centre=None):
    """Where a source seen at (row, col) of the derotated map lies in frame l.

    x right = column, y up = row index; polar angle runs from +x towards +y;
    frame l sees it at polar angle minus angles[l].  Returns row[T,H,W], col[T,H,W].
    """
    cy, cx = (H // 2, W // 2) if centre is None else centre
    t = np.deg2rad(np.asarray(angles, float))
    dy = (np.arange(H) - cy)[:, None]
    dx = (np.arange(W) - cx)[None, :]
    c, s = np.cos(t)[:, None, None], np.sin(t)[:, None, None]
    return cy + dy * c - dx * s, cx + dx * c + dy * s


def paco(
    cube,
    angles,
    psf,
    radius=4,
    centre=None,
    conv="paper",
    rounding="nearest",
    psfmode="shift",
    margin=0,
    return_stats=False,
):
    """a, b maps [H,W] in float64.  NaN where any of the T patches is unusable.

    A patch is unusable when it leaves the frame, holds a non-finite value in any
    frame, or holds a pixel whose variance over time is zero.
    margin: extra border in pixels on top of `radius` (vip-hci: 1).
    """
    cube = np.asarray(cube, np.float64)
    T, H, W = cube.shape
    off = disc(radius)
    P = len(off)
    k = radius + margin
    ok = np.zeros((H, W), bool)
    M = np.zeros((H, W, P))
    Ci = np.zeros((H, W, P, P))
    R = np.zeros((H, W))
    good = np.isfinite(cube).all(0)
    var = np.where(good, cube, 0).var(0)
    mx = np.abs(np.where(good, cube, 0)).max(0)
    good &= var > (1e-14 * mx) ** 2
    for y in range(k, H - k):
        for x in range(k, W - k):
            yy, xx = y + off[:, 0], x + off[:, 1]
            if not good[yy, xx].all():
                continue
            m, S, rho, C = statistics(cube[:, yy, xx], conv)
            M[y, x], Ci[y, x], R[y, x], ok[y, x] = m, np.linalg.inv(C), rho, True
    ry, rx = positions(H, W, angles, centre)
    if rounding == "nearest":
        iy, ix = np.floor(ry + 0.5).astype(int), np.floor(rx + 0.5).astype(int)
    else:
        iy, ix = np.trunc(ry).astype(int), np.trunc(rx).astype(int)
    fy, fx = ry - iy, rx - ix
    a = np.full((H, W), np.nan)
    b = np.full((H, W), np.nan)
    h0 = psf_vector(psf, off)
    for y in range(H):
        for x in range(W):
            qy, qx = iy[:, y, x], ix[:, y, x]
            if qy.min() < 0 or qx.min() < 0 or qy.max() >= H or qx.max() >= W:
                continue
            if not ok[qy, qx].all():
                continue
            if psfmode == "fixed":
                h = np.broadcast_to(h0, (T, P))
            else:
                h = np.array([psf_vector(psf, off, fy[l, y, x], fx[l, y, x]) for l in range(T)])
            C = Ci[qy, qx]
            w = np.einsum("tij,tj->ti", C, h)
            r = cube[np.arange(T)[:, None], qy[:, None] + off[:, 0], qx[:, None] + off[:, 1]]
            a[y, x] = (w * h).sum()
            b[y, x] = (w * (r - M[qy, qx])).sum()
    if return_stats:
        return a, b, dict(mean=M, cinv=Ci, rho=R, ok=ok)
    return a, b


# ------------------------------------------------------------------ synthetic data
def airy_psf(n, fwhm, peak=1.0):
    """Airy-like spot, centre at pixel n//2."""
    from scipy.special import j1

    y, x = np.indices((n, n)) - n // 2
    r = np.hypot(y, x) * (1.028993969962188 / fwhm) * np.pi
    r[r == 0] = 1e-9
    return peak * (2 * j1(r) / r) ** 2


def spot(H, W, cy, cx, fwhm):
    from scipy.special import j1

    y, x = np.indices((H, W))
    r = np.hypot(y - cy, x - cx) * (1.028993969962188 / fwhm) * np.pi
    r = np.maximum(r, 1e-9)
    return (2 * j1(r) / r) ** 2


def synthetic(seed, T, H, W, planets, fwhm=4.8, rot=55.0, pa0=-17.3, level=100.0, white=0.5):
    """ADI sequence: halo + speckles that decorrelate over time + white noise + planets.

    planets: list of (row, col, flux); flux multiplies a spot of peak 1 placed at
    the derotated-map position (row, col).  Returns cube f32, angles f64.
    """
    from scipy.ndimage import gaussian_filter

    g = np.random.default_rng(seed)
    angles = pa0 + rot * np.sort(g.uniform(0.003, 0.997, T))
    y, x = np.indices((H, W))
    cy, cx = H // 2, W // 2
    rad = np.hypot(y - cy, x - cx)
    halo = level * np.exp(-rad / (0.22 * max(H, W))) + 0.02 * level
    ncomp = 24
    comp = np.array([gaussian_filter(g.normal(size=(H, W)), fwhm / 2.355) for _ in range(ncomp)])
    comp /= comp.std((1, 2), keepdims=True)
    amp = np.zeros((T, ncomp))
    amp[0] = g.normal(size=ncomp)
    for t in range(1, T):
        amp[t] = 0.5 * amp[t - 1] + np.sqrt(1 - 0.25) * g.normal(size=ncomp)
    speck = np.tensordot(amp, comp, 1) / np.sqrt(ncomp)
    static = gaussian_filter(g.normal(size=(H, W)), fwhm / 2.355)
    static /= static.std()
    cube = halo * (1 + 0.25 * static + 0.08 * speck)
    cube += white * np.sqrt(halo / level * 4 + 1) * g.normal(size=(T, H, W))
    for pr, pc, f in planets:
        ry, rx = positions(H, W, angles)
        dy, dx = pr - cy, pc - cx
        th = np.deg2rad(angles)
        py = cy + dy * np.cos(th) - dx * np.sin(th)
        px = cx + dx * np.cos(th) + dy * np.sin(th)
        for t in range(T):
            cube[t] += f * spot(H, W, py[t], px[t], fwhm)
    return cube.astype(np.float32), angles
