/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the internals of a tokenizer: its rules, its vocabulary, and the functions that process one text.
 *
 * A text is repaired (invalid UTF-8) and cut at added tokens. Each fragment between them is normalised (normalize.c)
 * and split into words (split.c), and the model converts each word to ids (bpe.c, unigram.c). WordPiece does all of
 * this in one pass of its own (wordpiece.c). */
#ifndef CLEAVE_HOST_TOKENIZER_TOKENIZER_H
#define CLEAVE_HOST_TOKENIZER_TOKENIZER_H

#include "base/json.h"
#include "base/text.h"
#include "base/unicode.h"
#include "host/tokenizer/pieces.h"

#include <cleave/gguf.h>
#include <cleave/tokenizer.h>

enum {
    CLV_SPECIALS_MAX = 4096,
    CLV_WORD_CHARS_MAX = 256,  /* largest accepted max_input_chars_per_word */
    CLV_CHAR_TABLE = 0x3400,   /* code points whose rules are precomputed */
    CLV_CODE_POINT = 0x1FFFFF, /* mask of the code point in a rule */
    CLV_RULE_SHIFT = 24,
};

/* How a code point is treated. A number `rule << CLV_RULE_SHIFT | code point` combines this with the code point that
 * replaces it. */
typedef enum clv_rule {
    CLV_RULE_LETTER, /* part of a word */
    CLV_RULE_DROP,   /* ignored */
    CLV_RULE_SPACE,  /* ends a word */
    CLV_RULE_ALONE,  /* a word of its own, as punctuation is */
    CLV_RULE_MARK,   /* dropped, but may end a run of combining marks: see clv_char_spell */
    CLV_RULE_SPELL,  /* becomes several code points, or one whose neighbours matter */
} clv_rule;

/* The options of a BertNormalizer. */
typedef struct clv_char_flags {
    bool lower, strip, cjk;
} clv_char_flags;

/* One of the code points by which clv_char_spell replaces another. */
typedef struct clv_spelled {
    uint32_t c;
    clv_rule rule;      /* LETTER, ALONE, SPACE, MARK */
    unsigned combining; /* combining class; 0: a run of combining marks ends here */
} clv_spelled;

enum { CLV_SPELLED_MAX = 12 };

/* Writes the 0 to CLV_SPELLED_MAX code points that replace `c`; returns their number. */
size_t clv_char_spell(clv_char_flags flags, uint32_t c, clv_spelled out[CLV_SPELLED_MAX]);
/* Returns in one number how `c` is treated: rule << CLV_RULE_SHIFT | the code point that replaces it. The rule is
 * CLV_RULE_SPELL if a single code point cannot replace `c` without its neighbours. */
uint32_t clv_char_rule(clv_char_flags flags, uint32_t c);

/* Properties of code points in the reference (the Rust library tokenizers), which differ from today's: see
 * wordpiece_chars.c. */
bool clv_char_is_old_mark(uint32_t c); /* general category M* */
unsigned clv_char_old_combining(uint32_t c);
/* Writes the canonical decomposition of `c`, or with `compat` the compatibility decomposition; returns its length. */
size_t clv_char_old_decompose(uint32_t c, bool compat, uint32_t out[CLV_COMPAT_MAX]);
/* Writes the lower case of `c`; returns its length in code points, 1 or 2. */
size_t clv_char_old_lower(uint32_t c, uint32_t out[2]);

/* An added token. Texts are searched for added tokens before they are split into words. */
typedef struct clv_special {
    char *text;
    size_t length;
    int32_t id;
    bool plain;       /* found even if special tokens are to be treated as text */
    bool single_word; /* matches only if no letter, mark, number or underscore is beside it */
    bool left, right; /* the match includes the white space on that side */
    bool late;        /* searched for in the normal form of a fragment, not in the text */
} clv_special;

/* Added tokens in the order of the search; `start` marks the bytes with which they begin. */
typedef struct clv_special_set {
    clv_special *tokens; /* owned by the tokenizer; the texts of late tokens are in normal form */
    size_t count;
    bool start[256];
} clv_special_set;

/* ---- stages of byte pair encoding ---------------------------------------------------------------- */

