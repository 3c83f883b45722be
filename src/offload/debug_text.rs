//! Debug information in textual LLVM IR: whether clang 19 to 21 know every word of it.

/// Nodes that clang 19 knows.
const NODES: &[&str] = &[
    "DIArgList",
    "DIBasicType",
    "DICompileUnit",
    "DICompositeType",
    "DIDerivedType",
    "DIEnumerator",
    "DIExpression",
    "DIFile",
    "DIGlobalVariable",
    "DIGlobalVariableExpression",
    "DIImportedEntity",
    "DILabel",
    "DILexicalBlock",
    "DILexicalBlockFile",
    "DILocalVariable",
    "DILocation",
    "DINamespace",
    "DISubprogram",
    "DISubrange",
    "DISubroutineType",
    "DITemplateTypeParameter",
];

/// Their fields.
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "align", "allocated", "annotations", "arg", "associated", "baseType", "cc", "checksum", "checksumkind", "column",
    "containingType", "count", "dataLocation", "debugInfoForProfiling", "declaration", "defaulted", "directory",
    "discriminator", "dwarfAddressSpace", "dwoId", "elements", "emissionKind", "encoding", "entity", "enums",
    "exportSymbols", "expr", "extraData", "file", "filename", "flags", "globals", "identifier", "imports", "inlinedAt",
    "isDefinition", "isImplicitCode", "isLocal", "isOptimized", "isUnsigned", "language", "line", "linkageName",
    "lowerBound", "macros", "name", "nameTableKind", "offset", "producer", "rank", "rangesBaseAddress", "retainedNodes",
    "retainedTypes", "runtimeLang", "runtimeVersion", "scope", "scopeLine", "sdk", "size", "source", "spFlags",
    "splitDebugFilename", "splitDebugInlining", "stride", "sysroot", "tag", "targetFuncName", "templateParams",
    "thisAdjustment", "thrownTypes", "type", "types", "unit", "upperBound", "value", "var", "virtualIndex",
    "vtableHolder",
];

/// Records between instructions.
const RECORDS: &[&str] = &["dbg_assign", "dbg_declare", "dbg_label", "dbg_value"];

/// Whether every node, field and record of debug information is known to clang 19.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    text.lines()
        .filter(|line| line.contains("!DI") || line.contains("#dbg_"))
        .all(line_is_plain)
}

fn line_is_plain(line: &str) -> bool {
    let line = without_strings(line);
    let in_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let word_at = |at: usize| {
        let rest = line.get(at..).unwrap_or_default();
        rest.split(|next| !in_word(next)).next().unwrap_or_default()
    };
    let nodes = line
        .match_indices("!DI")
        .all(|(at, _)| NODES.contains(&word_at(at + 1)));
    let records = line
        .match_indices("#dbg_")
        .all(|(at, _)| RECORDS.contains(&word_at(at + 1)));
    // In front of a colon. Operations of expressions have none.
    let is_node = line.starts_with('!');
    let fields = line.match_indices(": ").all(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        let word = before.rsplit(|next| !in_word(next)).next().unwrap_or_default();
        !is_node || FIELDS.contains(&word)
    });
    nodes && records && fields
}

fn without_strings(line: &str) -> String {
    line.split('"').step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_plain() {
        assert!(is_plain(
            "  #dbg_value(i32 %x, !5, !DIExpression(DW_OP_deref), !6)\n\
             !5 = !DILocalVariable(name: \"a: b !DINew(x: 1)\", scope: !7, line: 3)\n\
             !6 = distinct !DILocation(line: 1, column: 2, scope: !7)\n!8 = !{!\"new: x\"}\n"
        ));
        assert!(is_plain("define void @f() {\nlabel: ret void\n}\n"));
    }

    #[test]
    fn new_words_are_not() {
        for text in [
            "  #dbg_declare_value(i32 %x, !5, !DIExpression(), !6)",
            "!1 = !DIFixedPointType(name: \"x\", size: 32)",
            "!1 = !DILocation(line: 1, column: 2, scope: !7, atomGroup: 1, atomRank: 2)",
            "!1 = distinct !DISubprogram(name: \"f\", keyInstructions: true)",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
