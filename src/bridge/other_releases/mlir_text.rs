//! MLIR's generic form gives the properties of operations by name: `"gpu.func"() <{kernel, sym_name = "k"}>`. A name that the
//! operation does not have is passed over by MLIR's parser without a word, and what it said is lost.

use std::collections::BTreeSet;

use melior::Context;

use crate::bridge::contain::Bytes;

unsafe extern "C-unwind" {
    fn gpulowerMayHaveProperty(context: mlir_sys::MlirContext, operation: Bytes, property: Bytes) -> bool;
}

/// Properties that have a rule in `cpp/other_releases.cpp`: an operation that has one is parsed under the second name, of the same
/// length, so that places stay what they are.
const RULES: [(&str, &str, &str); 2] = [
    ("gpu.func", "kernel", "gpu.Func"),
    ("gpu.func", "workgroup_attributions", "gpu.Func"),
];

/// A property that MLIR 22 would pass over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostProperty {
    pub(crate) operation: String,
    pub(crate) property: String,
    /// Where the operation stands, in bytes.
    pub(crate) at: usize,
}

/// The text as MLIR 22 is to parse it; `None` where it is as it should be.
pub(crate) fn bring_over(context: &Context, text: &[u8]) -> Result<Option<Vec<u8>>, LostProperty> {
    // Without it no operation is in generic form.
    if !text.windows(2).any(|pair| pair == b"\"(") {
        return Ok(None);
    }
    let mut renamed: Option<Vec<u8>> = None;
    let mut scanner = Scanner { text, at: 0 };
    let mut known = BTreeSet::new();
    while let Some((at, operation)) = scanner.next_operation() {
        let mut to = None;
        for property in scanner.properties() {
            if let Some((.., name)) = RULES.iter().find(|(of, name, _)| (*of, *name) == (operation, property)) {
                to = Some(*name);
            } else if known.insert((operation, property)) && !may_have(context, operation, property) {
                return Err(LostProperty {
                    operation: operation.to_owned(),
                    property: property.to_owned(),
                    at,
                });
            }
        }
        if let Some(name) = to {
            let copy = renamed.get_or_insert_with(|| text.to_vec());
            if let Some(place) = copy.get_mut(at + 1..at + 1 + name.len()) {
                place.copy_from_slice(name.as_bytes());
            }
        }
    }
    Ok(renamed)
}

fn may_have(context: &Context, operation: &str, property: &str) -> bool {
    let (operation, property) = (Bytes::new(operation.as_bytes()), Bytes::new(property.as_bytes()));
    // SAFETY: the context is alive, and the strings live during the call.
    unsafe { gpulowerMayHaveProperty(context.to_raw(), operation, property) }
}

