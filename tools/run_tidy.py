#!/usr/bin/env python3
"""Runs clang-tidy with the checks of .clang-tidy on a build's C++ files, within a time limit.

usage: run_tidy.py --tool CLANG-TIDY --build FOLDER [--all] [--seconds N]
Files that differ from the main branch come first, then the rest by their last change, newest first.
Files that the limit leaves out are counted in the closing line; --all lifts the limit.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--tool", required=True)
parser.add_argument("--build", required=True)
parser.add_argument("--all", action="store_true")
parser.add_argument("--seconds", type=int, default=150)
options = parser.parse_args()


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True).stdout.split("\n")


def by_change():
    """Paths, those changed last first."""
    order = [line[3:] for line in git("status", "--porcelain")]
    order += git("diff", "--name-only", "origin/main...HEAD")
    order += git("log", "--format=", "--name-only", "-n", "400")
    return {path: rank for rank, path in reversed(list(enumerate(order)))}


with open(os.path.join(options.build, "compile_commands.json")) as file:
    built = {os.path.relpath(entry["file"]) for entry in json.load(file)}
ranks = by_change()
files = sorted((f for f in built if not f.startswith(("..", "build"))),
               key=lambda f: (ranks.get(f, len(ranks)), f))
end = time.monotonic() + (1e9 if options.all else options.seconds)


def tidy(path):
    if time.monotonic() > end:
        return None
    # The build's flags are GCC's; clang does not know each of them.
    command = [options.tool, "--quiet", "--extra-arg=-Wno-unknown-warning-option",
               "--extra-arg=-Wno-deprecated-declarations", "-p", options.build, path]
    return subprocess.run(command, capture_output=True, text=True)


done, wrong = 0, 0
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    for path, result in zip(files, pool.map(tidy, files)):
        if result is None:
            continue
        done += 1
        if result.returncode != 0:
            wrong += 1
            print(result.stdout.strip() or result.stderr.strip())
print(f"clang-tidy: {done} of {len(files)} files, {wrong} with findings")
sys.exit(wrong > 0)
