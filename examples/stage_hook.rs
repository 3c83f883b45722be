//! Watches the stages of a compilation, and changes what passes between two of them.
//!
//! ```sh
//! cargo run --example stage_hook
//! ```
//!
//! The listener counts LLVM's instructions before and after optimisation through inkwell, and asks NVIDIA's compiler for
//! at most 24 registers by a line in the PTX. It shows the PTX that goes on.

use std::{env, error::Error, fs, sync::Arc};

use gpulower::{Checkpoint, Compiler, Emit, StageListener, Subject, Target, inkwell::module::Module};

struct Hook;

impl StageListener for Hook {
    fn checkpoints(&self) -> &[Checkpoint] {
        &[
            Checkpoint::Initial,
            Checkpoint::Linked,
            Checkpoint::Optimized,
            Checkpoint::Isa,
        ]
    }

    fn llvm(
        &self,
        subject: Subject<'_>,
        checkpoint: Checkpoint,
        module: &Module<'_>,
    ) -> Result<Option<Vec<u8>>, String> {
        let count: usize = module
            .get_functions()
            .flat_map(|function| function.get_basic_block_iter())
            .map(|block| block.get_instructions().count())
            .sum();
        println!(
            "{} for {}, {}: {count} instructions",
            subject.module,
            subject.target,
            checkpoint.name()
        );
        // The module may be changed in place. `Ok(Some(bytes))` would go on with other IR, `Err` would end here.
        Ok(None)
    }

    fn isa(&self, _subject: Subject<'_>, text: &str) -> Result<Option<String>, String> {
        // The first block of the text is the kernel's body.
        let limited = text.replacen("\n{", "\n.maxnreg 24\n{", 1);
        println!("{limited}");
        Ok(Some(limited))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/transpose.mlir");
    let target: Target = "sm_90".parse()?;
    let plain = Compiler::builder().environment().build();
    let hooked = plain.with_listener(Arc::new(Hook));
    for compiler in [plain, hooked] {
        let compilation = compiler.compile_source(path, &fs::read(path)?, &[target], Emit::Cubin)?;
        for kernel in compilation.artifacts.iter().flat_map(|artifact| artifact.kernels()) {
            println!("{}: {} registers", kernel.name, kernel.registers.unwrap_or(0));
        }
    }
    Ok(())
}
