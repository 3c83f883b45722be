//! Tests of plans made from target lists.

use super::*;

fn try_plan(targets: &str, policy: Option<&str>) -> Result<TargetPlan, TargetError> {
    let targets = Target::parse_list(targets).expect(targets);
    let policy: Option<PtxPolicy> = policy.map(|policy| policy.parse().expect(policy));
    TargetPlan::from_targets(&targets, policy.as_ref())
}

/// `generation: image image; ...`
fn text(plan: &TargetPlan) -> String {
    let generations: Vec<String> = plan
        .generations
        .iter()
        .map(|generation| {
            let images: Vec<String> = generation.images.iter().map(PlannedImage::to_string).collect();
            format!("{}: {}", generation.target, images.join(", "))
        })
        .collect();
    generations.join("; ")
}

fn plan(targets: &str, policy: Option<&str>) -> String {
    text(&try_plan(targets, policy).expect(targets))
}

fn refusal(targets: &str, policy: &str) -> String {
    try_plan(targets, Some(policy)).expect_err(targets).to_string()
}

#[test]
fn every_chip_is_a_generation_of_its_own() {
    assert_eq!(
        plan("sm_80,sm_90a,gfx942:xnack-", None),
        "sm_80: cubin sm_80, ptx compute_80; sm_90a: cubin sm_90a; gfx942:xnack-: hsaco gfx942:xnack-"
    );
    // In the order given, each once.
    assert_eq!(
        plan("gfx942,sm_90,sm_80,sm_90", None),
        "gfx942: hsaco gfx942; sm_90: cubin sm_90; sm_80: cubin sm_80, ptx compute_80"
    );
    let repeated: Vec<Target> = ["sm_80", "sm_80"].iter().map(|name| name.parse().unwrap()).collect();
    let plan = TargetPlan::from_targets(&repeated, None).unwrap();
    assert_eq!(text(&plan), "sm_80: cubin sm_80, ptx compute_80");
}

#[test]
fn policies_choose_the_ptx() {
    let plan = |policy| plan("sm_90a,sm_89,sm_80,gfx1100", Some(policy));
    assert_eq!(
        plan("none"),
        "sm_90a: cubin sm_90a; sm_89: cubin sm_89; sm_80: cubin sm_80; gfx1100: hsaco gfx1100"
    );
    assert_eq!(
        plan("lowest"),
        "sm_90a: cubin sm_90a; sm_89: cubin sm_89; sm_80: cubin sm_80, ptx compute_80; gfx1100: hsaco gfx1100"
    );
    assert_eq!(
        plan("newest"),
        "sm_90a: cubin sm_90a; sm_89: cubin sm_89, ptx compute_89; sm_80: cubin sm_80; gfx1100: hsaco gfx1100"
    );
    assert_eq!(
        plan("all"),
        "sm_90a: cubin sm_90a, ptx compute_90a; sm_89: cubin sm_89, ptx compute_89; sm_80: cubin sm_80, ptx compute_80; \
         gfx1100: hsaco gfx1100"
    );
    // What is no target makes a generation of its own, PTX alone.
    assert_eq!(
        plan("compute_90,sm_90a"),
        "sm_90a: cubin sm_90a, ptx compute_90a; sm_89: cubin sm_89; sm_80: cubin sm_80; gfx1100: hsaco gfx1100; \
         compute_90: ptx compute_90"
    );
}

#[test]
fn virtual_targets_are_always_included() {
    assert_eq!(
        plan("compute_80,sm_90", None),
        "compute_80: ptx compute_80; sm_90: cubin sm_90"
    );
    assert_eq!(
        plan("compute_90,sm_80", Some("lowest")),
        "compute_90: ptx compute_90; sm_80: cubin sm_80, ptx compute_80"
    );
    assert_eq!(
        plan("compute_80", Some("sm_90")),
        "compute_80: ptx compute_80; compute_90: ptx compute_90"
    );
    assert_eq!(
        refusal("sm_80,compute_90a", "none"),
        "target compute_90a is PTX alone, and --include-ptx=none asks for no PTX: leave one of the two out, or name \
         sm_90a for machine code"
    );
}

