//! `gpulower-opt`: `mlir-opt` with gpulower's passes.

#[global_allocator]
static ALLOCATOR: gpulower::ReservingAllocator = gpulower::ReservingAllocator;

fn main() -> std::process::ExitCode {
    gpulower::fail_in_words();
    gpulower_cli::opt_main(std::env::args_os()).into()
}