typedef enum clv_normal_kind {
    CLV_NORMAL_NFC,
    CLV_NORMAL_PREPEND, /* puts `to` in front of every fragment that is not empty */
    CLV_NORMAL_REPLACE, /* replaces every `from` by `to` */
    CLV_NORMAL_SPACES,  /* replaces each run of two or more spaces by `to` */
    CLV_NORMAL_NFD,
    CLV_NORMAL_NFKD,
    CLV_NORMAL_NFKC,
    CLV_NORMAL_LOWER,
    CLV_NORMAL_ACCENTS, /* drops marks */
    CLV_NORMAL_STRIP,   /* drops white space at the text's ends */
    CLV_NORMAL_CHARSMAP,
    CLV_NORMAL_BERT,
} clv_normal_kind;

typedef struct clv_normal {
    clv_normal_kind kind;
    char from[8], to[8]; /* UTF-8, terminated */
    bool left, right;    /* STRIP: the ends from which white space is dropped */
    clv_char_flags bert;
} clv_normal;

/* A compiled character map of SentencePiece: a trie of texts (a double array), and the texts that replace them. */
typedef struct clv_charsmap {
    uint32_t *units;
    size_t count;
    char *texts; /* each with a NUL at its end */
    size_t length;
} clv_charsmap;
/* Makes a map from its base64 text in tokenizer.json; `what` names the file in messages. */
clv_status clv_charsmap_open(clv_charsmap *map, const char *what, const char *base64);
void clv_charsmap_clear(clv_charsmap *map);
/* Appends `text`, which is UTF-8, to `out`, with its characters replaced by the map. */
void clv_charsmap_apply(const clv_charsmap *map, const char *text, size_t length, clv_text *out);

typedef enum clv_split_kind {
    CLV_SPLIT_NUMBERS, /* separates digits from other text, `most` digits per word */
    CLV_SPLIT_WORDS,   /* splits by one of the usual regular expressions: see split.c */
    CLV_SPLIT_META,    /* replaces spaces by `mark`, so that words begin with it */
    CLV_SPLIT_SPACES,  /* splits at white space, which is no part of a word */
} clv_split_kind;

typedef struct clv_split {
    clv_split_kind kind;
    size_t most;       /* most digits in a word; 0: any number */
    bool contractions; /* 's, 't, 're, 've, 'm, 'll, 'd are words */
    bool any_case;     /* contractions match in any case */
    bool any_lead;     /* any character but letters, numbers and line ends may begin a word of
                          letters; else a space may begin words of all kinds */
    bool lines;        /* line ends join the word in front of them */
    bool prefix;       /* META: puts a mark in front of the first word; WORDS: a space */
    /* `prefix` applies at the beginning of the text only, not of every fragment */
    bool first_only;
    bool cuts; /* META: cuts into words at the marks */
    char mark[8];
} clv_split;

enum { CLV_STAGES_MAX = 8, CLV_FRAME_MAX = 8 };

/* Classes of transformers, which determine the rules of a tokenizer: see class_rules.c. */
typedef enum clv_tokenizer_class {
    CLV_CLASS_OTHER, /* an unknown class, or none */
    CLV_CLASS_FILE,  /* a class without rules of its own, which follows tokenizer.json */
    CLV_CLASS_BERT,  /* rules of BertNormalizer */
    /* the following classes replace the normalizer and the pre_tokenizer of tokenizer.json */
    CLV_CLASS_ROBERTA,
    CLV_CLASS_XLM_ROBERTA,
    CLV_CLASS_ALBERT,
} clv_tokenizer_class;

/* A pair of neighbouring pieces that join, and the piece that they become; the pair with the lowest rank joins
 * first. */
typedef struct clv_merge {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank;
    int32_t id; /* -1: a free slot */
} clv_merge;

