//! PTX of a kernel without what does not matter to its machine code: comments, blanks, the name of the kernel, and the
//! numbers that LLVM and nvcc give to the functions of a module.
//!
//! Kernels that differ in nothing else have the same text: it is compiled once, and [`super::join_cubin`] gives the result
//! the names of all of them.

use super::ptx_components::PtxComponent;
use super::ptx_tokens::{Token, Tokens};

/// What a kernel is called in the text.
pub const PLACEHOLDER: &str = "gpulower_kernel";

/// Names with the number of a function of the module: labels, and memory for its local variables.
const NUMBERED: [&str; 2] = ["$L__BB", "__local_depot"];

/// A component as it is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanonicalPtx {
    /// A PTX module.
    pub text: String,
    /// The kernel that is called [`PLACEHOLDER`] in it, if one is.
    pub kernel: Option<String>,
}

/// The text of a component that does not depend on the rest of the module. `None` for text that does not have the documented
/// form. The lines of the text are others: a component with line numbers (`.loc`) is better left as it is.
#[must_use]
pub fn canonical(component: &PtxComponent<'_>) -> Option<CanonicalPtx> {
    let text = component.text();
    let kernel = match component.kernels.as_slice() {
        [kernel] if !text.contains(PLACEHOLDER) => Some(*kernel),
        _ => None,
    };
    let mut writer = Writer {
        kernel,
        functions: Vec::new(),
        text: String::with_capacity(text.len()),
    };
    let mut tokens = Tokens::new(text.as_bytes());
    let mut end = 0;
    while let Some(token) = tokens.next().ok()? {
        let between = text.get(end..tokens.start)?;
        if between.contains('\n') {
            writer.text.push('\n');
        } else if !between.is_empty() {
            writer.text.push(' ');
        }
        end = tokens.start;
        match token {
            Token::Word(word) => {
                writer.word(std::str::from_utf8(word).ok()?);
                end += word.len();
            }
            Token::Text(text) => {
                writer.text.push('"');
                writer.text.push_str(std::str::from_utf8(text).ok()?);
                writer.text.push('"');
                end += text.len() + 2;
            }
            Token::Punctuation(byte) if byte.is_ascii() => {
                writer.text.push(char::from(byte));
                end += 1;
            }
            Token::Punctuation(_) => return None,
        }
    }
    writer.text.push('\n');
    Some(CanonicalPtx {
        kernel: kernel.map(str::to_owned),
        text: writer.text,
    })
}

/// One text of several kernels, each of which is called [`PLACEHOLDER`] in its own, with other names. `None` where they are for
/// different targets.
#[must_use]
pub fn together<'t>(kernels: impl Iterator<Item = (&'t str, &'t str)>) -> Option<String> {
    const LAST_OF_HEAD: &str = ".address_size ";
    let mut whole = String::new();
    let mut first_head = None;
    for (text, name) in kernels {
        let size = text.find(LAST_OF_HEAD)? + LAST_OF_HEAD.len();
        let rest = text
            .get(size..)?
            .trim_start_matches(|digit: char| digit.is_ascii_digit());
        let (head, rest) = text.split_at_checked(text.len() - rest.len())?;
        match first_head {
            None => whole.push_str(head),
            Some(first) if first == head => {}
            Some(_) => return None,
        }
        first_head = Some(head);
        whole.push_str(&rest.replace(PLACEHOLDER, name));
    }
    Some(whole)
}

struct Writer<'t> {
    kernel: Option<&'t str>,
    /// The numbers of functions, in the order in which they come.
    functions: Vec<&'t str>,
    text: String,
}

impl<'t> Writer<'t> {
    fn word(&mut self, word: &'t str) {
        let numbered = NUMBERED.iter().find_map(|name| Some((*name, word.strip_prefix(name)?)));
        if let Some((name, rest)) = numbered {
            let end = rest.bytes().position(|byte| !byte.is_ascii_digit());
            let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
            let known = self.functions.iter().position(|known| *known == number);
            let new = known.unwrap_or_else(|| {
                self.functions.push(number);
                self.functions.len() - 1
            });
            self.text.push_str(name);
            self.text.push_str(&new.to_string());
            self.text.push_str(rest);
            return;
        }
        match self.kernel.and_then(|kernel| of_kernel(word, kernel)) {
            Some((before, after)) => {
                self.text.push_str(before);
                self.text.push_str(PLACEHOLDER);
                self.text.push_str(after);
            }
            None => self.text.push_str(word),
        }
    }
}

