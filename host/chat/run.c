/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the statements of a template. */
#include "host/chat/template.h"

#include "base/alloc.h"

#include <string.h>

/* The variables of a scope: of an iteration of a loop, of a call of a macro, or of the whole template. */
typedef struct scope {
    chat_value variables; /* a dictionary */
    struct scope *outer;
} scope;

typedef enum leaving { GOES_ON, BREAKS, CONTINUES } leaving;

typedef struct engine {
    chat_run *run;
    scope *scope, *globals;
    chat_out *out;
    chat_value waiting; /* the text to which the filters of a body are applied */
    leaving leaving;
} engine;

static chat_value evaluate(engine *e, const chat_node *n);
static void execute(engine *e, const chat_node *n);

static bool failed(const engine *e)
{
    return e->run->status != CLV_OK;
}

static chat_value look_up(const engine *e, const char *name, bool *found)
{
    for (const scope *s = e->scope; s; s = s->outer) {
        const chat_dict *d = s->variables.as.dict;
        for (size_t i = 0; i < d->count; ++i)
            if (chat_is_text(d->pairs[i].key, name)) {
                *found = true;
                return d->pairs[i].value;
            }
    }
    *found = false;
    return chat_undefined;
}

static void set(engine *e, const char *name, chat_value value)
{
    chat_dict_set(e->run, e->scope->variables, chat_text(name), value);
}

/* ---- expressions --------------------------------------------------------------------------------- */

static void take_arguments(engine *e, const chat_node *list, chat_arguments *out)
{
    out->count = 0;
    for (const chat_node *n = list; n && out->count < CHAT_ARGUMENTS_MOST; n = n->next) {
        out->names[out->count] = n->name;
        out->values[out->count++] = evaluate(e, n->a);
    }
}

/* Binds a macro's arguments by position, then by name. Arguments that are not given get their default, or stay
 * undefined; an undefined value that is given stays undefined, too. */
static void bind_arguments(engine *e, const chat_node *macro, const chat_arguments *given)
{
    size_t place = 0;
    for (const chat_node *n = macro->arguments; n; n = n->next, ++place) {
        bool there = place < given->count && !given->names[place];
        chat_value value = there ? given->values[place] : chat_undefined;
        for (size_t i = 0; i < given->count; ++i)
            if (given->names[i] && strcmp(given->names[i], n->name) == 0)
                value = given->values[i], there = true;
        if (!there && n->a) value = evaluate(e, n->a);
        set(e, n->name, value);
    }
}

static bool enter(engine *e)
{
    if (++e->run->depth <= CHAT_DEPTH_MOST) return true;
    chat_fail(e->run, CLV_E_SHAPE, "nested more than %d deep", CHAT_DEPTH_MOST);
    return false;
}

static chat_value call_macro(engine *e, const chat_node *macro, const chat_arguments *given)
{
    chat_out out = { 0 }, *outer_out = e->out;
    scope *outer = e->scope;
    scope own = { chat_dict_new(e->run), e->globals };
    const leaving was = e->leaving;
    if (failed(e) || !enter(e)) return chat_undefined;
    e->scope = &own, e->out = &out, e->leaving = GOES_ON;
    bind_arguments(e, macro, given);
    execute(e, macro->body);
    e->scope = outer, e->out = outer_out, e->leaving = was;
    --e->run->depth;
    return failed(e) ? chat_undefined : chat_string_of(chat_put_end(&out));
}

static chat_value call(engine *e, const chat_node *n)
{
    chat_arguments given;
    bool found = false;
    take_arguments(e, n->arguments, &given);
    if (failed(e)) return chat_undefined;
    if (n->a->kind == CHAT_N_MEMBER) {
        const chat_value object = evaluate(e, n->a->a);
        return failed(e) ? chat_undefined : chat_method(e->run, object, n->a->name, &given);
    }
    if (n->a->kind != CHAT_N_NAME)
        return chat_fail(e->run, CLV_E_UNSUPPORTED, "a call of something without a name");
    const chat_value callee = look_up(e, n->a->name, &found);
    if (found && callee.kind == CHAT_MACRO) return call_macro(e, callee.as.macro, &given);
    return chat_function(e->run, n->a->name, &given);
}