struct clv_tokenizer {
    clv_tokenizer_kind kind;
    clv_pieces pieces;
    /* [pieces.ids]: clv_token_type; NULL: clv_tokenizer_type derives them */
    unsigned char *types;
    clv_special *specials; /* after loading: early ones, then late ones, each sorted by bytes */
    size_t special_count, special_room;
    clv_special_set early, late; /* the sets for clv_specials_match */
    int32_t unk, cls, sep, pad, mask, bos, eos;
    /* ids that are put before and after a text */
    int32_t before[CLV_FRAME_MAX], after[CLV_FRAME_MAX];
    size_t before_count, after_count;
    /* pairs: two texts are [CLS] A [SEP] B [SEP]; pair_types: B and the token after it are of type 1 */
    bool pairs, pair_types;
    bool double_pairs; /* a pair of texts becomes <s> A </s> </s> B </s> */
    size_t max_length;
    bool keep_end;  /* shortens a long text to its last tokens, not its first */
    bool pads_left; /* tokenizer.json requires padding on the left; Cleave does not pad */
    bool replace_invalid, drop_invalid;
    /* sentence_bert_config.json requires lower case, whatever the normalizer does */
    bool lower_asked;

    /* the class of the tokenizer, and what tokenizer_config.json says about its rules: add_prefix_space,
     * do_lower_case, keep_accents */
    clv_tokenizer_class class;
    bool class_prefix, class_lower, class_accents;

    /* WORDPIECE */
    clv_char_flags flags;
    clv_char_flags written; /* the rules in tokenizer.json */
    /* `flags` were set from tokenizer_config.json at the start, and tokenizer.json does not change them */
    bool flags_given;
    uint32_t rules[CLV_CHAR_TABLE];
    size_t max_word_chars;

    /* byte pair encoding */
    clv_normal normal[CLV_STAGES_MAX];
    clv_split split[CLV_STAGES_MAX];
    size_t normal_count, split_count;
    bool byte_level;       /* pieces spell bytes, each as a character of its own */
    bool bytes_as_hex;     /* pieces like <0x0A> spell the bytes of characters without a piece */
    bool whole_words;      /* a word that is a piece is not split */
    bool fuse_unknown;     /* neighbouring unknown characters become one token */
    bool strip_first;      /* decoding removes one leading space from a text's first piece */
    int32_t byte_ids[256]; /* the piece of each byte; -1: none */
    float *scores;         /* [pieces.ids]: SENTENCEPIECE; the highest joins first */
    double *weights;       /* [pieces.ids]: UNIGRAM; logarithms of probabilities */
    double unknown_weight; /* UNIGRAM: weight of a character without a piece */
    clv_charsmap charsmap;
    clv_merge *merges;  /* BPE: a hash table */
    size_t merge_slots; /* a power of two */
};

/* ---- opening ------------------------------------------------------------------------------------- */

/* Makes a tokenizer from `text`, the JSON of tokenizer.json; `what` names the file in messages. */
clv_status clv_tokenizer_from_json(clv_tokenizer *tokenizer, const char *what, const char *text,
                                   size_t length);
/* Makes a tokenizer from `text`, the contents of vocab.txt. `config` is the object of tokenizer_config.json, which
 * `config_name` names in messages; NULL: the defaults of BERT. `added` is the object of added_tokens.json; NULL: there
 * is none. */
clv_status clv_tokenizer_from_vocabulary(clv_tokenizer *tokenizer, const char *what,
                                         const char *text, size_t length, const char *config_name,
                                         const clv_json *config, const clv_json *added);
/* Makes a tokenizer from tokenizer.json, the object `root`, if its model is BPE or Unigram. */
clv_status clv_tokenizer_from_bpe_json(clv_tokenizer *tokenizer, const char *what,
                                       const clv_json *root);
/* clv_tokenizer_find_class determines the class from config.json and tokenizer_config.json. clv_tokenizer_apply_class
 * replaces the normalizers and the pre_tokenizers of tokenizer.json by those of the class, and warns if they differ.
 * clv_tokenizer_check_class fails if the class belongs to another kind of tokenizer, warns if it is unknown, and takes
 * the special tokens that tokenizer_config.json names. */
void clv_tokenizer_find_class(clv_tokenizer *tokenizer, const clv_json *model,
                              const clv_json *config);
void clv_tokenizer_apply_class(clv_tokenizer *tokenizer, const char *what);
clv_status clv_tokenizer_check_class(clv_tokenizer *tokenizer, const char *folder,
                                     const clv_json *model, const clv_json *config);
