#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `cleave embed` with sentence-transformers on model folders as people have them: tokenizers with and without
tokenizer.json, poolings in the old and the new notation, prompts, limits of length, kinds of weights. Both
programs compute in float32.

usage: folders_sentences.py CLEAVE [NAME...]      NAME: only the folders of this name

Every folder holds a small BERT of random weights. A folder passes if the vectors agree to 1e-5 of the largest number,
or if `cleave embed` refuses it; the message is printed. The exit code is 1 if vectors differ, or if Cleave makes
vectors of a folder that sentence-transformers refuses. Made for sentence-transformers 6.2 and transformers 5.24.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "data", "model", "families"))
import make_families  # noqa: E402

TEXTS = ["The planets of a star are found in many frames.", "", "a", "Ünï­cödé naïve café, Straße!",
         "it's we'll THEY'VE done", "東京タワー 한국어", "a [MASK] b [E1] [SEP] planetary orbits",
         "word star " * 60, "  lead  tail ", "İstanbul ſtop"]
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WIDTH = 32
OLD = {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
       "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}
NEW = {"embedding_dimension": WIDTH, "pooling_mode": "mean"}
NO_MEAN = {"pooling_mode_mean_tokens": False}
NEW_TYPES = {"Transformer": "sentence_transformers.base.modules.transformer.Transformer",
             "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
             "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
             "Dense": "sentence_transformers.base.modules.dense.Dense"}


def vocabulary():
    """Returns cased and lower-cased pieces, so that the folder may ask for either."""
    lines = make_families.corpus()
    pieces = []
    for lower in (False, True):
        found = make_families.wordpieces(lines, 500, SPECIALS, lower=lower)
        pieces += [piece for piece in sorted(found, key=found.get) if piece not in pieces]
    return pieces


class Folder:
    """A model folder that is being made; the tokenizer has vocab.txt ("vocab") or tokenizer.json ("json")."""

    def __init__(self, path, pieces, tokenizer="json", kind=transformers.BertModel, dtype=None, shard=None, more=0,
                 cased=False, **config):
        self.path, self.pieces = path, pieces
        sizes = {"vocab_size": len(pieces) + more, "hidden_size": WIDTH, "num_attention_heads": 4,
                 "num_hidden_layers": 2, "intermediate_size": 48, "max_position_embeddings": 64, **config}
        torch.manual_seed(5)
        model = kind(transformers.BertConfig(**sizes)).eval()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                norm = "norm" in name.lower() and name.endswith("weight")
                scale = 0.3 if weight.dim() == 1 else 1.2 / weight.shape[-1] ** 0.5
                weight.copy_(torch.randn(weight.shape) * scale + norm)
        model.to(dtype or torch.float32).save_pretrained(path, **({"max_shard_size": shard} if shard else {}))
        with open(self.file("vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(pieces) + "\n")
        if tokenizer == "json":
            transformers.BertTokenizer.from_pretrained(path, do_lower_case=not cased).save_pretrained(path)
            if os.path.exists(self.file("vocab.txt")):
                os.remove(self.file("vocab.txt"))

    def file(self, name):
        return os.path.join(self.path, name)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)
        with open(self.file(name), "w", encoding="utf-8") as file:
            json.dump(content, file)

    def read(self, name):
        if not os.path.exists(self.file(name)):
            return {}
        with open(self.file(name), encoding="utf-8") as file:
            return json.load(file)

    def change(self, name, **members):
        self.write(name, {**self.read(name), **members})

    def modules(self, *modules, new=False, first=""):
        rows = [{"idx": 0, "name": "0", "path": first,
                 "type": NEW_TYPES["Transformer"] if new else "sentence_transformers.models.Transformer"}]
        for i, (kind, config) in enumerate(modules, 1):
            rows.append({"idx": i, "name": str(i), "path": "%d_%s" % (i, kind),
                         "type": NEW_TYPES[kind] if new else "sentence_transformers.models." + kind})
            os.makedirs(self.file(rows[-1]["path"]), exist_ok=True)
            if config is not None:
                self.write(rows[-1]["path"] + "/config.json", config)
            if kind == "Dense":
                torch.manual_seed(9)
                weights = {"linear.weight": torch.randn(config["out_features"], config["in_features"]) * 0.3}
                if config["bias"]:
                    weights["linear.bias"] = torch.randn(config["out_features"]) * 0.3
                save_file(weights, self.file(rows[-1]["path"] + "/model.safetensors"))
        self.write("modules.json", rows)


def old_names_of_norms(folder):
    weights = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
               for name, weight in load_file(folder.file("model.safetensors")).items()}
    save_file(weights, folder.file("model.safetensors"), metadata={"format": "pt"})


def in_its_own_folder(folder):
    os.makedirs(folder.file("0_Transformer"))
    for name in os.listdir(folder.path):
        if os.path.isfile(folder.file(name)):
            os.rename(folder.file(name), folder.file("0_Transformer/" + name))
    folder.write("0_Transformer/sentence_bert_config.json", {"max_seq_length": 30, "do_lower_case": False})
    folder.modules(("Pooling", OLD), ("Normalize", None), first="0_Transformer")


def with_added_tokens(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder.path)
    tokenizer.add_tokens(["[E1]", "[E2]"], special_tokens=True)
    tokenizer.add_tokens(["planetary"])
    tokenizer.save_pretrained(folder.path)


def added_in_config(folder):
    token = {"content": "[E1]", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
             "special": True}
    folder.write("tokenizer_config.json", {"do_lower_case": True,
                                           "added_tokens_decoder": {str(len(folder.pieces)): token}})


def truncation_in_json(folder):
    folder.change("tokenizer.json", truncation={"direction": "Left", "max_length": 8, "strategy": "LongestFirst",
                                                "stride": 0},
                  padding={"strategy": {"Fixed": 16}, "direction": "Left", "pad_to_multiple_of": None, "pad_id": 0,
                           "pad_type_id": 0, "pad_token": "[PAD]"})


def saved_by_sentence_transformers(folder):
    model = SentenceTransformer(folder.path, device="cpu")
    model.max_seq_length, model.prompts, model.default_prompt_name = 20, {"q": "ask: "}, "q"
    model.save(folder.path)


def settings(name, **members):
    return lambda folder: folder.change(name, **members)


def sentences(pooling=OLD, prompts=None, new=False, **config):
    """Adds the files of sentence-transformers with this pooling, these prompts, and members of
    sentence_bert_config.json."""
    def make(folder):
        folder.modules(("Pooling", pooling), new=new)
        if config:
            folder.write("sentence_bert_config.json", config)
        if prompts:
            folder.write("config_sentence_transformers.json", prompts)
    return make


def dense(activation, bias=True, new=False):
    config = {"in_features": WIDTH, "out_features": 20, "bias": bias,
              "activation_function": "torch.nn.modules." + activation}
    return lambda folder: folder.modules(("Pooling", NEW if new else OLD), ("Dense", config),
                                         ("Normalize", {} if new else None), new=new)


CONFIG, VOCAB = "tokenizer_config.json", {"tokenizer": "vocab"}
QUERY = {"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"}
FOLDERS = {  # name: (arguments of Folder, the function that then changes the folder)
    "vocab": (VOCAB, None),
    "vocab-cased": (VOCAB, settings(CONFIG, do_lower_case=False)),
    "vocab-limit": (VOCAB, settings(CONFIG, do_lower_case=False, model_max_length=40)),
    "vocab-strip": (VOCAB, settings(CONFIG, do_lower_case=False, strip_accents=True)),
    "vocab-accents": (VOCAB, settings(CONFIG, do_lower_case=True, strip_accents=False)),
    "vocab-ideographs": (VOCAB, settings(CONFIG, do_lower_case=True, tokenize_chinese_chars=False)),
    "vocab-not-basic": (VOCAB, settings(CONFIG, do_basic_tokenize=False)),
    "vocab-never-split": (VOCAB, settings(CONFIG, never_split=["it"])),
    "vocab-specials": (VOCAB, settings(CONFIG, cls_token="it", sep_token="a")),
    "vocab-added-config": ({**VOCAB, "more": 3}, added_in_config),
    "vocab-added-file": ({**VOCAB, "more": 3}, lambda f: f.write("added_tokens.json", {"[E1]": len(f.pieces)})),
    "json": ({}, None),
    "json-cased": ({"cased": True}, None),
    "json-cased-by-config": ({}, settings(CONFIG, do_lower_case=False)),
    "json-lower-by-config": ({"cased": True}, settings(CONFIG, do_lower_case=True)),
    "json-accents-by-config": ({}, settings(CONFIG, strip_accents=False)),
    "json-ideographs-by-config": ({}, settings(CONFIG, tokenize_chinese_chars=False)),
    "json-without-config": ({}, lambda f: os.remove(f.file(CONFIG))),
    "json-cased-without-config": ({"cased": True}, lambda f: os.remove(f.file(CONFIG))),
    "json-added": ({"more": 3}, with_added_tokens),
    "json-truncation": ({}, truncation_in_json),
    "truncation-left": ({}, settings(CONFIG, truncation_side="left")),
    "padding-left": ({}, settings(CONFIG, padding_side="left")),
    "limit-none": ({}, settings(CONFIG, model_max_length=int(1e30))),
    "limit-12": ({}, settings(CONFIG, model_max_length=12)),
    "limit-above-positions": ({}, sentences(max_seq_length=512, do_lower_case=False)),
    "limit-10": ({}, sentences(max_seq_length=10, do_lower_case=False)),
    "limit-null": ({}, sentences(max_seq_length=None, do_lower_case=False)),
    "limit-distilbert-config": ({}, lambda f: (f.modules(("Pooling", OLD)), f.write(
        "sentence_distilbert_config.json", {"max_seq_length": 9, "do_lower_case": False}))),
    "lower-by-sentences": ({"cased": True}, sentences(max_seq_length=50, do_lower_case=True)),
    "own-folder": ({}, in_its_own_folder),
    "pooling-cls": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_cls_token": True})),
    "pooling-max": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_max_tokens": True})),
    "pooling-mean-max": ({}, sentences({**OLD, "pooling_mode_max_tokens": True})),
    "pooling-sqrt": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_mean_sqrt_len_tokens": True})),
    "pooling-last": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_lasttoken": True})),
    "pooling-weighted": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_weightedmean_tokens": True})),
    "pooling-three": ({}, sentences({**OLD, "pooling_mode_cls_token": True, "pooling_mode_lasttoken": True})),
    "pooling-only-width": ({}, sentences({"word_embedding_dimension": WIDTH})),
    "pooling-word-cls": ({}, sentences({"word_embedding_dimension": WIDTH, "pooling_mode": "cls"})),
    "pooling-word-list": ({}, sentences({**NEW, "pooling_mode": ["cls", "max"]}, new=True)),
    "pooling-both": ({}, sentences({**OLD, "pooling_mode": "max"})),
    "pooling-none": ({}, lambda f: f.modules()),
    "pooling-layers": ({}, lambda f: f.modules(("WeightedLayerPooling", {
        "word_embedding_dimension": WIDTH, "layer_start": 1, "num_hidden_layers": 2}))),
    "dense-tanh": ({}, dense("activation.Tanh")),
    "dense-identity": ({}, dense("linear.Identity", bias=False)),
    "dense-relu": ({}, dense("activation.ReLU")),
    "dense-gelu": ({}, dense("activation.GELU")),
    "dense-sigmoid": ({}, dense("activation.Sigmoid")),
    "dense-new": ({}, dense("activation.Tanh", new=True)),
    "dropout": ({}, lambda f: f.modules(("Pooling", OLD), ("Dropout", {"dropout": 0.5}))),
    "prompt": ({}, sentences(prompts=QUERY)),
    "prompt-dot": ({}, sentences(prompts={**QUERY, "similarity_fn_name": "dot"})),
    "prompt-left-out": ({}, sentences({**OLD, "include_prompt": False}, prompts=QUERY)),
    "prompt-out-cls": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_cls_token": True, "include_prompt": False},
                                     prompts=QUERY)),
    "prompt-out-max": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_max_tokens": True, "include_prompt": False},
                                     prompts=QUERY)),
    "prompt-out-sqrt": ({}, sentences({**OLD, "pooling_mode_mean_sqrt_len_tokens": True, "include_prompt": False},
                                      prompts=QUERY)),
    "prompt-out-weighted": ({}, sentences({**OLD, **NO_MEAN, "pooling_mode_weightedmean_tokens": True,
                                           "pooling_mode_lasttoken": True, "include_prompt": False}, prompts=QUERY)),
    "prompt-out-short": ({}, sentences({**OLD, "include_prompt": False}, prompts=QUERY, max_seq_length=6,
                                       do_lower_case=False)),
    "prompt-missing": ({}, sentences(prompts={**QUERY, "default_prompt_name": "none"})),
    "truncate-dim": ({}, sentences(prompts={"truncate_dim": 8})),
    "saved-again": ({}, saved_by_sentence_transformers),
    "shards": ({"shard": "30KB"}, None),
    "float16": ({"dtype": torch.float16}, None),
    "bfloat16": ({"dtype": torch.bfloat16}, None),
    "masked-lm": ({"kind": transformers.BertForMaskedLM}, None),
    "pretraining": ({"kind": transformers.BertForPreTraining}, None),
    "classifier": ({"kind": transformers.BertForSequenceClassification}, None),
    "old-norms": ({}, old_names_of_norms),
    "gelu-new": ({"hidden_act": "gelu_new"}, None),
    "relu": ({"hidden_act": "relu"}, None),
    "silu": ({"hidden_act": "silu"}, None),
    "tanh": ({"hidden_act": "tanh"}, None),
    "gelu-fast": ({"hidden_act": "gelu_fast"}, None),
    "gelu-python": ({"hidden_act": "gelu_python"}, None),
    "relu6": ({"hidden_act": "relu6"}, None),
    "one-type": ({"type_vocab_size": 1}, None),
    "eps": ({"layer_norm_eps": 1e-3}, None),
}


