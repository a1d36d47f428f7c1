# SPDX-License-Identifier: Apache-2.0
"""Turns texts into vectors, with the arguments and the properties of sentence-transformers' SentenceTransformer."""
from __future__ import annotations

import ctypes
import json
import os
from typing import Any, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._check import given, text, whole
from ._context import Context
from ._encoder import Encoding, encoded, open_tokenizer, texts_of
from ._library import check, lib
from ._probe import choice
from ._quantize import PRECISIONS, quantize_embeddings
from ._report import Report
from ._similarity import SIMILARITIES, similarity, similarity_pairwise, tensor_maker
from ._watch import Progress
from .errors import ArgumentError, ArgumentTypeError, FormatError


_SETTINGS = "config_sentence_transformers.json"


def _saved(folder: str) -> dict[str, Any]:
    """Returns the settings of sentence-transformers that the folder contains."""
    path = os.path.join(folder, _SETTINGS)
    try:
        with open(path, encoding="utf-8-sig") as file:
            found = json.load(file)
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict):
        return {}
    for name, kind, what in (("prompts", dict, "an object of names and texts"), ("default_prompt_name", str, "a text"),
                             ("similarity_fn_name", str, "a text")):
        if not isinstance(found.get(name), (kind, type(None))):
            raise FormatError(f"{path}: \"{name}\" is {found[name]!r}, expected {what}")
    return found


