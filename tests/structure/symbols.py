"""Compares the exported symbols of a shared library with a checked-in list, to notice changes of the ABI.

usage: symbols.py LIST LIBRARY NM [--renew]

The list has the functions and data of namespace hwt, the functions of the C interface, and the vtables and type
information to which programs refer. It does not have inline functions and templates: they depend on the compiler and
its options, and programs have copies.
"""

import re
import subprocess
import sys

DEFINED = re.compile(r"[0-9a-f]+ (\w) (.*)")
STRONG = "TDRB"
OF_A_CLASS = re.compile(r"(vtable|typeinfo) for hwt::")  # some compilers make these symbols weak

# Replacements that give types the names of the headers, so that the list is readable.
SHORT = [
    (r"std::chrono::duration<long, std::ratio<1l, 1000000000l> >", "nanoseconds"),
    (r"std::chrono::duration<long, std::ratio<1l, 1l> >", "seconds"),
    (r"std::chrono::time_point<std::chrono::_V2::(\w+), nanoseconds >", r"\1::time_point"),
    (r"std::chrono::time_point<std::chrono::_V2::system_clock, seconds >", "sys_seconds"),
    (r"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
    (r"std::vector<(\w+), std::allocator<\1 > >", r"std::vector<\1>"),
    (r"std::__exception_ptr::exception_ptr", "std::exception_ptr"),
    (r"\[abi:cxx11\]", ""),
    (r" >", ">"),
    (r"([(<]|, )hwt::", r"\1"),
]


def exported(library, nm):
    output = subprocess.run([nm, "-D", "--defined-only", "-C", library], stdout=subprocess.PIPE, encoding="utf-8",
                            check=True).stdout
    names = {match[2] for match in map(DEFINED.match, output.splitlines())
             if match and (match[1] in STRONG and match[2].startswith(("hwt::", "hwt_")) or OF_A_CLASS.match(match[2]))}
    return sorted(map(shortened, names))


def shortened(name):
    for long, short in SHORT:
        name = re.sub(long, short, name)
    return name


def main(path, library, nm, renew):
    now = exported(library, nm)
    if renew:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(name + "\n" for name in now)
        return False
    with open(path, encoding="utf-8") as file:
        listed = file.read().splitlines()
    gone = [name for name in listed if name not in now]
    for name in gone:
        print(f"no longer exported: {name}")
    for name in now:
        if name not in listed:
            print(f"new: {name}")
    if gone:
        print("programs that use a removed symbol do not run with this library: increase the minor version")
    if now != listed:
        print("if this change is intended: python3", *sys.argv, "--renew")
    return now != listed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], "--renew" in sys.argv[4:]))
