#!/bin/sh
# Checks that the first C++ block of README.md is docs/examples/quick_start/main.cpp.
# usage: readme_examples.sh SOURCE_ROOT
set -u

readme=$1/README.md
example=$1/docs/examples/quick_start/main.cpp
awk '/^```/ { if (inside) exit; inside = ($0 == "```cpp"); next } inside' "$readme" | diff - "$example" || {
  echo "FAILED: the example in README.md differs from docs/examples/quick_start/main.cpp"
  exit 1
}