class Encoder(Encoding):
    """An encoder from a folder as sentence-transformers writes it (config.json, model.safetensors, tokenizer.json or
    vocab.txt), of the family BERT, DistilBERT, ELECTRA, RoBERTa, XLM-RoBERTa, MPNet or ALBERT. Only BERT can be
    fine-tuned.

    Parameters
    ----------
    folder               the model folder
    max_length           largest number of tokens of a text; 0: the folder's limit
    batch_tokens         number of tokens that are computed together; 0: automatic
    half                 devices keep matrices as fp16; the vectors then have a cosine of 0.9999 with those of fp32
    threads              number of the tokenizer's threads; 0: all cores that this process may use
    prompts              named texts that may precede every text, in addition to the folder's prompts
    default_prompt_name  the prompt that precedes texts if a call names none; None: the folder's default
    similarity_fn_name   what similarity() computes: "cosine", "dot", "euclidean" or "manhattan" (the last two are
                         negative distances); None: what the folder says, else "cosine"
    truncate_dim         encode() keeps this many numbers of each vector; None: all

    Raises FileError, FormatError (the message says what was found and what was expected), MemoryError.
    """

    def __init__(self, folder: str | os.PathLike[str], *, max_length: int = 0, batch_tokens: int = 0,
                 half: bool = False, threads: int = 0, prompts: Mapping[str, str] | None = None,
                 default_prompt_name: str | None = None, similarity_fn_name: str | None = None,
                 truncate_dim: int | None = None, context: Context | None = None):
        super().__init__(folder, max_length, batch_tokens, half, threads, context)
        saved = _saved(self.folder)
        if not isinstance(prompts or {}, Mapping):
            raise ArgumentTypeError(f"prompts is {given(prompts)}, but it must be a mapping of names to texts")
        self.prompts: dict[str, str] = {
            name: value or "" for name, value in {"query": "", "document": "", **(saved.get("prompts") or {}),
                                                  **(prompts or {})}.items()}
        self.default_prompt_name: str | None = default_prompt_name or saved.get("default_prompt_name")
        self.truncate_dim = truncate_dim
        self.similarity_fn_name = similarity_fn_name or saved.get("similarity_fn_name")
        if self.default_prompt_name is not None:
            self._prompt(None, None)  # raises ArgumentError if there is no prompt of this name

    @property
    def similarity_fn_name(self) -> str:
        """What similarity() and similarity_pairwise() compute."""
        return self._similarity

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: Any) -> None:
        name = getattr(name, "value", name)  # of sentence-transformers' SimilarityFunction
        choice("similarity_fn_name", "cosine" if name is None else name, dict.fromkeys(SIMILARITIES, 0))
        self._similarity: str = name or "cosine"

    @property
    def max_seq_length(self) -> int:
        """The largest number of tokens of a text; longer texts are cut."""
        info = _abi.TokenizerInfo(size=ctypes.sizeof(_abi.TokenizerInfo))
        with self._turn:
            self._check_open()
            lib.clv_tokenizer_get_info(self._tokenizer, ctypes.byref(info))
        return int(info.max_length)

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        whole("max_seq_length", length, 2, 1 << 31)
        with self._call():
            self._check_open()
            made = open_tokenizer(self.folder, length)
            lib.clv_tokenizer_close(self._tokenizer)
            self._tokenizer = made

    def get_embedding_dimension(self) -> int:
        """Returns the number of elements of a vector that encode() makes."""
        return self.width if self.truncate_dim is None else min(self.width, self.truncate_dim)

    get_sentence_embedding_dimension = get_embedding_dimension

    def embed(self, texts: Sequence[str] | str, *, prompt_name: str | None = None,
              prompt: str | None = None, report: Report | None = None,
              progress: Progress = None) -> NDArray[np.float32]:
        """Turns texts into vectors: float32 [texts, width], or [width] for one str.

        Texts are not padded, and a text's vector does not depend on the other texts. Every text is preceded by
        `prompt`, else by the model's prompt named `prompt_name`, else by the model's default prompt if there is one.
        Warns if texts are longer than max_length and are cut.

        Raises DeviceError, CancelledError. Ctrl-C ends the call.
        """
        one = isinstance(texts, str)
        found = texts_of("texts", [texts] if one else texts)
        with self._call():
            self._check_open()
            before = self._prompt(prompt_name, prompt)
            self._skip(before)
            out = self._vectors("embed", [before + each for each in found] if before else found, report, progress)
        return out[0] if one else out

    def _prompt(self, name: str | None, prompt: str | None) -> str:
        if name is not None and prompt is not None:
            raise ArgumentError("encode: prompt and prompt_name cannot be used together")
        if prompt is not None:
            return text("prompt", prompt)
        wanted = self.default_prompt_name if name is None else text("prompt_name", name)
        if wanted is None:
            return ""
        if wanted not in self.prompts:
            raise ArgumentError(f"encode: prompt_name: the model has no prompt {wanted!r}; "
                                f"{_SETTINGS} and Encoder's argument prompts list them, and prompt= takes any text")
        return text(f"prompts: {wanted!r}", self.prompts[wanted])

    def _skip(self, prompt: str) -> None:
        """Leaves the tokens of the prompt out of the pooling if the model's configuration says so."""
        tokens = ctypes.c_size_t()
        if prompt and lib.clv_model_get_config(self._weights()).contents.skips_prompt:
            raw = encoded("prompt", [prompt])[0]
            check(lib.clv_tokenizer_prompt_length(self._tokenizer, raw, ctypes.byref(tokens)))
        lib.clv_encoder_skip(self._encoder, tokens)

    def encode(self, sentences: Sequence[str] | str, prompt_name: str | None = None, prompt: str | None = None,
               batch_size: int = 32, show_progress_bar: bool | None = None,
               output_value: str = "sentence_embedding", precision: str = "float32",
               convert_to_numpy: bool = True, convert_to_tensor: bool = False, device: Any = None,
               normalize_embeddings: bool = False, truncate_dim: int | None = None) -> Any:
        """Does the same as embed(), with the arguments of SentenceTransformer.encode.

        `batch_size` is accepted but has no effect, because texts of equal length share a batch of `batch_tokens`.
        Arguments that would make the result differ from that of sentence-transformers are refused: token embeddings
        and devices (give a context to Encoder). `truncate_dim` keeps the first numbers of each vector,
        `normalize_embeddings` then makes its length 1, and `precision` then converts it to fewer bits, as
        quantize_embeddings() does. `convert_to_tensor` gives a tensor of PyTorch in the host's memory, and is refused
        where PyTorch is not installed.
        """
        whole("encode: batch_size", batch_size, 1, 1 << 31)
        tensor = tensor_maker("encode") if convert_to_tensor else None
        for name, value, taken in (("convert_to_numpy", convert_to_numpy or convert_to_tensor, True),
                                   ("output_value", output_value, "sentence_embedding"),
                                   ("device", device, None)):
            if value != taken:
                advice = {"device": "; Encoder(context=...) chooses devices"}.get(name, "")
                raise ArgumentError(f"encode: {name} is {value!r}, but only {taken!r} is supported{advice}")
        choice("encode: precision", precision, PRECISIONS)
        out = self.embed(sentences, prompt_name=prompt_name, prompt=prompt, progress=bool(show_progress_bar))
        truncate_dim = self.truncate_dim if truncate_dim is None else truncate_dim
        if truncate_dim is not None:
            out = np.ascontiguousarray(out[..., :whole("encode: truncate_dim", truncate_dim, 1, self.width)])
        if normalize_embeddings:
            out = out / np.maximum(np.linalg.norm(out, axis=-1, keepdims=True), np.float32(1e-12))
        out = out if precision == "float32" else quantize_embeddings(out, precision)
        return tensor(np.ascontiguousarray(out)) if tensor else out

    def _encode_as(self, names: tuple[str, ...], sentences: Sequence[str] | str,
                   named: dict[str, Any]) -> Any:
        if named.get("prompt") is None and named.get("prompt_name") is None:
            named["prompt_name"] = next((name for name in names if name in self.prompts), None)
        return self.encode(sentences, **named)

    def encode_query(self, sentences: Sequence[str] | str, **named: Any) -> Any:
        """Does the same as encode() with the model's prompt "query" if there is one, as in SentenceTransformer."""
        return self._encode_as(("query",), sentences, named)

    def encode_document(self, sentences: Sequence[str] | str, **named: Any) -> Any:
        """Does the same as encode() with the first prompt of "document", "passage" and "corpus" that the model has."""
        return self._encode_as(("document", "passage", "corpus"), sentences, named)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Returns the similarities of all pairs of two lists of vectors, [n, m], by the function similarity_fn_name: a
        tensor of PyTorch if the first list is a tensor."""
        return similarity(embeddings1, embeddings2, self._similarity)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Returns the similarities of the vectors at the same place in two lists of vectors, [n]."""
        return similarity_pairwise(embeddings1, embeddings2, self._similarity)


def embed(folder: str | os.PathLike[str], texts: Sequence[str] | str, *, report: Report | None = None,
          progress: Progress = None, **named: Any) -> NDArray[np.float32]:
    """Does the same as Encoder(folder, ...).embed(texts), for a single call."""
    encoder = Encoder(folder, **named)
    try:
        return encoder.embed(texts, report=report, progress=progress)
    finally:
        encoder.close()
