# Makes each package of packaging/ from the committed tree, and uses it once. Checks that builds are reproducible, and
# their SBOM.

# PyPI has no wheel of patch-ng, which Conan needs.
conan_package() {
  from_pypi venv-conan conan==2.34.0 --no-binary patch-ng ||
    { say "could not install conan, see build/last.log"; return 1; }
  PATH=$build/venv-conan/bin:$PATH
  make_package conan
}
debian_package() {
  install_packages "$(for package in debhelper lintian; do have_package $package || echo $package; done)" &&
    make_package debian
}
bazel_build() {
  install_packages "$(for package in bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-skylib bazel-platforms; do
    have_package $package || echo $package
  done)" && make_package bazel
}
c_abi() {
  install_packages "$(have_package abigail-tools || echo abigail-tools)" && make_package abi
}
reproducible() { make_package reproducible; }
sbom() {
  from_pypi venv-sbom spdx-tools==0.8.5 || { say "could not install spdx-tools, see build/last.log"; return 1; }
  PATH=$build/venv-sbom/bin:$PATH
  make_package sbom sbom.py
}
vcpkg_port() { make_package vcpkg; }
wrapdb_wrap() { make_package wrapdb; }

# make_package KIND [SCRIPT]: works in a folder of its own, because some tools write beside their input.
make_package() {
  work=$build/packages/$1
  rm -rf "$work"
  mkdir -p "$work/source" && git_here archive HEAD | tar -x -C "$work/source" || return 1
  "$work/source/packaging/check/${2:-$1.sh}" "$work/source" "$work"
}
