#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `cleave embed` with sentence-transformers on model folders in which one value or one tensor was changed:
config.json, modules.json and the modules' settings, the weights, and the files of the tokenizer.

usage: mutations_sentences.py CLEAVE [PART...]      PART: only mutations whose name contains one of these texts

A mutated folder passes if the vectors agree to 1e-5 of the largest number ("equal"), if `cleave embed` refuses the
folder, or if it warns where they differ ("warned"). "alone" means that only sentence-transformers refuses the folder,
so that there is nothing to compare. One line per mutation is printed; the exit code is 1 if vectors differ silently
("OTHER"). Made for sentence-transformers 6.2 and transformers 5.24.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

import folders_sentences
from folders_sentences import CONFIG, NEW, NO_MEAN, OLD, TEXTS, WIDTH, Folder, make_families, settings

GONE = object()
FAMILY = {"width": WIDTH, "heads": 4, "layers": 2, "ffn": 48, "positions": 66, "pieces": 500}
LAYER = "encoder.layer.0."
SPECIAL_MAP = "special_tokens_map.json"


def edit(name, path, value):
    """Returns a function that sets the member at `path` ("a.b.c") of a JSON file, or removes it if `value` is GONE."""
    def change(folder):
        root = folder.read(name)
        *parents, last = path.split(".")
        node = root
        for parent in parents:
            node = node[int(parent)] if isinstance(node, list) else node.setdefault(parent, {})
        last = int(last) if isinstance(node, list) else last
        if value is GONE:
            node.pop(last, None)
        else:
            node[last] = value
        folder.write(name, root)
    return change


def tensors(change, metadata=None):
    """Returns a function that changes the dictionary of the tensors."""
    def rewrite(folder):
        weights = load_file(folder.file("model.safetensors"))
        weights = change(weights) or weights
        save_file({name: weight.clone().contiguous() for name, weight in weights.items()},
                  folder.file("model.safetensors"), metadata={"format": "pt"} if metadata is None else metadata)
    return rewrite


def one(name, change):
    return tensors(lambda weights: weights.update({name: change(weights[name])}))


def gone(name):
    return tensors(lambda weights: {other: weights[other] for other in weights if other != name})


def renamed(rule):
    return tensors(lambda weights: {rule(name): weight for name, weight in weights.items()})


def also(**more):
    return tensors(lambda weights: weights.update(more))


def both(*changes):
    def change(folder):
        for each in changes:
            each(folder)
    return change


def after(*modules, **arguments):
    return lambda folder: folder.modules(*modules, **arguments)


def rows(change):
    def rewrite(folder):
        folder.write("modules.json", change(folder.read("modules.json")))
    return rewrite


def dense(weights=None, **config):
    sizes = {"in_features": WIDTH, "out_features": 20, "bias": True,
             "activation_function": "torch.nn.modules.activation.Tanh", **config}
    sizes = {key: value for key, value in sizes.items() if value is not GONE}

    def make(folder):
        folder.modules(("Pooling", OLD), ("Dense", {**sizes, "bias": sizes.get("bias", True),
                                                    "in_features": WIDTH, "out_features": 20}))
        folder.write("2_Dense/config.json", sizes)
        path = folder.file("2_Dense/model.safetensors")
        if weights:
            save_file({name: weight.contiguous() for name, weight in weights(load_file(path)).items()}, path)
    return make


def pooling(**config):
    wanted = {key: value for key, value in config.items() if value is not GONE}
    return after(("Pooling", wanted))


def as_bin(folder):
    torch.save(load_file(folder.file("model.safetensors")), folder.file("pytorch_model.bin"))
    os.remove(folder.file("model.safetensors"))


def activations():
    names = ["gelu", "gelu_10", "gelu_fast", "gelu_new", "gelu_python", "gelu_pytorch_tanh", "gelu_accurate", "laplace",
             "leaky_relu", "linear", "mish", "quick_gelu", "relu", "relu2", "relu6", "sigmoid", "silu", "swish", "tanh",
             "prelu", "GELU", "", None, 3, GONE]
    return {"config hidden_act %s" % (None if n is GONE else repr(n)): edit("config.json", "hidden_act", n)
            for n in names}


