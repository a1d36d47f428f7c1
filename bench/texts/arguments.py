# SPDX-License-Identifier: Apache-2.0
"""Cross-encoders, the arguments of encode() and examples of sentence-transformers, int8."""
import json
import os
import warnings

import numpy as np
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer, util

import cleave
from common import SIZE, apart, make_families


def check_rank(room):
    for family in ("bert", *make_families.FAMILIES):
        folder = room.path("rank-" + family)
        if family == "bert":
            folder = room.bert(kind=transformers.BertForSequenceClassification, num_labels=1).path
            os.remove(os.path.join(folder, "modules.json"))
        else:
            tokenizer = make_families.tokenizer_of(family, room.lines, SIZE["pieces"], "nmt_nfkc")
            model = make_families.model_of(family, len(tokenizer), SIZE,
                                           transformers.AutoModelForSequenceClassification, num_labels=1)
            model.save_pretrained(folder)
            tokenizer.model_max_length = 100
            tokenizer.save_pretrained(folder)
        pairs = [(room.text(1, 40), room.text(1, 40)) for _ in range(60)]
        wanted = CrossEncoder(folder, device="cpu", max_length=60).predict(pairs)
        with warnings.catch_warnings(), cleave.CrossEncoder(folder, max_length=60) as ours:
            warnings.simplefilter("ignore")
            worst = apart(ours.predict(pairs), wanted)
        room.write("pairs.tsv", "".join("%s\t%s\n" % pair for pair in pairs))
        room.run("rank", folder, "--pairs", "-i", room.path("pairs.tsv"), "--max-length", 60, "-o",
                 room.path("scores.json"), "-q")
        rows = json.load(open(room.path("scores.json"), encoding="utf-8"))
        scores = [next(v for v in row.values() if isinstance(v, float)) for row in rows]
        worst = max(worst, apart(scores, wanted))
        yield "%s: scores as CrossEncoder's, in Python and by the command" % family, "apart %.1e" % worst, worst < 1e-5


def refused(action, words):
    try:
        action()
    except Exception as error:  # the message is what is judged
        return words in str(error), str(error)[:60]
    return False, "accepted"


