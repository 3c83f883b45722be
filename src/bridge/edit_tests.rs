//! Changes that would leave something pointing to what is gone, and modules that are not their own.

use std::{panic, thread};

use melior::{
    Context,
    ir::{
        BlockLike, Identifier, Location, Region, RegionLike, Type, TypeLike, Value, ValueLike,
        attribute::{IntegerAttribute, StringAttribute},
        operation::{OperationBuilder, OperationLike},
    },
};

use super::*;
use crate::{
    bridge::mlir::{operations, operations_below},
    compiler,
    device::lower::name_of,
};

/// Fails to compile where the type has the trait: two implementations could be meant then.
macro_rules! assert_not_impl {
    ($type:ty: $trait:path) => {
        const _: () = {
            trait Ambiguous<Which> {
                fn meant() {}
            }
            struct HasIt;
            impl<T: ?Sized> Ambiguous<()> for T {}
            impl<T: ?Sized + $trait> Ambiguous<HasIt> for T {}
            let _ = <$type as Ambiguous<_>>::meant;
        };
    };
}

assert_not_impl!(Exclusive<'static, 'static>: Clone);
assert_not_impl!(Exclusive<'static, 'static>: Send);
assert_not_impl!(Edits<'static, 'static>: Clone);
assert_not_impl!(OwnedModule<'static>: Clone);
assert_not_impl!(OwnedModule<'static>: Sync);
assert_not_impl!(crate::bridge::llvm::DeviceModule<'static>: Send);
assert_not_impl!(crate::bridge::llvm::DeviceContext: Sync);
assert_not_impl!(crate::bridge::program_calls::CopyCall<'static>: Clone);
assert_not_impl!(crate::bridge::program_calls::KernelCall<'static>: Clone);

const SOURCE: &[u8] = b"module {
  func.func private @f()
  module @inner { func.func private @g() }
  func.func private @h()
}";

fn symbols(module: &Module<'_>) -> Vec<String> {
    let named = operations(module)
        .into_iter()
        .filter(|operation| operation.has_attribute("sym_name"));
    named.map(compiler::symbol_name).collect()
}

#[test]
fn what_is_removed_may_be_named_again() {
    let context = compiler::context();
    let mut module = compiler::parse(&context, "m.mlir", SOURCE).expect("parses");
    edit(&mut module, |root, edits| {
        for operation in operations_below(root) {
            if operation.has_attribute("sym_name") && compiler::symbol_name(operation) == "inner" {
                let inside = operations_below(operation);
                // What is around goes first, and then what is in it, which is gone already.
                edits.remove(operation);
                assert_eq!(name_of(&inside[1]), "func.func");
            }
        }
    });
    assert_eq!(symbols(&module), ["f", "h"]);
    assert!(module.as_operation().verify());
}

#[test]
#[should_panic(expected = "a change of what is not there")]
fn a_second_change_of_what_was_removed_is_noticed() {
    let context = compiler::context();
    let mut module = compiler::parse(&context, "m.mlir", SOURCE).expect("parses");
    edit(&mut module, |root, edits| {
        let all = operations_below(root);
        edits.remove(all[2]);
        edits.remove(all[3]);
    });
}

#[test]
#[should_panic(expected = "a change of what is not there")]
fn the_root_itself_stays() {
    let context = compiler::context();
    let mut module = compiler::parse(&context, "m.mlir", SOURCE).expect("parses");
    edit(&mut module, |root, edits| edits.remove(root));
}

/// `test.use(test.make)`, outside of any function.
fn maker_and_user(context: &Context) -> Module<'_> {
    context.set_allow_unregistered_dialects(true);
    let location = Location::unknown(context);
    let module = Module::new(location);
    let maker = OperationBuilder::new("test.make", location)
        .add_results(&[Type::index(context)])
        .build()
        .expect("builds");
    let maker = module.body().append_operation(maker);
    let value: Value<'_, '_> = maker.result(0).expect("a result").into();
    let user = OperationBuilder::new("test.use", location)
        .add_operands(&[value])
        .build();
    module.body().append_operation(user.expect("builds"));
    module
}

/// It was freed, and its user kept a pointer to it.
#[test]
fn an_operation_whose_results_are_used_is_not_freed() {
    let context = compiler::context();
    let mut module = maker_and_user(&context);
    edit(&mut module, |root, edits| edits.remove(operations_below(root)[1]));
    let rest = operations(&module);
    assert_eq!(rest.len(), 2);
    let operand = rest[1].operand(0).expect("an operand");
    assert!(operand.r#type().is_index());
}

#[test]
fn users_follow_to_the_new_operation_as_far_as_it_has_results() {
    let context = compiler::context();
    let location = Location::unknown(&context);
    for (results, expected) in [(vec![Type::index(&context)], "test.new"), (vec![], "test.make")] {
        let mut module = maker_and_user(&context);
        let new = OperationBuilder::new("test.new", location)
            .add_results(&results)
            .build();
        edit(&mut module, |root, edits| {
            edits.replace(operations_below(root)[1], new.expect("builds"));
        });
        let operand = operations(&module)[2].operand(0).expect("an operand");
        let owner = melior::ir::operation::OperationResult::try_from(operand)
            .expect("a result")
            .owner();
        assert_eq!(name_of(&owner), expected);
    }
}

#[test]
fn operations_that_use_each_other_are_not_taken_apart() {
    let context = compiler::context();
    let module = into_operations(maker_and_user(&context)).expect_err("they use each other");
    assert_eq!(operations(&module).len(), 3);
    let independent = compiler::parse(&context, "m.mlir", SOURCE).expect("parses");
    assert_eq!(into_operations(independent).expect("independent").len(), 3);
}

/// A `gpu.module` that uses a value of the module around it: no text has that, for MLIR's verifier refuses it.
fn open_module(context: &Context) -> Module<'_> {
    let module = maker_and_user(context);
    let location = Location::new(context, "open.mlir", 3, 5);
    let made = module.body().first_operation().expect("an operation");
    let value: Value<'_, '_> = made.result(0).expect("a result").into();
    let user = OperationBuilder::new("test.use", location)
        .add_operands(&[value])
        .build();
    let region = Region::new();
    let block = melior::ir::Block::new(&[]);
    block.append_operation(user.expect("builds"));
    region.append_block(block);
    let inner = OperationBuilder::new("gpu.module", location)
        .add_regions([region])
        .add_attributes(&[(
            Identifier::new(context, "sym_name"),
            StringAttribute::new(context, "m").into(),
        )])
        .build();
    module.body().append_operation(inner.expect("builds"));
    module
}

#[test]
fn a_module_that_uses_values_of_another_is_not_sent_to_a_thread() {
    let context = compiler::context();
    let module = open_module(&context);
    let inner = compiler::gpu_modules(&module)[0];
    let error = OwnedModule::around(inner).expect_err("it is no module of its own");
    let CopyError::Open(open) = error else {
        panic!("{error:?}")
    };
    assert_eq!(open.location.as_mlir(), "\"open.mlir\":3:5");
    assert!(copy_of(&module).is_ok(), "the whole is");
    let failure = crate::Compiler::builder()
        .build()
        .compile(
            &module,
            &crate::Target::parse_list("sm_90").expect("a target"),
            crate::Emit::Ptx,
        )
        .expect_err("refused");
    assert!(
        failure.to_string().contains("defined outside of its module"),
        "{failure}"
    );
}

#[test]
fn a_module_of_a_context_without_threads_stays_on_its_thread() {
    let context = compiler::context();
    context.enable_multi_threading(false);
    let module = compiler::parse(&context, "m.mlir", SOURCE).expect("parses");
    let owned = OwnedModule::new(module).expect("closed");
    assert_eq!(symbols(owned.module()).len(), 4);
    thread::scope(|scope| {
        let elsewhere = scope.spawn(move || {
            let asked = panic::catch_unwind(panic::AssertUnwindSafe(|| symbols(owned.module()).len()));
            assert!(asked.is_err(), "it was given to another thread");
        });
        elsewhere.join().expect("it is leaked there, and not freed");
    });

    context.enable_multi_threading(true);
    let module = compiler::parse(&context, "m.mlir", SOURCE).expect("parses");
    let owned = OwnedModule::new(module).expect("closed");
    thread::scope(|scope| {
        let elsewhere = scope.spawn(move || symbols(owned.module()).len());
        assert_eq!(elsewhere.join().expect("works"), 4);
    });
}

#[test]
fn contents_and_attributes_are_replaced() {
    let context = compiler::context();
    let mut module = compiler::parse(&context, "m.mlir", SOURCE).expect("parses");
    let new = compiler::parse(
        &context,
        "n.mlir",
        b"module attributes {a.b = 1 : i64} { func.func private @new() }",
    );
    Exclusive::of(&mut module).replace_contents(new.expect("parses"));
    assert_eq!(symbols(&module), ["new"]);
    let one = module.as_operation().attribute("a.b").expect("the attribute");
    assert_eq!(IntegerAttribute::try_from(one).expect("a number").value(), 1);
}