def values(name, table):
    return {"%s %s=%s" % (name.split(".")[0], key, "(gone)" if value is GONE else json.dumps(value)):
            edit(name, key, value) for key, listed in table.items() for value in listed}


MODEL = values("config.json", {
    "position_embedding_type": ["absolute", "relative_key", "relative_key_query", "rotary", "none", None],
    "layer_norm_eps": [1e-5, 1e-3, 0.3, 0, -1, "1e-5", None, GONE],
    "pad_token_id": [3, 100, -1, None, 99999, GONE], "type_vocab_size": [0, 1, 3, GONE],
    "num_attention_heads": [1, 2, 8, 16, 32, 3, 5, 0, -4, 4.0, "4", None, GONE],
    "num_hidden_layers": [0, 1, 3, 2.0, GONE], "hidden_size": [16, 64], "intermediate_size": [24, 64, GONE],
    "vocab_size": [100, 5000, GONE], "max_position_embeddings": [10, 32, 128, GONE],
    "is_decoder": [True, False, None, 1], "add_cross_attention": [True], "is_encoder_decoder": [True],
    "chunk_size_feed_forward": [1, 2], "hidden_dropout_prob": [0.9], "attention_probs_dropout_prob": [0.9],
    "head_dim": [4], "num_key_value_heads": [2], "pruned_heads": [{}, {"0": [1]}], "tie_word_embeddings": [False],
    "output_hidden_states": [True], "output_attentions": [True], "return_dict": [False], "use_cache": [True],
    "architectures": [[], ["RobertaModel"], ["BertForMaskedLM"], ["BertLMHeadModel"], None, GONE],
    "model_type": ["roberta", "electra", "distilbert", "mpnet", "albert", "xlm-roberta", "camembert", "bert-generation",
                   "nomic_bert", "BERT", None, GONE],
    "dtype": ["float16", "bfloat16", "float64"], "torch_dtype": ["float16"],
    "embedding_size": [16], "quantization_config": [{"quant_method": "bitsandbytes", "load_in_8bit": True}],
    "attn_implementation": ["eager"], "_attn_implementation": ["eager"], "layer_types": [["full_attention"] * 2],
    "problem_type": ["regression"], "id2label": [{"0": "a"}], "rope_parameters": [{"rope_type": "default"}],
    "hidden_norm": ["rms"], "auto_map": [{"AutoModel": "modeling_other.OtherModel"}], "transformers_version": ["9.0"],
    "unpad_inputs": [True], "use_memory_efficient_attention": [True], "scale_attention": [False]})

ROBERTA = {"roberta " + name.split(" ", 1)[1]: change for name, change in values("config.json", {
    "pad_token_id": [0, 2, 3, 5, None, GONE], "max_position_embeddings": [40], "type_vocab_size": [2],
    "is_decoder": [True], "hidden_act": ["relu"], "layer_norm_eps": [1e-3, GONE],
    "position_embedding_type": ["relative_key"]}).items()}
