//! Changes of MLIR that leave nothing pointing to what is gone.
//!
//! melior's references to operations are `Copy`: whoever holds one could have another of an operation that is destroyed. So
//! nothing is destroyed or moved while a module is borrowed. Whoever wants that describes it ([`Edits`]) in a closure that the
//! references cannot leave, and it is carried out behind the closure. What leaves a module leaves it by value
//! ([`into_operations`]).

use std::{
    marker::PhantomData,
    mem::ManuallyDrop,
    thread::{self, ThreadId},
};

use melior::ir::{
    Module,
    operation::{Operation, OperationLike, OperationRef},
};
use mlir_sys::{
    MlirBlock, MlirOperation, mlirBlockAppendOwnedOperation, mlirBlockInsertOwnedOperation,
    mlirBlockInsertOwnedOperationBefore, mlirContextEqual, mlirModuleCreateEmpty, mlirModuleFromOperation,
    mlirOperationClone, mlirOperationEqual, mlirOperationGetBlock, mlirOperationGetContext, mlirOperationGetNumRegions,
    mlirOperationGetNumResults, mlirOperationGetParentOperation, mlirOperationGetRegion, mlirOperationGetResult,
    mlirOperationRemoveFromParent, mlirRegionGetFirstBlock, mlirTypeEqual, mlirValueGetFirstUse, mlirValueGetType,
    mlirValueReplaceAllUsesOfWith,
};

use super::{
    contain::{LlvmError, contained_call},
    mlir::{MlirDiagnostic, is_threaded_raw, place_of, remove_attribute, set_attribute},
};

unsafe extern "C-unwind" {
    fn gpulowerDestroy(operations: *const MlirOperation, count: usize);
    fn gpulowerFindOpen(root: MlirOperation) -> MlirOperation;
}

/// An operation to which, and into which, nobody else has a reference.
pub(crate) struct Exclusive<'c, 'a> {
    raw: MlirOperation,
    _life: PhantomData<(&'a mut (), Operation<'c>)>,
}

impl<'c, 'a> Exclusive<'c, 'a> {
    /// The operation of a module.
    pub(crate) fn of(module: &'a mut Module<'c>) -> Self {
        // SAFETY: the module is alive and borrowed exclusively for 'a.
        unsafe { Self::from_raw(module.as_operation().to_raw()) }
    }

    /// # Safety
    ///
    /// The operation lives for `'a` in a context that lives for `'c`, and nobody else has a reference to it or into it.
    pub(super) const unsafe fn from_raw(raw: MlirOperation) -> Self {
        Self {
            raw,
            _life: PhantomData,
        }
    }

    /// The operation, to be looked at.
    pub(crate) fn get(&self) -> OperationRef<'c, '_> {
        // SAFETY: it is alive, and not changed as long as this value is borrowed.
        unsafe { OperationRef::from_raw(self.raw) }
    }

    /// A copy of the operation, which is a module.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn copy_of_module(&self) -> Result<Module<'c>, String> {
        let copy = copy_of_operation(self.get()).map_err(|error| error.to_string())?;
        // SAFETY: the copy is owned, and is still where it is no module.
        unsafe {
            let raw = copy.into_raw();
            Module::from_option_raw(mlirModuleFromOperation(raw)).ok_or_else(|| {
                drop(Operation::from_raw(raw));
                "the operation is no module".to_owned()
            })
        }
    }

    /// Changes what is inside of the operation. The changes are carried out, in their order, when `plan` is done.
    pub(crate) fn edit<R>(&mut self, plan: impl for<'b> FnOnce(OperationRef<'c, 'b>, &mut Edits<'c, 'b>) -> R) -> R {
        let mut edits = Edits {
            changes: Vec::new(),
            _life: PhantomData,
        };
        let result = plan(self.get(), &mut edits);
        let changes = edits.changes;
        // SAFETY: the operation is exclusive, and the references that `plan` had are gone: they cannot leave it.
        unsafe { carry_out(self.raw, changes) };
        result
    }

    /// Puts the operations of `new` in the place of those of this one, a module, which takes its attributes over, too.
    pub(crate) fn replace_contents(&mut self, new: Module<'c>) {
        let attributes: Vec<_> = new.as_operation().attributes().collect();
        let Ok(operations) = into_operations(new) else {
            return;
        };
        self.edit(|root, edits| {
            use melior::ir::{BlockLike, RegionLike};
            let block = root.region(0).ok().and_then(|region| region.first_block());
            let mut next = block.and_then(|block| block.first_operation());
            while let Some(operation) = next {
                next = operation.next_in_block();
                edits.remove(operation);
            }
            for operation in operations {
                edits.append(root, operation);
            }
            remove_attribute(root, "gpu.container_module");
            for (name, attribute) in attributes {
                if let Ok(name) = name.as_string_ref().as_str() {
                    set_attribute(root, name, attribute);
                }
            }
        });
    }
}