def their_vectors(path):
    """Returns the vector of each text alone, since vectors may depend on padding (None: this text fails), and an
    error."""
    found, message = [None] * len(TEXTS), None
    try:
        model = SentenceTransformer(path, device="cpu", model_kwargs={"dtype": torch.float32})
    except Exception as error:  # any exception counts as a refusal
        return found, "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:100])
    for i, text in enumerate(TEXTS):
        try:
            found[i] = model.encode([text], convert_to_numpy=True, show_progress_bar=False)[0].astype(float)
        except Exception as error:
            message = "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:100])
    return found, message


def compare(cleave, name, path, texts):
    vectors = path + ".npy"
    command = [cleave, "embed", path, "-i", texts, "-o", vectors, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True)
    wanted, refusal = their_vectors(path)
    if done.returncode:
        message = " ".join(done.stderr.split()).replace(path, "FOLDER")
        print("%-26s refused (sentence-transformers: %s): %s" % (name, refusal or "accepts it", message[:300]),
              flush=True)
        return True
    got = numpy.load(vectors).astype(float)
    taken = [i for i, vector in enumerate(wanted) if vector is not None]
    if not taken or any(got[i].shape != wanted[i].shape for i in taken):
        print("%-26s OTHER: vectors of %s; sentence-transformers: %s" % (
            name, got.shape, refusal or wanted[taken[0]].shape), flush=True)
        return False
    apart = {i: abs(got[i] - wanted[i]).max() for i in taken}
    fine = max(apart.values()) < 1e-5 * max(1, max(abs(wanted[i]).max() for i in taken))
    note = "" if fine else " in texts %s" % [i for i in taken if apart[i] > 1e-5]
    if len(taken) < len(TEXTS):
        note += "; sentence-transformers fails for texts %s" % [i for i in range(len(TEXTS)) if i not in taken]
    print("%-26s %s, largest difference %.1e%s" % (name, "equal" if fine else "OTHER", max(apart.values()), note),
          flush=True)
    return fine


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    pieces, fine = vocabulary(), True
    with tempfile.TemporaryDirectory() as room:
        texts = os.path.join(room, "texts.jsonl")
        with open(texts, "w", encoding="ascii") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in TEXTS)
        for name, (arguments, finish) in FOLDERS.items():
            if sys.argv[2:] and name not in sys.argv[2:]:
                continue
            folder = Folder(os.path.join(room, name), pieces, **arguments)
            if finish:
                finish(folder)
            fine &= compare(sys.argv[1], name, folder.path, texts)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