/* Sets how pairs of texts become rows of tokens; call it when before[] and after[] are known. */
void clv_tokenizer_take_pairs(clv_tokenizer *tokenizer, const clv_json *post_processor);
/* Makes a tokenizer from the metadata of a GGUF file. */
clv_status clv_tokenizer_from_gguf(clv_tokenizer *tokenizer, const clv_gguf *file);

/* clv_tokenizer_refuse fails with the message "part is found, expected ..."; clv_tokenizer_flag reads a truth value;
 * clv_tokenizer_take_pieces reads a vocabulary. */
clv_status clv_tokenizer_refuse(const char *what, const char *part, const clv_json *found,
                                const char *expected);
clv_status clv_tokenizer_flag(const char *what, const clv_json *object, const char *key,
                              bool fallback, bool *out);
clv_status clv_tokenizer_take_pieces(clv_tokenizer *tokenizer, const char *what,
                                     const clv_json *vocabulary);
/* clv_tokenizer_take_normalizer reads the normalizer; clv_tokenizer_take_unigram reads the model of UNIGRAM. */
clv_status clv_tokenizer_take_normalizer(clv_tokenizer *tokenizer, const char *what,
                                         const clv_json *normalizer);
clv_status clv_tokenizer_take_unigram(clv_tokenizer *tokenizer, const char *what,
                                      const clv_json *model);
/* Reads the member `key`, a text of at most 7 bytes, to `out`; the text may be empty only if `empty` is set. */
clv_status clv_tokenizer_take_mark(const char *what, const clv_json *object, const char *key,
                                   bool empty, char out[8]);
/* Reads the options of a BertNormalizer. */
clv_status clv_tokenizer_take_bert(const char *what, const clv_json *normalizer,
                                   clv_char_flags *flags);
/* Sets *split to the rule of a known regular expression, compared byte by byte; returns false for an unknown one. */
bool clv_split_of_pattern(const char *pattern, clv_split *split);

clv_status clv_tokenizer_add_special(clv_tokenizer *tokenizer, const char *what, const char *text,
                                     int64_t id);
/* Adds a copy of `special` and of its text to the added tokens. */
clv_status clv_tokenizer_add(clv_tokenizer *tokenizer, const char *what,
                             const clv_special *special);
/* clv_bpe_make_merges allocates for `count` merges. clv_bpe_add_merge adds one merge: the pieces `left` and `right`
 * join to the piece `id` with this rank. */
clv_status clv_bpe_make_merges(clv_tokenizer *tokenizer, const char *what, size_t count);
void clv_bpe_add_merge(clv_tokenizer *tokenizer, int32_t left, int32_t right, uint32_t rank,
                       int32_t id);
/* Adds a merge given by the texts of its two pieces; if a piece is unknown, increments *skipped instead. */
clv_status clv_bpe_merge_line(clv_tokenizer *tokenizer, const char *what, const char *left,
                              size_t left_length, const char *right, size_t right_length,
                              uint32_t rank, size_t *skipped);
/* Builds the sets of added tokens, and normalises the texts of late ones. */
clv_status clv_specials_finish(clv_tokenizer *tokenizer, const char *what);
/* Builds the tables of byte pair encoding; call it once, when all pieces and added tokens are known. */
clv_status clv_bpe_finish(clv_tokenizer *tokenizer, const char *what);
/* Reads from the folder's tokenizer_config.json which tokens are put around a text. */
clv_status clv_bpe_take_config(clv_tokenizer *tokenizer, const char *folder,
                               const clv_json *config);
/* Builds the tables of WordPiece; call it once, when all pieces and special tokens are known. */
clv_status clv_tokenizer_finish(clv_tokenizer *tokenizer, const char *what, const char *tail_mark);
void clv_tokenizer_discard(clv_tokenizer *tokenizer); /* frees its contents, not the struct */

/* ---- work ------------------------------------------------------------------------------------------ */

/* Appends the WordPiece tokens of one text, without [CLS] and [SEP], to rows->ids, at most `most` of them; if the text
 * has more, increments rows->truncated. Returns CLV_E_MEMORY, or CLV_E_FORMAT with *bad the position of the byte that
 * is not UTF-8 (without a message, since only the caller knows the text's name). */
