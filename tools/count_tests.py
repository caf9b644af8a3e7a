#!/usr/bin/env python3
"""Prints "PASSED FAILED SKIPPED" for one ctest run.

usage: count_tests.py JUNIT.xml REPORT-FOLDER
A ctest test whose GoogleTest report lies in the report folder counts case by case, so that a case
skipped inside a green executable is seen; any other counts as one.
"""
import os
import sys
import xml.etree.ElementTree as xml

junit, reports = sys.argv[1], sys.argv[2]
passed = failed = skipped = 0
for test in xml.parse(junit).getroot().iter("testcase"):
    status = test.get("status")
    report = os.path.join(reports, test.get("name") + ".xml")
    cases = []
    try:
        cases = [c for c in xml.parse(report).getroot().iter("testcase") if c.get("status") == "run"]
    except (OSError, xml.ParseError):
        pass  # no report: not a GoogleTest executable, or one that died before writing it
    if status == "fail" and not any(c.find("failure") is not None for c in cases):
        failed += 1  # crashed, timed out or failed outside a case
    elif not cases:
        passed += status == "run"
        skipped += status not in ("run", "fail")
    for case in cases:
        if case.find("failure") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("result") == "skipped":
            skipped += 1
        else:
            passed += 1
print(passed, failed, skipped)
