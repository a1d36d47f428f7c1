#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the movies and the golden spots of this folder.

usage: make_goldens.py OUT [THIRD_PARTY]

Everything in OUT is drawn with fixed seeds from NumPy's PCG64, so that another run with the same packages gives the
same bytes. Only formats/fmt_u16_ome.tif differs, because it holds a new UUID. THIRD_PARTY is a folder with pictures
that other people made (see ../third_party.txt): their golden spots are written beside them, and what was asked of the
detectors becomes part of OUT/manifest.json.

Made with numpy 2.4.6, scipy 1.17.1, scikit-image 0.26.0, tifffile 2026.3.3, imagecodecs, pandas 3.1.1 and
trackpy 0.7 on Python 3.11.
"""

import csv, json, os, sys
import numpy as np
from scipy import ndimage as ndi
from scipy.special import erf
from skimage.feature import blob_log, blob_dog, peak_local_max
from skimage.feature.blob import _prune_blobs


# ----------------------------------------------------------------- image formation
def spot(shape, y, x, sigma, n):
    """Returns n photons of a Gaussian PSF, integrated over each unit pixel (pixel i covers i-.5..i+.5)."""
    H, W = shape
    s = sigma * np.sqrt(2.0)
    ey = 0.5 * (erf((np.arange(H) + 0.5 - y) / s) - erf((np.arange(H) - 0.5 - y) / s))
    ex = 0.5 * (erf((np.arange(W) + 0.5 - x) / s) - erf((np.arange(W) - 0.5 - x) / s))
    return n * ey[:, None] * ex[None, :]


def crlb(sigma, n, bg, read, half=12):
    """Returns the root of the Cramer-Rao bound on y for a spot at a random sub-pixel position (numeric Fisher
    information; y, x, n and bg are unknown; variance = mean + read^2)."""
    acc = []
    for fy, fx in ((0.0, 0.0), (0.25, 0.4), (0.5, 0.5)):
        sh = (2 * half + 1,) * 2
        p0 = np.array([half + fy, half + fx, n, bg])
        f = lambda p: spot(sh, p[0], p[1], sigma, p[2]) + p[3]
        mu = f(p0)
        J = []
        for i in range(4):
            h = 1e-4 * max(1.0, p0[i])
            q = p0.copy()
            q[i] += h
            r = p0.copy()
            r[i] -= h
            J.append(((f(q) - f(r)) / (2 * h)).ravel())
        J = np.array(J)
        F = (J / (mu.ravel() + read**2)) @ J.T
        acc.append(np.linalg.inv(F)[0, 0])
    return float(np.sqrt(np.mean(acc)))


def camera(rng, electrons, read, gain, offset, dtype):
    """Adds Poisson shot noise and Gaussian read noise, with a gain in counts per electron."""
    v = rng.poisson(electrons).astype(np.float64) + rng.normal(0, read, electrons.shape)
    v = v * gain + offset
    if np.issubdtype(dtype, np.integer):
        return np.clip(np.rint(v), 0, np.iinfo(dtype).max).astype(dtype)
    return v.astype(dtype)


def spaced(rng, n, H, W, margin, sep):
    pts = []
    for _ in range(200000):
        p = rng.uniform([margin, margin], [H - 1 - margin, W - 1 - margin])
        if all((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 >= sep * sep for q in pts):
            pts.append(p)
            if len(pts) == n:
                break
    return np.array(pts)


def drift_movie(
    seed,
    T,
    H,
    W,
    n,
    sigma,
    photons,
    bg,
    read,
    gain,
    offset,
    dtype,
    step=0.4,
    drift=(0.10, -0.07),
    margin=4.0,
    sep=8.0,
    blink=0.0,
    sigma_range=None,
):
    """Makes a movie of Brownian particles with drift; a particle is reflected at the margin and never leaves the
    frame."""
    rng = np.random.default_rng(seed)
    p = spaced(rng, n, H, W, margin, sep)
    n = len(p)
    sig = rng.uniform(*sigma_range, n) if sigma_range else np.full(n, float(sigma))
    amp = photons * rng.uniform(0.8, 1.2, n) * (sig / np.mean(sig)) ** 2
    mov, truth = [], []
    for t in range(T):
        img = np.full((H, W), float(bg))
        on = rng.random(n) >= blink
        for i in range(n):
            if on[i]:
                img += spot((H, W), p[i, 0], p[i, 1], sig[i], amp[i])
                truth.append((t, p[i, 0], p[i, 1], sig[i], amp[i] * gain, i))
        mov.append(camera(rng, img, read, gain, offset, dtype))
        p = p + rng.normal(0, step, p.shape) + np.asarray(drift)
        for a, L in ((0, H), (1, W)):
            lo, hi = margin, L - 1 - margin
            p[:, a] = np.where(p[:, a] < lo, 2 * lo - p[:, a], p[:, a])
            p[:, a] = np.where(p[:, a] > hi, 2 * hi - p[:, a], p[:, a])
    return np.stack(mov), truth


def merge_movie(seed, T, H, W, sigma, photons, bg, read, gain, offset, dtype, pairs=6, dmax=12.0):
    """Makes pairs whose distance falls linearly from dmax and rises again. An even T keeps the two particles from ever
    coinciding (when they did, trackpy.link itself gave different answers from run to run)."""
    rng = np.random.default_rng(seed)
    c = spaced(rng, pairs, H, W, 12, 26)
    ang = rng.uniform(0, np.pi, len(c))
    mov, truth = [], []
    for t in range(T):
        d = dmax * abs(1 - 2.0 * t / (T - 1))
        img = np.full((H, W), float(bg))
        for i in range(len(c)):
            for s, j in ((+0.5, 0), (-0.5, 1)):
                y = c[i, 0] + s * d * np.sin(ang[i])
                x = c[i, 1] + s * d * np.cos(ang[i])
                img += spot((H, W), y, x, sigma, photons)
                truth.append((t, y, x, sigma, photons * gain, 2 * i + j))
        mov.append(camera(rng, img, read, gain, offset, dtype))
    return np.stack(mov), truth


def border_movie(seed, T, H, W, sigma, photons, bg, read, gain, offset, dtype):
    """Makes particles in the corners, on the edges, and two that leave the field."""
    rng = np.random.default_rng(seed)
    p = np.array(
        [
            [0, 0],
            [0, W - 1],
            [H - 1, 0],
            [H - 1, W - 1],
            [0.3, W / 2 + 0.2],
            [H - 1.4, W / 3],
            [H / 2, 0.6],
            [H / 2 + 0.3, W - 1.2],
            [H / 4, 8.0],
            [3 * H / 4, W - 9.0],
        ]
    )
    v = np.zeros_like(p)
    v[8] = (0, -1.5)
    v[9] = (0, 1.5)
    mov, truth = [], []
    for t in range(T):
        img = np.full((H, W), float(bg))
        for i in range(len(p)):
            y, x = p[i] + t * v[i]
            img += spot((H, W), y, x, sigma, photons)
            if -0.5 <= y < H - 0.5 and -0.5 <= x < W - 0.5:
                truth.append((t, y, x, sigma, photons * gain, i))
        mov.append(camera(rng, img, read, gain, offset, dtype))
    return np.stack(mov), truth


# ----------------------------------------------------------------- golden detectors
def full_scale(dtype):
    return float(np.iinfo(dtype).max) if np.issubdtype(dtype, np.integer) else 1.0


def ladder_log(smin, smax, num):
    return np.linspace(smin, smax, num)


def ladder_dog(smin, smax, ratio):
    k = int(np.log(smax / smin) / np.log(ratio) + 1)
    return np.array([smin * ratio**i for i in range(k + 1)])


def cube_log(img, sig):
    return np.stack([-ndi.gaussian_laplace(img, s) * s * s for s in sig], -1)


def cube_dog(img, sig, ratio):
    g = [ndi.gaussian_filter(img, s, mode="reflect", truncate=4.0) for s in sig]
    return np.stack([g[i] - g[i + 1] for i in range(len(sig) - 1)], -1) / (ratio - 1)


def peaks(cube, sig, thr, thr_rel, border):
    pk = peak_local_max(
        cube,
        threshold_abs=thr,
        threshold_rel=thr_rel,
        exclude_border=(border, border, 0),
        footprint=np.ones((3, 3, 3)),
    )
    return [(int(y), int(x), int(k), float(sig[k]), float(cube[y, x, k])) for y, x, k in pk]


def disc_overlap(a, b):
    """Overlap of discs of radius sqrt(2)*sigma as a fraction of the smaller disc."""
    r1, r2 = a[2] * np.sqrt(2), b[2] * np.sqrt(2)
    d = float(np.hypot(a[0] - b[0], a[1] - b[1]))
    if d > r1 + r2:
        return 0.0
    if d <= abs(r1 - r2):
        return 1.0
    c1 = np.clip((d * d + r1 * r1 - r2 * r2) / (2 * d * r1), -1, 1)
    c2 = np.clip((d * d + r2 * r2 - r1 * r1) / (2 * d * r2), -1, 1)
    k = abs((-d + r1 + r2) * (d - r2 + r1) * (d + r2 - r1) * (d + r1 + r2))
    return float(
        (r1 * r1 * np.arccos(c1) + r2 * r2 * np.arccos(c2) - 0.5 * np.sqrt(k)) / (np.pi * min(r1, r2) ** 2)
    )


def prune_stable(pk, overlap):
    """Applies the pruning rule of include/cleave/blob.h: larger sigma first, then stronger response, then smaller y, x;
    a blob is kept unless it overlaps an already kept one by more than `overlap`."""
    kept = []
    for b in sorted(pk, key=lambda b: (-b[3], -b[4], b[0], b[1])):
        if all(disc_overlap((b[0], b[1], b[3]), (c[0], c[1], c[3])) <= overlap for c in kept):
            kept.append(b)
    return sorted(kept, key=lambda b: (b[0], b[1], b[2]))


def write_csv(path, head, rows, fmt="%.9g"):
    with open(path, "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(head)
        for r in rows:
            w.writerow([v if isinstance(v, (int, np.integer, str)) else fmt % v for v in r])


def golden(out, name, movie, params, manifest, truth=None):
    """Detects frame by frame with skimage and writes <name>_{log,dog}_{peaks,skimage,stable}.csv."""
    sc = full_scale(movie.dtype)
    info = dict(shape=list(movie.shape), dtype=str(movie.dtype), full_scale=sc)
    for method, P in params.items():
        pk_rows, st_rows, n_skimage, same, order_dep = [], [], 0, 0, 0
        for t, fr in enumerate(movie):
            img = fr.astype(np.float64) / sc
            kw = dict(
                threshold=P.get("threshold"),
                threshold_rel=P.get("threshold_rel"),
                overlap=P["overlap"],
                exclude_border=P["exclude_border"],
            )
            if method == "log":
                sig = ladder_log(P["min_sigma"], P["max_sigma"], P["num_sigma"])
                cube = cube_log(img, sig)
                sk = blob_log(img, P["min_sigma"], P["max_sigma"], P["num_sigma"], **kw)
            else:
                sig = ladder_dog(P["min_sigma"], P["max_sigma"], P["sigma_ratio"])
                cube = cube_dog(img, sig, P["sigma_ratio"])
                sk = blob_dog(img, P["min_sigma"], P["max_sigma"], P["sigma_ratio"], **kw)
            pk = peaks(cube, sig, kw["threshold"], kw["threshold_rel"], P["exclude_border"])
            if pk:  # our list of peaks, pruned by skimage's own function, must equal skimage's answer
                chk = _prune_blobs(np.array([(p[0], p[1], p[3]) for p in pk], float), P["overlap"])
                assert len(chk) == len(sk) and np.allclose(np.sort(chk, 0), np.sort(sk, 0)), name
            st = prune_stable(pk, P["overlap"])
            a = {tuple(np.round(r, 6)) for r in sk}
            b = {(float(r[0]), float(r[1]), round(r[3], 6)) for r in st}
            same += len(a & b)
            order_dep += len(a ^ b)
            pk_rows += [(t, p[0], p[1], p[2], p[3], p[4] * sc) for p in sorted(pk)]
            n_skimage += len(sk)
            st_rows += [(t, p[0], p[1], p[3], p[4] * sc) for p in st]
        write_csv(f"{out}/{name}_{method}_peaks.csv", ["frame", "y", "x", "k", "sigma", "response"], pk_rows)
        write_csv(f"{out}/{name}_{method}_stable.csv", ["frame", "y", "x", "sigma", "response"], st_rows)
        info[method] = dict(
            P,
            threshold_raw=(P["threshold"] * sc if P.get("threshold") is not None else None),
            n_peaks=len(pk_rows),
            n_skimage=n_skimage,
            n_stable=len(st_rows),
            in_both=same,
            in_one_only=order_dep,
        )
    if truth is not None:
        write_csv(f"{out}/{name}_truth.csv", ["frame", "y", "x", "sigma", "mass", "particle"], truth)
        info["n_truth"] = len(truth)
    manifest[name] = info


def LOG(smin, smax, num, thr=None, rel=None, overlap=0.5, border=0):
    return dict(
        min_sigma=smin,
        max_sigma=smax,
        num_sigma=num,
        threshold=thr,
        threshold_rel=rel,
        overlap=overlap,
        exclude_border=border,
    )


def DOG(smin, smax, ratio=1.6, thr=None, rel=None, overlap=0.5, border=0):
    return dict(
        min_sigma=smin,
        max_sigma=smax,
        sigma_ratio=ratio,
        threshold=thr,
        threshold_rel=rel,
        overlap=overlap,
        exclude_border=border,
    )


# ----------------------------------------------------------------- file-format samples
def formats(out):
    """Writes one 3 x 20 x 26 movie in many forms of TIFF; every fmt_*.tif must decode to fmt_<dtype>.npy."""
    import tifffile

    rng = np.random.default_rng(77)
    d = f"{out}/formats"
    os.makedirs(d, exist_ok=True)
    u16 = rng.integers(0, 65536, (3, 20, 26), dtype=np.uint16)
    u8 = (u16 >> 8).astype(np.uint8)
    f32 = (u16 / 65535.0).astype(np.float32)
    i16 = (u16.astype(np.int32) - 32768).astype(np.int16)
    for k, a in (("u16", u16), ("u8", u8), ("f32", f32), ("i16", i16)):
        np.save(f"{d}/fmt_{k}.npy", a)
    W = tifffile.imwrite
    kw = dict(photometric="minisblack", metadata=None)
    W(f"{d}/fmt_u16_le.tif", u16, byteorder="<", **kw)
    W(f"{d}/fmt_u16_be.tif", u16, byteorder=">", **kw)
    W(f"{d}/fmt_u16_bigtiff.tif", u16, bigtiff=True, **kw)
    W(f"{d}/fmt_u16_bigtiff_be.tif", u16, bigtiff=True, byteorder=">", **kw)
    W(f"{d}/fmt_u16_strips7.tif", u16, rowsperstrip=7, **kw)
    W(f"{d}/fmt_u16_tiled16.tif", u16, tile=(16, 16), **kw)
    W(f"{d}/fmt_u16_deflate.tif", u16, compression="zlib", **kw)
    W(f"{d}/fmt_u16_deflate_pred.tif", u16, compression="zlib", predictor=True, **kw)
    W(f"{d}/fmt_u16_imagej.tif", u16, imagej=True, metadata={"axes": "TYX"})
    W(f"{d}/fmt_u16_ome.tif", u16, ome=True, metadata={"axes": "TYX"}, photometric="minisblack")
    W(f"{d}/fmt_u16_lzw.tif", u16, compression="lzw", **kw)
    W(f"{d}/fmt_u16_lzw_pred.tif", u16, compression="lzw", predictor=True, **kw)
    W(f"{d}/fmt_u8_packbits.tif", u8, compression="packbits", **kw)
    W(f"{d}/fmt_u8_le.tif", u8, **kw)
    W(f"{d}/fmt_f32_le.tif", f32, **kw)
    W(f"{d}/fmt_i16_le.tif", i16, **kw)
    W(f"{d}/fmt_f32_be.tif", f32, byteorder=">", **kw)
    W(f"{d}/fmt_u8_miniswhite.tif", u8, photometric="miniswhite", metadata=None)  # inverted meaning
    np.save(f"{d}/fmt_f64_fortran.npy", np.asfortranarray(f32.astype(np.float64)))
    np.save(f"{d}/fmt_u16_be.npy", u16.astype(">u2"))
    # inputs that must be refused with one clear line, or read as far as they go
    b = open(f"{d}/fmt_u16_strips7.tif", "rb").read()
    open(f"{d}/bad_truncated.tif", "wb").write(b[: len(b) * 6 // 10])
    open(f"{d}/bad_header_only.tif", "wb").write(b[:8])
    open(f"{d}/bad_empty.tif", "wb").write(b"")
    loop = bytearray(open(f"{d}/fmt_u16_le.tif", "rb").read())
    import struct  # make the IFD chain a cycle: last IFD -> first

    o = struct.unpack_from("<I", loop, 4)[0]
    first = o
    while True:
        n = struct.unpack_from("<H", loop, o)[0]
        nx = o + 2 + 12 * n
        v = struct.unpack_from("<I", loop, nx)[0]
        if v == 0:
            struct.pack_into("<I", loop, nx, first)
            break
        o = v
    open(f"{d}/bad_ifd_cycle.tif", "wb").write(bytes(loop))
    W(f"{d}/bad_rgb.tif", np.stack([u8[0]] * 3, -1), photometric="rgb", metadata=None)
    n = open(f"{d}/fmt_u16.npy", "rb").read()
    open(f"{d}/bad_truncated.npy", "wb").write(n[: len(n) // 2])
    c = f32.copy()
    c[1, 5, 5] = np.nan
    c[2] = np.inf
    np.save(f"{d}/bad_nan.npy", c)
    np.save(f"{d}/bad_complex.npy", f32[:1].astype(np.complex64))
    np.save(f"{d}/bad_4d.npy", u8[None])


# ----------------------------------------------------------------- linking goldens
def link_golden(out, name, truth, T, search, memory, drop, seed, manifest):
    """Links detections with missing rows; trackpy.link divides them into tracks."""
    import pandas as pd
    import trackpy as tp

    tp.quiet()
    rng = np.random.default_rng(seed)
    rows = [(r[0], r[1], r[2], r[5]) for r in truth if rng.random() >= drop]
    df = pd.DataFrame(rows, columns=["frame", "y", "x", "true_particle"])
    lk = tp.link(df, search_range=search, memory=memory)
    write_csv(
        f"{out}/{name}_link.csv",
        ["frame", "y", "x", "particle", "true_particle"],
        [(int(r.frame), r.y, r.x, int(r.particle), int(r.true_particle)) for r in lk.itertuples()],
    )
    manifest[name + "_link"] = dict(
        search_range=search, memory=memory, n_spots=len(lk), n_tracks=int(lk.particle.nunique())
    )


def third_party(out, M):
    """Reads pictures of scikit-image, and of trackpy's tests if OUT has them."""
    from skimage import data

    coins = data.coins()[None]
    np.save(f"{out}/real_coins_u8.npy", coins)
    golden(out, "real_coins_u8", coins, dict(log=LOG(5, 30, 6, thr=0.1), dog=DOG(8, 40, thr=0.05)), M)
    hub = np.ascontiguousarray(data.hubble_deep_field()[:, :500, 1])[None]
    np.save(f"{out}/real_hubble_left_u8.npy", hub)
    golden(out, "real_hubble_left_u8", hub, dict(log=LOG(1, 10, 10, thr=0.1), dog=DOG(1, 10, thr=0.08)), M)
    if os.path.exists(f"{out}/real_stuck.tif"):
        import tifffile

        golden(
            out,
            "real_stuck",
            tifffile.imread(f"{out}/real_stuck.tif"),
            dict(log=LOG(1, 3, 5, thr=8 / 65535), dog=DOG(1, 3, thr=6 / 65535)),
            M,
        )
    if os.path.exists(f"{out}/real_bulk_water_u8.npy"):
        bw = np.load(f"{out}/real_bulk_water_u8.npy")
        golden(
            out,
            "real_bulk_water_u8",
            bw[None] if bw.ndim == 2 else bw,
            dict(log=LOG(2, 5, 7, thr=5 / 255), dog=DOG(2, 6, thr=4 / 255)),
            M,
        )


