#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes templates.json: small templates, and the texts that jinja2 renders from them. usage: make_templates.py >
templates.json"""
import json

import jinja2.sandbox

MESSAGES = [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi 'you' <b>\n"},
            {"role": "assistant", "content": "Héllo\t😀 \"x\""}, {"role": "user", "content": ""}]
SOURCES = [
    "plain text\n", "two lines\n\n", "{{ bos_token }}|{{ eos_token }}|{{ nothing }}|", "{# a comment #}a{#- b -#} c",
    "{% for m in messages %}\n  {{ m.role }}: {{ m['content'] | trim }}\n{% endfor %}\nend",
    "  {% if true %}\n   x\n  {% endif %}\n y", "a {%- if true -%} b {%- endif -%} c", "a {%+ if true +%}\n b{% endif %}",
    "{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }}{{ loop.revindex0 }};{% else %}none{% endfor %}",
    "{% for m in [] %}x{% else %}empty{% endfor %}", "{% for k, v in {'a': 1, 'b': [2]}.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for i in range(1, 10, 3) %}{{ i }}{{ loop.previtem }}{{ loop.nextitem }},{% endfor %}",
    "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% set x = 1 %}{% for i in [1,2] %}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for i in [1,2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set a, b = 1, 'z' %}{{ a }}{{ b }}{% set c %} in {{ a }} {% endset %}[{{ c }}]{% set d | upper %}up{% endset %}{{ d }}",
    "{% macro f(x, y='d', z=none) %}<{{ x }}{{ y }}{{ z }}>{% endmacro %}{{ f(1) }}{{ f(1, z=3) }}{{ f(y=2, x=messages[1].role) | upper }}",
    "{% filter upper | trim %}  abc {{ messages[2]['content'] }} {% endfilter %}",
    "{{ 1 + 2 * 3 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 1.5 + 1 }} {{ -2 }} {{ 1_000 }}",
    "{{ 'a' + 'b' }} {{ 'a' ~ 1 ~ none ~ true }} {{ [1] + [2, 3] }} {{ 'x' 'y' }}",
    "{{ 1 == 1.0 }} {{ 'a' != 'b' }} {{ 1 < 2 }} {{ 'b' >= 'a' }} {{ 'a' in 'cat' }} {{ 4 not in [1, 2] }} {{ 'k' in {'k': 1} }} {{ [1, [2]] == [1, [2]] }}",
    "{{ true and 0 or 'x' }} {{ not nothing }} {{ '' or none }} {{ 'a' if nothing else 'b' }} {{ 'a' if false }} {{ not 1 in [2] }}",
    "{{ messages[0].content[1:4] }}|{{ messages[-1].role }}|{{ messages[1:] | length }}|{{ 'abcdef'[::-1] }}|{{ [1, 2, 3, 4][::2] }}|{{ [1, 2, 3][::-1] }}|{{ 'é😀x'[1] }}|{{ 'abc'[5] }}|{{ 'abc'[-2:] }}",
    "{{ messages[0]['content'].strip() }}|{{ 'xxaxx'.strip('x') }}|{{ ' a'.lstrip() }}|{{ 'a '.rstrip() }}|{{ 'a,b,,c'.split(',') }}|{{ 'a b  c'.split() }}|{{ 'a,b,c'.split(',', 1)[1] }}",
    "{{ 'hello 2nd world'.title() }} {{ 'ABC'.lower() }} {{ 'strase é'.upper() }} {{ 'hello WORLD'.capitalize() }} {{ 'a-b'.replace('-', '+') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'abcabc'.find('c') }}",
    "{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith('b') }} {{ '-'.join(['a', 'b']) }} {{ 'a{}b{}'.format(1, 'x') }} {{ '{y}{{}}'.format(y=2) }}",
    "{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 'z') }} {{ {'a': 1, 'b': 2}.keys() | list }} {{ {'a': 1}.values() | list }}",
    "{{ messages | length }} {{ 'aé' | length }} {{ [3, 1, 2] | sort }} {{ [1, 2] | first }} {{ [1, 2] | last }} {{ ['b', 'A'] | join('-') }} {{ messages | map(attribute='role') | join(',') }} {{ ['a', 'b'] | map('upper') | list }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('role', 'eq', 'user') | map(attribute='role') | list }} {{ [0, 1, '', 'a'] | select | list }} {{ [1, 2, 3] | reject('odd') | list }} {{ [1, 1, 2] | unique | list }}",
    "{{ nothing | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | default('d') }} {{ 'x' | d('y') }}",
    "{{ messages[2] | tojson }} {{ [1, 1.5, true, none, 'a\\nb'] | tojson }} {{ {'a': {'b': []}} | tojson }} {{ {'a': [1]} | tojson(indent=2) }}",
    "{{ '12' | int + 1 }} {{ 'x' | int }} {{ '1.5' | float }} {{ 3 | string + 'a' }} {{ 1.0 }} {{ 1e3 if false else 0.1 }} {{ ['a', 1, none, true, 'it\\'s'] }}",
    "{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{% for k, v in {'b': 1, 'a': 2} | dictsort %}{{ k }}{{ v }}{% endfor %}|{{ ({'a': 1} | items | list)[0][1] }}|{{ 'abc' | reverse }}|{{ [1, 2] | reverse | list }}|{{ 'x' | safe }}",
    "{{ nothing is defined }} {{ messages is defined }} {{ none is none }} {{ 'a' is string }} {{ {} is mapping }} {{ [] is sequence }} {{ [] is iterable }} {{ 1 is number }} {{ true is boolean }} {{ true is true }} {{ 4 is even }} {{ 3 is odd }} {{ 6 is divisibleby 3 }} {{ 'a' is in ['a'] }} {{ 'a' is not string }} {{ range is defined }}",
    "{%- if messages[0]['role'] == 'system' -%}\n{%- set system = messages[0]['content'] -%}\n{%- set rest = messages[1:] -%}\n{%- else -%}\n{%- set rest = messages -%}\n{%- endif -%}\n{{ system }}{{ rest | length }}",
    "{% if false %}a{% elif messages | length > 9 %}b{% elif true %}c{% else %}d{% endif %}",
    "{{ '\\u00e9\\x41\\t|\\\\|\\'' }}{{ \"a\\\"b\" }}", "{{ {'a': {'b': 'c'}}['a'].b }}{{ {'x': 1}['y'] }}{{ messages[0].nothing }}",
    "{% for a in [1, 2] %}{% for b in 'xy' %}{{ a }}{{ b }}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% set l = [] %}{% if l %}a{% else %}b{% endif %}{% if not l and messages %}c{% endif %}{{ (1, 2)[1] }}{{ () | length }}",
    "{{ 1000.0 }} {{ -10 / 1 }} {{ 1e20 }} {{ 123456789.125 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1e16 }} {{ 1e15 }} {{ 2e2 | tojson }} {{ 0.0 }} {{ 7 // -1 }} {{ 7 % -1 }}",
    "{{ tools is defined }} {{ tools is none }} {{ documents is none }} {% if tools is not none %}tools{% endif %}",
    "{{ messages | selectattr('role', '==', 'user') | list | length }} {{ [1, 2, 3] | select('>', 1) | list }} {{ [1, 2, 3] | reject('le', 2) | list }} {{ -3 | abs }} {{ 1 is sameas(true) }} {{ true is sameas(true) }}",
    "{{ ' a b  c '.split(none, 1) }} {{ 'a b c'.split(maxsplit=1) }} {{ 'ab'.replace('', '-') }} {{ 'ab'.replace('', '-', 2) }} {{ ''.find('x') }} {{ ''.find('') }} {{ 'xax' | trim('x') }} {{ 'xax' | trim(chars='x') }}",
    "{{ 'x' | int(-1) }} {{ 'x' | float(default=0.5) }} {{ ['a', 'A', 'b'] | unique | list }} {{ ['a', 'A'] | unique(case_sensitive=true) | list }} {{ \"it's (a) <B> x-y\" | title }} {{ \"it's\".title() }} [{{ '' | indent(2, first=true) }}]",
    "{{ [{'f': {'n': 'x'}}, {'f': {'n': 'y'}}] | map(attribute='f.n') | join(',') }} {{ [[1, 2], [3, 4]] | map(attribute='1') | list }} {{ {'a': [1]} == {'a': [1]} }} {{ {'a': 1} == {'a': 2} }} {{ messages[0] in messages[1:] }}",
    "{% for k, v in {'b': 1, 'A': 2} | dictsort(case_sensitive=true) %}{{ k }}{{ v }}{% endfor %} {% for k, v in {'b': 1, 'A': 2} | dictsort(reverse=true) %}{{ k }}{{ v }}{% endfor %} {% macro f(x, y='d') %}{{ x }}[{{ y }}]{% endmacro %}{{ f(1, nothing) }}{{ f(1) }}",
]


def main():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda v, indent=None: json.dumps(v, ensure_ascii=False, indent=indent)
    out = []
    for source in SOURCES:
        text = env.from_string(source).render(messages=MESSAGES, tools=None, documents=None,
                                              add_generation_prompt=True, bos_token="<s>", eos_token="</s>")
        out.append({"source": source, "text": text})
    print(json.dumps({"messages": MESSAGES, "cases": out}, indent=1, ensure_ascii=True))


main()
