//! Diagrams of a brain's structure: as a tree of text, and as a flowchart in Mermaid's language.

use std::fmt::Write as _;

use positronic_core::dsl::{ArmStructure, StageStructure, Structure, ToolStructure};
use positronic_core::record::StageKind;

/// Draws a brain as a tree of text.
pub(crate) fn tree(structure: &Structure) -> String {
    let mut text = format!("{}\n", structure.title);
    stages(&mut text, structure, "");
    text
}

fn stages(text: &mut String, structure: &Structure, indent: &str) {
    let last = structure.stages.len().saturating_sub(1);
    for (index, stage) in structure.stages.iter().enumerate() {
        let (branch, below) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        _ = writeln!(text, "{indent}{branch}{}  {}", stage.name, kind(stage));
        let indent = format!("{indent}{below}");
        if let Some(brain) = &stage.brain {
            stages(text, brain, &indent);
        }
        let parts = parts(stage);
        let last = parts.len().saturating_sub(1);
        for (index, (title, brain)) in parts.into_iter().enumerate() {
            let (branch, below) = if index == last { ("└→ ", "   ") } else { ("├→ ", "│  ") };
            _ = writeln!(text, "{indent}{branch}{title}");
            if let Some(brain) = brain {
                stages(text, brain, &format!("{indent}{below}"));
            }
        }
    }
}

/// Names the kind of a stage, with what else identifies it.
pub(crate) fn kind(stage: &StageStructure) -> String {
    let kind = stage.kind;
    let brain = stage.brain.as_ref().map(|brain| &brain.title).filter(|title| **title != stage.name);
    let brain = brain.map_or_else(String::new, |title| format!(" {title}"));
    let rounds = stage.rounds.map_or_else(String::new, |rounds| format!(", at most {rounds} rounds"));
    let undo = if stage.undo { ", can be undone" } else { "" };
    format!("({kind}{brain}{rounds}{}{undo})", waits(kind, &stage.webhooks))
}

/// Names the webhooks for which a stage waits.
fn waits(kind: StageKind, webhooks: &[String]) -> String {
    match webhooks {
        [] => String::new(),
        // A form is a question to a person, which says enough.
        _ if kind == StageKind::AskPerson => String::new(),
        webhooks if kind == StageKind::Loop => format!(", tools wait for {}", webhooks.join(" or ")),
        webhooks => format!(" {}", webhooks.join(" or ")),
    }
}

/// Names the arms of a stage, and the tools that a loop always has, each with its brain.
pub(crate) fn parts(stage: &StageStructure) -> Vec<(String, Option<&Structure>)> {
    let arms = stage.arms.iter().map(|arm| (arm_title(arm), arm.brain.as_ref()));
    arms.chain(stage.tools.iter().map(|tool| (tool_title(tool), tool.brain.as_ref()))).collect()
}

fn tool_title(tool: &ToolStructure) -> String {
    let brain = tool.brain.as_ref().map(|brain| brain.title.as_str());
    let approval = tool.approval.then_some("can need an approval");
    let about: Vec<_> = brain.into_iter().chain(approval).chain(tool.exit.then_some("ends the loop")).collect();
    let about = if about.is_empty() { String::new() } else { format!("  ({})", about.join(", ")) };
    format!("tool {}{about}", tool.name)
}

fn arm_title(arm: &ArmStructure) -> String {
    let brain = arm.brain.as_ref().map(|brain| &brain.title).filter(|title| **title != arm.name);
    brain.map_or_else(|| arm.name.clone(), |title| format!("{}  ({title})", arm.name))
}

/// Draws a brain as a flowchart for Mermaid. Ids come from places, so that two uses of one brain are two boxes.
pub(crate) fn mermaid(structure: &Structure) -> String {
    let mut text = "flowchart TD\n".to_owned();
    flow(&mut text, structure, "s", 1);
    text
}

