#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commit that a build names: HEAD in a checkout, also after HEAD moved; what `git archive` wrote
# in an archive; nothing in a plain copy, also inside another project's checkout.
#
# usage: commit.sh SOURCE CMAKE GENERATOR
set -eu
source=$1 cmake=$2 generator=$3
command -v git > /dev/null || { echo "SKIPPED: git is not installed" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# expect WHAT WANTED BUILD
expect()
{
    got=$("$cmake" --build "$3" | sed -n 's/^commit=\[\([^]]*\)\]$/\1/p')
    [ "$got" = "$2" ] && return
    echo "$1: expected \"$2\", got \"$got\""
    exit 1
}

configure()
{
    "$cmake" -S "$1" -B "$2" -G "$generator" > "$work/log" 2>&1 || { cat "$work/log" && exit 1; }
}

mkdir -p "$work/tree/packaging/cmake"
cd "$work/tree"
cp "$source/packaging/cmake/Commit.cmake" packaging/cmake
cp "$source/packaging/commit.txt" packaging
cp "$source/.gitattributes" .
cat > CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.21)
project(tree NONE)
include(packaging/cmake/Commit.cmake)
add_custom_target(show ALL COMMAND ${CMAKE_COMMAND} -E echo "commit=[${CLEAVE_COMMIT}]")
END
configure . "$work/copy"
expect "a plain copy" "" "$work/copy"

git init -q .
configure . "$work/build"
expect "before the first commit" "" "$work/build"
git add . && git commit -q -m first
configure . "$work/build"
expect "a checkout" "$(git rev-parse HEAD)" "$work/build"
sleep 1.1 # some file systems keep whole seconds
git commit -q --allow-empty -m second
expect "the next commit" "$(git rev-parse HEAD)" "$work/build"

mkdir "$work/archive" third_party
git archive HEAD | tar -x -C "$work/archive"
configure "$work/archive" "$work/from-archive"
expect "an archive" "$(git rev-parse HEAD)" "$work/from-archive"

cp -r packaging CMakeLists.txt third_party
configure third_party "$work/inside"
expect "a copy in another checkout" "" "$work/inside"
echo "HEAD, the next HEAD, an archive and plain copies are told apart"
