#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the library, the spectra and the goldens of this folder, with rvspecfit as the reference.

usage: OMP_NUM_THREADS=1 make_goldens.py lib      the library of templates: lib/ and work/
       OMP_NUM_THREADS=1 make_goldens.py data     the coadded spectra: data/
       OMP_NUM_THREADS=1 make_goldens.py stages   results of single steps: stages/
       OMP_NUM_THREADS=1 make_goldens.py fits     whole fits by rvs_desi_fit: fits/
       OMP_NUM_THREADS=1 make_goldens.py best     the best fit from several starts: fits/best_known_*.csv

In this order; everything is written beside this program. work/ ($SPECFIT_WORK) holds files in rvspecfit's own formats;
it is large and not kept. The coadded spectra and the models of the fits are kept compressed (gzip -9n). All of it is
made up: strong lines stand at their true vacuum wavelengths, weak ones at random, and the physics is a toy.

Made with rvspecfit 0.9.0, torch 2.15.0, numpy 2.4.6, scipy 1.17.1, astropy and h5py on Python 3.11.
"""

import os
import shutil
import subprocess
import sys

from toy_models import (  # first: it sets the number of threads for numpy
    ARMS, DATA, FITS, LIB, PARN, SMALL, STAGES, WORK, build_library, config, owave, sample_params, save_npy,
    toy_spectra,
)

import numpy as np


# ---------------------------------------------------------------- synthetic coadds
def resolution_diag(wave, sigma, ndiag):
    """DESI layout: (ndiag, npix), diagonal offsets +w..-w, entry [k, j] is R[j - offset_k, j]."""
    n, w = len(wave), ndiag // 2
    dx = wave[1] - wave[0]
    off = np.arange(w, -w - 1, -1)
    s = sigma / dx
    R = np.exp(-0.5 * (off[:, None] / s[None, :]) ** 2) / (np.sqrt(2 * np.pi) * s)
    i = np.arange(n)[None, :] - off[:, None]
    R[(i < 0) | (i >= n)] = 0
    return R.astype(np.float32)


def make_coadd(
    fname, cfg, grid, nspec, seed, sn_range, use_res=False, ndiag=11, bad=None, tid0=39600000000000
):
    import astropy.io.fits as pyfits
    import astropy.table as atpy
    from rvspecfit import spec_inter, spec_fit
    from rvspecfit.desi import desi_fit

    rs = np.random.RandomState(seed)
    P = sample_params(nspec, seed + 1, 0.12)
    vr = np.clip(rs.normal(0, 160, nspec), -600, 600)
    if nspec > 6:
        vr[1], vr[4] = 812.4, -731.7
    vs = 10 ** rs.uniform(0, 2.1, nspec)
    vs[rs.uniform(size=nspec) < 0.4] *= 0.15
    sn = 10 ** rs.uniform(np.log10(sn_range[0]), np.log10(sn_range[1]), nspec)
    mag = 10 ** rs.uniform(-0.5, 2.5, nspec)
    hd = [pyfits.PrimaryHDU()]
    snr = {}
    body = []
    for arm in ARMS:
        wave = owave(grid, arm)
        n = len(wave)
        it = spec_inter.getInterpolator("desi_" + arm, cfg)
        flux = np.zeros((nspec, n), np.float32)
        ivar = np.zeros((nspec, n), np.float32)
        mask = np.zeros((nspec, n), np.int32)
        reso = np.zeros((nspec, ndiag, n), np.float32)
        xn = np.linspace(-1, 1, n)
        for i in range(nspec):
            base = 0.5 if not use_res else 0.72 + 0.06 * rs.uniform()
            sig = base + (0.0 if not use_res else 0.04) * xn
            reso[i] = resolution_diag(wave, np.full(n, 1.0) * sig, ndiag)
            t = spec_fit.convolve_vsini(it.lam, it.eval(P[i]), vs[i])
            m = spec_fit.evalRV(spec_fit.getRVInterpol(it.lam, t), vr[i], wave)
            if use_res:
                m = (
                    desi_fit.construct_resolution_sparse_matrix(
                        reso[i], pix_size_angstrom=wave[1] - wave[0], sigma0_angstrom=0.5
                    )
                    @ m
                )
            m = m * np.exp(np.polynomial.chebyshev.chebval(xn, rs.normal(0, [0.2, 0.25, 0.08, 0.03])))
            m = m / np.median(m) * mag[i]
            fac = dict(b=0.7, r=1.0, z=1.1)[arm]
            err = mag[i] / (sn[i] * fac) * np.sqrt(0.4 + 0.6 * np.maximum(m / mag[i], 0)) * (1 + 0.3 * xn**2)
            flux[i] = m + rs.normal(size=n) * err
            ivar[i] = 1 / err**2
            msk = rs.uniform(size=n) < 0.004
            mask[i, msk] = 1 << rs.randint(0, 4)
            ivar[i, msk] = 0
            flux[i, msk & (rs.uniform(size=n) < 0.5)] += 30 * mag[i]
        if bad is not None:
            bad(arm, wave, flux, ivar, mask, rs)
        with np.errstate(all="ignore"):
            q = np.where((ivar > 0) & (mask == 0), flux * np.sqrt(np.abs(ivar)), np.nan)
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            snr[arm] = np.nan_to_num(np.nanmedian(q, axis=1), nan=0.0).astype(np.float32)
        A = arm.upper()
        body += [
            pyfits.ImageHDU(wave, name=A + "_WAVELENGTH"),
            pyfits.ImageHDU(flux, name=A + "_FLUX"),
            pyfits.ImageHDU(ivar, name=A + "_IVAR"),
            pyfits.ImageHDU(mask, name=A + "_MASK"),
            pyfits.ImageHDU(reso, name=A + "_RESOLUTION"),
        ]
    tid = tid0 + np.arange(nspec, dtype=np.int64)
    fm = atpy.Table(
        dict(
            TARGETID=tid,
            TARGET_RA=rs.uniform(0, 360, nspec),
            TARGET_DEC=rs.uniform(-20, 60, nspec),
            OBJTYPE=np.array(["TGT"] * nspec),
            COADD_FIBERSTATUS=np.zeros(nspec, np.int32),
            FIBER=np.arange(nspec, dtype=np.int32),
            BRICKID=np.full(nspec, 1, np.int32),
            REF_ID=np.zeros(nspec, np.int64),
            REF_CAT=np.array(["G2"] * nspec),
        )
    )
    if bad is not None and hasattr(bad, "fibermap"):
        bad.fibermap(fm)
    sc = atpy.Table(dict(TARGETID=tid, **{f"MEDIAN_COADD_FLUX_SNR_{a.upper()}": snr[a] for a in ARMS}))
    hd += [pyfits.BinTableHDU(fm, name="FIBERMAP")] + body + [pyfits.BinTableHDU(sc, name="SCORES")]
    pyfits.HDUList(hd).writeto(fname, overwrite=True)
    truth = np.column_stack([tid.astype(float), vr, vs, P, sn])
    np.savetxt(
        fname.replace(".fits", "_truth.csv"),
        truth,
        delimiter=",",
        comments="",
        header="TARGETID,VRAD,VSINI,TEFF,LOGG,FEH,ALPHAFE,SN_R",
        fmt=["%d"] + ["%.5f"] * 7,
    )


def rvs_fit(work, coadd, outdir, resmat=False, extra=()):
    import time

    os.makedirs(outdir, exist_ok=True)
    cmd = (
        [
            os.path.join(os.path.dirname(sys.executable), "rvs_desi_fit"),
            "--config",
            f"{work}/config.yaml",
            "--no_subdirs",
            "--output_dir",
            outdir,
            "--log_level",
            "ERROR",
        ]
        + list(extra)
        + [coadd]
    )
    if resmat:
        cmd.insert(1, "--resolution_matrix")
    t = time.time()
    subprocess.check_call(cmd, cwd=outdir)
    t = time.time() - t
    import glob
    import astropy.io.fits as pyfits

    for f in glob.glob(f"{outdir}/rv*_" + os.path.basename(coadd)):  # no machine paths in kept files
        with pyfits.open(f, mode="update") as F:
            for k in ("RVS_CONF", "RVS_CMD"):
                while k in F[0].header:
                    del F[0].header[k]
            F[0].add_checksum()
    return t


def best_known(work, coadd, out, resmat=False):
    """Lowest -2 log L that rvspecfit's own optimiser reaches from several starts.

    The command-line fit stops in a local minimum for some spectra; a good fitter
    must not be scored against those, so every spectrum is also fitted from the
    truth and from a few other starts and the best end point is kept.
    """
    import astropy.io.fits as pyfits
    from rvspecfit import vel_fit, fitter_ccf, spec_fit

    cfg = config(work)
    tru = np.genfromtxt(coadd.replace(".fits", "_truth.csv"), delimiter=",", names=True)
    rows = []
    for i in range(len(tru)):
        sds = specdata_of(coadd, i, resmat)
        if sds is None:
            continue
        T = {k: tru[n][i] for k, n in zip(PARN, ("TEFF", "LOGG", "FEH", "ALPHAFE"))}
        c = fitter_ccf.fit(sds, cfg)
        starts = [
            dict(c["best_par"], vsini=c["best_vsini"]),
            dict(T, vsini=max(tru["VSINI"][i], 0.5)),
            dict(c["best_par"], vsini=20.0, alpha=0.2),
            dict(T, vsini=8.0, feh=T["feh"] + 0.3),
        ]
        ends = []
        for s in starts:
            try:
                r = vel_fit.process(sds, s, config=cfg, options=dict(npoly=10))
            except Exception as e:
                print("start failed", i, e)
                continue
            # the final point, scored at the optimiser's parameters and scanned velocity
            ends.append(
                [r["chisq"], r["vel"], r["vel_err"], r["vsini"]]
                + [r["param"][k] for k in PARN]
                + [r["param_err"][k] for k in PARN]
                + [float(np.sum(r["chisq_array"])), float(np.sum(r["npix_array"]))]
            )
        e = np.array(ends)
        b = e[np.argmin(e[:, 0])]
        rows.append([tru["TARGETID"][i], e[0, 0]] + list(b))
        print(i, "first start -2logL %.2f  best %.2f" % (e[0, 0], b[0]), flush=True)
    np.savetxt(
        out,
        np.array(rows),
        delimiter=",",
        comments="",
        fmt=["%d"] + ["%.6f"] * (len(rows[0]) - 1),
        header="TARGETID,NEG2LOGL_RVS,NEG2LOGL_BEST,VRAD,VRAD_ERR,VSINI,TEFF,LOGG,FEH,ALPHAFE,"
        "TEFF_ERR,LOGG_ERR,FEH_ERR,ALPHAFE_ERR,CHISQ_TOT,NPIX_TOT",
    )


# ---------------------------------------------------------------- stage goldens
def specdata_of(coadd, i, resmat=False):
    import astropy.io.fits as pyfits
    from rvspecfit.desi import desi_fit

    with pyfits.open(coadd) as F:
        fl, iv, mk, wv, rs = desi_fit.read_data(F, ARMS)
        return desi_fit.get_specdata(
            wv,
            fl,
            iv,
            mk,
            rs,
            i,
            ARMS,
            use_resolution_matrix=resmat,
            lsf_sigma0_angstrom=dict(b=0.5, r=0.5, z=0.5),
        )


def stages():
    from rvspecfit import spec_inter, spec_fit, vel_fit, fitter_ccf, make_ccf, spliner
    from rvspecfit.desi import desi_fit
    from rvspecfit.nn import RVSInterpolator
    import astropy.table as atpy

    cfg = config()
    A = f"{DATA}/coadd-synth-a.fits"
    B = f"{DATA}/coadd-synth-b.fits"
    S = STAGES
    shutil.rmtree(S, ignore_errors=True)
    rs = np.random.RandomState(5)
    # 1 network
    P = sample_params(10, 31, 0.02)
    for arm in ARMS:
        it = spec_inter.getInterpolator("desi_" + arm, cfg)
        save_npy(
            f"{S}/1_nn", params=P, **{f"spec_{arm}": np.array([it.eval(p) for p in P]).astype(np.float32)}
        )
    it = spec_inter.getInterpolator("desi_r", cfg)
    Po = np.vstack([sample_params(60, 32), sample_params(60, 33) * rs.uniform(0.7, 1.4, size=(60, 4))])
    save_npy(f"{S}/1_nn", outside_params=Po, outside_flag=np.array([float(it.outsideFlag(p)) for p in Po]))
    # 1b polylinear interpolation on a regular grid with one missing node
    uv = [
        np.log10(np.array([4000.0, 5000, 6500])),
        np.array([1.0, 3, 5]),
        np.array([-2.0, -1, 0]),
        np.array([0.0, 0.4]),
    ]
    idg = np.arange(54).reshape(3, 3, 3, 2).copy()
    nodes = np.array(np.meshgrid(*uv, indexing="ij")).reshape(4, -1)
    lam = it.lam[200:900]
    dat = toy_spectra(lam, np.column_stack([10 ** nodes[0], nodes[1], nodes[2], nodes[3]]), 0.5)
    idg[0, 0, 0, 0] = -1
    G = spec_inter.GridInterp(uv, idg, nodes, dat, exp=True)
    O = spec_inter.GridOutsideCheck(uv, nodes, idg)
    q = np.column_stack(
        [
            np.log10(rs.uniform(3900, 6600, 40)),
            rs.uniform(0.8, 5.2, 40),
            rs.uniform(-2.1, 0.1, 40),
            rs.uniform(-0.05, 0.45, 40),
        ]
    )
    save_npy(
        f"{S}/1b_gridinterp",
        uvec0=uv[0],
        uvec1=uv[1],
        uvec2=uv[2],
        uvec3=uv[3],
        idgrid=idg.astype(np.int32),
        logspec=dat,
        query=q,
        result=np.array([G(_) for _ in q]).astype(np.float32),
        outside=np.array([float(O(_)) for _ in q]),
    )
    # 2 rotation
    tz = spec_inter.getInterpolator("desi_z", cfg)
    sp = tz.eval([5600.0, 4.1, -0.6, 0.2])
    vsl = np.array([0.0, 0.3, 2.0, 9.0, 37.0, 120.0, 300.0, 500.0])
    save_npy(
        f"{S}/2_vsini",
        lam=tz.lam,
        spec=sp,
        vsini=vsl,
        result=np.array([spec_fit.convolve_vsini(tz.lam, sp, v) for v in vsl]),
    )
    # 3 spline
    w = owave(SMALL, "z")
    vel = np.array([-1000.0, -333.3, -0.7, 0.0, 12.345, 480.0, 1000.0])
    sl = spliner.Spline(tz.lam, sp, log_step=True)
    save_npy(
        f"{S}/3_spline",
        knots=tz.lam,
        y=sp,
        obs_lam=w,
        vel=vel,
        result=np.array([spec_fit.evalRV(sl, v, w) for v in vel]),
    )
    rs.normal(size=501), rs.uniform(size=900)  # the numbers that follow stay those of earlier goldens
    # 4 resolution matrix
    import astropy.io.fits as pyfits

    with pyfits.open(B) as F:
        raw = F["R_RESOLUTION"].data[3].astype(np.float64)
        wr = F["R_WAVELENGTH"].data
    Rm = desi_fit.construct_resolution_sparse_matrix(
        raw, pix_size_angstrom=wr[1] - wr[0], sigma0_angstrom=0.5
    )
    tr = spec_inter.getInterpolator("desi_r", cfg)
    mr = spec_fit.evalRV(spec_fit.getRVInterpol(tr.lam, tr.eval([5100.0, 2.2, -1.2, 0.3])), 55.0, wr)
    save_npy(f"{S}/4_resolution", raw=raw, vec=mr, result=Rm @ mr)
    # 5 continuum basis
    for npoly in (1, 3, 5, 10, 15):
        save_npy(f"{S}/5_basis", **{f"rbf_{npoly}": spec_fit.get_poly_basis(wr, npoly, rbf=True)})
    save_npy(f"{S}/5_basis", lam=wr)
    # 6 pre-processing of a fibre
    for i in (0, 1, 2, 3):
        for sd in specdata_of(A, i):
            save_npy(
                f"{S}/6_prep",
                **{
                    f"{sd.name}_{i}_spec": sd.spec,
                    f"{sd.name}_{i}_espec": sd.espec,
                    f"{sd.name}_{i}_badmask": np.asarray(sd.badmask, np.uint8),
                },
            )
    # 7 chi-square of one arm (raw normal equations)
    sd = specdata_of(A, 0)[1]
    rows, mods = [], []
    for p, v in (
        (([5000.0, 3.0, -1.0, 0.2]), 0.0),
        ([6200.0, 4.0, -0.2, 0.0], 150.0),
        ([4300.0, 1.2, -2.0, 0.4], -88.0),
    ):
        t = spec_fit.evalRV(spec_fit.getRVInterpol(tr.lam, tr.eval(p)), v, sd.lam)
        mods.append(t)
        for npoly in (5, 10, 15):
            c, _ = spec_fit.get_chisq0(
                np.asarray(sd.spec),
                t,
                spec_fit.get_poly_basis(np.asarray(sd.lam), npoly),
                get_coeffs=True,
                espec=np.asarray(sd.espec),
            )
            rows.append([npoly, c])
    save_npy(
        f"{S}/7_chisq0",
        spec=sd.spec,
        espec=sd.espec,
        lam=sd.lam,
        templ=np.array(mods),
        npoly_chisq=np.array(rows),
    )
    # 8 get_chisq over three arms, two files
    for tag, f, n, rm in (("a", A, 24, False), ("b", B, 8, True)):
        tru = np.genfromtxt(f.replace(".fits", "_truth.csv"), delimiter=",", names=True)
        comb, val, arms = [], [], []
        for i in range(n):
            sds = specdata_of(f, i, rm)
            T = np.array([tru[k][i] for k in ("VRAD", "VSINI", "TEFF", "LOGG", "FEH", "ALPHAFE")])
            for k in range(6):
                d = rs.normal(size=6) * np.array([40, 5, 250, 0.3, 0.25, 0.1]) * (k > 0)
                c = T + d
                c[0] = np.clip(c[0], -990, 990)
                c[1] = abs(c[1])
                if k == 5:
                    c[1] = 0.0
                r = spec_fit.get_chisq(
                    sds,
                    c[0],
                    tuple(c[2:]),
                    (c[1],),
                    None,
                    options=dict(npoly=10),
                    config=cfg,
                    full_output=True,
                )
                comb.append(c)
                val.append(r["chisq"])
                arms.append(r["chisq_array"])
        save_npy(
            f"{S}/8_chisq",
            **{
                f"combos_{tag}": np.array(comb).reshape(n, 6, 6),
                f"chisq_{tag}": np.array(val).reshape(n, 6),
                f"chisq_arm_{tag}": np.array(arms).reshape(n, 6, 3),
            },
        )
    # 9 velocity scan
    vg = np.arange(-1000.0, 1000.0, 5.0)
    res, sc = [], []
    for i in range(8):
        sds = specdata_of(A, i)
        cc = [
            spec_fit.get_chisq(
                sds,
                v,
                (5500.0, 4.0, -0.7, 0.1),
                (5.0,),
                None,
                options=dict(npoly=10),
                config=cfg,
                cache=spec_fit.LRUDict(10),
            )
            for v in vg
        ]
        r = spec_fit.find_best(
            sds, vg, [(5500.0, 4.0, -0.7, 0.1)], rot_params=(5.0,), options=dict(npoly=10), config=cfg
        )
        res.append([r["best_chi"], r["best_vel"], r["vel_err"], r["skewness"], r["kurtosis"]])
        sc.append(cc)
    save_npy(f"{S}/9_scan", vel_grid=vg, chisq=np.array(sc), best_chi_vel_err_skew_kurt=np.array(res))
    # 10 cross-correlation
    rows = []
    for i in range(24):
        sds = specdata_of(A, i)
        r = fitter_ccf.fit(sds, cfg)
        rows.append([r["best_vel"], r["best_vsini"]] + [r["best_par"][k] for k in PARN])
        if i < 4:
            for arm, sd in zip(ARMS, sds):
                conf = fitter_ccf.get_ccf_info(sd.name, cfg)[3]["ccfconf"]
                x, y = make_ccf.preprocess_data(
                    np.asarray(sd.lam),
                    np.asarray(sd.spec),
                    np.asarray(sd.espec),
                    badmask=np.asarray(sd.badmask),
                    ccfconf=conf,
                )
                save_npy(f"{S}/10_ccf", **{f"proc_spec_{i}_{arm}": x, f"proc_ivar_{i}_{arm}": y})
    save_npy(f"{S}/10_ccf", vel_vsini_par=np.array(rows))


def bad_pixels_a(arm, wave, flux, ivar, mask, rs):
    # a block of dead pixels in one spectrum, a negative-flux stretch in another
    flux[2, 300:360] = 0
    ivar[2, 300:360] = 0
    if arm == "b":
        flux[3, :40] = -np.abs(flux[3, :40]) * 0.2


def main():
    cmd = sys.argv[1]
    if cmd == "lib":
        shutil.rmtree(LIB, ignore_errors=True)
        build_library(SMALL, WORK, LIB)
    elif cmd == "data":
        os.makedirs(DATA, exist_ok=True)
        make_coadd(f"{DATA}/coadd-synth-a.fits", config(), SMALL, 24, 101, (5, 90), bad=bad_pixels_a)
        make_coadd(
            f"{DATA}/coadd-synth-b.fits", config(), SMALL, 8, 202, (10, 60), use_res=True, tid0=39700000000000
        )
    elif cmd == "stages":
        stages()
    elif cmd == "fits":
        ta = rvs_fit(WORK, f"{DATA}/coadd-synth-a.fits", FITS)
        tb = rvs_fit(WORK, f"{DATA}/coadd-synth-b.fits", FITS, resmat=True)
        print("rvs_desi_fit seconds: a %.1f  b(resolution matrix) %.1f" % (ta, tb))
    elif cmd == "best":
        best_known(WORK, f"{DATA}/coadd-synth-a.fits", f"{FITS}/best_known_a.csv")
        best_known(WORK, f"{DATA}/coadd-synth-b.fits", f"{FITS}/best_known_b.csv", True)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
