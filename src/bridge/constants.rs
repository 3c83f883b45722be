//! Constants of an LLVM module as the bytes and pointers that they will be in memory.

use std::ffi::c_void;

use gpulower_image::offload::check::{Constant, Pointer};
use llvm_sys::prelude::LLVMModuleRef;

use super::{
    contain::{Bytes, LlvmError, Outcome, Uncontained},
    llvm::DeviceModule,
};

#[repr(C)]
struct Report {
    closure: *mut c_void,
    wanted: extern "C" fn(*mut c_void, Bytes) -> bool,
    constant: extern "C" fn(*mut c_void, Bytes, Bytes, bool, Bytes),
    pointer: extern "C" fn(*mut c_void, u64, i64, i64, Bytes),
}

unsafe extern "C-unwind" {
    fn gpulowerConstants(module: LLVMModuleRef, limit: u64, report: *const Report) -> Outcome;
}

/// What a call collects.
struct Collector<'a> {
    wanted: &'a dyn Fn(&str) -> bool,
    constants: Vec<Constant>,
}

/// Reads the variables of the sections that are wanted, and the texts to which they point.
///
/// # Errors
///
/// [`LlvmError`] for a host that is not a little-endian machine of 64 bits, for initializers of more than `limit` bytes, and
/// for those that are not known before the program is linked.
pub(crate) fn of_sections(
    module: &DeviceModule<'_>,
    wanted: &dyn Fn(&str) -> bool,
    limit: u64,
) -> Result<Vec<Constant>, LlvmError> {
    let mut collector = Collector {
        wanted,
        constants: Vec::new(),
    };
    let report = Report {
        closure: (&raw mut collector).cast(),
        wanted: is_wanted,
        constant: add_constant,
        pointer: add_pointer,
    };
    // SAFETY: the module is alive, and so is the collector, which the callbacks alone touch during the call.
    let outcome = unsafe { gpulowerConstants(module.inkwell().as_mut_ptr(), limit, &raw const report) };
    outcome.into_result()?;
    for constant in &mut collector.constants {
        constant.pointers.sort_by_key(|pointer| pointer.offset);
    }
    Ok(collector.constants)
}

fn text(bytes: Bytes) -> String {
    // SAFETY: the bytes live during the callback that they are handed to.
    String::from_utf8_lossy(unsafe { bytes.as_slice() }).into_owned()
}

extern "C" fn is_wanted(closure: *mut c_void, section: Bytes) -> bool {
    let _uncontained = Uncontained::new();
    // SAFETY: the closure is the collector of `of_sections`.
    let collector = unsafe { &*closure.cast::<Collector<'_>>() };
    (collector.wanted)(&text(section))
}

extern "C" fn add_constant(closure: *mut c_void, name: Bytes, section: Bytes, kept: bool, bytes: Bytes) {
    let _uncontained = Uncontained::new();
    // SAFETY: the closure is the collector of `of_sections`, and the bytes live during this call.
    let (collector, bytes) = unsafe { (&mut *closure.cast::<Collector<'_>>(), bytes.as_slice()) };
    collector.constants.push(Constant {
        name: text(name),
        section: text(section),
        kept,
        bytes: bytes.to_vec(),
        pointers: Vec::new(),
    });
}

extern "C" fn add_pointer(closure: *mut c_void, offset: u64, target: i64, addend: i64, name: Bytes) {
    let _uncontained = Uncontained::new();
    // SAFETY: the closure is the collector of `of_sections`.
    let collector = unsafe { &mut *closure.cast::<Collector<'_>>() };
    if let Some(constant) = collector.constants.last_mut() {
        constant.pointers.push(Pointer {
            offset,
            target: usize::try_from(target).ok(),
            addend,
            symbol: text(name),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::llvm::DeviceContext;

    fn read(text: &str, limit: u64) -> Result<Vec<Constant>, LlvmError> {
        let context = DeviceContext::new();
        let module = context.parse(text.as_bytes(), "constants")?;
        of_sections(&module, &|section| section.starts_with("wanted"), limit)
    }

    const LAYOUT: &str = "target datalayout = \"e-m:e-i64:64-S128\"\n";

    #[test]
    fn structures_become_bytes_and_pointers() {
        let constants = read(
            &format!(
                "{LAYOUT}@text = internal constant [3 x i8] c\"ab\\00\"\n@large = global [4096 x i8] zeroinitializer\n\
                 @a = constant {{ i16, ptr, [2 x i32], ptr, ptr }} {{ i16 258, ptr getelementptr (i8, ptr @text, i64 1), \
                 [2 x i32] [i32 1, i32 undef], ptr @large, ptr null }}, section \"wanted\"\n\
                 @b = constant i8 7, section \"other\"\n@llvm.used = appending global [1 x ptr] [ptr @a]\n"
            ),
            1000,
        )
        .expect("constants");
        let [a, text] = constants.as_slice() else {
            panic!("{constants:?}")
        };
        assert_eq!((a.name.as_str(), a.section.as_str(), a.kept), ("a", "wanted", true));
        let mut expected = [0; 40];
        (expected[0], expected[1], expected[16]) = (2, 1, 1);
        assert_eq!(a.bytes, expected);
        let pointer = |offset, target, addend, symbol: &str| Pointer {
            offset,
            target,
            addend,
            symbol: symbol.to_owned(),
        };
        assert_eq!(
            a.pointers,
            [pointer(8, Some(1), 1, "text"), pointer(24, None, 0, "large")]
        );
        assert_eq!((text.bytes.as_slice(), text.kept), (&b"ab\0"[..], false));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (module, message) in [
            (
                "@a = constant [2000 x i8] zeroinitializer, section \"wanted\"",
                "the initializer of the global variable a cannot be read: it is too large",
            ),
            (
                "@a = constant ptr inttoptr (i64 5 to ptr), section \"wanted\"",
                "the initializer of the global variable a cannot be read",
            ),
            (
                // As many parts as would take ages, of which none has a byte.
                "@a = constant [100000 x [100000 x [100000 x { }]]] undef, section \"wanted2\"\n\
                 @b = constant <4 x i24> <i24 1, i24 2, i24 3, i24 4>, section \"wanted\"",
                "the initializer of the global variable b cannot be read",
            ),
        ] {
            let error = read(&format!("{LAYOUT}{module}\n"), 1000)
                .expect_err(module)
                .to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = read("target datalayout = \"e-p:32:32\"\n", 1000).expect_err("32 bits");
        assert_eq!(error.to_string(), "the host is not a little-endian machine of 64 bits");
    }
}