/// Changes the operations of a module: [`Exclusive::edit`].
pub(crate) fn edit<'c, R>(
    module: &mut Module<'c>,
    plan: impl for<'b> FnOnce(OperationRef<'c, 'b>, &mut Edits<'c, 'b>) -> R,
) -> R {
    Exclusive::of(module).edit(plan)
}

/// Changes that are to be carried out. What they name is inside of the operation that is edited; a change of something else,
/// or of what an earlier change removed, is none.
pub(crate) struct Edits<'c, 'b> {
    changes: Vec<Change<'c>>,
    /// Invariant: a reference of another life is none of this one.
    _life: PhantomData<fn(&'b ()) -> &'b ()>,
}

enum Change<'c> {
    Replace(MlirOperation, Operation<'c>),
    Remove(MlirOperation),
    Prepend(MlirOperation, Operation<'c>),
    Append(MlirOperation, Operation<'c>),
}

impl<'c, 'b> Edits<'c, 'b> {
    /// Replaces an operation by another with the same results, in place.
    pub(crate) fn replace(&mut self, old: OperationRef<'c, 'b>, new: Operation<'c>) {
        self.changes.push(Change::Replace(old.to_raw(), new));
    }

    /// Removes an operation. Nothing of what stays may use its results.
    pub(crate) fn remove(&mut self, operation: OperationRef<'c, 'b>) {
        self.changes.push(Change::Remove(operation.to_raw()));
    }

    /// Puts an operation in front of those in the first block of another, or of the one that is edited.
    pub(crate) fn prepend(&mut self, container: OperationRef<'c, 'b>, operation: Operation<'c>) {
        self.changes.push(Change::Prepend(container.to_raw(), operation));
    }

    /// Puts an operation behind those in the first block of another, or of the one that is edited.
    pub(crate) fn append(&mut self, container: OperationRef<'c, 'b>, operation: Operation<'c>) {
        self.changes.push(Change::Append(container.to_raw(), operation));
    }
}

/// # Safety
///
/// The root is alive, and nobody else uses it meanwhile; the operations of the changes are alive, too.
unsafe fn carry_out(root: MlirOperation, changes: Vec<Change<'_>>) {
    // What is removed stays alive to the end, so that a later change of it finds that it is not in the root any more.
    let mut removed = Vec::new();
    for change in changes {
        // SAFETY: all operations are alive; one is moved from a block, or put into one, only where it is in the root, and what
        // is put there is owned.
        unsafe {
            match change {
                Change::Replace(old, new) if is_inside(old, root) && is_of_context(&new, root) => {
                    let new = new.into_raw();
                    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(old), old, new);
                    replace_uses(old, new);
                    mlirOperationRemoveFromParent(old);
                    removed.push(old);
                }
                Change::Remove(operation) if is_inside(operation, root) => {
                    mlirOperationRemoveFromParent(operation);
                    removed.push(operation);
                }
                Change::Prepend(container, operation) if is_of_context(&operation, root) => {
                    if let Some(block) = first_block(container, root) {
                        mlirBlockInsertOwnedOperation(block, 0, operation.into_raw());
                    }
                }
                Change::Append(container, operation) if is_of_context(&operation, root) => {
                    if let Some(block) = first_block(container, root) {
                        mlirBlockAppendOwnedOperation(block, operation.into_raw());
                    }
                }
                _ => debug_assert!(false, "a change of what is not there"),
            }
        }
    }
    // SAFETY: they are in no block any more, and each is there once; what is still used is left alone.
    unsafe { gpulowerDestroy(removed.as_ptr(), removed.len()) }
}

/// # Safety
///
/// Both are alive.
unsafe fn is_inside(operation: MlirOperation, root: MlirOperation) -> bool {
    let mut outer = operation;
    // SAFETY: what is around an operation that is alive is alive.
    unsafe {
        loop {
            outer = mlirOperationGetParentOperation(outer);
            if outer.ptr.is_null() {
                return false;
            }
            if mlirOperationEqual(outer, root) {
                return true;
            }
        }
    }
}

/// # Safety
///
/// The root is alive.
unsafe fn is_of_context(operation: &Operation<'_>, root: MlirOperation) -> bool {
    // SAFETY: both are alive.
    unsafe {
        mlirContextEqual(
            mlirOperationGetContext(operation.to_raw()),
            mlirOperationGetContext(root),
        )
    }
}

/// # Safety
///
/// Both are alive.
unsafe fn first_block(container: MlirOperation, root: MlirOperation) -> Option<MlirBlock> {
    // SAFETY: both are alive, and the region is asked for where there is one.
    unsafe {
        let ours = mlirOperationEqual(container, root) || is_inside(container, root);
        if !ours || mlirOperationGetNumRegions(container) < 1 {
            return None;
        }
        let block = mlirRegionGetFirstBlock(mlirOperationGetRegion(container, 0));
        (!block.ptr.is_null()).then_some(block)
    }
}

/// Lets what uses results of one operation use those of another. Results that the other does not have keep their uses.
///
/// # Safety
///
/// Both are alive.
unsafe fn replace_uses(old: MlirOperation, new: MlirOperation) {
    // SAFETY: results are asked for that there are.
    unsafe {
        let count = mlirOperationGetNumResults(old).min(mlirOperationGetNumResults(new));
        for index in 0..count {
            let (old, new) = (mlirOperationGetResult(old, index), mlirOperationGetResult(new, index));
            if mlirTypeEqual(mlirValueGetType(old), mlirValueGetType(new)) {
                mlirValueReplaceAllUsesOfWith(old, new);
            }
        }
    }
}

/// The operations of a module, by value; the module as it was if they use each other's results.
pub(crate) fn into_operations<'c>(module: Module<'c>) -> Result<Vec<Operation<'c>>, Module<'c>> {
    use melior::ir::BlockLike;
    let mut raw = Vec::new();
    let mut next = module.body().first_operation();
    while let Some(operation) = next {
        next = operation.next_in_block();
        // SAFETY: the operation is alive, and has that result.
        let is_used = |index| unsafe {
            !mlirValueGetFirstUse(mlirOperationGetResult(operation.to_raw(), index))
                .ptr
                .is_null()
        };
        // SAFETY: the operation is alive.
        let results = unsafe { mlirOperationGetNumResults(operation.to_raw()) };
        if (0..results).any(is_used) {
            return Err(module);
        }
        raw.push(operation.to_raw());
    }
    let take = |raw| {
        // SAFETY: the module is owned, and the references above are gone: removed from its block, the operation is owned by
        // the value made here. No other operation of the module uses its results.
        unsafe {
            mlirOperationRemoveFromParent(raw);
            Operation::from_raw(raw)
        }
    };
    Ok(raw.into_iter().map(take).collect())
}

/// A reference to an operation that is owned.
pub(crate) fn view<'c, 'a>(operation: &'a Operation<'c>) -> OperationRef<'c, 'a> {
    // SAFETY: it lives as long as it is borrowed.
    unsafe { OperationRef::from_raw(operation.to_raw()) }
}

/// Why there is no copy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CopyError {
    /// The operation refers to something outside of itself, here.
    #[error("{}", .0.message)]
    Open(MlirDiagnostic),
    /// There is no memory for it, or MLIR crashed.
    #[error(transparent)]
    Failed(#[from] LlvmError),
}

/// A copy that belongs to nobody yet. Where it fails, what was made of it is leaked.
fn clone_raw(operation: OperationRef<'_, '_>) -> Result<MlirOperation, LlvmError> {
    let operation = operation.to_raw();
    // SAFETY: the operation is alive, and the closure owns nothing.
    unsafe { contained_call(|| mlirOperationClone(operation)) }
}

/// A copy of an operation that refers to nothing outside of itself.
pub(crate) fn copy_of_operation<'c>(operation: OperationRef<'c, '_>) -> Result<Operation<'c>, CopyError> {
    // SAFETY: the copy is owned by the value made here.
    let copy = unsafe { Operation::from_raw(clone_raw(operation)?) };
    check_closed(view(&copy)).map_err(CopyError::Open)?;
    Ok(copy)
}

/// A copy of a module.
pub(crate) fn copy_of<'c>(module: &Module<'c>) -> Result<Module<'c>, CopyError> {
    let copy = copy_of_operation(module.as_operation())?;
    // SAFETY: a copy of a module's operation is one, and becomes the module's own.
    Ok(unsafe { Module::from_raw(mlirModuleFromOperation(copy.into_raw())) })
}

