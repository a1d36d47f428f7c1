/* SPDX-License-Identifier: Apache-2.0 */
/* `cleave documents DIR`, for the build: writes man pages and shell completion from the tables behind --help.
 *
 * This file runs every command with --help, and receives the rows of its option table in place of the function that
 * prints them. Help, man page and completion therefore always agree. */
#include "host/cli/cli.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

#include <cleave/version.h>

#include <string.h>

static clv_text page, options, values; /* the man page; the parts of a completion */

static void describe(const cli_command *command, cli_describe *writer)
{
    char name[64], help[] = "--help";
    char *arguments[] = { name, help, NULL };
    clv_copy_string(name, sizeof name, command->name);
    cli_describe_with(writer);
    (void)command->run(2, arguments);
    cli_describe_with(NULL);
}

/* Writes the text to the file and frees the text. */
static clv_status publish(clv_text *text, const char *folder, const char *name)
{
    clv_text path = { 0 };
    clv_text_add(&path, "%s/%s", folder, name);
    clv_status status = text->failed || path.failed
                            ? clv_fail(CLV_E_MEMORY, "%s: out of memory", name)
                            : clv_file_write(path.data, text->data, text->length);
    clv_text_clear(text), clv_text_clear(&path);
    return status;
}

/* ---- man pages -------------------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
} environment[] = {
    { "CLEAVE_DEVICE", "use these devices, as --device" },
    { "CLEAVE_MODE", "auto, cpu, gpu, hybrid or reference, as --mode" },
    { "CLEAVE_MEM_LIMIT", "most memory to use on each device, as --mem-limit" },
    { "CLEAVE_SCHED", "how devices share the work, as --sched" },
    { "CLEAVE_TUNE",
      "0: measure nothing; use the built-in choices among kernel variants, and between host and "
      "device" },
    { "CLEAVE_COMPILERS",
      "number of processes that compile kernels for CPU drivers at the same time; 1: compile in "
      "this process" },
    { "CLEAVE_BIND", "0: leave the threads of CPU drivers where the system puts them" },
    { "CLEAVE_CACHE_DIR",
      "folder for compiled kernels and measurements [$XDG_CACHE_HOME/cleave, else "
      "~/.cache/cleave]" },
    { "CLEAVE_CACHE", "0: keep nothing on disk between runs" },
    { "CLEAVE_LOG",
      "none, error, warn, info or debug: the messages that the library writes to standard error" },
    { "CLEAVE_MPI", "under mpirun: off, openmpi or mpich [the MPI of the launcher]" },
    { "CLEAVE_MPI_PLUGIN", "under mpirun: path of the plugin for MPI" },
    { "CLEAVE_MPI_LEASE", "window: ranks take their work by one-sided MPI operations" },
    { "CLEAVE_MODEL", "bench and demo: a language model, which is a GGUF file or a folder" },
    { "CLEAVE_MINILM_DIR", "demo and selftest: a folder with the model all-MiniLM-L6-v2" },
    { "CLEAVE_CL_DIR", "read the kernels from this folder (for developers of Cleave)" },
    { "OCL_ICD_VENDORS", "the folder of .icd files that the OpenCL loader reads; --icd sets it" },
    { "POCL_CACHE_DIR, MESA_SHADER_CACHE_DIR",
      "folders in which PoCL and Mesa keep compiled kernels [folders in Cleave's own cache]" },
};

/* Adds one line of text, escaped so that troff never reads it as a request. */
static void man_line(const char *text, size_t length)
{
    if (length && (*text == '.' || *text == '\'')) clv_text_add(&page, "\\&");
    for (size_t i = 0; i < length; ++i) {
        if (text[i] == '\\')
            clv_text_add(&page, "\\e");
        else if (text[i] == '-' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '-'))
            clv_text_add(&page, "\\-");
        else
            clv_text_add(&page, "%c", text[i]);
    }
    clv_text_add(&page, "\n");
}

static void man_text(const char *text)
{
    man_line(text, strlen(text));
}

