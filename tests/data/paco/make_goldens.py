#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the sequences and the golden maps of this folder.

usage: make_goldens.py OUT [--betapic DIR]

paper_*.npy come from the model in paco_model.py. Before anything is written, the model is compared with
vip_hci.invprob.paco.FastPACO on the same data, in vip-hci's own convention and with the paper's formulas put into
vip-hci: the maps agree to 1e-11 or the program stops. vip_*.npy are what vip-hci returns; PACOCalc is called, because
it returns a and b before they are converted to S/N and flux.

--betapic: a folder with naco_betapic_cube.fits, naco_betapic_pa.fits and naco_betapic_psf.fits of the public repository
carlgogo/VIP_extras (commit a7ec7ac9aeab). The case betapic60 that is made of them is third-party data and no part of
this repository.

Made with vip_hci 2.1.1, numpy 2.4.6 and scipy 1.17.1 on Python 3.11.
"""

import argparse
import json
import os
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import paco_model as R  # noqa: E402


def peer(cube, angles, psf, radius, subpixel, formulas="own"):
    import vip_hci.invprob.paco as P

    keep = P.sample_covariance, P.shrinkage_factor
    if formulas == "paper":
        P.sample_covariance = lambda r, m, T: (r - m).T @ (r - m) / T

        def rho(S, T):
            d, s = (np.diag(S) ** 2).sum(), (S * S).sum()
            return max(min((s + np.trace(S) ** 2 - 2 * d) / ((T + 1) * (s - d)), 1), 0)

        P.shrinkage_factor = rho
    try:
        n = cube.shape[1]
        f = P.FastPACO(cube.astype(float), np.asarray(angles, float), psf, fwhm=radius, pixscale=1)
        g0, g1 = np.meshgrid(np.arange(n), np.arange(n))
        a, b = f.PACOCalc(
            np.column_stack((g0.ravel(), g1.ravel())), use_subpixel_psf_astrometry=subpixel, cpu=1
        )
    finally:
        P.sample_covariance, P.shrinkage_factor = keep
    return a.reshape(n, n), b.reshape(n, n)


def normalised(psf):
    from vip_hci.fm import normalize_psf

    return np.ascontiguousarray(normalize_psf(psf, fwhm="fit", model="airy", verbose=False))


def save(d, name, x, dtype=None):
    x = np.ascontiguousarray(x if dtype is None else np.asarray(x, dtype))
    np.save(os.path.join(d, name + ".npy"), x)


def near_tie(H, W, angles, eps, rounding):
    """Returns whether some frame's position is within eps of the rounding boundary."""
    ry, rx = R.positions(H, W, angles)
    o = 0.5 if rounding == "nearest" else 0.0
    fr = lambda v: np.abs((v + o) - np.round(v + o))
    return ((fr(ry) < eps) | (fr(rx) < eps)).any(0)