/// A module around a copy of an operation.
pub(crate) fn module_around<'c>(operation: OperationRef<'c, '_>) -> Result<Module<'c>, CopyError> {
    use melior::ir::BlockLike;
    let location = operation.location().to_raw();
    // SAFETY: the location is alive, and the closure owns nothing; the module is owned by the value made here.
    let module = unsafe {
        let module = contained_call(|| mlirModuleCreateEmpty(location)).map_err(CopyError::Failed)?;
        Module::from_raw(module)
    };
    module.body().append_operation(copy_of_operation(operation)?);
    Ok(module)
}

/// Whether an operation uses nothing outside of itself, and nothing outside uses what it defines.
fn check_closed(operation: OperationRef<'_, '_>) -> Result<(), MlirDiagnostic> {
    // SAFETY: the operation is alive, and what is found is inside of it.
    let location = unsafe {
        let found = gpulowerFindOpen(operation.to_raw());
        if found.ptr.is_null() {
            return Ok(());
        }
        place_of(OperationRef::from_raw(found).location())
    };
    Err(MlirDiagnostic {
        is_error: true,
        location,
        message: "it uses values that are defined outside of its module, or defines some that are used there"
            .to_owned(),
        notes: Vec::new(),
    })
}

/// A module that may be handed to another thread.
///
/// Operations of one context may be worked on by several threads where the context is threaded, and where no operation of one
/// thread uses a value of another's. Both are looked at when the value is made. In a context without threads, it is for the
/// thread that made it: another one that asks for the module panics, and one that drops it leaks it.
#[derive(Debug)]
pub(crate) struct OwnedModule<'c> {
    module: ManuallyDrop<Module<'c>>,
    /// The one thread that it is for.
    home: Option<ThreadId>,
}

