//! `gpulower`: compiles MLIR `gpu` modules, device LLVM IR and PTX from the command line.

#[global_allocator]
static ALLOCATOR: gpulower::ReservingAllocator = gpulower::ReservingAllocator;

fn main() -> std::process::ExitCode {
    gpulower::fail_in_words();
    gpulower_cli::main(std::env::args_os()).into()
}
