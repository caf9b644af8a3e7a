#!/usr/bin/env python3
"""Lines of code a folder, and the stripped size of the run-time library and the program if built."""
import glob
import os
import shutil
import subprocess
import tempfile

SOURCE = (".h", ".cpp", ".c", ".def", ".inc", ".fbs", ".py")


def code_lines(path):
    with open(path, errors="replace") as file:
        return sum(1 for line in file if line.strip() and not line.strip().startswith(("//", "#  ", "# ")))


def folder(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in ("tenon", "tests") and len(parts) > 2 else parts[0]


def stripped(path):
    with tempfile.TemporaryDirectory() as work:
        copy = shutil.copy(path, work)
        subprocess.run(["strip", "--strip-unneeded", copy], check=True)
        return os.path.getsize(copy)


names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                       capture_output=True, text=True, check=True).stdout.split()
lines, files = {}, {}
for name in names:
    if name.endswith(SOURCE) and os.path.isfile(name):
        key = folder(name)
        lines[key] = lines.get(key, 0) + code_lines(name)
        files[key] = files.get(key, 0) + 1
for key in sorted(lines):
    print(f"{key:<24}{files[key]:>5} files{lines[key]:>8} lines")
print(f"{'all':<24}{sum(files.values()):>5} files{sum(lines.values()):>8} lines")
for path in sorted(glob.glob("build/r*/**/libtenon*.so", recursive=True) + glob.glob("build/release/tenon")):
    if os.path.isfile(path) and not os.path.islink(path):
        print(f"{path}: {stripped(path) / 1e6:.2f} MB stripped")
