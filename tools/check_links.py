#!/usr/bin/env python3
"""Fails on a relative link of a Markdown page that leads nowhere (file or heading)."""
import os
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~)")


def prose(path):
    """Lines of a page outside code fences, with their numbers."""
    inside = False
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if FENCE.match(line):
                inside = not inside
            elif not inside:
                yield number, re.sub(r"`[^`]*`", lambda m: " " * len(m.group()), line)


def anchors(path):
    found = set()
    inside = False
    with open(path) as file:
        for line in file:
            inside ^= bool(FENCE.match(line))
            if not inside and line.startswith("#"):
                title = re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower())
                found.add(title.replace(" ", "-"))
            found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


pages = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"],
                       capture_output=True, text=True, check=True).stdout.split()
wrong = 0
for page in filter(os.path.isfile, pages):
    for number, line in prose(page):
        for link in LINK.findall(line):
            if "://" in link or link.startswith("mailto:"):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(target):
                print(f"{page}:{number}: {link} leads nowhere")
                wrong += 1
            elif anchor and target.endswith(".md") and anchor not in anchors(target):
                print(f"{page}:{number}: {target} has no heading #{anchor}")
                wrong += 1
sys.exit(wrong > 0)