/* Adds paragraphs; indented lines are kept as they are. */
static void man_paragraphs(const char *text)
{
    bool literal = false;
    while (*text) {
        const size_t length = strcspn(text, "\n");
        const bool indented = *text == ' ';
        if (indented != literal && length) {
            clv_text_add(&page, indented ? ".nf\n" : ".fi\n");
            literal = indented;
        }
        if (length)
            man_line(text, length);
        else
            clv_text_add(&page, ".PP\n");
        text += length + (text[length] == '\n');
    }
    if (literal) clv_text_add(&page, ".fi\n");
}

static void man_escaped(const char *text)
{
    for (; *text; ++text)
        clv_text_add(&page, *text == '-' || *text == '\\' ? "\\%c" : "%c",
                     *text == '\\' ? 'e' : *text);
}

static void man_option(const cli_option *option)
{
    const char *name = cli_long_name(option);
    const char letter = cli_short_name(option);
    clv_text_add(&page, ".TP\n\\fB");
    if (letter) clv_text_add(&page, "\\-%c", letter);
    if (letter && name) clv_text_add(&page, "\\fR, \\fB");
    if (name) {
        clv_text_add(&page, "\\-\\-");
        man_escaped(name);
    }
    clv_text_add(&page, "\\fR");
    if (option->value) {
        clv_text_add(&page, option->kind == CLI_OPTIONAL ? "[=\\fI" : name ? "=\\fI" : " \\fI");
        man_escaped(option->value);
        clv_text_add(&page, option->kind == CLI_OPTIONAL ? "\\fR]" : "\\fR");
    }
    clv_text_add(&page, "\n");
    man_text(option->help);
}

static void man_head(const char *name, const char *summary)
{
    clv_text_add(&page, ".\\\" Written by the command from its option tables; do not edit.\n");
    clv_text_add(&page, ".TH ");
    for (const char *c = name; *c; ++c)
        clv_text_add(&page, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    clv_text_add(&page, " 1 \"\" \"cleave %s\" \"User Commands\"\n.SH NAME\n", clv_version());
    man_escaped(name);
    clv_text_add(&page, " \\- ");
    man_text(summary);
}

static void man_command(const cli_command *command, const cli_option *const tables[])
{
    char name[80];
    snprintf(name, sizeof name, "cleave-%s", command->name);
    man_head(name, command->summary);
    clv_text_add(&page, ".SH SYNOPSIS\n.B cleave %s\n", command->name);
    man_text(command->operands);
    clv_text_add(&page, ".SH DESCRIPTION\n");
    man_paragraphs(command->description);
    clv_text_add(&page, ".SH OPTIONS\n");
    for (size_t t = 0; tables[t]; ++t)
        for (const cli_option *o = tables[t]; o->name; ++o)
            man_option(o);
    clv_text_add(&page, ".SH SEE ALSO\n.BR cleave (1)\nfor exit codes and environment\n");
}

static void man_overview(void)
{
    man_head("cleave", "compute on every OpenCL device of this machine");
    clv_text_add(&page, ".SH SYNOPSIS\n.B cleave\n[\\fB\\-\\-icd\\fR=\\fIPATH\\fR] \\fICOMMAND\\fR "
                        "[\\fIOPTION\\fR...]\n.SH COMMANDS\n");
    for (const cli_command *const *c = cli_commands; *c; ++c) {
        clv_text_add(&page, ".TP\n.BR cleave\\-%s (1)\n", (*c)->name);
        man_text((*c)->summary);
    }
    clv_text_add(&page, ".SH OPTIONS\n");
    for (const cli_option *o = cli_global_options; o->name; ++o)
        man_option(o);
    for (const cli_option *o = cli_main_options; o->name; ++o)
        man_option(o);
    clv_text_add(
        &page, ".SH ENVIRONMENT\nAll variables are optional. An option overrides its variable.\n");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; ++i) {
        clv_text_add(&page, ".TP\n.B %s\n", environment[i].name);
        man_text(environment[i].text);
    }
    clv_text_add(&page, ".SH EXIT STATUS\n");
    for (const cli_exit_code *e = cli_exit_codes; e->text; ++e) {
        clv_text_add(&page, ".TP\n.B %d\n", e->code);
        man_text(e->text);
    }
}

static clv_status write_pages(const char *folder)
{
    man_overview();
    CLV_TRY(publish(&page, folder, "man1/cleave.1"));
    for (const cli_command *const *c = cli_commands; *c; ++c) {
        char name[96];
        snprintf(name, sizeof name, "man1/cleave-%s.1", (*c)->name);
        describe(*c, man_command);
        CLV_TRY(publish(&page, folder, name));
    }
    return CLV_OK;
}