def main():
    out = sys.argv[1]
    M = {}
    cam = dict(read=1.6, gain=2.0, offset=100.0)
    # A: an ordinary microscope movie
    mv, tr = drift_movie(11, 24, 128, 160, 40, 1.5, 1500, 20, dtype=np.uint16, **cam)
    np.save(f"{out}/a_drift_u16.npy", mv)
    golden(
        out, "a_drift_u16", mv, dict(log=LOG(1, 3, 5, thr=40 / 65535), dog=DOG(1, 3, thr=25 / 65535)), M, tr
    )
    M["a_drift_u16"]["crlb_px"] = crlb(1.5, 1500, 20, 1.6)
    M["a_drift_u16"]["camera"] = cam
    link_golden(out, "a_drift", tr, 24, 5.0, 2, 0.08, 5, M)
    # B: float, odd sizes, relative threshold (the seed's default parameters)
    mv, tr = drift_movie(
        12, 6, 97, 131, 25, 2.0, 4000, 30, dtype=np.float32, read=1.6, gain=1 / 4096, offset=0.02
    )
    np.save(f"{out}/b_odd_f32.npy", mv)
    golden(out, "b_odd_f32", mv, dict(log=LOG(1, 3, 5, rel=0.2), dog=DOG(1, 3, rel=0.2)), M, tr)
    M["b_odd_f32"]["crlb_px"] = crlb(2.0, 4000, 30, 1.6)
    # C: 8 bit and saturated
    mv, tr = drift_movie(13, 6, 64, 80, 10, 1.8, 6000, 10, dtype=np.uint8, read=1.0, gain=1.5, offset=5)
    np.save(f"{out}/c_saturated_u8.npy", mv)
    golden(out, "c_saturated_u8", mv, dict(log=LOG(1, 4, 7, thr=0.15), dog=DOG(1, 4, thr=0.1)), M, tr)
    # D: pairs that merge and part
    mv, tr = merge_movie(14, 16, 96, 112, 1.6, 2500, 20, dtype=np.uint16, **cam)
    np.save(f"{out}/d_merge_u16.npy", mv)
    golden(
        out,
        "d_merge_u16",
        mv,
        dict(log=LOG(1, 3, 9, thr=60 / 65535), dog=DOG(1, 3, 1.3, thr=50 / 65535)),
        M,
        tr,
    )
    link_golden(out, "d_merge", tr, 16, 3.0, 1, 0.05, 6, M)
    # E: corners, edges, leaving the field; with and without exclude_border
    mv, tr = border_movie(15, 8, 60, 72, 1.5, 2500, 15, dtype=np.uint16, **cam)
    np.save(f"{out}/e_border_u16.npy", mv)
    golden(
        out, "e_border_u16", mv, dict(log=LOG(1, 3, 5, thr=60 / 65535), dog=DOG(1, 3, thr=40 / 65535)), M, tr
    )
    m2 = {}
    golden(out, "e_border4_u16", mv, dict(log=LOG(1, 3, 5, thr=60 / 65535, border=4)), m2)
    M.update(m2)
    # F: many sizes
    mv, tr = drift_movie(
        16,
        3,
        140,
        150,
        22,
        0,
        20000,
        20,
        dtype=np.float32,
        read=1.0,
        gain=1 / 1024,
        offset=0.0,
        sigma_range=(1.2, 7.0),
        sep=24,
        margin=8,
    )
    np.save(f"{out}/f_scales_f32.npy", mv)
    golden(out, "f_scales_f32", mv, dict(log=LOG(1, 8, 15, thr=0.05), dog=DOG(1, 10, 1.6, thr=0.03)), M, tr)
    # G: weak
    mv, tr = drift_movie(17, 12, 96, 96, 24, 1.4, 160, 12, dtype=np.uint16, **cam)
    np.save(f"{out}/g_weak_u16.npy", mv)
    golden(
        out, "g_weak_u16", mv, dict(log=LOG(1, 2.5, 4, thr=10 / 65535), dog=DOG(1, 3, thr=7 / 65535)), M, tr
    )
    M["g_weak_u16"]["crlb_px"] = crlb(1.4, 160, 12, 1.6)
    # Z: degenerate frames among good ones: zeros, constant, one bright pixel, all saturated
    z = np.zeros((6, 48, 40), np.uint16)
    z[1] = 1000
    z[2, 20, 17] = 30000
    z[3] = 65535
    z[4] = mv[0, :48, :40]
    z[5] = np.indices((48, 40)).sum(0) * 50
    np.save(f"{out}/z_degenerate_u16.npy", z)
    golden(out, "z_degenerate_u16", z, dict(log=LOG(1, 3, 5, thr=16 / 65535)), M)
    # skimage reports false spots on the saturated and constant frames (its LoG kernels do not sum to zero). The spots
    # that we expect are in *_expected.csv: none in frames 0, 1 and 3 (frame 5 is left open).
    keep = [
        r for r in csv.reader(open(f"{out}/z_degenerate_u16_log_stable.csv")) if r[0] in ("frame", "2", "4")
    ]
    csv.writer(open(f"{out}/z_degenerate_u16_expected.csv", "w", newline=""), lineterminator="\n").writerows(
        keep
    )
    for what in ("peaks", "stable"):
        os.remove(f"{out}/z_degenerate_u16_log_{what}.csv")
    if len(sys.argv) > 2:
        third_party(sys.argv[2], M)
    formats(out)
    json.dump(M, open(f"{out}/manifest.json", "w"), indent=1)
    for k, v in M.items():
        print(
            k,
            {
                m: (v[m]["n_peaks"], v[m]["n_skimage"], v[m]["n_stable"], v[m]["in_one_only"])
                for m in ("log", "dog")
                if m in v
            },
            v.get("n_truth"),
            v.get("crlb_px"),
        )


if __name__ == "__main__":
    main()
