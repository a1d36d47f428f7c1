# SPDX-License-Identifier: Apache-2.0
"""Makes stars for make_goldens.py: their spectra, by a toy physics with true wavelengths, and the library of templates
that rvspecfit makes from the spectra. numpy alone is needed for the spectra, rvspecfit and torch for the library."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["RVS_NN_DEVICE"] = "cpu"
import json
import sys
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
LIB, DATA, STAGES, FITS = [os.path.join(HERE, _) for _ in ("lib", "data", "stages", "fits")]
WORK = os.environ.get("SPECFIT_WORK", os.path.join(HERE, "work"))
C_KMS = 299792.458
ARMS = ("b", "r", "z")
PARN = ["teff", "logg", "feh", "alpha"]
PLO = np.array([3800.0, 0.3, -2.8, -0.3])
PHI = np.array([9500.0, 5.2, 0.6, 0.7])

# observed grids: first wavelength, number of pixels, step (vacuum Angstrom)
SMALL = dict(b=(4100.0, 1251, 0.8), r=(5800.0, 1126, 0.8), z=(8200.0, 1376, 0.8))


def owave(grid, arm):
    l0, n, st = grid[arm]
    return np.round(l0 + st * np.arange(n), 4)


# ---------------------------------------------------------------- toy physics
STRONG = [  # centre, type, strength
    (3934.8, "ca2", 30.0),
    (3969.6, "ca2", 25.0),
    (4102.9, "H", 1.6),
    (4227.9, "ca1", 2.0),
    (4341.7, "H", 1.8),
    (4862.7, "H", 2.0),
    (6564.6, "H", 2.3),
    (5168.8, "mg", 1.6),
    (5174.1, "mg", 2.4),
    (5185.0, "mg", 3.0),
    (5891.6, "na", 2.2),
    (5897.6, "na", 1.8),
    (8500.4, "ca2", 2.2),
    (8544.4, "ca2", 4.5),
    (8664.5, "ca2", 3.8),
    (8600.8, "H", 0.5),
    (8752.9, "H", 0.6),
    (8865.2, "H", 0.7),
    (9017.4, "H", 0.8),
    (9231.5, "H", 0.9),
    (8808.8, "mg", 0.8),
    (6164.0, "ca1", 0.7),
    (6124.0, "ca1", 0.6),
    (4308.0, "ch", 1.5),
    (3890.2, "H", 1.2),
    (3971.2, "H", 1.4),
    (6709.7, "na", 0.05),
    (7667.1, "na", 0.5),
]
KIND = dict(
    H=(9600.0, 0.17, 0.0, 0.0),
    ca2=(5200.0, 0.30, 0.55, 0.5),
    ca1=(4300.0, 0.12, 0.75, 0.7),
    mg=(4700.0, 0.16, 0.7, 0.75),
    na=(4100.0, 0.12, 0.7, 0.0),
    fe=(4600.0, 0.15, 0.75, 0.0),
    ch=(4800.0, 0.07, 0.9, 0.1),
)


def line_list(l0, l1, seed=20240611):
    """Strong lines by hand plus a forest of weak ones (their wavelengths are random)."""
    rs = np.random.RandomState(seed)
    cen = np.sort(rs.uniform(3500, 10000, 1300))
    kind = rs.choice(["fe", "fe", "fe", "ca1", "mg"], size=len(cen))
    stren = 10 ** rs.uniform(-1.7, -0.1, size=len(cen)) * (5000.0 / cen) ** 2
    tjit = rs.normal(0, 0.05, size=len(cen))
    L = [(c, k, s, 0.0) for (c, k, s) in STRONG] + list(zip(cen, kind, stren, tjit))
    return [_ for _ in L if l0 - 40 < _[0] < l1 + 40]


def toy_spectra(lam, P, sig_inst):
    """log of synthetic spectra, one row per parameter row (teff, logg, feh, alpha)."""
    P = np.atleast_2d(P)
    T, g, feh, al = P.T
    out = np.zeros((len(P), len(lam)))
    x = 1.4388e8 / lam[None, :] / T[:, None]
    bb = -5 * np.log(lam / 5500.0)[None, :] - np.log(np.expm1(x))
    out += bb - np.median(bb, axis=1)[:, None]
    lt = np.log10(T)
    tau = np.zeros_like(out)
    for cen, kind, s, tj in line_list(lam[0], lam[-1]):
        T0, w, kf, ka = KIND[kind]
        a = s * np.exp(-0.5 * ((lt - np.log10(T0) - tj) / w) ** 2) * 10 ** (kf * feh + kf * ka * al)
        if kind == "H":
            sig = 1.5 * 10 ** (0.10 * (g - 3)) * (T / 7000) ** 1.5
            gam = 2.0 * 10 ** (0.14 * (g - 3)) * (T / 7000) ** 1.2
        else:
            sig = np.full(len(P), 0.18)
            gam = 0.05 * 10 ** (0.16 * (g - 3)) * np.sqrt(1 + a)
            if kind in ("fe",):
                a = a * 10 ** (-0.06 * (g - 3))
        # the instrument width is put into the core, the wing is Lorentzian
        st = np.sqrt(sig**2 + sig_inst**2)
        i0, i1 = np.searchsorted(lam, [cen - 60, cen + 60])
        if i1 <= i0:
            continue
        d = lam[i0:i1][None, :] - cen
        core = np.exp(-0.5 * (d / st[:, None]) ** 2)
        wing = gam[:, None] ** 2 / (d**2 + gam[:, None] ** 2 + sig_inst**2)
        tau[:, i0:i1] += a[:, None] * (0.75 * core * (sig / st)[:, None] ** 0.5 + 0.25 * wing)
    out += np.log(0.04 + 0.96 * np.exp(-tau))
    return out.astype(np.float32)


def templ_grid(grid, arm, step=0.4):
    """Log-wavelength template grid that covers the arm for |v| up to 1000 km/s and a margin."""
    w = owave(grid, arm)
    f = 1 + 1100.0 / C_KMS
    dl = np.log(1 + step / (0.5 * (w[0] + w[-1])))
    return np.exp(np.arange(np.log(w[0] / f), np.log(w[-1] * f), dl))


def sample_params(n, seed, margin=0.0):
    rs = np.random.RandomState(seed)
    lo, hi = PLO + margin * (PHI - PLO), PHI - margin * (PHI - PLO)
    P = rs.uniform(size=(n, 4)) * (hi - lo) + lo
    P[:, 0] = 10 ** (np.log10(lo[0]) + rs.uniform(size=n) * (np.log10(hi[0]) - np.log10(lo[0])))
    return P


# ---------------------------------------------------------------- the library
def train_nn(Y, X, width, nlayers, npc, nit, seed):
    import torch
    from rvspecfit.nn.NNInterpolator import NNInterpolator

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    net = NNInterpolator(indim=4, nlayers=nlayers, width=width, npc=npc, npix=Y.shape[1], withbn=False)
    mu, sd = Y.mean(0), Y.std(0)
    U, S, V = np.linalg.svd((Y - mu), full_matrices=False)
    net.pc_layer.weight.data[:] = torch.tensor(V[:npc].T.copy())
    net.pc_layer.bias.data[:] = torch.tensor(mu)
    # the loss in the leading principal components is the loss in pixels, and much cheaper
    K = min(2 * npc, len(S))
    Vt = torch.tensor(V[:K].copy())
    tgt = torch.tensor(((Y - mu) @ V[:K].T).astype(np.float32))
    tX = torch.tensor(X.astype(np.float32))
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    sch = torch.optim.lr_scheduler.CosineAnnealingLR(opt, nit)
    g = torch.Generator().manual_seed(seed)
    for it in range(nit):
        idx = torch.randint(0, len(tX), (256,), generator=g)
        h = net.model(tX[idx])
        pc = h @ (net.pc_layer.weight.T @ Vt.T) + (net.pc_layer.bias - torch.tensor(mu)) @ Vt.T
        loss = ((pc - tgt[idx]) ** 2).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        sch.step()
    with torch.no_grad():
        res = net(tX).numpy() - Y
    print("   nn: rms of log residual %.4f  (spread %.4f)" % (res.std(), (Y - mu).std()))
    net.eval()
    return net


def save_npy(dirname, **kw):
    os.makedirs(dirname, exist_ok=True)
    for k, v in kw.items():
        np.save(os.path.join(dirname, k + ".npy"), np.ascontiguousarray(v))


def build_library(grid, work, lib=None, width=64, npc=24, nlayers=2, ntrain=1600, nit=2500, ncct=30):
    from rvspecfit import serializer, make_ccf
    from rvspecfit.nn.NNInterpolator import save_checkpoint

    os.makedirs(work, exist_ok=True)
    P = sample_params(ntrain, 11)
    corners = np.array([[(PLO, PHI)[(i >> k) & 1][k] for k in range(4)] for i in range(16)])
    P = np.vstack([corners, P])
    XP = P.copy()
    XP[:, 0] = np.log10(P[:, 0])
    M, S = XP.mean(0), XP.std(0)
    X = ((XP - M) / S).astype(np.float32)
    Pc = sample_params(ncct, 12, 0.05)
    meta = dict(
        arms={},
        parnames=PARN,
        log10_params=[0],
        input_mean=M.tolist(),
        input_std=S.tolist(),
        activation="SiLU",
        output="exp(clip(y,-300,300))",
        log_step=True,
    )
    for a, arm in enumerate(ARMS):
        lam = templ_grid(grid, arm)
        setup = "desi_" + arm
        print(setup, "template pixels", len(lam), flush=True)
        Y = toy_spectra(lam, P, 0.5)
        net = train_nn(Y, X, width, nlayers, npc, nit, 100 + a)
        save_checkpoint(net, f"{work}/NNstate_{setup}.sav")
        serializer.save_dict_to_hdf5(
            f"{work}/interp_{setup}.h5",
            {
                "mapper_module": "rvspecfit.nn.NNInterpolator",
                "mapper_class_name": "Mapper",
                "mapper_args": (M, S, [0]),
                "parnames": PARN,
                "lam": lam,
                "log_spec": True,
                "log_step": True,
                "module": "rvspecfit.nn.RVSInterpolator",
                "class_name": "RVSInterpolator",
                "device": "cpu",
                "class_kwargs": dict(
                    indim=4, npc=npc, nlayers=nlayers, width=width, npix=len(lam), withbn=False
                ),
                "outside_class_name": "OutsideInterpolator",
                "outside_kwargs": dict(pts=X.astype(np.float64)),
                "nn_file": f"NNstate_{setup}.sav",
                "revision": "synthetic",
                "git_rev": "0.9.0",
                "cmdline": "",
                "interpolation_type": "generic",
            },
        )
        # CCF templates, in rvspecfit's format; models rounded to float32 so that a
        # float32 file and the reference agree exactly
        sp = toy_spectra(lam, Pc, 0.75)
        serializer.save_dict_to_hdf5(
            f"{work}/specs_{setup}.h5",
            dict(specs=sp, vec=Pc.T.copy(), lam=lam, parnames=PARN, log_spec=True, log_step=True),
        )
        w = owave(grid, arm)
        conf = make_ccf.get_ccf_config(logl0=np.log(w[0]), logl1=np.log(w[-1]), npoints=2048)
        so = sys.stdout
        sys.stdout = open(os.devnull, "w")
        make_ccf.ccf_executor(setup, conf, work, work, 1, [0.0, 200.0])
        sys.stdout = so
        mf = f"{work}/" + make_ccf.get_ccf_mod_name(setup)
        m = np.load(mf).astype(np.float32).astype(np.float64)
        np.save(mf, m)
        np.savez(
            f"{work}/" + make_ccf.get_ccf_dat_name(setup),
            fft=np.fft.rfft(m, axis=1),
            fft2=np.fft.rfft(m**2, axis=1),
        )
        if lib is not None:
            sd = {k: v.detach().numpy() for k, v in net.state_dict().items()}
            save_npy(
                f"{lib}/{setup}",
                lam=lam,
                mean=M,
                std=S,
                hull_pts=X,
                ccf_models=m.astype(np.float32),
                **{k.replace(".", "_"): v.astype(np.float32) for k, v in sd.items()},
            )
            meta["arms"][setup] = dict(
                npix=len(lam),
                lam0=float(lam[0]),
                lam1=float(lam[-1]),
                layers=[4] + [width] * (nlayers + 1) + [npc, len(lam)],
                ccf=dict(
                    logl0=conf["logl0"],
                    logl1=conf["logl1"],
                    npoints=conf["npoints"],
                    splinestep=float(conf["splinestep"]),
                    maxcontpts=conf["maxcontpts"],
                    continuum=True,
                ),
            )
    if lib is not None:
        from rvspecfit import serializer as se

        info = se.load_dict_from_hdf5(f"{work}/" + make_ccf.get_ccf_info_name("desi_b"))
        save_npy(lib, ccf_params=info["params"], ccf_vsinis=np.array(info["vsinis"], float))
        json.dump(meta, open(f"{lib}/lib.json", "w"), indent=1)
    yaml = (
        f"template_lib: '{work}/'\nmin_vel: -1000\nmax_vel: 1000\nmin_vel_step: 0.2\nvel_step0: 5\n"
        "min_vsini: 0.1\nmax_vsini: 500\nsecond_minimizer: 1\n"
        "lsf_sigma0_angstrom:\n  b: 0.5\n  r: 0.5\n  z: 0.5\n"
    )
    open(f"{work}/config.yaml", "w").write(yaml)


def config(work=WORK):
    from rvspecfit import utils

    return utils.read_config(f"{work}/config.yaml", dict(ccf_continuum_normalize=True))
