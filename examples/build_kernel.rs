//! Builds a kernel operation by operation with melior, in the program's own context, and compiles it.
//!
//! ```sh
//! cargo run --example build_kernel
//! ```
//!
//! The kernel is `x[i] *= a`. It needs no device library, so PTX comes out without any toolkit.

use std::error::Error;

use gpulower::{
    Compiler, Emit, Target,
    melior::{
        Context,
        dialect::{arith, memref},
        ir::{
            Attribute, Block, BlockLike, Identifier, Location, Module, Region, RegionLike, Type, Value,
            attribute::{StringAttribute, TypeAttribute},
            operation::{OperationBuilder, OperationLike},
            r#type::FunctionType,
        },
    },
};

fn main() -> Result<(), Box<dyn Error>> {
    // A context of your own serves as well: `gpulower::compiler::prepare` gives it the dialects that kernels need.
    let context = gpulower::compiler::context();
    let module = scale(&context)?;
    println!("{}", module.as_operation());

    let target: Target = "sm_90".parse()?;
    let compilation = Compiler::builder().build().compile(&module, &[target], Emit::Ptx)?;
    for artifact in compilation.artifacts {
        println!("{}", String::from_utf8(artifact.bytes)?);
    }
    Ok(())
}

/// `gpu.module @kernels` with the kernel `scale(a: f32, x: memref<?xf32>)`.
fn scale(context: &Context) -> Result<Module<'_>, Box<dyn Error>> {
    let location = Location::new(context, "build_kernel.rs", 1, 1);
    let parsed = |text| Attribute::parse(context, text).ok_or(format!("{text} is no attribute"));
    let named = |name| Identifier::new(context, name);
    let name = |text| (named("sym_name"), StringAttribute::new(context, text).into());

    let float = Type::float32(context);
    let buffer = Type::parse(context, "memref<?xf32>").ok_or("no such type")?;

    let body = Block::new(&[(float, location), (buffer, location)]);
    let (a, x): (Value, Value) = (body.argument(0)?.into(), body.argument(1)?.into());
    let index = OperationBuilder::new("gpu.global_id", location)
        .add_attributes(&[(named("dimension"), parsed("#gpu<dim x>")?)])
        .add_results(&[Type::index(context)])
        .build()?;
    let i: Value = body.append_operation(index).result(0)?.into();
    let value: Value = body.append_operation(memref::load(x, &[i], location)).result(0)?.into();
    let scaled: Value = body.append_operation(arith::mulf(a, value, location)).result(0)?.into();
    body.append_operation(memref::store(scaled, x, &[i], location));
    body.append_operation(OperationBuilder::new("gpu.return", location).build()?);

    let function = OperationBuilder::new("gpu.func", location)
        .add_attributes(&[
            name("scale"),
            (
                named("function_type"),
                TypeAttribute::new(FunctionType::new(context, &[float, buffer], &[]).into()).into(),
            ),
            (named("gpu.kernel"), Attribute::unit(context)),
        ])
        .add_regions([region(body)])
        .build()?;
    let kernels = Block::new(&[]);
    kernels.append_operation(function);

    let module = Module::new(location);
    module.body().append_operation(
        OperationBuilder::new("gpu.module", location)
            .add_attributes(&[name("kernels")])
            .add_regions([region(kernels)])
            .build()?,
    );
    if module.as_operation().verify() {
        Ok(module)
    } else {
        Err("the module is not valid".into())
    }
}

fn region<'c>(block: Block<'c>) -> Region<'c> {
    let region = Region::new();
    region.append_block(block);
    region
}