#[test]
fn ptx_and_cubin_of_one_architecture_share_a_generation() {
    assert_eq!(plan("sm_90,compute_90", None), "sm_90: cubin sm_90, ptx compute_90");
    assert_eq!(
        plan("compute_90,sm_90", Some("all")),
        "sm_90: ptx compute_90, cubin sm_90"
    );
    assert_eq!(
        plan("sm_90+ptx83", None),
        "sm_90+ptx83: cubin sm_90+ptx83, ptx compute_90+ptx83"
    );
    // Another PTX ISA is another text.
    assert_eq!(
        plan("sm_90,compute_90+ptx83", None),
        "sm_90: cubin sm_90; compute_90+ptx83: ptx compute_90+ptx83"
    );
    assert_eq!(
        plan("sm_90", Some("sm_90+ptx83")),
        "sm_90: cubin sm_90; compute_90+ptx83: ptx compute_90+ptx83"
    );
}

#[test]
fn the_default_says_why_there_is_no_ptx() {
    let unasked = try_plan("sm_90a,sm_100f,gfx942", None).unwrap();
    assert_eq!(
        text(&unasked),
        "sm_90a: cubin sm_90a; sm_100f: cubin sm_100f; gfx942: hsaco gfx942"
    );
    assert_eq!(unasked.include_ptx, PtxPolicy::Lowest);
    let notes: Vec<String> = unasked.notes.iter().map(PlanNote::to_string).collect();
    assert_eq!(
        notes,
        [
            "no PTX is included: sm_90a, sm_100f are not portable, their PTX runs on no other chip or family; \
             --include-ptx=all includes it all the same"
        ]
    );
    assert_eq!(try_plan("gfx942", None).unwrap().notes, []);
    assert_eq!(try_plan("sm_90a,sm_80", None).unwrap().notes, []);
    assert_eq!(try_plan("sm_90a", Some("none")).unwrap().notes, []);
}

#[test]
fn a_policy_that_was_asked_for_is_honoured_or_refused() {
    for policy in ["lowest", "newest"] {
        assert_eq!(
            refusal("sm_90a,sm_100f", policy),
            format!(
                "--include-ptx={policy} finds no portable target among sm_90a, sm_100f: PTX of a target with a or f runs \
                 on that chip or family alone; --include-ptx=all, or --include-ptx=sm_90a, includes it all the same, and \
                 --include-ptx=sm_80, say, adds PTX of a portable one"
            )
        );
        assert_eq!(
            refusal("gfx942", policy),
            format!(
                "--include-ptx={policy} finds no NVIDIA target: PTX is NVIDIA's; name one, or leave the policy out"
            )
        );
    }
    assert!(refusal("gfx942", "all").starts_with("--include-ptx=all finds no NVIDIA target"));
    assert_eq!(plan("sm_90a", Some("all")), "sm_90a: cubin sm_90a, ptx compute_90a");
    assert_eq!(plan("gfx942", Some("none")), "gfx942: hsaco gfx942");
}

#[test]
fn images_that_cannot_be_told_apart_are_refused() {
    assert_eq!(
        refusal("sm_90,sm_90+ptx83", "none"),
        "targets sm_90 and sm_90+ptx83 would both make a cubin for sm_90: leave one of them out"
    );
    assert_eq!(
        refusal("compute_90+ptx80,compute_90", "all"),
        "targets compute_90+ptx80 and compute_90 would both make a PTX for sm_90: leave one of them out"
    );
    assert!(refusal("gfx90a,gfx90a:xnack+", "none").contains("cannot be in one binary"));
    assert_eq!(
        TargetPlan::from_targets(&[], None).unwrap_err().to_string(),
        "nothing to make: name at least one target, such as sm_90 or gfx942"
    );
}

#[test]
fn images_come_in_the_order_of_a_container() {
    let plan = try_plan("gfx942,sm_90,sm_80", None).unwrap();
    let images = |vendor| -> Vec<String> {
        plan.images_of(vendor)
            .map(|(generation, image)| format!("{generation} {image}"))
            .collect()
    };
    assert_eq!(
        images(Vendor::Nvidia),
        ["1 cubin sm_90", "2 cubin sm_80", "2 ptx compute_80"]
    );
    assert_eq!(images(Vendor::Amd), ["0 hsaco gfx942"]);
    assert_eq!(plan.images().count(), 4);
    assert_eq!(plan.stored_policy(), Some(&PtxPolicy::Lowest));
    assert_eq!(try_plan("gfx942", None).unwrap().stored_policy(), None);
    let (_, image) = plan.images_of(Vendor::Nvidia).last().unwrap();
    assert!(image.is_ptx());
    assert_eq!(image.arch(), NvidiaArch::parse("sm_80"));
}
