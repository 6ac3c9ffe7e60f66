#!/bin/sh
# test_headers.sh: each public header compiles alone, as strict C11 and as C++, without a warning.
set -u
for header in include/tokmap/*.h; do
    name=$(basename "$header")
    for standard in c11 c17 gnu11; do
        if printf '#include "tokmap/%s"\nint main(void) { return 0; }\n' "$name" |
            $CC -std=$standard -pedantic -Wall -Wextra -Wstrict-prototypes -Werror -Iinclude -fsyntax-only -x c -; then
            echo "ok - $name as $standard"
        else
            echo "not ok - $name as $standard"
        fi
    done
    for standard in c++11 c++17; do
        if ! printf '#include <new>\n' | $CXX -std=$standard -fsyntax-only -x c++ - 2>/dev/null; then
            echo "ok - $name as $standard # SKIP no C++ compiler ($CXX)"
        elif printf '#include "tokmap/%s"\nint main() { return 0; }\n' "$name" |
            $CXX -std=$standard -pedantic -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ -; then
            echo "ok - $name as $standard"
        else
            echo "not ok - $name as $standard"
        fi
    done
    if printf '#include "tokmap/%s"\n#include "tokmap/%s"\n' "$name" "$name" |
        $CC -std=c11 -Werror -Iinclude -fsyntax-only -x c -; then
        echo "ok - $name twice"
    else
        echo "not ok - $name twice"
    fi
done
