//! LLVM IR as text, in the subset that clang 15 to 23 read alike: opaque pointers, no attributes, no debug info.

use std::fmt::Write;

use super::triple::HostTriple;

/// A module that is put together from parts.
#[derive(Clone, Debug, Default)]
pub struct IrText {
    body: String,
    used: Vec<String>,
    compiler_used: Vec<String>,
    constructors: Vec<(u32, String)>,
    embedded: Vec<(String, &'static str)>,
    offloading_symbols: Vec<String>,
    strings: usize,
}

impl IrText {
    /// Adds a definition or declaration.
    pub fn define(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }

    /// Adds a string that ends with a NUL byte, and returns its symbol. `attributes` follow the initializer.
    pub fn string(&mut self, prefix: &str, text: &str, attributes: &str) -> String {
        let name = symbol(&format!("{prefix}.{}", self.strings));
        self.strings += 1;
        let length = text.len() + 1;
        let bytes = bytes(text.as_bytes());
        let _ = writeln!(
            self.body,
            "{name} = internal unnamed_addr constant [{length} x i8] c\"{bytes}\\00\"{attributes}"
        );
        name
    }

    /// Keeps a symbol through optimisation and the linker's garbage collection.
    pub fn keep(&mut self, symbol: String) {
        self.used.push(symbol);
    }

    /// Keeps a symbol through optimisation.
    pub fn keep_in_compiler(&mut self, symbol: String) {
        self.compiler_used.push(symbol);
    }

    /// Runs a function before `main`.
    pub fn constructor(&mut self, priority: u32, function: String) {
        self.constructors.push((priority, function));
    }

    /// Notes a symbol with an embedded object, for a link of bitcode.
    pub fn embedded(&mut self, symbol: String, section: &'static str) {
        self.embedded.push((symbol, section));
    }

    /// Notes the name of an offload entry.
    pub fn offloading_symbol(&mut self, symbol: String) {
        self.offloading_symbols.push(symbol);
    }

    /// The whole module. The data layout is that of the LLVM which makes the rest of the host code.
    #[must_use]
    pub fn finish(&self, triple: &HostTriple, data_layout: &str) -> String {
        let mut text = String::with_capacity(self.body.len() + 1024);
        let _ = writeln!(text, "target datalayout = \"{}\"", bytes(data_layout.as_bytes()));
        let _ = writeln!(text, "target triple = \"{}\"\n", bytes(triple.as_str().as_bytes()));
        text.push_str(&self.body);
        text.push('\n');
        pointers(&mut text, "llvm.used", &self.used);
        pointers(&mut text, "llvm.compiler.used", &self.compiler_used);
        if !self.constructors.is_empty() {
            let entries: Vec<String> = self
                .constructors
                .iter()
                .map(|(priority, function)| {
                    format!("{{ i32, ptr, ptr }} {{ i32 {priority}, ptr {function}, ptr null }}")
                })
                .collect();
            let _ = writeln!(
                text,
                "@llvm.global_ctors = appending global [{} x {{ i32, ptr, ptr }}] [{}]",
                entries.len(),
                entries.join(", ")
            );
        }
        self.metadata(&mut text);
        text
    }

    fn metadata(&self, text: &mut String) {
        // Node 0 is the empty one, which `!exclude` refers to.
        let mut nodes = String::from("!0 = !{}\n");
        let mut count = 0;
        let mut node = |content: String| {
            count += 1;
            let _ = writeln!(nodes, "!{count} = !{{{content}}}");
            format!("!{count}")
        };
        let embedded: Vec<String> = self
            .embedded
            .iter()
            .map(|(symbol, section)| node(format!("ptr {symbol}, !\"{section}\"")))
            .collect();
        let symbols: Vec<String> = self
            .offloading_symbols
            .iter()
            .map(|name| node(format!("ptr {name}")))
            .collect();
        text.push('\n');
        for (name, list) in [
            ("llvm.embedded.objects", embedded),
            ("llvm.offloading.symbols", symbols),
        ] {
            if !list.is_empty() {
                let _ = writeln!(text, "!{name} = !{{{}}}", list.join(", "));
            }
        }
        text.push_str(&nodes);
    }
}

fn pointers(text: &mut String, name: &str, symbols: &[String]) {
    if symbols.is_empty() {
        return;
    }
    let list: Vec<String> = symbols.iter().map(|symbol| format!("ptr {symbol}")).collect();
    let _ = writeln!(
        text,
        "@{name} = appending global [{} x ptr] [{}], section \"llvm.metadata\"",
        symbols.len(),
        list.join(", ")
    );
}

/// A global symbol: `@name`, quoted.
#[must_use]
pub fn symbol(name: &str) -> String {
    format!("@\"{}\"", bytes(name.as_bytes()))
}

/// What stands between the quotes of a string or name.
#[must_use]
pub fn bytes(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    let digit = |value: u8| DIGITS.get(usize::from(value & 15)).copied().unwrap_or('0');
    let mut text = String::with_capacity(bytes.len() * 2);
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                text.push('\\');
                text.push(digit(byte >> 4));
                text.push(digit(byte));
            }
            _ => text.push(char::from(byte)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_symbols_are_quoted() {
        assert_eq!(bytes(b"a\"b\\\n\x7f\xff\0"), "a\\22b\\5C\\0A\\7F\\FF\\00");
        assert_eq!(symbol("k.1 \u{e4}"), "@\"k.1 \\C3\\A4\"");
    }

    #[test]
    fn parts_come_together() {
        let mut module = IrText::default();
        let name = module.string(".name", "k", ", align 1");
        module.keep(name.clone());
        module.keep_in_compiler(name.clone());
        module.embedded(name.clone(), ".s");
        module.offloading_symbol(name.clone());
        module.constructor(101, symbol("f"));
        let triple: HostTriple = "x86_64-unknown-linux-gnu".parse().expect("a host");
        let text = module.finish(&triple, "e-m:e");
        for line in [
            "target datalayout = \"e-m:e\"",
            "target triple = \"x86_64-unknown-linux-gnu\"",
            "@\".name.0\" = internal unnamed_addr constant [2 x i8] c\"k\\00\", align 1",
            "@llvm.used = appending global [1 x ptr] [ptr @\".name.0\"], section \"llvm.metadata\"",
            "@llvm.compiler.used = appending global [1 x ptr] [ptr @\".name.0\"], section \"llvm.metadata\"",
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 101, ptr @\"f\", ptr null }]",
            "!llvm.embedded.objects = !{!1}",
            "!llvm.offloading.symbols = !{!2}",
            "!0 = !{}",
            "!1 = !{ptr @\".name.0\", !\".s\"}",
            "!2 = !{ptr @\".name.0\"}",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
    }
}
