//! What open frames need besides their state: definitions, services, and the configurations of loops.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::definition::{
    AnyServices, BrainDefinition, LoopDefinition, NestedDefinition, Scope, StageBody, StateValue, ToolBody,
    ToolDefinition, Tries,
};
use crate::error::caught_now;
use crate::machine::{BrainFrame, Call, RunState, pending};
use crate::record::{Path, RunId, Segment, parent_of};
use crate::runner::effects::link::RunLink;

/// The parts of open frames that are not data. There are few, and comparing paths takes less time than hashing one.
pub(in crate::runner) struct Frames {
    run: RunId,
    user: Option<Arc<str>>,
    /// The size limit of documents.
    max_bytes: usize,
    brains: BTreeMap<Path, LoadedBrain>,
    loops: BTreeMap<Path, Arc<LoopDefinition>>,
    /// The options of the brains of open groups, by stage.
    items: BTreeMap<Path, Arc<[Value]>>,
    /// The loops whose configuration failed during the restore, with the error.
    pub(in crate::runner) broken: Vec<(Path, String)>,
}

struct LoadedBrain {
    definition: Arc<BrainDefinition>,
    services: AnyServices,
    options: StateValue,
    state: StateValue,
}

impl Frames {
    pub(super) fn new(run: &RunId, user: Option<&str>, max_bytes: usize) -> Self {
        Self {
            run: run.clone(),
            user: user.map(Arc::from),
            max_bytes,
            brains: BTreeMap::new(),
            loops: BTreeMap::new(),
            items: BTreeMap::new(),
            broken: Vec::new(),
        }
    }

    /// Returns the services of a brain, derived from those of the outer brain.
    pub(in crate::runner) fn provided(definition: &BrainDefinition, outer: AnyServices) -> crate::Result<AnyServices> {
        let Some(provide) = &definition.provide else { return Ok(outer) };
        caught_now(|| Ok(provide(outer))).map_err(|error| {
            crate::Error::new(format!("the services of the brain `{}` cannot be provided: {error}", definition.title))
        })
    }

    fn value(&self, json: &Arc<Value>) -> StateValue {
        StateValue::new(Arc::clone(json), self.max_bytes)
    }

    /// Adds a brain that has begun.
    pub(in crate::runner) fn begin(
        &mut self,
        frame: &BrainFrame,
        definition: Arc<BrainDefinition>,
        services: AnyServices,
    ) {
        let options = self.value(&frame.options);
        let state = self.value(&frame.state);
        self.brains.insert(frame.path.clone(), LoadedBrain { definition, services, options, state });
    }

    pub(in crate::runner) fn definition(&self, brain: &Path) -> Option<&Arc<BrainDefinition>> {
        self.brains.get(brain).map(|brain| &brain.definition)
    }

    pub(in crate::runner) fn services(&self, brain: &Path) -> AnyServices {
        self.brains.get(brain).map_or_else(|| Arc::new(()) as AnyServices, |brain| Arc::clone(&brain.services))
    }

    /// Returns the stage at a path.
    pub(in crate::runner) fn stage_at(&self, path: &Path) -> Option<&StageBody> {
        let Some(Segment::Stage(name)) = path.last() else { return None };
        self.stage(&path.parent()?, name)
    }

    pub(in crate::runner) fn stage(&self, brain: &Path, name: &str) -> Option<&StageBody> {
        Some(&self.definition(brain)?.stage(name)?.body)
    }

    /// Returns how a stage is tried.
    pub(in crate::runner) fn tries(&self, brain: &Path, name: &str) -> Option<&Tries> {
        Some(&self.definition(brain)?.stage(name)?.tries)
    }

    pub(in crate::runner) fn set_loop(&mut self, path: Path, definition: Arc<LoopDefinition>) {
        self.loops.insert(path, definition);
    }

    pub(in crate::runner) fn loop_at(&self, path: &Path) -> Option<&Arc<LoopDefinition>> {
        self.loops.get(path)
    }

    /// Returns the loop around an iteration or a call.
    pub(in crate::runner) fn enclosing_loop(&self, path: &Path) -> Option<&Arc<LoopDefinition>> {
        self.loops.get(path.parent_text()?)
    }

    pub(in crate::runner) fn set_items(&mut self, group: Path, items: Arc<[Value]>) {
        self.items.insert(group, items);
    }

    pub(in crate::runner) fn items(&self, group: &Path) -> Option<&[Value]> {
        self.items.get(group).map(|items| &**items)
    }

