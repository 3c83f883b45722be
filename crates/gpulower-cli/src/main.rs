//! `gpulower`: compiles MLIR `gpu` modules, device LLVM IR and PTX from the command line.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
