use super::super::release::FinishWith;
use super::*;

fn for_releases(list: &str, runtime: Runtime) -> Result<LayoutSet, TargetError> {
    choose(list.parse::<FinishWith>().expect(list).clangs(), runtime)
}

#[test]
fn one_object_serves_what_can_be_served() {
    use EntryLayout::{Clang15, Clang18, Clang20, Clang21};
    for (list, runtime, layouts, serves) in [
        ("15..17", Runtime::Cuda, vec![Clang15], "15..19"),
        ("19", Runtime::Cuda, vec![Clang18], "18..19"),
        ("17,19", Runtime::Cuda, vec![Clang15], "15..19"),
        ("20", Runtime::Cuda, vec![Clang20], "20"),
        ("22", Runtime::Cuda, vec![Clang21], "21..23"),
        ("15..19,21..23", Runtime::Cuda, vec![Clang15, Clang21], "15..19,21..23"),
        ("18,23", Runtime::Cuda, vec![Clang18, Clang21], "18..19,21..23"),
        ("20..23", Runtime::Cuda, vec![Clang20, Clang21], "20..23"),
        ("15..19", Runtime::Hip, vec![Clang15], "15..19"),
        ("20", Runtime::Hip, vec![Clang20], "20"),
        ("21..23", Runtime::Hip, vec![Clang21], "21..23"),
    ] {
        let set = for_releases(list, runtime).expect(list);
        assert_eq!(set.layouts, layouts, "{list}");
        assert_eq!(
            set.serves(),
            serves.parse::<FinishWith>().expect(serves).clangs(),
            "{list}"
        );
        let hip = OffloadKind::Hip.number(set.numbering);
        assert_eq!(
            hip == Some(4),
            set.releases.iter().any(|release| release.number() > 20),
            "{list}"
        );
    }
}

#[test]
fn what_no_object_serves_is_refused() {
    for (list, runtime, message) in [
        (
            "15..20",
            Runtime::Cuda,
            "no object serves clang 15 to 19 and clang 20 at once: both read entries from the section \
             cuda_offloading_entries, with 32 bytes each up to clang 19 and 56 from clang 20 on; export twice (one \
             object can be for clang 15 to 19 and 21 to 23, another for 20 to 23)",
        ),
        (
            "19..23",
            Runtime::Cuda,
            "no object serves clang 19 and clang 20 at once: both read entries from the section \
             cuda_offloading_entries, with 32 bytes each up to clang 19 and 56 from clang 20 on; export twice (one \
             object can be for clang 15 to 19 and 21 to 23, another for 20 to 23)",
        ),
        (
            "19,20",
            Runtime::Hip,
            "no object serves clang 19 and clang 20 at once: both read entries from the section \
             hip_offloading_entries, with 32 bytes each up to clang 19 and 56 from clang 20 on; export twice (one \
             object can be for clang 15 to 19)",
        ),
        (
            "20..23",
            Runtime::Hip,
            "no object for HIP serves clang 20 and clang 21 to 23 at once: an image's language HIP is number 3 up to \
             clang 20 and 4 from clang 21 on, and the others register nothing; export once for each",
        ),
    ] {
        let error = for_releases(list, runtime).expect_err(list).to_string();
        assert_eq!(error, message, "{list}");
    }
    let error = choose(&[], Runtime::Cuda).expect_err("empty").to_string();
    assert!(error.starts_with("no release of clang is named"), "{error}");
}

#[test]
fn images_by_release() {
    let takers = |form| {
        let takers: Vec<_> = ClangRelease::all()
            .filter(|release| refusal(*release, form).is_none())
            .collect();
        ReleaseList(&takers).to_string()
    };
    assert_eq!(takers(ImageForm::RelocatableCubin), "clang 15 to 23");
    assert_eq!(takers(ImageForm::LinkedCubin), "clang ");
    assert_eq!(takers(ImageForm::Ptx), "clang 16 to 19");
    assert_eq!(takers(ImageForm::AmdObject(CodeObjectVersion::V4)), "clang 15 to 20");
    assert_eq!(takers(ImageForm::AmdObject(CodeObjectVersion::V5)), "clang 15 to 23");
    assert_eq!(takers(ImageForm::AmdObject(CodeObjectVersion::V6)), "clang 19 to 23");
    assert_eq!(takers(ImageForm::AmdLinked), "clang ");
}
