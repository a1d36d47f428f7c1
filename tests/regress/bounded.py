#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a small file causes only bounded work, or is refused with an error that names the limit. Formerly:

- A gzip file of 9 MB took 16.5 GB of memory. Now unpacked bytes count against --mem-limit, or half of the free memory.
- `link --memory 2000000000 --fill-gaps` on two rows made 2e9 rows, in 14.9 GB.
- 3000 spots at one place in two frames were assigned to each other for more than two minutes.
- A TIFF file of many pages was cut at some limit of the library, and ImageJ's and OME's headers that promise 2e9 or
  1e24 planes were read as one plane, without a warning.
- A GGUF file that is only a hole filled as much memory as its header announced, 3 GB in the test.
- `tracks` on two rows whose frames were 1e8 apart took 2.4 GB for a drift that was not requested.
- A FIFO as config.json of a model, in the place of a cached file, or among spectra, hung for ever.
- A line of JSON with many members, or a header with many columns, was searched once for each member or column.
- Pages of a TIFF file that share one list of strips made libtiff read the list once for each page.
- A frame of 3.6 GB in a TIFF file of 300 KB, and weights of 550 GB in a file that is only a hole, were
  allocated, whatever --mem-limit or the machine's memory; so were the weights of language models in plain C.
- A file above its limit was read up to the limit before it was refused: a hole for a table took 1 GB.
- A shard's record whose header was a hole became one argument for each of its bytes.
- Pages of a Parquet file that unpack to far more bytes than they have, or that several columns share, were unpacked
  without a bound.
- A piece of 1 MB in a vocabulary was compared with every place of a text, and so was an added token; in a malicious
  vocabulary, all merges had the same hash.

usage: bounded.py CLEAVE CLI_TESTS"""
import gzip
import json
import math
import os
import re
import resource
import struct
import sys
import time
import zlib

import kit

sys.path.insert(0, sys.argv[2])
import testdata  # noqa: E402
import text_embed  # noqa: E402

MIB = 1 << 20


def peak():
    """Returns the largest resident set of all children so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def fits(width, frames):
    cards = ["SIMPLE  =                    T", "BITPIX  =                    8", "NAXIS   =                    3",
             "NAXIS1  = %20d" % width, "NAXIS2  = %20d" % width, "NAXIS3  = %20d" % frames, "END"]
    head = "".join(card.ljust(80) for card in cards)
    return (head + " " * (-len(head) % 2880)).encode()


def check_gzip():
    with gzip.open("bomb.fits.gz", "wb", 9) as file:
        file.write(fits(1024, 400))
        for _ in range(400):
            file.write(bytes(MIB))
    if os.path.getsize("bomb.fits.gz") > MIB:
        kit.wrong("the bomb is no bomb")
    kit.write_npy("angles.npy", (400,), [0.1 * i for i in range(400)])
    kit.write_npy("psf.npy", (9, 9), [1.0] * 81)
    before = peak()
    arguments = ["paco", "bomb.fits.gz", "angles.npy", "psf.npy", "-o", "maps", "--mode", "reference"]
    kit.expect(1, "--mem-limit", *arguments, "--mem-limit", "64M")
    kit.expect(1, "67.1 MB may be used", *arguments, "--mem-limit", "64MiB")
    # without its last four bytes, the file claims a wrong length: nothing in it is believed
    with open("bomb.fits.gz", "rb") as file:
        data = file.read()
    kit.write("lies.fits.gz", data[:-4] + struct.pack("<I", 4096))
    kit.expect(1, "--mem-limit", *[a.replace("bomb", "lies") for a in arguments], "--mem-limit", "64M")
    if peak() - before > 200 * MIB:
        kit.wrong("unpacking took %d MiB in spite of the limit" % ((peak() - before) >> 20))


