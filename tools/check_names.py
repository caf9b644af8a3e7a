#!/usr/bin/env python3
"""Fails on a file or folder whose name says nothing, and on notes to self or merge marks in sources."""
import os
import re
import subprocess
import sys

EMPTY_NAME = re.compile(r"^(utils?|commons?|misc|helpers?)(\.|$)")
MERGE = re.compile(r"^(<{7}|>{7}) ")
NOTE = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b")
SOURCE = (".h", ".cpp", ".c", ".def", ".inc", ".py", ".md", ".txt", ".cmake")

names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                       capture_output=True, text=True, check=True).stdout.split("\n")
wrong = 0
for name in filter(os.path.isfile, names):
    if any(EMPTY_NAME.match(part) for part in name.split("/")):
        print(f"{name}: a helper belongs to the folder of the thing it helps, under a name that says what it does")
        wrong += 1
    if not name.endswith(SOURCE):
        continue
    with open(name, errors="replace") as file:
        for number, line in enumerate(file, 1):
            if NOTE.search(line):
                print(f"{name}:{number}: do it, or write it in docs or an issue: {line.strip()}")
                wrong += 1
            if MERGE.match(line):
                print(f"{name}:{number}: a merge that was not finished")
                wrong += 1
sys.exit(wrong > 0)
