# SPDX-License-Identifier: MIT
"""Runs the tests of this folder with unittest and prints each result as TAP, for tests/support/run_tests.sh."""
import os
import sys
import time
import traceback
import unittest


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.started = {}

    def startTest(self, test):
        super().startTest(test)
        self.started[test] = time.monotonic()

    def report(self, ok, test, note=""):
        seconds = time.monotonic() - self.started.get(test, time.monotonic())
        name = test.id() if hasattr(test, "id") else str(test)
        print(f"{'ok' if ok else 'not ok'} - {name}{note}" + (f" ({seconds:.1f} s)" if seconds > 2 and not note else ""),
              flush=True)

    def addSuccess(self, test):
        self.report(True, test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.report(True, test, f" # SKIP {reason}")

    def failed(self, test, error):
        print("".join(traceback.format_exception(*error)))
        self.report(False, test)

    def addError(self, test, error):
        super().addError(test, error)
        self.failed(test, error)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.failed(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            super().addSubTest(test, subtest, error)
            print("".join(traceback.format_exception(*error)))
            print(f"not ok - {subtest.id()}", flush=True)


def main():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, folder)
    names = sys.argv[1:] or sorted(name[:-3] for name in os.listdir(folder)
                                   if name.startswith("test_") and name.endswith(".py"))
    result = Result()
    for name in names:
        unittest.defaultTestLoader.loadTestsFromName(name).run(result)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