OTHERS = {family + " " + name.split(" ", 1)[1]: change for family, table in {
    "distilbert": {"n_heads": [2, 8], "n_layers": [1, 3], "activation": ["relu", "gelu_new"], "dim": [16],
                   "sinusoidal_pos_embds": [True], "hidden_dim": [24], "pad_token_id": [7], "tie_weights_": [False]},
    "mpnet": {"relative_attention_num_buckets": [8, 16, 64, GONE], "pad_token_id": [0, 3], "hidden_act": ["relu"],
              "layer_norm_eps": [1e-3, GONE], "num_attention_heads": [2]},
    "albert": {"num_hidden_groups": [2], "inner_group_num": [2], "num_hidden_layers": [1, 3, 5],
               "embedding_size": [8, GONE], "hidden_act": ["gelu", "gelu_new", "relu", GONE], "layer_norm_eps": [GONE],
               "down_scale_factor": [2], "net_structure_type": [1], "gap_size": [1], "num_memory_blocks": [1],
               "position_embedding_type": ["relative_key"], "hidden_dropout_prob": [0.5]},
    "electra": {"embedding_size": [8, 16, GONE], "hidden_act": ["relu"], "type_vocab_size": [1],
                "is_decoder": [True], "summary_type": ["last"], "position_embedding_type": ["relative_key"]},
    "xlm-roberta": {"pad_token_id": [0, 3], "max_position_embeddings": [40], "is_decoder": [True]},
    }.items() for name, change in values("config.json", table).items()}

