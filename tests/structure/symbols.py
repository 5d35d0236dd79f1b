"""What a shared library exports, compared with a list, so that its ABI does not change unseen.

usage: symbols.py LIST LIBRARY NM [--renew]

Only what is the same for every compiler and its options: the functions and data of namespace hwt, with the vtables and
type information that programs refer to. Not inline functions and templates, of which each program has copies.
"""

import re
import subprocess
import sys

DEFINED = re.compile(r"[0-9a-f]+ (\w) (.*)")
STRONG = "TDRB"
OF_A_CLASS = re.compile(r"(vtable|typeinfo) for hwt::")  # which some compilers make weak

# As in the headers, so that lines can be read.
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
             if match and (match[1] in STRONG and match[2].startswith("hwt::") or OF_A_CLASS.match(match[2]))}
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
        print("programs that need what has gone do not run with this library: a change of the minor version")
    if now != listed:
        print("if that is meant: python3", *sys.argv, "--renew")
    return now != listed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], "--renew" in sys.argv[4:]))