static chat_value index_of(engine *e, const chat_node *n)
{
    const chat_value object = evaluate(e, n->a), key = evaluate(e, n->b);
    return failed(e) ? chat_undefined : chat_member(e->run, object, key);
}

static chat_value slice_of(engine *e, const chat_node *n)
{
    const chat_value object = evaluate(e, n->a);
    const chat_value from = n->b ? evaluate(e, n->b) : chat_none;
    const chat_value to = n->c ? evaluate(e, n->c) : chat_none;
    const chat_value step = n->d ? evaluate(e, n->d) : chat_none;
    return failed(e) ? chat_undefined : chat_slice(e->run, object, from, to, step);
}

static chat_value make_list(engine *e, const chat_node *n)
{
    const chat_value list = chat_list_new(e->run);
    for (const chat_node *i = n->arguments; i && !failed(e); i = i->next)
        chat_list_add(e->run, list, evaluate(e, i->a));
    return list;
}

static chat_value make_dict(engine *e, const chat_node *n)
{
    const chat_value dict = chat_dict_new(e->run);
    for (const chat_node *i = n->arguments; i && !failed(e); i = i->next) {
        const chat_value key = evaluate(e, i->a);
        if (key.kind != CHAT_STRING && !chat_is_number(key))
            return chat_fail(e->run, CLV_E_UNSUPPORTED, "%s as a key", chat_kind_name(key));
        chat_dict_set(e->run, dict, key, evaluate(e, i->b));
    }
    return dict;
}

static chat_value name_of(engine *e, const chat_node *n)
{
    bool found = false;
    const chat_value value = look_up(e, n->name, &found);
    return value;
}

static chat_value minus(engine *e, const chat_node *n)
{
    const chat_value v = evaluate(e, n->a);
    if (v.kind == CHAT_FLOAT) return chat_float(-v.as.number);
    if (v.kind == CHAT_INT && v.as.whole != INT64_MIN) return chat_int(-v.as.whole);
    return failed(e) ? chat_undefined
                     : chat_fail(e->run, CLV_E_UNSUPPORTED, "minus %s", chat_kind_name(v));
}

static chat_value apply(engine *e, const chat_node *n)
{
    chat_arguments given;
    const chat_value value = evaluate(e, n->a);
    take_arguments(e, n->arguments, &given);
    if (failed(e)) return chat_undefined;
    return chat_apply(e->run, n->name, value, &given);
}

static chat_value test(engine *e, const chat_node *n)
{
    chat_arguments given;
    chat_value value = evaluate(e, n->a);
    take_arguments(e, n->arguments, &given);
    if (failed(e)) return chat_undefined;
    /* names of functions count as defined, although they are not variables */
    if (value.kind == CHAT_UNDEFINED && n->a->kind == CHAT_N_NAME && chat_is_function(n->a->name))
        value = chat_bool(true);
    return chat_bool(chat_test(e->run, n->name, value, &given));
}

static chat_value evaluate_one(engine *e, const chat_node *n)
{
    switch (n->kind) {
    case CHAT_N_VALUE:
        return n->value;
    case CHAT_N_NAME:
        return name_of(e, n);
    case CHAT_N_LIST:
        return make_list(e, n);
    case CHAT_N_DICT:
        return make_dict(e, n);
    case CHAT_N_MEMBER: {
        const chat_value object = evaluate(e, n->a);
        return failed(e) ? chat_undefined : chat_member(e->run, object, chat_text(n->name));
    }
    case CHAT_N_INDEX:
        return index_of(e, n);
    case CHAT_N_SLICE:
        return slice_of(e, n);
    case CHAT_N_CALL:
        return call(e, n);
    case CHAT_N_APPLY:
        return apply(e, n);
    case CHAT_N_TEST:
        return test(e, n);
    case CHAT_N_NOT:
        return chat_bool(!chat_truth(evaluate(e, n->a)));
    case CHAT_N_MINUS:
        return minus(e, n);
    case CHAT_N_AND: {
        const chat_value a = evaluate(e, n->a);
        return chat_truth(a) ? evaluate(e, n->b) : a;
    }
    case CHAT_N_OR: {
        const chat_value a = evaluate(e, n->a);
        return chat_truth(a) ? a : evaluate(e, n->b);
    }
    case CHAT_N_BINARY: {
        const chat_value a = evaluate(e, n->a), b = evaluate(e, n->b);
        return failed(e) ? chat_undefined : chat_binary(e->run, n->sign, a, b);
    }
    case CHAT_N_CHOICE:
        return chat_truth(evaluate(e, n->a)) ? evaluate(e, n->b)
               : n->c                        ? evaluate(e, n->c)
                                             : chat_undefined;
    case CHAT_N_WAITING:
        return e->waiting;
    default:
        return chat_fail(e->run, CLV_E_INTERNAL, "an expression of kind %d", (int)n->kind);
    }
}

