# SPDX-License-Identifier: Apache-2.0
"""Writes one movie in every form that `cleave blobs` reads, byte by byte, so that no library is needed."""
import struct
import zlib

TAGS = {"width": (256, 4), "height": (257, 4), "bits": (258, 3), "packing": (259, 3), "grey": (262, 3),
        "description": (270, 2), "offsets": (273, 16), "samples": (277, 3), "rows": (278, 4), "counts": (279, 16),
        "predictor": (317, 3), "tile_width": (322, 4), "tile_height": (323, 4), "tile_offsets": (324, 16),
        "tile_counts": (325, 16), "format": (339, 3), "depth": (32997, 4)}
SIZE = {2: 1, 3: 2, 4: 4, 16: 8}
CODE = {2: "B", 3: "H", 4: "I", 16: "Q"}
NONE, LZW, DEFLATE, PACKBITS, OLD_DEFLATE = 1, 5, 8, 32773, 32946


def lzw(data):
    """Compresses by TIFF's LZW: codes of 9 to 12 bits, the most significant bit first, which become longer one code
    early."""
    table, out, held, bits, width = {}, bytearray(), 0, 0, 9

    def put(code):
        nonlocal held, bits
        held, bits = held << width | code, bits + width
        while bits >= 8:
            bits -= 8
            out.append(held >> bits & 255)
        held &= (1 << bits) - 1

    def restart():
        nonlocal table, width
        put(256)
        table, width = {bytes([i]): i for i in range(256)}, 9
    restart()
    word = b""
    for byte in data:
        longer = word + bytes([byte])
        if longer in table:
            word = longer
            continue
        put(table[word])
        table[longer] = len(table) + 2
        if len(table) + 2 >= 4094:
            restart()
        else:
            width = max(9, (len(table) + 2).bit_length())
        word = bytes([byte])
    if word:
        put(table[word])
        table[b""] = None
        width = max(width, (len(table) + 2).bit_length())
    put(257)
    if bits:
        out.append(held << (8 - bits) & 255)
    return bytes(out)


def packbits(data):
    out, at = bytearray(), 0
    while at < len(data):
        run = 1
        while at + run < len(data) and run < 128 and data[at + run] == data[at]:
            run += 1
        if run > 2:
            out += bytes([257 - run, data[at]])
        else:
            run = min(len(data) - at, 100)
            out += bytes([run - 1]) + data[at:at + run]
        at += run
    return bytes(out)


PACK = {NONE: bytes, LZW: lzw, DEFLATE: zlib.compress, OLD_DEFLATE: zlib.compress, PACKBITS: packbits}


def number_code(kind):
    """Returns struct's letter, the number of bits and TIFF's sample format of a type."""
    return {"u1": ("B", 8, 1), "i1": ("b", 8, 2), "u2": ("H", 16, 1), "i2": ("h", 16, 2), "f2": ("e", 16, 3),
            "f4": ("f", 32, 3), "f8": ("d", 64, 3)}[kind]


