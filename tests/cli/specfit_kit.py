# SPDX-License-Identifier: Apache-2.0
"""Reads and makes FITS files for the tests of `cleave specfit`, with only Python's standard library."""
import gzip
import struct

BLOCK, CARD = 2880, 80
SIZES = {"L": 1, "B": 1, "I": 2, "J": 4, "K": 8, "E": 4, "D": 8, "A": 1}
CODES = {"L": "c", "I": "h", "J": "i", "K": "q", "E": "f", "D": "d"}


def padded(data, fill):
    return data + fill * (-len(data) % BLOCK)


class Hdu:
    """The cards in order, and the bytes of the data."""

    def __init__(self, cards, data=b""):
        self.cards, self.data = cards, data

    def get(self, key, default=None):
        for card in self.cards:
            if card[:8].strip() == key:
                value = card[10:]
                if value.startswith("'"):
                    return value[1:value.index("'", 1)].rstrip()
                return value.split("/")[0].strip()
        return default

    def set(self, key, value):
        text = f"'{value:<8}'" if isinstance(value, str) else f"{value:>20}"
        card = f"{key:<8}= {text}".ljust(CARD)
        for i, old in enumerate(self.cards):
            if old[:8].strip() == key:
                self.cards[i] = card
                return
        self.cards.append(card)

    @property
    def name(self):
        return self.get("EXTNAME", "PRIMARY")

    @property
    def axes(self):
        return [int(self.get(f"NAXIS{i + 1}")) for i in range(int(self.get("NAXIS")))]

    # ---- tables: columns {name: (form, unit, first byte, bytes)}

    @property
    def columns(self):
        found, at = {}, 0
        for i in range(1, int(self.get("TFIELDS")) + 1):
            form = self.get(f"TFORM{i}")
            width = int(form[:-1] or 1) * SIZES[form[-1]]
            found[self.get(f"TTYPE{i}")] = (form, self.get(f"TUNIT{i}"), at, width)
            at += width
        return found

    def row(self, i):
        return self.data[i * self.axes[0]:(i + 1) * self.axes[0]]

    def column(self, name):
        form, _, at, width = self.columns[name]
        texts = [self.row(i)[at:at + width] for i in range(self.axes[1])]
        if form[-1] == "A":
            return [t.split(b"\0")[0].decode("ascii").rstrip() for t in texts]
        values = [struct.unpack(">" + CODES[form[-1]], t)[0] for t in texts]
        return [v == b"T" for v in values] if form[-1] == "L" else values

    # ---- images

    def values(self, row):
        """Returns the numbers of one row of an image (float32 or int32)."""
        n = 1
        for axis in self.axes[:-1]:
            n *= axis
        code = {"-32": "f", "32": "i", "-64": "d"}[self.get("BITPIX")]
        size = struct.calcsize(code)
        return list(struct.unpack(f">{n}{code}", self.data[row * n * size:(row + 1) * n * size]))

    def put(self, row, numbers):
        code = {"-32": "f", "32": "i", "-64": "d"}[self.get("BITPIX")]
        raw = struct.pack(f">{len(numbers)}{code}", *numbers)
        self.data = self.data[:row * len(raw)] + raw + self.data[(row + 1) * len(raw):]

    def bytes(self):
        head = "".join(self.cards) + "END".ljust(CARD)
        return padded(head.encode("ascii"), b" ") + padded(self.data, b"\0")


def bytes_of(path):
    """Returns the bytes of a file, uncompressed if its name ends in .gz."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        return file.read()


def read(path):
    raw = bytes_of(path)
    at, hdus = 0, []
    while at < len(raw):
        hdu = Hdu([])
        while True:
            block = [raw[i:i + CARD].decode("ascii") for i in range(at, at + BLOCK, CARD)]
            at += BLOCK
            ends = [i for i, card in enumerate(block) if card.rstrip() == "END"]
            hdu.cards += block[:ends[0]] if ends else block
            if ends:
                break
        size = abs(int(hdu.get("BITPIX"))) // 8 if hdu.axes else 0
        for axis in hdu.axes:
            size *= axis
        hdu.data = raw[at:at + size]
        at += size + -size % BLOCK
        hdus.append(hdu)
    assert at == len(raw), "shorter than its headers say"
    return {hdu.name: hdu for hdu in hdus}


def write(path, hdus):
    with open(path, "wb") as file:
        for hdu in hdus.values():
            file.write(hdu.bytes())


def table(name, columns, rows):
    """Returns a table; columns: [(name, form, unit or None)]; rows: tuples."""
    width = sum(int(form[:-1] or 1) * SIZES[form[-1]] for _, form, _ in columns)
    hdu = Hdu([])
    hdu.set("XTENSION", "BINTABLE")
    for key, value in (("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", width), ("NAXIS2", len(rows)),
                       ("PCOUNT", 0), ("GCOUNT", 1), ("TFIELDS", len(columns)),
                       ("EXTNAME", name)):
        hdu.set(key, value)
    for i, (column, form, unit) in enumerate(columns, 1):
        hdu.set(f"TTYPE{i}", column)
        hdu.set(f"TFORM{i}", form)
        if unit:
            hdu.set(f"TUNIT{i}", unit)
    for row in rows:
        for value, (_, form, _) in zip(row, columns):
            if form[-1] == "A":
                hdu.data += value.encode("ascii").ljust(int(form[:-1]), b"\0")
            else:
                hdu.data += struct.pack(">" + CODES[form[-1]], value)
    return hdu


def with_column(hdu, name, form, values):
    """Returns the table with a further column at its end."""
    old = [(c, about[0], about[1]) for c, about in hdu.columns.items()]
    new = table(hdu.name, old + [(name, form, None)], [])
    new.set("NAXIS2", hdu.axes[1])
    new.data = b"".join(hdu.row(i) + struct.pack(">" + CODES[form], v)
                        for i, v in enumerate(values))
    return new
