#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one small model of random weights per family of encoders, as sentence-transformers saves it, with its own
tokenizer, and what transformers and sentence-transformers say about some texts.

usage: make_families.py OUT [--pairs] [FAMILY...]     writes OUT/FAMILY/ and OUT/FAMILY/golden.json
--pairs writes only the cross-encoders, OUT/FAMILY/pairs/, for the tokenizers that are there.
Made with torch 2.15.0, transformers 5.24.0, sentence-transformers 6.2.0, tokenizers 0.23.3 and sentencepiece 0.2.3. The
tokenizers learn from the pages of this repository and from the words below. bench/peers/families_sentences.py uses the
same functions for larger models and for many texts.
"""
import json
import os
import random
import shutil
import sys
import tempfile

import sentencepiece
import sentencepiece.sentencepiece_model_pb2 as sentencepiece_model
import tokenizers
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer import modules

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", "..", ".."))
SMALL = {"width": 32, "heads": 4, "layers": 2, "ffn": 48, "positions": 130, "pieces": 400}
WORDS = """Ünï­cödé naïve café Straße İstanbul ſtop ﬁne Ⅷ ½ e\u0301te\u0301 ｆｕｌｌ　ｗｉｄｔｈ 東京タワー ﾊﾝｶｸ 한국어 서울 Ελληνικά
Русский язык עִבְרִית العربية हिन्दी ไทย 👩‍🚀🚀 a\u200bb ``quoted'' ''two'' tabs\there it's we'll THEY'VE 12,345.67 x²+y²""".split("\n")
TEXTS = ["The planets of a star are found in many frames.", "", " ", "a", "Ünï­cödé naïve café, Straße!", "it's we'll THEY'VE done",
         "e\u0301te\u0301  and   spaces", "ｆｕｌｌ　ｗｉｄｔｈ ﬁne Ⅷ ½", "東京タワー ﾊﾝｶｸ 한국어", "Ελληνικά ΣΊΣΥΦΟΣ Русский язык",
         "עִבְרִית العربية हिन्दी ไทย", "👩‍🚀🚀 ✨", "a <mask> b <s> </s> <pad> [MASK] [CLS] <unk>", "tabs\there\r\nand lines\n",
         "``quoted'' ''two''", "zero\u200bwidth soft\u00adhyphen \ufeffbom", "12,345.67 x²+y² 100%", "word " * 80,
         "  leading and trailing  ", "▁marks▁ and ##pieces Ġhere", "İstanbul ſtop ǅ", "\u0001\u007f\u0085\u2028x", "Ａ<ｍask>＜mask＞",
         "<MASK> [mask] <S>", "\u1100\u1161\u11a8 \u0915\u094d\u0937 a\u0301\u0327"]


def corpus():
    """Returns the lines of this repository's pages."""
    lines = []
    for folder in (ROOT, os.path.join(ROOT, "docs")):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".md"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    lines += [line.strip() for line in file if line.strip()]
    return lines + WORDS * 20


RULES = {"ﬁ": "fi", "Ⅷ": "VIII", "½": "1⁄2", "²": "2", "\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\u0085": " ",
         "\u2028": " ", "\u00ad": "", "\u200b": " ", "\ufeff": "", "\u0001": "", "\u007f": "", "e\u0301": "é", "a\u0301": "á",
         "ﾊ": "ハ", "ﾝ": "ン", "ｶ": "カ", "ｸ": "ク", "\u1100\u1161\u11a8": "각", "…": "..."}
RULES.update({chr(0xFF01 + i): chr(0x21 + i) for i in range(94)})


def sentencepiece_of(lines, pieces, rules):
    """Trains a unigram model; returns its pieces with scores, and its charsmap. `rules`: a normalization of
    sentencepiece, or None for RULES."""
    with tempfile.TemporaryDirectory() as folder:
        text, table = os.path.join(folder, "text"), os.path.join(folder, "rules.tsv")
        with open(text, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        with open(table, "w", encoding="utf-8") as file:
            for key, value in RULES.items():
                file.write("%s\t%s\n" % (" ".join("%X" % ord(c) for c in key), " ".join("%X" % ord(c) for c in value)))
        how = {"normalization_rule_name": rules} if rules else {"normalization_rule_tsv": table}
        sentencepiece.SentencePieceTrainer.train(input=text, model_prefix=os.path.join(folder, "m"), vocab_size=pieces,
                                                 model_type="unigram", character_coverage=0.999, minloglevel=2,
                                                 hard_vocab_limit=False, **how)
        model = sentencepiece_model.ModelProto()
        with open(os.path.join(folder, "m.model"), "rb") as file:
            model.ParseFromString(file.read())
    return [(p.piece, p.score) for p in model.pieces][3:], bytes(model.normalizer_spec.precompiled_charsmap)


def wordpieces(lines, pieces, specials, lower=True):
    bare = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    bare.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower)
    bare.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    bare.train_from_iterator(lines, tokenizers.trainers.WordPieceTrainer(vocab_size=pieces, special_tokens=specials,
                                                                         show_progress=False))
    return bare.get_vocab()


