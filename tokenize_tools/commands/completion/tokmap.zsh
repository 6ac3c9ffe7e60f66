#compdef tokmap tokmap-bench
# SPDX-License-Identifier: MIT
# Completion of tokmap and tokmap-bench in zsh. The commands themselves print what can come next; src/cli/complete.h
# describes their answer.
#
# Installed in a folder of $fpath, compinit loads it. Without that: source <(tokmap completion zsh)

_tokmap()
{
    local program=${(Q)words[1]} line word help
    local -a lines names plain folders described
    [[ $program == '~/'* ]] && program=$HOME/${program#'~/'}
    lines=("${(@f)$($program --complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    # What precedes a value in the same word stays as it is.
    if [[ $PREFIX == --*=* ]]; then
        compset -P '*='
    fi
    for line in "${lines[@]}"; do
        case $line in
        '') ;;
        :files) _files; return ;;
        :folders) _files -/; return ;;
        *)
            word=${line%%$'\t'*}
            [[ $line == *$'\t'* ]] && help=${line#*$'\t'} || help=
            [[ $word == --*=* ]] && word=${word#*=}
            if [[ $word == */ ]]; then
                folders+=("$word")
            elif [[ -n $help ]]; then
                described+=("${word//:/\\:}:$help")
            else
                plain+=("$word")
            fi
            ;;
        esac
    done
    if ((${#described})); then
        _describe -t values tokmap described
        return
    fi
    # Names of datasets: the folder that they have in common is not repeated in the list.
    if ((${#plain} + ${#folders})) && [[ $PREFIX == */* ]]; then
        compset -P '*/'
        plain=("${(@)plain##*/}")
        names=("${(@)folders%/}")
        folders=("${(@)names##*/}")
    else
        folders=("${(@)folders%/}")
    fi
    ((${#folders})) && compadd -q -S / -- "${folders[@]}"
    ((${#plain})) && compadd -- "${plain[@]}"
}

if [[ ${funcstack[1]-} == _tokmap ]]; then
    _tokmap "$@"
elif ((${+functions[compdef]})); then
    compdef _tokmap tokmap tokmap-bench
fi
