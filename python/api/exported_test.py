#!/usr/bin/env python3
"""Holds the symbols that libattest.so exports against its header: nothing else leaves the library.

usage: exported_test.py NM LIBRARY
"""
import pathlib
import re
import subprocess
import sys

HEADER = pathlib.Path(__file__).with_name("attest_api.h")


def main(nm, library):
    listed = subprocess.run([nm, "-D", "--defined-only", library], check=True, capture_output=True,
                            text=True).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    declared = set(re.findall(r"^ATTEST_EXPORT .*?(attest_\w+)\(", HEADER.read_text(), re.M))
    if exported != declared or not declared:
        sys.exit(f"exported and not declared: {sorted(exported - declared)}; "
                 f"declared and not exported: {sorted(declared - exported)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
