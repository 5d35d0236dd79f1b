# Makes each package of packaging/ from the committed tree, and uses it once. Checks that builds are reproducible, and
# their SBOM.

check_bazel_build() {
  make_package bazel bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-skylib bazel-platforms
}
check_c_abi() { make_package abi abigail-tools; }
# PyPI has no wheel of patch-ng, which Conan needs.
check_conan_package() { from_pypi venv-conan conan==2.34.0 --no-binary patch-ng && make_package conan; }
check_debian_package() { make_package debian debhelper lintian; }
check_reproducible() { make_package reproducible; }
check_sbom() { from_pypi venv-sbom spdx-tools==0.8.5 && make_package sbom; }
check_vcpkg_port() { make_package vcpkg; }
check_wrapdb_wrap() { make_package wrapdb; }

# make_package KIND [PACKAGE...]: installs the packages. Works in a folder of its own, because some tools write beside
# their input.
make_package() {
  work=$build/packages/$1 script=$(cd "$root" && ls packaging/check/$1.[ps]*)
  shift
  need "$@" && rm -rf "$work" && mkdir -p "$work/source" || return 1
  git_here archive HEAD | tar -x -C "$work/source" || return 1
  "$work/source/$script" "$work/source" "$work"
}