def check_arguments(room):
    folder, texts = room.model("xlm-roberta"), [room.text() for _ in range(40)]
    with open(os.path.join(folder, "config_sentence_transformers.json"), encoding="utf-8") as file:
        config = json.load(file)
    config.update(prompts={"query": "query: ", "document": "passage: "}, default_prompt_name="document")
    with open(os.path.join(folder, "config_sentence_transformers.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    ours, theirs = cleave.Encoder(folder), SentenceTransformer(folder, device="cpu")
    for named in ({}, {"prompt_name": "query"}, {"prompt": "other: "}, {"normalize_embeddings": True},
                  {"truncate_dim": 7, "normalize_embeddings": True}, {"batch_size": 3}, {"precision": "ubinary"},
                  {"precision": "binary"}):
        a, b = ours.encode(texts, **named), theirs.encode(texts, **named)
        worst = apart(a, b)
        yield "encode(%s)" % ", ".join("%s=%r" % pair for pair in named.items()), \
            "apart %.1e, %s" % (worst, a.dtype), worst < 1e-5 and a.dtype == b.dtype and a.shape == b.shape
    a = ours.encode(texts, convert_to_tensor=True)
    worst = apart(a, theirs.encode(texts, convert_to_tensor=True))
    yield "encode(convert_to_tensor=True) gives a tensor", "apart %.1e" % worst, torch.is_tensor(a) and worst < 1e-5
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ours.encode([room.text(400, 400)])
    yield "a text that is cut is told", str(told[0].message)[:60] if told else "nothing", bool(told)
    yield from properties(folder, texts)
    fine, words = refused(lambda: cleave.Encoder("sentence-transformers/all-MiniLM-L6-v2"), "hf download")
    yield "the name of a hub: the message gives the line that downloads it", words, fine
    fine, words = refused(lambda: ours.encode(texts, output_value="token_embeddings"), "is supported")
    yield "token embeddings are refused", words, fine
    yield from examples(ours, theirs, room)


def properties(folder, texts):
    """The arguments and the properties of the class."""
    named = {"prompts": {"mine": "about: "}, "default_prompt_name": "mine", "truncate_dim": 9}
    ours, theirs = cleave.Encoder(folder, **named), SentenceTransformer(folder, device="cpu", **named)
    ours.max_seq_length = theirs.max_seq_length = 12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = ours.encode(texts), theirs.encode(texts)
    yield "prompts, truncate_dim, max_seq_length of the class", "apart %.1e" % apart(a, b), \
        a.shape == b.shape and apart(a, b) < 1e-5 and ours.prompts == theirs.prompts
    c = np.roll(b, 1, axis=0)
    for name in ("cosine", "dot", "euclidean", "manhattan"):
        ours.similarity_fn_name = theirs.similarity_fn_name = name
        worst = max(apart(ours.similarity(b, c), theirs.similarity(b, c)),
                    apart(ours.similarity_pairwise(b, c), theirs.similarity_pairwise(b, c)))
        # equal vectors have a distance of 0, for which torch.cdist gives up to the square root of an epsilon
        yield "similarity_fn_name = %r" % name, "apart %.1e" % worst, worst < (2e-2 if name == "euclidean" else 1e-4)


def examples(ours, theirs, room):
    """Examples from the documentation of sentence-transformers, with the Encoder in place of the class."""
    corpus = [room.text(3, 12) for _ in range(60)]
    corpus += [text + " " + room.words[i] for i, text in enumerate(corpus[:30])]
    queries = [text + " " + room.words[-i] for i, text in enumerate(corpus[:9])]

    def by_topk(model):
        found = model.encode_document(corpus, convert_to_tensor=True)
        scores = [model.similarity(model.encode_query(query, convert_to_tensor=True), found)[0] for query in queries]
        return [torch.topk(row, k=5).indices.tolist() for row in scores]

    def by_search(model):
        hits = util.semantic_search(model.encode(queries, convert_to_tensor=True),
                                    model.encode(corpus, convert_to_tensor=True), top_k=5)
        return [[hit["corpus_id"] for hit in found] for found in hits]

    cosines = np.sort(theirs.similarity(theirs.encode(corpus), theirs.encode(corpus)).numpy(), axis=None)
    threshold = float(cosines[int(0.9 * cosines.size)])

    def mined(model):
        return {tuple(pair[1:]): pair[0] for pair in util.paraphrase_mining(model, corpus, top_k=200)}

    def communities(model):
        return util.community_detection(model.encode(corpus), threshold=threshold, min_community_size=3)

    for what, way in (("similarity and torch.topk", by_topk), ("util.semantic_search", by_search),
                      ("util.community_detection", communities)):
        a, b = way(ours), way(theirs)
        yield "%s: the same answers" % what, "%d answers" % len(a), len(a) > 0 and a == b
    a, b = mined(ours), mined(theirs)
    worst = max(abs(a[pair] - b[pair]) for pair in b) if a.keys() == b.keys() else float("inf")
    yield "util.paraphrase_mining(encoder, texts): the same scores", "%d pairs, apart %.1e" % (len(a), worst), \
        worst < 2e-6
    hits = cleave.semantic_search(ours.encode(queries), ours.encode(corpus), top_k=5)
    exact = [np.asarray(theirs.encode(some), np.float64) for some in (queries, corpus)]
    q, v = (some / np.linalg.norm(some, axis=1, keepdims=True) for some in exact)
    other = [q[i] @ (v[hit["corpus_id"]] - v[wanted]) for i, (found, answer) in enumerate(zip(hits, by_search(theirs)))
             for hit, wanted in zip(found, answer) if hit["corpus_id"] != wanted]
    near = sum(abs(apart) < 1e-6 for apart in other)
    yield "cleave.semantic_search: the same answers", \
        "%d of %d other, %d of them ties within 1e-6" % (len(other), 5 * len(hits), near), near == len(other)


def check_int8(room):
    words = room.run("embed", room.model(), "-i", room.write("t.txt", "a\n"), "-o", room.path("o.npy"), "--precision",
                     "int8", fails=True)
    yield "int8 weights are not offered where they are not faster", words.strip().split("\n")[0][:60], True


def check_search(room, rows):
    """The ids of sentence-transformers' semantic_search, near-ties apart. search_faiss.py has the times."""
    chance = np.random.default_rng(room.chance.randint(1, 1 << 30))
    vectors, queries = (chance.standard_normal((count, 384), np.float32) for count in (rows, 64))
    hits = util.semantic_search(torch.from_numpy(queries), torch.from_numpy(vectors), top_k=10)
    wanted = np.array([[hit["corpus_id"] for hit in found] for found in hits])
    found = cleave.search(queries, vectors, 10).rows
    near = 0
    for q, k in zip(*np.nonzero(found != wanted)):
        both = vectors[[found[q, k], wanted[q, k]]].astype(np.float64)
        cosines = both @ queries[q] / np.linalg.norm(both, axis=1) / np.linalg.norm(queries[q])
        near += abs(cosines[0] - cosines[1]) < 1e-7
    other = int((found != wanted).sum())
    yield "search of %d x 384: the ids of semantic_search" % rows, \
        "%d of %d other, %d of them ties within 1e-7" % (other, wanted.size, near), other == near