def case(out, name, cube, angles, psf_raw, radius, planets, use_peer, note):
    d = os.path.join(out, name)
    os.makedirs(d, exist_ok=True)
    T, H, W = cube.shape
    psf = normalised(psf_raw)
    psf32 = psf.astype(np.float32)
    save(d, "cube", cube, np.float32)
    save(d, "angles", angles, np.float64)
    save(d, "psf", psf32)
    psf = psf32.astype(float)  # every result below starts from the stored float32 data
    info = dict(
        T=T,
        H=H,
        W=W,
        radius=radius,
        P=len(R.disc(radius)),
        planets=planets,
        note=note,
        centre=[H // 2, W // 2],
        peer=None,
    )
    if use_peer:
        import vip_hci

        dev = {}
        # the peer renormalises its PSF; feeding it the stored PSF again changes it by
        # a factor close to 1, so hand it the identical array by bypassing that step
        import vip_hci.invprob.paco as P

        keep = P.normalize_psf
        P.normalize_psf = lambda p, **k: p
        try:
            for sub, tag in ((False, "fixed"), (True, "shift")):
                for form in ("own", "paper"):
                    a, b = peer(cube, angles, psf, radius, sub, form)
                    ra, rb = R.paco(
                        cube,
                        angles,
                        psf,
                        radius,
                        conv="vip" if form == "own" else "paper",
                        rounding="trunc",
                        psfmode=tag,
                        margin=1,
                    )
                    assert (np.isfinite(a) == np.isfinite(ra)).all()
                    ok = np.isfinite(a)
                    e = max(np.abs(a / ra - 1)[ok].max(), np.abs(b - rb)[ok].max() / np.abs(b[ok]).max())
                    dev[f"{tag}/{form}"] = float(e)
                    assert e < 1e-11, (name, tag, form, e)
                    if form == "own":
                        save(d, f"vip_{tag}_a", a)
                        save(d, f"vip_{tag}_b", b)
        finally:
            P.normalize_psf = keep
        info["peer"] = "vip_hci " + vip_hci.__version__
        info["model_minus_peer_max_rel"] = dev
    for tag in ("fixed", "shift"):
        a, b, st = R.paco(
            cube, angles, psf, radius, conv="paper", rounding="nearest", psfmode=tag, return_stats=True
        )
        save(d, f"paper_{tag}_a", a)
        save(d, f"paper_{tag}_b", b)
        if tag == "shift":
            snr = b / np.sqrt(a)
            info["planets_found"] = []
            for r, c, f in planets:
                r0, c0 = int(round(r)), int(round(c))
                w = snr[r0 - 2 : r0 + 3, c0 - 2 : c0 + 3]
                if np.isfinite(w).any():
                    j = np.unravel_index(np.nanargmax(w), w.shape)
                    q = (r0 - 2 + int(j[0]), c0 - 2 + int(j[1]))
                    info["planets_found"].append(
                        dict(
                            true=[r, c, f],
                            peak=list(q),
                            snr=float(snr[q]),
                            flux_in_peak_units=float((b / a)[q] * psf.max()),
                            sigma=float(1 / np.sqrt(a[q]) * psf.max()),
                        )
                    )
    # condition numbers at a handful of patch centres
    off = R.disc(radius)
    ys, xs = np.nonzero(st["ok"])
    pick = np.linspace(0, len(ys) - 1, 5).astype(int)
    info["cond_C_picked"] = []
    for i in pick:
        y, x = int(ys[i]), int(xs[i])
        C = R.statistics(np.asarray(cube, float)[:, y + off[:, 0], x + off[:, 1]])[3]
        info["cond_C_picked"].append(float(np.linalg.cond(C)))
    for rnd in ("nearest", "trunc"):
        save(d, f"tie_{rnd}", near_tie(H, W, angles, 2e-4, rnd))
    info["tie_fraction_2e-4"] = {
        r: float(near_tie(H, W, angles, 2e-4, r).mean()) for r in ("nearest", "trunc")
    }
    with open(os.path.join(d, "case.json"), "w") as fh:
        json.dump(info, fh, indent=1)
    print(json.dumps(info, indent=1), flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("out")
    ap.add_argument("--betapic")
    o = ap.parse_args()
    psf = R.airy_psf(21, 4.8)
    pl = [(41.0, 28.0, 3.0), (14.4, 12.7, 3.0), (20.0, 41.0, 2.0)]
    cube, ang = R.synthetic(20180618, 50, 50, 50, pl, rot=110.0)
    case(
        out=o.out,
        name="syn50",
        cube=cube,
        angles=ang,
        psf_raw=psf,
        radius=4,
        planets=pl,
        use_peer=True,
        note="even square, T close to P: the everyday case",
    )
    pl = [(54.0, 30.0, 4.0), (15.0, 18.5, 4.0)]
    cube, ang = R.synthetic(7, 20, 64, 64, pl, rot=120.0)
    case(
        out=o.out,
        name="syn64_shortT",
        cube=cube,
        angles=ang,
        psf_raw=psf,
        radius=4,
        planets=pl,
        use_peer=True,
        note="T=20 < P=49: S is singular, only the shrinkage makes C invertible",
    )
    pl = [(34.0, 20.0, 1.2)]
    cube, ang = R.synthetic(99, 120, 40, 40, pl, rot=70.0)
    case(
        out=o.out,
        name="syn40_longT",
        cube=cube,
        angles=ang,
        psf_raw=psf,
        radius=3,
        planets=pl,
        use_peer=True,
        note="T=120 > P=29 (radius 3)",
    )
    pl = [(32.0, 39.0, 4.0)]
    cube, ang = R.synthetic(41, 30, 45, 56, pl, rot=90.0)
    cube[:, :3, :] = np.nan
    cube[4, 20, 40] = np.nan
    cube[:, 30, 15] = 0.0
    case(
        out=o.out,
        name="syn45x56_bad",
        cube=cube,
        angles=ang,
        psf_raw=psf,
        radius=4,
        planets=pl,
        use_peer=False,
        note="non-square, odd height, NaN rows 0..2 in all frames, one NaN in one frame, one dead "
        "(constant) pixel. The peer cannot run this one: model only",
    )
    if o.betapic:
        from astropy.io import fits

        get = lambda n: np.asarray(fits.getdata(os.path.join(o.betapic, n)))
        cube = get("naco_betapic_cube.fits").astype(np.float32)
        c = cube.shape[1] // 2  # 101x101, star on pixel 50
        cube = np.ascontiguousarray(cube[:, c - 30 : c + 30, c - 30 : c + 30])  # star on pixel 30 of 60
        ang = get("naco_betapic_pa.fits").astype(np.float64).ravel()
        p = get("naco_betapic_psf.fits").astype(np.float64)
        p = p[p.shape[0] // 2 - 10 : p.shape[0] // 2 + 11, p.shape[1] // 2 - 10 : p.shape[1] // 2 + 11]
        case(
            out=o.out,
            name="betapic60",
            cube=cube,
            angles=ang,
            psf_raw=p,
            radius=4,
            planets=[],
            use_peer=True,
            note="real: VLT/NACO L' beta Pictoris (Absil et al. 2013), central 60x60 of the public 61x101x101 cube",
        )


if __name__ == "__main__":
    main()