NORM = "embeddings.LayerNorm."
QUERY = LAYER + "attention.self.query.weight"
WEIGHTS = {
    **{"tensor gone " + name: gone(name) for name in (
        "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight", NORM + "weight", NORM + "bias", QUERY,
        LAYER + "attention.self.key.bias", LAYER + "attention.output.LayerNorm.bias",
        LAYER + "intermediate.dense.weight", LAYER + "output.dense.bias", "pooler.dense.weight")},
    **{"tensor %s of a query" % kind: one(QUERY, lambda w, kind=kind: w.to(getattr(torch, kind))) for kind in (
        "float16", "bfloat16", "float64", "int8", "int32", "float8_e4m3fn")},
    **{"tensors %s" % kind: tensors(lambda weights, kind=kind: {
        name: weight.to(getattr(torch, kind)) for name, weight in weights.items()}) for kind in (
            "float16", "bfloat16", "float64", "int8")},
    **{"tensors called %s" % called: renamed(lambda name, called=called: called % name) for called in (
        "bert.%s", "model.%s", "module.%s", "roberta.%s", "0.auto_model.%s", "bert.bert.%s", "%s.x")},
    "tensors half bert.": renamed(lambda name: "bert." + name if "layer.0" in name else name),
    "tensors twice": tensors(lambda w: {**w, **{"bert." + name: weight * 2 for name, weight in w.items()}}),
    "tensor transposed query": one(QUERY, lambda weight: weight.T),
    "tensor transposed intermediate": one(LAYER + "intermediate.dense.weight", lambda weight: weight.T),
    "tensor flat query": one(QUERY, lambda weight: weight.reshape(-1)),
    "tensor 3-D query": one(QUERY, lambda weight: weight[None]),
    "tensor rows of words": one("embeddings.word_embeddings.weight", lambda weight: weight[:-1]),
    "tensor rows of positions": one("embeddings.position_embeddings.weight", lambda weight: weight[:-1]),
    "tensor rows of types": one("embeddings.token_type_embeddings.weight", lambda weight: weight[:1]),
    "tensor NaN in a query": one(QUERY, lambda weight: weight * float("nan")),
    "tensor inf in a query": one(QUERY, lambda weight: weight * float("inf")),
    "tensor zeros for a query": one(QUERY, torch.zeros_like),
    "tensors old and new norms": tensors(lambda w: {**w, NORM + "gamma": w[NORM + "weight"] * 2}),
    "tensors gamma, beta": renamed(lambda n: n.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")),
    "tensors more: a third layer": tensors(lambda w: {**w, **{
        n.replace("layer.0", "layer.2"): v for n, v in w.items() if "layer.0" in n}}),
    "tensors more: position_ids": also(**{"embeddings.position_ids": torch.arange(64)[None]}),
    "tensors more: position_ids backwards": also(**{"embeddings.position_ids": torch.arange(63, -1, -1)[None]}),
    "tensors more: relative positions": also(**{
        LAYER + "attention.self.distance_embedding.weight": torch.randn(127, 8)}),
    "tensors more: adapter": also(**{LAYER + "output.adapter.weight": torch.randn(8, 8)}),
    "tensors more: lora": also(**{LAYER + "attention.self.query.lora_A.weight": torch.randn(8, WIDTH)}),
    "tensors more: parametrized": tensors(lambda w: {**{n: v for n, v in w.items() if n != QUERY}, **{
        QUERY.replace("weight", "parametrizations.weight.original0"): torch.ones(WIDTH, 1),
        QUERY.replace("weight", "parametrizations.weight.original1"): w[QUERY]}}),
    "tensors more: scale of int8": tensors(lambda w: {**w, QUERY + "_scale": torch.ones(1)}),
    **{"metadata %s" % (kind or "none"): tensors(lambda w: None, {"format": kind} if kind else {}) for kind in (
        "pt", "tf", "flax", "np", "mlx", "other", "")},
    "pytorch_model.bin alone": as_bin,
    "pytorch_model.bin beside": lambda f: torch.save({}, f.file("pytorch_model.bin")),
    "index beside": lambda f: f.write("model.safetensors.index.json", {"metadata": {}, "weight_map": {}}),
    "model.safetensors empty": lambda f: open(f.file("model.safetensors"), "wb").close(),
    "model.safetensors cut": lambda f: os.truncate(f.file("model.safetensors"),
                                                   os.path.getsize(f.file("model.safetensors")) - 8),
    "adapter beside": lambda f: f.write("adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "x"}),
}

MODE = "pooling_mode_%s_tokens"
FIRST = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}


def module(kind, index=1, path=None, prefix="sentence_transformers.models."):
    return {"idx": index, "name": str(index), "path": "%d_%s" % (index, kind) if path is None else path,
            "type": prefix + kind}


MODULES = {
    "pooling lasttoken only": pooling(**{**OLD, **NO_MEAN, "pooling_mode_lasttoken": True}),
    "pooling none": pooling(**{**OLD, **NO_MEAN}), "pooling no width": pooling(pooling_mode_mean_tokens=True),
    "pooling width 16": pooling(**{**OLD, "word_embedding_dimension": 16}),
    "pooling both widths": pooling(**{**OLD, "embedding_dimension": 16}),
    "pooling empty": pooling(), "pooling texts": pooling(**{**OLD, MODE % "cls": "true"}),
    "pooling ones": pooling(**{**OLD, **NO_MEAN, "pooling_mode_cls_token": 1}),
    "pooling nulls": pooling(**{**OLD, "pooling_mode_mean_tokens": None}),
    "pooling unknown flag": pooling(**{**OLD, "pooling_mode_median_tokens": True}),
    "pooling unknown flag alone": pooling(**{**OLD, **NO_MEAN, "pooling_mode_median_tokens": True}),
    "pooling MEAN": pooling(**{**NEW, "pooling_mode": "MEAN"}),
    "pooling mean_tokens": pooling(**{**NEW, "pooling_mode": "mean_tokens"}),
    "pooling median": pooling(**{**NEW, "pooling_mode": "median"}),
    "pooling []": pooling(**{**NEW, "pooling_mode": []}),
    "pooling ()": pooling(**{**NEW, "pooling_mode": None}),
    "pooling mean twice": pooling(**{**NEW, "pooling_mode": ["mean", "mean"]}),
    "pooling max, cls": pooling(**{**NEW, "pooling_mode": ["max", "cls"]}),
    "pooling mean+cls text": pooling(**{**NEW, "pooling_mode": "mean+cls"}),
    "pooling word and flags": pooling(**{**NEW, "pooling_mode": "cls", "pooling_mode_max_tokens": True}),
    "pooling no config": after(("Pooling", None)),
    "pooling twice": after(("Pooling", OLD), ("Pooling", OLD)),
    "modules none": lambda f: f.write("modules.json", []),
    "modules transformer alone": after(),
    "modules normalize twice": after(("Pooling", OLD), ("Normalize", None), ("Normalize", None)),
    "modules normalize before pooling": after(("Normalize", None), ("Pooling", OLD)),
    "modules dropout": after(("Pooling", OLD), ("Dropout", {"dropout": 0.9})),
    "modules backwards": both(after(("Pooling", OLD), ("Normalize", None)), rows(lambda r: r[::-1])),
    "modules pooling first": both(after(("Pooling", OLD)), rows(lambda r: r[::-1])),
    "modules idx backwards": both(after(("Pooling", OLD), ("Normalize", None)), rows(
        lambda r: [{**row, "idx": 2 - i} for i, row in enumerate(r)])),
    "modules idx of rows moved": both(after(("Pooling", OLD), ("Normalize", None)), rows(
        lambda r: [r[0], r[2], r[1]])),
    "modules names equal": both(after(("Pooling", OLD), ("Normalize", None)), rows(
        lambda r: [{**row, "name": "0"} for row in r])),
    "modules no names": both(after(("Pooling", OLD)), rows(lambda r: [
        {k: v for k, v in row.items() if k != "name"} for row in r])),
    "modules no idx": both(after(("Pooling", OLD)), rows(lambda r: [
        {k: v for k, v in row.items() if k != "idx"} for row in r])),
    "modules no path": both(after(("Pooling", OLD)), rows(lambda r: [
        {k: v for k, v in row.items() if k != "path"} for row in r])),
    "modules kwargs": both(after(("Pooling", OLD)), rows(lambda r: [{**r[0], "kwargs": ["task"]}, r[1]])),
    "modules transformer twice": lambda f: f.write("modules.json", [FIRST, {**FIRST, "idx": 1, "name": "1"}]),
    "modules pooling path missing": lambda f: f.write("modules.json", [FIRST, module("Pooling", path="gone")]),
    "modules pooling path up": lambda f: f.write("modules.json", [FIRST, module("Pooling", path="../x")]),
    "modules object": lambda f: f.write("modules.json", {"0": FIRST}),
    **{"modules type " + kind: both(after(("Pooling", OLD)), rows(lambda r, kind=kind: [
        *r, {**module(kind, 2, "1_Pooling"), "type": kind if "." in kind else "sentence_transformers.models." + kind}]))
       for kind in ("CNN", "LSTM", "WordEmbeddings", "WordWeights", "BoW", "CLIPModel", "StaticEmbedding", "Router",
                    "Asym", "MLMTransformer", "SpladePooling", "normalize.Normalize", "my.Module", "Normalise",
                    "sentence_transformers.models.normalize.Normalize", "sentence_transformers.models.Normalize.x",
                    "sentence_transformers.base.modules.Normalize", "other.models.Normalize", "torch.nn.Identity")},
    **{"modules pooling type " + kind: both(after(("Pooling", OLD)), rows(lambda r, kind=kind: [
        r[0], {**r[1], "type": kind}])) for kind in (
            "sentence_transformers.models.pooling.Pooling", "sentence_transformers.models.Pooling.Pooling",
            "Pooling", "my_code.Pooling", "sentence_transformers.sentence_transformer.modules.Pooling")},
    **{"modules transformer type " + kind: both(after(("Pooling", OLD)), rows(lambda r, kind=kind: [
        {**r[0], "type": kind}, r[1]])) for kind in (
            "sentence_transformers.models.transformer.Transformer", "my_code.Transformer",
            "sentence_transformers.models.MLMTransformer", "transformers.AutoModel")},
    **{"dense " + name: dense(activation_function=kind) for name, kind in {
        **{n: "torch.nn.modules.activation." + n for n in (
            "Tanh", "ReLU", "GELU", "Sigmoid", "SiLU", "LeakyReLU", "ELU", "SELU", "CELU", "Softplus", "Softsign",
            "Hardtanh", "Hardswish", "Mish", "ReLU6", "Softmax", "LogSigmoid", "Tanhshrink", "PReLU")},
        "identity": "torch.nn.modules.linear.Identity", "short Tanh": "torch.nn.Tanh",
        "short Identity": "torch.nn.Identity", "functional": "torch.nn.functional.relu", "Tanh alone": "Tanh",
        "empty": "", "null": None, "none": GONE, "other Tanh": "my_code.Tanh"}.items()},
    "dense no bias": dense(bias=False), "dense bias left over": dense(
        lambda w: {**w, "linear.bias": torch.randn(20)}, bias=False),
    "dense bias missing": dense(lambda w: {"linear.weight": w["linear.weight"]}),
    "dense bias not said": dense(bias=GONE), "dense in 16": dense(in_features=16),
    "dense out 16": dense(out_features=16),
    "dense out not said": dense(out_features=GONE),
    "dense transposed": dense(lambda w: {**w, "linear.weight": w["linear.weight"].T}),
    "dense float16": dense(lambda w: {name: weight.half() for name, weight in w.items()}),
    "dense float64": dense(lambda w: {name: weight.double() for name, weight in w.items()}),
    "dense more": dense(lambda w: {**w, "other": torch.ones(3)}),
    "dense renamed": dense(lambda w: {name.replace("linear.", ""): weight for name, weight in w.items()}),
    "dense of tokens": dense(module_input_name="token_embeddings"),
    "dense to tokens": dense(module_output_name="token_embeddings"),
    "dense in by name": dense(module_input_name="sentence_embedding", module_output_name="sentence_embedding"),
    "dense with a residual": dense(use_residual=True),
    "dense unknown member": dense(scale=3.0),
    "layernorm": both(after(("Pooling", OLD), ("LayerNorm", {"dimension": WIDTH})), lambda f: save_file(
        {"norm.weight": torch.rand(WIDTH), "norm.bias": torch.rand(WIDTH)}, f.file("2_LayerNorm/model.safetensors"))),
    "layernorm eps": both(after(("Pooling", OLD), ("LayerNorm", {"dimension": WIDTH, "eps": 0.5})), lambda f: save_file(
        {"norm.weight": torch.rand(WIDTH), "norm.bias": torch.rand(WIDTH)}, f.file("2_LayerNorm/model.safetensors"))),
    "layernorm 16": both(after(("Pooling", OLD), ("LayerNorm", {"dimension": 16})), lambda f: save_file(
        {"norm.weight": torch.rand(16), "norm.bias": torch.rand(16)}, f.file("2_LayerNorm/model.safetensors"))),
    "layer pooling": after(("WeightedLayerPooling", {"word_embedding_dimension": WIDTH, "layer_start": 1,
                                                     "num_hidden_layers": 2}), ("Pooling", OLD)),
}

BERT_CONFIG, SENTENCES = "sentence_bert_config.json", "config_sentence_transformers.json"
TASK = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}
SETTINGS = {"sentences " + name.split(" ", 1)[1]: change for name, change in {**values(BERT_CONFIG, {
    "max_seq_length": [None, 0, 1, 2, 3, 9, 65, 512, -1, "20", 20.0, 20.5, True], "do_lower_case": [True, None, "yes"],
    "transformer_task": ["feature-extraction", "fill-mask", "text-generation"],
    "module_output_name": ["token_embeddings", "x"],
    "modality_config": [TASK, {"text": {"method": "forward", "method_output_name": "pooler_output"}}, {}],
    "model_args": [{}, {"attn_implementation": "eager"}, {"dtype": "float16"}, {"num_hidden_layers": 1}],
    "config_args": [{}, {"num_hidden_layers": 1}, {"hidden_act": "relu"}, {"is_decoder": True}],
    "tokenizer_args": [{}, {"do_lower_case": False}], "model_kwargs": [{"add_pooling_layer": False}],
    "config_kwargs": [{"num_hidden_layers": 1}], "processor_kwargs": [{"do_lower_case": False}],
    "unpad_inputs": [True, False], "backend": ["onnx"], "trust_remote_code": [True], "unknown": [3]}),
    **values(SENTENCES, {
        "prompts": [{"query": "q: "}, {"query": ""}, {"query": None}, {"query": 3}, [], "q: "],
        "default_prompt_name": ["query"], "truncate_dim": [8, 0, 99, "8", None],
        "similarity_fn_name": ["dot", "other", None], "model_type": ["SentenceTransformer", "SparseEncoder",
                                                                     "CrossEncoder", "other"],
        "unknown": [3]})}.items()}