/* ---- completion ------------------------------------------------------------------------------- */

/* Returns what may follow the option: 'n' nothing, 'c' one of its values, 'f' a file, 'x' something else. */
static char kind_of_value(const cli_option *option)
{
    static const char *const files[] = { "FILE", "DIR", "PATH", "CSV", "PNG", "JSON", "HTML" };
    if (option->kind == CLI_FLAG) return 'n';
    if (option->kind == CLI_CHOICE) return 'c';
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
        if (option->value && strstr(option->value, files[i])) return 'f';
    return 'x';
}

static void add_choices(clv_text *text, const char *list)
{
    for (; *list; ++list)
        clv_text_add(text, "%c", *list == ',' ? ' ' : *list);
}

/* Adds to `options` the words that begin with -, and to `values` a branch for each option that takes a value. */
static void bash_command(const cli_command *command, const cli_option *const tables[])
{
    clv_text_add(&options, "    %s)\n        words='", command->name);
    for (size_t t = 0; tables[t]; ++t)
        for (const cli_option *o = tables[t]; o->name; ++o) {
            const char *name = cli_long_name(o), kind = kind_of_value(o);
            const char letter = cli_short_name(o);
            if (name) clv_text_add(&options, "--%s ", name);
            if (!name) clv_text_add(&options, "-%c ", letter);
            if (kind == 'n' || o->kind == CLI_OPTIONAL) continue;
            clv_text_add(&values, "    ");
            if (name)
                clv_text_add(&values, "'%s --%s'%s", command->name, name, letter ? " | " : "");
            if (letter) clv_text_add(&values, "'%s -%c'", command->name, letter);
            clv_text_add(&values, ") ");
            if (kind == 'c') {
                clv_text_add(&values, "words='");
                add_choices(&values, o->value);
                clv_text_add(&values, "' ");
            }
            clv_text_add(&values, "kind=%c ;;\n", kind);
        }
    clv_text_add(&options, "'\n        ;;\n");
}

static const char bash_begin[] =
    "# Completion of the command cleave for bash, written by it from its option tables.\n"
    "_cleave()\n"
    "{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' i\n"
    "    local words='' kind=o\n"
    "    # bash takes --mode=cpu as three words\n"
    "    if [[ $word == '=' ]]; then\n"
    "        word=''\n"
    "    elif [[ $before == '=' ]]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; ++i)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        --icd) [[ ${COMP_WORDS[i+1]} == '=' ]] && ((++i)); ((++i)) ;;\n"
    "        -* | =) ;;\n"
    "        *) command=${COMP_WORDS[i]}; break ;;\n"
    "        esac\n"
    "    done\n"
    "    case \"$command $before\" in\n"
    "    *' --icd') kind=f ;;\n";
static const char bash_middle[] = "    esac\n"
                                  "    if [[ $kind == o && $word == -* ]]; then\n"
                                  "        kind=c\n"
                                  "        case $command in\n";
static const char bash_end[] =
    "        esac\n"
    "    elif [[ $kind == o && -z $command ]]; then\n"
    "        kind=c\n"
    "        words='%s'\n"
    "    fi\n"
    "    COMPREPLY=()\n"
    "    case $kind in\n"
    "    c) while IFS='' read -r i; do COMPREPLY+=(\"$i\"); done < <(compgen -W \"$words\" -- "
    "\"$word\") ;;\n"
    "    f | o) compopt -o default 2> /dev/null ;;\n"
    "    esac\n"
    "}\n"
    "complete -F _cleave cleave\n";

static clv_status write_bash(const char *folder)
{
    clv_text script = { 0 }, names = { 0 };
    for (const cli_command *const *c = cli_commands; *c; ++c) {
        describe(*c, bash_command);
        clv_text_add(&names, "%s%s", names.length ? " " : "", (*c)->name);
    }
    clv_text_add(&script, "%s%s%s", bash_begin, clv_text_get(&values), bash_middle);
    clv_text_add(&script, "%s    '') words='--icd --help --version' ;;\n", clv_text_get(&options));
    clv_text_add(&script, bash_end, clv_text_get(&names));
    script.failed = script.failed || options.failed || values.failed || names.failed;
    clv_text_clear(&options), clv_text_clear(&values), clv_text_clear(&names);
    return publish(&script, folder, "cleave.bash");
}