/// What is before and after the kernel's name in a name that is made of it, and that is in no cubin: `K`, `K_param_3`, and
/// `__wg_K_0` (MLIR's workgroup memory).
fn of_kernel<'t>(word: &'t str, kernel: &str) -> Option<(&'t str, &'t str)> {
    const MEMORY: &str = "__wg_";
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = word.strip_prefix(kernel) {
        let is_parameter = rest.strip_prefix("_param_").is_some_and(is_number);
        return (rest.is_empty() || is_parameter).then_some(("", rest));
    }
    let rest = word.strip_prefix(MEMORY)?.strip_prefix(kernel)?;
    rest.strip_prefix('_').is_some_and(is_number).then_some((MEMORY, rest))
}

#[cfg(test)]
mod tests {
    use super::super::ptx_components::components;
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

    fn kernel(name: &str, number: usize) -> String {
        format!(
            "\t// .globl {name}\n.visible .entry {name}(  // @{name}\n\t.param .u64 {name}_param_0\n)\n{{\n\
             .local .b8 __local_depot{number}[8];\n.shared .align 4 .b8 __wg_{name}_0[64];\n\
             ld.param.u64 %rd1, [{name}_param_0];   // comment\n\
             $L__BB{number}_1:\n\t/* {number} */ @%p1 bra \t$L__BB{number}_1;\nmov.u32 %r1, __wg_{name}_0;\nret;\n}}\n"
        )
    }

    #[test]
    fn names_numbers_and_comments_do_not_matter() {
        let module = HEAD.to_owned() + &kernel("first", 0) + "\n\n" + &kernel("of_second", 1);
        let parts = components(&module).unwrap();
        let [one, two] = [&parts[0], &parts[1]].map(|part| canonical(part).unwrap());
        assert_eq!(one.text, two.text);
        assert_eq!(one.kernel.as_deref(), Some("first"));
        assert!(!one.text.contains("first") && !one.text.contains("//"), "{}", one.text);
        let again = canonical(&PtxComponent::whole(&one.text, &[PLACEHOLDER])).unwrap();
        assert_eq!((again.kernel, again.text), (None, one.text));
    }

    #[test]
    fn several_kernels_stand_in_one_text_with_one_head() {
        let module = HEAD.to_owned() + &kernel("first", 0) + "\n\n" + &kernel("of_second", 1);
        let of_all = |text: &str| {
            let all = components(text).unwrap();
            all.iter().map(|part| canonical(part).unwrap()).collect::<Vec<_>>()
        };
        let parts = of_all(&module);
        let named = |parts: &[CanonicalPtx]| {
            let all = parts
                .iter()
                .map(|part| (part.text.as_str(), part.kernel.as_deref().unwrap()));
            together(all)
        };
        let whole = named(&parts).unwrap();
        assert_eq!(whole.matches(".version").count(), 1);
        assert_eq!(of_all(&whole), parts);
        let other = of_all(&(HEAD.replace("sm_90", "sm_80") + &kernel("third", 2)));
        assert_eq!(named(&[parts, other].concat()), None);
        assert_eq!(together([("no PTX", "k")].into_iter()), None);
    }

    #[test]
    fn names_that_are_in_a_cubin_stay() {
        let text = ".func k_help() { ret; }\n.entry k() { call k_help; call __wg_k_x; $L__BB9_1: $L__BB3_1: ret; }";
        let found = canonical(&PtxComponent::whole(text, &["k"])).unwrap().text;
        assert_eq!(
            found,
            ".func k_help() { ret; }\n.entry gpulower_kernel() { call k_help; call __wg_k_x; $L__BB0_1: $L__BB1_1: ret; }\n"
        );
        let two = PtxComponent::whole(text, &["k", "l"]);
        assert!(canonical(&two).unwrap().text.contains(".entry k()"));
    }
}