SETTINGS = {name: both(after(("Pooling", OLD)), change) for name, change in SETTINGS.items()}

STAR, PLAIN = "star", {"content": "star", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}


def without_list(folder):
    config = folder.read(CONFIG)
    config.pop("added_tokens_decoder", None)
    folder.write(CONFIG, config)


def bare(folder):
    os.remove(folder.file(CONFIG))


def with_list(folder):
    folder.change(CONFIG, added_tokens_decoder={"0": {**PLAIN, "content": "[PAD]", "special": True}})


def as_vocabulary(folder):
    vocabulary = folder.read("tokenizer.json")["model"]["vocab"]
    with open(folder.file("vocab.txt"), "w", encoding="utf-8") as file:
        file.write("".join(piece + "\n" for piece in sorted(vocabulary, key=vocabulary.get)))
    os.remove(folder.file("tokenizer.json"))


TOKENS = {
    "cls star": {"cls_token": STAR}, "sep star": {"sep_token": STAR}, "unk star": {"unk_token": STAR},
    "pad star": {"pad_token": STAR}, "mask star": {"mask_token": STAR}, "cls object": {"cls_token": PLAIN},
    "cls new": {"cls_token": "[NEW]"}, "mask new": {"mask_token": "[NEW]"}, "bos star": {"bos_token": STAR},
    "eos star": {"eos_token": STAR}, "more star": {"additional_special_tokens": [STAR]},
    "extra star": {"extra_special_tokens": [STAR]}, "extra object": {"extra_special_tokens": {"a_token": STAR}},
    "as they are": {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]",
                    "mask_token": "[MASK]"},
    "lower": {"do_lower_case": False}, "null": {"cls_token": None}, "number": {"cls_token": 3},
    "limit": {"model_max_length": 7}, "own_token": {"own_token": STAR},
    "class": {"tokenizer_class": "RobertaTokenizer"},
    "side": {"truncation_side": "left"}, "accents": {"strip_accents": False}, "empty": {},
    "cls strips": {"mask_token": {**PLAIN, "content": "[MASK]", "lstrip": True}},
}
FILES = {}
for name_, tokens_ in TOKENS.items():
    FILES["map json " + name_] = both(without_list, settings(SPECIAL_MAP, **tokens_))
    FILES["map json, no config: " + name_] = both(bare, settings(SPECIAL_MAP, **tokens_))
    FILES["map json, list: " + name_] = both(with_list, settings(SPECIAL_MAP, **tokens_))
    FILES["map vocab " + name_] = both(as_vocabulary, without_list, settings(SPECIAL_MAP, **tokens_))
    FILES["map vocab, list: " + name_] = both(as_vocabulary, with_list, settings(SPECIAL_MAP, **tokens_))
    FILES["config json " + name_] = settings(CONFIG, **tokens_)
