# SPDX-License-Identifier: MIT
"""The scripts of `tokmap-bench compare`, which starts them, reads their lines (report.py), and prints the table.

    python3 bench/peers/compare TABLE --data NAME --bin FILE --width 2 --count N [OPTION]...

TABLE is a file of the folder tables. Each has a function measure(report, tokens, options), and perhaps
add_arguments(parser) for options of its own, and PACKAGES: then all of this program runs in the Python that has them.
The options are those of tokmap-bench, in the same words, and those of main() below.
"""
import argparse
import importlib
import os
import shutil
import signal
import sys
import tempfile
import traceback


def arguments(known):
    parser = argparse.ArgumentParser(prog="compare", description="Measures other systems for tokmap-bench compare.")
    parser.add_argument("table", choices=known, metavar="TABLE", help=", ".join(known))
    parser.add_argument("--data", help="the tokmap dataset")
    parser.add_argument("--bin", help="the same tokens in one flat file")
    parser.add_argument("--files", help="a text with the paths of the dataset's own files of tokens, a line each")
    parser.add_argument("--width", type=int, default=2, help="bytes per token in that file")
    parser.add_argument("--count", type=int, help="tokens in that file (default: all)")
    parser.add_argument("--eod", type=int, help="the token at the end of each document")
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=8, help="rows of a batch")
    parser.add_argument("--repeats", type=int, default=0, help="interleaved repeats (0: the table's default)")
    parser.add_argument("--seconds", type=float, default=0, help="length of a repeat (0: the table's default)")
    parser.add_argument("--peers", default="", help="the systems to measure, with commas between them (default: all)")
    parser.add_argument("--venv", help="the Python environment of the systems")
    parser.add_argument("--offline", action="store_true", help="install nothing; use what is there")
    parser.add_argument("--work", help="folder for what is made; it is removed at the end (default: a new one)")
    parser.add_argument("--tokmap", default="tokmap", help="path of the command tokmap")
    parser.add_argument("--package", default="", help="folder that contains the Python package tokmap")
    if sys.argv[1:2] and sys.argv[1] in known:
        # A table may have options of its own.
        getattr(importlib.import_module(f"tables.{sys.argv[1]}"), "add_arguments", lambda _: None)(parser)
    return parser.parse_args()


def tokens_of(options, failed):
    from tokens import Tokens
    if not options.bin:
        return None
    size = os.path.getsize(options.bin)
    count = options.count if options.count is not None else size // options.width
    if count * options.width > size:
        raise SystemExit(failed(f"{options.bin} has {size} bytes, but {count} tokens need {count * options.width}"))
    tokens = Tokens(options.bin, options.width, count, options.seq_len, options.rows, options.work, options.data,
                    options.eod)
    if tokens.windows() < options.rows:
        raise SystemExit(failed(f"the data has {tokens.windows()} windows of {options.seq_len} tokens, which is less "
                                f"than one batch of {options.rows} rows; lower --seq-len or --rows"))
    return tokens


def failed(text):
    """Prints a message and returns the exit status."""
    print(f"compare: {text}", file=sys.stderr)
    return 1


def lines_of(path):
    """The lines of a text file."""
    if not path:
        return []
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read().splitlines()


def stopped(number, frame):
    """Ends the program, which removes what it made; a second signal does not interrupt that."""
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    raise SystemExit(128 + number)


ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
AGAIN = "TOKMAP_COMPARE_AGAIN"  # in the environment: this is the Python that has the table's packages


def enter_python(packages, options, report, lines):
    """Runs this program again in the Python that has the packages, which is seldom the one that was started."""
    import driver
    import setup
    if AGAIN not in os.environ:
        python = setup.Setup(options, report).python_with(list(packages), packages[-1])
        os.dup2(lines, 1)
        os.execve(python, [python, "-B", *sys.argv], {**driver.environment(options), AGAIN: "1"})


def main():
    # Lines have a descriptor of their own: what else writes to standard output ends up in standard error.
    lines = os.dup(1)
    os.dup2(2, 1)
    import driver
    import setup
    from report import Absent, Report
    options = arguments(setup.names_in("tables"))
    table, report = importlib.import_module(f"tables.{options.table}"), Report(lines)
    packages = getattr(table, "PACKAGES", ())
    for number in ENDING:
        signal.signal(number, stopped)
    made = []
    try:
        if packages:
            enter_python(packages, options, report, lines)
        made = [] if options.work else [tempfile.mkdtemp(prefix="tokmap-compare-")]
        options.work = os.path.abspath(options.work or made[0])
        # Systems have temporary files, and some of them empty folders there: litdata removes all of data/ and chunks/.
        made.append(tempfile.mkdtemp(prefix="tokmap-"))  # its path is short, because it is a part of names of sockets
        os.environ["TMPDIR"], tempfile.tempdir = made[-1], None
        options.data_files = lines_of(options.files)
        table.measure(report, tokens_of(options, failed), options)
        return 0
    except Absent as problem:
        if not packages:
            return failed(problem)
        report.absent(options.table, packages[-1], problem)
        report.answer("Nothing could be measured; the row says why.")
        return 0
    except driver.Failed as problem:
        return failed(problem)
    except BrokenPipeError:
        return failed("nobody reads the results")
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        driver.stop_all()
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
