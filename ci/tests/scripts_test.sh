#!/usr/bin/env bash
# The scripts answer --help, refuse bad input with exit 2, and the checks refuse broken trees.
set -euo pipefail
ci=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cxx=$1 cc=$2
failures=0
expect() {  # expect STATUS TEXT COMMAND...
  local wanted=$1 text=$2 status=0 output
  shift 2
  output=$("$@" 2>&1) || status=$?
  if [ "$status" -ne "$wanted" ] || [[ "$output" != *"$text"* ]]; then
    printf 'expected status %s and "%s" of: %s\n  got status %s: %s\n' \
      "$wanted" "$text" "$*" "$status" "$output"
    failures=$((failures + 1))
  fi
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
ln -s "$ci/test" "$scratch/linked"
cd "$scratch"
for script in deps offline-deps test test-gpu on-device certify false_alarms fuzz neon nightly tidy check_format check_headers \
  check_includes check_layers check_tolerances packages wheel; do
  expect 0 usage "$ci/$script" --help
done
expect 0 usage ./linked --help
for script in deps offline-deps test test-gpu certify false_alarms fuzz neon tidy check_format packages wheel; do
  expect 2 "unknown option '--wrong'" "$ci/$script" --wrong
done
expect 2 "unknown step 'wrong'" "$ci/nightly" wrong
expect 2 'needs a folder' "$ci/deps" --from
expect 2 "'no_such_folder' has no packages" "$ci/deps" --from no_such_folder
expect 0 'libeigen3-dev' "$ci/deps" --list
expect 0 usage "$ci/bench-cpu" --help
expect 2 "unrecognized arguments: --wrong" "$ci/bench-cpu" --wrong
expect 2 "at least 1" "$ci/bench-cpu" --rounds 0
expect 2 "no record of this script" "$ci/bench-cpu" --against /dev/null
expect 2 "--python 'nowhere/python'" "$ci/bench-cpu" --python nowhere/python
expect 2 "no 'nowhere/lib/libattest_peers.so'; build it with" "$ci/bench-cpu" --build nowhere
expect 2 'usage' "$ci/offline-deps"
expect 2 'needs a folder' "$ci/test-gpu" --deps
expect 2 'needs whole seconds' "$ci/test-gpu" --limit 0
expect 2 "--tests '('" "$ci/test-gpu" --tests '('
expect 2 'leave out --deps' "$ci/test-gpu" --built --deps packages
mkdir somebody  # who is not root, on a machine without packages
printf '#!/bin/sh\necho 1000\n' >somebody/id
printf '#!/bin/sh\nexit 1\n' >somebody/dpkg-query
chmod +x somebody/id somebody/dpkg-query
for script in deps test certify; do
  expect 2 'apt-get install -y --no-install-recommends ' env PATH="$scratch/somebody:$PATH" "$ci/$script"
done
mkdir packages
touch packages/Packages
printf 'another system\n' >packages/made-for
expect 2 "was made for 'another system'" "$ci/deps" --from packages
python=$(python3 -c 'import sys; print(sys.executable)')
expect 2 'no nvcc on the path' env CUDA_PATH=/nowhere PATH=/nowhere "$python" "$ci/test-gpu"
expect 2 "needs a value" "$ci/certify" --tier
expect 2 'needs a folder' "$ci/packages" --build
expect 2 "'no_such_folder' is no build folder" "$ci/packages" --build no_such_folder
expect 2 '--install needs root' env PATH="$scratch/somebody:$PATH" "$ci/packages" --install
expect 2 "take whole numbers" "$ci/false_alarms" --cases many
expect 2 "unknown parser 'problm'" "$ci/fuzz" problm
expect 2 "whole number from 1" "$ci/fuzz" --seconds 0
mkdir -p broken/ci broken/certify/fuzz/corpus/problem broken/build/fuzz/bin built
cp "$ci/fuzz" broken/ci
printf '#!/bin/sh\nexit 0\n' >built/cmake
printf '#!/bin/sh\nexit 1\n' >broken/build/fuzz/bin/attest-fuzz  # does not start
chmod +x built/cmake broken/build/fuzz/bin/attest-fuzz
expect 1 'the planted fault was not found' env PATH="$scratch/built:$PATH" broken/ci/fuzz --seconds 1
printf '#!/bin/sh\n[ "$ATTEST_FUZZ_PARSER" != planted ] || { printf attest >out/fuzz/planted/crash-1; exit 1; }\n' \
  >broken/build/fuzz/bin/attest-fuzz
expect 0 'problem              ok' env PATH="$scratch/built:$PATH" broken/ci/fuzz --seconds 1
expect 2 "whole number from 1" "$ci/neon" --jobs 0
mkdir -p broken/core broken/cpu broken/sparse/kernels arm
cp "$ci/neon" "$ci/deps" broken/ci
touch broken/{core,cpu,sparse/kernels}/{a,a_test}.cpp broken/cpu/CMakeLists.txt
expect 77 'skipped: no cross compiler' env PATH="$scratch/somebody:$PATH" broken/ci/neon
printf '#!/bin/sh\necho install ok installed\n' >arm/dpkg-query
printf '#!/bin/sh\nexit 1\n' | tee arm/apt-get arm/aarch64-linux-gnu-g++ >arm/qemu-aarch64
printf '#!/bin/sh\nexit 0\n' | tee arm/dpkg-deb >arm/aarch64-linux-gnu-ar
chmod +x arm/*
arm=(env PATH="$scratch/arm:$PATH" broken/ci/neon)
expect 77 'skipped: apt-get has no packages for arm64' "${arm[@]}"
cp arm/dpkg-deb arm/apt-get
expect 1 '== compile 6 files' "${arm[@]}"  # none compiles
cp arm/dpkg-deb arm/aarch64-linux-gnu-g++
expect 1 'cpu          FAILED' "${arm[@]}"
cp arm/dpkg-deb arm/qemu-aarch64
expect 1 'the target AVX2 was not refused' "${arm[@]}"
printf '#!/bin/sh\n[ $ATTEST_CPU_TARGET = NEON ] || { echo there are NEON; exit 1; }\n' >arm/qemu-aarch64
expect 0 'cpu          passed' "${arm[@]}"
expect 2 "is not there; build it" "$ci/false_alarms" --attest no_such_program
expect 2 "tier is 'slow'" "$ci/certify" --tier slow
expect 2 'no compile_commands.json' "$ci/tidy" no_such_folder
expect 2 'not a folder' "$ci/check_includes" no_such_folder
expect 2 'not a folder' "$ci/check_layers" no_such_folder
expect 2 'not a folder' "$ci/check_tolerances" no_such_folder
expect 2 'usage' "$ci/check_headers" "$scratch"
expect 2 'none of the rooms' "$ci/check_headers" "$scratch" "$cxx" "$cc"

mkdir -p good/core bad/core bad_c/core/abi
printf '#pragma once\n#include <vector>\ninline std::vector<int> empty() { return {}; }\n' \
  >good/core/a.hpp
printf '#pragma once\ninline std::vector<int> empty() { return {}; }\n' >bad/core/a.hpp
printf 'class Kernel;\n' >bad_c/core/abi/attest_kernel.h
expect 0 '' "$ci/check_headers" good "$cxx" "$cc"
expect 123 'not self-contained: core/a.hpp' "$ci/check_headers" bad "$cxx" "$cc"
expect 1 'error' "$ci/check_headers" bad_c "$cxx" "$cc"
if command -v clang-format-14 >/dev/null; then
  printf 'int  x;\n' >bad/core/b.cpp
  expect 0 '' "$ci/check_format" good
  expect 123 'should be clang-formatted' "$ci/check_format" bad
fi
printf '%s failures\n' "$failures"
[ "$failures" -eq 0 ]
