# Uses the project in a Debian or Ubuntu that has nothing but its base packages, in build/bare.

alone_bare() {
  case "$# ${1:-}" in "0 " | "1 demo") ;; *) wrong "bare: \"$*\" (expected: nothing, or demo)" ;; esac
  have apt-get || fail "check bare needs Debian or Ubuntu"
  [ "$(id -u)" -eq 0 ] || fail "check bare needs root, because it makes another system and enters it"
  unshare --mount true 2>/dev/null || fail "check bare needs the right to mount: unshare --mount"
  take_turn
  need mmdebstrap=mmdebstrap git=git || exit
  folder=$build/bare
  system=$folder/system
  trap 'rm -rf --one-file-system "$system"' EXIT
  trap 'exit 143' TERM
  make_system || fail "could not make the system"
  try_bare "$@" && echo "bare: passed"
}

try_bare() {
  documented=hashed_wheel_timer/tests/consumer/documented.sh
  say "== demo as root" && clone_into root && timed_demo root || return 1
  [ $# -eq 0 ] || return 0
  say "== demo as an ordinary user" && inside root useradd --create-home user && clone_into home/user &&
    inside root chown -R user: /home/user && timed_demo user &&
    say "== two files" && inside user "$documented" files &&
    # ./run test installs CMake. A user of Meson may have none.
    say "== a Meson subproject without CMake" && ! inside root which cmake && inside user "$documented" meson &&
    say "== tests" &&
    inside root hashed_wheel_timer/run test consumer calendar_test keyed_timer_test doc_blocks references &&
    say "== FetchContent, and the installed library" &&
    inside root apt-get install -qq --no-install-recommends make >/dev/null && inside user "$documented" cmake installed
}

# timed_demo USER: runs the demo, and tells how long its first line took.
timed_demo() {
  began=$(date +%s)
  { inside "$1" hashed_wheel_timer/run demo; echo $? >"$folder/status"; } | {
    IFS= read -r line && say "bare: the demo's first line came after $(($(date +%s) - began)) s"
    printf '%s\n' "$line" && cat
  }
  [ "$(cat "$folder/status")" -eq 0 ]
}

# Makes the system anew from an archive of its base packages. Copies the machine's way to the network: the keys and
# passwords of apt, certificates, and the resolver.
make_system() {
  rm -rf --one-file-system "$system"
  quietly apt-get update || say "apt-get update failed; going on with what apt knows"
  # The files with apt's sources of this distribution. Those of others are not used.
  sources=$(apt-get indextargets --format '$(SOURCESENTRY)' 'Created-By: Packages' \
    "Origin: $(. /etc/os-release && echo "$ID" | sed 's/./\U&/')" | sed 's/:[0-9]*$//' | sort -u)
  [ -n "$sources" ] || { say "apt has no source of this system's packages"; return 1; }
  settings=$(apt-config dump | grep '^Acquire::')
  make_once bare "$settings $(cat $sources)" archive_base && mkdir "$system" &&
    tar -x -f "$folder/base.tar" -C "$system" --numeric-owner || return 1
  (cd / && find etc/apt/auth.conf* etc/apt/keyrings etc/apt/trusted.gpg.d etc/ssl/certs \
    usr/local/share/ca-certificates -type f 2>/dev/null | tar -c -T -) | tar -x -C "$system" &&
    cp -L /etc/resolv.conf /etc/hosts "$system/etc/"
}

# Makes the archive, which has apt's sources and settings, but no passwords.
archive_base() {
  printf '%s\n' "$settings" >"$folder/apt.conf"
  quietly mmdebstrap --mode=root --variant=minbase --aptopt="$folder/apt.conf" \
    --setup-hook='cp -R /etc/apt/auth.conf* "$1/etc/apt/" || true' \
    --customize-hook='rm -rf "$1"/etc/apt/auth.conf*' \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$folder/base.tar" $sources
}

# clone_into HOME: clones the commit into this folder of the system, even if another user owns the files.
clone_into() {
  quietly git clone --depth 1 --upload-pack "git -c safe.directory='*' upload-pack" "file://$root" \
    "$system/$1/hashed_wheel_timer"
}

# inside USER COMMAND...: runs the command in the system, in the user's home. The mounts are in a namespace of their own
# and vanish with it.
inside() {
  user=$1 home=/home/$1
  shift
  [ "$user" != root ] || home=/root
  unshare --mount sh -c 'for it in dev proc; do mount --rbind "/$it" "$0/$it" || exit; done && exec "$@"' "$system" \
    chroot --userspec="$user:$user" "$system" env -i --chdir="$home" $(env | grep -i '^\(http\|https\|no\)_proxy=') \
    HOME="$home" USER="$user" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" </dev/null 9<&-
}
