# SPDX-License-Identifier: Apache-2.0
"""Reads Parquet files of plain, uncompressed, required columns without any library, so that tests can check tables."""
import struct

KINDS = {1: ("i", 4), 2: ("q", 8), 4: ("f", 4), 5: ("d", 8)}  # INT32, INT64, FLOAT, DOUBLE


class Thrift:
    """Reads values of Thrift's compact protocol; a struct becomes a dictionary by field number."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def value(self, kind):
        if kind in (4, 5, 6):
            number = self.varint()
            return number >> 1 ^ -(number & 1)
        if kind == 8:
            length = self.varint()
            self.at += length
            return self.data[self.at - length:self.at]
        if kind == 9:
            head = self.byte()
            count = self.varint() if head >> 4 == 15 else head >> 4
            return [self.value(head & 15) for _ in range(count)]
        assert kind == 12, f"type {kind}"
        return self.struct()

    def struct(self):
        fields, number = {}, 0
        while True:
            head = self.byte()
            if not head:
                return fields
            assert head >> 4, "a field without a step"
            number += head >> 4
            fields[number] = self.value(head & 15)


def read(path):
    """Returns the rows as dictionaries."""
    with open(path, "rb") as file:
        return rows_of(file.read())


def rows_of(data):
    """Returns the rows of a file's contents."""
    assert data[:4] == data[-4:] == b"PAR1"
    length, = struct.unpack("<I", data[-8:-4])
    reader = Thrift(data, len(data) - 8 - length)
    footer = reader.struct()
    assert reader.at == len(data) - 8 and footer[1] == 1
    root, *columns = footer[2]
    assert root[5] == len(columns) and all(c[3] == 0 for c in columns), "required columns"
    names, values = [c[4].decode() for c in columns], [[] for _ in columns]
    for group in footer.get(4, []):
        for column, chunk, into in zip(columns, group[1], values):
            meta = chunk[3]
            assert meta[4] == 0 and meta[2] == [0] and meta[5] == group[3] and meta[3] == [column[4]]
            page = Thrift(data, meta[9])
            head = page.struct()
            assert head[1] == 0 and head[2] == head[3] and head[5][1] == meta[5] and head[5][2] == 0
            at, end = page.at, page.at + head[3]
            assert end - meta[9] == meta[6] == meta[7]
            while at < end:
                if column[1] == 6:
                    size, = struct.unpack_from("<I", data, at)
                    into.append(data[at + 4:at + 4 + size].decode())
                    at += 4 + size
                    continue
                code, size = KINDS[column[1]]
                into.append(struct.unpack_from("<" + (code.upper() if column.get(6) == 13 else code), data, at)[0])
                at += size
            assert at == end
    assert all(len(v) == footer[3] for v in values)
    return [dict(zip(names, row)) for row in zip(*values)]
