#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that files whose contents are wrong are refused with exit code 2, one line that names the file and what is
wrong in it, and no new file.

Each row has a file's name and bytes, the command that reads it, and a part of the message. The files are made here;
`regress/mutated` and the fuzz targets change files at random, but do not read the messages.

usage: refused_files.py CLEAVE CLI_TESTS DATA    CLI_TESTS: tests/cli, DATA: tests/data"""
import gzip
import json
import os
import struct
import sys

import kit

sys.path.insert(0, sys.argv[2])
import text_embed  # noqa: E402


def npy(header, data=b"", version=1):
    head = header.encode()
    size = struct.pack("<H" if version == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes((version, 0)) + size + head + data


def array(descr, shape, data=b""):
    return npy("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape), data)


def fits(cards, data=b""):
    head = b"".join(card.encode().ljust(80) for card in (*cards, "END"))
    return head.ljust(-(-len(head) // 2880) * 2880) + data.ljust(-(-len(data) // 2880) * 2880, b"\0")


def image(axes, *more, bitpix=-32, data=b""):
    return fits(("SIMPLE  =                    T", "BITPIX  = %20d" % bitpix, "NAXIS   = %20d" % len(axes),
                 *("NAXIS%-3d= %20d" % (i + 1, n) for i, n in enumerate(axes)), *more), data)


def tiff(*tags):
    """A TIFF file of one page of 4 x 4 bytes; tags: (number, type, value) that replace or add to the usual ones."""
    entries = {256: (4, 4), 257: (4, 4), 258: (3, 8), 259: (3, 1), 262: (3, 1), 273: (4, 8), 277: (3, 1), 278: (4, 4),
               279: (4, 16)}
    entries.update({number: (kind, value) for number, kind, value in tags})
    rows = b"".join(struct.pack("<HHII", number, kind, 1, value) for number, (kind, value) in sorted(entries.items()))
    return struct.pack("<2sHI", b"II", 42, 24) + bytes(16) + struct.pack("<H", len(entries)) + rows + bytes(4)


def tiff_pages(*pages):
    """A TIFF file of several pages of 4 x 4 pixels of bytes; each page: (photometric interpretation, samples per pixel,
    planar configuration). All samples are in one strip, or each in a strip of its own."""
    file = bytearray(struct.pack("<2sHI", b"II", 42, 0))
    link = 4
    for photometric, samples, planar in pages:
        strips = samples if planar == 2 else 1
        data = len(file)
        file += bytes(range(16 * samples))
        lists = len(file)
        file += struct.pack("<%dI" % strips, *(data + 16 * i for i in range(strips)))
        file += struct.pack("<%dI" % strips, *[16 * samples // strips] * strips)
        rows = [(256, 4, 1, 4), (257, 4, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, photometric),
                (273, 4, strips, lists if strips > 1 else data), (277, 3, 1, samples), (278, 4, 1, 4),
                (279, 4, strips, lists + 4 * strips if strips > 1 else 16 * samples), (284, 3, 1, planar)]
        file[link:link + 4] = struct.pack("<I", len(file))
        file += struct.pack("<H", len(rows)) + b"".join(struct.pack("<HHII", *row) for row in rows)
        link = len(file)
        file += bytes(4)
    return bytes(file)


def tensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


ONE = struct.pack("<f", 1)
PIXELS = b"\1\0" * 64
# (name, contents, part of the message)
MOVIES = [
    ("empty.tif", b"", "empty.tif is empty; expected a TIFF, NPY or PNG movie"),
    ("words.tif", b"these are words", "words.tif begins with \"these"),
    ("short.npy", b"\x93NUMPY", "the file ends inside the NPY version number"),
    ("future.npy", npy("{}", version=9), "future.npy is of NPY version 9.0; expected 1.0, 2.0 or 3.0"),
    ("cut.npy", b"\x93NUMPY\x01\0\xff\x10{", "cut.npy: the file ends 4350 bytes too early"),
    ("key.npy", npy("{'order': 1}"), "unknown key 'order'; expected descr, fortran_order and shape"),
    ("twice.npy", npy("{'descr': '<u2', 'descr': '<u2'}"), "repeated key 'descr'"),
    ("miss.npy", npy("{'descr': '<u2', 'fortran_order': False}"), "the key 'shape' is missing"),
    ("type.npy", array("<c16", "(1, 8, 8)"), "type.npy: dtype '<c16'"),
    ("object.npy", array("|O", "(1, 8, 8)"), "object.npy: dtype '|O'"),
    ("record.npy", npy("{'descr': [('a', '<u2')], 'fortran_order': False, 'shape': (8,)}"), "record"),
    ("huge.npy", array("<u2", "(4294967296, 4294967296, 4294967296)"), "more memory than can be addressed"),
    ("flat.npy", array("<u2", "(64,)", PIXELS), "expected a frame [H,W] or a movie [T,H,W]"),
    ("none.npy", array("<u2", "(0, 8, 8)"), "a movie of [0,8,8] has no pixels"),
    ("less.npy", array("<u2", "(2, 8, 8)", PIXELS), "128 bytes of data, expected 256; the last readable frame is 0"),
    ("axes.npy", array("<u2", "(1, 1, 1, 1, 8, 8)", PIXELS), "the array has more than 4 axes"),
    ("bad.npy", npy("{'descr': <u2}"), "NPY header, byte "),
    ("head.tif", b"II*\0", "head.tif: the file has a TIFF header and nothing else"),
    ("bare.tif", b"II*\0\0\0\0\0", "bare.tif: the TIFF file has no pages"),
    ("loop.tif", struct.pack("<2sHIHI", b"II", 42, 8, 0, 8), "loop.tif: a page's directory is damaged"),
    ("bits.tif", tiff((258, 3, 12)), "its pixels have 12 bits and sample format 1; expected"),
    ("colour.tif", tiff((262, 3, 2), (277, 3, 3), (279, 4, 48)), "samples per pixel; choose one with --channel 0 to 2"),
    ("zero.tif", tiff((256, 4, 0)), "zero.tif"),
    ("deep.tif", tiff((32997, 4, 3)), "each page holds 3 planes (ImageDepth), which is not read"),
    ("method.tif", tiff((259, 3, 9999)), "page 0 cannot be read"),
    # formerly read as if all pages had the form of the last one
    ("white.tif", tiff_pages((1, 1, 1), (0, 1, 1)), "0 is white on page 1, but black on page 0"),
    ("list.txt", b"nowhere.tif\n", 'line 1 is "nowhere.tif", but there is no such file'),
    ("blank.txt", b"# nothing\n", "the list has no files; expected one path per line"),
    ("nul.txt", b"a\0b\n", "line 1 has a NUL byte, but a list of files is text with one path per line"),
    ("list.lst", b"list.txt\n", "is a list of files inside a list of files, which is not supported"),
    ("one.czi", b"ZISRAWFILE" + bytes(60), "one.czi is a Zeiss CZI file, which cannot be read"),
    ("one.gif", b"GIF89a" + bytes(60), "one.gif is a GIF picture, which cannot be read"),
    ("one.zip", b"PK\3\4" + bytes(60), "one.zip is a ZIP archive, which cannot be read"),
    ("one.h5", b"\x89HDF\r\n\x1a\n" + bytes(60), "one.h5 is an HDF5 file"),
    ("cut.png", b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 4, 4, 8, 0, 0, 0, 0),
     "cut.png: the file ends 4 bytes too early"),
    ("fold.png", b"\x89PNG\r\n\x1a\n" + struct.pack(">I4s", 13, b"IHDR") + bytes(17), "the PNG file is damaged"),
]
COLOURS = [("planes.tif", tiff_pages((2, 3, 1), (2, 3, 2)), "page 1 has the planar configuration 2, but page 0 has 1")]
CUBES = [
    ("nan.fits", image((4, 4, 2), bitpix=7), "Illegal value for BITPIX keyword: 7"),
    ("flat.fits", image((4, 4), data=bytes(64)), "it must be frames [T,H,W] or channels of frames [C,T,H,W]"),
    ("none.fits", image(()), "none of its 1 HDU has an image with data"),
    ("many.fits", image((1,) * 120), "it must be a whole number from 0 to 99"),
    ("cut.fits", image((40, 40, 16))[:2880], "truncated: the file has 0 bytes of data, but it must have 102400"),
    ("card.fits", b"SIMPLE  =                    T".ljust(2880), "card.fits: cannot read as FITS"),
    ("cut.fits.gz", gzip.compress(image((4, 4, 2), data=bytes(128)))[:-20], "cut.fits.gz: the gzip file is truncated"),
    ("bad.fits.gz", b"\x1f\x8b\x08\0" + bytes(40), "damaged gzip file"),
    ("words.fits", b"these are words", "its format is not supported (text); expected NPY (.npy) or FITS"),
    ("two.npy", array("<f4", "(2, 2)", ONE * 4), "it must be frames [T,H,W] or channels of frames [C,T,H,W]"),
    ("half.npy", array("<f4", "(2, 4, 4)", ONE * 20), "truncated: the file has 80 bytes of data, expected 128"),
    ("more.npy", array("<f4", "(2, 4, 4)", ONE * 40), "bytes after the data: the file has 160 bytes of data"),
    ("text.txt", b"1 2 3\n", "its format is not supported (text)"),
]
ANGLES = [
    ("few.txt", b"1\n2\n3\n", "there are 3 angles, but the cube has 16 frames"),
    ("nan.txt", b"1\nnan\n", "line 2, column 1: \"nan\" is not a finite number"),
    ("word.txt", b"one\n", "the file has no numbers"),
    ("no.txt", b"# no numbers\n", "the file has no numbers"),
    ("table.csv", b"A,B\n1,2\n3,4\n", "is called PA, PARANG... or ANGLE...; give the name of one of them"),
    ("plane.npy", array("<f8", "(2, 2)", bytes(32)), "is not a vector; expected [T], [T,1] or [1,T]"),
]
PSFS = [
    ("long.npy", array("<f4", "(7, 9)", ONE * 63), "it must be square, [n,n], or several of them"),
    ("dark.npy", array("<f4", "(9, 9)", bytes(324)), "the PSF is zero everywhere"),
    ("small.npy", array("<f4", "(3, 3)", ONE * 9), "the image of 3x3 is too small to measure its width; give --fwhm"),
    ("nan.npy", array("<f4", "(9, 9)", struct.pack("<f", float("nan")) * 81),
     "the PSF holds a value that is not finite"),
]
TABLES = [
    ("empty.csv", b"", "empty.csv is empty; expected a line of column names"),
    ("head.csv", b"frame,y\n0,1\n", "there is no column 'x'; the columns are frame,y"),
    ("twice.csv", b"frame,y,x,x\n0,1,1,1\n", "2 columns have the name 'x'"),
    ("short.csv", b"frame,y,x\n0,1\n", "line 2 has 2 fields, but the header has 3"),
    ("word.csv", b"frame,y,x\n0,one,1\n", "line 2, column 'y': \"one\" is not a finite number"),
    ("nan.csv", b"frame,y,x\n0,nan,1\n", "\"nan\" is not a finite number"),
    ("half.csv", b"frame,y,x\n0.5,1,1\n", "is 0.5, which is not a whole number"),
    ("huge.csv", b"frame,y,x\n9007199254740993,1,1\n", "is 9.0072e+15, but at most 1e+15 is accepted; number the"),
    ("far.csv", b"frame,y,x\n0,1,1\n0,2,-1e300\n", "row 2: the position in column 'x' is -1e+300, but at most 1e+150"),
    ("deep.csv", b"frame,z,y,x\n0,1e200,1,1\n", "row 1: the position in column 'z' is 1e+200, but at most 1e+150"),
    ("quote.csv", b'frame,y,x\n0,"1,1\n', "a quoted field has no closing quote"),
    ("after.csv", b'frame,y,x\n0,"1"2,1\n', '"2,1" after a closing quote'),
    ("within.csv", b'frame,y,x\n0,1"2,1\n', '""2,1" inside a field without quotes'),
    ("nul.csv", b"frame,y,x\n0,\0,1\n", "nul.csv has a NUL byte; expected text"),
    ("mixed.csv", b"frame,y;x\n0,1;1\n", "the separator of the columns is unclear"),
    ("list.json", b"{}", "list.json"),
    ("open.json", b'[{"frame": 0', "open.json: line 1: found"),
    ("none.json", b"[]", "the table has no rows"),
    ("twice.json", b'[{"frame": 0, "frame": 1, "y": 1, "x": 1}]', "the key 'frame' occurs twice"),
    ("plain.npy", array("<f4", "(2, 2)", ONE * 4), "a table in a .npy file must be records of numbers and text"),
    ("cut.parquet", b"PAR1", "the Parquet file is damaged: it ends before its footer"),
    ("bad.parquet", b"PAR1" + bytes(20) + b"\xff\xff\xff\x7fPAR1",
     "the Parquet file is damaged: its footer is longer than the file"),
    ("other.xml", b"<html></html>", "the table has no rows"),
    ("open.xml", b"<TrackMate", "the table has no rows"),
]
TRACKS = [
    ("frame.csv", b"frame,y,x,particle\n1e300,1,1,0\n", "the frame in column 'frame' is 1e+300, but at most 1e+15"),
    ("particle.csv", b"frame,y,x,particle\n0,1,1,1152921504606846976\n",
     "the particle in column 'particle' is 1.15292e+18, but at most 9e+15 is accepted; number the particles anew"),
    ("half.csv", b"frame,y,x,particle\n0,1,1,0.5\n", "is 0.5, which is not a whole number"),
    ("far.csv", b"frame,y,x,particle\n0,1,1e200,-1\n0,1,1e200,2\n",
     "row 2: the position in column 'x' is 1e+200, but at most 1e+150 is accepted; correct or remove the row"),
    ("two.csv", b"frame,y,x,particle\n0,1,1,2\n0,2,2,2\n", "two.csv: the track 2 has two spots in frame 0, but"),
]
WEIGHTS = [
    ("empty", b"", "has 0 bytes, but a safetensors file has at least 8"),
    ("short", bytes(4), "has 4 bytes, but a safetensors file has at least 8"),
    ("huge", struct.pack("<Q", 1 << 62), "it is not a safetensors file, or its download was cut short"),
    ("words", tensors(b"words"), "the header does not begin with a brace"),
    ("list", tensors([1]), "the header does not begin with a brace"),
    ("type", tensors({"a": {"dtype": "Q7", "shape": [1], "data_offsets": [0, 4]}}, ONE),
     'dtype "Q7" is unknown, expected F32'),
    ("ends", tensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, ONE), "2 elements of F32 need 8"),
    ("outside", tensors({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 400]}}, ONE),
     "data_offsets span 400 bytes"),
    ("none", tensors({}), "there is no tensor"),
]
CONFIGS = [
    ("empty", b"", "is not valid JSON"), ("list", b"[]", "not a JSON object"),
    ("open", b'{"hidden_size": ', "is not valid JSON: line 1, column 16"),
    ("type", b'{"model_type": "t5"}', "model_type is t5, expected bert"),
    ("bare", b'{"model_type": "bert"}', "hidden_size is nothing, expected a whole number"),
    ("nan", b'{"model_type": "bert", "hidden_size": NaN}', "is not valid JSON"),
    ("word", b'{"model_type": "bert", "hidden_size": "wide"}', "hidden_size is text, expected a whole number"),
    ("huge", b'{"model_type": "bert", "hidden_size": 1e30}', "hidden_size is a number with a fraction"),
]
VOCABULARIES = [
    ("empty", b"", "is not valid JSON"), ("list", b"[]", "model is nothing, expected an object"),
    ("open", b'{"model": {', "is not valid JSON: line 1, column 11"),
    ("prefix", b'{"model": {"type": "WordPiece", "vocab": {"a": 0}}}',
     "continuing_subword_prefix of the model is nothing, expected a text"),
    ("bare", b"{}", "model is nothing, expected an object"),
    ("type", b'{"model": {"type": "Magic", "vocab": {"a": 0}}}', "is Magic, expected WordPiece, BPE or Unigram"),
]
GGUFS = [
    ("empty.gguf", b"", "has 0 bytes, but a GGUF file has at least 24"),
    ("words.gguf", b"words and more words", "begins with the bytes 77 6F 72 64, expected 47 47 55 46 (GGUF)"),
    ("short.gguf", b"GGUF", "the version at byte 4 needs 4 bytes, but the file has 0 left"),
    ("old.gguf", struct.pack("<4sIQQ", b"GGUF", 1, 0, 0), "is of GGUF version 1; expected 2 or 3"),
    ("huge.gguf", struct.pack("<4sIQQ", b"GGUF", 3, 1 << 60, 1 << 60),
     "is 1152921504606846976, but the 8 bytes after it hold at most 0"),
    ("none.gguf", struct.pack("<4sIQQ", b"GGUF", 3, 0, 0), "the key general.architecture is missing"),
]
DATA = [
    ("empty.tsv", b"", "there is no line, but examples are one per line"),
    ("tab.tsv", b"no tab\n", "line 1 has no tab"),
    ("bytes.tsv", b"a\xff\tb\n", "is not UTF-8"),
    ("one.tsv", b"a\tx\nb\tx\n", 'every line has the label "x", but at least two labels are needed'),
]
IDS = [
    ("open.json", b"[[1, 2", "is not valid JSON: line 1, column 6"),
    ("word.json", b'[["a"]]', 'element 0 is "a", which is not a whole number'),
    ("huge.json", b"[[99999999999]]", "99999999999 is not a token number"),
    ("minus.json", b"[[-1]]", "-1 is not a token number"),
    ("half.json", b"[[1.5]]", "element 0 is 1.5, which is not a whole number"),
    ("sum.txt", b"5 6\n7+8\n", 'line 2: "7+8'),  # formerly 7 and 8
]
SETTINGS = [("none.yaml", b"", "there are no settings in it"),
            ("word.yaml", b"max_vel: fast\n", "max_vel: \"fast\" is not a number"),
            ("twice.yaml", b"lsf_sigma0_angstrom:\n  b: 1\n  r: 2\n  b: 1\n",
             "b is given twice, as 1 and 1; remove one")]
PRIORS = [("head.csv", b"TEFF,TEFF_SIGMA\n1,1\n", "there is no column TARGETID or FILE to name the stars"),
          ("word.csv", b"TARGETID,TEFF,TEFF_SIGMA\n1,hot,1\n", "row 1: TEFF is \"hot\" +- \"1\", expected numbers"),
          ("minus.csv", b"TARGETID,TEFF,TEFF_SIGMA\n1,5000,-1\n", "none of its 1 rows names one of the 3 stars")]


def refuse(told, part, *arguments):
    before = sorted(os.listdir("out"))
    done = kit.expect(2, part, *arguments, timeout=60)
    if told.encode() not in done.stderr and "list of files inside" not in part:
        kit.wrong("%s: the message does not name %s: %r" % (" ".join(arguments), told, done.stderr))
    if sorted(os.listdir("out")) != before:
        kit.wrong("%s: files stayed: %s" % (" ".join(arguments), os.listdir("out")))


def files(rows, *line):
    for name, data, part in rows:
        kit.write("in/" + name, data)
        refuse(name, part, *["in/" + name if word == "%s" else word for word in line])


def parts_of_models(rows, name, *line):
    """Replaces one file of the small model."""
    path = os.path.join("model", name)
    with open(path, "rb") as file:
        kept = file.read()
    for _, data, part in rows:
        kit.write(path, data)
        refuse(name, part, *line)
    kit.write(path, kept)


def main():
    kit.small_commands(text_embed.make_model, 4, 32)
    kit.track_table()
    for folder in "in", "out":
        os.mkdir(folder)
    paco = ["made/paco-%s.npy" % name for name in ("cube", "angles", "psf")]
    files(MOVIES, "blobs", "%s", "-q", "-o", "out/s.csv")
    files(COLOURS, "blobs", "%s", "--channel", "0", "-q", "-o", "out/s.csv")
    files(CUBES, "paco", "%s", *paco[1:], "-o", "out/maps")
    files(ANGLES, "paco", paco[0], "%s", paco[2], "-o", "out/maps")
    files(PSFS, "paco", *paco[:2], "%s", "-o", "out/maps")
    files(TRACKS, "tracks", "%s", "-o", "out/t.csv")
    files(TABLES, "link", "%s", "--search", "2", "-o", "out/t.csv")
    files(TABLES[:4], "tracks", "%s", "-o", "out/t.csv")
    parts_of_models(WEIGHTS, "model.safetensors", "embed", "model", "-i", "texts.txt", "-o", "out/v.npy")
    parts_of_models(CONFIGS, "config.json", "embed", "model", "-i", "texts.txt", "-o", "out/v.npy")
    parts_of_models(VOCABULARIES, "tokenizer.json", "embed", "model", "-i", "texts.txt", "-o", "out/v.npy")
    files(GGUFS, "generate", "%s", "--prompt", "x")
    files(DATA, "finetune", "model", "--data", "%s", "-o", "out/model")
    files(IDS, "detokenize", "model", "-i", "%s", "-o", "out/t.txt")
    stars = ["specfit", "made/specfit-coadd.fits", "--library", "made/specfit-library", "-o", "out/s.csv"]
    files(SETTINGS, *stars, "--config", "%s")
    files(PRIORS, *stars, "--priors", "%s")
    kit.finish()


main()
