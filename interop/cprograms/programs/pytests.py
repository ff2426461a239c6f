"""Runs one module of pyverbs' own tests and prints a line a test: outcome, name, reason, between tabs.

pytests.py FOLDER MODULE: FOLDER holds the package `tests`. A line `begin` comes before each test, so that who reads
knows which one was at work when a process died.
"""
import random
import re
import sys
import unittest

# Some tests ask for attributes by chance, among them some that the device has not: before each test chance begins here,
# so that what passed once passes again.
SEED = 0

folder, module = sys.argv[1:3]
sys.path[:0] = [folder, folder + "/tests"]
sys.argv[1:] = ["--dev", "softrnic0"]


def line(*words):
    print(*(re.sub(r"\s+", " ", word).strip() for word in words), sep="\t", flush=True)


def name(test):
    return test.id().removeprefix("tests.")


class Lines(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        random.seed(SEED)
        line("begin", name(test))

    def addSuccess(self, test):
        line("ok", name(test))

    def addSkip(self, test, reason):
        line("skip", name(test), reason)

    def addFailure(self, test, err):
        line("fail", name(test), str(err[1]) or err[0].__name__)

    addError = addFailure

    def addExpectedFailure(self, test, err):
        line("ok", name(test))


import args_parser  # noqa: E402  of FOLDER/tests

args_parser.parser.parse_args()
unittest.defaultTestLoader.loadTestsFromName("tests." + module).run(Lines())