    /// Finds the tool of a call in the tools of its iteration.
    pub(in crate::runner) fn tool(&self, call: &Path, tool: &str) -> Option<&Arc<ToolDefinition>> {
        self.enclosing_loop(call)?.tools.get(tool)
    }

    /// Returns that the code does not have the tool of a call that waits for a person or a program. What they send would lead to an
    /// error.
    pub(in crate::runner) fn missing_tool(&self, state: &RunState) -> Option<String> {
        let missing = |call: &&Call| {
            let is_known = parent_of(call.path.as_str()).is_some_and(|at| self.loops.contains_key(at));
            is_known && self.tool(&call.path, &call.tool).is_none()
        };
        let ancestors = |path: &Path| std::iter::successors(Some(path.clone()), Path::parent);
        let is_call = |path: &Path| matches!(path.last(), Some(Segment::Call(..)));
        let waiting = pending(state);
        let mut calls = waiting.iter().flat_map(|pending| ancestors(&pending.call)).filter(is_call);
        calls.find_map(|path| state.call(&path).filter(|call| missing(call)).map(|call| {
            let Call { path, tool, .. } = call;
            format!("the call `{path}` is open, and its tool `{tool}` no longer exists: restore the tool, or reject the call")
        }))
    }

    /// Finds the brain of a stage or a call.
    pub(in crate::runner) fn nested(&self, state: &RunState, path: &Path) -> Option<NestedDefinition> {
        match path.last()? {
            Segment::Stage(name) => {
                let arm = state.owner(path).and_then(|owner| owner.arm.as_ref()).map(|arm| arm.name.as_str());
                self.stage(&path.parent()?, name)?.nested(arm).cloned()
            }
            Segment::Call(_, index) => match state.call(path) {
                Some(call) => match &self.tool(path, &call.tool)?.body {
                    ToolBody::Brain(nested) => Some(nested.clone()),
                    ToolBody::Function { .. } => None,
                },
                None => {
                    let owner = state.owner(path)?;
                    let stage = self.stage(&owner.path, &owner.current()?.name)?;
                    let arm = owner.arm.as_ref().map(|arm| arm.name.as_str());
                    stage.child(index).or_else(|| stage.nested(arm)).cloned()
                }
            },
            Segment::Iteration(_) | Segment::Question(..) => None,
        }
    }

    /// Returns the state of a brain. The decoded value is cached until the state changes.
    pub(in crate::runner) fn document(&mut self, frame: &BrainFrame) -> StateValue {
        let max_bytes = self.max_bytes;
        let fresh = || StateValue::new(Arc::clone(&frame.state), max_bytes);
        match self.brains.get_mut(&frame.path) {
            Some(brain) => {
                if !Arc::ptr_eq(brain.state.json(), &frame.state) {
                    brain.state = fresh();
                }
                brain.state.clone()
            }
            None => fresh(),
        }
    }

    /// Returns the scope that the author's code at `path` gets.
    pub(in crate::runner) fn scope(&mut self, frame: &BrainFrame, path: Path, link: &Arc<RunLink>) -> Scope {
        let state = self.document(frame);
        let brain = self.brains.get(&frame.path);
        Scope {
            state,
            plugins: frame.plugins.clone(),
            options: brain.map_or_else(|| self.value(&frame.options), |brain| brain.options.clone()),
            services: self.services(&frame.path),
            run: self.run.clone(),
            user: self.user.clone(),
            path,
            link: Arc::clone(link) as Arc<dyn crate::definition::Link>,
        }
    }

    /// Removes the frames that events at these paths have closed. To find one in the state takes longer than to compare paths, and
    /// thousands can be open.
    pub(super) fn forget_closed(&mut self, state: &RunState, closing: &[&Path]) {
        let is_affected = |path: &Path| closing.iter().any(|closed| path.is_within(closed));
        if self.brains.len() > 1 {
            self.brains.retain(|path, _| !is_affected(path) || state.brain(path).is_some());
        }
        if !self.items.is_empty() {
            let is_open = |path: &Path| state.owner(path).and_then(|owner| owner.stage.as_group()).is_some();
            self.items.retain(|path, _| is_open(path));
        }
        if !self.loops.is_empty() {
            let is_open = |path: &Path| state.loop_at(path).is_some_and(|frame| frame.path == *path);
            self.loops.retain(|path, _| !is_affected(path) || is_open(path));
        }
    }
}