def check_link():
    kit.write("two.csv", "frame,y,x\n0,1,1\n2000000000,1,1\n")
    kit.expect(1, "1e+08 are possible", "link", "two.csv", "-o", "out.csv", "--search", "3", "--memory", "2000000000",
               "--fill-gaps")
    kit.expect(0, "", "link", "two.csv", "-o", "out.csv", "--search", "3", "--memory", "2000000000", "-q")
    kit.write("crowd.csv", "frame,y,x\n" + "".join("%d,1,1\n" % (i % 2) for i in range(6000)))
    started = time.monotonic()
    kit.expect(2, "at most 2e+10 are allowed", "link", "crowd.csv", "-o", "out.csv", "--search", "3")
    if time.monotonic() - started > 20:
        kit.wrong("3000 spots in one place were refused after %.0f s" % (time.monotonic() - started))


def check_tracks():
    before = peak()
    line = ["tracks", kit.write("far.csv", "frame,y,x,particle\n0,1,1,0\n1,1,2,0\n99999999,1,2,0\n")]
    done = kit.expect(0, None, *line, "-o", "o.csv", "--summary", "s.csv")
    kit.same("a drift over 1e8 frames", b"not measured, because the frames go from 0 to 99999999" in done.stdout, True)
    with open("s.csv", encoding="utf-8") as file:
        names, values = (text.split(",") for text in file.read().splitlines())
    kit.same("the drift that is not known", values[names.index("drift_y_px")], "")
    for option in ("--drift", "d.csv"), ("--subtract-drift",):
        kit.expect(2, "at most 1000300 frames", *line, "-q", *option)
    if peak() > before + 100 * MIB:
        kit.wrong("three tracked spots took %d MiB" % ((peak() - before) >> 20))


def tiff(name, description, pages=1, size=8):
    """Writes a little-endian TIFF file whose pages all show the same pixels."""
    text = description.encode() + b"\0"
    pixels = 8
    words = pixels + size * size
    tags = [(256, 4, 1, size), (257, 4, 1, size), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1),
            (270, 2, len(text), words), (273, 4, 1, pixels), (277, 3, 1, 1), (278, 4, 1, size),
            (279, 4, 1, size * size)]
    page = 2 + 12 * len(tags) + 4
    first = words + len(text) + len(text) % 2
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    with open(name, "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", first) + bytes(i % 251 for i in range(size * size)) + text +
                   b"\0" * (len(text) % 2))
        for i in range(pages):
            file.write(body + struct.pack("<I", first + (i + 1) * page if i + 1 < pages else 0))
    return name


def check_tiff():
    def refused(part, name):
        kit.expect(2, part, "blobs", name, "-o", "spots.csv", "--mode", "reference")

    for key in "images", "frames", "slices", "channels":
        tiff("j.tif", "ImageJ=1.53\n%s=2000000000\n" % key)
        refused("promises %s=2000000000" % key, "j.tif")
        tiff("j.tif", "ImageJ=1.53\n%s=1e24\n" % key)
        refused("promises %s=1e24" % key, "j.tif")
    tiff("o.tif", '<OME><Pixels SizeC="1" SizeZ="1" SizeT="1e24"></Pixels></OME>')
    refused("SizeT", "o.tif")
    tiff("j.tif", "ImageJ=1.53\nimages=5\nframes=5\n", pages=3)
    refused("ImageJ promises more images", "j.tif")
    kit.expect(0, "5 images, 3 are there", "blobs", "j.tif", "-o", "spots.csv", "--mode", "reference", "--partial")
    tiff("o.tif", '<OME><Pixels SizeC="1" SizeZ="1" SizeT="40"></Pixels></OME>', pages=3)
    kit.expect(0, "promises 40 images, 3 are there", "blobs", "o.tif", "-o", "spots.csv", "--mode", "reference")
    tiff("over.tif", "", pages=1000001, size=1)
    refused("more than 1000000 pages", "over.tif")
    os.remove("over.tif")
    pages = 70000
    tiff("many.tif", "", pages=pages, size=1)
    done = kit.run("blobs", "many.tif", "-o", "spots.csv", "--mode", "reference", "--frames=69990:70000")
    if done.returncode != 0 or b"10 frames" not in done.stdout:
        kit.wrong("%d pages: %d, %r, %r" % (pages, done.returncode, done.stdout, done.stderr))