/* Adds text escaped for single quotes and for the brackets around an option's explanation. */
static void zsh_text(const char *text)
{
    for (; *text; ++text) {
        if (*text == '\'')
            clv_text_add(&options, "'\\''");
        else if (strchr("[]:\\", *text))
            clv_text_add(&options, "\\%c", *text);
        else
            clv_text_add(&options, "%c", *text);
    }
}

static void zsh_option(const cli_option *option)
{
    const char *name = cli_long_name(option), kind = kind_of_value(option);
    const char letter = cli_short_name(option);
    const bool optional = option->kind == CLI_OPTIONAL;
    clv_text_add(&options, " \\\n            ");
    if (letter && name)
        clv_text_add(&options, "'(-%c --%s)'{-%c%s,--%s%s}'", letter, name, letter,
                     kind == 'n' ? "" : "+", name, kind == 'n' ? "" : "=");
    else if (name)
        clv_text_add(&options, "'--%s%s", name, kind == 'n' ? "" : optional ? "=-" : "=");
    else
        clv_text_add(&options, "'-%c%s", letter, kind == 'n' ? "" : "+");
    clv_text_add(&options, "[");
    zsh_text(option->help);
    clv_text_add(&options, "]");
    if (kind != 'n') {
        clv_text_add(&options, optional ? "::" : ":");
        zsh_text(kind == 'c' ? "value" : option->value ? option->value : "value");
        clv_text_add(&options, ":");
        if (kind == 'c') {
            clv_text_add(&options, "(");
            add_choices(&options, option->value);
            clv_text_add(&options, ")");
        }
        if (kind == 'f') clv_text_add(&options, "_files");
    }
    clv_text_add(&options, "'");
}

static void zsh_command(const cli_command *command, const cli_option *const tables[])
{
    clv_text_add(&options, "        %s)\n            _arguments", command->name);
    for (size_t t = 0; tables[t]; ++t)
        for (const cli_option *o = tables[t]; o->name; ++o)
            zsh_option(o);
    clv_text_add(&options, " \\\n            '*:file:_files'\n            ;;\n");
}

static clv_status write_zsh(const char *folder)
{
    clv_text_add(&options, "#compdef cleave\n"
                           "# Completion of the command cleave for zsh, written by it from its "
                           "option tables.\n"
                           "_cleave()\n{\n"
                           "    local curcontext=$curcontext state line\n"
                           "    local -a commands=(\n");
    for (const cli_command *const *c = cli_commands; *c; ++c) {
        clv_text_add(&options, "        '%s:", (*c)->name);
        zsh_text((*c)->summary);
        clv_text_add(&options, "'\n");
    }
    clv_text_add(&options, "    )\n    _arguments -C");
    for (const cli_option *o = cli_global_options; o->name; ++o)
        zsh_option(o);
    for (const cli_option *o = cli_main_options; o->name; ++o)
        zsh_option(o);
    clv_text_add(&options, " \\\n            '1:command:->command' '*::argument:->argument'\n"
                           "    case $state in\n"
                           "    command) _describe command commands ;;\n"
                           "    argument)\n        case $words[1] in\n");
    for (const cli_command *const *c = cli_commands; *c; ++c)
        describe(*c, zsh_command);
    clv_text_add(&options, "        esac\n        ;;\n    esac\n}\n_cleave \"$@\"\n");
    return publish(&options, folder, "_cleave");
}

/* ----------------------------------------------------------------------------------------------- */

static int run(int argc, char **argv)
{
    char pages[4096];
    if (argc != 2)
        return cli_error(&cli_documents, CLI_USAGE,
                         "expected exactly one argument, the folder to write to");
    snprintf(pages, sizeof pages, "%s/man1", argv[1]);
    clv_status status = clv_dir_make(pages);
    if (!status) status = write_pages(argv[1]);
    if (!status) status = write_bash(argv[1]);
    if (!status) status = write_zsh(argv[1]);
    return cli_status(&cli_documents, status);
}

const cli_command cli_documents = {
    .name = "documents",
    .summary = "write man pages and completion (for the build)",
    .run = run,
};