def tiff(path, frames, order="<", big=False, packing=NONE, predictor=1, rows=None, tile=None, kind="u2",
         description=None, contiguous=False, depth=0):
    """Returns a TIFF file. `contiguous`: it has one directory, whose description announces the other frames, as ImageJ
    writes it. `depth`: every directory claims this number of planes."""
    letter, bits, sample = number_code(kind)
    height, width = len(frames[0]), len(frames[0][0])
    file = bytearray((b"II" if order == "<" else b"MM") + struct.pack(
        order + ("HHHQ" if big else "HI"), *((43, 8, 0, 0) if big else (42, 0))))
    link = 8 if big else 4

    def lines_of(block):
        lines = []
        for line in block:
            if predictor == 2:
                line = [line[0]] + [(b - a) % (1 << bits) for a, b in zip(line, line[1:])]
            lines.append(struct.pack(order + str(len(line)) + letter, *line))
        return b"".join(lines)

    def blocks_of(frame):
        if not tile:
            step = rows or height
            return [frame[y:y + step] for y in range(0, height, step)]
        wide = [line + [0] * (-width % tile) for line in frame] + [[0] * (width + -width % tile)] * (-height % tile)
        return [[line[x:x + tile] for line in wide[y:y + tile]] for y in range(0, len(wide), tile)
                for x in range(0, len(wide[0]), tile)]

    for number, frame in enumerate(frames):
        parts = [PACK[packing](lines_of(block)) for block in blocks_of(frame)]
        if contiguous and number:
            file += b"".join(parts)
            continue
        offsets = []
        for part in parts:
            file += b"\0" * (len(file) % 2)
            offsets.append(len(file))
            file += part
        values = {"width": [width], "height": [height], "bits": [bits], "packing": [packing], "grey": [1],
                  "samples": [1], "predictor": [predictor], "format": [sample]}
        if tile:
            values.update(tile_width=[tile], tile_height=[tile], tile_offsets=offsets,
                          tile_counts=[len(p) for p in parts])
        else:
            values.update(rows=[rows or height], offsets=offsets, counts=[len(p) for p in parts])
        if depth:
            values["depth"] = [depth]
        if description and not number:
            values["description"] = list(description.encode()) + [0]
        if not contiguous:
            link = add_directory(file, order, big, values, link)
    if contiguous:
        add_directory(file, order, big, values, link)
    with open(path, "wb") as out:
        out.write(file)


def add_directory(file, order, big, values, link):
    """Appends a directory and lets `link` point to it; returns the position of its own link."""
    entries = b""
    for name in sorted(values, key=lambda n: TAGS[n][0]):
        tag, kind = TAGS[name]
        kind = 4 if kind == 16 and not big else kind
        data = struct.pack(order + str(len(values[name])) + CODE[kind], *values[name])
        if len(data) > (8 if big else 4):
            file += b"\0" * (len(file) % 2)
            place, at = struct.pack(order + ("Q" if big else "I"), len(file)), len(file)
            file[at:] = data
        else:
            place = data.ljust(8 if big else 4, b"\0")
        entries += struct.pack(order + ("HHQ" if big else "HHI"), tag, kind, len(values[name])) + place
    file += b"\0" * (-len(file) % 8)
    where, count = len(file), len(values)
    file[link:link + (8 if big else 4)] = struct.pack(order + ("Q" if big else "I"), where)
    file += struct.pack(order + ("Q" if big else "H"), count) + entries + (b"\0" * 8 if big else b"\0" * 4)
    return len(file) - (8 if big else 4)


def npy(path, frames, shape, order="<", kind="u2", version=1, fortran=False):
    """Returns an NPY file of version 1, 2 or 3."""
    flat = [v for frame in frames for line in frame for v in line]
    if fortran:
        turned = [0] * len(flat)
        steps, step = [], 1
        for size in shape:
            steps.append(step)
            step *= size
        for at, value in enumerate(flat):
            left, to = at, 0
            for size, step in zip(shape[::-1], steps[::-1]):
                to += left % size * step
                left //= size
            turned[to] = value
        flat = turned
    header = "{'descr': '%s%s', 'fortran_order': %s, 'shape': %s, }" % (order, kind, fortran, tuple(shape))
    lead = 10 if version == 1 else 12
    header += " " * (-(len(header) + lead + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)))
        file.write(header.encode())
        file.write(struct.pack(order.strip("|") + str(len(flat)) + number_code(kind)[0], *flat))


def imagej(count, slices=0, frames=0):
    text = "ImageJ=1.53t\nimages=%d\n" % count
    if slices:
        text += "slices=%d\n" % slices
    if frames:
        text += "frames=%d\n" % frames
    return text + ("hyperstack=true\n" if slices and frames else "") + "mode=grayscale\n"


def ome(count, depth, height, width, kind="uint16"):
    return ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06">'
            '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZTC" Type="%s" SizeX="%d" SizeY="%d" '
            'SizeZ="%d" SizeT="%d" SizeC="1"><TiffData IFD="0" PlaneCount="%d"/></Pixels></Image></OME>'
            % (kind, width, height, depth, count, depth * count))