def byte_pairs(lines, pieces, specials):
    bare = tokenizers.Tokenizer(tokenizers.models.BPE())
    bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.train_from_iterator(lines, tokenizers.trainers.BpeTrainer(
        vocab_size=pieces, special_tokens=specials, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(bare.to_str())["model"]
    return model["vocab"], [tuple(m) for m in model["merges"]]


def mask(normalized):
    """Returns the mask token in the form of published files."""
    return tokenizers.AddedToken("<mask>", lstrip=True, special=True, normalized=normalized)


def tokenizer_of(family, lines, pieces, rules=None):
    bert = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    if family in ("distilbert", "electra"):
        kind = transformers.DistilBertTokenizer if family == "distilbert" else transformers.ElectraTokenizer
        return kind(vocab=wordpieces(lines, pieces, bert))
    if family == "mpnet":
        return transformers.MPNetTokenizer(vocab=wordpieces(lines, pieces, ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]))
    if family == "roberta":
        vocab, merges = byte_pairs(lines, pieces, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        return transformers.RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask(False))
    found, charsmap = sentencepiece_of(lines, pieces, rules)
    if family == "xlm-roberta":
        found = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + found + [("<mask>", 0.0)]
        return transformers.XLMRobertaTokenizer(vocab=found, _spm_precompiled_charsmap=charsmap, mask_token=mask(True))
    found = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0)] + found
    return transformers.AlbertTokenizer(vocab=found, _spm_precompiled_charsmap=charsmap)