for name_, added_ in {"star": {"star": 30}, "star id": {"star": 9999}, "new": {"[E1]": 9999}, "cls": {"[CLS]": 7},
                      "two": {"[E1]": 501, "[E2]": 500}, "number": {"star": "x"}}.items():
    FILES["added json " + name_] = both(without_list, settings("added_tokens.json", **added_))
    FILES["added json, list: " + name_] = both(with_list, settings("added_tokens.json", **added_))
    FILES["added vocab " + name_] = both(as_vocabulary, without_list, settings("added_tokens.json", **added_))
    FILES["added vocab, list: " + name_] = both(as_vocabulary, with_list, settings("added_tokens.json", **added_))
FILES["map and added"] = both(without_list, settings(SPECIAL_MAP, extra_special_tokens=["[E1]"]),
                              settings("added_tokens.json", **{"[E1]": 9999}))
FILES["map no object"] = both(without_list, lambda f: f.write(SPECIAL_MAP, []))
FILES["vocab.txt beside, other"] = lambda f: open(f.file("vocab.txt"), "w", encoding="utf-8").write("[PAD]\nstar\n")

MUTATIONS = {"as made": lambda f: None, **activations(), **MODEL, **WEIGHTS, **MODULES, **SETTINGS, **FILES}


def compare(cleave, name, folder, texts):
    vectors = folder.path + ".npy"
    done = subprocess.run([cleave, "embed", folder.path, "-i", texts, "-o", vectors], capture_output=True, text=True)
    wanted, refusal = folders_sentences.their_vectors(folder.path)
    lines = [line for line in done.stderr.split("\n") if "texts were cut at" not in line]
    words = " ".join(" ".join(lines).split()).replace(folder.path, "FOLDER")
    if done.returncode:
        return "refused", "%s | sentence-transformers: %s" % (words[:230], refusal or "accepts it")
    got = numpy.load(vectors).astype(float)
    taken = [i for i, vector in enumerate(wanted) if vector is not None]
    warned = words[words.find("cleave: "):][:260] if "cleave: FOLDER" in words else ""
    if not taken:
        return "alone", "sentence-transformers: %s | %s" % (refusal, warned)
    if any(got[i].shape != wanted[i].shape for i in taken):
        return "warned" if warned else "OTHER", "vectors of %s; sentence-transformers: %s | %s" % (
            got.shape, wanted[taken[0]].shape, warned)
    theirs, ours = numpy.array([wanted[i] for i in taken]), got[taken]
    largest = numpy.nanmax(abs(theirs)) if not numpy.isnan(theirs).all() else 0
    apart = numpy.max(numpy.where(numpy.isnan(ours) & numpy.isnan(theirs), 0, abs(ours - theirs)))
    fine = bool(apart < 1e-5 * max(1, largest))
    note = "largest difference %.1e%s" % (apart, " (fails for %d texts)" % (len(TEXTS) - len(taken))
                                          if len(taken) < len(TEXTS) else "")
    return "equal" if fine else "warned" if warned else "OTHER", note + (" | " + warned if warned else "")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    counts, lines = {}, make_families.corpus()
    with tempfile.TemporaryDirectory() as room:
        texts = os.path.join(room, "texts.jsonl")
        with open(texts, "w", encoding="ascii") as file:
            file.writelines(json.dumps({"text": text}) + "\n" for text in TEXTS)
        bases = {"bert": Folder(os.path.join(room, "bert"), folders_sentences.vocabulary())}
        for name, mutate in {**MUTATIONS, **ROBERTA, **OTHERS}.items():
            if sys.argv[2:] and not any(part in name for part in sys.argv[2:]):
                continue
            family = name.split(" ")[0] if name in ROBERTA or name in OTHERS else "bert"
            if family not in bases:
                base = Folder.__new__(Folder)
                base.path = os.path.join(room, family)
                make_families.make(family, base.path, FAMILY, lines, "nmt_nfkc", 60)
                bases[family] = base
            folder = Folder.__new__(Folder)
            folder.path, folder.pieces = os.path.join(room, "mutated"), []
            shutil.copytree(bases[family].path, folder.path)
            if family == "bert":
                folder.modules(("Pooling", OLD))
            mutate(folder)
            verdict, note = compare(sys.argv[1], name, folder, texts)
            shutil.rmtree(folder.path)
            counts[verdict] = counts.get(verdict, 0) + 1
            print("%-7s %-44s %s" % (verdict, name, note), flush=True)
    print(", ".join("%d %s" % (count, verdict) for verdict, count in sorted(counts.items())))
    return 1 if counts.get("OTHER") else 0


if __name__ == "__main__":
    sys.exit(main())
