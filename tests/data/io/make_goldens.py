#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files that tests/io reads: NPY by NumPy, FITS by Astropy.

    python3 make_goldens.py [DIRECTORY]

Element number i (in C order) is 3*i - 20 (signed), 3*i (unsigned), 3*i - 19.5 (floats), i % 3 == 0
(bool); tests/io computes the same numbers. Made with NumPy 2.4.6 and Astropy 8.0.2.
"""
import gzip
import io
import pathlib
import sys
import warnings

import numpy as np
from astropy.io import fits

out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")


def values(dtype, *shape):
    dtype = np.dtype(dtype)
    i = np.arange(int(np.prod(shape)), dtype="i8").reshape(shape)
    if dtype.kind == "b":
        return i % 3 == 0
    if dtype.kind == "f":
        return (3 * i - 19.5).astype(dtype)
    return (3 * i - (20 if dtype.kind == "i" else 0)).astype(dtype)


# ---- NPY ----------------------------------------------------------------------------------------


def save(name, array, version=None):
    with open(out / (name + ".npy"), "wb") as file:
        np.lib.format.write_array(file, array, version=version, allow_pickle=True)


def all_npy():
    for code in "b1 i1 u1 i2 u2 i4 u4 i8 f2 f4 f8".split():
        for order in "<>" if code[1] != "1" else "|":
            array = values(order + code, 2, 3, 4)
            tag = {"<": "little", ">": "big", "|": "byte"}[order]
            save(f"{code}_{tag}_c", array)
            save(f"{code}_{tag}_fortran", np.asfortranarray(array))
    for rank, shape in enumerate([(), (5,), (5, 3), (2, 5, 3), (2, 3, 4, 5)]):
        save(f"rank{rank}_c", values("<f4", *shape))
        if rank:  # here NumPy turns rank 0 into rank 1
            save(f"rank{rank}_fortran", np.asfortranarray(values("<f4", *shape)))
    save("tiles_fortran", np.asfortranarray(values("<i2", 70, 3, 35)))  # larger than a tile, so that borders of tiles are crossed
    save("empty", values("<f4", 0, 3))
    for major in (1, 2, 3):
        save(f"version{major}", values("<f4", 2, 3), version=(major, 0))
    special = np.array([0, -0.0, 1, -2, 65504, 2.0**-14, 2.0**-24, np.inf, -np.inf, np.nan, 0.1], "<f2")
    save("half_special", special)
    # files that Cleave refuses
    save("bad_complex", np.zeros(3, "<c8"))
    save("bad_records", np.zeros(3, [("x", "<f4"), ("y", "<i2")]))
    save("bad_object", np.array([None, 1], dtype=object))
    save("bad_text", np.array(["a", "bc"]))
    save("bad_date", np.array(["2020-01-01"], "M8[D]"))
    save("bad_u8", np.zeros(3, "<u8"))
    save("bad_rank5", np.zeros((1, 1, 1, 1, 2), "<f4"))


# ---- FITS ---------------------------------------------------------------------------------------


def write(name, hdus):
    file = io.BytesIO()
    fits.HDUList(hdus).writeto(file)
    (out / name).write_bytes(file.getvalue())


def all_fits():
    images = [fits.PrimaryHDU()]
    images[0].header["OBJECT"] = "named once"
    images[0].header["CRPIX1"] = 5.0  # the header of an HDU without an image
    for code in "u1 i2 i4 i8 f4 f8 i1 u2 u4".split():
        images.append(fits.ImageHDU(values(code, 2, 3), name=code))
    write("images.fits", images)

    # Astropy would apply the scaling when writing, so the cards are added to the bytes.
    def raw(name, bits, *cards):
        file = io.BytesIO()
        fits.PrimaryHDU(values("i%d" % (bits // 8), 2, 3)).writeto(file)
        data = bytearray(file.getvalue())
        end = data.index(b"END" + b" " * 77)
        for card in cards:
            data[end : end + 80] = str(fits.Card(*card)).encode()
            end += 80
        data[end : end + 80] = b"END".ljust(80)
        (out / name).write_bytes(bytes(data))

    raw("scaled16.fits", 16, ("BSCALE", 0.5), ("BZERO", 100.0))
    raw("scaled32.fits", 32, ("BSCALE", 0.5), ("BZERO", 100.0))
    raw("blank16.fits", 16, ("BLANK", -17))
    raw("blank32.fits", 32, ("BLANK", -17))

    for rank, shape in enumerate([(5,), (5, 3), (2, 5, 3), (2, 3, 4, 5)], 1):
        write(f"rank{rank}.fits", [fits.PrimaryHDU(values("f4", *shape))])
    write("rank5.fits", [fits.PrimaryHDU(values("f4", 1, 1, 1, 2, 3))])

    cube = values("f4", 3, 4, 5)
    cube[1, 2, 3] = np.nan
    primary = fits.PrimaryHDU(cube)
    for key, value in {
        "OBJECT": "beta Pic", "TELESCOP": "VLT", "INSTRUME": "NACO", "DATE-OBS": "2013-02-01",
        "EXPTIME": 0.2, "CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CTYPE3": "WAVE",
        "CRPIX1": 3.0, "CRPIX2": 2.5, "CRPIX3": 1.0, "CD1_1": -7.5e-6, "CD1_2": 0.0,
        "CD2_1": 0.0, "CD2_2": 7.5e-6, "CD3_3": 1e-9, "EQUINOX": 2000.0, "RADESYS": "FK5",
        "PV2_1": 1.5, "WCSAXES": 3,
    }.items():
        primary.header[key] = value
    write("cube.fits", [primary])
    (out / "cube.fits.gz").write_bytes(gzip.compress((out / "cube.fits").read_bytes(), mtime=0))

    floats = values("f4", 12, 10)
    floats[3, 4] = np.nan
    header = fits.Header({"OBJECT": "compressed"})
    write("tiles.fits.fz", [
        fits.PrimaryHDU(),
        fits.CompImageHDU(values("i2", 12, 10), header, compression_type="RICE_1"),
        fits.CompImageHDU(floats, compression_type="GZIP_1", quantize_level=0),
        fits.CompImageHDU(floats, compression_type="RICE_1", quantize_level=16, quantize_method=1, dither_seed=1),
    ])

    angle = values("f8", 7)
    time = np.arange(7.0)
    table = [fits.Column("TIME", "D", array=time), fits.Column("ParAng", "E", array=angle)]
    write("angles_named.fits", [fits.PrimaryHDU(), fits.BinTableHDU.from_columns(table)])
    table = [fits.Column("NAME", "3A", array=["abc"] * 7), fits.Column("X", "D", array=angle),
             fits.Column("Y", "D", array=time)]
    write("angles_first.fits", [fits.PrimaryHDU(), fits.BinTableHDU.from_columns(table)])
    table = [fits.Column("PA", "F10.3", array=angle, ascii=True)]
    write("angles_ascii.fits", [fits.PrimaryHDU(), fits.TableHDU.from_columns(table)])
    table = [fits.Column("PA", "7D", array=[angle])]
    write("angles_array.fits", [fits.PrimaryHDU(), fits.BinTableHDU.from_columns(table)])
    integers = values("i4", 7)
    integers[2] = -99
    table = [fits.Column("angle_deg", "J", null=-99, array=integers)]
    write("angles_null.fits", [fits.PrimaryHDU(), fits.BinTableHDU.from_columns(table)])
    for name, shape in (("column", (7, 1)), ("row", (1, 7)), ("image", (7,))):
        write(f"angles_{name}.fits", [fits.PrimaryHDU(angle.reshape(shape).astype("f4"))])


warnings.simplefilter("ignore")
all_npy()
all_fits()