def model_of(family, pieces, size, kind=transformers.AutoModel, seed=3, **more):
    """Returns the encoder with random weights, which are larger than usual, so that every part affects the vectors."""
    common = {"vocab_size": pieces, "max_position_embeddings": size["positions"], **more}
    usual = {"hidden_size": size["width"], "num_attention_heads": size["heads"], "num_hidden_layers": size["layers"],
             "intermediate_size": size["ffn"], **common}
    if family == "distilbert":
        config = transformers.DistilBertConfig(dim=size["width"], n_heads=size["heads"], n_layers=size["layers"],
                                               hidden_dim=size["ffn"], **common)
    elif family == "electra":
        config = transformers.ElectraConfig(embedding_size=size["width"] // 2, **usual)
    elif family == "roberta":
        config = transformers.RobertaConfig(type_vocab_size=1, layer_norm_eps=1e-5, **usual)
    elif family == "xlm-roberta":
        config = transformers.XLMRobertaConfig(type_vocab_size=1, layer_norm_eps=1e-5, **usual)
    elif family == "mpnet":
        config = transformers.MPNetConfig(layer_norm_eps=1e-5, **usual)
    else:
        config = transformers.AlbertConfig(embedding_size=size["width"] // 2, num_hidden_groups=min(2, size["layers"]),
                                           **usual)
    torch.manual_seed(seed)
    model = kind.from_config(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            norm = "norm" in name.lower() and name.endswith("weight")
            weight.copy_(torch.randn(weight.shape) * (0.3 if weight.dim() == 1 else 1.2 / weight.shape[-1] ** 0.5) + norm)
    return model


def behind(family, width):
    """Returns the modules after the transformer: a different combination for each family."""
    def random_step(step):
        with torch.no_grad():
            for weight in step.parameters():
                weight.copy_(torch.randn(weight.shape) * 0.4 + 0.1)
        return step

    pooling = {"distilbert": ["weightedmean", "lasttoken"], "electra": "cls", "roberta": ["cls", "max", "mean", "mean_sqrt_len_tokens"], "mpnet": "mean",
               "xlm-roberta": "mean_sqrt_len_tokens", "albert": ["mean", "cls"]}[family]
    count = len(pooling) if isinstance(pooling, list) else 1
    steps = [modules.Pooling(width, pooling_mode=pooling)]
    if family in ("electra", "albert"):
        steps.append(random_step(modules.Dense(count * width, 24, activation_function=torch.nn.Tanh())))
    if family == "xlm-roberta":
        steps += [modules.Normalize(), random_step(modules.Dense(width, 40, bias=False, activation_function=torch.nn.Identity())),
                  random_step(modules.LayerNorm(40))]
    if family == "albert":
        steps += [modules.Dropout(0.5), random_step(modules.LayerNorm(24)),
                  random_step(modules.Dense(24, 16, activation_function=torch.nn.ReLU()))]
    if family in ("mpnet", "albert", "roberta"):
        steps.append(modules.Normalize())
    return steps


FAMILIES = ["distilbert", "electra", "roberta", "mpnet", "xlm-roberta", "albert"]


def make(family, folder, size, lines, rules=None, longest=None):
    """Writes the model's folder; returns the model as sentence-transformers loads it again."""
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as bare:
        tokenizer = tokenizer_of(family, lines, size["pieces"], rules)
        tokenizer.model_max_length = longest or 100
        model_of(family, len(tokenizer), size).save_pretrained(bare)
        tokenizer.save_pretrained(bare)
        base = modules.Transformer(bare) if hasattr(modules, "Transformer") else None
        if base is None:
            from sentence_transformers.base.modules import Transformer
            base = Transformer(bare, max_seq_length=longest or 100)
        model = SentenceTransformer(modules=[base, *behind(family, size["width"])], device="cpu")
        model.save(folder)
    return SentenceTransformer(folder, device="cpu")


def make_head(family, folder):
    """Writes a classifier without a tokenizer, and the probabilities of some rows of ids."""
    size = {"width": 16, "heads": 2, "layers": 1, "ffn": 24, "positions": 24}
    model = model_of(family, 60, size, transformers.AutoModelForSequenceClassification, num_labels=3)
    model.save_pretrained(folder)
    chance, ids, rows = random.Random(4), [], []
    for length in (1, 2, 7, 20):
        ids.append([chance.randrange(4, 60) for _ in range(length)])
        with torch.no_grad():
            rows.append(model(torch.tensor([ids[-1]])).logits.softmax(-1)[0].tolist())
    with open(os.path.join(folder, "golden.json"), "w", encoding="ascii") as file:
        json.dump({"ids": ids, "probabilities": rows}, file)


PAIRS = [["the planets of a star", "are found in many frames"], ["", "a"], ["a", ""], ["", ""], ["word " * 30, "short"],
         ["short", "word " * 30], ["a star " * 20, "many frames " * 20], ["many frames " * 20, "a star " * 20],
         ["Ünï­cödé café", "Straße 12,345.67"], ["東京タワー", "한국어 👩‍🚀"], ["a <mask> b </s>", "[SEP] c <pad> [PAD] d"],
         ["it's we'll", "``quoted'' ''two''"]]


def make_pairs(family, folder):
    """Writes a cross-encoder without its tokenizer, which is the family's, and the scores of CrossEncoder."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 20
    size = {"width": 16, "heads": 2, "layers": 2, "ffn": 24, "positions": 24}
    model = model_of(family, len(tokenizer), size, transformers.AutoModelForSequenceClassification, num_labels=1)
    own = os.path.join(folder, "pairs")
    shutil.rmtree(own, ignore_errors=True)
    model.save_pretrained(own)
    with tempfile.TemporaryDirectory() as whole:
        for name in "config.json", "model.safetensors":
            shutil.copy(os.path.join(own, name), whole)
        tokenizer.save_pretrained(whole)
        encoder = CrossEncoder(whole, device="cpu")
        scores = encoder.predict(PAIRS, activation_fn=torch.nn.Identity())
    with open(os.path.join(own, "golden.json"), "w", encoding="ascii") as file:
        json.dump({"pairs": PAIRS, "length": 20, "scores": [float("%.8g" % x) for x in scores]}, file)


def in_two_files(folder):
    """Splits model.safetensors, as large models are saved."""
    whole = os.path.join(folder, "model.safetensors")
    tensors = load_file(whole)
    names = sorted(tensors)
    parts = {"model-0000%d-of-00002.safetensors" % (i + 1): names[i::2] for i in range(2)}
    for name, part in parts.items():
        save_file({key: tensors[key] for key in part}, os.path.join(folder, name), {"format": "pt"})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="ascii") as file:
        json.dump({"metadata": {}, "weight_map": {key: name for name, part in parts.items() for key in part}}, file, indent=1,
                  sort_keys=True)
    os.remove(whole)


def ids_of(model, texts):
    """Returns the token ids of each text, truncated as the model truncates them."""
    return [model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"] for text in texts]


def main():
    given = [argument for argument in sys.argv[1:] if argument != "--pairs"]
    out, chosen = given[0], given[1:] or FAMILIES
    lines = corpus()
    for family in chosen:
        folder = os.path.join(out, family)
        if "--pairs" in sys.argv:
            make_pairs(family, folder)
            continue
        shutil.rmtree(folder, ignore_errors=True)
        model = make(family, folder, SMALL, lines)
        if family == "mpnet":
            in_two_files(folder)
        vectors = model.encode(TEXTS, convert_to_numpy=True, batch_size=1, show_progress_bar=False)
        golden = {"texts": TEXTS, "ids": ids_of(model, TEXTS), "vectors": [[float("%.8g" % x) for x in row] for row in vectors]}
        if family == "mpnet":  # the rows of the table of relative positions for keys up to 600 tokens after and before a query
            from transformers.models.mpnet.modeling_mpnet import MPNetEncoder
            golden["buckets"] = [MPNetEncoder.relative_position_bucket(torch.arange(601) * side).tolist() for side in (1, -1)]
        with open(os.path.join(folder, "golden.json"), "w", encoding="ascii") as file:
            json.dump(golden, file)
        make_head(family, os.path.join(folder, "classifier"))
        make_pairs(family, folder)
        for name in ("README.md",):
            if os.path.exists(os.path.join(folder, name)):
                os.remove(os.path.join(folder, name))
        print(family, vectors.shape, len(model.tokenizer))


if __name__ == "__main__":
    random.seed(1)
    main()
