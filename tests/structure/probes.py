"""Compares the USDT probes of a library, which are notes in the file, with the list ARGUMENTS in this script. A change
of report/probes.h must change this list too.

usage: probes.py LIBRARY READELF
"""

import re
import subprocess
import sys

import tree

ARGUMENTS = {"hwt:add": 4, "hwt:run": 1, "hwt:cancel": 1}
NOTE = re.compile(r"Provider: (\w+)\s+Name: (\w+)\s+Location: .*\s+Arguments:(.*)")


def main(library, readelf):
    notes = subprocess.run([readelf, "-n", library], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    found = {(f"{provider}:{name}", len(re.findall(r"-?\d@", arguments)))
             for provider, name, arguments in NOTE.findall(notes)}
    expected = set(ARGUMENTS.items())
    wrong = [f"no probe {name} with {count} arguments" for name, count in sorted(expected - found)]
    wrong += [f"a probe {name} with {count} arguments" for name, count in sorted(found - expected)]
    return tree.told((f"{library}: {what}" for what in wrong), f"{len(found)} probes")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