static chat_value evaluate(engine *e, const chat_node *n)
{
    if (!n || !chat_step(e->run, 0) || !enter(e)) return chat_undefined;
    e->run->line = n->line;
    const chat_value value = evaluate_one(e, n);
    --e->run->depth;
    return failed(e) ? chat_undefined : value;
}

/* ---- loops --------------------------------------------------------------------------------------- */

/* Returns the items over which a loop runs, as a list; of a dictionary its keys, of a text its characters. */
static chat_value items_of(engine *e, chat_value over)
{
    chat_arguments none = { .count = 0 };
    if (over.kind == CHAT_LIST) return over;
    if (over.kind == CHAT_UNDEFINED) return chat_list_new(e->run);
    if (over.kind == CHAT_DICT || over.kind == CHAT_STRING)
        return chat_apply(e->run, "list", over, &none);
    return chat_fail(e->run, CLV_E_UNSUPPORTED, "a loop over %s", chat_kind_name(over));
}

static void set_names(engine *e, const chat_node *names, chat_value item)
{
    if (!names->next) {
        set(e, names->name, item);
        return;
    }
    size_t count = 0;
    for (const chat_node *n = names; n; n = n->next)
        ++count;
    if (item.kind != CHAT_LIST || item.as.list->count != count) {
        chat_fail(e->run, CLV_E_UNSUPPORTED, "%s for %zu names", chat_kind_name(item), count);
        return;
    }
    for (size_t i = 0; i < count; ++i, names = names->next)
        set(e, names->name, item.as.list->items[i]);
}

static chat_value loop_of(engine *e, const chat_list *list, size_t i, unsigned depth)
{
    const chat_value loop = chat_dict_new(e->run);
    const int64_t at = (int64_t)i, count = (int64_t)list->count;
    const struct {
        const char *name;
        chat_value value;
    } all[] = { { "index", chat_int(at + 1) },
                { "index0", chat_int(at) },
                { "revindex", chat_int(count - at) },
                { "revindex0", chat_int(count - at - 1) },
                { "first", chat_bool(!i) },
                { "last", chat_bool(at + 1 == count) },
                { "length", chat_int(count) },
                { "depth", chat_int(depth) },
                { "previtem", i ? list->items[i - 1] : chat_undefined },
                { "nextitem", i + 1 < list->count ? list->items[i + 1] : chat_undefined } };
    for (size_t k = 0; k < CLV_LEN(all); ++k)
        chat_dict_set(e->run, loop, chat_text(all[k].name), all[k].value);
    return loop;
}

/* Returns the items that pass the loop's condition. */
static chat_value kept_items(engine *e, const chat_node *n, chat_value items)
{
    const chat_value kept = chat_list_new(e->run);
    scope *outer = e->scope;
    for (size_t i = 0; i < items.as.list->count && !failed(e); ++i) {
        scope own = { chat_dict_new(e->run), outer };
        if (failed(e)) break;
        e->scope = &own;
        set_names(e, n->names, items.as.list->items[i]);
        if (chat_truth(evaluate(e, n->b))) chat_list_add(e->run, kept, items.as.list->items[i]);
        e->scope = outer;
    }
    return kept;
}