/// Walks over tokens: strings and comments are passed over as wholes.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// The contents of the string that begins here, which is passed over.
    fn string(&mut self) -> &'a [u8] {
        let start = self.at + 1;
        let mut end = start;
        while let Some(byte) = self.text.get(end).filter(|byte| **byte != b'"') {
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        self.at = end.saturating_add(1).min(self.text.len());
        self.text.get(start..end).unwrap_or_default()
    }

    /// Passes over a token: a string, a comment, an arrow, a comparison, or one character. Gives its first byte, 0 for those
    /// that are no bracket.
    fn token(&mut self) -> Option<u8> {
        let rest = self.rest();
        let length = match rest {
            [] => return None,
            [b'"', ..] => {
                self.string();
                return Some(0);
            }
            [b'/', b'/', ..] => rest.iter().take_while(|byte| **byte != b'\n').count(),
            [b'-', b'>', ..] | [b'>' | b'<', b'=', ..] => 2,
            [byte, ..] => {
                self.at += 1;
                return Some(*byte);
            }
        };
        self.at += length;
        Some(0)
    }

    /// The next operation in generic form that has properties, and where its name begins; the properties come next.
    fn next_operation(&mut self) -> Option<(usize, &'a str)> {
        loop {
            if self.rest().first() != Some(&b'"') {
                self.token()?;
                continue;
            }
            let start = self.at;
            let name = self.string();
            if self.rest().first() != Some(&b'(') {
                continue;
            }
            self.skip_group();
            self.skip_blanks();
            if self.rest().first() == Some(&b'[') {
                self.skip_group();
                self.skip_blanks();
            }
            if self.rest().starts_with(b"<{")
                && let Ok(name) = std::str::from_utf8(name)
            {
                return Some((start, name));
            }
        }
    }

    /// Passes over brackets and what is in them.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.token() {
            match byte {
                b'(' | b'[' | b'{' | b'<' => depth += 1,
                b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// The names in `<{a = 1, b}>`, which begins here and is passed over.
    fn properties(&mut self) -> Vec<&'a str> {
        let mut names = Vec::new();
        self.at += 2;
        loop {
            self.skip_blanks();
            let name = match self.rest().first() {
                Some(b'"') => self.string(),
                _ => {
                    let rest = self.rest();
                    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$-".contains(byte);
                    let length = rest.iter().take_while(|byte| is_name(byte)).count();
                    self.at += length;
                    rest.get(..length).unwrap_or_default()
                }
            };
            names.extend(std::str::from_utf8(name).ok().filter(|name| !name.is_empty()));
            // The value, up to the next name.
            loop {
                match self.rest().first() {
                    None => return names,
                    Some(b'(' | b'[' | b'{' | b'<') if !self.rest().starts_with(b"<=") => self.skip_group(),
                    Some(b'}') => {
                        self.at += 1;
                        return names;
                    }
                    Some(b',') => {
                        self.at += 1;
                        break;
                    }
                    Some(_) => {
                        self.token();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compiler::{context, parse},
        device::lower::name_of,
    };
    use melior::ir::{
        BlockLike, Module,
        operation::{OperationLike, OperationPrintingFlags},
    };

    fn found(text: &str) -> Vec<(&str, Vec<&str>)> {
        let mut scanner = Scanner {
            text: text.as_bytes(),
            at: 0,
        };
        let mut all = Vec::new();
        while let Some((_, name)) = scanner.next_operation() {
            all.push((name, scanner.properties()));
        }
        all
    }

    #[test]
    fn names_of_properties_are_found_behind_any_value() {
        let text = r#"// "a.b"() <{no}>
            "a.b"(%0, %1)[^bb1, ^bb2] <{map = affine_map<(d0) -> (d0)>, set = affine_set<(d0) : (d0 >= 0)>, "q w" = "}>, x",
              unit, type = (memref<?xf32>) -> (), list = [#x<1>, {y = 2}]}> ({ "c.d"() <{z}> : () -> () }) : () -> ()
            "e.f"() {"g" = "h"} : () -> ()
            %2 = "i.j"() <{}> : () -> i32"#;
        assert_eq!(
            found(text),
            [
                ("a.b", vec!["map", "set", "q w", "unit", "type", "list"]),
                ("c.d", vec!["z"]),
                ("i.j", vec![]),
            ]
        );
        // What is cut off ends.
        for end in 0..text.len() {
            found(&text[..end]);
        }
    }

    fn first_function<'c>(module: &Module<'c>) -> String {
        let gpu_module = module.body().first_operation().expect("an operation");
        use melior::ir::RegionLike;
        let block = gpu_module.region(0).expect("a region").first_block().expect("a block");
        let function = block.first_operation().expect("a function");
        assert_eq!(name_of(&function), "gpu.func");
        function.to_string()
    }

    #[test]
    fn kernels_of_mlir_23_are_kernels() {
        let context = context();
        // As MLIR 23.0.0git writes it.
        let text = br#""builtin.module"() ({
  "gpu.module"() <{sym_name = "m"}> ({
    "gpu.func"() <{function_type = (memref<?xi32>) -> (), kernel, known_block_size = array<i32: 256, 1, 1>, workgroup_attributions = 1 : i64}> ({
    ^bb0(%arg0: memref<?xi32>, %arg1: memref<256xi32, #gpu.address_space<workgroup>>):
      "gpu.return"() : () -> ()
    }) {sym_name = "k", workgroup_attrib_attrs = []} : () -> ()
  }) : () -> ()
}) : () -> ()"#;
        let text = String::from_utf8_lossy(text).replace(", workgroup_attrib_attrs = []", "");
        let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
        let function = first_function(&module);
        assert!(
            function.contains(" kernel ") && function.contains("workgroup(%"),
            "{function}"
        );
        assert!(function.contains("known_block_size"), "{function}");
        // Where there is none, the number is left out, and MLIR's lowering of a reduction would crash.
        let text = text
            .replace(", workgroup_attributions = 1 : i64", "")
            .replace(", %arg1: memref<256xi32, #gpu.address_space<workgroup>>", "");
        let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
        let flags = OperationPrintingFlags::new().print_generic_operation_form();
        let generic = module.as_operation().to_string_with_flags(flags).expect("prints");
        assert!(generic.contains("workgroup_attributions = 0 : i64"), "{generic}");
    }

    #[test]
    fn what_would_be_lost_is_refused_with_its_place() {
        let context = context();
        let text = "\"builtin.module\"() ({\n  \"gpu.module\"() <{sym_name = \"m\", color = 3 : i32}> ({}) : () -> ()\n}) : () -> ()";
        let error = parse(&context, "k.mlir", text.as_bytes())
            .map(drop)
            .expect_err("is refused");
        assert_eq!(error.location(), Some("\"k.mlir\":2:3"));
        let text = error.to_string();
        assert!(
            text.starts_with("gpu.module has no property 'color' in MLIR 22"),
            "{text}"
        );
    }

    /// What this release writes is read whatever it says: properties that are attributes, and others.
    #[test]
    fn generic_text_of_this_release_stays_as_it_is() {
        let context = context();
        let text = "gpu.module @m { llvm.func @k(%p: !llvm.ptr, %i: i64) -> i64 attributes {gpu.kernel, nvvm.kernel} {
            %q = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
            %v = llvm.load %q : !llvm.ptr -> i64
            %w = llvm.mul %v, %i overflow<nsw> : i64
            %x = llvm.call @k(%q, %w) : (!llvm.ptr, i64) -> i64
            llvm.return %x : i64 } }";
        let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
        let flags = OperationPrintingFlags::new().print_generic_operation_form();
        let generic = module.as_operation().to_string_with_flags(flags).expect("prints");
        assert!(
            generic.contains("overflowFlags") && generic.contains("noWrapFlags"),
            "{generic}"
        );
        assert_eq!(bring_over(&context, generic.as_bytes()), Ok(None));
        // MLIR 19 does not say which operands of a call are arguments.
        let older = generic.replace(
            "op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 2, 0>, ",
            "",
        );
        let older = older.replace(
            ", op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 2, 0>",
            "",
        );
        assert!(!older.contains("op_bundle_sizes"), "{older}");
        let module = parse(&context, "k.mlir", older.as_bytes()).expect("parses");
        let again = module.as_operation().to_string();
        assert!(
            again.contains("llvm.call @k(%2") || again.contains("llvm.call @k(%0"),
            "{again}"
        );
    }

    #[test]
    fn the_end_of_a_module_of_mlir_19_is_passed_over() {
        let context = context();
        let text = br#""builtin.module"() ({
  "gpu.module"() <{sym_name = "m"}> ({
    "gpu.func"() <{function_type = () -> ()}> ({
      "gpu.return"() : () -> ()
    }) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
    "gpu.module_end"() : () -> ()
  }) : () -> ()
}) : () -> ()"#;
        let module = parse(&context, "k.mlir", text).expect("parses");
        assert!(first_function(&module).contains(" kernel"));
    }
}