def check_fifos():
    for name in "config.json", "tokenizer.json":
        os.rename("model/" + name, "kept.json")
        os.mkfifo("model/" + name)
        for command in ("embed", "model", "-i", "texts.txt", "-o", "v.npy"), ("generate", "model", "-p", "a"):
            try:
                done = kit.run(*command, "--mode", "reference", timeout=20)
                if done.returncode == 0:
                    kit.wrong("a FIFO was taken for %s" % name)
            except kit.subprocess.TimeoutExpired:
                kit.wrong("%s: %s as a FIFO hangs" % (command[0], name))
        os.remove("model/" + name)
        os.rename("kept.json", "model/" + name)
    kit.expect(0, "", "embed", "model", "-i", "texts.txt", "-o", "v.npy", "--mode", "reference", "-q")
    os.mkfifo("m.gguf")
    for command in ("tokenize", "m.gguf"), ("generate", "m.gguf", "-p", "a"):
        try:
            kit.run(*command, timeout=20)
        except kit.subprocess.TimeoutExpired:
            kit.wrong("%s: a model that is a FIFO hangs" % command[0])
    cache = kit.ENVIRONMENT["CLEAVE_CACHE_DIR"]
    os.makedirs(cache, mode=0o700, exist_ok=True)
    for name in "speeds.txt", "tuning.txt", "devices.txt":
        path = os.path.join(cache, name)
        if os.path.exists(path):
            os.remove(path)
        os.mkfifo(path, 0o600)
    try:
        kit.expect(0, "", "blobs", kit.movie(), "-q", "-o", "spots.csv", "--mode", "reference", timeout=60)
    except kit.subprocess.TimeoutExpired:
        kit.wrong("a FIFO in the cache hangs")
    kit.make_inputs("made")
    os.mkfifo("star.txt")
    try:
        kit.expect(2, "star.txt is a pipe", "specfit", "star.txt", "--library", "made/specfit-library", "-q",
                   "-o", "stars.csv", "--mode", "reference", timeout=20)
    except kit.subprocess.TimeoutExpired:
        kit.wrong("specfit: a spectrum that is a FIFO hangs")


def check_records():
    embed = ["-o", "v.npy", "--mode", "reference", "-q"]
    members = ", ".join('"key%d": "x"' % i for i in range(60000))
    kit.write("many.jsonl", '{%s, "text": "the cats"}\n' % members)
    columns = ",".join("c%d" % i for i in range(4000))
    kit.write("many.csv", "x" * 900000 + "," + columns + ",text\n" + "1," * 4001 + "the cats\n")
    for name in "many.jsonl", "many.csv":
        started = time.monotonic()
        kit.expect(0, None, "embed", "model", "-i", name, *embed)
        if time.monotonic() - started > 10:
            kit.wrong("%s took %.0f s" % (name, time.monotonic() - started))


def records(name, kinds, rows, body):
    """Writes NumPy records with the columns frame, y and x, and further ones without names of their own."""
    names = ["frame", "y", "x"] + ["c%d" % i for i in range(len(kinds) - 3)]
    header = "{'descr': [%s], 'fortran_order': False, 'shape': (%d,), }" % (
        ", ".join("('%s', '%s')" % field for field in zip(names, kinds)), rows)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return kit.write(name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + body)


def check_tables():
    """Tests tables. Formerly, rows that lack most columns, and fields of no width, made a small file a large table; and
    names in another order were each compared with all names."""
    def link(code, part, name):
        started = time.monotonic()
        kit.expect(code, part, "link", name, "-o", "out.csv", "--search", "3", "-q")
        if time.monotonic() - started > 10:
            kit.wrong("%s took %.0f s" % (name, time.monotonic() - started))
    link(2, "is of type |S0", records("none.npy", ["|S0"] * 3, 10 ** 15, b""))
    link(2, "is of type |S0", records("narrow.npy", ["|u1"] * 3 + ["|S0"] * 240, 200000, b"\1" * 600000))
    first = ['"%s":1' % name for name in ["frame", "y", "x"] + ["c%d" % i for i in range(4000)]]
    whole, reverse = "{%s}" % ",".join(first), "{%s}" % ",".join(reversed(first))
    kit.write("sparse.json", "[%s,%s]" % (whole, ",".join(['{"x":1}'] * 60000)))
    link(2, "10000000 may be absent", "sparse.json")
    kit.write("reverse.json", "[%s,%s]" % (whole, ",".join([reverse] * 100)))
    link(0, "", "reverse.json")