fn flow(text: &mut String, structure: &Structure, place: &str, depth: usize) {
    let indent = "  ".repeat(depth);
    let ids: Vec<_> = (0..structure.stages.len()).map(|index| format!("{place}{index}")).collect();
    for (id, stage) in ids.iter().zip(&structure.stages) {
        let label = label(&format!("{} {}", stage.name, kind(stage)));
        let parts = parts(stage);
        if stage.brain.is_none() && parts.is_empty() {
            _ = writeln!(text, "{indent}{id}{}", shape(stage.kind, &label));
            continue;
        }
        _ = writeln!(text, "{indent}subgraph {id}[\"{label}\"]");
        if let Some(brain) = &stage.brain {
            flow(text, brain, &format!("{id}_"), depth + 1);
        }
        for (index, (title, brain)) in parts.into_iter().enumerate() {
            let (id, indent, label) = (format!("{id}_{index}"), "  ".repeat(depth + 1), self::label(&title));
            match brain {
                Some(brain) => {
                    _ = writeln!(text, "{indent}subgraph {id}[\"{label}\"]");
                    flow(text, brain, &format!("{id}_"), depth + 2);
                    _ = writeln!(text, "{indent}end");
                }
                None => _ = writeln!(text, "{indent}{id}[\"{label}\"]"),
            }
        }
        _ = writeln!(text, "{indent}end");
    }
    for pair in ids.windows(2) {
        if let [before, after] = pair {
            _ = writeln!(text, "{indent}{before} --> {after}");
        }
    }
}

/// Draws one stage without stages below it.
fn shape(kind: StageKind, label: &str) -> String {
    match kind {
        StageKind::Loop | StageKind::Prompt => format!("([\"{label}\"])"),
        StageKind::Guard => format!("{{{{\"{label}\"}}}}"),
        StageKind::Wait | StageKind::AskPerson | StageKind::Sleep | StageKind::Join => format!("[/\"{label}\"/]"),
        _ => format!("[\"{label}\"]"),
    }
}

/// Escapes what Mermaid reads in a quoted label.
fn label(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use positronic_core::dsl::IntoBrain as _;
    use positronic_core::prelude::*;

    use super::*;

    fn nested() -> Structure {
        let check = || brain("Check").options::<u32>().step("Look \"closely\"", async |_| Ok(1));
        let outer = brain("Outer")
            .state(1_u32)
            .map("Items", |n| vec![*n], check(), |_, all| all.len() as u32)
            .branch("By size", |mut b| {
                let check = b.arm("Large", check(), |n| *n, |_, one| one);
                let small = b.pass("Small", |n| n);
                b.choose(move |n| if *n > 3 { check } else { small })
            })
            .guard("Any", |n| *n > 0)
            .step("Book", async |cx| Ok(cx.state))
            .compensate(async |_| Ok(()))
            .repeat("Again", 3, check(), |n| *n, |n, one| n + one, |n| *n > 5)
            .r#loop("Chat", |cx| cx.system("Help."))
            .tools([
                Tool::new("check", |t| t.brain(check())),
                Tool::new("send", |t| {
                    t.approval(|_: &NoArgs, _| Some("it leaves the house".to_owned()))
                        .exit()
                        .execute(async |_: NoArgs, _| Ok("sent"))
                }),
            ])
            .waits_for(&webhook::<u32>("payment"));
        outer.definition().structure()
    }

    #[test]
    fn tree_has_each_use_of_a_brain() {
        insta::assert_snapshot!(tree(&nested()), @r#"
        Outer
        ├─ Items  (map Check)
        │  └─ Look "closely"  (step)
        ├─ By size  (branch)
        │  ├→ Large  (Check)
        │  │  └─ Look "closely"  (step)
        │  └→ Small
        ├─ Any  (guard)
        ├─ Book  (step, can be undone)
        ├─ Again  (repeat Check, at most 3 rounds)
        │  └─ Look "closely"  (step)
        └─ Chat  (loop, tools wait for payment)
           ├→ tool check  (Check)
           │  └─ Look "closely"  (step)
           └→ tool send  (can need an approval, ends the loop)
        "#);
    }

    #[test]
    fn flowchart_has_a_box_for_each_use_of_a_brain() {
        insta::assert_snapshot!(mermaid(&nested()), @r#"
        flowchart TD
          subgraph s0["Items (map Check)"]
            s0_0["Look #quot;closely#quot; (step)"]
          end
          subgraph s1["By size (branch)"]
            subgraph s1_0["Large  (Check)"]
              s1_0_0["Look #quot;closely#quot; (step)"]
            end
            s1_1["Small"]
          end
          s2{{"Any (guard)"}}
          s3["Book (step, can be undone)"]
          subgraph s4["Again (repeat Check, at most 3 rounds)"]
            s4_0["Look #quot;closely#quot; (step)"]
          end
          subgraph s5["Chat (loop, tools wait for payment)"]
            subgraph s5_0["tool check  (Check)"]
              s5_0_0["Look #quot;closely#quot; (step)"]
            end
            s5_1["tool send  (can need an approval, ends the loop)"]
          end
          s0 --> s1
          s1 --> s2
          s2 --> s3
          s3 --> s4
          s4 --> s5
        "#);
    }
}
