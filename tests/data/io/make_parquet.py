#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small Parquet files in the forms of pandas and pyarrow, and the tables that Cleave reads from them.

usage: make_parquet.py OUT [SEED]     writes OUT/NAME.parquet and OUT/NAME.csv, or only the former where Cleave refuses it
Made with pyarrow 26.0.1 and pandas 3.1.1. With a seed the tables are random and larger.
"""
import math
import os
import random
import sys

import pandas
import pyarrow
import pyarrow.parquet

WORDS = ["", "a", "the cat", "caf\u00e9", "two\nlines", 'a "quoted", text', "x" * 70, " "]


def cell(value, kind):
    if kind is str:
        value = value or ""
        return '"%s"' % value.replace('"', '""') if not value.strip() or any(c in value for c in ',"\r\n') else value
    if value is None or (kind is float and math.isnan(value)):
        return "nan"
    if kind is float:
        return "%.17g" % value if float("%.15g" % value) != value and float("%.16g" % value) != value else \
            "%.15g" % value if float("%.15g" % value) == value else "%.16g" % value
    return str(value)


def columns(chance, rows, missing):
    def maybe(value):
        return None if chance.random() < missing else value
    return {"text": [maybe(chance.choice(WORDS) + chance.choice(["", str(chance.randrange(9))])) for _ in range(rows)],
            "unique": [maybe("row %d of %d" % (i, chance.randrange(1000))) for i in range(rows)],
            "n": [maybe(chance.randrange(-5, 5)) for _ in range(rows)],
            "big": [maybe(chance.randrange(-2 ** 63, 2 ** 63)) for _ in range(rows)],
            "x": [maybe(chance.choice([0.25, -1e300, chance.uniform(-1, 1)])) for _ in range(rows)],
            "yes": [maybe(chance.random() < 0.5) for _ in range(rows)]}


KINDS = {"text": str, "unique": str, "n": int, "big": int, "x": float, "yes": bool}
TYPES = {"text": pyarrow.string(), "unique": pyarrow.string(), "n": pyarrow.int32(), "big": pyarrow.int64(), "x": pyarrow.float64(),
         "yes": pyarrow.bool_()}


def write(out, name, values, **how):
    table = pyarrow.table({key: pyarrow.array(column, TYPES[key]) for key, column in values.items()})
    pyarrow.parquet.write_table(table, os.path.join(out, name + ".parquet"), **how)
    expected(out, name, values)


def expected(out, name, values):
    with open(os.path.join(out, name + ".csv"), "w", encoding="utf-8", newline="") as file:
        file.write(",".join(values) + "\n")
        for row in zip(*values.values()):
            file.write(",".join(cell(value, KINDS[key]) for key, value in zip(values, row)) + "\n")


def main():
    out, seed = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    os.makedirs(out, exist_ok=True)
    chance = random.Random(seed or 1)
    rows = chance.randrange(1, 5000) if seed else 40
    some, full = columns(chance, rows, chance.choice([0.01, 0.2, 0.9]) if seed else 0.2), columns(chance, rows, 0)
    pandas.DataFrame(full).to_parquet(os.path.join(out, "pandas.parquet"), index=False)
    expected(out, "pandas", full)
    small = {"data_page_size": chance.choice([1, 64, 1000]) if seed else 64, "write_batch_size": 5}
    for codec in "none", "snappy", "gzip", "zstd":
        for version in "1.0", "2.0":
            for dictionary in False, True:
                if seed or (codec, version, dictionary) in (("none", "1.0", False), ("snappy", "2.0", True), ("gzip", "1.0", True),
                                                            ("zstd", "2.0", False)):
                    write(out, "%s_%s%s" % (codec, version[0], "_dictionary" if dictionary else ""), some, compression=codec,
                          data_page_version=version, use_dictionary=dictionary, row_group_size=chance.randrange(1, 2000) if seed else 17,
                          **small)
    write(out, "overflow", full, dictionary_pagesize_limit=60, **small)  # the dictionary ends, and plain pages follow
    write(out, "nothing", {"text": [None] * 3})
    write(out, "empty", {key: [] for key in full})
    if not seed:
        lists = pyarrow.table({"text": ["a", "b"], "list": [[1, 2], [3]]})
        pyarrow.parquet.write_table(lists, os.path.join(out, "refused_list.parquet"))
        pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"]}), os.path.join(out, "refused_brotli.parquet"), compression="brotli")
        pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"]}), os.path.join(out, "refused_delta.parquet"), use_dictionary=False,
                                    column_encoding={"text": "DELTA_BYTE_ARRAY"})


if __name__ == "__main__":
    main()