clv_status clv_wordpiece(const clv_tokenizer *tokenizer, const char *text, size_t length,
                         size_t most, clv_token_rows *rows, size_t *bad);

/* Appends all tokens of one text by byte pair encoding or UNIGRAM. With `literal`, special tokens in the text are
 * treated as text; `marks` (may be NULL) does so for special tokens with a marked (nonzero) byte. Returns CLV_E_MEMORY
 * or CLV_E_FORMAT with *bad as clv_wordpiece does; if *bad is SIZE_MAX, there is a message. */
clv_status clv_bpe_encode(const clv_tokenizer *tokenizer, const char *text, size_t length,
                          bool literal, const unsigned char *marks, clv_token_rows *rows,
                          size_t *bad);

/* Returns valid UTF-8: `text` itself, or a repaired copy in *copy, and updates *length. On failure returns NULL:
 * copy->failed is set if memory ran out, else *bad is the position of the first invalid byte. */
const char *clv_text_repair(const clv_tokenizer *tokenizer, const char *text, size_t *length,
                            clv_text *copy, clv_token_rows *rows, size_t *bad);
/* Each appends a form of `text` to `out`: its decomposition (NFD, or with `compat` NFKD), its lower case, the text
 * without marks, and BERT's normal form. */
void clv_text_decompose(const char *text, size_t length, bool compat, clv_text *out);
void clv_text_lower(const char *text, size_t length, clv_text *out);
void clv_text_drop_marks(const char *text, size_t length, clv_text *out);
void clv_text_bert(clv_char_flags flags, const char *text, size_t length, clv_text *out);
/* Returns the normal form of a fragment, which is `text` itself or in one of the caller's two `work` texts, and updates
 * *length. NULL: no memory. */
const char *clv_text_normalize(const clv_tokenizer *tokenizer, const char *text, size_t *length,
                               clv_text work[2]);
/* Returns the length in bytes of the first word of `text`, which must not be empty. */
size_t clv_split_next(const clv_split *split, const char *text, size_t length);

/* Returns the longest added token of the set that begins at text[at]; NULL if there is none. clv_bpe_encode describes
 * `literal` and `marks`. */
const clv_special *clv_specials_match(const clv_special_set *set, const char *text, size_t at,
                                      size_t length, bool literal, const unsigned char *marks);
/* clv_spaces_before returns where the white space before text[to] begins, at least `from`; clv_spaces_behind returns
 * where the white space from text[at] on ends. */
size_t clv_spaces_before(const char *text, size_t from, size_t to);
size_t clv_spaces_behind(const char *text, size_t at, size_t length);

/* clv_bpe_word converts one word to ids and appends them to `rows`. Its working memory, `work`, can be used again for
 * the next word. */
typedef struct clv_bpe_work clv_bpe_work;
clv_bpe_work *clv_bpe_work_create(void);
void clv_bpe_work_free(clv_bpe_work *work);
clv_status clv_bpe_word(const clv_tokenizer *tokenizer, clv_bpe_work *work, const char *word,
                        size_t length, clv_token_rows *rows);

/* Appends the ids of one word by UNIGRAM; `work` is the memory of clv_bpe_work_create. */
clv_status clv_unigram_word(const clv_tokenizer *tokenizer, clv_bpe_work *work, const char *word,
                            size_t length, clv_token_rows *rows);
/* The end of the best path through a word up to one of its bytes. clv_bpe_work_ends returns memory for `count` ends,
 * which `work` owns; NULL: no memory. */
typedef struct clv_best_end {
    double score;
    size_t from; /* SIZE_MAX: no path leads here */
    int32_t id;
} clv_best_end;
clv_best_end *clv_bpe_work_ends(clv_bpe_work *work, size_t count);

bool clv_token_push(clv_token_rows *rows, int32_t id);

/* clv_byte_char returns GPT-2's character for a byte: printable Latin-1 stands for itself; the other 68 bytes become
 * U+0100 and up. clv_char_byte returns the byte of a character. */
uint32_t clv_byte_char(unsigned char byte);
int clv_char_byte(uint32_t c); /* -1: none */

#endif