// SAFETY: see the type's description.
unsafe impl Send for OwnedModule<'_> {}

impl<'c> OwnedModule<'c> {
    /// Takes a module over.
    ///
    /// # Errors
    ///
    /// The place where it uses values of something else, or that uses its values.
    pub(crate) fn new(module: Module<'c>) -> Result<Self, MlirDiagnostic> {
        check_closed(module.as_operation())?;
        Ok(Self::of_closed(module))
    }

    fn of_closed(module: Module<'c>) -> Self {
        let home = (!is_threaded_raw(&module)).then(|| thread::current().id());
        Self {
            module: ManuallyDrop::new(module),
            home,
        }
    }

    /// A module around a copy of one operation.
    pub(crate) fn around(operation: OperationRef<'c, '_>) -> Result<Self, CopyError> {
        module_around(operation).map(Self::of_closed)
    }

    /// A copy.
    pub(crate) fn copy(&self) -> Result<Self, LlvmError> {
        let copy = clone_raw(self.module().as_operation())?;
        // SAFETY: a copy of a module's operation is one, owned by the module made here; and one of what is closed is closed.
        Ok(Self::of_closed(unsafe {
            Module::from_raw(mlirModuleFromOperation(copy))
        }))
    }

    fn is_here(&self) -> bool {
        self.home.is_none_or(|home| home == thread::current().id())
    }

    /// The module.
    pub(crate) fn module(&self) -> &Module<'c> {
        assert!(
            self.is_here(),
            "a module of a context without threads is on another one"
        );
        &self.module
    }

    /// The module, to be changed.
    pub(crate) fn module_mut(&mut self) -> &mut Module<'c> {
        assert!(
            self.is_here(),
            "a module of a context without threads is on another one"
        );
        &mut self.module
    }
}

impl Drop for OwnedModule<'_> {
    fn drop(&mut self) {
        if self.is_here() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.module) }
        }
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