static void loop(engine *e, const chat_node *n)
{
    chat_value items = items_of(e, evaluate(e, n->a));
    if (!failed(e) && n->b) items = kept_items(e, n, items);
    if (failed(e)) return;
    scope *outer = e->scope;
    for (size_t i = 0; i < items.as.list->count && !failed(e) && e->leaving != BREAKS; ++i) {
        scope own = { chat_dict_new(e->run), outer };
        if (failed(e) || !chat_step(e->run, 0)) break;
        e->scope = &own;
        e->leaving = GOES_ON;
        set_names(e, n->names, items.as.list->items[i]);
        set(e, "loop", loop_of(e, items.as.list, i, 1));
        execute(e, n->body);
        e->scope = outer;
    }
    e->scope = outer;
    e->leaving = GOES_ON;
    if (!failed(e) && !items.as.list->count) execute(e, n->other);
}

/* ---- statements ---------------------------------------------------------------------------------- */

/* Assigns `value` to the names in the statement, or to a member of a namespace. */
static void set_value(engine *e, const chat_node *n, chat_value value)
{
    if (failed(e)) return;
    if (!n->a) {
        set_names(e, n->names, value);
        return;
    }
    const chat_value object = evaluate(e, n->a->a);
    if (failed(e)) return;
    if (object.kind != CHAT_DICT || !object.as.dict->changes)
        chat_fail(e->run, CLV_E_UNSUPPORTED, "a member of %s is set, only namespaces change",
                  chat_kind_name(object));
    else
        chat_dict_set(e->run, object, chat_text(n->a->name), value);
}

/* Executes the body of a statement and returns its output, passed through the statement's filters. */
static chat_value written_by(engine *e, const chat_node *n)
{
    chat_out out = { 0 }, *outer = e->out;
    e->out = &out;
    execute(e, n->body);
    e->out = outer;
    const chat_value text = chat_string_of(chat_put_end(&out)), was = e->waiting;
    if (!n->b || failed(e)) return text;
    e->waiting = text;
    const chat_value value = evaluate(e, n->b);
    e->waiting = was;
    return value;
}

static void execute_one(engine *e, const chat_node *n)
{
    switch (n->kind) {
    case CHAT_N_TEXT:
        chat_put(e->run, e->out, n->value.as.text);
        break;
    case CHAT_N_PRINT:
        chat_put(e->run, e->out, chat_written(e->run, evaluate(e, n->a)));
        break;
    case CHAT_N_IF: {
        const bool yes = chat_truth(evaluate(e, n->a));
        if (!failed(e)) execute(e, yes ? n->body : n->other);
        break;
    }
    case CHAT_N_FOR:
        loop(e, n);
        break;
    case CHAT_N_SET:
        set_value(e, n, evaluate(e, n->b));
        break;
    case CHAT_N_SET_TEXT:
        set_value(e, n, written_by(e, n));
        break;
    case CHAT_N_MACRO:
        set(e, n->name, (chat_value){ CHAT_MACRO, { .macro = n } });
        break;
    case CHAT_N_FILTER:
        chat_put(e->run, e->out, chat_written(e->run, written_by(e, n)));
        break;
    case CHAT_N_BREAK:
        e->leaving = BREAKS;
        break;
    case CHAT_N_CONTINUE:
        e->leaving = CONTINUES;
        break;
    default:
        execute(e, n->body);
        break;
    }
}

static void execute(engine *e, const chat_node *n)
{
    if (!n || failed(e) || !enter(e)) return;
    for (; n && !failed(e) && e->leaving == GOES_ON; n = n->next) {
        if (!chat_step(e->run, 0)) break;
        e->run->line = n->line;
        execute_one(e, n);
    }
    --e->run->depth;
}

void chat_execute(chat_run *run, const chat_node *statements, chat_value globals, chat_out *out)
{
    scope template = { globals, NULL };
    engine e = { .run = run, .scope = &template, .globals = &template, .out = out };
    run->depth = 0;
    execute(&e, statements);
}