def shared_strips(name, pages, strips):
    """Writes pages that share one list of strips, with one strip per row."""
    tags = [(256, 4, 1, 1), (257, 4, 1, strips), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, strips, 8),
            (277, 3, 1, 1), (278, 4, 1, 1), (279, 4, strips, 8 + 4 * strips)]
    page = 2 + 12 * len(tags) + 4
    first = 8 + 8 * strips
    body = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags)
    with open(name, "wb") as file:
        file.write(b"II*\0" + struct.pack("<I", first) + struct.pack("<I", 8) * strips + struct.pack("<I", 1) * strips)
        for i in range(pages):
            file.write(body + struct.pack("<I", first + (i + 1) * page if i + 1 < pages else 0))
    return name


def check_shared():
    kit.expect(2, "descriptions of the first", "blobs", shared_strips("shared.tif", 4000, 100000), "-o", "spots.csv",
               "--mode", "reference")
    # files with few pages may do so
    kit.expect(0, None, "blobs", shared_strips("few.tif", 3, 100), "-o", "spots.csv", "--mode", "reference", "-q")


def huge_frame(name, size):
    """Writes a frame with one strip per row, all of them with the same few bytes: zeros, compressed by deflate."""
    row = zlib.compress(bytes(size), 9)
    tags = [(256, 4, 1, size), (257, 4, 1, size), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (273, 4, size, 8),
            (277, 3, 1, 1), (278, 4, 1, 1), (279, 4, size, 8 + 4 * size)]
    at = 8 + 8 * size
    page = struct.pack("<H", len(tags)) + b"".join(struct.pack("<HHII", *tag) for tag in tags) + bytes(4)
    return kit.write(name, b"II*\0" + struct.pack("<I", at) + struct.pack("<I", at + len(page)) * size +
                     struct.pack("<I", len(row)) * size + page + row)


def check_frames():
    before = peak()
    name = huge_frame("huge.tif", 60000)
    kit.expect(1, "for one frame it needs at least 3.6 GB", "blobs", name, "-o", "spots.csv", "--mode", "reference",
               "--mem-limit", "1G")
    if peak() - before > 200 * MIB:
        kit.wrong("a frame of 3.6 GB took %d MiB in spite of the limit" % ((peak() - before) >> 20))


def hole(name, begin, length):
    """Writes a file of these bytes and `length` more that take no space; returns None if the file system has no files
    of that length."""
    with open(name, "wb") as file:
        file.write(begin)
        try:
            file.truncate(len(begin) + length)
        except OSError:
            print("SKIPPED: this file system has no files of %d GB" % (length >> 30))
            return None
    return name


def expect_no_room(what, *command, **options):
    before = peak()
    kit.expect(1, "are free", *command, "--mode", "reference", timeout=60, **options)
    if peak() - before > 500 * MIB:
        kit.wrong("%s of holes took %d MiB" % (what, (peak() - before) >> 20))


def check_holes():
    """Tests a file with 550 GB of weights that takes no space."""
    width, ffn, rows = 1 << 14, 64, 1 << 23
    text_embed.make_model("hole", hidden_size=width, vocab_size=rows, num_attention_heads=4, intermediate_size=ffn)
    head, at = {}, 0
    for part, shape in text_embed.tensors(width, ffn, rows):
        head[part] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * math.prod(shape)]}
        at += 4 * math.prod(shape)
    text = json.dumps(head).encode()
    if hole("hole/model.safetensors", struct.pack("<Q", len(text)) + text, at):
        expect_no_room("weights", "embed", "hole", "-i", "texts.txt", "-o", "v.npy")


