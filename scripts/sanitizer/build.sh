#!/bin/sh
# Builds gpulower-checks with AddressSanitizer over our C++ and Rust, in target/sanitizer: docs/lab/reliability.md. The runtime
# is the one that comes with rustc; LLVM, MLIR and Rust's standard library are as always.
set -eu
cd "$(dirname "$0")/../.."
# Stable Rust takes the flag if it is told to. Build scripts and procedural macros, which `--target` keeps apart, do without.
SANITIZER=address CXX=$PWD/scripts/sanitizer/c++ RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_INCREMENTAL=0 \
    cargo build --locked -p gpulower-checks --target x86_64-unknown-linux-gnu --target-dir target/sanitizer "$@"
echo target/sanitizer/x86_64-unknown-linux-gnu/debug/gpulower-checks
