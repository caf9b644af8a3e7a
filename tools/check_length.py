#!/usr/bin/env python3
"""Fails on a source file over 1,000 lines; names those over 400. Tables (.def, .inc) and test data are exempt."""
import subprocess
import sys

SOFT, STOP = 400, 1000
SOURCE = (".h", ".cpp", ".c", ".py", ".cmake", "CMakeLists.txt")

names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                       capture_output=True, text=True, check=True).stdout.split("\n")
wrong = 0
for name in names:
    if not name.endswith(SOURCE):
        continue
    try:
        with open(name, errors="replace") as file:
            lines = sum(1 for _ in file)
    except FileNotFoundError:
        continue
    if lines > STOP:
        print(f"{name}: {lines} lines, over the limit of {STOP}: split it")
        wrong += 1
    elif lines > SOFT:
        print(f"{name}: {lines} lines, over {SOFT}: consider a split")
sys.exit(wrong > 0)
