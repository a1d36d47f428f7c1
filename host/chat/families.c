/* SPDX-License-Identifier: Apache-2.0 */
/* Lists families of models by the form of their conversations, each with a built-in template. These serve files whose
 * own template is not understood, and callers who choose a family themselves. */
#include <cleave/chat.h>

#include "base/alloc.h"

#include <string.h>

static const char chatml[] =
    "{% for m in messages %}"
    "<|im_start|>{{ m.role }}{{ '\\n' }}{{ m.content }}<|im_end|>{{ '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant{{ '\\n' }}{% endif %}";

static const char llama3[] =
    "{{ bos_token }}"
    "{% for m in messages %}"
    "<|start_header_id|>{{ m.role }}<|end_header_id|>{{ '\\n\\n' }}{{ m.content | trim }}<|eot_id|>"
    "{% endfor %}"
    "{% if add_generation_prompt %}"
    "<|start_header_id|>assistant<|end_header_id|>{{ '\\n\\n' }}"
    "{% endif %}";

static const char llama2[] =
    "{% set system = namespace(text='') %}"
    "{% for m in messages %}"
    "{% if m.role == 'system' %}"
    "{% set system.text = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' %}"
    "{% elif m.role == 'user' %}"
    "{{ bos_token }}[INST] {{ system.text }}{{ m.content | trim }} [/INST]"
    "{% set system.text = '' %}"
    "{% else %}"
    " {{ m.content | trim }} {{ eos_token }}"
    "{% endif %}"
    "{% endfor %}";

static const char mistral[] = "{% set system = namespace(text='') %}"
                              "{{ bos_token }}"
                              "{% for m in messages %}"
                              "{% if m.role == 'system' %}"
                              "{% set system.text = m.content + '\\n\\n' %}"
                              "{% elif m.role == 'user' %}"
                              "[INST] {{ system.text }}{{ m.content }} [/INST]"
                              "{% set system.text = '' %}"
                              "{% else %}"
                              " {{ m.content }}{{ eos_token }}"
                              "{% endif %}"
                              "{% endfor %}";

static const char gemma[] =
    "{{ bos_token }}"
    "{% for m in messages %}"
    "{% if m.role == 'system' %}{{ raise_exception('there is no system role') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}{{ '\\n' }}"
    "{{ m.content | trim }}<end_of_turn>{{ '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model{{ '\\n' }}{% endif %}";

static const char phi3[] = "{% for m in messages %}"
                           "<|{{ m.role }}|>{{ '\\n' }}{{ m.content }}<|end|>{{ '\\n' }}"
                           "{% endfor %}"
                           "{% if add_generation_prompt %}<|assistant|>{{ '\\n' }}{% endif %}";

static const char zephyr[] = "{% for m in messages %}"
                             "<|{{ m.role }}|>{{ '\\n' }}{{ m.content }}{{ eos_token }}{{ '\\n' }}"
                             "{% endfor %}"
                             "{% if add_generation_prompt %}<|assistant|>{{ '\\n' }}{% endif %}";

/* The families in the order in which they are tried. A template belongs to the first family whose `part` it contains,
 * and also `more` unless that is NULL. */
static const struct {
    const char *name, *text, *part, *more;
} families[] = {
    { "chatml", chatml, "<|im_start|>", NULL },  { "llama3", llama3, "<|start_header_id|>", NULL },
    { "llama2", llama2, "[INST]", "<<SYS>>" },   { "mistral", mistral, "[INST]", NULL },
    { "gemma", gemma, "<start_of_turn>", NULL }, { "phi3", phi3, "<|user|>", "<|end|>" },
    { "zephyr", zephyr, "<|user|>", NULL },
};

const char *clv_chat_family(const char *source)
{
    for (size_t i = 0; source && i < CLV_LEN(families); ++i)
        if (strstr(source, families[i].part) &&
            (!families[i].more || strstr(source, families[i].more)))
            return families[i].name;
    return NULL;
}

const char *clv_chat_template(const char *family)
{
    for (size_t i = 0; family && i < CLV_LEN(families); ++i)
        if (strcmp(families[i].name, family) == 0) return families[i].text;
    return NULL;
}
