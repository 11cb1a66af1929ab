"""Completions of cdictl for bash, zsh and fish, from the parsers.

What a host has, devices and containers on record, they ask of cdictl itself.
"""

import re

DEVICES = "cdictl devices 2>/dev/null | awk 'NR > 1 { print $1 }'"
# A record has whatever the engine gave for an id, so none that a shell could misunderstand.
CONTAINERS = (
    "cdictl audit list 2>/dev/null |"
    " awk 'NR > 1 && $4 ~ /^[A-Za-z0-9_.+-]+$/ && !known[$4]++ { print $4 }'"
)
HEAD = "Completion of cdictl.  Made by cdi-runc's packaging/documents."

BASH = f"""\
# {HEAD}
# shellcheck shell=bash

_cdictl_values() {{
    case $1 in
        devices) {DEVICES} ;;
        containers) {CONTAINERS} ;;
        *) tr ' ' '\\n' <<<"$1" ;;
    esac
}}

_cdictl() {{
    local line=${{COMP_LINE:0:COMP_POINT}} at='' wanted='' word current IFS=$' \\t\\n'
    local -a words
    read -ra words <<<"$line"
    current=${{line##*[[:blank:]]}}
    [[ -z $current ]] || unset 'words[-1]'
    for word in "${{words[@]:1}}"; do
        if [[ -n $wanted ]]; then
            wanted=''
            continue
        fi
        case "$at $word" in
@WALK@
        esac
    done
    case "$current" in
        --*=*)
            case "$at ${{current%%=*}}" in
@WALK_OPTIONS@
            esac
            current=${{current#*=}}
            [[ -n $wanted ]] || return
            ;;
    esac
    COMPREPLY=()
    if [[ -z $wanted ]]; then
        case "$at" in
@WORDS@
        esac
        case "$current" in
            -*) wanted=$options ;;
            *) wanted=$arguments ;;
        esac
    fi
    case "$wanted" in
        - | '') ;;
        files | directories)
            compopt -o filenames 2>/dev/null
            [[ $wanted == files ]] && wanted=file || wanted=directory
            mapfile -t COMPREPLY < <(compgen -A "$wanted" -- "$current")
            ;;
        *)
            while read -r word; do # compgen -W would expand them
                [[ $word != "$current"* ]] || COMPREPLY+=("$word")
            done < <(_cdictl_values "$wanted")
            ;;
    esac
    # readline takes what is before the last of these for words of their own
    [[ $COMP_WORDBREAKS == *=* ]] || return
    [[ $current != *=* ]] || COMPREPLY=("${{COMPREPLY[@]#"${{current%=*}}="}}")
}}
complete -F _cdictl cdictl
"""


def bash(known):
    """Return the script for bash."""
    walk, words = [], []
    for command in known:
        at = " ".join(command.words)
        walk += [
            f"'{at} {name}') at='{' '.join((*command.words, name))}' ;;" for name in command.below
        ]
        options = " ".join(name for one in command.options for name in one.names)
        arguments = " ".join((*command.below, *(_wanted(one) for one in command.arguments))).strip()
        words.append(f"'{at}') options='{options}' arguments='{arguments}' ;;")
    options = [
        f"'{' '.join(command.words)} {name}') wanted='{_wanted(one) or '-'}' ;;"
        for command in known
        for one in command.options
        if one.metavar
        for name in one.names
    ]
    return (
        BASH.replace("@WALK@", _indented([*walk, *options], 12))
        .replace("@WALK_OPTIONS@", _indented(options, 16))
        .replace("@WORDS@", _indented(words, 12))
        .replace("local -a words", "local -a words\n    local options='' arguments=''")
    )


def _wanted(one):
    return " ".join(one.choices) or one.values


def _indented(lines, columns):
    return "\n".join(" " * columns + line for line in lines)


ZSH = f"""\
#compdef cdictl
# {HEAD}

__cdictl_devices() {{
    local -a found
    found=(${{(f)"$({DEVICES})"}})
    compadd -a found
}}

__cdictl_containers() {{
    local -a found
    found=(${{(f)"$({CONTAINERS})"}})
    compadd -a found
}}

"""
ZSH_VALUES = {
    "devices": "__cdictl_devices",
    "containers": "__cdictl_containers",
    "directories": "_files -/",
    "files": "_files",
}


