# SPDX-License-Identifier: Apache-2.0
"""Scores pairs of texts with a cross-encoder."""
from __future__ import annotations

import ctypes
import os
import warnings
from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address
from ._check import described, given, text, whole
from ._context import Context, chosen
from ._encoder import _NOBODY, _Folder, encoded, texts_of
from ._library import check, lib, take_word
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError, ArgumentTypeError

_ACTIVATIONS = {None: 0, "none": 1, "sigmoid": 2, "softmax": 3}


class CrossEncoder(_Folder):
    """A model that reads two texts together and scores how well they match: a model for sequence
    classification of the family BERT, DistilBERT, ELECTRA, RoBERTa, XLM-RoBERTa, MPNet or ALBERT, as
    sentence-transformers' CrossEncoder or `cleave finetune` saves it.

    Parameters
    ----------
    folder        the model folder
    max_length    the most tokens of a pair; 0: the folder's limit
    batch_tokens  the number of tokens that are encoded together; 0: automatic
    activation    "none", "sigmoid" or "softmax"; None: the one that config.json names, else sigmoid for
                  one score per pair and none for several
    half          True: devices keep matrices as fp16
    threads       the number of the tokenizer's threads; 0: all cores that this process may use

    Raises FileError, FormatError, ArgumentError, MemoryError.
    """

    def __init__(self, folder: str | os.PathLike[str], *, max_length: int = 0, batch_tokens: int = 0,
                 activation: str | None = None, half: bool = False, threads: int = 0,
                 context: Context | None = None):
        self._ranker = 0
        super().__init__(folder, max_length, threads)
        self.context = chosen(context)
        options = described("cross-encoder", _abi.RankerOptions, max_length=max_length, batch_tokens=batch_tokens,
                            threads=self.threads, half=half,
                            activation=choice("activation", activation, _ACTIVATIONS))
        made = ctypes.c_void_p()
        with self.context.held() as handle:
            check(lib.clv_ranker_open(handle, os.fsencode(self.folder), ctypes.byref(options), ctypes.byref(made)))
            self.context.acquire()
        self._ranker = made.value or 0
        classes = lib.clv_ranker_classes(self._ranker)
        self.classes: list[str] = [take_word(lib.clv_classes_name(classes, i))
                                   for i in range(lib.clv_classes_count(classes))]
        """The names of the scores."""
        self.max_length = int(lib.clv_ranker_max_length(self._ranker))
        """Most tokens of a pair."""

    def _scores(self, texts: list[str], pairs: NDArray[np.uintp], report: Report | None,
                progress: Progress) -> NDArray[np.float32]:
        raw = encoded("texts", texts)
        pointers = (ctypes.c_char_p * max(len(raw), 1))(*raw)
        lengths = (ctypes.c_size_t * max(len(raw), 1))(*(len(one) for one in raw))
        out, cut = np.empty((len(pairs), len(self.classes)), np.float32), ctypes.c_size_t()
        with self._call():
            if not self._ranker:
                raise ArgumentError("CrossEncoder: it is closed")
            self.context.check_process()
            if len(pairs):
                with Watch(progress, "rank") as watch:
                    lib.clv_ranker_watch(self._ranker, watch.function, None)
                    try:
                        watch.done(lib.clv_ranker_scores(self._ranker, pointers, lengths, len(raw), address(pairs),
                                                         len(pairs), address(out), ctypes.byref(cut),
                                                         report_handle(report)))
                    finally:
                        lib.clv_ranker_watch(self._ranker, _NOBODY, None)
        if cut.value:
            warnings.warn(f"{cut.value} of {len(pairs)} pairs were cut at {self.max_length} tokens (max_length)",
                          stacklevel=3)
        return out

    def predict(self, sentences: Any, batch_size: int = 32, show_progress_bar: bool | None = None,
                activation_fn: None = None, apply_softmax: bool = False, convert_to_numpy: bool = True,
                convert_to_tensor: bool = False, *, report: Report | None = None,
                progress: Progress = None) -> Any:
        """Returns the scores of pairs of texts and accepts the arguments of sentence-transformers'
        predict. The result is float32 [pairs], or [pairs, scores] if the model gives several scores; for
        a single pair the result is a number, or [scores]. `batch_size` is accepted but has no effect. Tensors and
        functions are refused; choose the activation when you open the CrossEncoder."""
        whole("predict: batch_size", batch_size, 1, 1 << 31)
        for name, value, taken in (("activation_fn", activation_fn, None), ("convert_to_numpy", convert_to_numpy, True),
                                   ("convert_to_tensor", convert_to_tensor, False)):
            if value != taken:
                advice = {"activation_fn": "; CrossEncoder(activation=...) chooses one",
                          "convert_to_tensor": "; torch.from_numpy(...) makes a tensor of the result"}.get(name, "")
                raise ArgumentError(f"predict: {name} is {value!r}, but only {taken!r} is supported{advice}")
        found = list(sentences)
        one = len(found) == 2 and all(isinstance(side, str) for side in found)
        pairs = [found] if one else found
        for i, pair in enumerate(pairs):
            if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
                raise ArgumentTypeError(f"predict: pair {i}: got {given(pair)}, but two texts are expected")
        texts = texts_of("predict", [side for pair in pairs for side in pair])
        scores = self._scores(texts, np.arange(len(texts), dtype=np.uintp).reshape(-1, 2), report,
                              progress or bool(show_progress_bar))
        if apply_softmax and len(self.classes) > 1:
            powers = np.exp(scores - scores.max(1, keepdims=True))
            scores = powers / powers.sum(1, keepdims=True)
        if len(self.classes) == 1:
            scores = scores[:, 0]
        return scores[0] if one else scores

    def rank(self, query: str, documents: Sequence[str], top_k: int | None = None, return_documents: bool = False,
             batch_size: int = 32, show_progress_bar: bool | None = None, *, report: Report | None = None,
             progress: Progress = None) -> list[dict[str, Any]]:
        """Returns the documents from the highest score to the lowest, as sentence-transformers' rank does:
        {"corpus_id": number, "score": float}, and "text" with return_documents. The model must give one
        score per pair."""
        whole("rank: batch_size", batch_size, 1, 1 << 31)
        if len(self.classes) != 1:
            raise ArgumentError(f"rank: the model gives {len(self.classes)} scores per pair, but documents can "
                                "be sorted by one only; predict() gives all scores")
        texts = [text("rank: query", query), *texts_of("rank: documents", documents)]
        pairs = np.zeros((len(texts) - 1, 2), np.uintp)
        pairs[:, 1] = np.arange(1, len(texts))
        scores = self._scores(texts, pairs, report, progress or bool(show_progress_bar))[:, 0]
        order = np.argsort(-scores, kind="stable")
        if top_k is not None:
            order = order[:whole("rank: top_k", top_k, 1, 1 << 62)]
        found: list[dict[str, Any]] = [{"corpus_id": int(i), "score": scores[i]} for i in order]
        for each in found if return_documents else ():
            each["text"] = texts[each["corpus_id"] + 1]
        return found

    def _end(self) -> None:
        if self._ranker:
            if self.context.ours:
                lib.clv_ranker_close(self._ranker)
            self._ranker = 0
            self.context.release()
        super()._end()