def check_gguf_hole():
    """Tests 26 GB of weights of a language model, with a limit of 4 GiB: the feed-forward blocks of a small model are
    made wider, beyond its end."""
    with open(testdata.path_of("generate/tiny/tiny-legacy.gguf"), "rb") as file:
        data = bytearray(file.read())
    width, ffn, f32, each = 64, 1 << 24, 0, 1 << 32
    key = b"llama.feed_forward_length"
    struct.pack_into("<I", data, data.index(key) + len(key) + 4, ffn)
    count = 0
    for found in re.finditer(rb"blk\.\d\.ffn_(?:gate|up|down)\.weight", bytes(data)):
        extents = (ffn, width) if b"down" in found.group() else (width, ffn)
        struct.pack_into("<IQQIQ", data, found.end(), 2, *extents, f32, each * (1 + count))
        count += 1
    kit.same("blocks made wider", count, 6)
    if hole("hole.gguf", data, each * (1 + count)):
        expect_no_room("a language model", "generate", "hole.gguf", "-p", "a", "-n", "1",
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)))


def check_gguf_head():
    """Tests a file with 3 GB of metadata that takes no space. Formerly all of it was read into memory before anything
    was checked."""
    key, count, before = b"general.name", 3 * 10 ** 9, peak()
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, 0, count)
    if not hole("head.gguf", head, count + 5000):
        return
    for command in ["tokenize", "head.gguf", "-i", "texts.txt"], ["generate", "head.gguf", "-p", "a", "-n", "1"]:
        kit.expect(2, "may have at most 268435456", *command)
    if peak() > before + 100 * MIB:
        kit.wrong("metadata of a hole took %d MiB" % ((peak() - before) >> 20))


def tokenizer(folder, model, added=()):
    os.makedirs(folder, exist_ok=True)
    rules = {"normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": model,
             "added_tokens": [{"id": i, "content": text, "special": True} for i, text in added]}
    with open(folder + "/tokenizer.json", "w", encoding="ascii") as file:
        json.dump(rules, file)
    return folder


def check_vocabularies():
    def tokenize(code, part, folder, text):
        started = time.monotonic()
        kit.expect(code, part, "tokenize", folder, "-i", kit.write("long.txt", text + "\n"), "-o", "ids.json",
                   "--no-limit", "-q")
        if time.monotonic() - started > 10:
            kit.wrong("%s: a text of %d kB took %.0f s" % (folder, len(text) // 1000, time.monotonic() - started))

    def unigram(*pieces):
        return {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1]] + [[text, -2] for text in pieces]}
    text = "a" * 100000
    too_long = "has %d bytes; at most 4096 are supported"
    tokenize(0, "", tokenizer("unigram-longest", unigram("a" * 4095 + "b")), text)
    tokenize(2, too_long % 4097, tokenizer("unigram-longer", unigram("a" * 4096 + "b")), text)
    tokenize(2, too_long % MIB, tokenizer("unigram-mib", unigram("a" * (MIB - 1) + "b")), text)
    tokenize(2, too_long % MIB, tokenizer("added-mib", {"type": "BPE", "vocab": {"a": 0}, "merges": []},
                                        [(1, "a" * (MIB - 1) + "b")]), text)
    # every left id is a multiple of 16: without a random seed, the hash of a merge would not depend on it
    pieces, merges = {"b": 1}, []
    for i in range(20000):
        left = chr(0x4E00 + i)
        pieces[left], pieces[left + "b"] = 16 * (i + 1), 16 * (i + 1) + 2
        merges.append([left, "b"])
    bpe = {"type": "BPE", "vocab": pieces, "merges": merges, "unk_token": None}
    tokenize(0, "", tokenizer("merges", bpe), (chr(0x4E00 + 19999) + "b") * 500000)


def check_size():
    before, begin = peak(), b"frame,y,x,particle\n0,1,1,0\n"
    if hole("hole.csv", begin, 6 << 30):
        kit.expect(2, "larger than the 1073741824 bytes", "tracks", "hole.csv", "-q", "-o", "o.csv")
    if peak() > before + 100 * MIB:
        kit.wrong("a table of holes took %d MiB" % ((peak() - before) >> 20))


