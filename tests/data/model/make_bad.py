#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes 41 small safetensors files, most of them broken, and records whether the library safetensors accepts each of
them.

usage: make_bad.py OUT      writes OUT/*.safetensors and OUT/verdicts.json
Made with safetensors 0.8 and numpy 2.4.6 on Python 3.11. deep_nesting.safetensors (40 KB) is not kept: the test makes
it itself.
"""

import json, os, struct, sys
from safetensors import deserialize

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
V = {}


def put(name, raw, why):
    open(os.path.join(out, name + ".safetensors"), "wb").write(raw)
    try:
        deserialize(raw)
        v = "accept"
    except Exception as e:
        v = "reject"
        why += " | library: " + type(e).__name__ + ": " + str(e)[:120]
    V[name] = {"library": v, "why": why}


def st(hdr, data=b"", n=None):
    h = hdr if isinstance(hdr, bytes) else json.dumps(hdr).encode()
    return struct.pack("<Q", len(h) if n is None else n) + h + data


def t(dt, shape, a, b):
    return {"dtype": dt, "shape": shape, "data_offsets": [a, b]}


f16 = b"\0" * 16
put("ok", st({"w": t("F32", [2, 2], 0, 16)}, f16), "plain valid file")
put(
    "ok_metadata_padding",
    st(json.dumps({"__metadata__": {"format": "pt"}, "w": t("F32", [4], 0, 16)}).encode() + b"    ", f16),
    "metadata and trailing spaces in the header",
)
put("ok_scalar", st({"w": t("F32", [], 0, 4)}, b"\0" * 4), "rank 0")
put("ok_zero_dim", st({"w": t("F32", [0, 3], 0, 0)}), "no elements")
put(
    "ok_unaligned",
    st(b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} ', b"\0" * 4),
    "data not 4-byte aligned in the file: a float pointer into the map is undefined behaviour",
)
put(
    "ok_escaped_name",
    st(b'{"a\\u00e9\\"\\/":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\1"),
    "JSON escapes in a tensor name",
)
put("ok_empty_table", st({}), "no tensors")
put("ok_bf16", st({"w": t("BF16", [2], 0, 4)}, b"\0" * 4), "dtype our kernels do not take as is")
put("ok_nan_values", st({"w": t("F32", [1], 0, 4)}, b"\x00\x00\xc0\x7f"), "valid file, NaN weight")
put("empty_file", b"", "zero bytes")
put("seven_bytes", b"\1\0\0\0\0\0\0", "shorter than the length word")
put("len_only", struct.pack("<Q", 0), "header of length 0")
put("len_beyond_file", st({"w": t("F32", [4], 0, 16)}, f16, n=10**6), "header length beyond the file")
put("len_huge", st({"w": t("F32", [4], 0, 16)}, f16, n=2**63 + 5), "header length that wraps a signed size")
put("len_minus_8", st({"w": t("F32", [4], 0, 16)}, f16, n=2**64 - 8), "8 + length wraps to 0")
put("not_json", st(b"{not json at all}", f16), "broken JSON")
put("json_array", st(b"[1,2,3]", f16), "top level is not an object")
put(
    "leading_space",
    st(b' {"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}', f16),
    "header must start with a brace",
)
put(
    "bad_utf8",
    st(b'{"\xff\xfe":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}', f16),
    "name is not UTF-8",
)
put("truncated_data", st({"w": t("F32", [2, 4], 0, 32)}, f16), "download cut short")
put("trailing_bytes", st({"w": t("F32", [4], 0, 16)}, f16 + b"xx"), "bytes after the last tensor")
put("hole", st({"a": t("F32", [1], 0, 4), "b": t("F32", [1], 8, 12)}, f16[:12]), "gap between tensors")
put("overlap", st({"a": t("F32", [2], 0, 8), "b": t("F32", [2], 4, 12)}, f16[:12]), "tensors overlap")
put("begin_after_end", st({"w": t("F32", [4], 16, 0)}, f16), "begin > end")
put(
    "negative_offset", st(b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[-16,0]}}', f16), "negative offset"
)
put(
    "offset_2_64",
    st(b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,18446744073709551632]}}', f16),
    "offset needs 65 bits",
)
put(
    "offset_float", st(b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16.0]}}', f16), "offset is a float"
)
put("shape_mismatch", st({"w": t("F64", [4], 0, 16)}, f16), "shape x dtype is not the byte count")
put("shape_overflow", st({"w": t("F32", [2**32, 2**32], 0, 0)}), "product of the shape wraps to 0")
put("shape_overflow2", st({"w": t("F32", [2**62 + 4], 0, 16)}, f16), "elements x 4 wraps to 16")
put(
    "negative_dim",
    st(b'{"w":{"dtype":"F32","shape":[-2,-2],"data_offsets":[0,16]}}', f16),
    "negative dimensions whose product fits",
)
put("unknown_dtype", st({"w": t("F31", [4], 0, 16)}, f16), "unknown dtype")
put("dtype_number", st(b'{"w":{"dtype":7,"shape":[4],"data_offsets":[0,16]}}', f16), "dtype is not text")
put("no_shape", st(b'{"w":{"dtype":"F32","data_offsets":[0,16]}}', f16), "shape missing")
put("one_offset", st(b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0]}}', f16), "one offset only")
put(
    "duplicate_name",
    st(
        b'{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},'
        b'"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}',
        f16,
    ),
    "same name twice: a last-wins parser silently takes one",
)
put(
    "metadata_not_strings",
    st(b'{"__metadata__":{"n":1},"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}', f16),
    "metadata value is a number",
)
put(
    "deep_nesting",
    st(b'{"w":' + b"[" * 20000 + b"]" * 20000 + b"}"),
    "20000 nested arrays: a recursive parser overflows its stack",
)
put(
    "nul_in_name",
    st(b'{"a\\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\1"),
    "NUL inside a name: C strings cut it",
)
put("pickle", b"PK\x03\x04" + b"\0" * 60, "a PyTorch zip given by mistake")
put(
    "lfs_pointer",
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n",
    "a Git LFS pointer instead of the weights: deserves its own message",
)
json.dump(V, open(os.path.join(out, "verdicts.json"), "w"), indent=1)
print(
    sum(v["library"] == "accept" for v in V.values()),
    "accepted,",
    sum(v["library"] == "reject" for v in V.values()),
    "rejected",
)
for k, v in V.items():
    print(k, v["library"])