def zsh(known):
    """Return the script for zsh."""
    summaries = {command.words: command.summary for command in known}
    text = ZSH
    for command in known:
        specs = [spec for one in command.options for spec in _zsh_option(one)]
        specs += [
            f"'{'*' if one.is_repeated else ''}:{_zsh(one.metavar)}:{_zsh_values(one)}'"
            for one in command.arguments
        ]
        body = ["local context state state_descr line", "typeset -A opt_args"]
        if command.below:
            specs += ["'1:command:->command'", "'*::argument:->further'"]
            body += [_arguments(["-C", *specs]), "case $state in", "    command)"]
            body += ["        local -a commands=("]
            for name in command.below:
                told = summaries.get((*command.words, name), "")
                body.append(f"            {_quoted(f'{name}:{told}')}")
            body += ["        )", "        _describe command commands ;;"]
            names = "|".join(command.below)
            function = _function(command.words)
            body += ["    further)", f"        case $words[1] in ({names})"]
            body += [f"            {function}_$words[1] ;; esac ;;", "esac"]
        else:
            body.append(_arguments(specs))
        text += f"{_function(command.words)}() {{\n{_indented(body, 4)}\n}}\n\n"
    return f'{text}_cdictl "$@"\n'


def _function(words):
    return "_".join(("_cdictl", *words))


def _arguments(specs):
    return " \\\n        ".join(["_arguments -S", *specs])


def _zsh_option(one):
    """Yield what _arguments takes for an option, for each of its names."""
    value = f":{_zsh(one.metavar)}:{_zsh_values(one)}" if one.metavar else ""
    others = "" if one.is_repeated else f"({' '.join(one.names)})"
    for name in one.names:
        equals = "=" if value and name.startswith("--") else ""
        repeated = "*" if one.is_repeated else ""
        yield f"'{others}{repeated}{name}{equals}[{_zsh(one.help)}]{value}'"


def _zsh(words):
    return re.sub(r"([\[\]:\\])", r"\\\1", words).replace("'", "'\\''")


def _zsh_values(one):
    return f"({' '.join(one.choices)})" if one.choices else ZSH_VALUES.get(one.values, " ")


def _quoted(words):
    return "'" + words.replace("'", "'\\''") + "'"


FISH = f"""\
# {HEAD}

function __cdictl_devices
    {DEVICES}
end

function __cdictl_containers
    {CONTAINERS}
end

# __cdictl_at any|only WORD...: whether the line begins with these commands, or only has them.
function __cdictl_at
    set -l words (commandline -opc)
    set words (string match -v -- '-*' $words[2..-1])
    set -l wanted $argv[2..-1]
    test (count $words) -ge (count $wanted)
    or return 1
    test $argv[1] = any -o (count $words) -eq (count $wanted)
    or return 1
    set -l depth (count $wanted)
    test $depth -eq 0
    or test "$words[1..$depth]" = "$wanted"
end

complete -c cdictl -f
"""
FISH_VALUES = {
    "devices": "-x -a '(__cdictl_devices)'",
    "containers": "-x -a '(__cdictl_containers)'",
    "directories": "-x -a '(__fish_complete_directories)'",
    "files": "-r -F",
}


def fish(known):
    """Return the script for fish."""
    summaries = {command.words: command.summary for command in known}
    lines = []
    for command in known:
        at = " ".join(command.words)
        anywhere = f"complete -c cdictl -n '__cdictl_at any {at}'"
        only = f"complete -c cdictl -n '__cdictl_at only {at}'"
        for name in command.below:
            told = _fish(summaries.get((*command.words, name), ""))
            lines.append(f"{only} -a {name} -d {told}")
        for one in command.options:
            where = anywhere if command.words and not command.below else only
            names = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in one.names
            )
            value = _fish_values(one) if one.metavar else ""
            lines.append(f"{where} {names} {value} -d {_fish(one.help)}".replace("  ", " "))
        lines += [f"{anywhere} {_fish_values(one)}" for one in command.arguments if _wanted(one)]
    return FISH + "\n".join(lines) + "\n"


def _fish_values(one):
    return f"-x -a '{' '.join(one.choices)}'" if one.choices else FISH_VALUES.get(one.values, "-x")


def _fish(words):
    return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