def check_record():
    version = kit.run("--version").stdout.split()[1].decode()
    before, length = peak(), 1 << 28
    head = "\0".join((version, "little", "1", "2", str(length - 1000))).encode() + b"\0"
    if hole("hole.rec", b"cleave record 1\n" + struct.pack("<QQ", length, 0) + head, length):
        kit.expect(2, "its head holds impossible numbers", "merge", "hole.rec")
    if peak() > before + 100 * MIB:
        kit.wrong("a record of holes took %d MiB" % ((peak() - before) >> 20))


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def thrift(*fields):
    """Returns a struct of Thrift's compact protocol from pairs (field, value). A value is a number of 32 bits, or of 64
    bits (given without its minus sign), a text, a struct, or a list of one of these."""
    def whole(value):
        return varint(2 * value)

    out, last = b"", 0
    for field, value in fields:
        if isinstance(value, int):
            kind, data = 6 if value < 0 else 5, whole(abs(value))
        elif isinstance(value, str):
            kind, data = 8, varint(len(value)) + value.encode()
        elif isinstance(value, list):
            inner = 5 if value and isinstance(value[0], int) else 8 if value and isinstance(value[0], str) else 12
            kind, data = 9, bytes([len(value) << 4 | inner]) + b"".join(
                whole(v) if inner == 5 else varint(len(v)) + v.encode() if inner == 8 else v for v in value)
        else:
            kind, data = 12, value
        out, last = out + bytes([field - last << 4 | kind]) + data, field
    return out + b"\0"


def parquet(name, pages, groups):
    """Writes a column of texts; each of the groups of rows names all of the pages."""
    meta = thrift((1, 6), (2, [0]), (3, ["text"]), (4, 6), (5, -1), (6, -len(pages)), (7, -len(pages)), (9, -4))
    group = thrift((1, [thrift((3, meta))]), (2, -len(pages)), (3, -1))
    footer = thrift((1, 1), (2, [thrift((4, "schema"), (5, 1)), thrift((1, 6), (3, 0), (4, "text"))]), (3, -groups),
                    (4, [group] * groups))
    return kit.write(name, b"PAR1" + pages + footer + struct.pack("<I", len(footer)) + b"PAR1")


def zeros(size):
    """Returns zeros compressed by Zstandard, in runs of 128 KB."""
    blocks = size >> 17
    return b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", size) + b"".join(
        struct.pack("<I", (i + 1 == blocks) | 1 << 1 | 1 << 17 << 3)[:3] + b"\0" for i in range(blocks))


def check_parquet():
    def page(kind, size, field, inner):
        packed = zeros(size)
        return thrift((1, kind), (2, size), (3, len(packed)), (field, inner)) + packed
    data = page(0, 1 << 17, 5, thrift((1, 1), (2, 0), (3, 3), (4, 3)))
    unused = thrift((1, 1), (2, 0), (3, 5000)) + bytes(5000)
    bombs = page(2, 64 << 20, 7, thrift((1, 0), (2, 0))) * 30
    embed = "-o", "v.npy", "--mode", "reference", "-q"
    kit.expect(0, None, "embed", "model", "-i", parquet("one.parquet", unused + data, 1), *embed)
    kit.expect(2, "its columns share bytes", "embed", "model", "-i", parquet("shared.parquet", unused + data, 3),
               *embed)
    kit.expect(2, "bytes when unpacked, which is more", "embed", "model", "-i",
               parquet("bombs.parquet", bombs + data, 1), *embed)


text_embed.make_model("model")
kit.write("texts.txt", "the cats\n")
check_vocabularies()
check_size()
check_record()
check_parquet()
check_tracks()
check_gguf_head()
check_records()
check_tables()
check_shared()
check_frames()
check_holes()
check_gguf_hole()
check_gzip()
check_link()
check_tiff()
check_fifos()
kit.finish()
