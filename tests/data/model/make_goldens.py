#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the goldens of the tokenizer's tests: a small vocabulary that has every character of the texts, so that ids
show how each character is converted, and the ids that the library tokenizers computes.

usage: make_goldens.py OUTDIR      needs: tokenizers (0.23.3 made what is here)
Writes OUTDIR/tiny/tokenizer.json, OUTDIR/tiny/vocab.txt and OUTDIR/tokens.json: the texts, and for
each way of normalising their ids.
"""
import json
import os
import random
import sys
import unicodedata

from tokenizers import Tokenizer, normalizers, pre_tokenizers

OUT = sys.argv[1]
RANDOM = random.Random(20261121)
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WAYS = {"uncased": (True, None), "cased": (False, None), "accents": (True, False),
        "plain": (False, True)}
WORDS = ["the", "cat", "run", "##ning", "##s", "un", "##aff", "##able", "caf", "##e", "cafe", "straße",
         "##aß", "12", "##3", "東", "##ing", "##i", "in", "##n"]
FIXED = [
    "", " ", "?", "the cats", "running", "unaffable", "Café CAFE cafe\u0301", "the[MASK]cat",
    "[CLS]the[SEP]", "[mask] [Cls]", "[[MASK]]", "[MASK", "a\u200bb", "a\u00adb", "a\x07b", "a\x0bb",
    "a\x85b", "a\u2028b", "a\u3000b", "a\x00b", "a\ufffdb", "a\ue000b", "a\u0378b", "a\tb\rc\nd",
    "\u0130stanbul", "ΟΔΟΣ ΣΑΣ", "Straße GROẞE", "한글", "東京タワー", "a東b京c", "\U00020000x\U0002B820y",
    "x" * 100, "x" * 101, "é" * 100, "e\u0301" * 100, "e\u0301" * 101, "≠ ≤ a\u0338b", "\u037e\u0387\u1fef",
    "\uf900\u2126\u212b", "\u0374", "q\u0323\u0307 q\u0307\u0323", "\u302f\u302e a\u302e\u0301\u302f",
    "a\u1d166\u1d165", "a\U0001d166\U0001d165b", "a\U0001d165\u034f\U0001d166b", "\u166d\u1734x",
    "a\U000111c9b", "\ua7cb\ua7dc", "don't -- stop... (now)", "$€£ ¿qué?", "1.5e-3", "x_y^z`~|",
]


def random_text():
    kinds = ["any", "low", "marks", "words", "ascii", "latin", "special", "block"]
    kind, length = RANDOM.choice(kinds), RANDOM.randrange(1, 24)
    out = ""
    base = RANDOM.randrange(0x3200) & ~0x7F
    for _ in range(length):
        if kind == "any":
            c = RANDOM.randrange(0x30000)
        elif kind == "low":
            c = RANDOM.randrange(0x3100)
        elif kind == "block":
            c = base + RANDOM.randrange(0x80)
        elif kind == "marks":
            c = RANDOM.choice([0x301, 0x323, 0x327, 0x302E, 0x302F, 0x1D165, 0x1D16D, 0x34F, 0x61, 0xE9,
                               0x1B44, 0x200D, 0xAC00, 0x11A8, 0x20])
        elif kind == "words":
            out += RANDOM.choice(WORDS).replace("##", "") + RANDOM.choice(["", "", " ", "-"])
            continue
        elif kind == "special":
            out += RANDOM.choice(SPECIALS + ["[", "]", "[[", " ", "a", "\u0301", "[MA"])
            continue
        else:
            c = RANDOM.randrange(32, 127 if kind == "ascii" else 0x250)
        out += "" if 0xD800 <= c < 0xE000 else chr(c)
    return out


def normalizer(way):
    lower, strip = WAYS[way]
    return normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=strip,
                                      lowercase=lower)


def main():
    texts = FIXED + [random_text() for _ in range(260)]
    pieces = dict.fromkeys(SPECIALS + WORDS)
    for way in WAYS:
        for text in texts:
            split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normalizer(way).normalize_str(text))
            for word, _ in split:
                for i, c in enumerate(word):
                    if unicodedata.category(c) != "Cn":
                        pieces[("##" if i else "") + c] = None
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    frame = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    described = {
        "version": "1.0", "truncation": {"max_length": 8, "strategy": "LongestFirst", "stride": 0,
                                         "direction": "Right"},
        "padding": None,
        "added_tokens": [{"id": vocabulary[s], "content": s, "single_word": False, "lstrip": False,
                          "rstrip": False, "normalized": False, "special": True} for s in SPECIALS],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": frame, "pair": frame + [
            {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
            "special_tokens": {s: {"id": s, "ids": [vocabulary[s]], "tokens": [s]}
                               for s in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    }
    os.makedirs(os.path.join(OUT, "tiny"), exist_ok=True)
    with open(os.path.join(OUT, "tiny", "tokenizer.json"), "w", encoding="ascii") as file:
        json.dump(described, file)
    with open(os.path.join(OUT, "tiny", "vocab.txt"), "w", encoding="utf-8", newline="\n") as file:
        file.write("".join(piece + "\n" for piece in vocabulary))
    tokenizer = Tokenizer.from_str(json.dumps(described))
    tokenizer.no_truncation()
    goldens = {"texts": texts}
    for way in WAYS:
        tokenizer.normalizer = normalizer(way)
        goldens[way] = [tokenizer.encode(text).ids for text in texts]
    with open(os.path.join(OUT, "tokens.json"), "w", encoding="ascii") as file:
        # a NUL cannot be written as JSON for every reader: U+F0000 stands for it
        goldens["texts"] = [text.replace("\0", "\U000F0000") for text in texts]
        json.dump(goldens, file, separators=(",", ":"))
    print(len(texts), "texts,", len(vocabulary), "pieces")


if __name__ == "__main__":
    main()
